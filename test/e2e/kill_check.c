/* The comparison: names by listing, then each inode's attributes and bytes. */
#include "kill_check.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TYPE_MASK = 0170000, REGULAR = 0100000, DIRECTORY = 0040000, SYMLINK = 0120000 };
enum { WHOLE_BYTES_MAX = 128 << 10, CHUNK_BYTES = 1 << 20 };

static uint32_t type_of(const struct model_inode *inode) {
    return inode->mode & TYPE_MASK;
}

/* All bytes of a file; NULL and errno. */
static uint8_t *file_read(const char *path, uint64_t *ret_size) {
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0) {
        return NULL;
    }
    uint8_t *data = fstat(fd, &status) == 0 ? malloc((size_t)status.st_size + 1) : NULL;
    uint64_t size = 0;
    ssize_t got = -1;
    while (data && (got = read(fd, data + size, (size_t)status.st_size + 1 - size)) > 0) {
        size += (uint64_t)got;
    }
    int error = errno;
    close(fd);
    if (got < 0) {
        free(data);
        errno = error;
        return NULL;
    }
    *ret_size = size;
    return data;
}

static void check_bytes(struct tree *tree, struct model_inode *inode, const char *path) {
    const struct content *content = tree_content(inode);
    uint64_t size;
    uint8_t *data = file_read(path, &size);

    if (!data) {
        tree_complain(tree, "%s cannot be read: %s", path, strerror(errno));
        return;
    }
    if (size != inode->size) {
        tree_complain(tree, "%s gives %llu bytes, not %llu", path, (unsigned long long)size,
                      (unsigned long long)inode->size);
    }
    for (uint64_t i = 0; i < MIN(size, inode->size); i++) {
        uint8_t want = i < content->capacity ? content->data[i] : 0;

        if (data[i] != want) {
            tree_complain(tree, "%s: byte %llu of %llu is %02x, not %02x", path,
                          (unsigned long long)i, (unsigned long long)size, data[i], want);
            break;
        }
    }
    free(data);
}

static void check_target(struct tree *tree, const struct model_inode *inode, const char *path) {
    char target[4097];
    ssize_t got = readlink(path, target, sizeof target);

    if (got < 0 || (uint64_t)got != inode->size ||
        memcmp(target, inode->target, (size_t)inode->size) != 0) {
        tree_complain(tree, "%s is a link to something else (%zd bytes, not %llu)", path, got,
                      (unsigned long long)inode->size);
    }
}

static void check_attributes(struct tree *tree, struct model_inode *inode, const char *path,
                             const struct stat *status) {
    bool shared = tree_is_shared(tree, inode);

    if (inode->ino == 0) {
        inode->ino = status->st_ino;
    }
    if (status->st_ino != inode->ino) {
        tree_complain(tree, "%s has inode number %llu, not %llu", path,
                      (unsigned long long)status->st_ino, (unsigned long long)inode->ino);
    }
    if (status->st_mode != inode->mode || status->st_uid != inode->uid ||
        status->st_gid != inode->gid) {
        tree_complain(tree, "%s has mode %o and owner %u:%u, not %o and %u:%u", path,
                      status->st_mode, status->st_uid, status->st_gid, inode->mode, inode->uid,
                      inode->gid);
    }
    if (!shared && status->st_nlink != inode->nlink) {
        tree_complain(tree, "%s has %llu links, not %u", path, (unsigned long long)status->st_nlink,
                      inode->nlink);
    }
    if (type_of(inode) == REGULAR && (uint64_t)status->st_size != inode->size) {
        tree_complain(tree, "%s has %lld bytes, not %llu", path, (long long)status->st_size,
                      (unsigned long long)inode->size);
    }
    if (type_of(inode) == REGULAR && tree_content(inode)->mtime_ns != 0 &&
        status->st_mtim.tv_sec * (int64_t)NS_PER_S + status->st_mtim.tv_nsec !=
            tree_content(inode)->mtime_ns) {
        tree_complain(tree, "%s has an mtime of its own, not the one that was set", path);
    }
}

static void check_entry(struct tree *tree, const struct model_inode *parent,
                        const struct model_entry *entry) {
    char path[KILL_PATH_BYTES];
    struct stat status;

    tree_path(tree, parent, (struct bytes){entry->name, entry->name_bytes}, path);
    if (lstat(path, &status) != 0) {
        tree_complain(tree, "%s is gone: %s", path, strerror(errno));
        return;
    }
    check_attributes(tree, entry->inode, path, &status);
    if (type_of(entry->inode) == REGULAR && !tree->problem[0]) {
        check_bytes(tree, entry->inode, path);
    } else if (type_of(entry->inode) == SYMLINK) {
        check_target(tree, entry->inode, path);
    }
}

static const struct model_entry *entry_find(const struct model_inode *parent, const char *name) {
    const struct model_entry *entry = parent->entries;

    while (entry && (strlen(name) != entry->name_bytes ||
                     memcmp(entry->name, name, entry->name_bytes) != 0)) {
        entry = entry->next;
    }
    return entry;
}

