/* Nodes of the tree in changes: their layout and the search in one.
 *
 *     leaf:  count | keys, sorted  | values (where, size, capacity) | neighbours
 *     inner: count | keys, sorted  | children, one more than keys
 *
 * Child i holds what is below key i and not below key i - 1. A node is 16 cache lines; a search
 * asks for all of them at once, so that a cold node costs about one miss. Keys are kept as three
 * native words, compared without branches. */
#pragma once
#include "kv/changes_pool.h"
#include "kv/kv_key.h"
#include <assert.h>

enum { LEAF_ROWS_MAX = 31, INNER_KEYS_MAX = 35, TREE_LEVELS_MAX = 12, VALUE_DELETED = 0xFFFF };
#define CHANGES_REF_NONE UINT32_MAX
#define INSERTED_NONE UINT16_MAX

struct key_words {
    uint64_t word[3];
};

struct node_value {
    changes_ref ref;
    uint16_t size; /* VALUE_DELETED: a tombstone, whose space a later put may use */
    uint16_t capacity;
};

/* inserted: where the last row or child went in, so that a run of ascending keys is noticed. */
struct leaf {
    uint16_t count;
    uint16_t inserted;
    changes_ref next;
    changes_ref previous;
    uint32_t reserved;
    struct key_words keys[LEAF_ROWS_MAX];
    struct node_value values[LEAF_ROWS_MAX];
};

struct inner {
    uint16_t count;
    uint16_t inserted;
    uint32_t reserved[3];
    struct key_words keys[INNER_KEYS_MAX];
    changes_ref children[INNER_KEYS_MAX + 1];
};

static_assert(sizeof(struct leaf) <= CHANGES_NODE_BYTES, "a leaf is a node");
static_assert(sizeof(struct inner) <= CHANGES_NODE_BYTES, "an inner node is a node");

static inline struct key_words key_words_of(const struct kv_key *key) {
    return (struct key_words){
        {load_be64(key->bytes), load_be64(key->bytes + 8), load_be64(key->bytes + 16)}};
}

static inline struct kv_key key_of_words(const struct key_words *words) {
    struct kv_key key;

    store_be64(key.bytes, words->word[0]);
    store_be64(key.bytes + 8, words->word[1]);
    store_be64(key.bytes + 16, words->word[2]);
    return key;
}

static inline unsigned key_less(const struct key_words *a, const struct key_words *b) {
    const uint64_t *x = a->word, *y = b->word;
    unsigned tail = (unsigned)(x[1] < y[1]) | ((unsigned)(x[1] == y[1]) & (unsigned)(x[2] < y[2]));

    return (unsigned)(x[0] < y[0]) | ((unsigned)(x[0] == y[0]) & tail);
}

static inline bool key_equal(const struct key_words *a, const struct key_words *b) {
    return a->word[0] == b->word[0] && a->word[1] == b->word[1] && a->word[2] == b->word[2];
}

/* How many of the keys are below key. */
static inline unsigned keys_below(const struct key_words *keys, unsigned count,
                                  const struct key_words *key) {
    unsigned base = 0;

    while (count > 0) {
        unsigned half = (count + 1) / 2;

        base += key_less(&keys[base + half - 1], key) * half;
        count -= half;
    }
    return base;
}

/* How many of the keys are at or below key. */
static inline unsigned keys_to(const struct key_words *keys, unsigned count,
                               const struct key_words *key) {
    unsigned base = 0;

    while (count > 0) {
        unsigned half = (count + 1) / 2;

        base += (1 - key_less(key, &keys[base + half - 1])) * half;
        count -= half;
    }
    return base;
}

static inline void node_prefetch(const void *node) {
    for (size_t at = 0; at < CHANGES_NODE_BYTES; at += CHANGES_CACHE_LINE) {
        __builtin_prefetch((const uint8_t *)node + at);
    }
}
