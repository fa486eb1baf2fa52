/* Promised holes of one chunk: what fallocate has set aside for blocks that are not written yet.
 *
 *     bits      |..####..####|   promised as long as they are holes
 *     blocks    |B.BB........|   (B: written)
 *     promised        2 + 4      the head's count: holes whose bit is set
 *
 * A write into a promised hole spends it, and leaves the bit. A hole that is made loses it, unless
 * it is made to be written again. before: the bits as they were when the head's promise_call came;
 * what that call has added it may take back.
 *
 * The head alone says that none are promised, or all; else promise rows have the bits.
 * Thread: the OST's. Memory: the user's. */
#pragma once
#include "kv/kv.h"
#include "store/blocks.h"
#include "store/store_format.h"

struct chunk_id;

struct promise {
    uint32_t block_count; /* of the chunk */
    uint32_t rows;        /* a bit for each promise row that is there */
    uint8_t bits[STORE_CHUNK_BLOCKS_MAX / 8];
    uint8_t before[STORE_CHUNK_BLOCKS_MAX / 8];
};

/* What the head and the promise rows say. -ERR_PENDING, -ERR_CORRUPT, -ERR_NEWER_FORMAT. */
MUST_CHECK int promise_load(struct kv *kv, const struct chunk_id *id, const struct store_head *head,
                            struct promise *ret_promise);
static inline bool promise_has(const struct promise *promise, uint64_t block) {
    return promise->bits[block / 8] >> (block % 8) & 1;
}
/* How many bits of the range are set. */
uint32_t promise_count(const struct promise *promise, struct extent range);
void promise_add(struct promise *promise, struct extent range);
/* The range is promised no more, and was not before. */
void promise_drop(struct promise *promise, struct extent range);
/* Nobody may take anything back any more; what is promised now was so before. */
void promise_forget_before(struct promise *promise);
void promise_keep_before(struct promise *promise);
/* Takes back one block of the range that was added since; false: there is no further one. */
bool promise_take_back(struct promise *promise, struct extent *range, uint64_t *ret_block);
/* How the head says it. */
enum store_promise_kind promise_kind(const struct promise *promise);

/* What promise_stage writes at the most, as far as the promise is now. */
struct promise_cost {
    uint32_t rows;
    uint32_t value_bytes;
    uint32_t record_bytes;
};
struct promise_cost promise_cost(const struct promise *promise);
MUST_CHECK int promise_stage(struct kv *kv, const struct chunk_id *id,
                             const struct promise *promise);
