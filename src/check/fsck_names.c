/* Names: the passes over inodes, partitions, orphans and entries. */
#include "check/fsck_away.h"
#include "check/fsck_crossing.h"
#include "check/fsck_lost.h"
#include "check/fsck_names.h"
#include "check/fsck_slots.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void report_row(struct fsck *fsck, const struct kv_key *key, int error) {
    struct kv_key_fields fields = kv_key_split(key);
    char where[128];

    snprintf(where, sizeof where, "row %c %" PRIu64 " %" PRIu64 " on mdt%" PRIu32, fields.type,
             fields.id, fields.index, fsck_mdt_place(fsck, fields.id));
    fsck_problem(fsck, "bad-row", where, "the row makes no sense: %s", err_text(error));
}

/* Calls `each` for every row of a kind. */
typedef int row_fn(struct fsck_names *names, const struct fsck_row *row);

static int for_rows(struct fsck_names *names, uint32_t what, row_fn *each) {
    struct fsck_list list;
    struct fsck_row row;
    int r;

    fsck_list_begin_all(&list, names->fsck, what);
    while ((r = fsck_list_next(&list, &row)) == 0) {
        r = fsck_pass_by(names->fsck, each(names, &row));
        if (r < 0) {
            return r;
        }
    }
    return r == -ERR_NOT_FOUND ? 0 : r;
}

static int row_is_there(struct fsck *fsck, uint32_t what, const struct kv_key *key,
                        bool *ret_there) {
    struct bytes value;
    int r = fsck_row_get(fsck, fsck_mdt_of(fsck, kv_key_split(key).id), what, key, &value);

    if (r == 0 || r == -ERR_NOT_FOUND) {
        *ret_there = r == 0;
        r = 0;
    }
    return r;
}

/* Whether a row is there although the inode that it is about is not: the inode is asked for first,
 * since its number never comes again. */
static int is_left_behind(struct fsck *fsck, uint64_t ino, uint32_t what, const struct kv_key *key,
                          bool *ret_left) {
    struct kv_key inode = key_inode((struct ino){ino});
    bool there = false;

    int r = row_is_there(fsck, FSCK_INODES, &inode, &there);
    if (r < 0 || there) {
        *ret_left = false;
        return r;
    }
    return row_is_there(fsck, what, key, ret_left);
}

static int count_inode(struct fsck_names *names, const struct fsck_row *row) {
    const struct inode_row *inode;
    int r = inode_row_check(row->value, &inode);

    if (r < 0) {
        report_row(names->fsck, &row->key, r);
    } else if (mode_is_directory(inode->mode)) {
        names->fsck->counts.directories++;
    } else {
        names->fsck->counts.files++;
    }
    return 0;
}

static bool is_mine(const struct fsck_names *names, uint64_t ino) {
    return names->again
               ? fsck_table_find(&names->table, ino) != NULL
               : fsck_hash(ino) / (names->table.mask + UINT64_C(1)) % names->parts == names->part;
}

static int take_inode(struct fsck_names *names, const struct fsck_row *row) {
    uint64_t ino = kv_key_split(&row->key).id;
    const struct inode_row *inode;

    if (inode_row_check(row->value, &inode) < 0 || (!names->again && !is_mine(names, ino))) {
        return 0;
    }
    struct fsck_node *node = fsck_table_add(&names->table, ino);
    if (!node) {
        names->fsck->counts.unsettled++;
        return 0;
    }
    node->epoch = inode->epoch;
    node->parent = inode->parent;
    node->nlink = inode->nlink;
    node->type = (uint8_t)(inode->mode >> 12);
    node->flags = inode->flags & INODE_DYING ? NODE_DYING : 0;
    return 0;
}

static int take_partition(struct fsck_names *names, const struct fsck_row *row) {
    uint64_t ino = kv_key_split(&row->key).id;
    const struct partition_row *partition;
    struct kv_key key = row->key;

    if (!is_mine(names, ino)) {
        return 0;
    }
    int r = partition_row_check(row->value, &partition);
    if (r < 0) {
        report_row(names->fsck, &row->key, r);
        return 0;
    }
    struct fsck_node *node = fsck_table_find(&names->table, ino);
    bool left = false;
    if (node) {
        node->flags |= NODE_PARTITION;
        node->files += (int64_t)partition->file_count;
        node->directories += (int64_t)partition->directory_count;
        return 0;
    }
    r = is_left_behind(names->fsck, ino, FSCK_PARTITIONS, &key, &left);
    if (left) {
        char where[64];

        snprintf(where, sizeof where, "inode %" PRIu64, ino);
        fsck_problem(names->fsck, "lost-directory", where,
                     "a directory's counts are there, its inode is missing");
    }
    return r;
}

