/* The ring's data area: what small writes and cuts take of it. */
#include "unit.h"
#include "kv/kv_internal.h"
#include "ost_world.h"
#include "store/store_format.h"
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

static struct store_note *note_of(struct log_record *record) {
    struct bytes body = record_body(record);
    struct record_operation operation;

    while (record_next(&body, &operation) == 0) {
        if (operation.kind == LOG_NOTE) {
            return (void *)(uintptr_t)operation.value.data;
        }
    }
    return NULL;
}

/* The newest record of the ring, which a killed process left, has a note: it becomes this one. */
static void note_forge(uint8_t *region, const struct store_note *forged) {
    const struct ring_header *header = (const void *)region;
    const struct ring_start *starts = header->starts;
    const struct ring_start *start = &starts[starts[1].sequence > starts[0].sequence];
    uint64_t at = BLOCK_BYTES + start->offset % header->record_bytes;
    uint32_t crc = start->previous_crc, previous_crc = crc;
    struct log_record *newest = NULL;

    for (struct log_record *record = (void *)(region + at);
         record_check(record, header->record_bytes, crc) == 0; record = (void *)(region + at)) {
        newest = record;
        previous_crc = crc;
        crc = record->crc;
        at += record_padded(record->length);
    }
    assert_non_null(newest);
    struct store_note *note = note_of(newest);
    assert_non_null(note);
    if (forged) {
        note->block_count = forged->block_count;
        note->block = forged->block;
        note->ring_offset = forged->ring_offset;
    }
    newest->crc = record_crc(newest, newest + 1, previous_crc);
}

/* A note in a record that is whole names blocks that are not, or bytes beside the data area. */
static void test_forged_note(void **state) {
    static const struct store_note notes[] = {
        {.block_count = 1, .block = 0},
        {.block_count = 1, .block = UINT64_MAX},
        {.block_count = 2, .block = UINT64_MAX},
        {.block_count = UINT32_MAX, .block = 1},
        {.block_count = 1, .block = 1, .ring_offset = 100},
        {.block_count = 2, .block = 1, .ring_offset = (uint64_t)0 - BLOCK_BYTES},
    };

    (void)state;
    for (size_t i = 0; i <= ARRAY_SIZE(notes); i++) {
        struct ost_world *world = world_of_cold_rows(i + 1);
        struct env *env = world->options.env;
        struct ost_place place = place_of(0);
        struct env_shared *shared;
        uint64_t size;
        bool created;

        assert_int_equal(ost_world_write(world, &place, data), 0);
        ost_world_crash(world, false);
        assert_int_equal(env->ops->shared_size(env, "ring", &size), 0);
        assert_int_equal(env->ops->shared_open(env, "ring", size, &shared, &created), 0);
        note_forge(env->ops->shared_data(shared), i < ARRAY_SIZE(notes) ? &notes[i] : NULL);
        env->ops->shared_close(shared);
        int r = ost_world_open(world, problem);
        assert_int_equal(r, i < ARRAY_SIZE(notes) ? -ERR_CORRUPT : 0);
        ost_world_free(world);
    }
}

/* Of the smallest area requests may have three quarters. */
enum {
    AREA_BYTES = 256 * KIB,
    WRITE_BYTES = 32 * KIB,
    HELD = AREA_BYTES / 4 * 3 / WRITE_BYTES,
    WRITES = 12
};

static uint8_t content[WRITE_BYTES];

static struct ost_place place_and_content(uint32_t chunk, uint32_t number) {
    struct ost_place place = place_of(chunk);

    place.size = WRITE_BYTES;
    memset(content, (int)(1 + number + chunk), sizeof content);
    return place;
}

/* One into each of so many chunks, all at once, while no disk does anything: how many are
 * answered. */
static uint32_t writes_start(struct ost_world *world, uint32_t number) {
    uint32_t answered = 0;

    for (uint32_t i = 0; i < WRITES; i++) {
        struct ost_call *call = ost_call_get(world, OP_CHUNK_WRITE);
        struct ost_place place = place_and_content(i, number);

        ost_call_write(call, &place, content);
        ost_call_start(call);
        while (worker_run_one(&world->worker)) {
        }
        assert_true(!call->answered || (call->call.result == 0 && answered == i));
        answered += call->answered;
    }
    return answered;
}

static void writes_end(struct ost_world *world) {
    assert_int_equal(ost_world_sync(world), 0);
    for (uint32_t i = 0; i < OST_CALLS_MAX; i++) {
        struct ost_call *call = &world->calls[i];

        assert_true(!call->busy || (call->answered && call->call.result == 0));
        call->busy = false;
    }
}

static void check_contents(struct ost_world *world, uint32_t number, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        struct ost_place place = place_and_content(i, number);

        assert_int_equal(ost_world_read(world, &place, content), 0);
    }
}

/* The area is full: small writes wait, and none is refused. What was answered is there behind a
 * kill, and so many fit again; power takes what was not synced, and nothing else. Once a disk does
 * what it is asked for, all go on. */
static void test_full_area(void **state) {
    (void)state;
    for (int power = 0; power < 2; power++) {
        struct ost_world *world = ost_world_new(31);

        world->options.kv.sync_interval_ns = 3600 * NS_PER_S;
        world->options.kv.ring_data_bytes = AREA_BYTES;
        assert_int_equal(ost_world_open(world, problem), 0);
        ost_world_attach(world);
        for (uint32_t i = 0; i < WRITES; i++) {
            struct ost_place place = place_and_content(i, 0);

            assert_int_equal(ost_world_write(world, &place, content), 0);
        }
        writes_end(world);
        check_contents(world, 0, WRITES);
        assert_int_equal(writes_start(world, 100), HELD);
        assert_int_equal(data_used(world), HELD * WRITE_BYTES);
        ost_world_crash(world, power);
        assert_int_equal(ost_world_open(world, problem), 0);
        ost_world_attach(world);
        check_contents(world, power ? 0 : 100, HELD);
        assert_int_equal(ost_world_sync(world), 0);
        assert_int_equal(writes_start(world, 200), HELD);
        writes_end(world);
        check_contents(world, 200, WRITES);
        ost_world_free(world);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waiting_writes),
        cmocka_unit_test(test_waiting_cuts),
        cmocka_unit_test(test_forged_note),
        cmocka_unit_test(test_full_area),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
