/* The rows of chunks, and changes of them: which blocks hold what, in one transaction with the
 * bitmap rows that say which blocks are in use.
 *
 *     change_begin -> change_entries, change_holes, change_row_delete (read, collect)
 *                  -> change_need (reads the bitmaps, says what all of it takes)
 *     kv_begin     -> change_head, change_stage -> change_commit, or kv_abort
 *
 * Of a chunk with promised holes, or that gets some, change_promise comes first, and
 * change_promised before change_need.
 *
 * All rows are read before the transaction begins: up to change_need anything may answer
 * -ERR_PENDING, and the request runs again from its beginning; behind it nothing does. What a
 * change frees goes to the quarantine of blocks at its commit.
 *
 * Thread: the OST's. Memory: taken at init. */
#pragma once
#include "kv/kv.h"
#include "store/blocks.h"
#include "store/promise.h"
#include "store/store_format.h"

struct chunk_id {
    struct ino ino;
    uint32_t generation;
    uint64_t chunk;
};

/* block 0: a hole. */
struct block_entry {
    uint64_t block;
    uint32_t crc;
};

/* The stored checksum of a block that a cut went through and that could not be read: none of its
 * bytes are known, and what the disk may give one day can be older than the cut. The content of one
 * block in 2^32 has it by chance, and is then like any other. */
enum { CHUNK_CRC_DAMAGED = 0x0dead0c7 };

enum { CHANGE_ROWS_MAX = 288 };

struct change_row {
    struct kv_key key;
    bool deleted;
    uint8_t first; /* entries [first, first + count) get new content */
    uint8_t count;
    size_t size;                       /* of the row as it was; 0: missing */
    const struct block_entry *entries; /* NULL: holes */
};

struct change_extent {
    struct extent extent;
    bool used;
};

struct change {
    struct kv *kv;
    struct blocks *blocks;
    struct change_row *rows;
    struct change_extent *extents;
    struct bytes *bitmaps; /* as read, in order of the sorted extents' rows */
    uint32_t row_count, extent_count, extents_max, bitmap_count;
    int32_t block_delta; /* blocks that the chunk gains */

    bool has_promise; /* promise is that of the chunk at hand */
    bool promise_changed;
    struct promise promise;
    uint32_t promised_holes; /* of the ranges at hand, before the change */
    int64_t promised_delta;  /* holes that are promised more than before */
};

MUST_CHECK int change_init(struct change *change, struct blocks *blocks, uint32_t extents_max);
void change_deinit(struct change *change);

struct kv_key chunk_key(const struct chunk_id *id, uint64_t row); /* 0: head, 1 + i: segment i */
static inline struct kv_key chunk_head_key(const struct chunk_id *id) {
    return chunk_key(id, 0);
}

/* -ERR_NOT_FOUND, -ERR_PENDING, -ERR_CORRUPT, -ERR_NEWER_FORMAT. */
MUST_CHECK int chunk_head_get(struct kv *kv, const struct chunk_id *id,
                              struct store_head *ret_head);
MUST_CHECK int chunk_head_check(struct bytes value, struct store_head *ret_head);
/* Entries of blocks [first, first + count); missing rows are holes. */
MUST_CHECK int chunk_entries_get(struct kv *kv, const struct chunk_id *id, struct extent range,
                                 struct block_entry *ret_entries);

void change_begin(struct change *change, struct kv *kv);
/* New content for the range; entries stay valid until change_stage. */
MUST_CHECK int change_entries(struct change *change, const struct chunk_id *id, struct extent range,
                              const struct block_entry *entries);
/* Holes in the range; rows that are all in it go. */
MUST_CHECK int change_holes(struct change *change, const struct chunk_id *id, struct extent range);
/* A head or segment, as kv_next gave it, goes with its blocks. */
MUST_CHECK int change_row_delete(struct change *change, const struct kv_key *key,
                                 struct bytes value);
/* The chunk's promise as it is, by which ranges that follow count promised_holes; to be changed. */
MUST_CHECK int change_promise(struct change *change, const struct chunk_id *id,
                              const struct store_head *head);
/* So many of its holes are promised from now on; changed: and other ones than before. */
MUST_CHECK int change_promised(struct change *change, struct store_head *head, uint64_t promised,
                               bool changed);
/* Another checksum for a block that stays where it is; entry names it, and is valid until
 * change_stage. */
MUST_CHECK int change_checksum(struct change *change, const struct chunk_id *id, uint64_t block,
                               const struct block_entry *entry);
/* What the transaction takes: rows of chunks, which blocks are in use from now on, and a head.
 * -ERR_CORRUPT where the bitmap contradicts the entries. */
MUST_CHECK int change_need(struct change *change, struct kv_need *ret_need);
/* All rows but the head; here the checksums of new entries count. */
MUST_CHECK int change_stage(struct change *change);
/* existed: the row has been read, and is there. With the promise's rows, if they have changed. */
MUST_CHECK int change_head(struct change *change, const struct chunk_id *id,
                           const struct store_head *head, bool existed);
/* A chunk goes of which nothing is left, with its promise. */
MUST_CHECK int change_head_delete(struct change *change, const struct chunk_id *id);
/* Answers the position. Reads that begin now are numbered from read_number on. */
uint64_t change_commit(struct change *change, uint64_t read_number);
