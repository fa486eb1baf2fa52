/* Quantities: what is read, what is refused, what is shown, and that text and number agree. */

#include "unit.h"
#include "base/err.h"
#include "base/prng.h"
#include "planner/unit.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SEED = 11 };

static void test_read(void **state) {
    (void)state;
    const struct {
        enum unit unit;
        const char *text;
        double number;
    } rows[] = {
        {UNIT_COUNT, "70B", 70e9},
        {UNIT_COUNT, "1.5M", 1.5e6},
        {UNIT_COUNT, "0", 0},
        {UNIT_COUNT, "2e3", 2000},
        {UNIT_SHARE, "85%", 0.85},
        {UNIT_SHARE, "0.85", 0.85},
        {UNIT_BYTES, "10TB", 1e13},
        {UNIT_BYTES, "10TiB", 10995116277760.0},
        {UNIT_BYTES, " 4 KiB ", 4096},
        {UNIT_BYTES, "1EB", 1e18},
        {UNIT_SECONDS, "60s", 60},
        {UNIT_SECONDS, "35us", 35e-6},
        {UNIT_SECONDS, "35\u00b5s", 35e-6},
        {UNIT_SECONDS, "30min", 1800},
        {UNIT_SECONDS, "50000h", 180e6},
        {UNIT_SECONDS, "1month", 730 * 3600},
        {UNIT_SECONDS, "3y", 3 * 8760 * 3600.0},
        {UNIT_BYTES_PER_SECOND, "20GB/s", 20e9},
        {UNIT_BYTES_PER_SECOND, "200Gb/s", 25e9},
        {UNIT_BYTES_PER_SECOND, "200Gbps", 25e9},
        {UNIT_BYTES_PER_SECOND, "200 Gbit/s", 25e9},
        {UNIT_BYTES_PER_SECOND, "10 MiB / s", 10485760},
        {UNIT_PER_SECOND, "15625/s", 15625},
        {UNIT_PER_SECOND, "15625IOPS", 15625},
        {UNIT_PER_SECOND, "20M/s", 20e6},
        {UNIT_PER_SECOND, "3600/h", 1},
        {UNIT_SECONDS_PER_BYTE, "0.5s/GB", 0.5e-9},
        {UNIT_RATE_PER_BYTE, "125MB/s/TiB", 125e6 / 1099511627776.0},
        {UNIT_METRES, "2km", 2000},
        {UNIT_DOLLARS, "$4000", 4000},
        {UNIT_DOLLARS, "$-4000", -4000},
        {UNIT_DOLLARS_PER_SECOND, "$3600/h", 1},
        {UNIT_DOLLARS_PER_BYTE, "$0.09/GB", 0.09e-9},
        {UNIT_DOLLARS_PER_BYTE_SECOND, "$2628000/GB/month", 1e-9},
        {UNIT_DOLLARS_PER_BYTE_SECOND, "$2628000/GB-month", 1e-9},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        double number = NAN;

        if (unit_parse(rows[i].unit, rows[i].text, &number) < 0 ||
            fabs(number - rows[i].number) > 1e-12 * fabs(rows[i].number)) {
            fail_msg("%s is read as %.17g, not %.17g", rows[i].text, number, rows[i].number);
        }
    }
}