static int take_orphan(struct fsck_names *names, const struct fsck_row *row) {
    uint64_t ino = kv_key_split(&row->key).id;
    struct kv_key key = row->key;
    bool left = false;

    if (!is_mine(names, ino)) {
        return 0;
    }
    const struct mark_row *mark;
    int checked = mark_row_check(row->value, &mark);
    if (checked < 0 && !names->again) {
        report_row(names->fsck, &row->key, checked);
    }
    struct fsck_node *node = fsck_table_find(&names->table, ino);
    if (node) {
        node->flags |= NODE_ORPHAN;
        return 0;
    }
    int r = is_left_behind(names->fsck, ino, FSCK_ORPHANS, &key, &left);
    if (left) {
        char where[64];

        snprintf(where, sizeof where, "inode %" PRIu64, ino);
        fsck_problem(names->fsck, "lost-inode", where,
                     "it is marked as open and without a name, but is missing");
    }
    return r;
}

struct fsck_entry {
    struct kv_key key;
    uint64_t directory;
    uint64_t ino;
    uint8_t name_bytes;
    char name[NAME_BYTES_MAX + 1];
};

/* Whether the target that misses the inode is the one that would have it. */
static int missing_is_sure(struct fsck *fsck, uint64_t missing, bool *ret_sure) {
    struct fsck_slot slot;
    int r = fsck_slot_get(fsck, missing, &slot);

    *ret_sure = slot.is_its;
    fsck->counts.unsettled += r == 0 && !slot.is_its;
    return r;
}

/* A name is there from the decision on, its inode elsewhere from the commit on: until then it is
 * promised. So it is looked at again once nothing is. */
static int entry_is_left_behind(struct fsck *fsck, const struct fsck_entry *entry, uint64_t missing,
                                bool *ret_left) {
    for (int i = 0; i < FSCK_LOOKS_MAX; i++) {
        bool crossing = false;
        int r = is_left_behind(fsck, missing, FSCK_DENTRIES, &entry->key, ret_left);

        if (r < 0 || !*ret_left) {
            return r;
        }
        r = fsck_is_crossing(fsck, missing, &crossing);
        if (r == 0 && !crossing) {
            r = is_left_behind(fsck, missing, FSCK_DENTRIES, &entry->key, ret_left);
            return r == 0 && *ret_left ? missing_is_sure(fsck, missing, ret_left) : r;
        }
        if (r < 0) {
            return r;
        }
        fsck->cluster->rest(fsck->cluster->context);
    }
    *ret_left = false;
    fsck->counts.unsettled++;
    return 0;
}

/* An entry whose inode or directory the pass did not see: gone, newer than the pass, or a fault. */
static int entry_recheck(struct fsck *fsck, const struct fsck_entry *entry, uint64_t missing) {
    const struct dentry_row *dentry;
    struct bytes value;
    bool left = fsck_ino_is_lost(fsck, missing); /* Nothing is on its way to it. */

    int r = left ? 0 : entry_is_left_behind(fsck, entry, missing, &left);
    if (r < 0 || !left) {
        return r;
    }
    r = fsck_row_get(fsck, fsck_mdt_of(fsck, entry->directory), FSCK_DENTRIES, &entry->key, &value);
    if (r == 0) {
        r = dentry_row_check(value, &dentry);
    }
    if (r < 0) {
        return r == -ERR_NOT_FOUND ? 0 : r;
    }
    if (dentry->ino != entry->ino) {
        return 0; /* the name means something else by now */
    }
    char directory[FSCK_WHERE_BYTES];
    char where[FSCK_WHERE_BYTES + NAME_BYTES_MAX + 32];
    snprintf(where, sizeof where, "name \"%s\" in %s", entry->name,
             fsck_where_ino(fsck, entry->directory, directory));
    if (fsck_ino_is_lost(fsck, missing)) {
        fsck_problem(fsck, "lost-metadata", where,
                     "it names inode %" PRIu64 ", which was on a metadata target that is lost: "
                     "remove it, by unlink or rmdir",
                     entry->ino);
    } else if (missing == entry->directory) {
        fsck_problem(fsck, "lost-name", where, "the directory's inode is missing");
    } else {
        fsck_problem(fsck, "missing-inode", where, "it names inode %" PRIu64 ", which is missing",
                     entry->ino);
    }
    return 0;
}

static struct fsck_entry entry_of(const struct kv_key *key, const struct dentry_row *dentry) {
    struct fsck_entry entry = {.key = *key,
                               .directory = kv_key_split(key).id,
                               .ino = dentry->ino,
                               .name_bytes = dentry->name_bytes};

    memcpy(entry.name, dentry->name, dentry->name_bytes);
    return entry;
}

