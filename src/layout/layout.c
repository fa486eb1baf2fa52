/* Placement of chunks on chains. */
#include "layout/layout.h"
#include <assert.h>

/* A 32-bit finaliser (the last steps of MurmurHash3), enough to spread seeds that differ by 1. */
static uint32_t mix(uint32_t value) {
    value ^= value >> 16;
    value *= 0x85ebca6bU;
    value ^= value >> 13;
    value *= 0xc2b2ae35U;
    return value ^ (value >> 16);
}

bool layout_is_valid(const struct layout *layout) {
    return layout->chunk_bytes >= CHUNK_BYTES_MIN && layout->chunk_bytes <= CHUNK_BYTES_MAX &&
           layout->chunk_bytes % SEGMENT_BYTES == 0 && layout->stripe_count > 0;
}

uint32_t layout_width(const struct layout *layout, const struct pool_version *pool) {
    return MIN((uint32_t)layout->stripe_count, pool->chain_count);
}

uint32_t layout_chain_at(const struct layout *layout, const struct pool_version *pool, uint32_t i) {
    assert(pool->chain_count > 0 && i < pool->chain_count);
    uint32_t start = mix(layout->seed) % pool->chain_count;

    return pool->chains[(start + i) % pool->chain_count];
}

uint32_t layout_chain(const struct layout *layout, const struct pool_version *pool,
                      uint64_t chunk) {
    uint32_t width = layout_width(layout, pool);

    return layout_chain_at(layout, pool, (uint32_t)(chunk % width));
}
