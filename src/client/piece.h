/* Pieces: the calls of requests that touch more than one chunk, or big parts of one.
 *
 * An operation that finds none free waits in order. A piece carries room for the checksums of its
 * call, or for the bytes of a small file.
 * Thread: the shard's step. Memory: from init to deinit. */
#pragma once
#include "client/errand.h"
#include "layout/layout.h"

struct operation;

/* What one call may carry at most: as many checksums as there is room for. */
enum { PIECE_CHECKSUMS = INLINE_BYTES_MAX / 4, CALL_BYTES_MAX = PIECE_CHECKSUMS * BLOCK_BYTES };

struct piece {
    struct piece *next_free;
    struct operation *operation;
    int (*take)(struct operation *operation, const struct errand *errand); /* fan.h */
    bool retried;
    struct errand errand;
    union {
        uint32_t checksums[PIECE_CHECKSUMS];
        uint8_t data[INLINE_BYTES_MAX];
    };
};

struct piece_pool {
    struct piece *memory;
    struct piece *free;
    uint32_t count, free_count;
    struct list waiting;    /* operations */
    struct operation *turn; /* the one that may take a piece before those that wait */
    _Atomic uint64_t wait_count;
};

MUST_CHECK int piece_pool_init(struct piece_pool *pool, uint32_t count);
void piece_pool_deinit(struct piece_pool *pool);

/* NULL, and the operation waits, when there is none or others wait already: its step runs again
 * then. */
struct piece *piece_get(struct piece_pool *pool, struct operation *operation);
/* Gives it back. Who does so calls piece_wake as the last thing of its step. */
void piece_put(struct piece_pool *pool, struct piece *piece);
/* Lets those that have waited longest go on. */
void piece_wake(struct piece_pool *pool);
