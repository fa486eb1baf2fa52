/* One chunk of an OST, for the tests that write to it: bytes, places in it, a world to begin in. */
#pragma once
#include "unit.h"
#include "ost_world.h"
#include <stdio.h>
#include <string.h>

enum { CHUNK = 128 * 1024 };

static uint8_t data[OST_CALL_BYTES_MAX];
static char problem[256];

static inline void fill(uint32_t seed, size_t size) {
    struct prng prng;

    prng_init(&prng, seed);
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = prng_next(&prng);

        memcpy(data + i, &word, MIN(size - i, sizeof word));
    }
}

static inline struct ost_place place_of(uint32_t offset, uint32_t size) {
    return (struct ost_place){.ino = {17},
                              .generation = 1,
                              .chunk = 2,
                              .chunk_bytes = CHUNK,
                              .offset = offset,
                              .size = size};
}

static inline struct ost_world *world_start(uint64_t seed) {
    struct ost_world *world = ost_world_new(seed);
    int r = ost_world_open(world, problem);

    if (r < 0) {
        printf("%s\n", problem);
    }
    assert_int_equal(r, 0);
    ost_world_attach(world);
    return world;
}
