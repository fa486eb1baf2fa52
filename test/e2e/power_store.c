/* Undo of what is not synced. */
#include "power_store.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 4096, SECTOR = 512, NODES_MAX = 4096, STEPS_MAX = 65536, NAME_BYTES = 256 };

struct power_undo {
    uint64_t block; /* number + 1; 0: free */
    uint8_t *before;
};

enum step_kind { STEP_MAKE, STEP_REMOVE, STEP_RENAME };

/* Something done to the names of a directory. */
struct step {
    enum step_kind kind;
    uint64_t in;
    char name[NAME_BYTES];
    char to[NAME_BYTES];
    uint64_t grave; /* of what had the name; 0: nothing */
};

struct power_store {
    int graves;
    uint64_t grave_count;
    struct power_node nodes[NODES_MAX];
    size_t node_count;
    struct step steps[STEPS_MAX];
    size_t step_count;
    uint64_t random;
    uint64_t keeps, tears; /* of ten blocks */
};

/* splitmix64 */
static uint64_t draw(struct power_store *store, uint64_t below) {
    uint64_t z = store->random += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z ^ z >> 31) % below;
}

static uint64_t size_of(const struct power_node *node) {
    struct stat status;

    return fstat(node->fd, &status) == 0 ? (uint64_t)status.st_size : 0;
}

static struct power_node *node_of(struct power_store *store, int fd) {
    struct stat status;

    if (fstat(fd, &status) < 0) {
        return NULL;
    }
    for (size_t i = 0; i < store->node_count; i++) {
        if (store->nodes[i].inode == status.st_ino) {
            return &store->nodes[i];
        }
    }
    if (store->node_count == NODES_MAX) {
        return NULL;
    }
    struct power_node *node = &store->nodes[store->node_count++];
    *node = (struct power_node){.id = store->node_count,
                                .fd = dup(fd),
                                .mode = status.st_mode,
                                .inode = status.st_ino,
                                .durable_size = (uint64_t)status.st_size};
    return node->fd >= 0 ? node : NULL;
}

