/* See blocks.h. */
#include "store/blocks.h"
#include "base/bug.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { WORD_BITS = 64 };

/* Free, in quarantine, or somebody's: a block is one of them. */
static bool is_balanced(const struct blocks *blocks) {
    return blocks->piece.count <= blocks->free_count &&
           blocks->free_count + blocks->quarantine_blocks <= blocks->block_count &&
           (blocks->freed_count == 0) == (blocks->quarantine_blocks == 0);
}

int blocks_init(struct blocks *blocks, uint64_t block_count_max, uint32_t freed_max) {
    uint64_t regions = (block_count_max + BLOCKS_REGION_BLOCKS - 1) / BLOCKS_REGION_BLOCKS;

    *blocks = (struct blocks){.block_count_max = block_count_max, .freed_max = freed_max};
    if (regions == 0 || regions > UINT32_MAX / 4) {
        return -ERR_INVALID;
    }
    blocks->region_count = (uint32_t)regions;
    blocks->leaf_count = 1;
    while (blocks->leaf_count < blocks->region_count) {
        blocks->leaf_count *= 2;
    }
    size_t words_bytes = (size_t)regions * BLOCKS_REGION_BLOCKS / 8;

    blocks->words = malloc(words_bytes);
    blocks->bounds = calloc((size_t)blocks->leaf_count * 2, sizeof *blocks->bounds);
    blocks->freed = calloc(freed_max, sizeof *blocks->freed);
    if (!blocks->words || !blocks->bounds || !blocks->freed) {
        blocks_deinit(blocks);
        return -ERR_NO_MEMORY;
    }
    memset(blocks->words, 0xff, words_bytes);
    return 0;
}

void blocks_deinit(struct blocks *blocks) {
    free(blocks->words);
    free(blocks->bounds);
    free(blocks->freed);
    *blocks = (struct blocks){0};
}

static void bound_set(struct blocks *blocks, uint32_t region, uint16_t bound) {
    uint32_t node = blocks->leaf_count + region;

    assert(region < blocks->region_count && bound <= BLOCKS_REGION_BLOCKS);
    blocks->bounds[node] = bound;
    for (node /= 2; node > 0; node /= 2) {
        const uint16_t *children = &blocks->bounds[2 * node];
        uint16_t most = children[0] > children[1] ? children[0] : children[1];

        if (blocks->bounds[node] == most) {
            break;
        }
        blocks->bounds[node] = most;
    }
}

/* The first region at or behind from whose bound is at least want; region_count when none is. */
static uint32_t bound_find(const struct blocks *blocks, uint32_t from, uint16_t want) {
    uint32_t node = blocks->leaf_count + from;

    if (from >= blocks->region_count) {
        return blocks->region_count;
    }
    while (blocks->bounds[node] < want) {
        /* Up as long as this is a right child, then to the sibling on the right. */
        while (node & 1) {
            node /= 2;
        }
        if (node == 0) {
            return blocks->region_count;
        }
        node++;
    }
    while (node < blocks->leaf_count) {
        node *= 2;
        if (blocks->bounds[node] < want) {
            node++;
        }
    }
    return node - blocks->leaf_count;
}

/* The first bit at or behind from that has the value; end when there is none before it. */
static uint64_t bit_find(const struct blocks *blocks, uint64_t from, uint64_t end, bool value) {
    uint64_t flip = value ? 0 : UINT64_MAX;

    while (from < end) {
        uint64_t word = (blocks->words[from / WORD_BITS] ^ flip) >> (from % WORD_BITS);

        if (word) {
            from += (uint64_t)__builtin_ctzll(word);
            return MIN(from, end);
        }
        from = (from / WORD_BITS + 1) * WORD_BITS;
    }
    return end;
}

static void bits_fill(struct blocks *blocks, struct extent extent, bool value) {
    uint64_t at = extent.first;
    uint64_t end = extent.first + extent.count;

    while (at < end) {
        uint64_t low = at % WORD_BITS;
        uint64_t count = MIN(end - at, WORD_BITS - low);
        uint64_t mask = (count == WORD_BITS ? UINT64_MAX : (UINT64_C(1) << count) - 1) << low;
        uint64_t *word = &blocks->words[at / WORD_BITS];

        assert((*word & mask) == (value ? 0 : mask));
        *word ^= mask;
        at += count;
    }
}

