/* Moving data: the quoted numbers put right, what binds, what is left, and what cannot be. */
#include "unit.h"
#include "plan_desk.h"
#include <stdio.h>

static const char twenty[] = "--moved 10TB --servers 20 --targets 20 --link 200Gb/s "
                             "--target-read 8GB/s --target-write 8GB/s";

/* Twenty servers of 200 Gb/s: 4,000 Gb/s, or 2,000 when half send to half; drives bind before. */
static void test_between_servers(void **state) {
    struct desk desk;

    (void)state;
    desk_init(&desk, "rebalance");
    desk_run(&desk, twenty);
    desk_run(&desk, "--senders 20 --receivers 20 --target-read 100GB/s --target-write 100GB/s");
    desk_assert(&desk, "network", 500e9, 1e-12);
    desk_assert(&desk, "duration", 20, 1e-12);
    desk_run(&desk, "--senders 10 --receivers 10");
    desk_assert(&desk, "duration", 40, 1e-12);
    assert_string_equal(desk_words(&desk, "binding"), "the network of the servers");
    desk_run(&desk, "--target-read 8GB/s");
    desk_assert(&desk, "duration", 125, 1e-12);
    assert_string_equal(desk_words(&desk, "binding"), "reading from the targets");
    desk_run(&desk, "--target-write 4GB/s");
    desk_assert(&desk, "duration", 250, 1e-12);
    assert_string_equal(desk_words(&desk, "binding"), "writing to the targets");
    desk_run(&desk, "--limit 10GB/s");
    desk_assert(&desk, "duration", 1000, 1e-12);
    assert_string_equal(desk_words(&desk, "binding"), "the limit that is set");
    desk_deinit(&desk);
}

static void test_through_clients(void **state) {
    struct desk desk;

    (void)state;
    desk_init(&desk, "rebalance");
    desk_run(&desk, twenty);
    desk_run(&desk, "--via clients --copiers 1");
    desk_assert(&desk, "duration", 400, 1e-12);
    desk_run(&desk, "--copiers 1000000");
    double many = desk_value(&desk, "duration");
    desk_run(&desk, "--via servers");
    desk_assert(&desk, "duration", many, 1e-12);
    desk_run(&desk, "--via clients --copiers 0");
    assert_string_equal(desk_cannot(&desk, "duration"), "nothing moves");
    desk_deinit(&desk);
}

/* What moves and what is left make the whole; a file on every server keeps less than its share. */
static void test_left_to_training(void **state) {
    struct desk desk;
    double last = 2;

    (void)state;
    desk_init(&desk, "rebalance");
    desk_run(&desk, twenty);
    for (int limit = 1; limit <= 80; limit += 7) {
        char options[64];

        snprintf(options, sizeof options, "--senders 10 --receivers 5 --limit %dGB/s", limit);
        desk_run(&desk, options);
        double rate = desk_value(&desk, "rate");
        double share = desk_value(&desk, "read_left") / desk_value(&desk, "read_all");

        desk_assert(&desk, "read_left", 160e9 - rate, 1e-12);
        desk_assert(&desk, "write_left", 160e9 - rate, 1e-12);
        assert_true(desk_value(&desk, "read_pace") < share);
        assert_true(desk_value(&desk, "write_pace") <= desk_value(&desk, "read_pace"));
        assert_true(desk_value(&desk, "write_pace") <= last);
        last = desk_value(&desk, "write_pace");
    }
    assert_true(last == 0);
    desk_deinit(&desk);
}

static void test_resync(void **state) {
    struct desk desk;

    (void)state;
    desk_init(&desk, "rebalance");
    desk_run(&desk, "--target-used 5TB --sources 31 --destinations 1 --target-write 4GB/s");
    desk_assert(&desk, "resync", 1250, 1e-12);
    assert_string_equal(desk_words(&desk, "resync_binding"), "writing to the new place");
    desk_assert(&desk, "resync_read_left", desk_value(&desk, "read_all") - 4e9, 1e-12);
    desk_assert(&desk, "resync_write_left", desk_value(&desk, "write_all") - 4e9, 1e-12);
    desk_run(&desk, "--destinations 31");
    desk_assert(&desk, "resync", 5e12 / (31 * 4e9), 1e-12);
    desk_run(&desk, "--sources 1 --target-read 2GB/s");
    desk_assert(&desk, "resync", 2500, 1e-12);
    assert_string_equal(desk_words(&desk, "resync_binding"), "reading the copies");
    desk_run(&desk, "--sources 0");
    assert_non_null(desk_cannot(&desk, "resync"));
    desk_deinit(&desk);
}

static void test_staging(void **state) {
    struct desk desk;

    (void)state;
    desk_init(&desk, "rebalance");
    desk_run(&desk, "--dataset 500GB --object-rate 500MB/s --connections 1 --runs 50 --nodes 8");
    desk_assert(&desk, "staging", 1000, 1e-12);
    desk_assert(&desk, "staging_runs", 50000, 1e-12);
    desk_assert(&desk, "ingress_node", 62.5e6, 1e-12);
    desk_assert(&desk, "staging_write_left",
                desk_value(&desk, "write_all") - desk_value(&desk, "ingress"), 1e-12);
    desk_run(&desk, "--staging-target 30s");
    desk_assert(&desk, "ingress_needed", 500e9 / 30, 1e-12);
    desk_run(&desk, "--connections 100000 --nodes 2");
    desk_assert(&desk, "ingress", 50e9, 1e-12);
    assert_string_equal(desk_words(&desk, "staging_binding"), "the network of the nodes");
    desk_run(&desk, "--connections 0 --staging-target 0s");
    assert_string_equal(desk_cannot(&desk, "staging_runs"), "nothing comes in");
    assert_string_equal(desk_cannot(&desk, "ingress_needed_node"), "the target time is zero");
    desk_deinit(&desk);
}

static void test_nothing_takes_part(void **state) {
    struct desk desk;

    (void)state;
    desk_init(&desk, "rebalance");
    desk_run(&desk, "--senders 0 --target-write 0B/s");
    assert_string_equal(desk_cannot(&desk, "duration"), "nothing moves");
    assert_string_equal(desk_cannot(&desk, "read_pace"), "no server takes part");
    assert_string_equal(desk_cannot(&desk, "write_pace"), "the storage moves nothing");
    assert_false(desk_row(&desk, 1));
    desk_deinit(&desk);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_between_servers),  cmocka_unit_test(test_through_clients),
        cmocka_unit_test(test_left_to_training), cmocka_unit_test(test_resync),
        cmocka_unit_test(test_staging),          cmocka_unit_test(test_nothing_takes_part),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
