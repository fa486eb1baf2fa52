/* The size model: closed values, the bound that binds, and that more hardware is never less. */
#include "unit.h"
#include "planner/size.h"
#include "base/prng.h"
#include "plan_defaults.h"
#include <string.h>

/* 32 nodes of one 4 TB drive each and a 200 Gb/s NIC. */
static struct size_inputs plain_inputs(void) {
    return (struct size_inputs){
        .nodes = 32,
        .link = 25e9,
        .storage_nodes = 32,
        .storage_link = 25e9,
        .drives_per_node = 1,
        .drive_size = 4e12,
        .drive_write = 3.5e9,
        .drive_read = 6.5e9,
        .node_limit = 40e9,
        .efficiency = 1,
        .protection = choice_of(&plan_size, "protection", "none"),
        .copies = 2,
        .data_shards = 3,
        .parity_shards = 1,
        .dataset = 10e12,
        .params = 70e9,
        .bytes_per_parameter = 14,
        .checkpoints_kept = 3,
        .target = 60,
        .interval = 1800,
        .work = 30 * 86400.0,
        .archive_every = 48,
        .file_count = 1e6,
        .inode_bytes = 2560,
        .node_operations = 1250,
        .target_rate = 25000,
        .utilisation = 0.7,
    };
}

static void close_to(const struct figure *figure, double value) {
    assert_null(figure->cannot);
    assert_true(fabs(figure->value / value - 1) < 1e-12);
}

static void raw_becomes_usable(void **state) {
    (void)state;
    struct size_inputs in = plain_inputs();
    struct size_outputs out = {0};

    size_plan(NULL, &in, &out);
    close_to(&out.usable, 128e12);
    in.protection = choice_of(&plan_size, "protection", "copies");
    size_plan(NULL, &in, &out);
    close_to(&out.usable, 64e12);
    close_to(&out.losses, 1);
    /* Both copies on one node protect from nothing. */
    in.storage_nodes = 1;
    size_plan(NULL, &in, &out);
    assert_non_null(out.losses.cannot);
    in.storage_nodes = 32;
    in.protection = choice_of(&plan_size, "protection", "erasure");
    size_plan(NULL, &in, &out);
    close_to(&out.usable, 96e12);
    in.reserve = 0.25;
    size_plan(NULL, &in, &out);
    close_to(&out.usable, 72e12);
    close_to(&out.needed, 10e12 + 4 * 980e9);
}

static void the_least_binds(void **state) {
    (void)state;
    struct size_inputs in = plain_inputs();
    struct size_outputs out = {0};

    size_plan(NULL, &in, &out);
    close_to(&out.write_bandwidth, 112e9);
    close_to(&out.read_bandwidth, 208e9);
    assert_string_equal(out.write_limit.text, "the drives");
    in.drives_per_node = 8;
    size_plan(NULL, &in, &out);
    close_to(&out.write_bandwidth, 800e9);
    assert_string_equal(out.write_limit.text, "the storage nodes' NICs");
    in.node_limit = 10e9;
    size_plan(NULL, &in, &out);
    close_to(&out.write_bandwidth, 320e9);
    assert_string_equal(out.write_limit.text, "the storage nodes");
    in.nodes = 4;
    size_plan(NULL, &in, &out);
    close_to(&out.write_bandwidth, 100e9);
    close_to(&out.write_each, 25e9);
    assert_string_equal(out.write_limit.text, "the training nodes' NICs");
    assert_string_equal(out.read_limit.text, "the training nodes' NICs");
    /* Both copies pass the storage nodes, one passes the client. */
    in.protection = choice_of(&plan_size, "protection", "copies");
    in.nodes = 32;
    size_plan(NULL, &in, &out);
    close_to(&out.write_bandwidth, 160e9);
    close_to(&out.read_bandwidth, 320e9);
}

static void nodes_follow_the_need(void **state) {
    (void)state;
    struct size_inputs in = plain_inputs();
    struct size_outputs out = {0};

    size_plan(NULL, &in, &out);
    close_to(&out.nodes_for_capacity, 4);  /* 13.92 TB in drives of 4 TB */
    close_to(&out.nodes_for_bandwidth, 5); /* 16.33 GB/s in 3.5 GB/s */
    close_to(&out.nodes_needed, 5);
    assert_non_null(strstr(out.verdict.text, "ok: the write bandwidth takes 5 of the 32 storage"));
    assert_non_null(strstr(out.verdict.text, "nothing protects the data"));
    in.protection = choice_of(&plan_size, "protection", "erasure");
    in.data_shards = 16;
    in.parity_shards = 2;
    in.storage_nodes = 8;
    size_plan(NULL, &in, &out);
    close_to(&out.nodes_needed, 18);
    assert_string_equal(out.verdict.text,
                        "short: the protection takes 18 storage nodes, there are 8: "
                        "--storage-nodes 18");
    in.target = 1;
    size_plan(NULL, &in, &out);
    assert_non_null(strstr(out.verdict.text, "target missed: the training nodes' NICs carry"));
}

static void the_model_makes_the_checkpoint(void **state) {
    (void)state;
    struct size_inputs in = plain_inputs();
    struct size_outputs out = {0};

    size_plan(NULL, &in, &out);
    close_to(&out.checkpoint, 980e9);
    in.params = 140e9;
    in.bytes_per_parameter = 2;
    size_plan(NULL, &in, &out);
    close_to(&out.checkpoint, 280e9);
    close_to(&out.checkpoint_time, 2.5);
    /* A size that is given counts, whatever the model. */
    in.checkpoint_size = 112e9;
    size_plan(NULL, &in, &out);
    close_to(&out.checkpoint, 112e9);
    close_to(&out.needed, 10e12 + 4 * 112e9);
}

