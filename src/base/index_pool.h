/* Numbers 0 to capacity - 1, taken and put by any thread without a lock; the last one put is taken
 * first, as what belongs to it is still in the caches. Numbers never taken cost no memory.
 *
 * The top of the stack carries a tag that rises with each change, so that a thread that was held up
 * between reading the top and replacing it notices that others were there meanwhile. */
#pragma once
#include "base/types.h"
#include <stdatomic.h>
#include <stdlib.h>

#define INDEX_NONE UINT32_MAX

struct index_pool {
    _Atomic uint64_t top;   /* tag:32 | number + 1:32; the latter 0 when empty */
    _Atomic uint32_t fresh; /* those from here on were never taken */
    uint32_t capacity;
    _Atomic uint32_t *next; /* number + 1 of the one below */
};

/* False when memory is missing. */
static inline MUST_CHECK bool index_pool_init(struct index_pool *pool, uint32_t capacity) {
    *pool = (struct index_pool){.capacity = capacity};
    pool->next = calloc(capacity, sizeof(*pool->next));
    return pool->next != NULL;
}

static inline void index_pool_deinit(struct index_pool *pool) {
    free((void *)pool->next);
    pool->next = NULL;
}

static inline uint32_t index_pool_take_fresh(struct index_pool *pool) {
    uint32_t fresh = atomic_load(&pool->fresh);

    while (fresh < pool->capacity)
        if (atomic_compare_exchange_weak(&pool->fresh, &fresh, fresh + 1))
            return fresh;
    return INDEX_NONE;
}

/* INDEX_NONE when all are taken. */
static inline uint32_t index_pool_take(struct index_pool *pool) {
    uint64_t top = atomic_load(&pool->top);

    while ((uint32_t)top) {
        uint32_t below = atomic_load(&pool->next[(uint32_t)top - 1]);
        uint64_t wanted = ((top >> 32) + 1) << 32 | below;

        if (atomic_compare_exchange_weak(&pool->top, &top, wanted))
            return (uint32_t)top - 1;
    }
    return index_pool_take_fresh(pool);
}

static inline void index_pool_put(struct index_pool *pool, uint32_t index) {
    uint64_t top = atomic_load(&pool->top);

    do {
        atomic_store(&pool->next[index], (uint32_t)top);
    } while (
        !atomic_compare_exchange_weak(&pool->top, &top, ((top >> 32) + 1) << 32 | (index + 1)));
}

/* No number from here on was ever taken. */
static inline uint32_t index_pool_used(struct index_pool *pool) {
    return atomic_load(&pool->fresh);
}