int power_store_open(const char *back, struct power_store **ret_store) {
    struct power_store *store = calloc(1, sizeof *store);
    int at = open(back, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int root;

    if (!store || at < 0) {
        free(store);
        return store ? -errno : -ENOMEM;
    }
    (void)mkdirat(at, "root", 0755);
    (void)mkdirat(at, "graves", 0755);
    store->graves = openat(at, "graves", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    root = openat(at, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* Those of earlier runs stay. */
    store->grave_count = (uint64_t)getpid() << 32;
    close(at);
    if (store->graves < 0 || root < 0 || !node_of(store, root)) {
        return -EIO;
    }
    close(root);
    *ret_store = store;
    return 0;
}

struct power_node *power_node_get(struct power_store *store, uint64_t id) {
    return id >= 1 && id <= store->node_count ? &store->nodes[id - 1] : NULL;
}

int power_lookup(struct power_store *store, struct power_node *in, const char *name,
                 struct power_node **ret_node) {
    struct stat status;

    if (fstatat(in->fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0) {
        return -errno;
    }
    int flags = S_ISREG(status.st_mode) ? O_RDWR : S_ISDIR(status.st_mode) ? O_RDONLY : O_PATH;
    int fd = openat(in->fd, name, flags | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    *ret_node = node_of(store, fd);
    close(fd);
    return *ret_node ? 0 : -ENFILE;
}

static void grave_name(uint64_t grave, char text[32]) {
    snprintf(text, 32, "%llu", (unsigned long long)grave);
}

/* Takes what has the name away; 0 when there is nothing. */
static uint64_t bury(struct power_store *store, int in, const char *name) {
    char grave[32];

    grave_name(++store->grave_count, grave);
    return renameat(in, name, store->graves, grave) == 0 ? store->grave_count : 0;
}

static void unbury(struct power_store *store, uint64_t number, int in, const char *name) {
    char grave[32];

    grave_name(number, grave);
    if (number != 0 && renameat(store->graves, grave, in, name) < 0) {
        perror("power_layer: unbury");
    }
}

static int step_add(struct power_store *store, struct step step, const char *name, const char *to) {
    if (store->step_count == STEPS_MAX) {
        return -ENOSPC;
    }
    snprintf(step.name, sizeof step.name, "%s", name);
    snprintf(step.to, sizeof step.to, "%s", to);
    store->steps[store->step_count++] = step;
    return 0;
}

int power_make(struct power_store *store, struct power_node *in, const char *name, mode_t mode,
               struct power_node **ret_node) {
    int r = S_ISDIR(mode) ? mkdirat(in->fd, name, mode & 07777)
                          : mknodat(in->fd, name, mode & (S_IFMT | 07777), 0);

    r = r < 0 ? -errno : step_add(store, (struct step){STEP_MAKE, in->id, "", "", 0}, name, "");
    r = r < 0 ? r : power_lookup(store, in, name, ret_node);
    if (r == 0) {
        (*ret_node)->durable_size = 0;
    }
    return r;
}

int power_remove(struct power_store *store, struct power_node *in, const char *name) {
    struct stat status;

    if (fstatat(in->fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0) {
        return -errno;
    }
    uint64_t grave = bury(store, in->fd, name);
    return grave == 0
               ? -EIO
               : step_add(store, (struct step){STEP_REMOVE, in->id, "", "", grave}, name, "");
}

int power_rename(struct power_store *store, struct power_node *in, const char *from,
                 const char *to) {
    uint64_t grave = bury(store, in->fd, to);

    if (renameat(in->fd, from, in->fd, to) < 0) {
        int error = errno;

        unbury(store, grave, in->fd, to);
        return -error;
    }
    return step_add(store, (struct step){STEP_RENAME, in->id, "", "", grave}, from, to);
}

static struct power_undo *undo_place(const struct power_node *node, uint64_t block) {
    size_t at = (size_t)(block * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (node->undo_slots - 1);

    while (node->undo[at].block != 0 && node->undo[at].block != block + 1) {
        at = (at + 1) & (node->undo_slots - 1);
    }
    return &node->undo[at];
}

static void undo_grow(struct power_node *node) {
    struct power_node grown = *node;

    grown.undo_slots = node->undo_slots ? node->undo_slots * 2 : 64;
    grown.undo = calloc(grown.undo_slots, sizeof *grown.undo);
    if (!grown.undo) {
        abort();
    }
    for (size_t i = 0; i < node->undo_slots; i++) {
        if (node->undo[i].block != 0) {
            *undo_place(&grown, node->undo[i].block - 1) = node->undo[i];
        }
    }
    free(node->undo);
    *node = grown;
}

/* What is durable of [offset, offset + size), before it changes. */
static void undo_save(struct power_node *node, uint64_t offset, uint64_t size) {
    for (uint64_t block = offset / BLOCK; size > 0 && block <= (offset + size - 1) / BLOCK;
         block++) {
        if (node->undo_count * 2 >= node->undo_slots) {
            undo_grow(node);
        }
        struct power_undo *undo = undo_place(node, block);
        if (undo->block != 0) {
            continue;
        }
        undo->block = block + 1;
        undo->before = calloc(1, BLOCK);
        if (!undo->before || pread(node->fd, undo->before, BLOCK, (off_t)(block * BLOCK)) < 0) {
            abort();
        }
        node->undo_count++;
    }
}

ssize_t power_read(const struct power_node *node, void *data, size_t size, uint64_t offset) {
    ssize_t got = pread(node->fd, data, size, (off_t)offset);

    return got < 0 ? -errno : got;
}

ssize_t power_write(struct power_node *node, const void *data, size_t size, uint64_t offset) {
    undo_save(node, offset, size);
    node->size_changed = node->size_changed || offset + size > size_of(node);
    ssize_t wrote = pwrite(node->fd, data, size, (off_t)offset);
    return wrote < 0 ? -errno : wrote;
}

int power_truncate(struct power_node *node, uint64_t size) {
    uint64_t now = size_of(node);

    if (size < now) {
        undo_save(node, size, now - size);
    }
    node->size_changed = node->size_changed || size != now;
    return ftruncate(node->fd, (off_t)size) < 0 ? -errno : 0;
}

int power_allocate(struct power_node *node, uint64_t offset, uint64_t size) {
    node->size_changed = node->size_changed || offset + size > size_of(node);
    return fallocate(node->fd, 0, (off_t)offset, (off_t)size) < 0 ? -errno : 0;
}

static void undo_drop(struct power_node *node) {
    for (size_t i = 0; i < node->undo_slots; i++) {
        free(node->undo[i].before);
    }
    free(node->undo);
    node->undo = NULL;
    node->undo_slots = 0;
    node->undo_count = 0;
}

static void names_sync(struct power_store *store, uint64_t in) {
    size_t left = 0;

    for (size_t i = 0; i < store->step_count; i++) {
        const struct step *step = &store->steps[i];
        char grave[32];

        if (step->in != in) {
            store->steps[left++] = *step;
        } else if (step->grave != 0) {
            grave_name(step->grave, grave);
            (void)unlinkat(store->graves, grave, 0);
        }
    }
    store->step_count = left;
}

void power_sync(struct power_store *store, struct power_node *node) {
    if (S_ISDIR(node->mode)) {
        names_sync(store, node->id);
        return;
    }
    undo_drop(node);
    node->durable_size = size_of(node);
    node->size_changed = false;
}

static void must_write(const struct power_node *node, const void *data, size_t size,
                       uint64_t offset) {
    if (pwrite(node->fd, data, size, (off_t)offset) != (ssize_t)size) {
        perror("power_layer: restore");
        exit(1);
    }
}

static void block_cut(struct power_store *store, const struct power_node *node,
                      const struct power_undo *undo, bool must_restore,
                      struct power_counts *counts) {
    uint64_t offset = (undo->block - 1) * BLOCK;
    uint64_t fate = draw(store, 10);

    if (must_restore || fate >= store->keeps + store->tears) {
        must_write(node, undo->before, BLOCK, offset);
        counts->restored++;
    } else if (fate < store->keeps) {
        counts->kept++;
    } else {
        for (size_t at = 0; at < BLOCK; at += SECTOR) {
            if (draw(store, 2) == 0) {
                must_write(node, undo->before + at, SECTOR, offset + at);
            }
        }
        counts->torn++;
    }
}

/* Blocks in order, so that a seed means the same whatever the table looks like. */
static int undo_compare(const void *a, const void *b) {
    const struct power_undo *first = a;
    const struct power_undo *second = b;

    return (first->block > second->block) - (first->block < second->block);
}

static void file_cut(struct power_store *store, struct power_node *node,
                     struct power_counts *counts) {
    uint64_t now = size_of(node);
    bool keep_size = !node->size_changed || draw(store, 2) == 0;
    uint64_t size = keep_size ? now : node->durable_size;

    if (node->undo_slots > 0) {
        qsort(node->undo, node->undo_slots, sizeof *node->undo, undo_compare);
    }
    for (size_t i = 0; i < node->undo_slots; i++) {
        const struct power_undo *undo = &node->undo[i];

        if (undo->block != 0) {
            block_cut(store, node, undo, (undo->block - 1) * BLOCK >= now, counts);
        }
    }
    counts->sizes_restored += !keep_size;
    if (ftruncate(node->fd, (off_t)size) < 0) {
        perror("power_layer: truncate");
    }
}

static void step_undo(struct power_store *store, const struct step *step) {
    int in = store->nodes[step->in - 1].fd;

    switch (step->kind) {
    case STEP_MAKE:
        (void)bury(store, in, step->name);
        break;
    case STEP_REMOVE:
        unbury(store, step->grave, in, step->name);
        break;
    case STEP_RENAME:
        if (renameat(in, step->to, in, step->name) < 0) {
            perror("power_layer: rename back");
        }
        unbury(store, step->grave, in, step->to);
        break;
    }
}

/* The last steps of the directory, newest first. */
static void names_cut(struct power_store *store, uint64_t in, struct power_counts *counts) {
    uint64_t count = 0;

    for (size_t i = 0; i < store->step_count; i++) {
        count += store->steps[i].in == in;
    }
    uint64_t undone = count > 0 ? draw(store, count + 1) : 0;
    counts->names_restored += undone;
    counts->names_kept += count - undone;
    for (size_t i = store->step_count; i > 0 && undone > 0; i--) {
        if (store->steps[i - 1].in == in) {
            step_undo(store, &store->steps[i - 1]);
            undone--;
        }
    }
}

void power_cut(struct power_store *store, uint64_t seed, struct power_counts *ret_counts) {
    *ret_counts = (struct power_counts){0};
    store->random = seed;
    /* A quarter of all cuts loses everything: a disk that had written nothing back. */
    store->keeps = draw(store, 4) * 3;
    store->tears = store->keeps > 0 ? 1 : 0;
    for (size_t i = 0; i < store->node_count; i++) {
        if (S_ISREG(store->nodes[i].mode)) {
            file_cut(store, &store->nodes[i], ret_counts);
        }
    }
    /* Folders are made before what is in them, so those further down come first. */
    for (size_t i = store->node_count; i > 0; i--) {
        if (S_ISDIR(store->nodes[i - 1].mode)) {
            names_cut(store, i, ret_counts);
        }
    }
}
