/* The stand-in's operations on its tree. */
#include "memory_shoal_tree.h"
#include "base/types.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PERMISSION_READ = 4, PERMISSION_WRITE = 2 };

#define FILE_BYTES_MAX (64 * GIB)

struct shoal_file {
    struct tree_inode *inode;
    uint32_t flags;
};

typedef int64_t operation_fn(struct tree *tree, struct shoal_request *request);

/* As access(2) has it: 0 or -EACCES. */
static int64_t permission_check(const struct shoal_identity *who, const struct tree_inode *inode,
                                uint32_t mask) {
    const struct shoal_attributes *attributes = &inode->attributes;
    uint32_t bits = attributes->mode & 7;
    bool member = who->gid == attributes->gid;

    if (who->uid == 0)
        return 0;
    for (uint32_t i = 0; i < who->group_count; i++)
        member = member || who->groups[i] == attributes->gid;
    if (who->uid == attributes->uid)
        bits = attributes->mode >> 6 & 7;
    else if (member)
        bits = attributes->mode >> 3 & 7;
    return (bits & mask) == mask ? 0 : -EACCES;
}

static bool is_directory(const struct tree_inode *inode) {
    return S_ISDIR(inode->attributes.mode);
}

/* The directory `ino`, writable by the caller when write is set, or NULL and an error. */
static struct tree_inode *directory_get(struct tree *tree, const struct shoal_request *request,
                                        uint64_t ino, int64_t *ret_error) {
    struct tree_inode *directory = tree_find(tree, ino);

    if (!directory)
        *ret_error = -ENOENT;
    else if (!is_directory(directory))
        *ret_error = -ENOTDIR;
    else
        *ret_error = request->operation == SHOAL_LOOKUP
                         ? 0
                         : permission_check(&request->identity, directory, PERMISSION_WRITE);
    return *ret_error < 0 ? NULL : directory;
}

static void attributes_copy(struct tree *tree, struct shoal_request *request,
                            struct tree_inode *inode) {
    pthread_rwlock_t *lock = tree_data_lock(tree, inode);

    pthread_rwlock_rdlock(lock);
    request->attributes = inode->attributes;
    request->attributes.version = (uint64_t)inode->attributes.ctime_ns;
    pthread_rwlock_unlock(lock);
}

static int64_t op_lookup(struct tree *tree, struct shoal_request *request) {
    int64_t error;
    struct tree_inode *directory = directory_get(tree, request, request->ino, &error);
    struct tree_name *name;

    if (!directory)
        return error;
    name = tree_name_find(tree, directory, request->name, request->name_bytes);
    if (!name)
        return -ENOENT;
    attributes_copy(tree, request, name->child);
    return 0;
}

static int64_t op_getattr(struct tree *tree, struct shoal_request *request) {
    struct tree_inode *inode = request->file ? request->file->inode : tree_find(tree, request->ino);

    if (!inode)
        return -ENOENT;
    attributes_copy(tree, request, inode);
    return 0;
}

static int64_t setattr_check(const struct shoal_request *request, const struct tree_inode *inode) {
    const struct shoal_identity *who = &request->identity;
    bool owner = who->uid == 0 || who->uid == inode->attributes.uid;
    bool member = who->uid == 0 || who->gid == request->attributes.gid;

    for (uint32_t i = 0; i < who->group_count; i++)
        member = member || who->groups[i] == request->attributes.gid;
    if ((request->set & SHOAL_SET_MODE) && !owner)
        return -EPERM;
    if ((request->set & SHOAL_SET_UID) && who->uid != 0 &&
        request->attributes.uid != inode->attributes.uid)
        return -EPERM;
    if ((request->set & SHOAL_SET_GID) && !(owner && member))
        return -EPERM;
    if ((request->set & SHOAL_SET_SIZE) && !request->file)
        return permission_check(who, inode, PERMISSION_WRITE);
    return 0;
}

static void set_id_clear(struct tree_inode *inode) {
    uint32_t *mode = &inode->attributes.mode;

    if (S_ISREG(*mode))
        *mode &= ~(uint32_t)(S_ISUID | (*mode & S_IXGRP ? S_ISGID : 0));
}

