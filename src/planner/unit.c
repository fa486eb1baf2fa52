/* Units: a number, then the tokens of each of the unit's dimensions with a slash between. */
#include "planner/unit.h"
#include "base/err.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum dimension { D_NONE, D_COUNT, D_SHARE, D_SIZE, D_TIME, D_LENGTH };

struct token {
    const char *text;
    double factor;
};

static const struct token tokens_count[] = {
    {"", 1}, {"k", 1e3}, {"K", 1e3}, {"M", 1e6}, {"B", 1e9}, {"G", 1e9}, {"T", 1e12}, {NULL, 0},
};
static const struct token tokens_share[] = {{"", 1}, {"%", 0.01}, {NULL, 0}};
static const struct token tokens_size[] = {
    {"B", 1},
    {"kB", 1e3},
    {"KB", 1e3},
    {"MB", 1e6},
    {"GB", 1e9},
    {"TB", 1e12},
    {"PB", 1e15},
    {"EB", 1e18},
    {"KiB", 1024.0},
    {"MiB", 1048576.0},
    {"GiB", 1073741824.0},
    {"TiB", 1099511627776.0},
    {"PiB", 1125899906842624.0},
    {"EiB", 1152921504606846976.0},
    {"b", 0.125},
    {"kb", 125},
    {"Mb", 125e3},
    {"Gb", 125e6},
    {"Tb", 125e9},
    {NULL, 0},
};
static const struct token tokens_time[] = {
    {"s", 1},
    {"ms", 1e-3},
    {"us", 1e-6},
    {"\u00b5s", 1e-6},
    {"ns", 1e-9},
    {"min", 60},
    {"h", 3600},
    {"hour", 3600},
    {"hours", 3600},
    {"d", 86400},
    {"day", 86400},
    {"days", 86400},
    {"week", 7 * 86400},
    {"weeks", 7 * 86400},
    {"month", 730 * 3600},
    {"months", 730 * 3600},
    {"mo", 730 * 3600},
    {"y", 8760 * 3600},
    {"year", 8760 * 3600},
    {"years", 8760 * 3600},
    {NULL, 0},
};
static const struct token tokens_length[] = {{"m", 1}, {"km", 1e3}, {"cm", 0.01}, {NULL, 0}};

static const struct token *const tokens_of[] = {
    [D_COUNT] = tokens_count, [D_SHARE] = tokens_share,   [D_SIZE] = tokens_size,
    [D_TIME] = tokens_time,   [D_LENGTH] = tokens_length,
};

/* The first dimension multiplies, each further one divides. */
struct kind {
    const char *name;
    const char *example;
    const char *words;
    bool money;
    enum dimension first;
    enum dimension per[2];
    double shown; /* base units in the unit that is shown behind the slashes */
    const char *tail;
};

static const struct kind kinds[UNIT_COUNT_OF_UNITS] = {
    [UNIT_COUNT] = {"1", "70B", "a number", false, D_COUNT, {0}, 1, ""},
    [UNIT_SHARE] = {"1", "85%", "a share", false, D_SHARE, {0}, 1, ""},
    [UNIT_BYTES] = {"bytes", "140GB", "a size with its unit", false, D_SIZE, {0}, 1, ""},
    [UNIT_SECONDS] = {"s", "60s", "a time with its unit", false, D_TIME, {0}, 1, ""},
    [UNIT_BYTES_PER_SECOND] =
        {"bytes/s", "20GB/s", "a bandwidth with its unit", false, D_SIZE, {D_TIME}, 1, "/s"},
    [UNIT_PER_SECOND] =
        {"1/s", "20000/s", "a rate with its unit", false, D_COUNT, {D_TIME}, 1, "/s"},
    [UNIT_BYTES_PER_UNIT] = {"bytes", "14B", "a size with its unit", false, D_SIZE, {0}, 1, ""},
    [UNIT_SECONDS_PER_BYTE] =
        {"s/byte", "0.5s/GB", "a time a size", false, D_TIME, {D_SIZE}, 1e-9, "/GB"},
    [UNIT_RATE_PER_BYTE] = {"bytes/s/byte",
                            "125MB/s/TiB",
                            "a bandwidth a size",
                            false,
                            D_SIZE,
                            {D_TIME, D_SIZE},
                            1 / 1099511627776.0,
                            "/s/TiB"},
    [UNIT_METRES] = {"m", "30m", "a length with its unit", false, D_LENGTH, {0}, 1, " m"},
    [UNIT_DOLLARS] = {"$", "$4000", "an amount in $", true, D_NONE, {0}, 1, ""},
    [UNIT_DOLLARS_PER_SECOND] =
        {"$/s", "$4.62/h", "an amount in $ a time", true, D_NONE, {D_TIME}, 1 / 3600.0, "/h"},
    [UNIT_DOLLARS_PER_BYTE] =
        {"$/byte", "$0.09/GB", "an amount in $ a size", true, D_NONE, {D_SIZE}, 1e-9, "/GB"},
    [UNIT_DOLLARS_PER_BYTE_SECOND] = {"$/byte/s",
                                      "$0.17/GB/month",
                                      "an amount in $ a size and time",
                                      true,
                                      D_NONE,
                                      {D_SIZE, D_TIME},
                                      1e-9 / 2628e3,
                                      "/GB/month"},
};

