/* Shared-file writes: quoted numbers put right, exact pieces of a write, layouts that fit. */
#include "unit.h"
#include "plan_desk.h"
#include "planner/formula.h"
#include "planner/stripe.h"
#include <stdio.h>
#include <string.h>

static void test_locks(void **state) {
    struct desk desk;

    (void)state;
    desk_init(&desk, "stripe");
    desk_run(&desk, "--processes 1024 --rpc-time 35us --ldlm-time 2us --grant-time 5us "
                    "--write-time 10us --conflicts 1");
    desk_assert(&desk, "chain", 43.008e-3, 1e-12);
    desk_assert(&desk, "chain_slowdown", 4301.8, 1e-12);
    desk_assert(&desk, "conflict", 37.888e-3, 1e-12);
    desk_run(&desk, "--conflicts 1023");
    desk_assert(&desk, "conflict", 2.130944, 1e-12);
    desk_deinit(&desk);
}

/* 64 messages of 4 KiB for each of 16 aggregators: the exchange hardly counts. */
static void test_collective(void **state) {
    struct desk desk;

    (void)state;
    desk_init(&desk, "stripe");
    desk_run(&desk, "--link 100Gb/s --aggregators 16 --write-size 4KiB");
    desk_assert(&desk, "aggregated", 262144, 1e-12);
    desk_assert(&desk, "collective_lock", 0.672e-3, 1e-12);
    desk_assert(&desk, "exchange_rounds", 64 * 4096 / (12.5e9 * 16) * 4, 1e-12);
    desk_assert(&desk, "exchange_link", 20.97152e-6, 1e-12);
    desk_assert(&desk, "gain", 62.06, 1e-3);
    desk_assert(&desk, "gain_most", 63.5, 1e-3);
    desk_run(&desk, "--aggregators 1000000");
    desk_assert(&desk, "writers", 1024, 0);
    assert_true(desk_value(&desk, "gain") < 1);
    desk_deinit(&desk);
}

/* Each piece of each short write counted one by one. */
static void test_pieces_against_counting(void **state) {
    struct desk desk;

    (void)state;
    desk_init(&desk, "stripe");
    desk_set(&desk, "--stripe-size 7B --read-modify-write yes");
    for (int offset = 0; offset < 15; offset++) {
        for (int length = 1; length < 30; length++) {
            char options[64];
            int pieces = 0;
            int partial = 0;

            for (int start = 0; start < 60; start += 7) {
                int from = offset > start ? offset : start;
                int to = offset + length < start + 7 ? offset + length : start + 7;

                pieces += to > from;
                partial += to > from && to - from < 7;
            }
            snprintf(options, sizeof options, "--offset %dB --length %dB", offset, length);
            desk_run(&desk, options);
            desk_assert(&desk, "pieces", pieces, 0);
            desk_assert(&desk, "partial", partial, 0);
            desk_assert(&desk, "slowdown", 1 + (double)partial / pieces, 1e-12);
            assert_true(desk_value(&desk, "slowdown") <= 2);
            assert_true(desk_value(&desk, "loss") <= 0.5);
        }
    }
    desk_deinit(&desk);
}

static void test_alignment(void **state) {
    struct desk desk;

    (void)state;
    desk_init(&desk, "stripe");
    desk_run(&desk, "--offset 1MiB --length 16MiB --stripe-size 4MiB --read-modify-write yes");
    desk_assert(&desk, "pieces", 5, 0);
    desk_assert(&desk, "partial", 2, 0);
    desk_assert(&desk, "extra", 1, 0);
    desk_assert(&desk, "slowdown", 1.4, 1e-12);
    desk_run(&desk, "--read-modify-write no");
    desk_assert(&desk, "slowdown", 1, 0);
    desk_run(&desk, "--offset 4MiB");
    desk_assert(&desk, "partial", 0, 0);
    desk_assert(&desk, "extra", 0, 0);
    assert_string_equal(desk_words(&desk, "alignment"), "aligned: each piece is a whole stripe");
    desk_run(&desk, "--length 0B --read-modify-write yes");
    assert_string_equal(desk_cannot(&desk, "slowdown"), "nothing is written");
    assert_string_equal(desk_cannot(&desk, "loss"), "nothing is written");
    desk_deinit(&desk);
}

static struct why why;

