/* The tree of changed rows. See changes.h for the contract, changes_node.h for the nodes.
 *
 * Rows are never taken out, a deletion leaves a tombstone, so nodes are never merged and no leaf
 * but the first of an empty tree is without rows. A full node is split in the middle, unless it
 * is being filled by ascending keys: then it is split at the place of the newcomer, and what is
 * left behind stays full. That needs the previous row to have gone in right before and the place
 * to be in the upper half; so that no order of keys, descending ones included, leaves many nodes
 * almost empty.
 *
 * A put looks first at what it needs, and sets that aside in the arena before it changes a byte. */
#include "kv/changes.h"
#include "kv/changes_tree.h"

/* The inner nodes passed on the way to a leaf, the root first, and the child taken in each. */
struct tree_path {
    struct inner *nodes[TREE_LEVELS_MAX];
    unsigned children[TREE_LEVELS_MAX];
};

/* A node that a split made, and the key it begins with. */
struct tree_split {
    struct key_words key;
    changes_ref node;
};

static void *node_at(const struct changes *changes, changes_ref ref) {
    return changes_pool_at(changes->arena.pool, ref);
}

static changes_ref leaf_new(struct changes *changes, struct leaf **ret_leaf) {
    changes_ref ref = changes_arena_front(&changes->arena, CHANGES_NODE_BYTES);
    struct leaf *leaf = node_at(changes, ref);

    leaf->count = 0;
    keys_clear(leaf->keys, 0, LEAF_ROWS_MAX);
    leaf->inserted = INSERTED_NONE;
    leaf->next = CHANGES_REF_NONE;
    leaf->previous = CHANGES_REF_NONE;
    changes->leaf_count++;
    *ret_leaf = leaf;
    return ref;
}

static changes_ref inner_new(struct changes *changes, struct inner **ret_inner) {
    changes_ref ref = changes_arena_front(&changes->arena, CHANGES_NODE_BYTES);
    struct inner *inner = node_at(changes, ref);

    inner->count = 0;
    keys_clear(inner->keys, 0, INNER_KEYS_MAX);
    inner->inserted = INSERTED_NONE;
    changes->inner_count++;
    *ret_inner = inner;
    return ref;
}

int changes_new(struct changes_pool *pool, struct changes **ret_changes) {
    struct changes_arena arena;
    struct changes *changes;
    struct leaf *root;
    int r = changes_arena_init(&arena, pool);

    if (r < 0) {
        return r;
    }
    changes = changes_pool_at(pool, changes_arena_front(&arena, CHANGES_HEAD_BYTES));
    *changes = (struct changes){.arena = arena};
    changes->root = leaf_new(changes, &root);
    *ret_changes = changes;
    return 0;
}

void changes_free(struct changes *changes) {
    if (changes) {
        changes_arena_deinit(&changes->arena);
    }
}

size_t changes_row_count(const struct changes *changes) {
    return changes->row_count;
}

static size_t value_space(size_t size_bytes) {
    return (size_bytes + CHANGES_REF_UNIT - 1) / CHANGES_REF_UNIT * CHANGES_REF_UNIT;
}

/* A row that outgrows its place gets half as much again, so that one that grows step by step
 * leaves few old places behind. */
static size_t value_space_grown(size_t size_bytes) {
    return value_space(MIN(size_bytes + size_bytes / 2, (size_t)CHANGES_VALUE_BYTES_MAX));
}

/* A split leaves the half of a node on its left at the least, and may leave one row on its right,
 * when the run of keys that ascended ends there: eight rows a leaf, and eight children an inner
 * node. */
static size_t leaves_at_most(size_t rows) {
    return rows / 8 + 2;
}

static size_t inners_at_most(size_t leaves, unsigned levels) {
    return leaves / 7 + levels + 3;
}

/* That so many rows can lead to: a root splits when it is full, and each of its children has seven
 * others below it at the least. What is said of rows to come counts the levels that they make, so
 * that less is said of the rest by as much as the first of them take. */
static unsigned levels_at_most(unsigned levels, size_t rows) {
    unsigned most = rows > LEAF_ROWS_MAX ? 1 : 0;

    for (size_t nodes = leaves_at_most(rows); nodes > INNER_KEYS_MAX; nodes /= 7) {
        most++;
    }
    return MAX(levels, most);
}

/* At the worst each row splits its leaf and every node above it. A full root grows another level,
 * which the rows behind it may split as well; the new root has one key, so it takes a full node's
 * rows until the next. Whatever rows come first, what they take and what is then said of the rest
 * is no more than was said of all. */
