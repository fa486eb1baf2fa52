/* Percentiles are off by at most one part in HISTOGRAM_PARTS; merging two is adding all. */

#include "unit.h"
#include "base/histogram.h"
#include "base/prng.h"
#include <stdlib.h>
#include <string.h>

enum { VALUES = 5000 };

static int by_value(const void *a, const void *b) {
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;

    return left < right ? -1 : left > right;
}

static void assert_percentile(const struct histogram *histogram, const uint64_t *sorted,
                              uint32_t per_mille) {
    size_t place = (VALUES * (size_t)per_mille + 999) / 1000;
    uint64_t wanted = sorted[place > 0 ? place - 1 : 0];
    uint64_t got = histogram_percentile(histogram, per_mille);

    assert_true(got >= wanted);
    assert_true(got <= wanted + wanted / HISTOGRAM_PARTS);
}

static void test_percentiles(void **state) {
    static uint64_t values[VALUES];
    static struct histogram histogram;
    uint64_t sum = 0;
    struct prng prng;

    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        prng_init(&prng, seed);
        memset(&histogram, 0, sizeof histogram);
        sum = 0;
        for (size_t i = 0; i < VALUES; i++) {
            values[i] = prng_next(&prng) >> (20 + prng_below(&prng, 44));
            sum += values[i];
            histogram_add(&histogram, values[i]);
        }
        qsort(values, VALUES, sizeof values[0], by_value);
        for (uint32_t per_mille = 0; per_mille <= 1000; per_mille++) {
            assert_percentile(&histogram, values, per_mille);
        }
        assert_int_equal(histogram_percentile(&histogram, 1000), values[VALUES - 1]);
        assert_int_equal(histogram_mean(&histogram), sum / VALUES);
        assert_int_equal(histogram.count, VALUES);
    }
}

static void test_merge(void **state) {
    static struct histogram parts[2];
    static struct histogram whole;
    struct prng prng;

    (void)state;
    prng_init(&prng, 7);
    for (size_t i = 0; i < VALUES; i++) {
        uint64_t value = prng_next(&prng) >> prng_below(&prng, 60);

        histogram_add(&parts[i % 2], value);
        histogram_add(&whole, value);
    }
    histogram_merge(&parts[0], &parts[1]);
    assert_memory_equal(&parts[0], &whole, sizeof whole);
}

static void test_ends(void **state) {
    static struct histogram histogram;

    (void)state;
    assert_int_equal(histogram_percentile(&histogram, 500), 0);
    assert_int_equal(histogram_mean(&histogram), 0);
    histogram_add(&histogram, 0);
    assert_int_equal(histogram_percentile(&histogram, 1000), 0);
    /* What is beyond the last bucket counts as in it; the largest value is kept as it is. */
    histogram_add(&histogram, UINT64_MAX);
    histogram_add(&histogram, UINT64_MAX);
    assert_int_equal(histogram_percentile(&histogram, 1000),
                     (UINT64_C(1) << HISTOGRAM_VALUE_BITS) - 1);
    assert_true(histogram.largest == UINT64_MAX && histogram.sum == UINT64_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_percentiles),
        cmocka_unit_test(test_merge),
        cmocka_unit_test(test_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
