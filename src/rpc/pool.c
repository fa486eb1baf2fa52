/* The contract and the picture are in pool.h. */
#include "rpc/pool.h"
#include "rpc/worker.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { CACHE_LINE_BYTES = 64 };

/* Counters have one writer, so they need no read-modify-write. */
#define COUNTER_READ(counter) atomic_load_explicit(&(counter), memory_order_relaxed)
#define COUNTER_SET(counter, value) atomic_store_explicit(&(counter), (value), memory_order_relaxed)

static void free_push(struct pool *pool, struct pool_item *item) {
    item->next = pool->free;
    pool->free = item;
    COUNTER_SET(pool->free_count, COUNTER_READ(pool->free_count) + 1);
}

void *pool_object(struct pool *pool, uint32_t index) {
    assert(index < pool->object_count);
    return pool->memory + index * pool->stride_bytes;
}

int pool_init(struct pool *pool, const struct pool_options *options) {
    size_t stride_bytes =
        (options->object_bytes + CACHE_LINE_BYTES - 1) / CACHE_LINE_BYTES * CACHE_LINE_BYTES;
    uint64_t floor_count = 0;

    if (options->object_count == 0 || options->object_bytes < sizeof(struct pool_item) ||
        stride_bytes < options->object_bytes || stride_bytes > SIZE_MAX / options->object_count) {
        return -ERR_INVALID;
    }
    *pool = (struct pool){.worker = options->worker,
                          .name = options->name,
                          .stride_bytes = stride_bytes,
                          .object_count = options->object_count};
    for (int i = 0; i < MESSAGE_CLASS_COUNT; i++) {
        pool->floor_count[i] = (uint32_t)floor_count;
        floor_count += options->reserve_count[i];
    }
    if (floor_count >= options->object_count) {
        return -ERR_INVALID;
    }
    pool->memory = aligned_alloc(CACHE_LINE_BYTES, stride_bytes * options->object_count);
    if (!pool->memory) {
        return -ERR_NO_MEMORY;
    }
    memset(pool->memory, 0, stride_bytes * options->object_count);
    for (uint32_t i = options->object_count; i > 0; i--) {
        struct pool_item *item = pool_object(pool, i - 1);

        item->home = pool;
        free_push(pool, item);
    }
    COUNTER_SET(pool->free_count_min, options->object_count);
    return 0;
}

static void pool_collect(struct pool *pool) {
    struct pool_item *item;

    if (!atomic_load_explicit(&pool->returned, memory_order_relaxed)) {
        return;
    }
    /* Acquire: what the others wrote to the objects comes before what the next user does. */
    item = atomic_exchange_explicit(&pool->returned, NULL, memory_order_acquire);
    while (item) {
        struct pool_item *next = item->next;

        free_push(pool, item);
        item = next;
    }
}

void pool_deinit(struct pool *pool) {
    if (!pool || !pool->memory) {
        return;
    }
    pool_collect(pool);
    assert(COUNTER_READ(pool->free_count) == pool->object_count);
    free(TAKE_PTR(pool->memory));
}

void *pool_get(struct pool *pool, enum message_class message_class) {
    uint32_t floor_count = pool->floor_count[message_class];
    struct pool_item *item;
    uint32_t left;

    if (COUNTER_READ(pool->free_count) <= floor_count) {
        pool_collect(pool);
        if (COUNTER_READ(pool->free_count) <= floor_count) {
            COUNTER_SET(pool->refused_count[message_class],
                        COUNTER_READ(pool->refused_count[message_class]) + 1);
            return NULL;
        }
    }
    item = pool->free;
    pool->free = item->next;
    item->next = item;
    left = COUNTER_READ(pool->free_count) - 1;
    COUNTER_SET(pool->free_count, left);
    if (left < COUNTER_READ(pool->free_count_min)) {
        COUNTER_SET(pool->free_count_min, left);
    }
    COUNTER_SET(pool->got_count[message_class], COUNTER_READ(pool->got_count[message_class]) + 1);
    return item;
}

static void returned_push(struct pool *pool, struct pool_item *first, struct pool_item *last) {
    struct pool_item *newest = atomic_load_explicit(&pool->returned, memory_order_relaxed);

    do {
        last->next = newest;
    } while (!atomic_compare_exchange_weak_explicit(&pool->returned, &newest, first,
                                                    memory_order_release, memory_order_relaxed));
}

static void batch_send(struct pool_batch *batch) {
    returned_push(batch->pool, batch->first, batch->last);
    batch->first = NULL;
    batch->count = 0;
}

void worker_return_all(struct worker *worker) {
    for (uint32_t i = 0; i < worker->return_count; i++) {
        if (worker->returns[i].count > 0) {
            batch_send(&worker->returns[i]);
        }
    }
    worker->return_count = 0;
}

/* The worker's batch for a pool; when there are too many pools the first makes room. */
static struct pool_batch *batch_find(struct worker *worker, struct pool *pool) {
    struct pool_batch *batch = &worker->returns[0];

    for (uint32_t i = 0; i < worker->return_count; i++) {
        if (worker->returns[i].pool == pool) {
            return &worker->returns[i];
        }
    }
    if (worker->return_count < WORKER_RETURNS_MAX) {
        batch = &worker->returns[worker->return_count++];
    } else if (batch->count > 0) {
        batch_send(batch);
    }
    *batch = (struct pool_batch){.pool = pool};
    return batch;
}

void pool_put(void *object) {
    struct pool_item *item = object;
    struct worker *worker = worker_current();
    struct pool_batch *batch;

    if (!item) {
        return;
    }
    assert(item->next == item); /* Not put twice. */
    if (worker && worker == item->home->worker) {
        free_push(item->home, item);
    } else if (!worker || !worker->in_step) {
        returned_push(item->home, item, item);
    } else {
        batch = batch_find(worker, item->home);
        item->next = batch->first;
        batch->first = item;
        if (batch->count++ == 0) {
            batch->last = item;
        }
        if (batch->count == POOL_BATCH_MAX) {
            batch_send(batch);
        }
    }
}

struct pool_usage pool_usage(const struct pool *pool) {
    struct pool_usage usage = {
        .object_count = pool->object_count,
        .used_count = pool->object_count - COUNTER_READ(pool->free_count),
        .used_count_max = pool->object_count - COUNTER_READ(pool->free_count_min),
    };

    for (int i = 0; i < MESSAGE_CLASS_COUNT; i++) {
        usage.got_count[i] = COUNTER_READ(pool->got_count[i]);
        usage.refused_count[i] = COUNTER_READ(pool->refused_count[i]);
    }
    return usage;
}