static void setattr_apply(struct tree *tree, struct shoal_request *request,
                          struct tree_inode *inode) {
    const struct shoal_attributes *from = &request->attributes;
    struct shoal_attributes *to = &inode->attributes;
    int64_t now_ns = tree_now_ns();

    if (request->set & SHOAL_SET_MODE)
        to->mode = (to->mode & S_IFMT) | (from->mode & 07777);
    if (request->set & SHOAL_SET_UID)
        to->uid = from->uid;
    if (request->set & SHOAL_SET_GID)
        to->gid = from->gid;
    if (request->set & SHOAL_SET_SIZE)
        tree_resize(tree, inode, from->size);
    if (request->set & SHOAL_SET_KILL_SUID)
        set_id_clear(inode);
    if (request->set & SHOAL_SET_ATIME)
        to->atime_ns = from->atime_ns;
    if (request->set & SHOAL_SET_MTIME)
        to->mtime_ns = from->mtime_ns;
    if (request->set & SHOAL_SET_ATIME_NOW)
        to->atime_ns = now_ns;
    if (request->set & SHOAL_SET_MTIME_NOW)
        to->mtime_ns = now_ns;
    to->ctime_ns = now_ns;
}

static int64_t op_setattr(struct tree *tree, struct shoal_request *request) {
    struct tree_inode *inode = request->file ? request->file->inode : tree_find(tree, request->ino);
    int64_t error;

    if (!inode)
        return -ENOENT;
    if ((request->set & SHOAL_SET_SIZE) && is_directory(inode))
        return -EISDIR;
    if ((request->set & SHOAL_SET_SIZE) && request->attributes.size > FILE_BYTES_MAX)
        return -EFBIG;
    error = setattr_check(request, inode);
    if (error < 0)
        return error;
    pthread_rwlock_wrlock(tree_data_lock(tree, inode));
    setattr_apply(tree, request, inode);
    request->attributes = inode->attributes;
    pthread_rwlock_unlock(tree_data_lock(tree, inode));
    return 0;
}

/* A new inode under request->name, or NULL and an error. */
static struct tree_inode *create(struct tree *tree, struct shoal_request *request, uint32_t mode,
                                 int64_t *ret_error) {
    struct tree_inode *directory = directory_get(tree, request, request->ino, ret_error);
    struct tree_inode *inode;

    if (!directory)
        return NULL;
    if (tree_name_find(tree, directory, request->name, request->name_bytes)) {
        *ret_error = -EEXIST;
        return NULL;
    }
    inode = tree_inode_add(tree, mode);
    inode->attributes.uid = request->identity.uid;
    inode->attributes.gid = request->identity.gid;
    inode->attributes.nlink = S_ISDIR(mode) ? 2 : 1;
    if (directory->attributes.mode & S_ISGID) {
        inode->attributes.gid = directory->attributes.gid;
        inode->attributes.mode |= S_ISDIR(mode) ? S_ISGID : 0;
    }
    inode->parent = directory;
    directory->attributes.nlink += S_ISDIR(mode) ? 1 : 0;
    tree_name_add(tree, directory, request->name, request->name_bytes, inode);
    return inode;
}

static int64_t op_mknod(struct tree *tree, struct shoal_request *request) {
    int64_t error;
    struct tree_inode *inode = create(tree, request, request->mode, &error);

    if (!inode)
        return error;
    inode->attributes.rdev = request->rdev;
    request->attributes = inode->attributes;
    return 0;
}

static int64_t op_mkdir(struct tree *tree, struct shoal_request *request) {
    int64_t error;
    struct tree_inode *inode = create(tree, request, S_IFDIR | (request->mode & 07777), &error);

    if (!inode)
        return error;
    request->attributes = inode->attributes;
    return 0;
}

static int64_t op_symlink(struct tree *tree, struct shoal_request *request) {
    int64_t error;
    struct tree_inode *inode = create(tree, request, S_IFLNK | 0777, &error);

    if (!inode)
        return error;
    inode->target = memory_need(strndup(request->data, request->size));
    inode->attributes.size = request->size;
    request->attributes = inode->attributes;
    return 0;
}

