/* Blocks of the data file in memory: what small reads and merges meet again.
 *
 * A fixed number of 4 KiB slots, found by a hash over block numbers, replaced by CLOCK: a slot that
 * was read since the hand last passed is spared once. A block comes in without that mark, so blocks
 * seen once go first. Content was checked against its checksum on the way in, and each user checks
 * it again or hands the checksum on. A block is dropped when it is taken for new content.
 *
 * Thread: the OST's. Memory: taken at init, touched as it fills. */
#pragma once
#include "base/err.h"
#include "base/types.h"

struct block_cache_slot {
    uint64_t block; /* 0: empty */
    uint32_t next;  /* in its bucket, as a slot + 1; 0 ends */
    bool marked;
};

struct block_cache {
    uint8_t *memory;
    struct block_cache_slot *slots;
    uint32_t *buckets;
    uint32_t bucket_mask;
    uint32_t slot_count, used_count, hand;
    uint64_t hits, misses;
};

/* cache_bytes may be 0: nothing is kept then. */
MUST_CHECK int block_cache_init(struct block_cache *cache, size_t cache_bytes);
void block_cache_deinit(struct block_cache *cache);

/* NULL when it is not there. Valid until the next insert or drop. */
const uint8_t *block_cache_find(struct block_cache *cache, uint64_t block);
/* Copies the block in, unless it is there. */
void block_cache_insert(struct block_cache *cache, uint64_t block, const uint8_t *data);
void block_cache_drop(struct block_cache *cache, uint64_t first, uint32_t count);
