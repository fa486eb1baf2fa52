/* Targets, waiting and storms come out as closed values say; what has no meaning says so. */

#include "unit.h"
#include "plan_defaults.h"
#include "planner/metadata.h"
#include "planner/formula.h"
#include "planner/words.h"

static struct metadata_inputs in;
static struct metadata_outputs out;

static int reset(void **state) {
    (void)state;
    plan_defaults(&plan_metadata, &(struct data){0}, &in);
    return 0;
}

static struct why why;

static void test_erlang_closed_values(void **state) {
    (void)state;
    /* One server: the utilisation. Two: 2 r^2 / (1 + r). */
    for (double load = 0; load < 1; load += 0.125) {
        assert_true(fabs(erlang_c(&why, 1, 1, load) - load) < 1e-15);
        assert_true(fabs(erlang_c(&why, 1, 2, 2 * load) - 2 * load * load / (1 + load)) < 1e-15);
    }
    /* By the definition, in exact fractions. */
    assert_true(fabs(erlang_c(&why, 1, 5, 3) - 81.0 / 343) < 1e-15);
    assert_true(fabs(erlang_c(&why, 1, 10, 8) - 0.40918015079644354) < 1e-15);
}

/* Halfin and Whitt 1981: with load = c - b sqrt(c), the share tends to 1 / (1 + b P(b) / p(b)) of
 * the normal distribution; 0.2233 for b = 1. */
static void test_erlang_of_many_servers(void **state) {
    double limit = 1 / (1 + 0.84134474606854293 / 0.24197072451914337);
    double before = 1;

    (void)state;
    for (double servers = 100; servers <= 1e5; servers *= 10) {
        double off = fabs(erlang_c(&why, 1, servers, servers - sqrt(servers)) - limit);

        assert_true(off < before);
        before = off;
    }
    assert_true(before < 1e-3);
    assert_true(erlang_c(&why, 1, 1e5, 1) == 0);
    assert_true(erlang_c(&why, 1, 1e5, 99999.9) > 0.99 && erlang_c(&why, 1, 1e5, 99999.9) < 1);
}

static void test_targets(void **state) {
    (void)state;
    in.file_rate = 20e6;
    in.operations_per_file = 1;
    in.target_rate = 200e3;
    in.utilisation = 1;
    in.metadata_targets = 0;
    metadata_plan(NULL, &in, &out);
    assert_figure(out.targets_needed, 100, 0);
    /* 0.29 * 100,000 is a little less than 29,000 as a number. */
    in.target_rate = 100e3;
    in.utilisation = 29 * 0.01;
    for (int count = 1; count <= 40; count++) {
        in.file_rate = 29e3 * count;
        metadata_plan(NULL, &in, &out);
        assert_figure(out.targets_needed, count, 0);
    }
    in.file_rate = 29e3 + 1;
    metadata_plan(NULL, &in, &out);
    assert_figure(out.targets_needed, 2, 0);

    in.file_rate = 20e6;
    in.target_rate = 200e3;
    in.utilisation = 1;
    metadata_plan(NULL, &in, &out);
    assert_figure(out.load, 1, 0);
    assert_cannot(out.wait, "more arrives than the targets sustain");
    assert_cannot(out.response, "more arrives than the targets sustain");

    in.metadata_targets = 16;
    metadata_plan(NULL, &in, &out);
    assert_figure(out.sustained, 3.2e6, 0);

    in.utilisation = 0;
    in.metadata_targets = 0;
    metadata_plan(NULL, &in, &out);
    assert_cannot(out.targets_needed, "the utilisation is zero");
    assert_cannot(out.stat_time, "the utilisation is zero");
    assert_cannot(out.dedicated_wait, "the utilisation is zero");
    in.file_rate = 0;
    metadata_plan(NULL, &in, &out);
    assert_figure(out.targets_needed, 1, 0);
    assert_figure(out.wait, 0, 0);
    assert_cannot(out.data_per_operation, "there are no metadata operations");
}