static int64_t op_readlink(struct tree *tree, struct shoal_request *request) {
    struct tree_inode *inode = tree_find(tree, request->ino);
    size_t bytes;

    if (!inode)
        return -ENOENT;
    if (!inode->target)
        return -EINVAL;
    bytes = MIN(strlen(inode->target), request->size);
    memcpy(request->data, inode->target, bytes);
    return (int64_t)bytes;
}

static struct shoal_file *file_new(struct tree *tree, struct tree_inode *inode, uint32_t flags) {
    struct shoal_file *file = memory_need(malloc(sizeof(*file)));

    *file = (struct shoal_file){inode, flags};
    atomic_fetch_add(&inode->open_count, 1);
    atomic_fetch_add(&tree->open_count, 1);
    return file;
}

static int64_t open_inode(struct tree *tree, struct shoal_request *request,
                          struct tree_inode *inode, bool check) {
    uint32_t mask = (request->flags & SHOAL_OPEN_READ ? PERMISSION_READ : 0) |
                    (request->flags & SHOAL_OPEN_WRITE ? PERMISSION_WRITE : 0);
    int64_t error;

    if (request->flags & SHOAL_OPEN_EXECUTE)
        mask = 1;
    if (is_directory(inode) != !!(request->flags & SHOAL_OPEN_DIRECTORY))
        return is_directory(inode) ? -EISDIR : -ENOTDIR;
    error = check ? permission_check(&request->identity, inode, mask) : 0;
    if (error < 0)
        return error;
    if (request->flags & SHOAL_OPEN_TRUNCATE) {
        pthread_rwlock_wrlock(tree_data_lock(tree, inode));
        tree_resize(tree, inode, 0);
        if (request->identity.uid != 0)
            set_id_clear(inode);
        pthread_rwlock_unlock(tree_data_lock(tree, inode));
    }
    request->file = file_new(tree, inode, request->flags);
    attributes_copy(tree, request, inode);
    return 0;
}

static int64_t op_open(struct tree *tree, struct shoal_request *request) {
    struct tree_inode *inode = tree_find(tree, request->ino);

    return inode ? open_inode(tree, request, inode, true) : -ENOENT;
}

static int64_t create_unnamed(struct tree *tree, struct shoal_request *request) {
    int64_t error = 0;
    struct tree_inode *inode;

    if (!directory_get(tree, request, request->ino, &error))
        return error;
    inode = tree_inode_add(tree, S_IFREG | (request->mode & 07777));
    inode->attributes.uid = request->identity.uid;
    inode->attributes.gid = request->identity.gid;
    inode->attributes.nlink = 0;
    request->flags |= SHOAL_OPEN_MADE;
    return open_inode(tree, request, inode, false);
}

static int64_t op_create(struct tree *tree, struct shoal_request *request) {
    struct tree_inode *directory = tree_find(tree, request->ino);
    struct tree_name *name =
        directory ? tree_name_find(tree, directory, request->name, request->name_bytes) : NULL;
    struct tree_inode *inode;
    int64_t error;

    if (request->flags & SHOAL_OPEN_UNNAMED)
        return create_unnamed(tree, request);
    if (name && !(request->flags & SHOAL_OPEN_EXCLUSIVE))
        return open_inode(tree, request, name->child, true);
    inode = create(tree, request, S_IFREG | (request->mode & 07777), &error);
    return inode ? open_inode(tree, request, inode, false) : error;
}

/* What was read and written by the handle on other threads was answered before this was asked. The
 * kernel knows of that; over io_uring a thread sanitizer does so by the lock. */
static int64_t op_release(struct tree *tree, struct shoal_request *request) {
    struct tree_inode *inode = request->file->inode;

    pthread_rwlock_wrlock(tree_data_lock(tree, inode));
    free(request->file);
    pthread_rwlock_unlock(tree_data_lock(tree, inode));
    atomic_fetch_sub(&tree->open_count, 1);
    if (atomic_fetch_sub(&inode->open_count, 1) == 1)
        tree_inode_drop(tree, inode);
    return 0;
}