static void test_best_layouts(void **state) {
    static const struct {
        double length;
        double targets;
        double size;
        double count;
    } rows[] = {
        {262144, 32, 65536, 4},         {1 << 20, 32, 262144, 4},
        {16 << 20, 32, 1 << 20, 16},    {16 << 20, 8, 2 << 20, 8},
        {64 << 20, 64, 1 << 20, 64},    {1 << 30, 32, 4 << 20, 32},
        {1 << 30, 1e6, 4 << 20, 64},    {67 * 65536, 64, 17 * 65536, 4},
        {17179869184.0, 4, 4 << 20, 4},
    };
    struct {
        double size_bytes;
        double count;
    } layout;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        layout.size_bytes = stripe_best_size(&why, 1, rows[i].length, rows[i].targets);
        layout.count = stripe_best_count(&why, 1, rows[i].length, rows[i].targets);
        assert_null(why.reason);
        if (layout.size_bytes != rows[i].size || layout.count != rows[i].count) {
            fail_msg("%.0f bytes over %.0f targets: %.0f of %.0f", rows[i].length, rows[i].targets,
                     layout.count, layout.size_bytes);
        }
    }
}

/* Whatever is written: allowed, and no partial stripe wherever any allowed layout has none. */
static void test_best_is_allowed_and_exact(void **state) {
    struct {
        double size_bytes;
        double count;
    } layout;

    (void)state;
    for (double units = 4; units < 700; units++) {
        double length = units * 65536;
        bool exact = false;

        layout.size_bytes = stripe_best_size(&why, 1, length, 24);
        layout.count = stripe_best_count(&why, 1, length, 24);
        assert_null(why.reason);
        assert_true(layout.count >= 4 && layout.count <= 24);
        assert_true(layout.size_bytes >= 65536 && layout.size_bytes <= 4 << 20);
        assert_true(fmod(layout.size_bytes, 65536) == 0);
        for (double count = 4; count <= 24; count++) {
            exact = exact || fmod(units, count) == 0;
        }
        assert_int_equal(exact, fmod(length, layout.size_bytes * layout.count) == 0);
    }
}

static void test_commands(void **state) {
    struct desk desk;

    (void)state;
    desk_init(&desk, "stripe");
    desk_run(&desk, "--length 16MiB --targets 32");
    assert_string_equal(desk_words(&desk, "shoal_command"),
                        "shoal stripe set PATH --count 16 --size 1M");
    assert_string_equal(desk_words(&desk, "lustre_command"), "lfs setstripe -c 16 -S 1M PATH");
    desk_assert(&desk, "best_excess", 0, 0);
    desk_run(&desk, "--length 256KiB");
    assert_string_equal(desk_words(&desk, "lustre_command"), "lfs setstripe -c 4 -S 64K PATH");
    desk_run(&desk, "--length 255KiB");
    assert_non_null(strstr(desk_words(&desk, "shoal_command"), "nothing fits"));
    assert_non_null(desk_cannot(&desk, "best_size"));
    desk_run(&desk, "--length 1GiB --targets 3");
    assert_string_equal(desk_cannot(&desk, "best_excess"), "there are fewer than 4 targets");
    desk_deinit(&desk);
}

static void test_limits(void **state) {
    struct desk desk;

    (void)state;
    desk_init(&desk, "stripe");
    desk_run(&desk, "--link 0B/s --write-time 0s --write-bandwidth 0B/s");
    assert_string_equal(desk_cannot(&desk, "gain"), "the network gives nothing");
    assert_string_equal(desk_cannot(&desk, "chain_slowdown"), "the write itself takes no time");
    assert_string_equal(desk_cannot(&desk, "single_throughput"), "the storage takes nothing");
    desk_run(&desk, "--link 100Gb/s --rpc-time 0s --ldlm-time 0s --grant-time 0s --write-size 0B "
                    "--write-bandwidth 1GB/s");
    assert_string_equal(desk_cannot(&desk, "gain"), "collective I/O takes no time");
    assert_string_equal(desk_cannot(&desk, "collective_throughput"),
                        "there is nothing to wait for");
    assert_false(desk_row(&desk, 1));
    desk_deinit(&desk);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_locks),
        cmocka_unit_test(test_collective),
        cmocka_unit_test(test_pieces_against_counting),
        cmocka_unit_test(test_alignment),
        cmocka_unit_test(test_best_layouts),
        cmocka_unit_test(test_best_is_allowed_and_exact),
        cmocka_unit_test(test_commands),
        cmocka_unit_test(test_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
