/* Reading all rows, sorting, comparing. */
#include "whole.h"
#include "accords.h"
#include "layout/map_lost.h"
#include "losses.h"
#include "meta/rows.h"
#include "walk.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 100000 };

struct entry {
    uint64_t ino;
    uint64_t directory;
    uint64_t index;
    uint8_t type;
};

struct inode {
    uint64_t ino;
    uint64_t parent;
    uint64_t parent_name;
    uint32_t mode;
    uint32_t nlink;
    uint32_t names; /* that were found */
    bool has_partition;
    uint64_t files, directories;             /* as its partition says */
    uint64_t files_found, directories_found; /* as its entries say */
};

struct whole {
    struct world *world;
    struct inode *inodes;
    size_t inode_count, inode_room;
    struct entry *entries;
    size_t entry_count, entry_room;
    char *failure;
};

static void *grown(void *list, size_t count, size_t *room, size_t size_bytes) {
    if (count < *room) {
        return list;
    }
    *room = *room ? 2 * *room : 256;
    list = realloc(list, *room * size_bytes);
    if (!list) {
        abort();
    }
    return list;
}

static bool broken(const struct whole *whole, uint64_t ino, const char *what, uint64_t is,
                   uint64_t must_be) {
    (void)snprintf(whole->failure, 600,
                   "inode %" PRIx64 ": %s: %" PRIx64 ", must be %" PRIx64
                   ", when nothing is under way",
                   ino, what, is, must_be);
    return false;
}

static struct inode *inode_find(const struct whole *whole, uint64_t ino) {
    size_t low = 0;
    size_t high = whole->inode_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (whole->inodes[middle].ino < ino) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < whole->inode_count && whole->inodes[low].ino == ino ? &whole->inodes[low] : NULL;
}

static int inode_compare(const void *a, const void *b) {
    const struct inode *left = a;
    const struct inode *right = b;

    return (left->ino > right->ino) - (left->ino < right->ino);
}

/* Rows that are damaged on purpose are left out: the seed then has an excuse for what follows. */
static bool row_take(struct whole *whole, const struct walk *walk) {
    struct kv_key_fields at = kv_key_split(&walk->cursor.key);
    struct bytes value = {walk->value, walk->size};
    const struct inode_row *inode;
    const struct dentry_row *entry;

    if (at.type == ROW_INODE && inode_row_check(value, &inode) == 0) {
        whole->inodes =
            grown(whole->inodes, whole->inode_count, &whole->inode_room, sizeof *whole->inodes);
        whole->inodes[whole->inode_count++] = (struct inode){.ino = at.id,
                                                             .parent = inode->parent,
                                                             .parent_name = inode->parent_name,
                                                             .mode = inode->mode,
                                                             .nlink = inode->nlink};
    }
    if (at.type == ROW_DENTRY && dentry_row_check(value, &entry) == 0 &&
        !(entry->flags & DENTRY_HOLE)) {
        whole->entries =
            grown(whole->entries, whole->entry_count, &whole->entry_room, sizeof *whole->entries);
        whole->entries[whole->entry_count++] =
            (struct entry){entry->ino, at.id, at.index, entry->type};
    }
    return true;
}

static bool partition_take(struct whole *whole, const struct walk *walk) {
    struct kv_key_fields at = kv_key_split(&walk->cursor.key);
    const struct partition_row *row;

    if (at.type != ROW_PARTITION ||
        partition_row_check((struct bytes){walk->value, walk->size}, &row) < 0) {
        return true;
    }
    struct inode *inode = inode_find(whole, at.id);
    if (!inode) {
        return broken(whole, at.id, "its partition has no inode", 1, 0);
    }
    inode->has_partition = true;
    inode->files = row->file_count;
    inode->directories = row->directory_count;
    return true;
}

/* Its target is lost for good, and nothing that it knew of it is left. */
static bool is_lost(const struct whole *whole, uint64_t ino) {
    return cluster_map_slot_is_lost(&whole->world->map, ino_slot((struct ino){ino}));
}

static bool any_is_lost(const struct whole *whole) {
    bool any = false;

    for (uint32_t i = 0; i < whole->world->options.mdt_count; i++) {
        any = any || node_is_lost(&whole->world->mdts[i]);
    }
    return any;
}

