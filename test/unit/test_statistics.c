/* Latencies: quantiles are at most a quarter too high, also at the ends. */

#include "unit.h"
#include "front/fuse/statistics.h"

static void test_one_latency(void **state) {
    (void)state;
    for (uint64_t latency_ns = 1; latency_ns < UINT64_C(1) << 33;
         latency_ns += latency_ns / 7 + 1) {
        struct statistics statistics = {0};
        uint64_t quantile_ns;

        statistics_add(&statistics, latency_ns, false);
        quantile_ns = statistics_quantile_ns(&statistics, 500);
        assert_true(quantile_ns >= latency_ns);
        assert_true(latency_ns < 1024 ? quantile_ns == 1024
                                      : quantile_ns <= latency_ns + latency_ns / 4 + 1);
    }
}

static void test_the_ends(void **state) {
    struct statistics statistics = {0};

    (void)state;
    assert_int_equal(statistics_quantile_ns(&statistics, 500), 0);
    statistics_add(&statistics, UINT64_MAX, true);
    assert_int_equal(statistics_quantile_ns(&statistics, 0), UINT64_C(1) << 34);
    statistics_add(&statistics, 0, false);
    assert_int_equal(statistics_quantile_ns(&statistics, 500), 1024);
    assert_int_equal(statistics_quantile_ns(&statistics, 1000), UINT64_C(1) << 34);
    assert_int_equal(statistics.error_count, 1);
}

static void test_quantiles_of_many(void **state) {
    struct statistics parts[2] = {0};
    struct statistics sum = {0};

    (void)state;
    for (uint64_t i = 1; i <= 1000; i++)
        statistics_add(&parts[i % 2], i * 10000, false);
    statistics_merge(&sum, &parts[0]);
    statistics_merge(&sum, &parts[1]);
    assert_int_equal(sum.count, 1000);
    assert_int_equal(sum.sum_ns, UINT64_C(500500) * 10000);
    assert_in_range(statistics_quantile_ns(&sum, 500), 5000000, 6250000);
    assert_in_range(statistics_quantile_ns(&sum, 990), 9900000, 12400000);
    assert_in_range(statistics_quantile_ns(&sum, 1), 10000, 12500);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_latency),
        cmocka_unit_test(test_the_ends),
        cmocka_unit_test(test_quantiles_of_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
