/* What an OST keeps of promised holes (promise.h): the part of store_format.h about it. */
#pragma once
#include "base/types.h"

enum {
    STORE_CHUNK_BLOCKS_MAX = 16384,
    STORE_PROMISE_BLOCKS = 4096, /* of a promise row */
    STORE_PROMISE_ROWS = 4       /* of a chunk */
};

/* Which of a chunk's holes are promised: none; all; or those that its promise row names. */
enum store_promise_kind { STORE_PROMISE_NONE, STORE_PROMISE_ALL, STORE_PROMISE_SOME };

/* A bit for each of its blocks that the chunk has: 1 = promised as long as it is a hole. With
 * has_before as many follow: those that were promised before the head's promise_call. */
struct __attribute__((packed)) store_promise {
    uint8_t format;
    uint8_t has_before;
    uint8_t reserved[6];
    uint8_t bits[2 * STORE_PROMISE_BLOCKS / 8];
};
_Static_assert(sizeof(struct store_promise) == 1032, "stored");
_Static_assert(STORE_PROMISE_BLOCKS *STORE_PROMISE_ROWS == STORE_CHUNK_BLOCKS_MAX, "all blocks");

struct __attribute__((packed)) store_promised {
    uint8_t format;
    uint8_t reserved[7];
    uint64_t block_count;
    uint64_t changes; /* how often it has changed */
};
_Static_assert(sizeof(struct store_promised) == 24, "stored");
