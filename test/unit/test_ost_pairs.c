/* Limits of one storage target that hold at the same time, through a stop, a kill and a power cut:
 * each keeps its own answer, and all goes on when they have ended. */
#include "unit.h"
#include "ost_world.h"

enum { CHUNK = 128 * 1024, TURNS_MAX = 4000, CHUNKS_MAX = 200, AGAIN_TURNS_MAX = 20 };
enum end { BY_NOTHING, BY_STOP, BY_KILL, BY_POWER, END_COUNT };

static uint8_t data[OST_CALL_BYTES_MAX];
static char problem[256];

static struct ost_place place_of(uint64_t chunk, uint32_t offset, uint32_t size) {
    return (struct ost_place){.ino = {17},
                              .generation = 1,
                              .chunk = chunk,
                              .chunk_bytes = CHUNK,
                              .offset = offset,
                              .size = size};
}

static struct kv_levels levels_of(struct ost_world *world) {
    struct kv_counters counters;

    kv_counters_get(ost_kv(world->ost), &counters);
    return counters.levels;
}

/* By a session that needs no older answer. */
static int write_and_forget(struct ost_world *world, const struct ost_place *place) {
    struct ost_call *call = ost_call_get(world, OP_CHUNK_WRITE);

    ost_call_write(call, place, data);
    call->call.header.floor = world->next_sequence;
    return ost_call_run(call);
}

/* Whole chunks, until there are no blocks for one more; answers how many there are. */
static uint64_t fill_blocks(struct ost_world *world) {
    struct ost_place place = place_of(0, 0, CHUNK);
    int r = 0;

    for (; r == 0; place.chunk++) {
        assert_true(place.chunk < CHUNKS_MAX);
        r = ost_world_write(world, &place, data);
    }
    assert_int_equal(r, -ERR_NO_SPACE);
    assert_int_equal(ost_world_sync(world), 0);
    return place.chunk - 1;
}

/* Overwrites, each a record and a sync point, of a base that takes none, until they are refused. */
static void fill_log(struct ost_world *world) {
    const struct ost_place place = place_of(0, 0, BLOCK_BYTES);
    int r = 0;

    kv_mem_store_full(world->store, true);
    for (int i = 0; r == 0; i++) {
        assert_true(i < TURNS_MAX);
        r = ost_world_write(world, &place, data);
        (void)ost_world_sync(world);
    }
    assert_int_equal(r, -ERR_NO_SPACE);
    assert_true(levels_of(world).full_ns > 0);
}

static void start_anew(struct ost_world *world, enum end end) {
    if (end == BY_NOTHING) {
        return;
    }
    if (end == BY_STOP) {
        ost_world_stop(world);
    } else {
        ost_world_crash(world, end == BY_POWER);
    }
    if (ost_world_open(world, problem) < 0) {
        fail_msg("end %d: %s", end, problem);
    }
}

/* The base has room again: within some seconds it is known, and overwrites go on. */
static void goes_on(struct ost_world *world) {
    const struct ost_place place = place_of(0, 0, CHUNK);
    int r = -ERR_NO_SPACE;

    kv_mem_store_full(world->store, false);
    for (int i = 0; i < AGAIN_TURNS_MAX && r == -ERR_NO_SPACE; i++) {
        memory_env_advance(world->env, NS_PER_S);
        r = ost_world_write(world, &place, data);
    }
    assert_int_equal(r, 0);
}

/* A delete is done in pieces; the first error, or 0. */
static int delete_all(struct ost_world *world) {
    uint64_t resume = 0;
    bool is_done = false;
    int r = 0;

    while (r == 0 && !is_done) {
        struct ost_call *call = ost_call_get(world, OP_CHUNK_DELETE);

        call->call.request.chunk_delete = (struct chunk_delete_request){{17}, 1, resume};
        r = ost_call_run(call);
        resume = call->call.reply.chunk_delete.resume_chunk;
        is_done = call->call.reply.chunk_delete.end;
    }
    return r;
}

static void check_data(struct ost_world *world, uint64_t from, uint64_t count) {
    struct ost_place place = place_of(from, 0, CHUNK);

    for (; place.chunk < count; place.chunk++) {
        assert_int_equal(ost_world_read(world, &place, data), 0);
    }
}

/* Overwrites and what frees are told until there is room for records. */
static void test_full_blocks_and_log(void **state) {
    (void)state;
    for (enum end end = 0; end < END_COUNT; end++) {
        struct ost_world *world = ost_world_new(61);
        struct ost_place place = place_of(0, 0, CHUNK);

        assert_int_equal(ost_world_open(world, problem), 0);
        ost_world_attach(world);
        uint64_t count = fill_blocks(world);
        fill_log(world);
        for (int times = 0; times < 2; times++) {
            start_anew(world, end);
            check_data(world, 1, count);
            assert_int_equal(ost_world_write(world, &place, data), -ERR_NO_SPACE);
            place.chunk = count;
            assert_int_equal(ost_world_write(world, &place, data), -ERR_NO_SPACE);
            place.chunk = 0;
        }
        goes_on(world);
        assert_int_equal(delete_all(world), 0);
        assert_int_equal(ost_world_sync(world), 0);
        assert_int_equal(fill_blocks(world), count);
        check_data(world, 0, count);
        assert_int_equal(ost_world_fsck(world), count * (CHUNK / BLOCK_BYTES));
        ost_world_stop(world);
        ost_world_free(world);
    }
}