static void test_refused(void **state) {
    (void)state;
    const struct {
        enum unit unit;
        const char *text;
    } rows[] = {
        {UNIT_SECONDS, "60"},
        {UNIT_SECONDS, ""},
        {UNIT_SECONDS, "s"},
        {UNIT_SECONDS, "60 parsecs"},
        {UNIT_SECONDS, "60s60s"},
        {UNIT_SECONDS, "1e999s"},
        {UNIT_SECONDS, "infs"},
        {UNIT_SECONDS, "nans"},
        {UNIT_SECONDS, "0x10s"},
        {UNIT_SECONDS, "--1s"},
        {UNIT_SECONDS, "$60s"},
        {UNIT_BYTES, "70 G"},
        {UNIT_BYTES, "70"},
        {UNIT_BYTES, "70Gb"},
        {UNIT_BYTES, "70GB/s"},
        {UNIT_BYTES, "1,5GB"},
        {UNIT_BYTES_PER_SECOND, "20"},
        {UNIT_BYTES_PER_SECOND, "20GB"},
        {UNIT_BYTES_PER_SECOND, "/s"},
        {UNIT_BYTES_PER_SECOND, "20GB/GB"},
        {UNIT_PER_SECOND, "20"},
        {UNIT_COUNT, "many"},
        {UNIT_COUNT, "70Q"},
        {UNIT_SHARE, "85 percent"},
        {UNIT_DOLLARS, "4000"},
        {UNIT_DOLLARS, "$"},
        {UNIT_DOLLARS, "$4000/h"},
        {UNIT_DOLLARS_PER_SECOND, "$4.62"},
        {UNIT_METRES, "30"},
        {UNIT_RATE_PER_BYTE, "125MB/s"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        double number = 42;

        if (unit_parse(rows[i].unit, rows[i].text, &number) != -ERR_MALFORMED || number != 42) {
            fail_msg("\"%s\" is not refused, but read as %g", rows[i].text, number);
        }
    }
}

static void test_shown(void **state) {
    (void)state;
    const struct {
        enum unit unit;
        double number;
        const char *text;
    } rows[] = {
        {UNIT_BYTES, 980e9, "980 GB"},
        {UNIT_BYTES, 999.99e6, "1 GB"},
        {UNIT_BYTES, 0, "0 B"},
        {UNIT_BYTES, 1.5, "1.5 B"},
        {UNIT_SECONDS, 5.24288, "5.243 s"},
        {UNIT_SECONDS, 599, "599 s"},
        {UNIT_SECONDS, 1800, "30 min"},
        {UNIT_SECONDS, 1.0485760e6, "12.14 d"},
        {UNIT_SECONDS, 0.0000209715, "20.97 us"},
        {UNIT_SECONDS, 0, "0 s"},
        {UNIT_SECONDS, -90, "-90 s"},
        {UNIT_BYTES_PER_SECOND, 2.048e9, "2.048 GB/s"},
        {UNIT_PER_SECOND, 500000, "500,000/s"},
        {UNIT_PER_SECOND, 20e6, "20 M/s"},
        {UNIT_COUNT, 70e9, "70 billion"},
        {UNIT_COUNT, 16384, "16,384"},
        {UNIT_COUNT, 0.5, "0.5"},
        {UNIT_SHARE, 0.0265, "2.65 %"},
        {UNIT_DOLLARS, 1440, "$1,440"},
        {UNIT_DOLLARS, -0.5, "-$0.50"},
        {UNIT_DOLLARS_PER_SECOND, 61.568 / 3600, "$61.568/h"},
        {UNIT_DOLLARS_PER_SECOND, 1.924 / 3600, "$1.924/h"},
        {UNIT_DOLLARS_PER_SECOND, 4.62 / 3600, "$4.62/h"},
        {UNIT_DOLLARS, 123.456, "$123.46"},
        {UNIT_DOLLARS_PER_BYTE_SECOND, 0.17e-9 / 2628e3, "$0.17/GB/month"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        char text[UNIT_TEXT_BYTES];

        unit_format(rows[i].unit, rows[i].number, text);
        assert_string_equal(text, rows[i].text);
    }
}

/* Exact text brings the number back; what is shown is it to four digits. */
static void test_round_trip(void **state) {
    (void)state;
    struct prng prng;

    prng_init(&prng, SEED);
    for (int i = 0; i < 20000; i++) {
        enum unit unit = (enum unit)(prng_next(&prng) % UNIT_COUNT_OF_UNITS);
        double exponent = (double)(prng_next(&prng) % 30000) / 1000 - 12;
        double number = pow(10, exponent);
        char text[UNIT_TEXT_BYTES];
        double again = 0;

        unit_format_exact(unit, number, text);
        if (unit_parse(unit, text, &again) < 0 || fabs(again - number) > 1e-14 * number) {
            fail_msg("seed %d: %.17g as %s comes back as %.17g", SEED, number, text, again);
        }
        unit_format(unit, number, text);
        assert_true(strlen(text) < UNIT_TEXT_BYTES - 1);
    }
}

/* Any bytes are a quantity or are refused; nothing else happens. */
static void test_noise(void **state) {
    (void)state;
    static const char letters[] = "0123456789.eE+-$%/ kKMGTPBbsminhdyuo\xc2\xb5x,";
    struct prng prng;

    prng_init(&prng, SEED);
    for (int i = 0; i < 50000; i++) {
        char text[16];
        size_t size = prng_next(&prng) % (sizeof text - 1);
        double number = NAN;

        for (size_t j = 0; j < size; j++) {
            text[j] = letters[prng_next(&prng) % (sizeof letters - 1)];
        }
        text[size] = '\0';
        if (unit_parse((enum unit)(prng_next(&prng) % UNIT_COUNT_OF_UNITS), text, &number) == 0) {
            assert_true(isfinite(number));
        } else {
            assert_true(isnan(number));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),  cmocka_unit_test(test_refused),
        cmocka_unit_test(test_shown), cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_noise),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