/* Where the run of free bits that ends before `end` begins, not before `from`. */
static uint64_t run_start(const struct blocks *blocks, uint64_t from, uint64_t end) {
    while (end > from) {
        uint64_t last = end - 1;
        uint64_t taken = blocks->words[last / WORD_BITS] << (WORD_BITS - 1 - last % WORD_BITS);

        if (taken) {
            uint64_t start = end - (uint64_t)__builtin_clzll(taken);

            return MAX(start, from);
        }
        end = last / WORD_BITS * WORD_BITS;
    }
    return from;
}

/* Clears the bits. The bounds of their regions stay bounds: no run has grown but the one that these
 * bits are in now. */
static void bits_free(struct blocks *blocks, struct extent extent) {
    uint64_t end = extent.first + extent.count;

    bits_fill(blocks, extent, false);
    for (uint64_t at = extent.first; at < end;) {
        uint32_t region = (uint32_t)(at / BLOCKS_REGION_BLOCKS);
        uint64_t region_first = (uint64_t)region * BLOCKS_REGION_BLOCKS;
        uint64_t region_end = region_first + BLOCKS_REGION_BLOCKS;
        uint64_t run = bit_find(blocks, at, region_end, true) - run_start(blocks, region_first, at);

        if (run > blocks->bounds[blocks->leaf_count + region]) {
            bound_set(blocks, region, (uint16_t)run);
        }
        at = region_end;
    }
}

void blocks_grow(struct blocks *blocks, uint64_t block_count) {
    assert(block_count >= blocks->block_count && block_count <= blocks->block_count_max);
    while (blocks->block_count < block_count) {
        uint64_t count = MIN(block_count - blocks->block_count, UINT64_C(1) << 30);

        bits_free(blocks, (struct extent){blocks->block_count, (uint32_t)count});
        blocks->free_count += count;
        blocks->block_count += count;
    }
    assert(is_balanced(blocks));
}

int blocks_mark(struct blocks *blocks, uint64_t block) {
    if (block >= blocks->block_count || !blocks_is_free(blocks, block)) {
        return -ERR_CORRUPT;
    }
    assert(blocks->freed_count == 0 && blocks->piece.count == 0);
    bits_fill(blocks, (struct extent){block, 1}, true);
    blocks->free_count--;
    return 0;
}

/* Looks for a run of want free blocks in [from, end of the region); when there is none and from is
 * the region's first block, its bound becomes what it really has. */
static bool region_find(struct blocks *blocks, uint64_t from, uint32_t want, uint64_t *ret_first) {
    uint32_t region = (uint32_t)(from / BLOCKS_REGION_BLOCKS);
    uint64_t end = ((uint64_t)region + 1) * BLOCKS_REGION_BLOCKS;
    uint64_t longest = 0;

    for (uint64_t at = bit_find(blocks, from, end, false); at < end;) {
        uint64_t stop = bit_find(blocks, at, end, true);

        if (stop - at >= want) {
            *ret_first = at;
            return true;
        }
        longest = MAX(longest, stop - at);
        at = bit_find(blocks, stop, end, false);
    }
    if (from % BLOCKS_REGION_BLOCKS == 0) {
        bound_set(blocks, region, (uint16_t)longest);
    }
    return false;
}

/* Next fit: behind the last one taken, then around. The run is as long as want or, when there is no
 * such run any more, as the longest there is. */
static uint32_t run_find(struct blocks *blocks, uint64_t next, uint32_t want, uint64_t *ret_first) {
    uint32_t here = blocks->leaf_count + (uint32_t)(next / BLOCKS_REGION_BLOCKS);

    if (next % BLOCKS_REGION_BLOCKS && blocks->bounds[here] >= want &&
        region_find(blocks, next, want, ret_first)) {
        return want;
    }
    uint32_t from = (uint32_t)((next + BLOCKS_REGION_BLOCKS - 1) / BLOCKS_REGION_BLOCKS);

    for (;;) {
        want = MIN(want, (uint32_t)blocks->bounds[1]);
        if (want == 0) {
            return 0;
        }
        uint32_t region = bound_find(blocks, from, (uint16_t)want);

        if (region == blocks->region_count) {
            from = 0;
        } else if (region_find(blocks, (uint64_t)region * BLOCKS_REGION_BLOCKS, want, ret_first)) {
            return want;
        }
    }
}

