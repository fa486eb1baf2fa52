/* The pool of pieces. */
#include "client/piece.h"
#include "client/operation.h"
#include <assert.h>
#include <stdlib.h>

int piece_pool_init(struct piece_pool *pool, uint32_t count) {
    *pool = (struct piece_pool){0};
    list_init(&pool->waiting);
    pool->memory = calloc(count, sizeof *pool->memory);
    pool->long_memory = calloc((size_t)PIECE_LONG_COUNT * PIECE_LONG_CHECKSUMS, sizeof(uint32_t));
    if (!pool->memory || !pool->long_memory) {
        piece_pool_deinit(pool);
        return -ERR_NO_MEMORY;
    }
    for (uint32_t i = 0; i < count; i++) {
        pool->memory[i].next_free = pool->free;
        pool->free = &pool->memory[i];
    }
    while (pool->long_free_count < PIECE_LONG_COUNT) {
        pool->long_free[pool->long_free_count] =
            pool->long_memory + (size_t)pool->long_free_count * PIECE_LONG_CHECKSUMS;
        pool->long_free_count++;
    }
    return 0;
}

void piece_pool_deinit(struct piece_pool *pool) {
    free(pool->memory);
    free(pool->long_memory);
    *pool = (struct piece_pool){0};
}

static bool piece_is_there(const struct piece_pool *pool, uint32_t checksum_count) {
    return pool->free && (checksum_count <= PIECE_CHECKSUMS || pool->long_free_count > 0);
}

struct piece *piece_get(struct piece_pool *pool, struct operation *operation,
                        uint32_t checksum_count) {
    struct piece *piece;
    bool first = list_is_empty(&pool->waiting) || pool->turn == operation;

    assert(checksum_count <= PIECE_LONG_CHECKSUMS);
    if (!first || !piece_is_there(pool, checksum_count)) {
        list_push_back(&pool->waiting, &operation->node);
        atomic_fetch_add_explicit(&pool->wait_count, 1, memory_order_relaxed);
        return NULL;
    }
    piece = pool->free;
    pool->free = piece->next_free;
    piece->operation = operation;
    piece->retried = false;
    piece->long_checksums = NULL;
    if (checksum_count > PIECE_CHECKSUMS) {
        piece->long_checksums = pool->long_free[--pool->long_free_count];
    }
    return piece;
}

void piece_put(struct piece_pool *pool, struct piece *piece) {
    if (piece->long_checksums) {
        pool->long_free[pool->long_free_count++] = piece->long_checksums;
        piece->long_checksums = NULL;
    }
    piece->operation = NULL;
    piece->next_free = pool->free;
    pool->free = piece;
}

/* One pass over those that wait: whoever finds too little goes to the end, not to be asked twice. */
void piece_wake(struct piece_pool *pool) {
    struct list_node *last = pool->waiting.head.previous;
    struct list_node *node = NULL;

    while (node != last && pool->free && (node = list_pop_front(&pool->waiting)) != NULL) {
        struct operation *operation = CONTAINER_OF(node, struct operation, node);

        pool->turn = operation;
        operation->step(operation);
        pool->turn = NULL;
    }
}
