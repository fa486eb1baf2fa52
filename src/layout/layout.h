/* How a file maps to chunks and chunks to chains: pure arithmetic, the same for clients, servers
 * and the planner. A layout is a few bytes however big the file is. */
#pragma once
#include "base/types.h"

enum {
    CHUNK_BYTES_MIN = 64 * 1024,
    CHUNK_BYTES_MAX = 64 * 1024 * 1024,
    CHUNK_BYTES_DEFAULT = 1024 * 1024,
    STRIPE_ALL = 0xffff, /* stripe over every chain of the pool version */
    INLINE_BYTES_MAX = 4096,
    CHAINS_MAX = 4096 /* chains of one pool version */
};

/* Largest offset of a byte of a file, so that offset + length never wraps. */
#define FILE_BYTES_MAX ((UINT64_C(1) << 62) - 1)

/* Field order is that of the wire and of the inode row. redundancy 0 = none. */
struct layout {
    uint32_t pool_version;
    uint32_t chunk_bytes;
    uint32_t seed;
    uint16_t stripe_count;
    uint8_t redundancy;
};

/* The chains of one pool version, immutable once made. chains[i] is a chain id; the memory is whose
 * map it is. */
struct pool_version {
    uint32_t version;
    uint32_t chain_count;
    const uint32_t *chains;
};

/* True when chunk size is a multiple of 64 KiB within the limits and the stripe count is not 0. */
bool layout_is_valid(const struct layout *layout);

/* Chains that a file of this layout may use: min(stripe_count, chains of the pool version). */
uint32_t layout_width(const struct layout *layout, const struct pool_version *pool);

/* The chain of chunk `chunk`. Round robin over `width` chains that start at a place drawn from the
 * seed, so that chunk i and i + width share a chain and small files spread over all chains. */
uint32_t layout_chain(const struct layout *layout, const struct pool_version *pool, uint64_t chunk);

/* The i-th (0 <= i < width) distinct chain of the layout: where its chunks can be at all. */
uint32_t layout_chain_at(const struct layout *layout, const struct pool_version *pool, uint32_t i);
