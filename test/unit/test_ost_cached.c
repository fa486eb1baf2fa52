/* Which reads fill the cache of blocks. */
#include "unit.h"
#include "memory_env.h"
#include "ost_world.h"
#include <string.h>

enum { BLOCKS = 40, SMALL = 4, INO = 17 };

static uint8_t data[BLOCKS * BLOCK_BYTES];

static struct ost_place place_of(uint32_t first, uint32_t count) {
    return (struct ost_place){.ino = {INO},
                              .generation = 1,
                              .chunk_bytes = 512 * KIB,
                              .offset = first * BLOCK_BYTES,
                              .size = count * BLOCK_BYTES};
}

/* How often the disk is asked for it. */
static uint64_t reads_of(struct ost_world *world, uint32_t first, uint32_t count) {
    const struct ost_place place = place_of(first, count);
    struct ost_counters before, after;

    ost_counters_get(world->ost, &before);
    assert_int_equal(ost_world_read(world, &place, data + (size_t)first * BLOCK_BYTES), 0);
    ost_counters_get(world->ost, &after);
    return after.disk_reads - before.disk_reads;
}

static void fill(void) {
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = (uint8_t)(i / 7 + i / BLOCK_BYTES);
    }
}

/* What is read by up to 16 KiB comes again; what is larger neither stays nor takes its place, in
 * blocks that adjoin one read of the disk. */
static void test_small_reads_are_kept(void **state) {
    struct ost_world *world = ost_world_new(1);
    const struct ost_place all = place_of(0, BLOCKS);
    char problem[256];

    (void)state;
    fill();
    assert_int_equal(ost_world_open(world, problem), 0);
    ost_world_attach(world);
    assert_int_equal(ost_world_write(world, &all, data), 0);
    assert_int_equal(ost_world_sync(world), 0);
    assert_int_equal(reads_of(world, 0, SMALL), 1);
    assert_int_equal(reads_of(world, 0, SMALL), 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(reads_of(world, SMALL, BLOCKS - SMALL), 1);
        assert_int_equal(reads_of(world, 2 * SMALL, SMALL + 1), 1);
    }
    assert_int_equal(reads_of(world, 0, SMALL), 0);
    ost_world_free(world);
}

static void ways_of_memory(const struct env_file *file, struct env_file_ways *ret_ways) {
    (void)file;
    *ret_ways = (struct env_file_ways){.reads = ENV_WAY_COPY};
}

/* A data file in memory is its own cache. */
static void test_nothing_is_kept_of_what_is_in_memory(void **state) {
    struct ost_world *world = ost_world_new(1);
    const struct ost_place all = place_of(0, BLOCKS);
    struct env *env = memory_env_env(world->env);
    struct env_ops ops = *env->ops;
    char problem[256];

    (void)state;
    fill();
    ops.file_ways = ways_of_memory;
    env->ops = &ops;
    assert_int_equal(ost_world_open(world, problem), 0);
    ost_world_attach(world);
    assert_int_equal(ost_world_write(world, &all, data), 0);
    assert_int_equal(ost_world_sync(world), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(reads_of(world, 0, SMALL), 1);
    }
    ost_world_free(world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_reads_are_kept),
        cmocka_unit_test(test_nothing_is_kept_of_what_is_in_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
