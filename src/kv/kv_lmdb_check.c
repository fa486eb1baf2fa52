/* The file format of LMDB 0.9, little-endian, as far as it is looked at:
 *
 *     page     u64 number, u16 pad, u16 flags, u16 lower, u16 upper (overflow: u32 pages), places
 *     node     u32 bytes of the value (branch: number of a page, with flags 48 bits), u16 flags,
 *              u16 bytes of the key, key, value; on an even place
 *     meta     page 0 and 1, behind the head: u32 magic, u32 version, u64 address, u64 map bytes,
 *              table of free pages, table of rows, u64 last page, u64 transaction
 *     table    u32 pad (of the first: bytes of a page), u16 flags, u16 depth, u64 branch, leaf and
 *              overflow pages, u64 entries, u64 root
 *
 * A transaction writes the meta page of its number's parity. An entry of the table of free pages:
 * u64 transaction, u64 count and that many numbers of pages. */
#include "kv/kv_lmdb_check.h"
#include "kv/kv_base_row.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    PAGE_HEAD_BYTES = 16,
    PAGE_BRANCH = 1,
    PAGE_LEAF = 2,
    PAGE_OVERFLOW = 4,
    PAGE_META = 8,
    NODE_HEAD_BYTES = 8,
    NODE_BIG = 1, /* its value lies on overflow pages */
    META_MAGIC = (int)0xBEEFC0DE,
    META_VERSION = 1,
    META_BYTES = PAGE_HEAD_BYTES + 136,
    TABLE_BYTES = 48,
    FREE_FLAGS = 8, /* integers as keys */
    FREE_FLAGS_MASK = 0xfff,
    DEPTH_MAX = 32,
    PAGES_UNWRITTEN_MAX = 1 << 20, /* more than a commit may add */
    WHAT_BYTES = 96,
};
#define NO_PAGE UINT64_MAX

struct table {
    unsigned depth;
    uint64_t branches, leaves, overflows, entries, root;
};

struct meta {
    uint64_t last_page, transaction;
    uint32_t page_bytes;
    struct table free, rows;
};

struct check {
    const uint8_t *file;
    uint64_t size_bytes;
    struct meta meta;
    uint8_t *used; /* a bit a page */
    struct lmdb_check_found *found;
    char *what;
    /* Of the table that is walked. */
    bool is_free;
    struct table seen;
};

struct node {
    uint64_t at; /* byte of the file */
    uint64_t child;
    uint32_t value_bytes;
    uint16_t flags, key_bytes;
    const uint8_t *key;
};

/* Keys of a page: from low on, below high; NULL: no bound. */
struct bounds {
    const struct node *low, *high;
};

static int refuse(struct check *check, uint64_t at, const char *what) {
    snprintf(check->what, WHAT_BYTES, "%s at byte %" PRIu64, what, at);
    return -ERR_CORRUPT;
}

static struct table table_load(const uint8_t *at) {
    return (struct table){.depth = load_le16(at + 6),
                          .branches = load_le64(at + 8),
                          .leaves = load_le64(at + 16),
                          .overflows = load_le64(at + 24),
                          .entries = load_le64(at + 32),
                          .root = load_le64(at + 40)};
}

static int meta_load(struct check *check, uint64_t index, uint64_t page_bytes,
                     struct meta *ret_meta) {
    uint64_t at = index * page_bytes;
    const uint8_t *page = check->file + at;

    if (check->size_bytes < at + META_BYTES) {
        return refuse(check, at, "the meta page is missing");
    }
    const uint8_t *body = page + PAGE_HEAD_BYTES;
    if (load_le64(page) != index || load_le16(page + 10) != PAGE_META ||
        load_le32(body) != (uint32_t)META_MAGIC || load_le32(body + 4) != META_VERSION ||
        load_le64(body + 8) != 0) {
        return refuse(check, at, "the meta page is damaged");
    }
    *ret_meta = (struct meta){.page_bytes = load_le32(body + 24),
                              .free = table_load(body + 24),
                              .rows = table_load(body + 24 + TABLE_BYTES),
                              .last_page = load_le64(body + 24 + 2 * TABLE_BYTES),
                              .transaction = load_le64(body + 32 + 2 * TABLE_BYTES)};
    return (load_le16(body + 24 + 4) & FREE_FLAGS_MASK) != FREE_FLAGS ||
                   load_le16(body + 24 + TABLE_BYTES + 4) != 0
               ? refuse(check, at, "the meta page is damaged")
               : 0;
}

