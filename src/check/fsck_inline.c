/* Bytes of small files: each row's inode keeps its data so. One walk asks for each inode once. */
#include "check/fsck_away.h"
#include <inttypes.h>
#include <stdio.h>

static void row_report(struct fsck *fsck, const struct kv_key *key, const char *meaning) {
    struct kv_key_fields fields = kv_key_split(key);
    char file[FSCK_WHERE_BYTES];
    char where[FSCK_WHERE_BYTES + 64];

    snprintf(where, sizeof where, "%s, piece %" PRIu64 " on mdt%" PRIu32,
             fsck_where_ino(fsck, fields.id, file), fields.index, fsck_mdt_place(fsck, fields.id));
    fsck_problem(fsck, "inline", where, "%s", meaning);
}

/* NULL: right. */
static const char *reason_of(int inode_result, const struct inode_row *inode) {
    if (inode_result == -ERR_NOT_FOUND) {
        return "bytes of a small file that does not exist: they take a little space, no more";
    }
    if (inode_result < 0 || inode->data_state == DATA_INLINE) {
        return NULL; /* inodes that make no sense are told of elsewhere */
    }
    return "bytes in the inode of a file that keeps its data in chunks: nobody reads these";
}

/* Wrong, if the row is there between two looks at an inode that is the same at both. */
static int row_recheck(struct fsck *fsck, const struct kv_key *key) {
    struct ino ino = {kv_key_split(key).id};

    for (int i = 0; i < FSCK_LOOKS_MAX; i++) {
        struct inode_row before = {0};
        struct inode_row after = {0};
        struct bytes value;

        int seen = fsck_inode_get(fsck, ino.value, &before);
        const char *reason = reason_of(seen, &before);
        if (!reason) {
            return fsck_is_row_error(seen) ? 0 : seen;
        }
        int r = fsck_row_get(fsck, fsck_mdt_of(fsck, ino.value), FSCK_INLINE, key, &value);
        if (r < 0) {
            return r == -ERR_NOT_FOUND ? 0 : r;
        }
        r = fsck_inode_get(fsck, ino.value, &after);
        if (r == seen && before.epoch == after.epoch) {
            row_report(fsck, key, reason);
            return 0;
        }
    }
    fsck->counts.unsettled++;
    return 0;
}

static int row_check(struct fsck *fsck, const struct fsck_row *row, uint64_t *known) {
    struct kv_key key = row->key;
    uint64_t ino = kv_key_split(&key).id;
    struct inode_row inode;
    struct bytes data;

    if (inline_row_check(row->value, &data) < 0) {
        row_report(fsck, &key,
                   "the row makes no sense: reading the file fails or lacks these bytes");
        return 0;
    }
    if (ino == *known) {
        return 0;
    }
    *known = ino;
    int r = fsck_inode_get(fsck, ino, &inode);
    if (reason_of(r, &inode)) {
        return row_recheck(fsck, &key);
    }
    return fsck_is_row_error(r) ? 0 : r;
}

int fsck_inline(struct fsck *fsck) {
    struct fsck_list list;
    struct fsck_row row;
    uint64_t known = 0;
    int r;

    fsck_list_begin_all(&list, fsck, FSCK_INLINE);
    while ((r = fsck_list_next(&list, &row)) == 0) {
        r = fsck_pass_by(fsck, row_check(fsck, &row, &known));
        if (r < 0) {
            return r;
        }
    }
    return r == -ERR_NOT_FOUND ? 0 : r;
}