/* A delete on a target that is full of both takes of what others leave to it, until that is spent;
 * what it has freed is nobody's before it is on disk. */
static void test_deletes_of_a_full_target(void **state) {
    (void)state;
    for (enum end end = 0; end < END_COUNT; end++) {
        struct ost_world *world = ost_world_new(62);
        struct ost_place place = place_of(0, 0, CHUNK);

        assert_int_equal(ost_world_open(world, problem), 0);
        ost_world_attach(world);
        uint64_t count = fill_blocks(world);
        fill_log(world);
        assert_int_equal(delete_all(world), 0);
        start_anew(world, end);
        assert_int_equal(ost_world_write(world, &place, data), -ERR_NO_SPACE);
        goes_on(world);
        assert_int_equal(delete_all(world), 0);
        assert_int_equal(ost_world_sync(world), 0);
        assert_int_equal(fill_blocks(world), count);
        assert_int_equal(ost_world_fsck(world), count * (CHUNK / BLOCK_BYTES));
        ost_world_stop(world);
        ost_world_free(world);
    }
}

/* Overwrites whose freed blocks wait for a sync point, until there is no room for records. */
static void test_full_quarantine_and_log(void **state) {
    (void)state;
    for (enum end end = 0; end < END_COUNT; end++) {
        struct ost_world *world = ost_world_new(63);
        struct ost_place place = place_of(0, 0, CHUNK);
        struct ost_counters counters;
        uint64_t waiting = 0;
        int r = 0;

        assert_int_equal(ost_world_open(world, problem), 0);
        ost_world_attach(world);
        for (; place.chunk < 4; place.chunk++) {
            assert_int_equal(ost_world_write(world, &place, data), 0);
        }
        assert_int_equal(ost_world_sync(world), 0);
        kv_mem_store_full(world->store, true);
        for (uint64_t i = 0; r == 0; i++) {
            assert_true(i < TURNS_MAX);
            place.chunk = i % 3;
            r = write_and_forget(world, &place);
            ost_counters_get(world->ost, &counters);
            waiting = MAX(waiting, counters.quarantine_blocks);
            if (i % 4 == 3) {
                (void)ost_world_sync(world);
            }
        }
        assert_int_equal(r, -ERR_NO_SPACE);
        assert_true(waiting >= CHUNK / BLOCK_BYTES);
        for (int times = 0; times < 2; times++) {
            start_anew(world, end);
            check_data(world, 0, 4);
            place.chunk = 0;
            assert_int_equal(ost_world_write(world, &place, data), -ERR_NO_SPACE);
        }
        goes_on(world);
        assert_int_equal(ost_world_sync(world), 0);
        assert_int_equal(ost_world_fsck(world), 4 * (CHUNK / BLOCK_BYTES));
        ost_world_stop(world);
        ost_world_free(world);
    }
}

/* The last blocks, of which the reserve is a chunk's, while no row is in memory. */
static void test_spent_reserve_and_cold_rows(void **state) {
    (void)state;
    for (enum end end = BY_STOP; end < END_COUNT; end++) {
        struct ost_world *world = ost_world_new(64);
        struct ost_place place = place_of(0, 0, CHUNK);
        struct ost_counters counters;
        int r = 0;

        world->options.data_bytes_max = 2 * MIB;
        world->options.reserve_bytes = CHUNK;
        assert_int_equal(ost_world_open(world, problem), 0);
        ost_world_attach(world);
        for (uint32_t block = 0; r == 0; block++) {
            place = place_of(block / (CHUNK / BLOCK_BYTES),
                             block % (CHUNK / BLOCK_BYTES) * BLOCK_BYTES, BLOCK_BYTES);
            r = ost_world_write(world, &place, data);
        }
        assert_int_equal(r, -ERR_NO_SPACE);
        assert_int_equal(ost_world_sync(world), 0);
        for (int times = 0; times < 3; times++) {
            start_anew(world, end);
            place = place_of((uint64_t)times, 0, CHUNK);
            assert_int_equal(ost_world_write(world, &place, data), 0);
            assert_int_equal(ost_world_read(world, &place, data), 0);
            assert_int_equal(ost_world_sync(world), 0);
            ost_counters_get(world->ost, &counters);
            assert_true(counters.free_blocks <= CHUNK / BLOCK_BYTES);
            place.chunk = CHUNKS_MAX;
            assert_int_equal(ost_world_write(world, &place, data), -ERR_NO_SPACE);
        }
        assert_int_equal(delete_all(world), 0);
        assert_int_equal(ost_world_sync(world), 0);
        assert_int_equal(ost_world_write(world, &place, data), 0);
        assert_int_equal(ost_world_fsck(world), CHUNK / BLOCK_BYTES);
        ost_world_stop(world);
        ost_world_free(world);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full_blocks_and_log),
        cmocka_unit_test(test_deletes_of_a_full_target),
        cmocka_unit_test(test_full_quarantine_and_log),
        cmocka_unit_test(test_spent_reserve_and_cold_rows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