/* The newer one counts. */
static int metas_load(struct check *check) {
    struct meta metas[2];
    int r = meta_load(check, 0, 0, &metas[0]);

    if (r < 0) {
        return r;
    }
    uint32_t page_bytes = metas[0].page_bytes;
    if (page_bytes < 512 || page_bytes > 32768 || (page_bytes & (page_bytes - 1)) != 0) {
        return refuse(check, 0, "the meta page is damaged");
    }
    r = meta_load(check, 1, page_bytes, &metas[1]);
    if (r < 0) {
        return r;
    }
    bool newer = metas[1].transaction > metas[0].transaction;
    bool fresh = metas[0].transaction == 0 && metas[1].transaction == 0;
    uint64_t older_transaction = metas[!newer].transaction;

    check->meta = metas[newer];
    if (metas[1].page_bytes != page_bytes ||
        (!fresh && (check->meta.transaction != older_transaction + 1 ||
                    check->meta.transaction % 2 != newer))) {
        return refuse(check, newer * page_bytes, "one of the meta pages is damaged, the newer is");
    }
    if (check->meta.last_page < 1 ||
        check->meta.last_page > check->size_bytes / page_bytes + PAGES_UNWRITTEN_MAX) {
        return refuse(check, newer * page_bytes, "the meta page is damaged");
    }
    return 0;
}

/* Nothing else uses this page. */
static int page_use(struct check *check, uint64_t page, uint64_t named_at) {
    if (page < 2 || page > check->meta.last_page) {
        return refuse(check, named_at, "a page that there is not is named");
    }
    if (check->used[page / 8] >> page % 8 & 1) {
        return refuse(check, named_at, "a page that is used twice is named");
    }
    check->used[page / 8] |= (uint8_t)(1 << page % 8);
    return 0;
}

/* One that is used lies in the file. */
static int page_take(struct check *check, uint64_t page, uint64_t named_at, uint64_t *ret_at) {
    int r = page_use(check, page, named_at);

    *ret_at = page * check->meta.page_bytes;
    if (r == 0 && *ret_at + check->meta.page_bytes > check->size_bytes) {
        return refuse(check, *ret_at, "the file was cut short");
    }
    return r;
}

static int node_load(struct check *check, uint64_t page_at, unsigned index, struct node *ret_node) {
    const uint8_t *page = check->file + page_at;
    uint64_t page_bytes = check->meta.page_bytes;
    uint64_t place = load_le16(page + PAGE_HEAD_BYTES + 2 * index);
    bool is_leaf = load_le16(page + 10) == PAGE_LEAF;

    *ret_node = (struct node){.at = page_at + place};
    if (place < load_le16(page + 14) || place % 2 != 0 || place + NODE_HEAD_BYTES > page_bytes) {
        return refuse(check, page_at, "a page is damaged");
    }
    const uint8_t *at = page + place;
    uint64_t key_bytes = load_le16(at + 6);
    ret_node->value_bytes = load_le32(at);
    ret_node->flags = load_le16(at + 4);
    ret_node->child = load_le32(at) | (uint64_t)ret_node->flags << 32;
    ret_node->key_bytes = (uint16_t)key_bytes;
    ret_node->key = at + NODE_HEAD_BYTES;
    uint64_t stored = !is_leaf                      ? 0
                      : ret_node->flags == NODE_BIG ? sizeof(uint64_t)
                                                    : ret_node->value_bytes;
    if ((is_leaf && ret_node->flags > NODE_BIG) ||
        place + NODE_HEAD_BYTES + key_bytes + stored > page_bytes) {
        return refuse(check, page_at + place, "a row's place is damaged");
    }
    return 0;
}

static uint64_t node_bytes(const struct node *node, bool is_leaf) {
    uint64_t stored = !is_leaf ? 0 : node->flags == NODE_BIG ? sizeof(uint64_t) : node->value_bytes;

    return (NODE_HEAD_BYTES + node->key_bytes + stored + 1) / 2 * 2;
}

