/* Free space of the data file: which blocks may be written.
 *
 *     free --take--> taken --(record)--> in use --free--> quarantine --release--> free
 *                      +------ give_back -------------------------------------------^
 *
 * One bit a block, 1 = not free. Blocks are grouped in regions of 8,192; each region keeps an
 * upper bound of its longest free run, and a tree of maxima over the bounds finds the next region
 * that may have a run in O(log regions). A region that was searched in vain learns its true bound.
 *
 * What a record has freed stays in quarantine, in order, until the record is on disk and every
 * read that began before it has ended: until then a crash or that read may need its old content.
 *
 * Thread: the OST's. Memory: all taken at init. */
#pragma once
#include "base/err.h"
#include "base/types.h"

enum { BLOCKS_REGION_BLOCKS = 8192, BLOCKS_PIECE_BLOCKS = 256 };

/* Small writes get their blocks one behind another out of a piece of their own, so that the sync
 * point writes them out in large I/O. */
enum blocks_lane { BLOCKS_LANE_LARGE, BLOCKS_LANE_SMALL, BLOCKS_LANE_COUNT };

struct extent {
    uint64_t first;
    uint32_t count;
};

struct blocks_freed {
    struct extent extent;
    uint64_t position;    /* of the record that freed it */
    uint64_t read_number; /* reads below this one may still be reading it */
};

struct blocks {
    uint64_t block_count_max;
    uint64_t block_count; /* of the data file as it is now; those behind are not free */
    uint64_t free_count;  /* bits that are 0, and the piece */
    uint64_t quarantine_blocks;
    uint64_t promised_count; /* of those that are not in use, for holes of chunks (promise.h) */
    uint64_t promised_changes;
    uint64_t *words;
    uint16_t *bounds; /* the tree: root at 1, children of i at 2 i and 2 i + 1 */
    uint32_t region_count;
    uint32_t leaf_count; /* region_count rounded up to a power of two */
    uint64_t next[BLOCKS_LANE_COUNT];
    struct extent piece; /* lent to the small lane: bits are 1, but free */
    struct blocks_freed *freed;
    uint32_t freed_max, freed_first, freed_count;
};

/* Nothing is free before blocks_grow. */
MUST_CHECK int blocks_init(struct blocks *blocks, uint64_t block_count_max, uint32_t freed_max);
void blocks_deinit(struct blocks *blocks);

/* The data file has block_count blocks now: the new ones are free. */
void blocks_grow(struct blocks *blocks, uint64_t block_count);
/* At load: the block is in use. -ERR_CORRUPT when it is beyond the file. */
MUST_CHECK int blocks_mark(struct blocks *blocks, uint64_t block);

/* Takes up to want adjoining blocks, as many as one run has; 0 when nothing is free. */
uint32_t blocks_take(struct blocks *blocks, enum blocks_lane lane, uint32_t want,
                     uint64_t *ret_first);
/* Taken and never named by a record. */
void blocks_give_back(struct blocks *blocks, struct extent extent);

/* Whether count more extents can be freed before something is released. */
bool blocks_can_free(const struct blocks *blocks, uint32_t count);
/* The record at position has freed the extent; reads from read_number on don't see it. */
void blocks_free(struct blocks *blocks, struct extent extent, uint64_t position,
                 uint64_t read_number);
/* Makes free what is in quarantine and no longer needed: records up to synced are on disk, reads
 * below oldest_read have ended. Answers how many blocks. */
uint64_t blocks_release(struct blocks *blocks, uint64_t synced, uint64_t oldest_read);

static inline bool blocks_is_free(const struct blocks *blocks, uint64_t block) {
    return !(blocks->words[block / 64] >> (block % 64) & 1);
}
