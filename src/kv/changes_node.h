/* Nodes of the tree in changes: their layout and the search in one.
 *
 *     leaf:  count | keys, sorted, then all ones | values (where, size, capacity) | neighbours
 *     inner: count | keys, sorted, then all ones | children, one more than keys
 *
 * Child i holds what is below key i and not below key i - 1. A node is 16 cache lines; a search
 * asks for all of them at once, so that a cold node costs about one miss. Keys are kept as three
 * native words.
 *
 * A search looks at the last key of each group of keys, then at the keys of one group: two rounds
 * of comparisons that do not wait for each other, where a binary search would wait in each of five
 * or six. For that, places without a key hold the highest key there is. */
#pragma once
#include "kv/changes_pool.h"
#include "kv/kv_key.h"
#include <assert.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

enum {
    LEAF_GROUPS = 4,
    LEAF_GROUP_KEYS = 8,
    LEAF_ROWS_MAX = LEAF_GROUPS * LEAF_GROUP_KEYS - 1,
    INNER_GROUPS = 6,
    INNER_GROUP_KEYS = 6,
    INNER_KEYS_MAX = INNER_GROUPS * INNER_GROUP_KEYS - 1,
    TREE_LEVELS_MAX = 12,
    VALUE_DELETED = 0xFFFF,
};
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

/* 1 when a is below b, else 0, without a branch: whether a - b borrows. */
static inline unsigned key_less(const struct key_words *a, const struct key_words *b) {
#ifdef __x86_64__
    unsigned long long difference;
    unsigned char borrow = _subborrow_u64(0, a->word[2], b->word[2], &difference);

    borrow = _subborrow_u64(borrow, a->word[1], b->word[1], &difference);
    return _subborrow_u64(borrow, a->word[0], b->word[0], &difference);
#else
    const uint64_t *x = a->word, *y = b->word;
    unsigned tail = (unsigned)(x[1] < y[1]) | ((unsigned)(x[1] == y[1]) & (unsigned)(x[2] < y[2]));

    return (unsigned)(x[0] < y[0]) | ((unsigned)(x[0] == y[0]) & tail);
#endif
}

static inline bool key_equal(const struct key_words *a, const struct key_words *b) {
    return a->word[0] == b->word[0] && a->word[1] == b->word[1] && a->word[2] == b->word[2];
}

/* How many of the keys are below key (up_to: at or below). */
__attribute__((always_inline)) static inline unsigned
keys_count(const struct key_words *keys, unsigned groups, unsigned group_keys,
           const struct key_words *key, bool up_to) {
    unsigned group = 0, before;

    for (unsigned i = 1; i < groups; i++) {
        const struct key_words *last = &keys[i * group_keys - 1];

        group += up_to ? 1 - key_less(key, last) : key_less(last, key);
    }
    keys += group * group_keys;
    before = group * group_keys;
    for (unsigned i = 0; i + 1 < group_keys; i++) {
        before += up_to ? 1 - key_less(key, &keys[i]) : key_less(&keys[i], key);
    }
    return before;
}

static inline unsigned leaf_keys_below(const struct leaf *leaf, const struct key_words *key) {
    return keys_count(leaf->keys, LEAF_GROUPS, LEAF_GROUP_KEYS, key, false);
}

/* The highest key of all is as high as the places without a key. */
static inline unsigned leaf_keys_to(const struct leaf *leaf, const struct key_words *key) {
    unsigned count = keys_count(leaf->keys, LEAF_GROUPS, LEAF_GROUP_KEYS, key, true);

    return MIN(count, leaf->count);
}

static inline unsigned inner_keys_to(const struct inner *inner, const struct key_words *key) {
    unsigned count = keys_count(inner->keys, INNER_GROUPS, INNER_GROUP_KEYS, key, true);

    return MIN(count, inner->count);
}

/* Takes the keys from a place on out of the node. */
static inline void keys_clear(struct key_words *keys, unsigned from, unsigned to) {
    memset(&keys[from], 0xFF, (to - from) * sizeof keys[0]);
}

static inline void node_prefetch(const void *node) {
    for (size_t at = 0; at < CHANGES_NODE_BYTES; at += CHANGES_CACHE_LINE) {
        __builtin_prefetch((const uint8_t *)node + at);
    }
}
