/* Keys of rows: 24 bytes, big-endian, so that memcmp order is numeric order.
 *
 *     space:8 | slot:16 | type:8 | id:64 | generation:32 | index:64
 *
 * space 0 holds the rows of the log's owner (sessions, counters, queues), space 1 the rows of
 * slots (of buckets, on an OST). All rows of a slot are one range. What the fields mean for each
 * type is said in meta/meta_format.h and store/store_format.h. */
#pragma once
#include "base/endian.h"
#include "base/types.h"

enum { KV_KEY_BYTES = 24, KV_SPACE_OWNER = 0, KV_SPACE_SLOT = 1 };

struct kv_key {
    uint8_t bytes[KV_KEY_BYTES];
};

struct kv_key_fields {
    uint8_t space;
    uint16_t slot;
    uint8_t type;
    uint64_t id;
    uint32_t generation;
    uint64_t index;
};

static inline struct kv_key kv_key_make(struct kv_key_fields fields) {
    struct kv_key key;

    key.bytes[0] = fields.space;
    store_be16(key.bytes + 1, fields.slot);
    key.bytes[3] = fields.type;
    store_be64(key.bytes + 4, fields.id);
    store_be32(key.bytes + 12, fields.generation);
    store_be64(key.bytes + 16, fields.index);
    return key;
}

static inline struct kv_key_fields kv_key_split(const struct kv_key *key) {
    return (struct kv_key_fields){
        .space = key->bytes[0],
        .slot = load_be16(key->bytes + 1),
        .type = key->bytes[3],
        .id = load_be64(key->bytes + 4),
        .generation = load_be32(key->bytes + 12),
        .index = load_be64(key->bytes + 16),
    };
}

static inline int kv_key_compare(const struct kv_key *a, const struct kv_key *b) {
    return memcmp(a->bytes, b->bytes, KV_KEY_BYTES);
}