static size_t nodes_at_most(unsigned levels, unsigned root_count, size_t rows) {
    size_t full = levels == 0 ? LEAF_ROWS_MAX : INNER_KEYS_MAX;
    size_t nodes = rows * (levels + 2);

    for (size_t until = full + 1 - root_count; until < rows; until += INNER_KEYS_MAX) {
        nodes += rows - until;
    }
    return nodes;
}

static size_t values_at_most(size_t rows, size_t value_bytes) {
    return value_bytes + value_bytes / 2 + rows * CHANGES_REF_UNIT;
}

size_t changes_cost(const struct changes *changes, size_t rows, size_t value_bytes) {
    const struct inner *root = node_at(changes, changes->root);
    size_t all_rows = changes->row_count + rows;
    size_t leaves = leaves_at_most(all_rows);
    size_t inners = inners_at_most(leaves, levels_at_most(changes->levels, all_rows));
    size_t by_rows = nodes_at_most(changes->levels, root->count, rows);
    size_t by_count = leaves + inners - changes->leaf_count - changes->inner_count;

    static_assert(offsetof(struct inner, count) == offsetof(struct leaf, count), "any root");
    return MIN(by_rows, by_count) * CHANGES_NODE_BYTES + values_at_most(rows, value_bytes);
}

size_t changes_cost_of_new(size_t rows, size_t value_bytes) {
    size_t leaves = leaves_at_most(rows);
    size_t inners = inners_at_most(leaves, levels_at_most(0, rows));
    size_t nodes = MIN(nodes_at_most(0, 0, rows), leaves + inners);

    return CHANGES_HEAD_BYTES + (nodes + 1) * CHANGES_NODE_BYTES +
           values_at_most(rows, value_bytes);
}

size_t changes_room(const struct changes *changes, size_t chunks_left_out) {
    return changes_arena_room(&changes->arena, chunks_left_out);
}

int changes_reserve(struct changes *changes, size_t cost_bytes) {
    return changes_arena_reserve(&changes->arena, cost_bytes);
}

size_t changes_spare_bytes(const struct changes *changes) {
    return changes->arena.spare_count * changes->arena.pool->chunk_bytes;
}

void changes_trim(struct changes *changes) {
    changes_arena_trim(&changes->arena);
}

static struct leaf *tree_descend(const struct changes *changes, const struct key_words *key) {
    changes_ref ref = changes->root;

    for (unsigned level = changes->levels; level > 0; level--) {
        const struct inner *inner = node_at(changes, ref);

        ref = inner->children[inner_keys_to(inner, key)];
        node_prefetch(node_at(changes, ref));
    }
    return node_at(changes, ref);
}

static struct leaf *tree_descend_path(const struct changes *changes, const struct key_words *key,
                                      struct tree_path *ret_path) {
    changes_ref ref = changes->root;

    for (unsigned i = 0; i < changes->levels; i++) {
        struct inner *inner = node_at(changes, ref);
        unsigned child = inner_keys_to(inner, key);

        ret_path->nodes[i] = inner;
        ret_path->children[i] = child;
        ref = inner->children[child];
        node_prefetch(node_at(changes, ref));
    }
    return node_at(changes, ref);
}

/* Where a full node is split: what lies before it stays. */
static unsigned split_place(unsigned count, unsigned inserted, unsigned place) {
    bool ascending = inserted != INSERTED_NONE && place == inserted + 1;

    return ascending && place >= count / 2 ? place : count / 2;
}

static void leaf_insert(struct leaf *leaf, unsigned place, const struct key_words *key,
                        const struct node_value *value) {
    unsigned behind = leaf->count - place;

    memmove(&leaf->keys[place + 1], &leaf->keys[place], behind * sizeof leaf->keys[0]);
    memmove(&leaf->values[place + 1], &leaf->values[place], behind * sizeof leaf->values[0]);
    leaf->keys[place] = *key;
    leaf->values[place] = *value;
    leaf->inserted = (uint16_t)place;
    leaf->count++;
}

