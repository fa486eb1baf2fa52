/* Choosing, running and applying. Root does it all, with no umask. */
#include "kill_work.h"
#include "env/errno_map.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum {
    FILE_BYTES_MAX = 4 << 20,
    TREE_BYTES_MAX = 24 << 20,
    NAMES_MAX = 160,
    REGULAR = 0100000,
    DIRECTORY = 0040000,
    SYMLINK = 0120000,
    TYPE_MASK = 0170000,
};

static const struct {
    const char *name;
    unsigned weight;
} kinds[] = {
    [WORK_CREATE] = {"create", 12}, [WORK_OPEN] = {"open", 12},    [WORK_WRITE] = {"write", 24},
    [WORK_READ] = {"read", 6},      [WORK_RESIZE] = {"resize", 3}, [WORK_FSYNC] = {"fsync", 2},
    [WORK_CLOSE] = {"close", 10},   [WORK_MAKE] = {"make", 6},     [WORK_LINK] = {"link", 3},
    [WORK_UNLINK] = {"unlink", 8},  [WORK_RMDIR] = {"rmdir", 2},   [WORK_RENAME] = {"rename", 10},
    [WORK_TRUNCATE] = {"cut", 5},   [WORK_CHMOD] = {"chmod", 2},   [WORK_CHOWN] = {"chown", 2},
    [WORK_UTIMES] = {"utimes", 2},  [WORK_SYNC] = {"sync", 1},     [WORK_UNNAMED] = {"unnamed", 5},
    [WORK_NAME] = {"name", 5},
};

const char *work_name(const struct work *work) {
    return kinds[work->kind].name;
}

uint8_t work_byte(uint64_t seed, uint64_t index) {
    if (index % WORK_MARK_EVERY < sizeof WORK_MARK - 1) {
        return (uint8_t)WORK_MARK[index % WORK_MARK_EVERY];
    }
    uint64_t word = (seed + index / 8) * UINT64_C(0x9e3779b97f4a7c15);

    return (uint8_t)((word ^ word >> 29) >> (index % 8 * 8));
}

static bool is_type(const struct model_inode *inode, uint32_t type) {
    return inode && (inode->mode & TYPE_MASK) == type;
}

static struct open_file *handle_any(struct tree *tree, bool open) {
    size_t start = prng_below(&tree->prng, HANDLES_MAX);

    for (size_t i = 0; i < HANDLES_MAX; i++) {
        struct open_file *handle = &tree->handles[(start + i) % HANDLES_MAX];

        if ((handle->fd >= 0) == open) {
            return handle;
        }
    }
    return NULL;
}

/* Names and bytes that the tree has; what grows it waits above the limits. */
static bool is_full(struct tree *tree) {
    size_t names = 0;
    uint64_t bytes = 0;

    for (struct model_inode *inode = model_first(tree->fs); inode; inode = inode->next) {
        names += inode->entry_count;
        bytes += is_type(inode, REGULAR) ? inode->size : 0;
    }
    return names > NAMES_MAX || bytes > TREE_BYTES_MAX;
}

static uint64_t choose_size(struct prng *prng) {
    static const uint64_t limits[] = {200,   5000,  5000,   5000,   20000,
                                      70000, 70000, 300000, 300000, 2500000};

    return prng_between(prng, 1, limits[prng_below(prng, ARRAY_SIZE(limits))]);
}

static uint64_t choose_offset(struct prng *prng, uint64_t size) {
    uint64_t offset = size;

    switch (prng_below(prng, 8)) {
    case 0:
    case 1:
    case 2:
        offset = prng_between(prng, 0, size);
        break;
    case 3:
        offset = prng_between(prng, 0, size) / BLOCK_BYTES * BLOCK_BYTES;
        break;
    case 4:
        offset = size + prng_between(prng, 1, 200000);
        break;
    default:
        break;
    }
    return offset;
}

static bool choose_write(struct tree *tree, struct work *work) {
    struct open_file *handle = handle_any(tree, true);

    if (!handle || !(handle->flags & MODEL_WRITE)) {
        return false;
    }
    work->handle = handle;
    work->inode = handle->inode;
    work->seed = prng_next(&tree->prng);
    work->size = choose_size(&tree->prng);
    work->offset =
        handle->append ? handle->inode->size : choose_offset(&tree->prng, handle->inode->size);
    return work->offset + work->size <= FILE_BYTES_MAX;
}