static int keys_compare(const struct check *check, const struct node *a, const struct node *b) {
    if (check->is_free) {
        uint64_t x = load_le64(a->key), y = load_le64(b->key);

        return x < y ? -1 : x > y;
    }
    int order = memcmp(a->key, b->key, MIN(a->key_bytes, b->key_bytes));
    return order != 0 ? order : (int)a->key_bytes - (int)b->key_bytes;
}

static bool key_is_sound(const struct check *check, const struct node *node) {
    return check->is_free ? node->key_bytes == sizeof(uint64_t)
                          : node->key_bytes == KV_KEY_BYTES || node->key_bytes == KV_KEY_BYTES + 1;
}

/* Behind the one before it, if there is one, and within the bounds. */
static int key_check(struct check *check, const struct node *node, const struct node *before,
                     struct bounds bounds) {
    if (!key_is_sound(check, node) || (before && keys_compare(check, before, node) >= 0) ||
        (bounds.low && keys_compare(check, node, bounds.low) < 0) ||
        (bounds.high && keys_compare(check, node, bounds.high) >= 0)) {
        return refuse(check, node->at, "a key is damaged");
    }
    return 0;
}

/* Where a value lies that may be on pages of its own. */
static int value_find(struct check *check, const struct node *node, uint64_t *ret_at) {
    *ret_at = node->at + NODE_HEAD_BYTES + node->key_bytes;
    if (node->flags != NODE_BIG) {
        return 0;
    }
    uint64_t page_bytes = check->meta.page_bytes;
    uint64_t page = load_le64(check->file + *ret_at);
    uint64_t pages = (PAGE_HEAD_BYTES + (uint64_t)node->value_bytes + page_bytes - 1) / page_bytes;
    uint64_t at;
    int r = page_take(check, page, node->at, &at);
    if (r < 0) {
        return r;
    }
    const uint8_t *head = check->file + at;
    if (load_le64(head) != page || load_le16(head + 10) != PAGE_OVERFLOW ||
        load_le32(head + 12) != pages) {
        return refuse(check, at, "a page is damaged");
    }
    for (uint64_t i = 1; r == 0 && i < pages; i++) {
        uint64_t next_at;

        r = page_take(check, page + i, node->at, &next_at);
    }
    check->seen.overflows += pages;
    *ret_at = at + PAGE_HEAD_BYTES;
    return r;
}

