/* Chunks and arenas of changes. See changes_pool.h.
 *
 * A reservation counts only what is sure: a chunk may end with a gap that the next item does not
 * fit in, so each chunk counts for its size less the largest item. An item that is taken lowers
 * that sum by at most its own size, so what was reserved stays reserved. */
#include "kv/changes_pool.h"
#include "kv/changes.h"
#include <assert.h>
#include <stdlib.h>

enum {
    CHUNK_BYTES_SMALL = 64 * 1024,
    CHUNK_BYTES_LARGE = 1024 * 1024,
    POOL_CHUNKS_MIN = 2,
};
#define POOL_BYTES_LARGE (8 * MIB)
#define POOL_BYTES_MAX (32 * GIB)
/* So that the system can back large pools by huge pages where it does so by itself. */
#define POOL_ALIGN_BYTES (2 * MIB)

enum { ITEM_BYTES_MAX = CHANGES_VALUE_BYTES_MAX };
static_assert((int)ITEM_BYTES_MAX >= (int)CHANGES_NODE_BYTES, "nodes are items as well");
static_assert(CHUNK_BYTES_SMALL > 8 * ITEM_BYTES_MAX, "gaps stay small");

static uint8_t *pool_memory(size_t chunk_bytes, size_t chunk_count) {
    return aligned_alloc(chunk_bytes == CHUNK_BYTES_LARGE ? POOL_ALIGN_BYTES : chunk_bytes,
                         chunk_count * chunk_bytes);
}

int changes_pool_new(size_t size_bytes, struct changes_pool **ret_pool) {
    size_t chunk_bytes = size_bytes < POOL_BYTES_LARGE ? CHUNK_BYTES_SMALL : CHUNK_BYTES_LARGE;
    size_t chunk_count = size_bytes / chunk_bytes;
    struct changes_pool *pool;

    if (chunk_count < POOL_CHUNKS_MIN || size_bytes > POOL_BYTES_MAX) {
        return -ERR_INVALID;
    }
    pool = calloc(1, sizeof *pool);
    if (!pool) {
        return -ERR_NO_MEMORY;
    }
    pool->chunk_bytes = chunk_bytes;
    pool->chunk_count = (uint32_t)chunk_count;
    pool->free_count = (uint32_t)chunk_count;
    pool->memory = pool_memory(chunk_bytes, chunk_count);
    pool->next_chunk = malloc(chunk_count * sizeof *pool->next_chunk);
    if (!pool->memory || !pool->next_chunk) {
        changes_pool_free(pool);
        return -ERR_NO_MEMORY;
    }
    for (uint32_t i = 0; i < chunk_count; i++) {
        pool->next_chunk[i] = i + 1 < chunk_count ? i + 1 : CHANGES_CHUNK_NONE;
    }
    *ret_pool = pool;
    return 0;
}

void changes_pool_free(struct changes_pool *pool) {
    if (pool) {
        free(pool->next_chunk);
        free(pool->memory);
        free(pool);
    }
}

size_t changes_pool_bytes(const struct changes_pool *pool) {
    return pool->chunk_count * pool->chunk_bytes;
}

int changes_pool_grow(struct changes_pool *pool, ptrdiff_t *ret_moved_bytes) {
    size_t bytes = changes_pool_bytes(pool);
    uint32_t count = pool->chunk_count;
    uint8_t *memory = NULL;
    uint32_t *next_chunk = NULL;

    if (2 * bytes <= POOL_BYTES_MAX) {
        memory = pool_memory(pool->chunk_bytes, 2 * (size_t)count);
        next_chunk = realloc(pool->next_chunk, 2 * (size_t)count * sizeof *next_chunk);
    }
    pool->next_chunk = next_chunk ? next_chunk : pool->next_chunk;
    if (!memory || !next_chunk) {
        free(memory);
        return -ERR_NO_MEMORY;
    }
    memcpy(memory, pool->memory, bytes);
    *ret_moved_bytes = (ptrdiff_t)((uintptr_t)memory - (uintptr_t)pool->memory);
    free(pool->memory);
    pool->memory = memory;
    pool->chunk_count = 2 * count;
    for (uint32_t chunk = count; chunk < 2 * count; chunk++) {
        next_chunk[chunk] = pool->free_first;
        pool->free_first = chunk;
        pool->free_count++;
    }
    return 0;
}

size_t changes_pool_used_bytes(const struct changes_pool *pool) {
    return (pool->chunk_count - pool->free_count) * pool->chunk_bytes;
}

size_t changes_pool_free_bytes(const struct changes_pool *pool) {
    return pool->free_count * pool->chunk_bytes;
}