static uint32_t large_take(struct blocks *blocks, uint32_t want, uint64_t *ret_first) {
    uint64_t *next = &blocks->next[BLOCKS_LANE_LARGE];
    uint32_t count = run_find(blocks, *next, want, ret_first);

    if (count) {
        assert(count <= want && *ret_first + count <= blocks->block_count);
        bits_fill(blocks, (struct extent){*ret_first, count}, true);
        *next = *ret_first + count;
        *next = *next < blocks->block_count ? *next : 0;
    }
    return count;
}

/* The next piece continues where this one stopped. */
static void piece_return(struct blocks *blocks) {
    assert(blocks->piece.first + blocks->piece.count <= blocks->block_count);
    blocks->next[BLOCKS_LANE_SMALL] = blocks->piece.first;
    if (blocks->piece.count) {
        bits_free(blocks, blocks->piece);
        blocks->piece.count = 0;
    }
    if (blocks->next[BLOCKS_LANE_SMALL] >= blocks->block_count) {
        blocks->next[BLOCKS_LANE_SMALL] = 0;
    }
}

static void piece_take(struct blocks *blocks, uint32_t want) {
    struct extent *piece = &blocks->piece;

    piece_return(blocks);
    piece->count = run_find(blocks, blocks->next[BLOCKS_LANE_SMALL],
                            MAX(want, (uint32_t)BLOCKS_PIECE_BLOCKS), &piece->first);
    if (piece->count) {
        bits_fill(blocks, *piece, true);
    }
}

uint32_t blocks_take(struct blocks *blocks, enum blocks_lane lane, uint32_t want,
                     uint64_t *ret_first) {
    uint32_t count = 0;

    if (lane == BLOCKS_LANE_SMALL) {
        /* What is left of a piece goes back: a run in two parts would cost two I/Os and notes. */
        if (blocks->piece.count < want) {
            piece_take(blocks, want);
        }
        count = MIN(want, blocks->piece.count);
        if (count) {
            *ret_first = blocks->piece.first;
            blocks->piece.first += count;
            blocks->piece.count -= count;
        }
    } else {
        count = large_take(blocks, want, ret_first);
        if (count == 0 && blocks->piece.count) {
            piece_return(blocks);
            count = large_take(blocks, want, ret_first);
        }
    }
    assert(count <= blocks->free_count);
    blocks->free_count -= count;
    assert(is_balanced(blocks));
    return count;
}

void blocks_give_back(struct blocks *blocks, struct extent extent) {
    bits_free(blocks, extent);
    blocks->free_count += extent.count;
    assert(is_balanced(blocks));
}

bool blocks_can_free(const struct blocks *blocks, uint32_t count) {
    return count <= blocks->freed_max - blocks->freed_count;
}

void blocks_free(struct blocks *blocks, struct extent extent, uint64_t position,
                 uint64_t read_number) {
    uint32_t index = (blocks->freed_first + blocks->freed_count) % blocks->freed_max;

    const struct blocks_freed *newest =
        &blocks->freed[(index + blocks->freed_max - 1) % blocks->freed_max];

    assert(blocks->freed_count < blocks->freed_max);
    assert(extent.first + extent.count <= blocks->block_count);
    assert(blocks->freed_count == 0 ||
           (newest->position <= position && newest->read_number <= read_number));
    blocks->freed[index] = (struct blocks_freed){extent, position, read_number};
    blocks->freed_count++;
    blocks->quarantine_blocks += extent.count;
    assert(is_balanced(blocks));
}

uint64_t blocks_release(struct blocks *blocks, uint64_t synced, uint64_t oldest_read) {
    uint64_t released = 0;

    while (blocks->freed_count) {
        const struct blocks_freed *freed = &blocks->freed[blocks->freed_first];

        if ((freed->position > synced && !BUG(EARLY_REUSE)) || freed->read_number > oldest_read) {
            break;
        }
        bits_free(blocks, freed->extent);
        released += freed->extent.count;
        blocks->freed_first = (blocks->freed_first + 1) % blocks->freed_max;
        blocks->freed_count--;
    }
    blocks->free_count += released;
    blocks->quarantine_blocks -= released;
    assert(is_balanced(blocks));
    return released;
}
