/* The pool of pieces. */
#include "client/piece.h"
#include "client/operation.h"
#include <assert.h>
#include <stdlib.h>

int piece_pool_init(struct piece_pool *pool, uint32_t count) {
    *pool = (struct piece_pool){0};
    list_init(&pool->waiting);
    pool->memory = calloc(count, sizeof *pool->memory);
    if (!pool->memory) {
        return -ERR_NO_MEMORY;
    }
    for (uint32_t i = 0; i < count; i++) {
        pool->memory[i].next_free = pool->free;
        pool->free = &pool->memory[i];
    }
    pool->count = count;
    pool->free_count = count;
    return 0;
}

void piece_pool_deinit(struct piece_pool *pool) {
    free(pool->memory);
    *pool = (struct piece_pool){0};
}

struct piece *piece_get(struct piece_pool *pool, struct operation *operation) {
    struct piece *piece = pool->free;
    bool first = list_is_empty(&pool->waiting) || pool->turn == operation;

    assert((pool->free_count == 0) == !piece && !list_contains(&operation->node));
    if (!first || !piece) {
        list_push_back(&pool->waiting, &operation->node);
        atomic_fetch_add_explicit(&pool->wait_count, 1, memory_order_relaxed);
        return NULL;
    }
    assert(!piece->operation);
    pool->free = piece->next_free;
    pool->free_count--;
    piece->operation = operation;
    piece->retried = false;
    return piece;
}

void piece_put(struct piece_pool *pool, struct piece *piece) {
    assert(piece->operation && pool->free_count < pool->count);
    pool->free_count++;
    piece->operation = NULL;
    piece->next_free = pool->free;
    pool->free = piece;
}

/* One pass over those that wait: whoever finds too little goes to the end and has had its turn. */
void piece_wake(struct piece_pool *pool) {
    struct list_node *last = pool->waiting.head.previous;
    struct list_node *node = NULL;

    assert(!pool->turn);
    while (node != last && pool->free && (node = list_pop_front(&pool->waiting)) != NULL) {
        struct operation *operation = CONTAINER_OF(node, struct operation, node);

        pool->turn = operation;
        operation->step(operation);
        pool->turn = NULL;
    }
}