static int64_t op_link(struct tree *tree, struct shoal_request *request) {
    struct tree_inode *inode = tree_find(tree, request->ino);
    int64_t error;
    struct tree_inode *directory = directory_get(tree, request, request->new_ino, &error);

    if (!directory || !inode)
        return inode ? error : -ENOENT;
    if (is_directory(inode))
        return -EPERM;
    if (tree_name_find(tree, directory, request->new_name, request->new_name_bytes))
        return -EEXIST;
    inode->attributes.nlink++;
    inode->attributes.ctime_ns = tree_now_ns();
    tree_name_add(tree, directory, request->new_name, request->new_name_bytes, inode);
    request->attributes = inode->attributes;
    return 0;
}

/* Takes away a name and its link. */
static void unlink_name(struct tree *tree, struct tree_name *name) {
    struct tree_inode *inode = name->child;

    if (is_directory(inode)) {
        name->parent->attributes.nlink--;
        inode->attributes.nlink = 0;
    } else {
        inode->attributes.nlink--;
    }
    inode->attributes.ctime_ns = tree_now_ns();
    tree_name_remove(tree, name);
    tree_inode_drop(tree, inode);
}

static int64_t op_unlink(struct tree *tree, struct shoal_request *request) {
    bool directory_wanted = request->operation == SHOAL_RMDIR;
    int64_t error;
    struct tree_inode *directory = directory_get(tree, request, request->ino, &error);
    struct tree_name *name;

    if (!directory)
        return error;
    name = tree_name_find(tree, directory, request->name, request->name_bytes);
    if (!name)
        return -ENOENT;
    if (is_directory(name->child) != directory_wanted)
        return directory_wanted ? -ENOTDIR : -EISDIR;
    if (directory_wanted && name->child->live_count > 0)
        return -ENOTEMPTY;
    unlink_name(tree, name);
    return 0;
}

/* Puts inode, which has a link already, under a name. */
static void place(struct tree *tree, struct tree_inode *directory, const char *text, size_t bytes,
                  struct tree_inode *inode) {
    tree_name_add(tree, directory, text, bytes, inode);
    if (is_directory(inode)) {
        inode->parent = directory;
        directory->attributes.nlink++;
    }
    inode->attributes.ctime_ns = tree_now_ns();
}

static struct tree_inode *lift(struct tree *tree, struct tree_name *name) {
    struct tree_inode *inode = name->child;

    if (is_directory(inode))
        name->parent->attributes.nlink--;
    tree_name_remove(tree, name);
    return inode;
}

static bool is_below(const struct tree_inode *inode, const struct tree_inode *top) {
    while (inode != inode->parent && inode != top)
        inode = inode->parent;
    return inode == top;
}

static int64_t rename_check(const struct shoal_request *request, const struct tree_name *from,
                            const struct tree_inode *directory, const struct tree_name *to) {
    if (!from)
        return -ENOENT;
    if (is_directory(from->child) && is_below(directory, from->child))
        return -EINVAL;
    if (!to)
        return request->flags & SHOAL_RENAME_EXCHANGE ? -ENOENT : 0;
    if (request->flags & SHOAL_RENAME_NO_REPLACE)
        return -EEXIST;
    if (request->flags & SHOAL_RENAME_EXCHANGE)
        return 0;
    if (is_directory(to->child) != is_directory(from->child))
        return is_directory(to->child) ? -EISDIR : -ENOTDIR;
    return to->child->live_count > 0 ? -ENOTEMPTY : 0;
}

static int64_t op_rename(struct tree *tree, struct shoal_request *request) {
    int64_t error;
    struct tree_inode *old = directory_get(tree, request, request->ino, &error);
    struct tree_inode *new = old ? directory_get(tree, request, request->new_ino, &error) : NULL;
    struct tree_name *from;
    struct tree_name *to;
    struct tree_inode *moved;

    if (!new)
        return error;
    from = tree_name_find(tree, old, request->name, request->name_bytes);
    to = tree_name_find(tree, new, request->new_name, request->new_name_bytes);
    error = rename_check(request, from, new, to);
    if (error < 0 || from->child == (to ? to->child : NULL))
        return error;
    if (request->flags & SHOAL_RENAME_EXCHANGE) {
        struct tree_inode *other = lift(tree, to);

        moved = lift(tree, from);
        place(tree, old, request->name, request->name_bytes, other);
    } else {
        if (to)
            unlink_name(tree, to);
        moved = lift(tree, from);
    }
    place(tree, new, request->new_name, request->new_name_bytes, moved);
    return 0;
}