static void reading_asks_for_nodes(void **state) {
    (void)state;
    struct size_inputs in = plain_inputs();
    struct size_outputs out = {0};

    size_plan(NULL, &in, &out);
    assert_true(out.nodes_for_reading.value == 0 && !out.nodes_for_reading.cannot);
    in.read_needed = 130e9;
    size_plan(NULL, &in, &out);
    close_to(&out.nodes_for_reading, 20); /* in 6.5 GB/s */
    close_to(&out.nodes_needed, 20);
    assert_non_null(strstr(out.verdict.text, "ok: the read bandwidth takes 20 of the 32 storage"));
    /* Any one copy is read. */
    in.protection = choice_of(&plan_size, "protection", "copies");
    size_plan(NULL, &in, &out);
    close_to(&out.nodes_for_reading, 20);
    in.efficiency = 0.5;
    size_plan(NULL, &in, &out);
    assert_string_equal(out.verdict.text,
                        "short: the read bandwidth takes 40 storage nodes, there are "
                        "32: --storage-nodes 40");
    in.read_needed = 401e9;
    size_plan(NULL, &in, &out);
    assert_non_null(strstr(out.verdict.text, "NICs carry 800 GB/s, training reads 401 GB/s"));
    in.drive_read = 0;
    size_plan(NULL, &in, &out);
    assert_string_equal(out.nodes_needed.cannot, "a storage node has no bandwidth");
}

/* With as many nodes as it asks for, the capacity suffices and the target is met. */
static void what_is_asked_for_suffices(void **state) {
    (void)state;
    const uint64_t seed = 20261121;
    struct prng prng;

    prng_init(&prng, seed);
    for (int i = 0; i < 2000; i++) {
        struct size_inputs in = plain_inputs();
        struct size_outputs out = {0};

        in.nodes = 1e5;
        in.protection = (int)prng_below(&prng, 3);
        in.copies = 1 + (double)prng_below(&prng, 4);
        in.data_shards = 1 + (double)prng_below(&prng, 16);
        in.parity_shards = 1 + (double)prng_below(&prng, 4);
        in.reserve = (double)prng_below(&prng, 90) / 100;
        in.drives_per_node = 1 + (double)prng_below(&prng, 24);
        in.dataset = (double)prng_below(&prng, 1000) * 1e12;
        in.target = 1 + (double)prng_below(&prng, 600);
        in.efficiency = (double)(1 + prng_below(&prng, 100)) / 100;
        in.read_needed = (double)prng_below(&prng, 1000) * 1e9;
        size_plan(NULL, &in, &out);
        in.storage_nodes = out.nodes_needed.value;
        size_plan(NULL, &in, &out);
        if (out.filled.value > 1 + 1e-12 || out.checkpoint_time.value > in.target * (1 + 1e-12) ||
            out.read_bandwidth.value < in.read_needed * (1 - 1e-12)) {
            fail_msg("seed %llu, round %d: %g full, %g s, %g B/s read", (unsigned long long)seed, i,
                     out.filled.value, out.checkpoint_time.value, out.read_bandwidth.value);
        }
        double bandwidth = out.write_bandwidth.value;
        in.storage_nodes++;
        size_plan(NULL, &in, &out);
        assert_true(out.write_bandwidth.value >= bandwidth);
    }
}

static void archive_and_metadata(void **state) {
    (void)state;
    struct size_inputs in = plain_inputs();
    struct size_outputs out = {0};

    size_plan(NULL, &in, &out);
    close_to(&out.archived, 30 * 980e9);
    close_to(&out.archive_rate, 980e9 / 86400);
    close_to(&out.metadata_targets, 3); /* 40,000/s of 17,500/s */
    close_to(&out.metadata_size, 2.56e9);
    in.archive_every = 0;
    in.node_operations = 0;
    in.interval = 0;
    size_plan(NULL, &in, &out);
    assert_true(out.archived.value == 0 && !out.archived.cannot);
    close_to(&out.metadata_targets, 1);
}

static void what_cannot_be(void **state) {
    (void)state;
    struct size_inputs in = plain_inputs();
    struct size_outputs out = {0};

    in.target = 0;
    in.interval = 0;
    in.utilisation = 0;
    size_plan(NULL, &in, &out);
    assert_string_equal(out.nodes_needed.cannot, "the target time is zero");
    assert_string_equal(out.archived.cannot,
                        "without training between checkpoints their number has no end");
    assert_ptr_equal(out.archive_rate.cannot, out.archived.cannot);
    assert_string_equal(out.metadata_targets.cannot,
                        "a metadata target that does nothing is never enough");
    in.target = 60;
    in.drive_write = 0;
    size_plan(NULL, &in, &out);
    assert_string_equal(out.checkpoint_time.cannot, "the bandwidth is zero");
    assert_string_equal(out.nodes_needed.cannot, "a storage node has no bandwidth");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(raw_becomes_usable),
        cmocka_unit_test(the_least_binds),
        cmocka_unit_test(nodes_follow_the_need),
        cmocka_unit_test(what_is_asked_for_suffices),
        cmocka_unit_test(the_model_makes_the_checkpoint),
        cmocka_unit_test(reading_asks_for_nodes),
        cmocka_unit_test(archive_and_metadata),
        cmocka_unit_test(what_cannot_be),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
