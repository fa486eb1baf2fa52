/* A folder whose contents a power cut can take back: what was written, made, renamed or removed and
 * not synced since is known, with what was there before.
 *
 *     BACK/root     the files, as who uses them sees them
 *     BACK/graves   what was removed or replaced by a name that is not synced yet
 *
 * A disk's promises, and no more: a write is durable after a sync of its file, a name after a sync
 * of its directory; of what is not, a cut keeps any part. Blocks are kept, or as before, or torn at
 * 512 bytes; a size is the old or the new one; of the names of a directory a first part of what was
 * done stays.
 *
 * Thread: all under the caller's lock, but power_read. Memory: 4 KiB for each block not synced. */
#pragma once
#include "base/types.h"
#include <sys/stat.h>
#include <sys/types.h>

struct power_store;

struct power_node {
    uint64_t id; /* 1 is the root */
    int fd;      /* its contents; of what is neither file nor directory, O_PATH */
    mode_t mode;
    uint64_t inode;
    uint64_t durable_size;
    bool size_changed;
    struct power_undo *undo; /* open addressing */
    size_t undo_count;
    size_t undo_slots;
};

struct power_counts {
    uint64_t kept, restored, torn; /* blocks */
    uint64_t sizes_restored;
    uint64_t names_kept, names_restored;
};

/* All answer 0 or a negative errno. */
int power_store_open(const char *back, struct power_store **ret_store);
struct power_node *power_node_get(struct power_store *store, uint64_t id);
int power_lookup(struct power_store *store, struct power_node *in, const char *name,
                 struct power_node **ret_node);
/* A file, directory or socket. */
int power_make(struct power_store *store, struct power_node *in, const char *name, mode_t mode,
               struct power_node **ret_node);
int power_remove(struct power_store *store, struct power_node *in, const char *name);
int power_rename(struct power_store *store, struct power_node *in, const char *from,
                 const char *to);
ssize_t power_read(const struct power_node *node, void *data, size_t size, uint64_t offset);
ssize_t power_write(struct power_node *node, const void *data, size_t size, uint64_t offset);
int power_truncate(struct power_node *node, uint64_t size);
int power_allocate(struct power_node *node, uint64_t offset, uint64_t size);
/* A file's contents, or a directory's names. */
void power_sync(struct power_store *store, struct power_node *node);
/* The cut; nothing else is called afterwards. */
void power_cut(struct power_store *store, uint64_t seed, struct power_counts *ret_counts);