static void test_more_targets_never_wait_longer(void **state) {
    double before = INFINITY;

    (void)state;
    in.file_rate = 100e3;
    for (in.metadata_targets = 4; in.metadata_targets < 200; in.metadata_targets *= 1.5) {
        metadata_plan(NULL, &in, &out);
        assert_true(out.wait.value <= before);
        assert_true(out.wait_99.value >= 0);
        before = out.wait.value;
    }
    /* The busiest target gets no more than everything. */
    in.skew = 1e6;
    metadata_plan(NULL, &in, &out);
    assert_figure(out.load, 3, 1e-12);
    assert_figure(out.sustained, in.target_rate, 1e-12);
}

/* M/M/1: the wait is r s / (1 - r), exponential in its tail. */
static void test_one_thread(void **state) {
    (void)state;
    in.threads = 1;
    in.metadata_targets = 1;
    in.file_rate = 50e3;
    in.operations_per_file = 1;
    metadata_plan(NULL, &in, &out);
    assert_figure(out.wait, 1e-5, 1e-12);
    assert_figure(out.wait_99, log(50) * 2e-5, 1e-12);
    assert_figure(out.dedicated_wait, 1e-5, 1e-12);
    assert_figure(out.response, 100e-6 + 1e-5 + 1e-5, 1e-12);
}

static void test_serial_stat(void **state) {
    (void)state;
    in.file_rate = 0;
    in.threads = 1;
    in.round_trip = 990e-6;
    in.entries = 100e3;
    in.outstanding = 10;
    metadata_plan(NULL, &in, &out);
    assert_figure(out.serial_stat, 100, 1e-12);
    assert_figure(out.parallel_stat, 10, 1e-12);
    in.outstanding = 1e6;
    metadata_plan(NULL, &in, &out);
    assert_figure(out.parallel_stat, 1, 1e-12); /* what the target takes */
}

static void test_storm(void **state) {
    (void)state;
    in.listing_nodes = 10e3;
    in.entries = 1e6;
    in.listings = 1;
    in.directory_changes = 5;
    metadata_plan(NULL, &in, &out);
    assert_figure(out.stat_requests, 10e3 * 1001e3, 0);
    assert_figure(out.plus_requests, 10e3 * 1000, 0);
    /* Who lists once gains nothing from a cache. */
    assert_figure(out.lease_requests, 10e3 * 1000, 0);
    assert_figure(out.sealed_requests, 10e3 * 1000, 0);

    in.listings = 8;
    in.directory_changes = 2;
    metadata_plan(NULL, &in, &out);
    assert_figure(out.lease_requests, 10e3 * 3002, 0);
    assert_true(out.stat_time.value > out.plus_time.value);
    assert_true(out.plus_time.value > out.lease_time.value);
    assert_true(out.lease_time.value > out.sealed_time.value);

    /* A slow NIC binds: its bytes, whichever way they are asked for. */
    in.link = 1e6;
    metadata_plan(NULL, &in, &out);
    assert_figure(out.stat_time, 10e3 * 8 * 1e6 * 160 / 1e6, 1e-12);
    assert_figure(out.plus_time, out.stat_time.value, 0);
    in.directory_targets = 100; /* there are two */
    metadata_plan(NULL, &in, &out);
    assert_figure(out.plus_time, 10e3 * 8 * 1e6 * 160 / 2e6, 1e-12);
}

static void test_placement(void **state) {
    (void)state;
    metadata_plan(NULL, &in, &out);
    /* 0.6 nodes of metadata, 2 of data on 10. */
    assert_figure(out.metadata_work, 0.6, 1e-12);
    assert_figure(out.data_work, 2, 1e-12);
    assert_figure(out.colocated_headroom, 10 / 2.6, 1e-12);
    assert_figure(out.dedicated_headroom, 2 / 0.6, 1e-12);
    assert_figure(out.dedicated_best, 3, 0);
    assert_figure(out.dedicated_best_headroom, 7.0 / 2, 1e-12);
    assert_true(out.colocated_wait.value > out.colocated_first_wait.value);
    assert_true(out.colocated_first_wait.value > out.dedicated_wait.value);

    /* Pooling serves at least as much as any split, and data never delays dedicated metadata. */
    double wait = out.dedicated_wait.value;
    for (in.data_rate = 0; in.data_rate < 90e9; in.data_rate += 7e9) {
        for (in.metadata_targets = 1; in.metadata_targets < 10; in.metadata_targets++) {
            metadata_plan(NULL, &in, &out);
            assert_true(out.dedicated_headroom.value <= out.colocated_headroom.value * 1.000001);
            assert_true(out.dedicated_headroom.value <= out.dedicated_best_headroom.value);
        }
        in.metadata_targets = 2;
        metadata_plan(NULL, &in, &out);
        assert_figure(out.dedicated_wait, wait, 1e-12);
    }

    in.metadata_targets = 10;
    metadata_plan(NULL, &in, &out);
    assert_cannot(out.dedicated_headroom, "no storage node is left for data");
    assert_cannot(out.dedicated_wait, "no storage node is left for data");
    in.data_rate = 100e9;
    metadata_plan(NULL, &in, &out);
    assert_cannot(out.colocated_wait, "more is to be done than the storage nodes can");
    in.data_rate = 0;
    in.file_rate = 0;
    in.metadata_targets = 2;
    metadata_plan(NULL, &in, &out);
    assert_cannot(out.colocated_headroom, "there is no load");
    assert_cannot(out.dedicated_headroom, "there is no load");
    in.storage_nodes = 1;
    metadata_plan(NULL, &in, &out);
    assert_cannot(out.dedicated_best, "one storage node has to do both");
}

