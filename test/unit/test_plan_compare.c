/* The comparison with an object store: the quoted numbers in right units, limits, refusals. */
#include "unit.h"
#include "plan_desk.h"
#include <stdio.h>

/* 500,000 I/Os of 4 KiB a second are 2.048 GB/s, which is 1.907 GiB/s. */
static void test_quoted_numbers(void **state) {
    struct desk desk;

    (void)state;
    desk_init(&desk, "compare");
    desk_run(&desk, "--dataset 10GiB --object-rate 10MiB/s --nodes 32 --node-iops 15625/s "
                    "--io-size 4KiB");
    desk_assert(&desk, "node_rate", 64e6, 1e-12);
    desk_assert(&desk, "throughput", 2.048e9, 1e-12);
    desk_assert(&desk, "iops", 500000, 1e-12);
    desk_assert(&desk, "duration", 5.24288, 1e-12);
    desk_assert(&desk, "single_duration", 1024, 1e-12);
    desk_assert(&desk, "single_speedup", 195.3125, 1e-12);
    desk_run(&desk, "--dataset 10TB");
    desk_assert(&desk, "duration", 4882.8125, 1e-12);
    desk_run(&desk, "--dataset 10TiB");
    desk_assert(&desk, "duration", 5368.70912, 1e-12);
    desk_deinit(&desk);
}

/* The rate of the object store grows with its connections until the nodes' network is full. */
static void test_connections(void **state) {
    struct desk desk;

    (void)state;
    desk_init(&desk, "compare");
    desk_run(&desk, "--object-rate 85MB/s --connections 100 --node-bandwidth 10GB/s");
    desk_assert(&desk, "object_throughput", 8.5e9, 1e-12);
    desk_assert(&desk, "speedup", 320 / 8.5, 1e-12);
    double even = desk_value(&desk, "even_connections");
    char options[64];
    snprintf(options, sizeof options, "--connections %.0f", even);
    desk_run(&desk, options);
    assert_true(desk_value(&desk, "speedup") <= 1);
    desk_run(&desk, "--connections 1000000 --link 100Gb/s");
    desk_assert(&desk, "object_throughput", 32 * 12.5e9, 1e-12);
    desk_run(&desk, "--node-bandwidth 20GB/s");
    desk_assert(&desk, "node_rate", 12.5e9, 1e-12);
    desk_deinit(&desk);
}

static void test_limits(void **state) {
    struct desk desk;

    (void)state;
    desk_init(&desk, "compare");
    desk_run(&desk, "--node-iops 0/s");
    assert_string_equal(desk_cannot(&desk, "duration"), "the nodes move nothing");
    assert_string_equal(desk_words(&desk, "verdict"),
                        "never finishes: the nodes move nothing: --node-iops 15625/s");
    desk_run(&desk, "--node-iops 1000/s --object-rate 0B/s");
    assert_non_null(desk_cannot(&desk, "speedup"));
    assert_non_null(desk_cannot(&desk, "even_connections"));
    desk_run(&desk, "--dataset 0B --object-rate 1MB/s");
    assert_true(desk_value(&desk, "duration") == 0);
    desk_run(&desk, "--dataset 1000PB --nodes 1000000 --node-bandwidth 1000TB/s --link 0B/s");
    assert_non_null(desk_cannot(&desk, "duration"));
    assert_false(desk_row(&desk, 1));
    desk_deinit(&desk);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quoted_numbers),
        cmocka_unit_test(test_connections),
        cmocka_unit_test(test_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
