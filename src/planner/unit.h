/* Quantities with their units: how they are typed and how they are shown.
 *
 * Inside, every number is in SI base units: bytes, seconds, bytes a second, dollars a second.
 * Decimal prefixes (kB, MB, GB) are powers of 1,000, binary ones (KiB, MiB, GiB) of 1,024; small b
 * is a bit (Gb/s, Gbps). A number without its unit is refused wherever it could be misread.
 * A month is 730 h and a year 8,760 h, as cloud bills count them.
 *
 * Thread: any; there is no state. */
#pragma once
#include "base/types.h"

/* Seconds of that month: what a price "a month" is kept by. */
enum { UNIT_MONTH_S = 730 * 3600 };

enum unit {
    UNIT_COUNT,                   /* 3, 70B, 1.5M; decimal k, M, B or G, T */
    UNIT_SHARE,                   /* 0.85 or 85% */
    UNIT_BYTES,                   /* 140GB, 4KiB */
    UNIT_SECONDS,                 /* 35us, 60s, 30min, 24h, 2d, 1month, 3y */
    UNIT_BYTES_PER_SECOND,        /* 20GB/s, 10MiB/s, 200Gb/s, 200Gbps */
    UNIT_PER_SECOND,              /* 15625/s, 20M/s, 4/h; 15625IOPS */
    UNIT_BYTES_PER_UNIT,          /* 14B, 200kB: bytes of one thing (a parameter, a token) */
    UNIT_SECONDS_PER_BYTE,        /* 0.5s/GB */
    UNIT_RATE_PER_BYTE,           /* 125MB/s/TiB */
    UNIT_METRES,                  /* 30m, 2km */
    UNIT_DOLLARS,                 /* $4000 */
    UNIT_DOLLARS_PER_SECOND,      /* $4.62/h, $500/month */
    UNIT_DOLLARS_PER_BYTE,        /* $0.09/GB */
    UNIT_DOLLARS_PER_BYTE_SECOND, /* $0.17/GB/month */
    UNIT_COUNT_OF_UNITS
};

/* The unit of the base number, as JSON and CSV name it: "bytes", "bytes/s", "1". */
const char *unit_name(enum unit unit);
/* What an error message shows: "60s". */
const char *unit_example(enum unit unit);
/* What is expected, in words: "a time with its unit". */
const char *unit_words(enum unit unit);

/* -ERR_MALFORMED when text is not a finite number with a unit of that kind. */
MUST_CHECK int unit_parse(enum unit unit, const char *text, double *ret_number);

/* Four significant digits and a prefix that suits: "2.333 GB/s", "5.243 s", "97.2 %". */
#define UNIT_TEXT_BYTES 48
void unit_format(enum unit unit, double number, char ret_text[UNIT_TEXT_BYTES]);
/* The text that unit_parse takes back as the same number to 15 digits: "2333333333.33333B/s". */
void unit_format_exact(enum unit unit, double number, char ret_text[UNIT_TEXT_BYTES]);
