/* Names: whether what a pass has counted for an inode is right. */
#include "check/fsck_away.h"
#include "check/fsck_crossing.h"
#include "check/fsck_lost.h"
#include "check/fsck_names.h"
#include "check/fsck_slots.h"
#include <inttypes.h>
#include <stdio.h>

static void look_later(struct fsck_names *names, uint64_t ino) {
    if (names->later_count < FSCK_SUSPECTS_MAX) {
        names->later[names->later_count++] = ino;
    } else {
        names->fsck->counts.unsettled++;
    }
}

/* Rows that are gone need no judgement, and those that make no sense were told of when read. */
static int error_told(int r) {
    return fsck_is_row_error(r) ? 0 : r;
}

static bool is_directory(const struct fsck_node *node) {
    return node->type == MODE_DIRECTORY >> 12;
}

static uint32_t names_expected(const struct fsck_node *node) {
    if (is_directory(node)) {
        return node->ino == INO_ROOT.value || node->flags & NODE_DYING || node->nlink == 0 ? 0 : 1;
    }
    return node->nlink;
}

static bool is_unnamed(const struct fsck_node *node) {
    return node->ino != INO_ROOT.value && names_expected(node) == 0;
}

static bool links_are_right(const struct fsck_node *node) {
    bool homed = !is_directory(node) || node->names == 0 || node->named_in == node->parent;

    return node->names == names_expected(node) && homed && !(node->flags & NODE_WRONG_TYPE) &&
           (!is_unnamed(node) || node->flags & NODE_ORPHAN);
}

static void report_links(struct fsck *fsck, const struct fsck_node *node) {
    char where[FSCK_WHERE_BYTES];
    uint32_t expected = names_expected(node);

    fsck_where_ino(fsck, node->ino, where);
    if (node->names < expected && fsck_any_mdt_is_lost(fsck)) {
        fsck_problem(fsck, "lost-metadata", where,
                     "%" PRIu32 " names lead to it, not %" PRIu32 ": the others may have been on "
                     "a metadata target that is lost",
                     node->names, expected);
    } else if (node->names == 0 && expected > 0) {
        fsck_problem(fsck, "orphan", where,
                     "no directory names it, although it has %" PRIu32
                     " links: nobody can reach it",
                     node->nlink);
    } else if (node->names != expected) {
        fsck_problem(fsck, "link-count", where, "%" PRIu32 " names lead to it, not %" PRIu32,
                     node->names, expected);
    } else if (is_unnamed(node)) {
        fsck_problem(fsck, "orphan", where,
                     "it has no name and is not kept for anyone who has it open");
    } else if (node->flags & NODE_WRONG_TYPE) {
        fsck_problem(fsck, "wrong-type", where, "a name of it says that it is something else");
    } else {
        fsck_problem(fsck, "wrong-parent", where,
                     "inode %" PRIu64 " names this directory, but its parent is %" PRIu64,
                     node->named_in, node->parent);
    }
}

static int judge_links(struct fsck_names *names, const struct fsck_node *node) {
    struct inode_row row;
    bool crossing = node->flags & NODE_CROSSING;
    bool unlisted = false;

    if (links_are_right(node)) {
        return 0;
    }
    int r = 0;
    if (node->names < names_expected(node)) {
        r = fsck_names_are_there(names->fsck, is_directory(node), node->parent);
    }
    /* First, as what was promised then has changed the row by now, or never will. */
    if (r == 0 && !crossing) {
        r = fsck_is_crossing(names->fsck, node->ino, &crossing);
    }
    if (r == 0 && !crossing) {
        r = fsck_inode_get(names->fsck, node->ino, &row);
    }
    if (r < 0) {
        return error_told(r);
    }
    /* Who has gone away since the pass began may have told some of its names, and what is promised
     * there is not known. */
    if (crossing || row.epoch != node->epoch || names->fsck->mdts_away != names->mdts_away) {
        look_later(names, node->ino);
        return 0;
    }
    /* It may have names of the inode, and the map of the check will never say where. */
    r = fsck_has_unknown_group(names->fsck, &unlisted);
    if (r == 0 && unlisted) {
        names->fsck->counts.unsettled++;
    } else if (r == 0) {
        report_links(names->fsck, node);
    }
    return r;
}

static int partition_get(struct fsck *fsck, uint64_t ino, struct partition_row *ret_row) {
    struct kv_key key = key_partition((struct ino){ino});
    const struct partition_row *row;
    struct bytes value;

    int r = fsck_row_get(fsck, fsck_mdt_of(fsck, ino), FSCK_PARTITIONS, &key, &value);
    if (r == 0) {
        r = partition_row_check(value, &row);
    }
    if (r == 0) {
        *ret_row = *row;
    }
    return r;
}

