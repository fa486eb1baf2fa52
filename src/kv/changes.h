/* Changed rows in memory, ordered by key: a B+tree whose nodes and values lie in chunks of a pool,
 * so that a whole generation is given back at once and nothing is ever freed singly.
 *
 * A deleted row stays as a tombstone: it hides the row of the base below.
 *
 * Thread: one at a time.  Memory: the pool's, taken at start. A value stays where it is until its
 * row is put or deleted again (or the generation ends). */
#pragma once
#include "kv/kv_key.h"
#include "base/err.h"

/* Put answers -ERR_INVALID above it. */
enum { CHANGES_VALUE_BYTES_MAX = 4096 };

struct changes_pool;
struct changes;

enum changes_state { CHANGES_ABSENT, CHANGES_PRESENT, CHANGES_DELETED };

/* One malloc of size_bytes at start, of which only what is used becomes resident; given out in
 * chunks of 1 MiB (64 KiB when size_bytes is below 8 MiB). A generation has at least one chunk.
 * -ERR_NO_MEMORY; -ERR_INVALID below 128 KiB and above 32 GiB. */
MUST_CHECK int changes_pool_new(size_t size_bytes, struct changes_pool **ret_pool);
void changes_pool_free(struct changes_pool *pool);
size_t changes_pool_used_bytes(const struct changes_pool *pool);

size_t changes_pool_bytes(const struct changes_pool *pool);
/* (start) Makes it twice as large, elsewhere: each pointer into it, those to generations too, is
 * off by *ret_moved_bytes then. -ERR_NO_MEMORY, also beyond 32 GiB. */
MUST_CHECK int changes_pool_grow(struct changes_pool *pool, ptrdiff_t *ret_moved_bytes);
static inline struct changes *changes_moved(struct changes *changes, ptrdiff_t moved_bytes) {
    return (struct changes *)(void *)((uint8_t *)changes + moved_bytes);
}

/* Free chunks, so less than what a generation may still put into its own. */
size_t changes_pool_free_bytes(const struct changes_pool *pool);

/* Generations of one pool; -ERR_NO_SPACE when it has no chunk left. */
MUST_CHECK int changes_new(struct changes_pool *pool, struct changes **ret_changes);
/* All its chunks go back. Takes NULL. */
void changes_free(struct changes *changes);

/* Bytes of the pool that `rows` puts or deletes of value_bytes in all take at the worst, with every
 * split of the tree as it is now; and what can be had, so many free chunks left out. */
size_t changes_cost(const struct changes *changes, size_t rows, size_t value_bytes);
size_t changes_cost_of_new(size_t rows, size_t value_bytes); /* of an empty generation */
size_t changes_room(const struct changes *changes, size_t chunks_left_out);
/* Of a pool without any generation: what changes_room can answer at the most. */
size_t changes_pool_room(const struct changes_pool *pool);
size_t changes_pool_chunk_room(const struct changes_pool *pool); /* a chunk's part of it */
/* Sets aside what they cost, as changes_cost says, so that they cannot fail: -ERR_NO_SPACE now
 * rather than in the middle. Counts from the call, not on top of an earlier call. */
MUST_CHECK int changes_reserve(struct changes *changes, size_t cost_bytes);
/* Chunks that are set aside and empty; gives them back, when nothing more is put. */
size_t changes_spare_bytes(const struct changes *changes);
void changes_trim(struct changes *changes);

/* Copies value, which may lie within the row's old one. Answers the copy's place through ret_value
 * when it is not NULL. On -ERR_NO_SPACE (only beyond what was reserved) nothing has changed. */
MUST_CHECK int changes_put(struct changes *changes, const struct kv_key *key, struct bytes value,
                           uint8_t **ret_value);
MUST_CHECK int changes_delete(struct changes *changes, const struct kv_key *key);
/* Value is set when PRESENT, and may be written in place within its size. */
enum changes_state changes_find(const struct changes *changes, const struct kv_key *key,
                                struct bytes *ret_value);

/* The first row at or (unless inclusive) behind key, tombstones included; ABSENT at the end. */
enum changes_state changes_next(const struct changes *changes, const struct kv_key *key,
                                bool inclusive, struct kv_key *ret_key, struct bytes *ret_value);
/* The last row before key (exclusive), tombstones included. */
enum changes_state changes_previous(const struct changes *changes, const struct kv_key *key,
                                    struct kv_key *ret_key, struct bytes *ret_value);
size_t changes_row_count(const struct changes *changes);
/* For tests: what does not hold, though it always must, in these generations, which are all of the
 * pool; NULL: nothing. */
const char *changes_check(const struct changes_pool *pool, const struct changes *const *generations,
                          size_t count);
