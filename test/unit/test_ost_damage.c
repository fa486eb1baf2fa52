/* Truncations through damaged blocks: they end, the block stays damaged until it is written over,
 * and nothing else of the chunk is hindered. */
#include "unit.h"
#include "base/crc32c.h"
#include "ost_world.h"
#include "store/fsck_format.h"
#include "store/store_format.h"
#include <string.h>

enum { CHUNK = 64 * 1024, BAD = 5, CUT = BAD * BLOCK_BYTES + 1000, BIT_AT = 77 };

static uint8_t data[CHUNK];
static uint8_t zeros[CHUNK];
static char problem[256];

/* What of a chunk a writer or reader asks for, once he knows of a truncation; 0: of none. */
static struct ost_place place_of(uint32_t offset, uint32_t size, uint32_t truncate_seq) {
    return (struct ost_place){.ino = {17},
                              .generation = 1,
                              .chunk_bytes = CHUNK,
                              .offset = offset,
                              .size = size,
                              .truncate_seq = truncate_seq,
                              .truncate_size = CUT};
}

static int write_at(struct ost_world *world, uint32_t offset, uint32_t size, uint32_t seq) {
    struct ost_place place = place_of(offset, size, seq);

    return ost_world_write(world, &place, data + offset);
}

static int read_at(struct ost_world *world, uint32_t offset, uint32_t size, const uint8_t *want) {
    struct ost_place place = place_of(offset, size, 1);

    return ost_world_read(world, &place, want);
}

/* Where the damaged block lies in the data file. */
static uint64_t bad_place(struct ost_world *world) {
    return ost_world_block(world, BAD) * BLOCK_BYTES + BIT_AT;
}

/* A chunk of 16 blocks, all on disk, and a bit of one of them flipped. */
static struct ost_world *world_with_damage(uint64_t seed) {
    struct ost_world *world = ost_world_new(seed);

    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = (uint8_t)(i * 31 + i / BLOCK_BYTES + 1);
    }
    world->options.cache_bytes = 0;
    assert_int_equal(ost_world_open(world, problem), 0);
    ost_world_attach(world);
    assert_int_equal(write_at(world, 0, CHUNK, 0), 0);
    assert_int_equal(ost_world_sync(world), 0);
    assert_int_equal(memory_env_flip(world->env, "data", bad_place(world)), 0);
    return world;
}

static int order_cut(struct ost_world *world, uint32_t seq, uint64_t size) {
    struct ost_call *call = ost_call_get(world, OP_CHUNK_CUT);

    call->call.request.chunk_cut = (struct chunk_cut_request){.ino = {17},
                                                              .generation = 1,
                                                              .chunk_bytes = CHUNK,
                                                              .truncate_seq = seq,
                                                              .truncate_size = size};
    int r = ost_call_run(call);
    return r == 0 && !call->call.reply.chunk_cut.end ? -ERR_PENDING : r;
}

/* Of the file, as its head counts them. */
static uint64_t blocks_used(struct ost_world *world) {
    struct ost_call *call = ost_call_get(world, OP_CHUNK_LENGTH);

    call->call.request.chunk_length = (struct chunk_length_request){.ino = {17}, .generation = 1};
    assert_int_equal(ost_call_run(call), 0);
    return call->call.reply.chunk_length.bytes_used / BLOCK_BYTES;
}

/* As fsck finds it, a bit a block. */
static uint16_t damaged_mask(struct ost_world *world) {
    struct ost_call *call = ost_call_get(world, OP_FSCK_LIST);

    call->call.request.fsck_list = (struct fsck_list_request){FSCK_DATA, {NULL, 0}, 64 * 1024};
    call->call.bulk_in = (struct buffer){call->memory, 0, 64 * 1024};
    assert_int_equal(ost_call_run(call), 0);
    return load_le16(call->memory + sizeof(struct store_fsck_row));
}

/* Any part of the block fails, also the one that the cut took: what lies there may be older. All
 * before it is there, all behind it is zeros. */
static void damage_check(struct ost_world *world) {
    assert_int_equal(read_at(world, 0, BAD * BLOCK_BYTES, data), 0);
    assert_int_equal(read_at(world, BAD * BLOCK_BYTES, 10, NULL), -ERR_CORRUPT);
    assert_int_equal(read_at(world, CUT, 10, NULL), -ERR_CORRUPT);
    assert_int_equal(read_at(world, (BAD + 1) * BLOCK_BYTES - 1, 2, NULL), -ERR_CORRUPT);
    assert_int_equal(read_at(world, (BAD + 1) * BLOCK_BYTES, 3 * BLOCK_BYTES, zeros), 0);
    assert_int_equal(damaged_mask(world), 1 << BAD);
}