/* The listing has each name once, no other, with its inode number. */
static void check_listing(struct tree *tree, const struct model_inode *parent) {
    char path[KILL_PATH_BYTES];
    bool shared = tree_is_shared(tree, parent);
    size_t count = 0;
    struct dirent *found;

    tree_path(tree, parent, (struct bytes){0}, path);
    DIR *directory = opendir(path);
    if (!directory) {
        tree_complain(tree, "%s cannot be listed: %s", path, strerror(errno));
        return;
    }
    while (errno = 0, (found = readdir(directory)) != NULL) {
        if (strcmp(found->d_name, ".") == 0 || strcmp(found->d_name, "..") == 0 ||
            (shared && !tree_is_mine(tree, found->d_name))) {
            continue;
        }
        const struct model_entry *entry = entry_find(parent, found->d_name);
        if (!entry) {
            tree_complain(tree, "%s lists \"%s\", which nobody made or which was removed", path,
                          found->d_name);
        } else if (entry->inode->ino != 0 && entry->inode->ino != found->d_ino) {
            tree_complain(tree, "%s lists \"%s\" with inode number %llu, not %llu", path,
                          found->d_name, (unsigned long long)found->d_ino,
                          (unsigned long long)entry->inode->ino);
        }
        count++;
    }
    if (errno != 0) {
        tree_complain(tree, "the listing of %s breaks off: %s", path, strerror(errno));
    }
    closedir(directory);
    if (count != parent->entry_count) {
        tree_complain(tree, "%s lists %zu names, not %zu", path, count, parent->entry_count);
    }
}

static void compare(struct tree *tree) {
    tree->problem[0] = '\0';
    for (struct model_inode *inode = model_first(tree->fs); inode && !tree->problem[0];
         inode = inode->next) {
        if (type_of(inode) != DIRECTORY || inode == model_root(tree->fs)) {
            continue;
        }
        for (struct model_entry *entry = inode->entries; entry; entry = entry->next) {
            check_entry(tree, inode, entry);
        }
        check_listing(tree, inode);
    }
}

enum { IS_OLD = 1, IS_NEW = 2 };

/* What the bytes [from, to) are, of the write and of what was there before. */
static int blocks_are(const struct work *work, const uint8_t *data, uint64_t from, uint64_t to) {
    const struct content *content = tree_content(work->inode);
    int is = IS_OLD | IS_NEW;

    for (uint64_t i = MAX(from, work->offset); i < MIN(to, work->offset + work->size); i++) {
        uint8_t old = i < content->capacity ? content->data[i] : 0;

        is &= ~(data[i] != old ? IS_OLD : 0);
        is &= ~(data[i] != work_byte(work->seed, work->first + i - work->offset) ? IS_NEW : 0);
    }
    return is;
}

static void adopt_bytes(struct tree *tree, struct work *work, const char *path, const uint8_t *data,
                        uint64_t size) {
    uint64_t end = work->offset + work->size;
    bool small =
        work->size <= WHOLE_BYTES_MAX && work->offset / CHUNK_BYTES == (end - 1) / CHUNK_BYTES;
    uint64_t largest = MAX(work->inode->size, end);

    if (size < work->inode->size || size > largest) {
        tree_complain(tree, "%s has %llu bytes, neither %llu nor %llu", path,
                      (unsigned long long)size, (unsigned long long)work->inode->size,
                      (unsigned long long)largest);
        return;
    }
    if (small && (size != work->inode->size && size != largest)) {
        tree_complain(tree, "%s has half of a write of %llu at %llu: %llu bytes", path,
                      (unsigned long long)work->size, (unsigned long long)work->offset,
                      (unsigned long long)size);
    }
    uint64_t step = small ? CHUNK_BYTES : BLOCK_BYTES;
    for (uint64_t at = work->offset / step * step; at < MIN(end, size); at += step) {
        if (blocks_are(work, data, at, MIN(at + step, size)) == 0) {
            tree_complain(tree, "%s: a write of %llu at %llu is neither there nor not at %llu",
                          path, (unsigned long long)work->size, (unsigned long long)work->offset,
                          (unsigned long long)at);
        }
    }
    uint64_t from = MIN(work->offset, size);
    tree_fill(work->inode, from, (struct bytes){data + from, MIN(end, size) - from});
    if (size > work->inode->size) {
        model_written(work->inode, &tree_root, size);
    }
}

/* A write in flight: takes over what is there, when it may be so. */
static void adopt_write(struct tree *tree, struct work *work) {
    char path[KILL_PATH_BYTES];
    uint64_t size;

    if (!tree_path_of(tree, work->inode, path)) {
        return;
    }
    uint8_t *data = file_read(path, &size);
    if (!data) {
        tree_complain(tree, "%s cannot be read: %s", path, strerror(errno));
        return;
    }
    adopt_bytes(tree, work, path, data, size);
    free(data);
}

void kill_check(struct tree *tree, struct work *pending) {
    char before[KILL_PROBLEM_BYTES];

    if (pending && pending->kind == WORK_WRITE) {
        tree->problem[0] = '\0';
        adopt_write(tree, pending);
        pending = NULL;
        if (tree->problem[0]) {
            return;
        }
    }
    compare(tree);
    if (tree->problem[0] && pending) {
        memcpy(before, tree->problem, sizeof before);
        if (work_apply(tree, pending) == 0) {
            compare(tree);
        }
        if (tree->problem[0]) {
            memmove(tree->problem, before, sizeof before);
        }
    }
}
