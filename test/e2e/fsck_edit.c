/* Spoils the base store of a target that is not running, in one way that fsck has to find.
 *
 *     fsck_edit BASE HOW INO [NUMBER]
 *
 * BASE is a base.mdb. Rows that are changed get their right checksum, but for `spoil`. */
#include "kv/kv_base_row.h"
#include "meta/meta_format.h"
#include "store/store_format.h"
#include <inttypes.h>
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAP_BYTES = 1 << 30, VALUE_BYTES_MAX = 2048 };

struct edit {
    MDB_txn *transaction;
    MDB_dbi table;
    uint64_t ino;
    uint64_t number;
};

struct row {
    struct kv_key key;
    struct kv_key_fields fields;
    uint8_t value[VALUE_BYTES_MAX];
    size_t size; /* without the checksum */
};

static void must(int r, const char *what) {
    if (r != 0) {
        fprintf(stderr, "fsck_edit: %s: %s\n", what, mdb_strerror(r));
        exit(1);
    }
}

static void row_put(struct edit *edit, const struct row *row) {
    uint8_t stored[VALUE_BYTES_MAX + BASE_ROW_CRC_BYTES];
    MDB_val key = {KV_KEY_BYTES, (void *)(uintptr_t)row->key.bytes};
    MDB_val value = {row->size + BASE_ROW_CRC_BYTES, stored};

    base_row_write(stored, &row->key, (struct bytes){row->value, row->size});
    must(mdb_put(edit->transaction, edit->table, &key, &value, 0), "put");
}

static void row_delete(struct edit *edit, const struct row *row) {
    MDB_val key = {KV_KEY_BYTES, (void *)(uintptr_t)row->key.bytes};

    must(mdb_del(edit->transaction, edit->table, &key, NULL), "delete");
}

static uint64_t dentry_ino(const struct row *row) {
    struct dentry_row dentry;

    memcpy(&dentry, row->value, sizeof dentry);
    return dentry.ino;
}

typedef bool wanted_fn(const struct edit *edit, const struct row *row);

/* The first row that is wanted; the program ends when there is none. */
static struct row row_find(struct edit *edit, wanted_fn *wanted) {
    struct row row = {0};
    MDB_cursor *cursor;
    MDB_val key;
    MDB_val value;

    must(mdb_cursor_open(edit->transaction, edit->table, &cursor), "cursor");
    int r = mdb_cursor_get(cursor, &key, &value, MDB_FIRST);
    for (; r == 0; r = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
        if (key.mv_size != KV_KEY_BYTES || value.mv_size < BASE_ROW_CRC_BYTES ||
            value.mv_size > VALUE_BYTES_MAX) {
            continue;
        }
        memcpy(row.key.bytes, key.mv_data, KV_KEY_BYTES);
        row.fields = kv_key_split(&row.key);
        row.size = value.mv_size - BASE_ROW_CRC_BYTES;
        memset(row.value, 0, sizeof row.value);
        memcpy(row.value, value.mv_data, row.size);
        if (wanted(edit, &row)) {
            break;
        }
    }
    must(r, "no such row");
    mdb_cursor_close(cursor);
    return row;
}

static bool is_chunk(const struct edit *edit, const struct row *row) {
    return row->fields.type == STORE_ROW_CHUNK && row->fields.id == edit->ino;
}
static bool is_head(const struct edit *edit, const struct row *row) {
    return is_chunk(edit, row) && row->fields.index % (1 << STORE_INDEX_BITS) == 0;
}
static bool is_segment(const struct edit *edit, const struct row *row) {
    return is_chunk(edit, row) && store_row_is_segment(row->fields.index % (1 << STORE_INDEX_BITS));
}
static bool is_any_head(const struct edit *edit, const struct row *row) {
    (void)edit;
    return row->fields.type == STORE_ROW_CHUNK && row->fields.index % (1 << STORE_INDEX_BITS) == 0;
}
static bool is_bitmap(const struct edit *edit, const struct row *row) {
    return row->fields.type == STORE_ROW_BITMAP &&
           row->fields.index == edit->number / STORE_BITMAP_BITS;
}
static bool is_inode(const struct edit *edit, const struct row *row) {
    return row->fields.type == ROW_INODE && row->fields.id == edit->ino;
}
static bool is_dentry(const struct edit *edit, const struct row *row) {
    return row->fields.space == KV_SPACE_SLOT && row->fields.type == ROW_DENTRY &&
           dentry_ino(row) == edit->ino;
}
static bool is_partition(const struct edit *edit, const struct row *row) {
    return row->fields.type == ROW_PARTITION && row->fields.id == edit->ino;
}