static struct tree_split leaf_split(struct changes *changes, struct leaf *left, unsigned place,
                                    const struct key_words *key, const struct node_value *value) {
    unsigned kept = split_place(left->count, left->inserted, place);
    unsigned moved = left->count - kept;
    struct leaf *right;
    changes_ref right_ref = leaf_new(changes, &right);

    memcpy(right->keys, &left->keys[kept], moved * sizeof right->keys[0]);
    memcpy(right->values, &left->values[kept], moved * sizeof right->values[0]);
    right->count = (uint16_t)moved;
    left->count = (uint16_t)kept;
    keys_clear(left->keys, kept, LEAF_ROWS_MAX);
    left->inserted = INSERTED_NONE;
    right->next = left->next;
    if (left->next != CHANGES_REF_NONE) {
        struct leaf *behind = node_at(changes, left->next);

        right->previous = behind->previous;
        behind->previous = right_ref;
    } else {
        right->previous =
            (changes_ref)(((uint8_t *)left - changes->arena.pool->memory) / CHANGES_REF_UNIT);
    }
    left->next = right_ref;
    if (place < kept || (place == kept && moved > 0)) {
        leaf_insert(left, place, key, value);
    } else {
        leaf_insert(right, place - kept, key, value);
    }
    return (struct tree_split){.key = right->keys[0], .node = right_ref};
}

static void inner_insert(struct inner *inner, unsigned place, const struct tree_split *split) {
    unsigned behind = inner->count - place;

    memmove(&inner->keys[place + 1], &inner->keys[place], behind * sizeof inner->keys[0]);
    memmove(&inner->children[place + 2], &inner->children[place + 1],
            behind * sizeof inner->children[0]);
    inner->keys[place] = split->key;
    inner->children[place + 1] = split->node;
    inner->inserted = (uint16_t)place;
    inner->count++;
}

/* Key number kept - 1 moves up; the children behind it move to the right. */
static struct tree_split inner_split(struct changes *changes, struct inner *left, unsigned place,
                                     const struct tree_split *split) {
    unsigned count = left->count;
    unsigned kept = split_place(count, left->inserted, place);
    struct inner *right;
    changes_ref right_ref = inner_new(changes, &right);
    struct key_words up;

    left->inserted = INSERTED_NONE;
    if (kept == count) {
        right->children[0] = split->node;
        return (struct tree_split){.key = split->key, .node = right_ref};
    }
    /* The newcomer joins those that stay, where a run of ascending keys goes on. */
    kept += kept == place;
    up = left->keys[kept - 1];
    memcpy(right->keys, &left->keys[kept], (count - kept) * sizeof right->keys[0]);
    memcpy(right->children, &left->children[kept], (count - kept + 1) * sizeof right->children[0]);
    right->count = (uint16_t)(count - kept);
    left->count = (uint16_t)(kept - 1);
    keys_clear(left->keys, kept - 1, INNER_KEYS_MAX);
    if (place < kept) {
        inner_insert(left, place, split);
    } else {
        inner_insert(right, place - kept, split);
    }
    return (struct tree_split){.key = up, .node = right_ref};
}

static void root_grow(struct changes *changes, const struct tree_split *split) {
    struct inner *root;
    changes_ref ref = inner_new(changes, &root);

    assert(changes->levels < TREE_LEVELS_MAX);
    root->count = 1;
    root->keys[0] = split->key;
    root->children[0] = changes->root;
    root->children[1] = split->node;
    changes->root = ref;
    changes->levels++;
}

/* Nodes that one more row in this leaf makes. */
static unsigned nodes_needed(const struct changes *changes, const struct leaf *leaf,
                             const struct tree_path *path) {
    unsigned level = changes->levels;
    unsigned nodes = 1;

    if (leaf->count < LEAF_ROWS_MAX) {
        return 0;
    }
    for (; level > 0 && path->nodes[level - 1]->count == INNER_KEYS_MAX; level--) {
        nodes++;
    }
    return level == 0 ? nodes + 1 : nodes;
}

/* What it needs has been reserved. */
static void tree_insert(struct changes *changes, struct leaf *leaf, const struct tree_path *path,
                        const struct key_words *key, const struct node_value *value) {
    unsigned place = leaf_keys_below(leaf, key);
    struct tree_split split;

    changes->row_count++;
    if (leaf->count < LEAF_ROWS_MAX) {
        leaf_insert(leaf, place, key, value);
        return;
    }
    split = leaf_split(changes, leaf, place, key, value);
    assert(changes->leaf_count <= leaves_at_most(changes->row_count));
    assert(changes->inner_count <= inners_at_most(changes->leaf_count, changes->levels));
    for (unsigned level = changes->levels; level > 0; level--) {
        struct inner *inner = path->nodes[level - 1];

        if (inner->count < INNER_KEYS_MAX) {
            inner_insert(inner, path->children[level - 1], &split);
            return;
        }
        split = inner_split(changes, inner, path->children[level - 1], &split);
    }
    root_grow(changes, &split);
}

static struct node_value *leaf_find(struct leaf *leaf, const struct key_words *key) {
    unsigned place = leaf_keys_below(leaf, key);

    if (place < leaf->count && key_equal(&leaf->keys[place], key)) {
        return &leaf->values[place];
    }
    return NULL;
}

