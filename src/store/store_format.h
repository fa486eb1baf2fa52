/* What an OST keeps: rows of its kv, notes in its log, the label of its data file.
 *
 *     space 1, slot = bucket of the ino, type C, id = ino, generation = of the chunks
 *         index = chunk << 11                  struct store_head
 *         index = chunk << 11 | 1 + segment    struct store_segment: 16 blocks and their checksums
 *     space 0, slot 0
 *         B  index = row        struct store_bitmap: 8,192 blocks, bit 1 = in use
 *         S  id = session       struct store_session
 *         F, E                  struct store_fence, id = session; kv/ended_list.h
 *         G                     struct store_state
 *         M  ino, generation    struct store_mark: of a truncated file, see cut_mark.c
 *
 * Little-endian and packed; reserved bytes are zero. A row may be shorter than its struct: what is
 * missing is zero. Block 0 of the data file is its label, so in a segment it means a hole. */
#pragma once
#include "base/err.h"
#include "kv/kv_key.h"

enum {
    STORE_FORMAT = 1,
    STORE_INDEX_BITS = 11, /* head and up to 1,024 segments of a chunk */
    STORE_BITMAP_BITS = 8192,
    STORE_CHUNK_BLOCKS_MAX = 16384
};
enum store_row {
    STORE_ROW_CHUNK = 'C',
    STORE_ROW_BITMAP = 'B',
    STORE_ROW_SESSION = 'S',
    STORE_ROW_FENCE = 'F',
    STORE_ROW_ENDED = 'E',
    STORE_ROW_STATE = 'G',
    STORE_ROW_MARK = 'M',
};

/* Bytes of the chunk at or beyond length are zeros or holes, in the stored blocks too. */
struct __attribute__((packed)) store_head {
    uint8_t format;
    uint8_t reserved[3];
    uint32_t chunk_bytes;
    uint64_t version; /* rises with each write or cut */
    uint32_t length;
    uint32_t truncate_seq;
    uint64_t epoch;
    uint32_t block_count; /* blocks in use */
    uint32_t reserved_too;
};
_Static_assert(sizeof(struct store_head) == 40, "stored");

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

/* Block 0 of the data file, zeros behind it. Written once the state row is on disk; then the row
 * says so: neither index nor data file without the other is taken for a new target. */
struct __attribute__((packed)) store_label {
    uint8_t magic[8];
    uint32_t format;
    uint32_t target;
    uint64_t label;
    uint32_t reserved;
    uint32_t crc; /* of all before it */
};
_Static_assert(sizeof(struct store_label) == 32, "stored");

/* The reply in the outcome of a write; position is its record's. Older ones end before blocks. */
struct __attribute__((packed)) store_write_outcome {
    uint64_t version, position;
    uint32_t blocks, blocks_before; /* of the chunk */
};
_Static_assert(sizeof(struct store_write_outcome) == 24, "stored");

#define STORE_LABEL_MAGIC "SHOALDAT"
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

static inline struct kv_key store_owner_key(enum store_row type, uint64_t id, uint64_t index) {
    return kv_key_make((struct kv_key_fields){
        .space = KV_SPACE_OWNER, .type = (uint8_t)type, .id = id, .index = index});
}