static bool choose_handle(struct tree *tree, struct work *work) {
    work->handle = handle_any(tree, true);
    if (!work->handle) {
        return false;
    }
    work->inode = work->handle->inode;
    work->offset = prng_between(&tree->prng, 0, work->inode->size);
    work->size = choose_size(&tree->prng);
    if (work->kind == WORK_RESIZE) {
        work->size = prng_between(&tree->prng, 0, work->inode->size + 20000);
        return (work->handle->flags & MODEL_WRITE) && work->size <= FILE_BYTES_MAX;
    }
    return work->kind != WORK_READ || (work->handle->flags & MODEL_READ);
}

static bool choose_make(struct tree *tree, struct work *work) {
    static const uint32_t types[] = {DIRECTORY, DIRECTORY, SYMLINK, REGULAR, 0010000, 0020000};

    work->mode = types[prng_below(&tree->prng, ARRAY_SIZE(types))];
    work->mode |= work->mode == SYMLINK ? 0777 : (uint32_t)prng_below(&tree->prng, 010000);
    if ((work->mode & TYPE_MASK) == DIRECTORY) {
        work->mode &= (uint32_t)~06000; /* mkdir takes no set-id bits */
    }
    work->size = prng_between(&tree->prng, 1, prng_chance(&tree->prng, 1, 4) ? 4095 : 60);
    work->seed = prng_next(&tree->prng);
    return tree_choose_new(tree, &work->from);
}

static bool choose_two(struct tree *tree, struct work *work) {
    bool replaces = work->kind == WORK_RENAME && prng_chance(&tree->prng, 1, 2);

    if (!tree_choose_old(tree, &work->from) ||
        !(replaces ? tree_choose_old(tree, &work->to) : tree_choose_new(tree, &work->to))) {
        return false;
    }
    struct model_inode *inode = tree_look(tree, &work->from);
    if (work->kind == WORK_LINK) {
        return true;
    }
    struct model_inode *other = tree_look(tree, &work->to);
    work->flags = prng_chance(&tree->prng, 1, 3) ? (uint32_t)prng_between(&tree->prng, 1, 2) : 0;
    return tree_may_move(tree, inode, work->to.parent) &&
           (!other || tree_may_move(tree, other, work->from.parent));
}

static bool choose_attribute(struct tree *tree, struct work *work) {
    if (!tree_choose_old(tree, &work->from)) {
        return false;
    }
    work->inode = tree_look(tree, &work->from);
    work->mode = (uint32_t)prng_below(&tree->prng, 010000);
    work->flags = (uint32_t)prng_below(&tree->prng, 5);
    work->mtime_ns = (int64_t)prng_between(&tree->prng, 1, UINT64_C(2000000000) * NS_PER_S);
    work->size = choose_offset(&tree->prng, work->inode->size);
    return work->kind == WORK_CHOWN || (work->kind == WORK_CHMOD ? !is_type(work->inode, SYMLINK)
                                                                 : is_type(work->inode, REGULAR));
}

static bool choose_open(struct tree *tree, struct work *work) {
    work->handle = handle_any(tree, false);
    if (!work->handle) {
        return false;
    }
    work->mode = REGULAR | (uint32_t)prng_below(&tree->prng, 010000);
    work->flags = MODEL_READ | MODEL_WRITE;
    if (work->kind == WORK_CREATE || work->kind == WORK_UNNAMED) {
        return tree_choose_new(tree, &work->from);
    }
    if (prng_chance(&tree->prng, 1, 4)) {
        work->flags = MODEL_READ;
    } else if (prng_chance(&tree->prng, 1, 8)) {
        work->flags |= MODEL_TRUNCATE;
    }
    return tree_choose_old(tree, &work->from) && is_type(tree_look(tree, &work->from), REGULAR);
}