static void print_block(struct edit *edit) {
    struct row row = row_find(edit, is_segment);
    struct store_segment segment;

    memcpy(&segment, row.value, sizeof segment);
    for (size_t i = 0; i < BLOCKS_PER_SEGMENT; i++) {
        if (store_entry_block(&segment.entries[i]) != 0) {
            printf("%" PRIu64 "\n", store_entry_block(&segment.entries[i]));
            return;
        }
    }
    must(MDB_NOTFOUND, "no block in the segment");
}
static void print_generation(struct edit *edit) {
    struct row row = row_find(edit, is_head);

    printf("%" PRIu32 "\n", row.fields.generation);
}
static void drop_head(struct edit *edit) {
    struct row row = row_find(edit, is_head);

    row_delete(edit, &row);
}
static void drop_segment(struct edit *edit) {
    struct row row = row_find(edit, is_segment);

    row_delete(edit, &row);
}
/* A chunk of an inode that nobody has, of a generation if that is named: a head like those that are
 * there, without blocks. */
static void add_orphan(struct edit *edit) {
    struct row row = row_find(edit, is_any_head);
    struct store_head head;

    memcpy(&head, row.value, STORE_HEAD_BYTES);
    head.block_count = 0;
    memcpy(row.value, &head, STORE_HEAD_BYTES);
    row.fields.id = edit->ino;
    row.fields.generation = edit->number != 0 ? (uint32_t)edit->number : row.fields.generation;
    row.fields.slot = store_bucket((struct ino){edit->ino});
    row.fields.index = 0;
    row.key = kv_key_make(row.fields);
    row_put(edit, &row);
}
static void share_block(struct edit *edit) {
    struct row row = row_find(edit, is_segment);
    struct store_segment segment;

    memcpy(&segment, row.value, sizeof segment);
    segment.entries[1] = segment.entries[0];
    memcpy(row.value, &segment, sizeof segment);
    row_put(edit, &row);
}
static void clear_bit(struct edit *edit) {
    struct row row = row_find(edit, is_bitmap);
    uint64_t bit = edit->number % STORE_BITMAP_BITS;
    uint8_t *byte = &row.value[offsetof(struct store_bitmap, bits) + bit / 8];

    *byte = (uint8_t)(*byte & ~(1U << (bit % 8)));
    row_put(edit, &row);
}
/* One bit of a value, and the checksum as it was. */
static void spoil(struct edit *edit, wanted_fn *wanted) {
    struct row row = row_find(edit, wanted);
    uint8_t stored[VALUE_BYTES_MAX + BASE_ROW_CRC_BYTES];
    MDB_val key = {KV_KEY_BYTES, row.key.bytes};
    MDB_val value = {row.size + BASE_ROW_CRC_BYTES, stored};

    base_row_write(stored, &row.key, (struct bytes){row.value, row.size});
    stored[row.size / 2] ^= 1;
    must(mdb_put(edit->transaction, edit->table, &key, &value, 0), "put");
}
static void spoil_chunk(struct edit *edit) {
    spoil(edit, is_segment);
}
static void spoil_inode(struct edit *edit) {
    spoil(edit, is_inode);
}
static void drop_inode(struct edit *edit) {
    struct row row = row_find(edit, is_inode);

    row_delete(edit, &row);
}
static void drop_name(struct edit *edit) {
    struct row row = row_find(edit, is_dentry);

    row_delete(edit, &row);
}
static void drop_partition(struct edit *edit) {
    struct row row = row_find(edit, is_partition);

    row_delete(edit, &row);
}
static void set_links(struct edit *edit) {
    struct row row = row_find(edit, is_inode);

    store_le32(row.value + offsetof(struct inode_row, nlink), (uint32_t)edit->number);
    row_put(edit, &row);
}
static void set_generation(struct edit *edit) {
    struct row row = row_find(edit, is_inode);

    store_le32(row.value + offsetof(struct inode_row, chunk_generation), (uint32_t)edit->number);
    row_put(edit, &row);
}
static void set_size(struct edit *edit) {
    struct row row = row_find(edit, is_inode);

    store_le64(row.value + offsetof(struct inode_row, size), edit->number);
    row_put(edit, &row);
}
static void set_count(struct edit *edit) {
    struct row row = row_find(edit, is_partition);

    store_le64(row.value + offsetof(struct partition_row, file_count), edit->number);
    row_put(edit, &row);
}
static void set_parent(struct edit *edit) {
    struct row row = row_find(edit, is_inode);

    store_le64(row.value + offsetof(struct inode_row, parent), edit->number);
    row_put(edit, &row);
}
static void add_inline(struct edit *edit) {
    struct row row = row_find(edit, is_inode);
    struct inline_row piece = {.format = META_FORMAT};

    row.fields.type = ROW_INLINE;
    row.key = kv_key_make(row.fields);
    memcpy(row.value, &piece, sizeof piece);
    memset(row.value + sizeof piece, 'x', 100);
    row.size = sizeof piece + 100;
    row_put(edit, &row);
}