static int64_t op_read(struct tree *tree, struct shoal_request *request) {
    struct tree_inode *inode = request->file->inode;
    size_t bytes;

    if (!(request->file->flags & (SHOAL_OPEN_READ | SHOAL_OPEN_EXECUTE)))
        return -EBADF;
    pthread_rwlock_rdlock(tree_data_lock(tree, inode));
    bytes = tree_read(inode, request->offset, request->data, request->size);
    pthread_rwlock_unlock(tree_data_lock(tree, inode));
    return (int64_t)bytes;
}

static int64_t op_write(struct tree *tree, struct shoal_request *request) {
    struct tree_inode *inode = request->file->inode;

    if (!(request->file->flags & SHOAL_OPEN_WRITE))
        return -EBADF;
    if (request->offset > FILE_BYTES_MAX || request->size > FILE_BYTES_MAX - request->offset)
        return -EFBIG;
    atomic_store_explicit(&tree->misalignment, (uintptr_t)request->data % 4096,
                          memory_order_relaxed);
    pthread_rwlock_wrlock(tree_data_lock(tree, inode));
    tree_write(tree, inode, request->offset, request->data, request->size);
    pthread_rwlock_unlock(tree_data_lock(tree, inode));
    return (int64_t)request->size;
}

static void zero_range(struct tree *tree, struct tree_inode *inode, uint64_t from, uint64_t end) {
    static const uint8_t zeros[4096];

    end = MIN(end, inode->attributes.size);
    for (uint64_t at = from; at < end; at += sizeof(zeros))
        tree_write(tree, inode, at, zeros, (size_t)MIN(end - at, (uint64_t)sizeof(zeros)));
}

static int64_t op_allocate(struct tree *tree, struct shoal_request *request) {
    struct tree_inode *inode = request->file->inode;

    if (request->offset > FILE_BYTES_MAX || request->size > FILE_BYTES_MAX - request->offset)
        return -EFBIG;
    pthread_rwlock_wrlock(tree_data_lock(tree, inode));
    if (request->flags & (SHOAL_PUNCH_HOLE | SHOAL_ZERO_RANGE))
        zero_range(tree, inode, request->offset, request->offset + request->size);
    if (!(request->flags & SHOAL_KEEP_SIZE) &&
        request->offset + request->size > inode->attributes.size)
        tree_resize(tree, inode, request->offset + request->size);
    pthread_rwlock_unlock(tree_data_lock(tree, inode));
    return 0;
}

/* All of a file is data. */
static int64_t op_seek(struct tree *tree, struct shoal_request *request) {
    struct tree_inode *inode = request->file->inode;
    uint64_t size;

    if (request->flags != SHOAL_SEEK_DATA && request->flags != SHOAL_SEEK_HOLE)
        return -EINVAL;
    pthread_rwlock_rdlock(tree_data_lock(tree, inode));
    size = inode->attributes.size;
    pthread_rwlock_unlock(tree_data_lock(tree, inode));
    if (request->offset >= size)
        return -ENXIO;
    return (int64_t)(request->flags == SHOAL_SEEK_DATA ? request->offset : size);
}

static int64_t op_nothing(struct tree *tree, struct shoal_request *request) {
    (void)tree;
    (void)request;
    return 0;
}

/* Calls entry for the place-th entry; "." and ".." come first. */
static int entry_give(struct tree *tree, struct shoal_request *request, uint64_t place) {
    static const char dots[] = "..";
    struct tree_inode *directory = request->file->inode;
    const struct tree_name *name = NULL;
    struct tree_inode *child = directory;
    struct shoal_entry entry;

    if (place >= COOKIE_FIRST - 1) {
        name = directory->entries[place - (COOKIE_FIRST - 1)];
        if (!name)
            return 0;
        child = name->child;
    } else if (place == 1) {
        child = directory->parent;
    }
    if (request->plus)
        attributes_copy(tree, request, child);
    entry = (struct shoal_entry){
        .name = name ? name->text : dots,
        .name_bytes = name ? name->bytes : (size_t)place + 1,
        .ino = child->attributes.ino,
        .cookie = place + 1,
        .type = child->attributes.mode >> 12,
        .attributes = request->plus ? &request->attributes : NULL,
    };
    return request->entry(request->entry_context, &entry);
}