const char *unit_name(enum unit unit) {
    return kinds[unit].name;
}

const char *unit_example(enum unit unit) {
    return kinds[unit].example;
}

const char *unit_words(enum unit unit) {
    return kinds[unit].words;
}

static const char *skip_spaces(const char *at) {
    while (*at == ' ') {
        at++;
    }
    return at;
}

/* The longest token that stands here, ended by something that continues no word. */
static bool take_token(enum dimension dimension, bool bits, const char **at, double *ret_factor) {
    const struct token *best = NULL;
    size_t best_size = 0;

    for (const struct token *token = tokens_of[dimension]; token->text; token++) {
        size_t size = strlen(token->text);

        if (dimension == D_SIZE && !bits && token->text[size - 1] == 'b') {
            continue;
        }
        if ((!best || size > best_size) && strncmp(*at, token->text, size) == 0) {
            best = token;
            best_size = size;
        }
    }
    if (!best) {
        return false;
    }
    *at += best_size;
    *ret_factor = best->factor;
    return true;
}

/* Rates have names of their own: Gbps, Gbit/s, IOPS. */
static bool take_named_rate(enum unit unit, const char **at, double *ret_factor) {
    static const struct token bits[] = {
        {"Mbps", 125e3},   {"Gbps", 125e6},   {"Tbps", 125e9}, {"Mbit/s", 125e3},
        {"Gbit/s", 125e6}, {"Tbit/s", 125e9}, {NULL, 0},
    };

    if (unit == UNIT_PER_SECOND && strncmp(*at, "IOPS", 4) == 0) {
        *at += 4;
        *ret_factor = 1;
        return true;
    }
    for (const struct token *token = bits; unit == UNIT_BYTES_PER_SECOND && token->text; token++) {
        if (strncmp(*at, token->text, strlen(token->text)) == 0) {
            *at += strlen(token->text);
            *ret_factor = token->factor;
            return true;
        }
    }
    return false;
}

static bool take_units(enum unit unit, const char **at, double *number) {
    const struct kind *kind = &kinds[unit];
    bool bits = unit == UNIT_BYTES_PER_SECOND; /* sizes are never meant in bits */
    double factor = 1;

    if (take_named_rate(unit, at, &factor)) {
        *number *= factor;
        return true;
    }
    if (kind->first != D_NONE) {
        if (!take_token(kind->first, bits, at, &factor)) {
            return false;
        }
        *number *= factor;
    }
    for (size_t i = 0; i < ARRAY_SIZE(kind->per) && kind->per[i] != D_NONE; i++) {
        *at = skip_spaces(*at);
        if (**at != '/' && !(i > 0 && **at == '-')) {
            return false;
        }
        *at = skip_spaces(*at + 1);
        if (!take_token(kind->per[i], bits, at, &factor)) {
            return false;
        }
        *number /= factor;
    }
    return true;
}

int unit_parse(enum unit unit, const char *text, double *ret_number) {
    const char *at = skip_spaces(text);
    bool dollars = *at == '$';
    char *end;

    if (kinds[unit].money != dollars) {
        return -ERR_MALFORMED;
    }
    at += dollars;
    /* strtod takes more than numbers: hexadecimal, "inf", "nan", leading blanks. */
    const char *digits = at + (*at == '-' || *at == '+');
    if (!isdigit((unsigned char)digits[0]) && digits[0] != '.') {
        return -ERR_MALFORMED;
    }
    if (digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X')) {
        return -ERR_MALFORMED;
    }
    double number = strtod(at, &end);
    if (end == at) {
        return -ERR_MALFORMED;
    }
    at = skip_spaces(end);
    if (!take_units(unit, &at, &number) || *skip_spaces(at) != '\0' || !isfinite(number)) {
        return -ERR_MALFORMED;
    }
    *ret_number = number;
    return 0;
}

/* Largest prefix first. */
static const struct token shown_sizes[] = {{"EB", 1e18}, {"PB", 1e15}, {"TB", 1e12}, {"GB", 1e9},
                                           {"MB", 1e6},  {"kB", 1e3},  {"B", 1}};
static const struct token shown_times[] = {{"y", 31536e3}, {"d", 86400}, {"h", 3600},
                                           {"min", 60},    {"s", 1},     {"ms", 1e-3},
                                           {"us", 1e-6},   {"ns", 1e-9}};
static const struct token shown_counts[] = {
    {"trillion", 1e12}, {"billion", 1e9}, {"million", 1e6}, {"", 1}};
