/* The model of Shoal: its spread of load is that of the product's placement. */

#include "unit.h"
#include "layout/layout.h"
#include "near.h"
#include "planner/cluster.h"
#include <stdlib.h>

/* Counted chunk by chunk, as clients place them. */
static void check_spread(uint16_t stripe_count) {
    enum { FILES = 300, TARGETS = 17, CHUNKS = 2 * 3 * 16 * 17 };
    uint32_t width = MIN(stripe_count, TARGETS + 0U);
    uint32_t chains[TARGETS];
    const struct pool_version pool = {.chain_count = TARGETS, .chains = chains};
    uint32_t load[TARGETS] = {0};
    uint32_t most = 0;
    double spread;
    double on_fullest;

    for (uint32_t i = 0; i < TARGETS; i++) {
        chains[i] = i;
    }
    for (uint32_t seed = 0; seed < FILES; seed++) {
        struct layout layout = {
            .chunk_bytes = CHUNK_BYTES_DEFAULT, .stripe_count = stripe_count, .seed = seed};

        for (uint64_t chunk = 0; chunk < CHUNKS; chunk++) {
            load[layout_chain(&layout, &pool, chunk)]++;
        }
    }
    for (uint32_t i = 0; i < TARGETS; i++) {
        most = MAX(most, load[i]);
    }
    assert_true(cluster_spread(FILES, stripe_count, TARGETS, &spread, &on_fullest));
    assert_near(spread, most / ((double)FILES * (double)CHUNKS / (double)TARGETS), 1e-12);
    assert_near(on_fullest, most / (double)(FILES * CHUNKS / width), 1e-12);
}

static void test_spread_is_the_placement(void **state) {
    (void)state;
    static const uint16_t stripe_counts[] = {1, 2, 3, 16, 17, 40};

    for (size_t i = 0; i < ARRAY_SIZE(stripe_counts); i++) {
        check_spread(stripe_counts[i]);
    }
}

static void test_a_wide_stripe_is_even(void **state) {
    (void)state;
    double spread;
    double on_fullest;

    assert_true(cluster_spread(1, 4096, 4096, &spread, &on_fullest));
    assert_near(spread, 1, 0);
    assert_near(on_fullest, 1, 0);
    assert_true(cluster_spread(1, 1, 4096, &spread, &on_fullest));
    assert_near(spread, 4096, 0);
}

static struct cluster_inputs usual(void) {
    return (struct cluster_inputs){.metadata_targets = 16,
                                   .cores_per_metadata_target = 8,
                                   .utilisation = 0.5,
                                   .lookup_cost = 1e-6,
                                   .create_cost = 3e-6,
                                   .rpc_cost = 1e-6,
                                   .targets = 32,
                                   .targets_per_node = 1,
                                   .cores_per_node = 8,
                                   .drive_write = 3e9,
                                   .drive_read = 6e9,
                                   .link = 25e9,
                                   .write_cost = 0.5e-9,
                                   .read_cost = 0.5e-9,
                                   .copies = 1,
                                   .files = 256,
                                   .stripe_count = 32,
                                   .clients = 1,
                                   .cores_per_client = 2,
                                   .file_size = 50e3,
                                   .read_file = 30e-6,
                                   .read_byte = 0.2e-9,
                                   .write_file = 50e-6,
                                   .client_read = 1e-9};
}

static void test_known_values(void **state) {
    (void)state;
    struct cluster_inputs in = usual();
    struct cluster_outputs out = {0};

    cluster_plan(NULL, &in, &out);
    assert_near(out.target_rate.value, 8 * 0.5 / 2e-6, 1e-3);
    assert_near(out.operation_rate.value, 16 * 2e6, 1e-3);
    assert_near(out.targets_for_20m.value, 10, 0);
    assert_near(out.targets_for_150m.value, 75, 0);
    assert_near(out.write_bandwidth.value, 96e9, 1);
    assert_string_equal(out.write_limit.text, "the drive");
    assert_near(out.files_lost.value, 1, 0);
    assert_near(out.small_reads.value, 2 / 40e-6, 1e-6);
    in.copies = 2;
    in.link = 1e9;
    cluster_plan(NULL, &in, &out);
    assert_near(out.write_bandwidth.value, 16e9, 1);
    assert_string_equal(out.write_limit.text, "the network");
    assert_near(out.files_lost.value, 0, 0);
    in.write_cost = 100e-9;
    cluster_plan(NULL, &in, &out);
    assert_string_equal(out.write_limit.text, "the processor");
}

static void test_ends(void **state) {
    (void)state;
    struct cluster_inputs in = usual();
    struct cluster_outputs out = {0};

    in.utilisation = 0;
    cluster_plan(NULL, &in, &out);
    assert_non_null(out.targets_for_20m.cannot);
    in = usual();
    in.lookup_cost = in.rpc_cost = in.create_cost = 0;
    cluster_plan(NULL, &in, &out);
    assert_non_null(out.operation_rate.cannot);
    in = usual();
    in.read_file = 0;
    in.read_byte = 0;
    cluster_plan(NULL, &in, &out);
    assert_non_null(out.small_reads.cannot);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spread_is_the_placement),
        cmocka_unit_test(test_a_wide_stripe_is_even),
        cmocka_unit_test(test_known_values),
        cmocka_unit_test(test_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