static int64_t op_readdir(struct tree *tree, struct shoal_request *request) {
    uint64_t end;

    if (!is_directory(request->file->inode))
        return -ENOTDIR;
    atomic_store_explicit(&tree->listing_bytes, request->size, memory_order_relaxed);
    end = request->file->inode->entry_count + (COOKIE_FIRST - 1);
    for (uint64_t place = request->offset; place < end; place++)
        if (entry_give(tree, request, place) != 0)
            break;
    return 0;
}

static int64_t op_statfs(struct tree *tree, struct shoal_request *request) {
    request->statfs = (struct shoal_statfs){
        .bytes_total = 1 * GIB,
        .bytes_free = 1 * GIB / 2,
        .bytes_available = 1 * GIB / 4,
        .files_total = 1000000,
        .files_free = 1000000 - tree->inode_count,
    };
    return 0;
}

static int64_t op_access(struct tree *tree, struct shoal_request *request) {
    struct tree_inode *inode = tree_find(tree, request->ino);

    return inode ? permission_check(&request->identity, inode, request->mode) : -ENOENT;
}

static const struct {
    operation_fn *run;
    enum { LOCK_NONE, LOCK_READ, LOCK_WRITE } lock; /* of the tree */
} operations[TREE_OPERATION_MAX + 1] = {
    [SHOAL_LOOKUP] = {op_lookup, LOCK_READ},     [SHOAL_GETATTR] = {op_getattr, LOCK_READ},
    [SHOAL_SETATTR] = {op_setattr, LOCK_WRITE},  [SHOAL_CREATE] = {op_create, LOCK_WRITE},
    [SHOAL_MKNOD] = {op_mknod, LOCK_WRITE},      [SHOAL_MKDIR] = {op_mkdir, LOCK_WRITE},
    [SHOAL_SYMLINK] = {op_symlink, LOCK_WRITE},  [SHOAL_READLINK] = {op_readlink, LOCK_READ},
    [SHOAL_LINK] = {op_link, LOCK_WRITE},        [SHOAL_UNLINK] = {op_unlink, LOCK_WRITE},
    [SHOAL_RMDIR] = {op_unlink, LOCK_WRITE},     [SHOAL_RENAME] = {op_rename, LOCK_WRITE},
    [SHOAL_OPEN] = {op_open, LOCK_READ},         [SHOAL_RELEASE] = {op_release, LOCK_WRITE},
    [SHOAL_READ] = {op_read, LOCK_NONE},         [SHOAL_WRITE] = {op_write, LOCK_NONE},
    [SHOAL_FSYNC] = {op_nothing, LOCK_NONE},     [SHOAL_FLUSH] = {op_nothing, LOCK_NONE},
    [SHOAL_READDIR] = {op_readdir, LOCK_READ},   [SHOAL_STATFS] = {op_statfs, LOCK_READ},
    [SHOAL_ACCESS] = {op_access, LOCK_READ},     [SHOAL_SYNC] = {op_nothing, LOCK_NONE},
    [SHOAL_ALLOCATE] = {op_allocate, LOCK_NONE}, [SHOAL_SEEK] = {op_seek, LOCK_NONE},
};

int64_t tree_run(struct tree *tree, struct shoal_request *request) {
    unsigned operation = request->operation;
    int64_t result;

    if (operation > TREE_OPERATION_MAX || !operations[operation].run)
        return -EOPNOTSUPP;
    if (operations[operation].lock == LOCK_READ)
        pthread_rwlock_rdlock(&tree->lock);
    else if (operations[operation].lock == LOCK_WRITE)
        pthread_rwlock_wrlock(&tree->lock);
    result = operations[operation].run(tree, request);
    if (operations[operation].lock != LOCK_NONE)
        pthread_rwlock_unlock(&tree->lock);
    return result;
}
