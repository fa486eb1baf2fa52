/* A walk over the trees of changed rows and the chunks they lie in, for tests. */
#include "kv/changes.h"
#include "kv/changes_tree.h"

/* A tree of more leaves is not walked: who looks behind each of many steps would wait for hours. */
enum { WALKED_LEAVES_MAX = 128 };

/* What was passed, from the left to the right. */
struct tree_walk {
    const struct changes *changes;
    const struct leaf *leaf; /* the last one */
    changes_ref ref;         /* its */
    size_t rows, leaves, inners, value_bytes;
};

/* Where the keys of a node lie: from first on, before end; NULL: without a bound. */
struct key_range {
    const struct key_words *first, *end;
};

static const char *keys_check(const struct key_words *keys, unsigned count, unsigned most,
                              struct key_range range) {
    static const struct key_words none = {{UINT64_MAX, UINT64_MAX, UINT64_MAX}};

    if (count > most) {
        return "a node has more keys than places";
    }
    for (unsigned i = 0; i < count; i++) {
        if ((i > 0 && !key_less(&keys[i - 1], &keys[i])) ||
            (range.first && key_less(&keys[i], range.first)) ||
            (range.end && !key_less(&keys[i], range.end))) {
            return "keys of the changes are not in order";
        }
    }
    for (unsigned i = count; i < most; i++) {
        if (!key_equal(&keys[i], &none)) {
            return "a place without a key holds one";
        }
    }
    return NULL;
}

static const char *value_check(struct tree_walk *walk, const struct node_value *value) {
    size_t end = (size_t)value->ref * CHANGES_REF_UNIT + value->capacity;

    walk->value_bytes += value->capacity;
    if (value->size != VALUE_DELETED && value->size > value->capacity) {
        return "a value is longer than its place";
    }
    return end <= changes_pool_bytes(walk->changes->arena.pool) ? NULL : "a value is nowhere";
}

static const char *leaf_check(struct tree_walk *walk, changes_ref ref, struct key_range range) {
    const struct leaf *leaf = changes_pool_at(walk->changes->arena.pool, ref);
    const char *wrong = keys_check(leaf->keys, leaf->count, LEAF_ROWS_MAX, range);

    for (unsigned i = 0; !wrong && i < leaf->count; i++) {
        wrong = value_check(walk, &leaf->values[i]);
    }
    if (leaf->previous != walk->ref || (walk->leaf && walk->leaf->next != ref)) {
        return "leaves of the changes are not each other's neighbours";
    }
    walk->leaf = leaf;
    walk->ref = ref;
    walk->rows += leaf->count;
    walk->leaves++;
    return wrong;
}

static const char *node_check(struct tree_walk *walk, changes_ref ref, unsigned level,
                              struct key_range range) {
    if (level == 0) {
        return leaf_check(walk, ref, range);
    }
    const struct inner *inner = changes_pool_at(walk->changes->arena.pool, ref);
    const char *wrong = keys_check(inner->keys, inner->count, INNER_KEYS_MAX, range);

    walk->inners++;
    for (unsigned i = 0; !wrong && i <= inner->count; i++) {
        const struct key_range below = {i > 0 ? &inner->keys[i - 1] : range.first,
                                        i < inner->count ? &inner->keys[i] : range.end};

        wrong = node_check(walk, inner->children[i], level - 1, below);
    }
    return wrong;
}

/* How many chunks a list has; more than there are where it does not end. */
static size_t chunks_of(const struct changes_pool *pool, uint32_t first) {
    size_t count = 0;

    for (; first < pool->chunk_count && count <= pool->chunk_count; count++) {
        first = pool->next_chunk[first];
    }
    return count;
}

static const char *tree_check(const struct changes *changes, size_t used_bytes) {
    struct tree_walk walk = {.changes = changes, .ref = CHANGES_REF_NONE};
    const char *wrong = node_check(&walk, changes->root, changes->levels, (struct key_range){0});
    size_t nodes = walk.leaves + walk.inners;

    if (wrong) {
        return wrong;
    }
    if (walk.leaf->next != CHANGES_REF_NONE || walk.rows != changes->row_count ||
        walk.leaves != changes->leaf_count || walk.inners != changes->inner_count) {
        return "the changes are not as many as counted";
    }
    return CHANGES_HEAD_BYTES + nodes * CHANGES_NODE_BYTES + walk.value_bytes <= used_bytes
               ? NULL
               : "changes take more than their chunks have";
}

static const char *generation_check(const struct changes *changes, size_t *chunks) {
    const struct changes_arena *arena = &changes->arena;
    const struct changes_pool *pool = arena->pool;
    size_t used = chunks_of(pool, arena->first);

    if (chunks_of(pool, arena->spare_first) != arena->spare_count) {
        return "chunks that are set aside are not as many as counted";
    }
    *chunks += used + arena->spare_count;
    return changes->leaf_count <= WALKED_LEAVES_MAX
               ? tree_check(changes, used * pool->chunk_bytes - (arena->back - arena->front))
               : NULL;
}

const char *changes_check(const struct changes_pool *pool, const struct changes *const *generations,
                          size_t count) {
    size_t chunks = chunks_of(pool, pool->free_first);

    if (chunks != pool->free_count) {
        return "free chunks are not as many as counted";
    }
    for (size_t i = 0; i < count; i++) {
        const char *wrong = generations[i] ? generation_check(generations[i], &chunks) : NULL;

        if (wrong) {
            return wrong;
        }
    }
    return chunks == pool->chunk_count ? NULL : "chunks of the changes are nobody's";
}
