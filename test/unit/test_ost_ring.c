/* The ring's data area: what small writes and cuts take of it. */
#include "unit.h"
#include "kv/kv_internal.h"
#include "ost_world.h"
#include <string.h>

enum { CHUNK = 64 * 1024, CHUNKS = 40, SEEDS = 10, INO = 17, GENERATION = 1 };

static uint8_t data[BLOCK_BYTES];
static char problem[256];

static struct ost_place place_of(uint32_t chunk) {
    return (struct ost_place){.ino = {INO},
                              .generation = GENERATION,
                              .chunk = chunk,
                              .chunk_bytes = CHUNK,
                              .offset = BLOCK_BYTES,
                              .size = BLOCK_BYTES};
}

static size_t data_used(struct ost_world *world) {
    const struct ring *ring = &ost_kv(world->ost)->ring;

    return ring->data_bytes - ring_data_free_bytes(ring);
}

/* Chunks of two blocks, none of whose rows is in memory. Nothing is synced by itself. */
static struct ost_world *world_of_cold_rows(uint64_t seed) {
    struct ost_world *world = ost_world_new(seed);

    world->options.kv.sync_interval_ns = 3600 * NS_PER_S;
    assert_int_equal(ost_world_open(world, problem), 0);
    ost_world_attach(world);
    for (uint32_t i = 0; i < CHUNKS; i++) {
        struct ost_place place = place_of(i);

        assert_int_equal(ost_world_write(world, &place, data), 0);
    }
    ost_world_stop(world);
    assert_int_equal(ost_world_open(world, problem), 0);
    assert_int_equal(data_used(world), 0);
    return world;
}

/* A write that has to wait for rows runs again from its beginning, and takes no more than one that
 * has them. */
static void test_waiting_writes(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct ost_world *world = world_of_cold_rows(seed);
        struct kv_counters counters;

        for (uint32_t i = 0; i < CHUNKS; i++) {
            struct ost_place place = place_of(i);

            assert_int_equal(ost_world_write(world, &place, data), 0);
            assert_int_equal(data_used(world), (i + 1) * BLOCK_BYTES);
        }
        kv_counters_get(ost_kv(world->ost), &counters);
        assert_true(counters.pending_reads > 0);
        ost_world_free(world);
    }
}

/* Likewise a cut through a block. */
static void test_waiting_cuts(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct ost_world *world = world_of_cold_rows(seed);

        for (uint32_t i = 0; i < CHUNKS; i++) {
            uint32_t chunk = CHUNKS - 1 - i;
            struct ost_call *call = ost_call_get(world, OP_CHUNK_CUT);

            call->call.request.chunk_cut = (struct chunk_cut_request){
                .ino = {INO},
                .generation = GENERATION,
                .chunk_bytes = CHUNK,
                .truncate_seq = i + 1,
                .truncate_size = (uint64_t)chunk * CHUNK + BLOCK_BYTES + 100};
            assert_int_equal(ost_call_run(call), 0);
            assert_int_equal(data_used(world), (i + 1) * BLOCK_BYTES);
        }
        ost_world_free(world);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waiting_writes),
        cmocka_unit_test(test_waiting_cuts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