static bool choose_details(struct tree *tree, struct work *work) {
    bool full = is_full(tree);

    switch (work->kind) {
    case WORK_CREATE:
    case WORK_UNNAMED:
        return !full && choose_open(tree, work);
    case WORK_NAME:
        return !full && choose_handle(tree, work) && tree_choose_new(tree, &work->to);
    case WORK_OPEN:
        return choose_open(tree, work);
    case WORK_WRITE:
        return !full && choose_write(tree, work);
    case WORK_READ:
    case WORK_RESIZE:
    case WORK_FSYNC:
    case WORK_CLOSE:
        return choose_handle(tree, work);
    case WORK_MAKE:
        return !full && choose_make(tree, work);
    case WORK_LINK:
    case WORK_RENAME:
        return (!full || work->kind == WORK_RENAME) && choose_two(tree, work);
    case WORK_UNLINK:
    case WORK_RMDIR:
        return tree_choose_old(tree, &work->from);
    case WORK_SYNC:
        return prng_chance(&tree->prng, 1, 4);
    default:
        return choose_attribute(tree, work);
    }
}

bool work_choose(struct tree *tree, struct work *ret_work) {
    unsigned sum = 0;
    size_t kind = 0;

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        sum += kinds[i].weight;
    }
    for (uint64_t left = prng_below(&tree->prng, sum); left >= kinds[kind].weight; kind++) {
        left -= kinds[kind].weight;
    }
    *ret_work = (struct work){.kind = (enum work_kind)kind, .fd = -1};
    return choose_details(tree, ret_work);
}

static void target_of(const struct work *work, char *ret_target) {
    for (uint64_t i = 0; i < work->size; i++) {
        ret_target[i] = (char)('a' + work_byte(work->seed, i) % 26);
    }
    ret_target[work->size] = '\0';
}

static int make(const struct work *work, const char *path) {
    char target[4096];

    switch (work->mode & TYPE_MASK) {
    case DIRECTORY:
        return mkdir(path, work->mode & 07777);
    case SYMLINK:
        target_of(work, target);
        return symlink(target, path);
    default:
        return mknod(path, work->mode, makedev(1, 3));
    }
}

static int open_as_said(const struct work *work, const char *path) {
    int flags = work->flags & MODEL_WRITE ? O_RDWR : O_RDONLY;

    flags |= work->kind == WORK_CREATE ? O_CREAT | O_EXCL : O_NOFOLLOW;
    flags |= work->flags & MODEL_TRUNCATE ? O_TRUNC : 0;
    return open(path, flags | O_CLOEXEC, work->mode & 07777);
}

static int open_unnamed(struct tree *tree, const struct work *work) {
    char path[KILL_PATH_BYTES];

    tree_path(tree, work->from.parent, (struct bytes){NULL, 0}, path);
    return open(path, O_TMPFILE | O_RDWR | O_CLOEXEC, work->mode & 07777);
}

static int run_name(const struct work *work, const char *path) {
    return linkat(work->handle->fd, "", AT_FDCWD, path, AT_EMPTY_PATH);
}

static void run_write(struct work *work) {
    uint8_t *data = malloc(work->size);

    if (!data) {
        abort();
    }
    for (uint64_t i = 0; i < work->size; i++) {
        data[i] = work_byte(work->seed, i);
    }
    ssize_t wrote = work->handle->append
                        ? write(work->handle->fd, data, work->size)
                        : pwrite(work->handle->fd, data, work->size, (off_t)work->offset);
    work->error = wrote < 0 ? errno : 0;
    work->written = wrote < 0 ? 0 : (uint64_t)wrote;
    free(data);
}

static int run_sync(struct tree *tree) {
    int fd = open(tree->mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = fd < 0 ? -1 : fsync(fd);
    int error = errno;

    if (fd >= 0) {
        close(fd);
    }
    errno = error;
    return r;
}

static int run_utimes(const struct work *work, const char *path) {
    const struct timespec times[2] = {
        {.tv_nsec = UTIME_OMIT},
        {.tv_sec = work->mtime_ns / (int64_t)NS_PER_S,
         .tv_nsec = work->mtime_ns % (int64_t)NS_PER_S},
    };

    return utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW);
}

static int run_by_path(const struct work *work, const char *path, const char *other) {
    switch (work->kind) {
    case WORK_MAKE:
        return make(work, path);
    case WORK_LINK:
        return link(path, other);
    case WORK_UNLINK:
        return unlink(path);
    case WORK_RMDIR:
        return rmdir(path);
    case WORK_RENAME:
        return renameat2(AT_FDCWD, path, AT_FDCWD, other, work->flags);
    case WORK_TRUNCATE:
        return truncate(path, (off_t)work->size);
    case WORK_CHMOD:
        return chmod(path, work->mode);
    case WORK_CHOWN:
        return lchown(path, work->flags, work->flags + 1);
    default:
        return run_utimes(work, path);
    }
}