static const struct token shown_rates[] = {{"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"", 1}};

/* A number below its token's size is shown in the next smaller one; times change to minutes,
 * hours, days and years only when these are more than a few. */
static const struct token *shown(const struct kind *kind, double number) {
    enum dimension dimension = kind->first;
    const struct token *rows = dimension == D_TIME      ? shown_times
                               : dimension == D_SIZE    ? shown_sizes
                               : kind->per[0] == D_TIME ? shown_rates
                                                        : shown_counts;
    size_t count = dimension == D_TIME   ? ARRAY_SIZE(shown_times)
                   : dimension == D_SIZE ? ARRAY_SIZE(shown_sizes)
                                         : ARRAY_SIZE(shown_counts);
    size_t i = 0;

    for (; i + 1 < count; i++) {
        double least = rows[i].factor;

        if (dimension == D_TIME && least > 1) {
            least *= least == 60 ? 10 : 2;
        } else if (dimension == D_COUNT && least == 1e6) {
            least = 1e7;
        }
        /* What would be rounded up to 1,000 of the smaller unit belongs to this one. */
        if (fabs(number) >= least * (1 - 5e-5)) {
            break;
        }
    }
    return &rows[number == 0 && dimension == D_TIME ? 4 : i];
}

/* Four significant digits without an exponent up to seven digits, thousands in groups. */
static void format_digits(double number, char text[32]) {
    char plain[32];
    size_t out = 0;

    if (number == 0) {
        snprintf(text, 32, "0");
        return;
    }
    if (fabs(number) >= 1e7 || fabs(number) < 1e-3) {
        snprintf(text, 32, "%.4g", number);
        return;
    }
    if (fabs(number) < 1000) {
        snprintf(text, 32, "%.4g", number);
        return;
    }
    snprintf(plain, sizeof plain, "%.0f", number);
    for (size_t i = 0, size = strlen(plain); i < size; i++) {
        text[out++] = plain[i];
        if (isdigit((unsigned char)plain[i]) && (size - i) % 3 == 1 && i + 1 < size) {
            text[out++] = ',';
        }
    }
    text[out] = '\0';
}

static void format_dollars(const struct kind *kind, double number, char text[UNIT_TEXT_BYTES]) {
    const char *sign = number < 0 ? "-" : "";
    char digits[32];

    number = fabs(number);
    if (number >= 1e7) {
        format_digits(number / 1e6, digits);
        snprintf(text, UNIT_TEXT_BYTES, "%s$%sM%s", sign, digits, kind->tail);
    } else if (number >= 1000) {
        format_digits(number, digits);
        snprintf(text, UNIT_TEXT_BYTES, "%s$%s%s", sign, digits, kind->tail);
    } else if (number >= 0.1 || number == 0) {
        /* Cents, and the tenth of one where there is one, as GPU prices have it. */
        size_t size =
            (size_t)snprintf(digits, sizeof digits, number < 100 ? "%.3f" : "%.2f", number);
        if (number < 100 && digits[size - 1] == '0') {
            digits[size - 1] = '\0';
        }
        snprintf(text, UNIT_TEXT_BYTES, "%s$%s%s", sign, digits, kind->tail);
    } else {
        snprintf(text, UNIT_TEXT_BYTES, "%s$%.3g%s", sign, number, kind->tail);
    }
}

void unit_format(enum unit unit, double number, char ret_text[UNIT_TEXT_BYTES]) {
    const struct kind *kind = &kinds[unit];
    char digits[32];

    number /= kind->shown;
    if (unit == UNIT_SHARE) {
        format_digits(number * 100, digits);
        snprintf(ret_text, UNIT_TEXT_BYTES, "%s %%", digits);
    } else if (kind->money) {
        format_dollars(kind, number, ret_text);
    } else if (kind->first == D_LENGTH) {
        format_digits(number, digits);
        snprintf(ret_text, UNIT_TEXT_BYTES, "%s%s", digits, kind->tail);
    } else {
        const struct token *token = shown(kind, number);

        format_digits(number / token->factor, digits);
        snprintf(ret_text, UNIT_TEXT_BYTES, "%s%s%s%s", digits, token->text[0] ? " " : "",
                 token->text, kind->tail);
    }
}

void unit_format_exact(enum unit unit, double number, char ret_text[UNIT_TEXT_BYTES]) {
    static const char *const tails[UNIT_COUNT_OF_UNITS] = {
        [UNIT_BYTES] = "B",
        [UNIT_SECONDS] = "s",
        [UNIT_BYTES_PER_SECOND] = "B/s",
        [UNIT_PER_SECOND] = "/s",
        [UNIT_BYTES_PER_UNIT] = "B",
        [UNIT_SECONDS_PER_BYTE] = "s/B",
        [UNIT_RATE_PER_BYTE] = "B/s/B",
        [UNIT_METRES] = "m",
        [UNIT_DOLLARS_PER_SECOND] = "/s",
        [UNIT_DOLLARS_PER_BYTE] = "/B",
        [UNIT_DOLLARS_PER_BYTE_SECOND] = "/B/s",
    };

    snprintf(ret_text, UNIT_TEXT_BYTES, "%s%.15g%s", kinds[unit].money ? "$" : "", number,
             tails[unit] ? tails[unit] : "");
}
