/* A stand-in for libshoal: the operations, and how they are handed over. */
#include "memory_shoal.h"
#include "memory_shoal_tree.h"
#include "base/types.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { OPERATION_MAX = SHOAL_ALLOCATE, PERMISSION_READ = 4, PERMISSION_WRITE = 2 };

struct shoal_file {
    struct tree_inode *inode;
    uint32_t flags;
};

struct shoal_client {
    struct memory_shoal_options options;
    struct tree *tree;
    _Atomic uint64_t counts[OPERATION_MAX + 1];
    _Atomic uint64_t open_count;
    _Atomic uint32_t fail_counts[OPERATION_MAX + 1];
    _Atomic int fail_errors[OPERATION_MAX + 1];
    _Atomic size_t misalignment;
    /* MEMORY_SHOAL_THREAD */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t filled;
    struct shoal_request *first, *last; /* linked by internal[0] */
    bool stopping;
};

typedef int64_t operation_fn(struct shoal_client *client, struct shoal_request *request);

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
static struct tree_inode *directory_get(struct shoal_client *client,
                                        const struct shoal_request *request, uint64_t ino,
                                        int64_t *ret_error) {
    struct tree_inode *directory = tree_find(client->tree, ino);

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

static void attributes_copy(struct shoal_client *client, struct shoal_request *request,
                            struct tree_inode *inode) {
    pthread_rwlock_t *lock = tree_data_lock(client->tree, inode);

    pthread_rwlock_rdlock(lock);
    request->attributes = inode->attributes;
    pthread_rwlock_unlock(lock);
}

static int64_t op_lookup(struct shoal_client *client, struct shoal_request *request) {
    int64_t error;
    struct tree_inode *directory = directory_get(client, request, request->ino, &error);
    struct tree_name *name;

    if (!directory)
        return error;
    name = tree_name_find(client->tree, directory, request->name, request->name_bytes);
    if (!name)
        return -ENOENT;
    attributes_copy(client, request, name->child);
    return 0;
}

static int64_t op_getattr(struct shoal_client *client, struct shoal_request *request) {
    struct tree_inode *inode =
        request->file ? request->file->inode : tree_find(client->tree, request->ino);

    if (!inode)
        return -ENOENT;
    attributes_copy(client, request, inode);
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

static void setattr_apply(struct shoal_request *request, struct tree_inode *inode) {
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
        tree_resize(inode, from->size);
    if ((request->set & SHOAL_SET_KILL_SUID) && S_ISREG(to->mode))
        to->mode &= ~(uint32_t)(S_ISUID | (to->mode & S_IXGRP ? S_ISGID : 0));
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

static int64_t op_setattr(struct shoal_client *client, struct shoal_request *request) {
    struct tree_inode *inode =
        request->file ? request->file->inode : tree_find(client->tree, request->ino);
    int64_t error;

    if (!inode)
        return -ENOENT;
    if ((request->set & SHOAL_SET_SIZE) && is_directory(inode))
        return -EISDIR;
    error = setattr_check(request, inode);
    if (error < 0)
        return error;
    pthread_rwlock_wrlock(tree_data_lock(client->tree, inode));
    setattr_apply(request, inode);
    request->attributes = inode->attributes;
    pthread_rwlock_unlock(tree_data_lock(client->tree, inode));
    return 0;
}

/* A new inode under request->name, or NULL and an error. */
static struct tree_inode *create(struct shoal_client *client, struct shoal_request *request,
                                 uint32_t mode, int64_t *ret_error) {
    struct tree_inode *directory = directory_get(client, request, request->ino, ret_error);
    struct tree_inode *inode;

    if (!directory)
        return NULL;
    if (tree_name_find(client->tree, directory, request->name, request->name_bytes)) {
        *ret_error = -EEXIST;
        return NULL;
    }
    inode = tree_inode_add(client->tree, mode);
    inode->attributes.uid = request->identity.uid;
    inode->attributes.gid = request->identity.gid;
    inode->attributes.nlink = S_ISDIR(mode) ? 2 : 1;
    if (directory->attributes.mode & S_ISGID) {
        inode->attributes.gid = directory->attributes.gid;
        inode->attributes.mode |= S_ISDIR(mode) ? S_ISGID : 0;
    }
    inode->parent = directory;
    directory->attributes.nlink += S_ISDIR(mode) ? 1 : 0;
    tree_name_add(client->tree, directory, request->name, request->name_bytes, inode);
    return inode;
}

static int64_t op_mknod(struct shoal_client *client, struct shoal_request *request) {
    int64_t error;
    struct tree_inode *inode = create(client, request, request->mode, &error);

    if (!inode)
        return error;
    inode->attributes.rdev = request->rdev;
    request->attributes = inode->attributes;
    return 0;
}

static int64_t op_mkdir(struct shoal_client *client, struct shoal_request *request) {
    int64_t error;
    struct tree_inode *inode = create(client, request, S_IFDIR | (request->mode & 07777), &error);

    if (!inode)
        return error;
    request->attributes = inode->attributes;
    return 0;
}

static int64_t op_symlink(struct shoal_client *client, struct shoal_request *request) {
    int64_t error;
    struct tree_inode *inode = create(client, request, S_IFLNK | 0777, &error);

    if (!inode)
        return error;
    inode->target = memory_need(strndup(request->data, request->size));
    inode->attributes.size = request->size;
    request->attributes = inode->attributes;
    return 0;
}

static int64_t op_readlink(struct shoal_client *client, struct shoal_request *request) {
    struct tree_inode *inode = tree_find(client->tree, request->ino);
    size_t bytes;

    if (!inode)
        return -ENOENT;
    if (!inode->target)
        return -EINVAL;
    bytes = MIN(strlen(inode->target), request->size);
    memcpy(request->data, inode->target, bytes);
    return (int64_t)bytes;
}

static struct shoal_file *file_new(struct shoal_client *client, struct tree_inode *inode,
                                   uint32_t flags) {
    struct shoal_file *file = memory_need(malloc(sizeof(*file)));

    *file = (struct shoal_file){inode, flags};
    atomic_fetch_add(&inode->open_count, 1);
    atomic_fetch_add(&client->open_count, 1);
    return file;
}

static int64_t open_inode(struct shoal_client *client, struct shoal_request *request,
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
        pthread_rwlock_wrlock(tree_data_lock(client->tree, inode));
        tree_resize(inode, 0);
        pthread_rwlock_unlock(tree_data_lock(client->tree, inode));
    }
    request->file = file_new(client, inode, request->flags);
    attributes_copy(client, request, inode);
    return 0;
}

static int64_t op_open(struct shoal_client *client, struct shoal_request *request) {
    struct tree_inode *inode = tree_find(client->tree, request->ino);

    return inode ? open_inode(client, request, inode, true) : -ENOENT;
}

static int64_t op_create(struct shoal_client *client, struct shoal_request *request) {
    struct tree_inode *directory = tree_find(client->tree, request->ino);
    struct tree_name *name =
        directory ? tree_name_find(client->tree, directory, request->name, request->name_bytes)
                  : NULL;
    struct tree_inode *inode;
    int64_t error;

    if (name && !(request->flags & SHOAL_OPEN_EXCLUSIVE))
        return open_inode(client, request, name->child, true);
    inode = create(client, request, S_IFREG | (request->mode & 07777), &error);
    return inode ? open_inode(client, request, inode, false) : error;
}

static int64_t op_release(struct shoal_client *client, struct shoal_request *request) {
    struct tree_inode *inode = request->file->inode;

    free(request->file);
    atomic_fetch_sub(&client->open_count, 1);
    if (atomic_fetch_sub(&inode->open_count, 1) == 1)
        tree_inode_drop(client->tree, inode);
    return 0;
}

static int64_t op_link(struct shoal_client *client, struct shoal_request *request) {
    struct tree_inode *inode = tree_find(client->tree, request->ino);
    int64_t error;
    struct tree_inode *directory = directory_get(client, request, request->new_ino, &error);

    if (!directory || !inode)
        return inode ? error : -ENOENT;
    if (is_directory(inode))
        return -EPERM;
    if (tree_name_find(client->tree, directory, request->new_name, request->new_name_bytes))
        return -EEXIST;
    inode->attributes.nlink++;
    inode->attributes.ctime_ns = tree_now_ns();
    tree_name_add(client->tree, directory, request->new_name, request->new_name_bytes, inode);
    request->attributes = inode->attributes;
    return 0;
}

/* Takes away a name and its link. */
static void unlink_name(struct shoal_client *client, struct tree_name *name) {
    struct tree_inode *inode = name->child;

    if (is_directory(inode)) {
        name->parent->attributes.nlink--;
        inode->attributes.nlink = 0;
    } else {
        inode->attributes.nlink--;
    }
    inode->attributes.ctime_ns = tree_now_ns();
    tree_name_remove(client->tree, name);
    tree_inode_drop(client->tree, inode);
}

static int64_t op_unlink(struct shoal_client *client, struct shoal_request *request) {
    bool directory_wanted = request->operation == SHOAL_RMDIR;
    int64_t error;
    struct tree_inode *directory = directory_get(client, request, request->ino, &error);
    struct tree_name *name;

    if (!directory)
        return error;
    name = tree_name_find(client->tree, directory, request->name, request->name_bytes);
    if (!name)
        return -ENOENT;
    if (is_directory(name->child) != directory_wanted)
        return directory_wanted ? -ENOTDIR : -EISDIR;
    if (directory_wanted && name->child->live_count > 0)
        return -ENOTEMPTY;
    unlink_name(client, name);
    return 0;
}

/* Puts inode, which has a link already, under a name. */
static void place(struct shoal_client *client, struct tree_inode *directory, const char *text,
                  size_t bytes, struct tree_inode *inode) {
    tree_name_add(client->tree, directory, text, bytes, inode);
    if (is_directory(inode)) {
        inode->parent = directory;
        directory->attributes.nlink++;
    }
    inode->attributes.ctime_ns = tree_now_ns();
}

static struct tree_inode *lift(struct shoal_client *client, struct tree_name *name) {
    struct tree_inode *inode = name->child;

    if (is_directory(inode))
        name->parent->attributes.nlink--;
    tree_name_remove(client->tree, name);
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

static int64_t op_rename(struct shoal_client *client, struct shoal_request *request) {
    int64_t error;
    struct tree_inode *old = directory_get(client, request, request->ino, &error);
    struct tree_inode *new = old ? directory_get(client, request, request->new_ino, &error) : NULL;
    struct tree_name *from;
    struct tree_name *to;
    struct tree_inode *moved;

    if (!new)
        return error;
    from = tree_name_find(client->tree, old, request->name, request->name_bytes);
    to = tree_name_find(client->tree, new, request->new_name, request->new_name_bytes);
    error = rename_check(request, from, new, to);
    if (error < 0 || from->child == (to ? to->child : NULL))
        return error;
    if (request->flags & SHOAL_RENAME_EXCHANGE) {
        struct tree_inode *other = lift(client, to);

        moved = lift(client, from);
        place(client, old, request->name, request->name_bytes, other);
    } else {
        if (to)
            unlink_name(client, to);
        moved = lift(client, from);
    }
    place(client, new, request->new_name, request->new_name_bytes, moved);
    return 0;
}

static int64_t op_read(struct shoal_client *client, struct shoal_request *request) {
    struct tree_inode *inode = request->file->inode;
    size_t bytes;

    if (!(request->file->flags & (SHOAL_OPEN_READ | SHOAL_OPEN_EXECUTE)))
        return -EBADF;
    pthread_rwlock_rdlock(tree_data_lock(client->tree, inode));
    bytes = tree_read(inode, request->offset, request->data, request->size);
    pthread_rwlock_unlock(tree_data_lock(client->tree, inode));
    return (int64_t)bytes;
}

static int64_t op_write(struct shoal_client *client, struct shoal_request *request) {
    struct tree_inode *inode = request->file->inode;

    if (!(request->file->flags & SHOAL_OPEN_WRITE))
        return -EBADF;
    atomic_store_explicit(&client->misalignment, (uintptr_t)request->data % 4096,
                          memory_order_relaxed);
    pthread_rwlock_wrlock(tree_data_lock(client->tree, inode));
    tree_write(inode, request->offset, request->data, request->size);
    pthread_rwlock_unlock(tree_data_lock(client->tree, inode));
    return (int64_t)request->size;
}

static int64_t op_allocate(struct shoal_client *client, struct shoal_request *request) {
    struct tree_inode *inode = request->file->inode;

    pthread_rwlock_wrlock(tree_data_lock(client->tree, inode));
    if (request->offset + request->size > inode->attributes.size)
        tree_resize(inode, request->offset + request->size);
    pthread_rwlock_unlock(tree_data_lock(client->tree, inode));
    return 0;
}

static int64_t op_nothing(struct shoal_client *client, struct shoal_request *request) {
    (void)client;
    (void)request;
    return 0;
}

/* Calls entry for the place-th entry; "." and ".." come first. */
static int entry_give(struct shoal_client *client, struct shoal_request *request, uint64_t place) {
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
        attributes_copy(client, request, child);
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

static int64_t op_readdir(struct shoal_client *client, struct shoal_request *request) {
    uint64_t end;

    if (!is_directory(request->file->inode))
        return -ENOTDIR;
    end = request->file->inode->entry_count + (COOKIE_FIRST - 1);
    for (uint64_t place = request->offset; place < end; place++)
        if (entry_give(client, request, place) != 0)
            break;
    return 0;
}

static int64_t op_statfs(struct shoal_client *client, struct shoal_request *request) {
    request->statfs = (struct shoal_statfs){
        .bytes_total = 1 * GIB,
        .bytes_free = 1 * GIB / 2,
        .bytes_available = 1 * GIB / 4,
        .files_total = 1000000,
        .files_free = 1000000 - client->tree->inode_count,
    };
    return 0;
}

static int64_t op_access(struct shoal_client *client, struct shoal_request *request) {
    struct tree_inode *inode = tree_find(client->tree, request->ino);

    return inode ? permission_check(&request->identity, inode, request->mode) : -ENOENT;
}

static const struct {
    operation_fn *run;
    enum { LOCK_NONE, LOCK_READ, LOCK_WRITE } lock; /* of the tree */
} operations[OPERATION_MAX + 1] = {
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
    [SHOAL_ALLOCATE] = {op_allocate, LOCK_NONE},
};

static bool fails(struct shoal_client *client, enum shoal_operation operation) {
    uint32_t left = atomic_load_explicit(&client->fail_counts[operation], memory_order_relaxed);

    while (left > 0)
        if (atomic_compare_exchange_weak(&client->fail_counts[operation], &left, left - 1))
            return true;
    return false;
}

static int64_t run(struct shoal_client *client, struct shoal_request *request) {
    enum shoal_operation operation = request->operation;

    if ((unsigned)operation > OPERATION_MAX || !operations[operation].run)
        return -EOPNOTSUPP;
    atomic_fetch_add_explicit(&client->counts[operation], 1, memory_order_relaxed);
    if (fails(client, operation))
        return atomic_load(&client->fail_errors[operation]);
    if (operations[operation].lock == LOCK_READ)
        pthread_rwlock_rdlock(&client->tree->lock);
    else if (operations[operation].lock == LOCK_WRITE)
        pthread_rwlock_wrlock(&client->tree->lock);
    request->result = operations[operation].run(client, request);
    if (operations[operation].lock != LOCK_NONE)
        pthread_rwlock_unlock(&client->tree->lock);
    return request->result;
}

struct job {
    struct env_job job;
    struct shoal_client *client;
    struct shoal_request *request;
};

static void job_run(struct env_job *base) {
    struct job *job = CONTAINER_OF(base, struct job, job);

    job->request->result = run(job->client, job->request);
}

static void job_done(struct env_job *base) {
    struct job *job = CONTAINER_OF(base, struct job, job);

    job->request->done(job->request);
}

static void *thread_main(void *context) {
    struct shoal_client *client = context;

    pthread_mutex_lock(&client->mutex);
    for (;;) {
        struct shoal_request *request = client->first;

        if (request) {
            client->first = (void *)(uintptr_t)request->internal[0];
            pthread_mutex_unlock(&client->mutex);
            request->result = run(client, request);
            request->done(request);
            pthread_mutex_lock(&client->mutex);
        } else if (client->stopping) {
            break;
        } else {
            pthread_cond_wait(&client->filled, &client->mutex);
        }
    }
    pthread_mutex_unlock(&client->mutex);
    return NULL;
}

static void thread_submit(struct shoal_client *client, struct shoal_request *request) {
    request->internal[0] = 0;
    pthread_mutex_lock(&client->mutex);
    if (client->first)
        client->last->internal[0] = (uintptr_t)request;
    else
        client->first = request;
    client->last = request;
    pthread_cond_signal(&client->filled);
    pthread_mutex_unlock(&client->mutex);
}

void shoal_submit(struct shoal_client *client, struct shoal_request *request) {
    struct job *job = (void *)request->internal;

    static_assert(sizeof(*job) <= sizeof(request->internal), "it lies there");
    switch (client->options.mode) {
    case MEMORY_SHOAL_INLINE:
        request->result = run(client, request);
        request->done(request);
        break;
    case MEMORY_SHOAL_JOB:
        *job = (struct job){
            .job = {.lane = ENV_LANE_READ, .run = job_run, .done = job_done},
            .client = client,
            .request = request,
        };
        env_job_submit(client->options.env, &job->job);
        break;
    case MEMORY_SHOAL_THREAD:
        thread_submit(client, request);
        break;
    }
}

int64_t shoal_run(struct shoal_client *client, struct shoal_request *request) {
    request->result = run(client, request);
    return request->result;
}

struct shoal_client *memory_shoal_new(const struct memory_shoal_options *options) {
    struct shoal_client *client = memory_need(calloc(1, sizeof(*client)));

    client->options = *options;
    client->tree = tree_new(options->root_mode ? options->root_mode : 0755);
    pthread_mutex_init(&client->mutex, NULL);
    pthread_cond_init(&client->filled, NULL);
    if (options->mode == MEMORY_SHOAL_THREAD &&
        pthread_create(&client->thread, NULL, thread_main, client) != 0)
        abort();
    return client;
}

void memory_shoal_free(struct shoal_client *client) {
    if (client->options.mode == MEMORY_SHOAL_THREAD) {
        pthread_mutex_lock(&client->mutex);
        client->stopping = true;
        pthread_cond_signal(&client->filled);
        pthread_mutex_unlock(&client->mutex);
        pthread_join(client->thread, NULL);
    }
    pthread_cond_destroy(&client->filled);
    pthread_mutex_destroy(&client->mutex);
    tree_free(client->tree);
    free(client);
}

uint64_t memory_shoal_count(struct shoal_client *client, enum shoal_operation operation) {
    return atomic_load(&client->counts[operation]);
}

uint64_t memory_shoal_open_count(struct shoal_client *client) {
    return atomic_load(&client->open_count);
}

uint64_t memory_shoal_inode_count(struct shoal_client *client) {
    return client->tree->inode_count;
}

void memory_shoal_fail(struct shoal_client *client, enum shoal_operation operation, int error,
                       unsigned count) {
    atomic_store(&client->fail_errors[operation], error);
    atomic_store(&client->fail_counts[operation], count);
}

size_t memory_shoal_write_misalignment(struct shoal_client *client) {
    return atomic_load(&client->misalignment);
}