static void test_ordered_cut(void **state) {
    struct ost_world *world = world_with_damage(1);
    struct ost_counters counters;

    (void)state;
    assert_int_equal(order_cut(world, 1, CUT), 0);
    assert_int_equal(blocks_used(world), BAD + 1);
    assert_non_null(strstr(world->last_line, "cut through"));
    damage_check(world);
    ost_counters_get(world->ost, &counters);
    assert_int_equal(counters.cuts_through_damage, 1);
    /* The same order again changes nothing, one that is shorter goes through the same block. */
    assert_int_equal(order_cut(world, 1, CUT), 0);
    assert_int_equal(order_cut(world, 2, CUT - 100), 0);
    assert_int_equal(order_cut(world, 3, CUT - 200), 0);
    ost_counters_get(world->ost, &counters);
    assert_int_equal(counters.cuts_through_damage, 3);
    assert_int_equal(blocks_used(world), BAD + 1);
    /* One before it takes it away. */
    assert_int_equal(order_cut(world, 4, BAD * BLOCK_BYTES), 0);
    assert_int_equal(ost_world_fsck(world), BAD);
    ost_world_stop(world);
    ost_world_free(world);
}

/* The disk gives the old bytes after all: they are from before the cut, and nobody sees them. */
static void test_damage_that_goes_away(void **state) {
    struct ost_world *world = world_with_damage(2);

    (void)state;
    for (uint32_t seq = 1; seq <= 3; seq++) {
        assert_int_equal(order_cut(world, seq, CUT), 0);
        assert_int_equal(ost_world_sync(world), 0);
        if (seq == 1) {
            assert_int_equal(memory_env_flip(world->env, "data", bad_place(world)), 0);
        }
        damage_check(world);
    }
    ost_world_free(world);
}

static void test_damage_outlives(void **state) {
    (void)state;
    for (int power = 0; power < 2; power++) {
        struct ost_world *world = world_with_damage(3);

        assert_int_equal(order_cut(world, 1, CUT), 0);
        if (power) {
            assert_int_equal(ost_world_sync(world), 0);
        }
        ost_world_crash(world, power);
        assert_int_equal(ost_world_open(world, problem), 0);
        damage_check(world);
        ost_world_stop(world);
        assert_int_equal(ost_world_open(world, problem), 0);
        damage_check(world);
        ost_world_free(world);
    }
}

/* Writers that know of the truncation bring it with them. Who writes elsewhere in the chunk is not
 * hindered by it, nor by the damage; a part of the block can't be written, all of it can. */
static void test_writes(void **state) {
    struct ost_world *world = world_with_damage(4);

    (void)state;
    assert_int_equal(write_at(world, 2 * BLOCK_BYTES + 10, 100, 1), 0);
    damage_check(world);
    assert_int_equal(write_at(world, 12 * BLOCK_BYTES, 100, 1), 0);
    assert_int_equal(read_at(world, 12 * BLOCK_BYTES, 100, data + 12 * BLOCK_BYTES), 0);
    assert_int_equal(write_at(world, BAD * BLOCK_BYTES + 10, 100, 1), -ERR_CORRUPT);
    assert_int_equal(write_at(world, CUT, 100, 1), -ERR_CORRUPT);
    assert_int_equal(write_at(world, BAD * BLOCK_BYTES - 10, 100, 1), -ERR_CORRUPT);
    assert_int_equal(write_at(world, BAD * BLOCK_BYTES, BLOCK_BYTES, 1), 0);
    assert_int_equal(read_at(world, 0, (BAD + 1) * BLOCK_BYTES, data), 0);
    assert_int_equal(write_at(world, BAD * BLOCK_BYTES + 10, 100, 1), 0);
    assert_int_equal(read_at(world, 0, (BAD + 1) * BLOCK_BYTES, data), 0);
    ost_world_stop(world);
    ost_world_free(world);
}

/* The write that brings the truncation may be the very one that makes the block whole: with all of
 * it, or with all that the cut leaves of it. */
static void test_repairing_writes(void **state) {
    (void)state;
    for (int whole = 0; whole < 2; whole++) {
        struct ost_world *world = world_with_damage(5);
        uint32_t size = whole ? BLOCK_BYTES : CUT % BLOCK_BYTES;

        assert_int_equal(write_at(world, BAD * BLOCK_BYTES, size, 1), 0);
        assert_int_equal(read_at(world, 0, BAD * BLOCK_BYTES + size, data), 0);
        assert_int_equal(read_at(world, BAD * BLOCK_BYTES + size, 2 * BLOCK_BYTES, zeros), 0);
        assert_int_equal(order_cut(world, 1, CUT), 0);
        ost_world_stop(world);
        ost_world_free(world);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ordered_cut),      cmocka_unit_test(test_damage_that_goes_away),
        cmocka_unit_test(test_damage_outlives),  cmocka_unit_test(test_writes),
        cmocka_unit_test(test_repairing_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