static void entry_count(struct fsck_node *directory, struct fsck_node *node, uint64_t in,
                        uint8_t type) {
    if (directory && type == MODE_DIRECTORY >> 12) {
        directory->directories--;
    } else if (directory) {
        directory->files--;
    }
    if (node) {
        node->names++;
        node->named_in = in;
        node->flags |= node->type != type ? NODE_WRONG_TYPE : 0;
    }
}

static int take_dentry(struct fsck_names *names, const struct fsck_row *row) {
    const struct dentry_row *dentry;

    int r = dentry_row_check(row->value, &dentry);
    if (r < 0) {
        if (!names->again && names->part == 0) {
            report_row(names->fsck, &row->key, r);
        }
        return 0;
    }
    if (dentry->flags & DENTRY_HOLE) {
        return 0;
    }
    uint64_t in = kv_key_split(&row->key).id;
    struct fsck_node *node = fsck_table_find(&names->table, dentry->ino);
    struct fsck_node *directory = fsck_table_find(&names->table, in);
    entry_count(directory, node, in, dentry->type);
    bool names_nothing = !node && is_mine(names, dentry->ino);
    bool in_nothing = !directory && is_mine(names, in);
    if (names_nothing || in_nothing) {
        struct fsck_entry entry = entry_of(&row->key, dentry);

        /* First what its own target has, which is there. */
        if (in_nothing) {
            r = entry_recheck(names->fsck, &entry, in);
        }
        if (r == 0 && names_nothing) {
            r = entry_recheck(names->fsck, &entry, entry.ino);
        }
    }
    return r;
}

static void mark_crossing(void *context, uint64_t ino) {
    const struct fsck_names *names = context;
    struct fsck_node *node = ino > 0 ? fsck_table_find(&names->table, ino) : NULL;

    if (node) {
        node->flags |= NODE_CROSSING;
    }
}

static int names_pass(struct fsck_names *names) {
    int r = fsck_crossings(names->fsck, mark_crossing, names);

    if (r == 0) {
        r = for_rows(names, FSCK_PARTITIONS, take_partition);
    }
    if (r == 0) {
        r = for_rows(names, FSCK_ORPHANS, take_orphan);
    }
    if (r == 0) {
        r = for_rows(names, FSCK_DENTRIES, take_dentry);
    }
    return r < 0 ? r : fsck_names_judge(names);
}

/* Those that changed while they were counted, by themselves. */
static int pass_again(struct fsck_names *names) {
    uint32_t count = names->later_count;

    fsck_table_clear(&names->table);
    names->again = true;
    names->later_count = 0;
    names->mdts_away = names->fsck->mdts_away;
    for (uint32_t i = 0; i < count; i++) {
        struct kv_key key = key_inode((struct ino){names->later[i]});
        struct fsck_row row = {.key = key};

        int r = fsck_row_get(names->fsck, fsck_mdt_of(names->fsck, names->later[i]), FSCK_INODES,
                             &key, &row.value);
        if (r == 0) {
            r = take_inode(names, &row);
        }
        r = fsck_pass_by(names->fsck, r);
        if (r < 0 && r != -ERR_NOT_FOUND) {
            return r;
        }
    }
    return names->table.count > 0 ? names_pass(names) : 0;
}

static int names_passes(struct fsck_names *names) {
    int r = for_rows(names, FSCK_INODES, count_inode);
    uint64_t inodes = names->fsck->counts.files + names->fsck->counts.directories;

    /* A part holds a little less than fits, since new ones are made all the time. */
    names->parts = inodes / (names->table.count_max / 8 * 7) + 1;
    for (; r == 0 && names->part < names->parts; names->part++) {
        fsck_table_clear(&names->table);
        names->mdts_away = names->fsck->mdts_away;
        r = for_rows(names, FSCK_INODES, take_inode);
        if (r == 0) {
            r = names_pass(names);
        }
    }
    for (int i = 0; r == 0 && names->later_count > 0 && i < FSCK_LOOKS_MAX; i++) {
        r = pass_again(names);
    }
    names->fsck->counts.unsettled += names->later_count;
    return r;
}

int fsck_names(struct fsck *fsck) {
    struct fsck_names names = {.fsck = fsck};
    int r = fsck_table_init(&names.table, FSCK_TABLE_BYTES);

    names.later = calloc(FSCK_SUSPECTS_MAX, sizeof *names.later);
    names.rooted = calloc(FSCK_ROOTED_COUNT, sizeof *names.rooted);
    if (r == 0) {
        r = names.later && names.rooted ? names_passes(&names) : -ERR_NO_MEMORY;
    }
    free(names.rooted);
    free(names.later);
    fsck_table_deinit(&names.table);
    return r;
}
