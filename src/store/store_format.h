/* What an OST keeps: rows of its kv, notes in its log, the label of its data file.
 *
 *     space 1, slot = bucket of the ino, type C, id = ino, generation = of the chunks
 *         index = chunk << 11                  struct store_head
 *         index = chunk << 11 | 1 + segment    struct store_segment: 16 blocks and their checksums
 *         index = chunk << 11 | 2044 + part    struct store_promise: which holes are promised
 *     space 0, slot 0
 *         B  index = row        struct store_bitmap: 8,192 blocks, bit 1 = in use
 *         S  id = session       struct store_session
 *         F, E                  struct store_fence, id = session; kv/ended_list.h
 *         G                     struct store_state
 *         P                     struct store_promised: holes that are promised, of all chunks
 *         M  ino, generation    struct store_mark: of a truncated file, see cut_mark.c
 *
 * Little-endian and packed; reserved bytes are zero. A row may be shorter than its struct: what is
 * missing is zero. Block 0 of the data file is its label, so in a segment it means a hole. */
#pragma once
#include "base/err.h"
#include "kv/kv_key.h"
#include "store/promise_format.h"

enum {
    STORE_FORMAT = 1,
    STORE_FORMAT_PROMISING = 2, /* of a head with a promise */
    STORE_INDEX_BITS = 11,      /* head and up to 1,024 segments of a chunk */
    STORE_INDEX_PROMISE = (1 << STORE_INDEX_BITS) - STORE_PROMISE_ROWS,
    STORE_BITMAP_BITS = 8192
};
enum store_row {
    STORE_ROW_CHUNK = 'C',
    STORE_ROW_BITMAP = 'B',
    STORE_ROW_SESSION = 'S',
    STORE_ROW_FENCE = 'F',
    STORE_ROW_ENDED = 'E',
    STORE_ROW_STATE = 'G',
    STORE_ROW_MARK = 'M',
    STORE_ROW_PROMISED = 'P',
};

/* Bytes of the chunk at or beyond length are zeros or holes, in the stored blocks too. A head
 * without a promise has the first format, and ends before promise_call. */
struct __attribute__((packed)) store_head {
    uint8_t format;
    uint8_t promise; /* enum store_promise_kind */
    uint8_t reserved[2];
    uint32_t chunk_bytes;
    uint64_t version; /* rises with each write or cut */
    uint32_t length;
    uint32_t truncate_seq;
    uint64_t epoch;
    uint32_t block_count;  /* blocks in use */
    uint32_t promised;     /* holes that are promised */
    uint64_t promise_call; /* that may take back what it has added to the promise; 0: none */
};
_Static_assert(sizeof(struct store_head) == 48, "stored");
enum { STORE_HEAD_BYTES = offsetof(struct store_head, promise_call) };

struct __attribute__((packed)) store_entry {
    uint8_t block[6];
    uint32_t crc; /* of the whole block; CHUNK_CRC_DAMAGED: of none */
};
_Static_assert(sizeof(struct store_entry) == 10, "stored");

struct __attribute__((packed)) store_segment {
    uint8_t format;
    uint8_t reserved;
    struct store_entry entries[BLOCKS_PER_SEGMENT];
};
_Static_assert(sizeof(struct store_segment) == 162, "stored");

struct __attribute__((packed)) store_bitmap {
    uint8_t format;
    uint8_t reserved[7];
    uint8_t bits[STORE_BITMAP_BITS / 8];
};
_Static_assert(sizeof(struct store_bitmap) == 1032, "stored");

struct __attribute__((packed)) store_session {
    uint8_t format, reserved;
    uint16_t window; /* that it was granted (kv/windows.h) */
    uint32_t node;
    uint64_t incarnation;
};
_Static_assert(sizeof(struct store_session) == 16, "stored");
/* This incarnation of a session and those below it are refused. */
struct __attribute__((packed)) store_fence {
    uint8_t format;
    uint8_t reserved[7];
    uint64_t incarnation;
};
_Static_assert(sizeof(struct store_fence) == 16, "stored");

struct __attribute__((packed)) store_mark {
    uint8_t format;
    uint8_t reserved[3];
    uint32_t truncate_seq;
};
_Static_assert(sizeof(struct store_mark) == 8, "stored");

struct __attribute__((packed)) store_state {
    uint8_t format;
    uint8_t labelled; /* 1: the data file bears the label */
    uint8_t reserved[2];
    uint32_t target;
    uint64_t label; /* drawn when the target was formatted; the data file bears it too */
};
_Static_assert(sizeof(struct store_state) == 16, "stored");

/* Note of a small write: its bytes lie in the ring's data area until the sync point. */
struct __attribute__((packed)) store_note {
    uint8_t format;
    uint8_t reserved[3];
    uint32_t block_count;
    uint64_t block;
    uint64_t ring_offset;
};
_Static_assert(sizeof(struct store_note) == 24, "stored");

/* The reply in the outcome of a write; position is its record's. Older ones end before blocks. */
struct __attribute__((packed)) store_write_outcome {
    uint64_t version, position;
    uint32_t blocks, blocks_before; /* of the chunk */
};
_Static_assert(sizeof(struct store_write_outcome) == 24, "stored");

static inline uint64_t store_entry_block(const struct store_entry *entry) {
    uint64_t block = 0;
    memcpy(&block, entry->block, sizeof entry->block);
    return block;
}

static inline void store_entry_set(struct store_entry *entry, uint64_t block, uint32_t crc) {
    memcpy(entry->block, &block, sizeof entry->block);
    entry->crc = crc;
}

/* All chunks of a file on one OST are in one bucket, spread evenly over the 16 bits. */
static inline uint16_t store_bucket(struct ino ino) {
    return (uint16_t)(((ino.value ^ ino.value >> 29) * UINT64_C(0x9e3779b97f4a7c15)) >> 48);
}

/* Of the rows of a chunk, by their number behind its head. */
static inline bool store_row_is_segment(uint64_t row) {
    return row > 0 && row < STORE_INDEX_PROMISE;
}

static inline struct kv_key store_owner_key(enum store_row type, uint64_t id, uint64_t index) {
    return kv_key_make((struct kv_key_fields){
        .space = KV_SPACE_OWNER, .type = (uint8_t)type, .id = id, .index = index});
}