static void test_words(void **state) {
    (void)state;
    metadata_plan(NULL, &in, &out);
    assert_int_equal(level_of(out.verdict.text), LEVEL_OK);
    in.file_rate = 50e3;
    metadata_plan(NULL, &in, &out);
    assert_int_equal(level_of(out.verdict.text), LEVEL_SHORT);
    assert_non_null(strstr(out.verdict.text, "75 % busy, 60 % are allowed: --metadata-targets 3"));
    in.file_rate = 100e3;
    metadata_plan(NULL, &in, &out);
    assert_non_null(strstr(out.verdict.text, "wait without end: --metadata-targets 5"));
}

/* Where more targets are needed than there are nodes, the words are of the figures beside them. */
static void test_words_about_the_placement(void **state) {
    (void)state;
    in.metadata_targets = 0;
    in.file_rate = 1.024e6;
    in.storage_nodes = 40;
    in.metadata_targets_per_node = 1;
    metadata_plan(NULL, &in, &out);
    assert_figure(out.targets_used, 52, 0);
    assert_figure(out.dedicated_best, 37, 0);
    assert_non_null(strstr(
        out.verdict.text, "tight: 52 metadata targets on 40 storage nodes, which have room for 40: "
                          "--storage-nodes 52"));
    assert_string_equal(out.placement.text,
                        "co-located on all nodes: metadata waits 99.81 us, at most 1.22 times this "
                        "load; with 52 dedicated ones no storage node is left for data; 37 carry "
                        "at most 1.2 times it");
    in.metadata_targets = 20;
    metadata_plan(NULL, &in, &out);
    assert_non_null(strstr(out.placement.text, "20 dedicated ones do not carry this load; 37 "));
    in.metadata_targets = 37;
    metadata_plan(NULL, &in, &out);
    assert_non_null(strstr(out.placement.text, "dedicated: metadata waits "));
    in.metadata_targets = 0;
    in.utilisation = 0;
    metadata_plan(NULL, &in, &out);
    assert_non_null(strstr(out.placement.text, "no number of dedicated ones follows: the util"));
}

static void test_whole_threads_count(void **state) {
    (void)state;
    in.threads = 1.5;
    metadata_plan(NULL, &in, &out);
    assert_figure(out.threads_used, 1, 0);
    double wait = out.wait.value;
    assert_figure(out.service, 1 / in.target_rate, 1e-12);
    in.threads = 1;
    metadata_plan(NULL, &in, &out);
    assert_figure(out.wait, wait, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_erlang_closed_values, reset),
        cmocka_unit_test_setup(test_erlang_of_many_servers, reset),
        cmocka_unit_test_setup(test_targets, reset),
        cmocka_unit_test_setup(test_more_targets_never_wait_longer, reset),
        cmocka_unit_test_setup(test_one_thread, reset),
        cmocka_unit_test_setup(test_serial_stat, reset),
        cmocka_unit_test_setup(test_storm, reset),
        cmocka_unit_test_setup(test_placement, reset),
        cmocka_unit_test_setup(test_words, reset),
        cmocka_unit_test_setup(test_words_about_the_placement, reset),
        cmocka_unit_test_setup(test_whole_threads_count, reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