static bool rows_read(struct whole *whole,
                      bool (*take)(struct whole *whole, const struct walk *walk)) {
    struct walk walk;

    for (uint32_t i = 0; i < whole->world->options.mdt_count; i++) {
        int r;

        if (node_is_lost(&whole->world->mdts[i])) {
            continue;
        }
        walk_begin(&walk, &whole->world->mdts[i],
                   kv_key_make((struct kv_key_fields){.space = KV_SPACE_SLOT}),
                   kv_key_make((struct kv_key_fields){.space = KV_SPACE_SLOT + 1}));
        while ((r = walk_next(&walk)) == 0) {
            if (!take(whole, &walk)) {
                return false;
            }
        }
        if (r != -ERR_NOT_FOUND) {
            return broken(whole, i, "rows of this target cannot be read", (uint64_t)-r, 0);
        }
    }
    return true;
}

static bool entries_check(const struct whole *whole) {
    for (size_t i = 0; i < whole->entry_count; i++) {
        const struct entry *entry = &whole->entries[i];
        struct inode *inode = inode_find(whole, entry->ino);
        struct inode *directory = inode_find(whole, entry->directory);

        if (!directory || !directory->has_partition) {
            return broken(whole, entry->directory, "it has names, and is no directory", 1, 0);
        }
        if (!inode && is_lost(whole, entry->ino)) {
            directory->directories_found += entry->type == MODE_DIRECTORY >> 12;
            directory->files_found += entry->type != MODE_DIRECTORY >> 12;
            continue;
        }
        if (!inode) {
            return broken(whole, entry->ino, "it has a name, and is not there; directory",
                          entry->directory, 0);
        }
        if (entry->type != inode->mode >> 12) {
            return broken(whole, entry->ino, "type by its name", entry->type, inode->mode >> 12);
        }
        inode->names++;
        directory->directories_found += mode_is_directory(inode->mode);
        directory->files_found += !mode_is_directory(inode->mode);
        bool own = inode->parent == entry->directory && inode->parent_name == entry->index;
        if (mode_is_directory(inode->mode) && !own) {
            return broken(whole, entry->ino, "parent", inode->parent, entry->directory);
        }
    }
    return true;
}

static bool leads_to_root(const struct whole *whole, const struct inode *inode) {
    for (int i = 0; i < DEPTH_MAX && inode; i++) {
        if (inode->ino == INO_ROOT.value || is_lost(whole, inode->parent)) {
            return true;
        }
        inode = inode_find(whole, inode->parent);
    }
    return false;
}

/* Names of a file may have been in a directory that is lost. Of a directory it is known in which
 * one its name was; of a file that is a hint. */
static bool names_are_right(const struct whole *whole, const struct inode *inode, uint32_t names) {
    bool directory = mode_is_directory(inode->mode);

    return inode->names == names || (inode->names < names && any_is_lost(whole) &&
                                     (!directory || is_lost(whole, inode->parent)));
}

static bool inodes_check(const struct whole *whole) {
    for (size_t i = 0; i < whole->inode_count; i++) {
        const struct inode *inode = &whole->inodes[i];
        bool directory = mode_is_directory(inode->mode);
        uint32_t names = !directory ? inode->nlink : inode->ino == INO_ROOT.value ? 0 : 1;

        if (!names_are_right(whole, inode, names)) {
            return broken(whole, inode->ino, "names", inode->names, names);
        }
        if (directory != inode->has_partition) {
            return broken(whole, inode->ino, "partitions", inode->has_partition, directory);
        }
        if (inode->files != inode->files_found) {
            return broken(whole, inode->ino, "count of files", inode->files, inode->files_found);
        }
        if (inode->directories != inode->directories_found) {
            return broken(whole, inode->ino, "count of directories", inode->directories,
                          inode->directories_found);
        }
        if (directory && !leads_to_root(whole, inode)) {
            return broken(whole, inode->ino, "there is no way to the root; parent", inode->parent,
                          0);
        }
    }
    return true;
}

bool whole_check(struct world *world, char failure[600]) {
    struct whole whole = {.world = world, .failure = failure};

    bool good = rows_read(&whole, row_take);
    if (good && whole.inode_count > 0) {
        qsort(whole.inodes, whole.inode_count, sizeof *whole.inodes, inode_compare);
    }
    good = good && rows_read(&whole, partition_take);
    good = good && entries_check(&whole) && inodes_check(&whole) && accords_check(world, failure);
    free(whole.inodes);
    free(whole.entries);
    return good;
}