void work_run(struct tree *tree, struct work *work) {
    char path[KILL_PATH_BYTES];
    char other[KILL_PATH_BYTES];
    int r = 0;

    if (work->from.parent) {
        tree_path(tree, work->from.parent, tree_place(&work->from).name, path);
    }
    if (work->to.parent) {
        tree_path(tree, work->to.parent, tree_place(&work->to).name, other);
    }
    switch (work->kind) {
    case WORK_CREATE:
    case WORK_OPEN:
        r = work->fd = open_as_said(work, path);
        break;
    case WORK_UNNAMED:
        r = work->fd = open_unnamed(tree, work);
        break;
    case WORK_NAME:
        r = run_name(work, other);
        break;
    case WORK_WRITE:
        run_write(work);
        return;
    case WORK_READ:
        break; /* work_verify reads */
    case WORK_RESIZE:
        r = ftruncate(work->handle->fd, (off_t)work->size);
        break;
    case WORK_FSYNC:
        r = fsync(work->handle->fd);
        break;
    case WORK_CLOSE:
        r = close(work->handle->fd);
        work->handle->fd = -1;
        break;
    case WORK_SYNC:
        r = run_sync(tree);
        break;
    default:
        r = run_by_path(work, path, other);
        break;
    }
    work->error = r < 0 ? errno : 0;
}

/* A file that was opened stays so, unless its daemon is dead. */
static void keep_handle(struct tree *tree, struct work *work, struct model_inode *inode) {
    if (work->fd < 0) {
        (void)!model_close(tree->fs, inode, 0, work->flags);
        return;
    }
    *work->handle = (struct open_file){.fd = work->fd,
                                       .inode = inode,
                                       .flags = work->flags & (MODEL_READ | MODEL_WRITE),
                                       .append = false};
    if ((work->flags & MODEL_WRITE) && prng_chance(&tree->prng, 1, 3)) {
        work->handle->append = fcntl(work->fd, F_SETFL, O_APPEND) == 0;
    }
}

static int apply_open(struct tree *tree, struct work *work) {
    const struct model_place place = tree_place(&work->from);
    const struct model_open open = {.flags = work->flags, .mode = work->mode, .exclusive = true};
    struct model_inode *inode = NULL;
    bool created;
    int r;

    if (work->kind == WORK_CREATE) {
        r = model_create(tree->fs, &place, &open, &inode, &created);
    } else if (work->kind == WORK_UNNAMED) {
        const struct model_open unnamed = {.flags = work->flags, .mode = work->mode};

        r = model_create_unnamed(tree->fs, &place, &unnamed, &inode);
    } else {
        inode = tree_look(tree, &work->from);
        r = model_open(tree->fs, &tree_root, inode, &open);
        if (r == 0 && (work->flags & MODEL_TRUNCATE)) {
            tree_cut(inode, 0);
        }
    }
    if (r == 0) {
        keep_handle(tree, work, inode);
    }
    return r;
}

static int apply_write(struct work *work) {
    uint64_t size = work->error == 0 && work->written > 0 ? work->written : work->size;
    uint8_t *data = malloc(size);

    if (!data) {
        abort();
    }
    for (uint64_t i = 0; i < size; i++) {
        data[i] = work_byte(work->seed, work->first + i);
    }
    tree_fill(work->inode, work->offset, (struct bytes){data, size});
    model_written(work->inode, &tree_root, work->offset + size);
    free(data);
    return 0;
}

static int apply_make(struct tree *tree, const struct work *work) {
    const struct model_place place = tree_place(&work->from);
    char target[4096];
    struct model_new_inode what = {.mode = work->mode, .rdev = (uint32_t)makedev(1, 3)};
    struct model_inode *inode;

    if (is_type(&(struct model_inode){.mode = work->mode}, SYMLINK)) {
        target_of(work, target);
        what.target = (struct bytes){(const uint8_t *)target, work->size};
    }
    return model_make(tree->fs, &place, &what, &inode);
}

/* A mount that was killed may have it open for writing until its session is over: it can't get
 * set-id bits before. */
static bool is_still_open_elsewhere(const struct work *work) {
    return work->kind == WORK_CHMOD && work->error == EBUSY && is_type(work->inode, REGULAR) &&
           (work->mode & 06000) != 0;
}