/* So many blocks are kept for files that have reserved none. */
static void set_promised(struct edit *edit) {
    struct row row = {.key = store_owner_key(STORE_ROW_PROMISED, 0, 0)};
    const struct store_promised promised = {.format = STORE_FORMAT, .block_count = edit->number};

    memcpy(row.value, &promised, sizeof promised);
    row.size = sizeof promised;
    row_put(edit, &row);
}

static const struct {
    const char *name;
    void (*run)(struct edit *edit);
} ways[] = {
    {"block", print_block},         {"chunk-generation", print_generation},
    {"drop-head", drop_head},       {"drop-segment", drop_segment},
    {"orphan", add_orphan},         {"share", share_block},
    {"clear-bit", clear_bit},       {"spoil-chunk", spoil_chunk},
    {"spoil-inode", spoil_inode},   {"drop-inode", drop_inode},
    {"drop-name", drop_name},       {"drop-partition", drop_partition},
    {"links", set_links},           {"size", set_size},
    {"generation", set_generation}, {"count", set_count},
    {"parent", set_parent},         {"inline", add_inline},
    {"promised", set_promised},
};

int main(int argc, char **argv) {
    struct edit edit = {0};
    MDB_env *env;

    if (argc < 4) {
        fprintf(stderr, "usage: fsck_edit BASE HOW INO [NUMBER]\n");
        return 2;
    }
    edit.ino = strtoull(argv[3], NULL, 10);
    edit.number = argc > 4 ? strtoull(argv[4], NULL, 10) : 0;
    must(mdb_env_create(&env), "create");
    must(mdb_env_set_mapsize(env, MAP_BYTES), "map size");
    must(mdb_env_open(env, argv[1], MDB_NOSUBDIR, 0600), argv[1]);
    must(mdb_txn_begin(env, NULL, 0, &edit.transaction), "begin");
    must(mdb_dbi_open(edit.transaction, NULL, 0, &edit.table), "open");
    for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
        if (strcmp(ways[i].name, argv[2]) == 0) {
            ways[i].run(&edit);
            must(mdb_txn_commit(edit.transaction), "commit");
            mdb_env_close(env);
            return 0;
        }
    }
    fprintf(stderr, "fsck_edit: no way %s\n", argv[2]);
    return 2;
}
