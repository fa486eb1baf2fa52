/* The memory below changes: one block taken at start, cut into chunks, and an arena per generation
 * that takes chunks as it grows and gives them all back at once.
 *
 *     chunk: | head, node, node, ... --> | free | <-- ..., value, value |
 *
 * Things in a pool are named by a changes_ref: their distance from its start in units of 8 bytes,
 * half the size of a pointer. So a pool ends at 32 GiB.
 *
 * Thread: one at a time.  Memory: malloc at start only. Pages that were never touched cost
 * nothing; touched ones stay the process's and are the first to be taken again. */
#pragma once
#include "base/types.h"
#include "base/err.h"

enum { CHANGES_REF_UNIT = 8, CHANGES_CACHE_LINE = 64, CHANGES_NODE_BYTES = 1024 };
#define CHANGES_CHUNK_NONE UINT32_MAX

typedef uint32_t changes_ref;

struct changes_pool {
    uint8_t *memory;
    uint32_t *next_chunk; /* per chunk: the next one in the list it is in */
    size_t chunk_bytes;
    uint32_t chunk_count;
    uint32_t free_count;
    uint32_t free_first;
};

struct changes_arena {
    struct changes_pool *pool;
    uint32_t first; /* chunks in use; the last is the one being filled */
    uint32_t last;
    uint32_t spare_first; /* chunks set aside by a reservation */
    uint32_t spare_count;
    size_t front; /* free space of the last chunk, as distances from the pool's start */
    size_t back;
};

static inline void *changes_pool_at(const struct changes_pool *pool, changes_ref ref) {
    return pool->memory + (size_t)ref * CHANGES_REF_UNIT;
}

/* -ERR_NO_SPACE when the pool has no chunk left. */
MUST_CHECK int changes_arena_init(struct changes_arena *arena, struct changes_pool *pool);
void changes_arena_deinit(struct changes_arena *arena);
void changes_arena_trim(struct changes_arena *arena); /* gives back what was only set aside */
/* What changes_arena_reserve grants at the most, with so many free chunks left out. */
size_t changes_arena_room(const struct changes_arena *arena, size_t chunks_left_out);
/* From here on items of size_bytes in all, each at most CHANGES_VALUE_BYTES_MAX, cannot fail.
 * -ERR_NO_SPACE: nothing was set aside that was not before. */
MUST_CHECK int changes_arena_reserve(struct changes_arena *arena, size_t size_bytes);
/* These two need a reservation. A multiple of the cache line, aligned to it. */
changes_ref changes_arena_front(struct changes_arena *arena, size_t size_bytes);
/* A multiple of CHANGES_REF_UNIT, aligned to it. */
changes_ref changes_arena_back(struct changes_arena *arena, size_t size_bytes);