static int free_pages_check(struct check *check, uint64_t at, uint64_t bytes) {
    uint64_t count = bytes < sizeof(uint64_t) ? 0 : load_le64(check->file + at);

    if (bytes % sizeof(uint64_t) != 0 || bytes == 0 || count > bytes / sizeof(uint64_t) - 1) {
        return refuse(check, at, "the list of free pages is damaged");
    }
    for (uint64_t i = 1; i <= count; i++) {
        int r = page_use(check, load_le64(check->file + at + i * sizeof(uint64_t)), at);

        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int entry_check(struct check *check, const struct node *node) {
    struct kv_key key;
    struct bytes value;
    uint64_t at;
    int r = value_find(check, node, &at);

    check->seen.entries++;
    if (r < 0 || check->is_free) {
        return r < 0 ? r : free_pages_check(check, at, node->value_bytes);
    }
    if (node->key_bytes == KV_KEY_BYTES) {
        memcpy(key.bytes, node->key, KV_KEY_BYTES);
        if (base_row_check(&key, (struct bytes){check->file + at, node->value_bytes}, &value) < 0 &&
            check->found->damaged_rows++ == 0) {
            check->found->damaged_row_at = node->at;
        }
    }
    return 0;
}

static int page_walk(struct check *check, uint64_t page_at, unsigned depth, struct bounds bounds);

static int child_walk(struct check *check, const struct node *node, unsigned depth,
                      struct bounds bounds) {
    uint64_t at;
    int r = page_take(check, node->child, node->at, &at);

    if (r == 0 && load_le64(check->file + at) != node->child) {
        return refuse(check, at, "a page is damaged");
    }
    return r < 0 ? r : page_walk(check, at, depth + 1, bounds);
}

/* The first key of a branch page is no bound, and may be empty. */
static int branch_walk(struct check *check, uint64_t page_at, unsigned depth,
                       struct bounds bounds) {
    unsigned count = (load_le16(check->file + page_at + 12) - PAGE_HEAD_BYTES) / 2u;
    uint64_t bytes = 0;
    struct node node, next;
    int r = node_load(check, page_at, 0, &node);

    check->seen.branches++;
    for (unsigned i = 0; r == 0 && i < count; i++) {
        struct bounds below = {i > 0 ? &node : bounds.low, bounds.high};

        bytes += node_bytes(&node, false);
        if (i + 1 < count) {
            r = node_load(check, page_at, i + 1, &next);
            r = r < 0 ? r : key_check(check, &next, i > 0 ? &node : NULL, bounds);
            below.high = &next;
        }
        r = r < 0 ? r : child_walk(check, &node, depth, below);
        node = next;
    }
    if (r == 0 && bytes != check->meta.page_bytes - load_le16(check->file + page_at + 14)) {
        return refuse(check, page_at, "a page is damaged");
    }
    return r;
}

static int leaf_walk(struct check *check, uint64_t page_at, struct bounds bounds) {
    unsigned count = (load_le16(check->file + page_at + 12) - PAGE_HEAD_BYTES) / 2u;
    uint64_t bytes = 0;
    struct node node, before;
    int r = 0;

    check->seen.leaves++;
    for (unsigned i = 0; r == 0 && i < count; i++) {
        r = node_load(check, page_at, i, &node);
        r = r < 0 ? r : key_check(check, &node, i > 0 ? &before : NULL, bounds);
        r = r < 0 ? r : entry_check(check, &node);
        bytes += r == 0 ? node_bytes(&node, true) : 0;
        before = node;
    }
    if (r == 0 && bytes != check->meta.page_bytes - load_le16(check->file + page_at + 14)) {
        return refuse(check, page_at, "a page is damaged");
    }
    return r;
}

static int page_walk(struct check *check, uint64_t page_at, unsigned depth, struct bounds bounds) {
    const uint8_t *page = check->file + page_at;
    uint64_t page_bytes = check->meta.page_bytes;
    uint16_t flags = load_le16(page + 10), lower = load_le16(page + 12),
             upper = load_le16(page + 14);

    check->seen.depth = MAX(check->seen.depth, depth);
    if (depth > DEPTH_MAX || (flags != PAGE_BRANCH && flags != PAGE_LEAF) ||
        lower <= PAGE_HEAD_BYTES || lower % 2 != 0 || lower > upper || upper > page_bytes) {
        return refuse(check, page_at, "a page is damaged");
    }
    return flags == PAGE_BRANCH ? branch_walk(check, page_at, depth, bounds)
                                : leaf_walk(check, page_at, bounds);
}

static int table_walk(struct check *check, const struct table *table, bool is_free) {
    const struct node root = {.at = check->meta.transaction % 2 * check->meta.page_bytes,
                              .child = table->root};
    struct table *seen = &check->seen;
    int r = 0;

    check->is_free = is_free;
    *seen = (struct table){.root = table->root};
    if (table->root != NO_PAGE) {
        r = child_walk(check, &root, 0, (struct bounds){NULL, NULL});
    }
    if (r == 0 && (seen->depth != table->depth || seen->branches != table->branches ||
                   seen->leaves != table->leaves || seen->overflows != table->overflows ||
                   seen->entries != table->entries)) {
        return refuse(check, root.at,
                      is_free ? "free pages are missing, or the meta page is damaged"
                              : "rows are missing, or the meta page is damaged");
    }
    return r;
}

int lmdb_check(struct bytes file, uint64_t most_bytes, struct lmdb_check_found *ret_found,
               char ret_what[WHAT_BYTES]) {
    struct check check = {
        .file = file.data, .size_bytes = file.size, .found = ret_found, .what = ret_what};

    *ret_found = (struct lmdb_check_found){.partly = file.size > most_bytes};
    int r = file.size > 0 ? metas_load(&check) : 0;
    if (r < 0 || file.size == 0 || ret_found->partly) {
        return r;
    }
    check.used = calloc(check.meta.last_page / 8 + 1, 1);
    if (!check.used) {
        return -ERR_NO_MEMORY;
    }
    r = table_walk(&check, &check.meta.rows, false);
    r = r < 0 ? r : table_walk(&check, &check.meta.free, true);
    free(check.used);
    return r;
}