static int value_move(struct changes *changes, struct node_value *value, size_t size_bytes) {
    size_t space = value_space_grown(size_bytes);
    int r = changes_arena_reserve(&changes->arena, space);

    if (r < 0) {
        return r;
    }
    value->ref = changes_arena_back(&changes->arena, space);
    value->capacity = (uint16_t)space;
    return 0;
}

static int row_add(struct changes *changes, struct leaf *leaf, const struct tree_path *path,
                   const struct key_words *key, struct node_value *value) {
    size_t space = value->size == VALUE_DELETED ? 0 : value_space(value->size);
    size_t nodes = nodes_needed(changes, leaf, path);
    int r = changes_arena_reserve(&changes->arena, nodes * CHANGES_NODE_BYTES + space);

    if (r < 0) {
        return r;
    }
    value->ref = changes_arena_back(&changes->arena, space);
    value->capacity = (uint16_t)space;
    tree_insert(changes, leaf, path, key, value);
    return 0;
}

int changes_put(struct changes *changes, const struct kv_key *key, struct bytes value,
                uint8_t **ret_value) {
    struct key_words words = key_words_of(key);
    struct node_value added = {.size = (uint16_t)value.size};
    struct tree_path path;
    struct leaf *leaf;
    struct node_value *place;
    uint8_t *to;
    int r = 0;

    if (value.size > CHANGES_VALUE_BYTES_MAX) {
        return -ERR_INVALID;
    }
    leaf = tree_descend_path(changes, &words, &path);
    place = leaf_find(leaf, &words);
    if (!place) {
        r = row_add(changes, leaf, &path, &words, &added);
        place = &added;
    } else if (value.size > place->capacity) {
        r = value_move(changes, place, value.size);
    }
    if (r < 0) {
        return r;
    }
    place->size = (uint16_t)value.size;
    to = node_at(changes, place->ref);
    if (value.size > 0) {
        memmove(to, value.data, value.size);
    }
    if (ret_value) {
        *ret_value = to;
    }
    return 0;
}

int changes_delete(struct changes *changes, const struct kv_key *key) {
    struct key_words words = key_words_of(key);
    struct node_value added = {.size = VALUE_DELETED};
    struct tree_path path;
    struct leaf *leaf = tree_descend_path(changes, &words, &path);
    struct node_value *place = leaf_find(leaf, &words);

    if (place) {
        place->size = VALUE_DELETED;
        return 0;
    }
    return row_add(changes, leaf, &path, &words, &added);
}

static enum changes_state value_answer(const struct changes *changes,
                                       const struct node_value *value, struct bytes *ret_value) {
    if (value->size == VALUE_DELETED) {
        return CHANGES_DELETED;
    }
    *ret_value = (struct bytes){node_at(changes, value->ref), value->size};
    return CHANGES_PRESENT;
}

enum changes_state changes_find(const struct changes *changes, const struct kv_key *key,
                                struct bytes *ret_value) {
    struct key_words words = key_words_of(key);
    const struct node_value *value = leaf_find(tree_descend(changes, &words), &words);

    return value ? value_answer(changes, value, ret_value) : CHANGES_ABSENT;
}

enum changes_state changes_next(const struct changes *changes, const struct kv_key *key,
                                bool inclusive, struct kv_key *ret_key, struct bytes *ret_value) {
    struct key_words words = key_words_of(key);
    const struct leaf *leaf = tree_descend(changes, &words);
    unsigned place = inclusive ? leaf_keys_below(leaf, &words) : leaf_keys_to(leaf, &words);

    if (place == leaf->count) {
        if (leaf->next == CHANGES_REF_NONE) {
            return CHANGES_ABSENT;
        }
        leaf = node_at(changes, leaf->next);
        place = 0;
    }
    *ret_key = key_of_words(&leaf->keys[place]);
    return value_answer(changes, &leaf->values[place], ret_value);
}

enum changes_state changes_previous(const struct changes *changes, const struct kv_key *key,
                                    struct kv_key *ret_key, struct bytes *ret_value) {
    struct key_words words = key_words_of(key);
    const struct leaf *leaf = tree_descend(changes, &words);
    unsigned place = leaf_keys_below(leaf, &words);

    if (place == 0) {
        if (leaf->previous == CHANGES_REF_NONE) {
            return CHANGES_ABSENT;
        }
        leaf = node_at(changes, leaf->previous);
        place = leaf->count;
    }
    *ret_key = key_of_words(&leaf->keys[place - 1]);
    return value_answer(changes, &leaf->values[place - 1], ret_value);
}
