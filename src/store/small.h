/* Small writes whose bytes are in the ring only: which block lies where until the next sync point.
 *
 *     record names block --small_add--> here --sync point: small_run, written--> small_drop
 *
 * A queue in order of positions, one entry a block, with a hash over it. Blocks of successive small
 * writes adjoin (blocks.h), so do their bytes in the ring: a sync point writes runs of them without
 * a copy. A block that was freed meanwhile is written all the same: its old record may be what a
 * crash goes back to.
 *
 * Thread: the OST's. Memory: taken at init, an entry for each block of the ring's data area. */
#pragma once
#include "kv/kv.h"

struct small_entry {
    uint64_t block;
    uint64_t ring_offset;
    uint64_t position;
    uint32_t next; /* in its bucket, as a place + 1; 0 ends */
    bool soon;     /* it may be wanted again soon: of a write of a few blocks */
};

struct small {
    struct kv *kv;
    struct small_entry *entries; /* a circle of entry_max */
    uint32_t *buckets;           /* first place + 1 */
    uint32_t bucket_mask;
    uint32_t entry_max, first, count;
};

/* What a sync point writes with one I/O. */
struct small_span {
    uint64_t block;
    uint8_t *data;
    uint32_t block_count;
};

MUST_CHECK int small_init(struct small *small, uint64_t ring_data_bytes);
void small_deinit(struct small *small);

/* -ERR_BUSY when there are more blocks than the data area holds. */
MUST_CHECK int small_add(struct small *small, const struct small_entry *entry);
/* The block's bytes, NULL when they are not in the ring. */
const uint8_t *small_find(const struct small *small, uint64_t block);

/* The longest run, of at most blocks_max, that begins with entry *at; moves *at on. False when
 * entry *at is above the cut or there is none. Start with 0. */
bool small_next(const struct small *small, uint32_t *at, uint64_t cut, uint32_t blocks_max,
                struct small_span *ret_span);
/* The oldest entry, when it is not above the cut; its bytes are on disk now. */
bool small_drop(struct small *small, uint64_t cut, uint64_t *ret_block);