static uint32_t pool_take(struct changes_pool *pool) {
    uint32_t chunk = pool->free_first;

    assert(pool->free_count > 0);
    pool->free_first = pool->next_chunk[chunk];
    pool->free_count--;
    return chunk;
}

static void pool_give_back(struct changes_pool *pool, uint32_t first) {
    while (first != CHANGES_CHUNK_NONE) {
        uint32_t next = pool->next_chunk[first];

        pool->next_chunk[first] = pool->free_first;
        pool->free_first = first;
        pool->free_count++;
        first = next;
    }
}

static void arena_fill(struct changes_arena *arena, uint32_t chunk) {
    struct changes_pool *pool = arena->pool;

    pool->next_chunk[chunk] = CHANGES_CHUNK_NONE;
    if (arena->first == CHANGES_CHUNK_NONE) {
        arena->first = chunk;
    } else {
        pool->next_chunk[arena->last] = chunk;
    }
    arena->last = chunk;
    arena->front = chunk * pool->chunk_bytes;
    arena->back = arena->front + pool->chunk_bytes;
}

int changes_arena_init(struct changes_arena *arena, struct changes_pool *pool) {
    if (pool->free_count == 0) {
        return -ERR_NO_SPACE;
    }
    *arena = (struct changes_arena){
        .pool = pool,
        .first = CHANGES_CHUNK_NONE,
        .last = CHANGES_CHUNK_NONE,
        .spare_first = CHANGES_CHUNK_NONE,
    };
    arena_fill(arena, pool_take(pool));
    return 0;
}

void changes_arena_trim(struct changes_arena *arena) {
    pool_give_back(arena->pool, arena->spare_first);
    arena->spare_first = CHANGES_CHUNK_NONE;
    arena->spare_count = 0;
}

void changes_arena_deinit(struct changes_arena *arena) {
    pool_give_back(arena->pool, arena->first);
    changes_arena_trim(arena);
}

static size_t sure_per_chunk(const struct changes_pool *pool) {
    return pool->chunk_bytes - ITEM_BYTES_MAX;
}

/* What is sure without another chunk. */
static size_t arena_sure(const struct changes_arena *arena) {
    size_t left = arena->back - arena->front;

    return (left > ITEM_BYTES_MAX ? left - ITEM_BYTES_MAX : 0) +
           arena->spare_count * sure_per_chunk(arena->pool);
}

size_t changes_pool_chunk_room(const struct changes_pool *pool) {
    return sure_per_chunk(pool);
}

size_t changes_pool_room(const struct changes_pool *pool) {
    return pool->chunk_count * sure_per_chunk(pool);
}

size_t changes_arena_room(const struct changes_arena *arena, size_t chunks_left_out) {
    size_t free_count = arena->pool->free_count;
    size_t chunks = free_count > chunks_left_out ? free_count - chunks_left_out : 0;

    return arena_sure(arena) + chunks * sure_per_chunk(arena->pool);
}

int changes_arena_reserve(struct changes_arena *arena, size_t size_bytes) {
    struct changes_pool *pool = arena->pool;
    size_t sure = arena_sure(arena);
    size_t chunks;

    if (size_bytes <= sure) {
        return 0;
    }
    chunks = (size_bytes - sure + sure_per_chunk(pool) - 1) / sure_per_chunk(pool);
    if (chunks > pool->free_count) {
        return -ERR_NO_SPACE;
    }
    for (; chunks > 0; chunks--) {
        uint32_t chunk = pool_take(pool);

        pool->next_chunk[chunk] = arena->spare_first;
        arena->spare_first = chunk;
        arena->spare_count++;
    }
    return 0;
}

static void arena_make_room(struct changes_arena *arena, size_t size_bytes) {
    uint32_t chunk = arena->spare_first;

    assert(size_bytes <= ITEM_BYTES_MAX);
    if (arena->back - arena->front >= size_bytes) {
        return;
    }
    assert(arena->spare_count > 0);
    arena->spare_first = arena->pool->next_chunk[chunk];
    arena->spare_count--;
    arena_fill(arena, chunk);
}

changes_ref changes_arena_front(struct changes_arena *arena, size_t size_bytes) {
    size_t at;

    assert(size_bytes % CHANGES_CACHE_LINE == 0);
    arena_make_room(arena, size_bytes);
    at = arena->front;
    arena->front += size_bytes;
    return (changes_ref)(at / CHANGES_REF_UNIT);
}

changes_ref changes_arena_back(struct changes_arena *arena, size_t size_bytes) {
    assert(size_bytes % CHANGES_REF_UNIT == 0);
    arena_make_room(arena, size_bytes);
    arena->back -= size_bytes;
    return (changes_ref)(arena->back / CHANGES_REF_UNIT);
}