static int apply_change(struct tree *tree, const struct work *work) {
    struct model_change change = {
        .size = work->size, .mode = work->mode & 07777, .uid = work->flags, .gid = work->flags + 1};

    change.set = work->kind == WORK_CHMOD    ? MODEL_SET_MODE
                 : work->kind == WORK_CHOWN  ? MODEL_SET_UID | MODEL_SET_GID
                 : work->kind == WORK_UTIMES ? MODEL_SET_MTIME
                                             : MODEL_SET_SIZE;
    if (is_still_open_elsewhere(work)) {
        return -ERR_IN_USE;
    }
    int r = model_setattr(tree->fs, &tree_root, work->inode, &change);
    if (r == 0 && change.set == MODEL_SET_SIZE) {
        tree_cut(work->inode, work->size);
    }
    if (r == 0 && work->kind == WORK_UTIMES) {
        tree_content(work->inode)->mtime_ns = work->mtime_ns;
    }
    return r;
}

static int apply_close(struct tree *tree, struct work *work) {
    return model_close(tree->fs, work->inode, 0, work->handle->flags);
}

int work_apply(struct tree *tree, struct work *work) {
    const struct model_place from = tree_place(&work->from);
    const struct model_place to = tree_place(&work->to);
    int r = 0;

    switch (work->kind) {
    case WORK_CREATE:
    case WORK_UNNAMED:
    case WORK_OPEN:
        r = apply_open(tree, work);
        break;
    case WORK_NAME:
        r = model_link(tree->fs, work->inode, &to);
        break;
    case WORK_WRITE:
        r = apply_write(work);
        break;
    case WORK_CLOSE:
        r = apply_close(tree, work);
        break;
    case WORK_MAKE:
        r = apply_make(tree, work);
        break;
    case WORK_LINK:
        r = model_link(tree->fs, tree_look(tree, &work->from), &to);
        break;
    case WORK_UNLINK:
        r = model_unlink(tree->fs, &from);
        break;
    case WORK_RMDIR:
        r = model_rmdir(tree->fs, &from);
        break;
    case WORK_RENAME:
        r = model_rename(tree->fs, &from, &to, work->flags);
        break;
    case WORK_READ:
    case WORK_FSYNC:
    case WORK_SYNC:
        break;
    default:
        r = apply_change(tree, work);
        break;
    }
    return err_to_errno(r);
}

static void verify_bytes(struct tree *tree, const struct work *work) {
    const struct content *content = tree_content(work->inode);
    uint64_t want =
        work->offset < work->inode->size ? MIN(work->size, work->inode->size - work->offset) : 0;
    uint8_t *data = malloc(work->size);

    if (!data) {
        abort();
    }
    ssize_t got = pread(work->handle->fd, data, work->size, (off_t)work->offset);
    if (got < 0 || (uint64_t)got != want) {
        tree_complain(tree, "read of %llu at %llu in a file of %llu answers %zd%s%s",
                      (unsigned long long)work->size, (unsigned long long)work->offset,
                      (unsigned long long)work->inode->size, got, got < 0 ? ": " : "",
                      got < 0 ? strerror(errno) : "");
    }
    for (uint64_t i = 0; got > 0 && i < (uint64_t)got; i++) {
        uint64_t at = work->offset + i;

        if (data[i] != (at < content->capacity ? content->data[at] : 0)) {
            tree_complain(tree, "read finds byte %llu of a file of %llu to be %02x",
                          (unsigned long long)at, (unsigned long long)work->inode->size, data[i]);
            break;
        }
    }
    free(data);
}

void work_verify(struct tree *tree, const struct work *work) {
    struct stat status;

    if (work->kind == WORK_READ) {
        verify_bytes(tree, work);
    }
    if (work->kind == WORK_READ || work->kind == WORK_RESIZE) {
        if (fstat(work->handle->fd, &status) != 0) {
            tree_complain(tree, "fstat: %s", strerror(errno));
        } else if ((uint64_t)status.st_size != work->inode->size ||
                   status.st_nlink != work->inode->nlink) {
            tree_complain(tree, "fstat says size %lld and %llu links, not %llu and %u",
                          (long long)status.st_size, (unsigned long long)status.st_nlink,
                          (unsigned long long)work->inode->size, work->inode->nlink);
        }
    }
}