/* The directory's entries alone, so that it takes long only for a long one. */
static int entries_count(struct fsck *fsck, uint64_t ino, uint64_t *ret_files,
                         uint64_t *ret_directories) {
    struct kv_key from = key_dentry((struct ino){ino}, 0);
    const struct dentry_row *dentry;
    struct fsck_list list;
    struct fsck_row row;
    int r;

    *ret_files = 0;
    *ret_directories = 0;
    fsck_list_begin(&list, fsck, fsck_mdt_of(fsck, ino), FSCK_DENTRIES);
    fsck_list_from(&list, &from);
    while ((r = fsck_list_next(&list, &row)) == 0 && kv_key_split(&row.key).id == ino) {
        if (dentry_row_check(row.value, &dentry) < 0 || dentry->flags & DENTRY_HOLE) {
            continue;
        }
        *(dentry->type == MODE_DIRECTORY >> 12 ? ret_directories : ret_files) += 1;
    }
    return error_told(r);
}

static void report_counts(struct fsck *fsck, uint64_t ino, const struct partition_row *partition,
                          uint64_t files, uint64_t directories) {
    char where[FSCK_WHERE_BYTES];

    fsck_problem(fsck, "entry-count", fsck_where_ino(fsck, ino, where),
                 "it counts %" PRIu64 " files and %" PRIu64 " directories, but names %" PRIu64
                 " and %" PRIu64,
                 partition->file_count, partition->directory_count, files, directories);
}

/* A partition's epoch changes with each entry made or removed. */
static int judge_counts(struct fsck_names *names, const struct fsck_node *node) {
    struct fsck *fsck = names->fsck;

    if (node->flags & NODE_PARTITION && node->files == 0 && node->directories == 0) {
        return 0;
    }
    for (int i = 0; i < FSCK_LOOKS_MAX; i++) {
        struct partition_row before = {0};
        struct partition_row after = {0};
        struct inode_row inode;
        uint64_t files;
        uint64_t directories;

        int r = partition_get(fsck, node->ino, &before);
        if (r == -ERR_NOT_FOUND && fsck_inode_get(fsck, node->ino, &inode) == 0) {
            char where[FSCK_WHERE_BYTES];

            fsck_problem(fsck, "lost-directory", fsck_where_ino(fsck, node->ino, where),
                         "the row that counts its entries is missing");
            return 0;
        }
        if (r == 0) {
            r = entries_count(fsck, node->ino, &files, &directories);
        }
        if (r == 0) {
            r = partition_get(fsck, node->ino, &after);
        }
        if (r < 0) {
            return error_told(r);
        }
        bool same = before.epoch == after.epoch;
        if (before.file_count == files && before.directory_count == directories) {
            return 0;
        }
        if (same) {
            report_counts(fsck, node->ino, &after, files, directories);
            return 0;
        }
    }
    fsck->counts.unsettled++;
    return 0;
}

static uint64_t *rooted_slot(struct fsck_names *names, uint64_t ino) {
    return &names->rooted[fsck_hash(ino) % FSCK_ROOTED_COUNT];
}

/* Walks up until the root or a directory that is known to be below it. Brent: `mark` moves on at
 * powers of two, so that any circle meets it. */
static int parents_climb(struct fsck_names *names, const struct fsck_node *node, bool *ret_circle) {
    uint64_t at = node->parent;
    uint64_t mark = node->ino;
    uint64_t steps = 0;

    *ret_circle = false;
    while (at != INO_ROOT.value && *rooted_slot(names, at) != at) {
        struct inode_row row;

        if (at == mark) {
            *ret_circle = true;
            return 0;
        }
        mark = (steps & (steps + 1)) == 0 ? at : mark;
        steps++;
        int r = fsck_inode_get(names->fsck, at, &row);
        if (r < 0) {
            return r; /* a missing parent is told where its entry is judged */
        }
        at = row.parent;
    }
    *rooted_slot(names, node->ino) = node->ino;
    return 0;
}

/* Directories may be moved while one climbs: a circle is one when it is met each time. */
static int judge_root(struct fsck_names *names, const struct fsck_node *node) {
    bool circle = true;

    if (node->ino == INO_ROOT.value || is_unnamed(node)) {
        return 0;
    }
    for (int i = 0; circle && i < FSCK_LOOKS_MAX; i++) {
        int r = parents_climb(names, node, &circle);
        if (r < 0) {
            return error_told(r);
        }
    }
    if (circle) {
        char where[64];

        snprintf(where, sizeof where, "inode %" PRIu64, node->ino);
        fsck_problem(names->fsck, "circle", where,
                     "the parents of this directory lead round in a circle, not to the root");
    }
    return 0;
}

/* What one judgement can't say without a target that is away, another one may. */
static int node_judge(struct fsck_names *names, const struct fsck_node *node) {
    int (*const judges[])(struct fsck_names *,
                          const struct fsck_node *) = {judge_links, judge_counts, judge_root};
    size_t count = is_directory(node) && !names->again ? ARRAY_SIZE(judges) : 1;
    int result = 0;

    for (size_t i = 0; i < count; i++) {
        int r = judges[i](names, node);

        if (r < 0 && r != -ERR_AWAY) {
            return r;
        }
        result = MIN(result, r);
    }
    return fsck_pass_by(names->fsck, result);
}

int fsck_names_judge(struct fsck_names *names) {
    int r = 0;

    for (uint32_t i = 0; r == 0 && i <= names->table.mask; i++) {
        if (names->table.nodes[i].ino != 0) {
            r = node_judge(names, &names->table.nodes[i]);
        }
    }
    return r;
}
