/* A tree of changes, filled until its inner nodes split, with its shape and its account. */
#include "base/prng.h"
#include "fail.h"
#include "kv/changes.h"
#include "kv/changes_tree.h"
#include "parts.h"

/* Keys are taken by steps of an odd number around a circle of so many: 1 ascends, one less than all
 * of them descends. What is added later lies between two of them. */
enum { KEYS = 2048, ROWS_MIN = 600, ROWS_MAX = 2000, ADDED_MAX = 60, VALUE_BYTES_MAX = 40 };

struct tree {
    struct changes_pool *pool;
    struct changes *changes;
    struct prng prng;
    uint32_t stride;
};

static size_t nodes_of(const struct changes *changes) {
    return changes->leaf_count + changes->inner_count;
}

static void check_whole(const struct tree *tree) {
    const struct changes *const generations[] = {tree->changes};
    const char *wrong = changes_check(tree->pool, generations, 1);

    MUST(!wrong, "%s", wrong);
}

static void row_put(struct tree *tree, uint64_t number, size_t size) {
    static const uint8_t content[VALUE_BYTES_MAX];
    struct kv_key key = kv_key_make((struct kv_key_fields){.id = 1, .index = number});
    int r = changes_put(tree->changes, &key, (struct bytes){content, size}, NULL);

    MUST(r == 0, "a tree of %zu rows takes no more: %s", changes_row_count(tree->changes),
         err_name(r));
}

/* Until the root is nearly full, in some; so that what is added splits it. */
static size_t fill(struct tree *tree) {
    size_t count = prng_between(&tree->prng, ROWS_MIN, ROWS_MAX);
    unsigned root_max =
        prng_chance(&tree->prng, 1, 2)
            ? (unsigned)prng_between(&tree->prng, INNER_KEYS_MAX - 3, INNER_KEYS_MAX)
            : UINT16_MAX;
    size_t rows = 0;

    for (; rows < count; rows++) {
        const struct inner *root = changes_pool_at(tree->pool, tree->changes->root);

        if (tree->changes->levels == 1 && root->count >= root_max) {
            break;
        }
        row_put(tree, rows * tree->stride % KEYS * 2, prng_below(&tree->prng, 8));
    }
    return rows;
}

/* Keys that ascend leave full leaves behind, and full nodes above them. */
static void check_full(const struct tree *tree, size_t rows) {
    size_t nodes = (rows + LEAF_ROWS_MAX - 1) / LEAF_ROWS_MAX;
    size_t inners = 0;

    MUST(tree->changes->leaf_count == nodes, "%zu rows that ascend take %zu leaves, not %zu", rows,
         tree->changes->leaf_count, nodes);
    while (nodes > 1) {
        nodes = (nodes + INNER_KEYS_MAX) / (INNER_KEYS_MAX + 1);
        inners += nodes;
    }
    MUST(tree->changes->inner_count == inners,
         "above %zu leaves that ascend are %zu nodes, not %zu", tree->changes->leaf_count,
         tree->changes->inner_count, inners);
}

/* Whichever rows come first, what they take and what is then said of the rest is no more than was
 * said of all. */
static void add(struct tree *tree) {
    size_t count = prng_between(&tree->prng, 1, ADDED_MAX);
    size_t size = prng_below(&tree->prng, VALUE_BYTES_MAX + 1);
    size_t space = (size + CHANGES_REF_UNIT - 1) / CHANGES_REF_UNIT * CHANGES_REF_UNIT;
    size_t said = changes_cost(tree->changes, count, count * size);
    size_t nodes = nodes_of(tree->changes);
    uint64_t first = prng_below(&tree->prng, KEYS);
    int r = changes_reserve(tree->changes, said);

    MUST(r == 0, "a tree has no room for %zu rows more: %s", count, err_name(r));
    for (size_t i = 1; i <= count; i++) {
        row_put(tree, (first + i * tree->stride) % KEYS * 2 + 1, size);
        size_t taken = (nodes_of(tree->changes) - nodes) * CHANGES_NODE_BYTES + i * space;
        size_t rest = changes_cost(tree->changes, count - i, (count - i) * size);
        MUST(taken + rest <= said,
             "%zu of %zu rows take %zu bytes, the rest up to %zu, said was %zu", i, count, taken,
             rest, said);
    }
}

void tree_play(uint64_t seed) {
    struct tree tree = {0};

    fail_where("a tree of changes");
    prng_init(&tree.prng, seed);
    bool ascends = prng_chance(&tree.prng, 1, 3);
    tree.stride = ascends                         ? 1
                  : prng_chance(&tree.prng, 1, 4) ? KEYS - 1
                                                  : 2 * (uint32_t)prng_below(&tree.prng, KEYS) + 1;
    int r = changes_pool_new(4 * MIB, &tree.pool);
    r = r < 0 ? r : changes_new(tree.pool, &tree.changes);
    MUST(r == 0, "there is no tree: %s", err_name(r));
    size_t rows = fill(&tree);
    if (ascends) {
        check_full(&tree, rows);
    }
    add(&tree);
    check_whole(&tree);
    changes_free(tree.changes);
    changes_pool_free(tree.pool);
}
