/* Files of the real env: opening, naming, and requests done by blocking. */
#include "env/env_linux_internal.h"
#include "env/errno_map.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { ZEROS_BYTES = 65536, IO_CALL_BYTES_MAX = 1 << 30 };

static int fd_sync(int fd) {
    return fsync(fd) == 0 ? 0 : err_from_errno(errno);
}

int env_path_sync(int root_fd, const char *path) {
    char parent[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t size = slash ? (size_t)(slash - path) : 0;

    if (size >= sizeof parent) {
        return -ERR_NAME_TOO_LONG;
    }
    if (!slash) {
        parent[size++] = '.';
    } else if (size == 0) {
        parent[size++] = '/';
    } else {
        memcpy(parent, path, size);
    }
    parent[size] = '\0';
    int fd = openat(root_fd, parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return err_from_errno(errno);
    }
    int r = fd_sync(fd);
    close(fd);
    return r;
}

int env_path_check(int root_fd, const char *path) {
    struct stat status;

    /* Where nothing is, or may be looked at, opening it tells. */
    if (fstatat(root_fd, path, &status, 0) != 0 || S_ISREG(status.st_mode) ||
        S_ISBLK(status.st_mode)) {
        return 0;
    }
    return S_ISDIR(status.st_mode) ? -ERR_IS_DIRECTORY : -ERR_NOT_FILE;
}

/* Answers a descriptor or -errno. A medium that knows no O_DIRECT refuses it with EINVAL, some only
 * after they have made the file: so the second try takes it as it is. */
static int open_maybe_direct(struct env_linux *env, const char *path, int flags, bool direct) {
    int fd = openat(env->root_fd, path, flags | (direct ? O_DIRECT : 0), 0600);

    if (fd < 0 && errno == EINVAL && direct) {
        fd = openat(env->root_fd, path, flags & ~O_EXCL, 0600);
    }
    return fd < 0 ? -errno : fd;
}

/* Opens path, making it when flags ask for that; its entry is durable then. Answers a descriptor
 * or a negative ERR code; the two don't meet, as a descriptor is never negative. */
static int open_or_create(struct env_linux *env, const char *path, unsigned flags) {
    int access = (flags & ENV_FILE_READ_ONLY ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NOCTTY;
    bool direct = flags & ENV_FILE_DIRECT;

    for (;;) {
        int fd =
            flags & ENV_FILE_EXCLUSIVE ? -ENOENT : open_maybe_direct(env, path, access, direct);
        if (fd != -ENOENT || !(flags & ENV_FILE_CREATE)) {
            return fd < 0 ? err_from_errno(-fd) : fd;
        }
        fd = open_maybe_direct(env, path, access | O_CREAT | O_EXCL, direct);
        /* Somebody else has made it between the two calls: open that one. */
        if (fd == -EEXIST && !(flags & ENV_FILE_EXCLUSIVE)) {
            continue;
        }
        if (fd < 0) {
            return err_from_errno(-fd);
        }
        int r = fd_sync(fd);
        if (!r) {
            r = env_path_sync(env->root_fd, path);
        }
        if (r) {
            close(fd);
            return r;
        }
        return fd;
    }
}

static bool is_in_memory(int fd) {
    struct statfs status;

    return fstatfs(fd, &status) == 0 &&
           (status.f_type == TMPFS_MAGIC || status.f_type == RAMFS_MAGIC);
}

int linux_file_open(struct env *base, const char *path, unsigned flags,
                    struct env_file **ret_file) {
    struct env_linux *env = env_linux_of(base);
    struct env_file *file = calloc(1, sizeof *file);
    struct stat status;

    if (!file) {
        return -ERR_NO_MEMORY;
    }
    int fd = env_path_check(env->root_fd, path);
    fd = fd < 0 ? fd : open_or_create(env, path, flags);
    if (fd < 0 || fstat(fd, &status) != 0) {
        int r = fd < 0 ? fd : err_from_errno(errno);

        if (fd >= 0) {
            close(fd);
        }
        free(file);
        return r;
    }
    file->env = env;
    file->fd = fd;
    file->direct_asked = flags & ENV_FILE_DIRECT;
    file->read_only = flags & ENV_FILE_READ_ONLY;
    file->block_device = S_ISBLK(status.st_mode);
    file->in_memory = !file->block_device && is_in_memory(fd);
    *ret_file = file;
    return 0;
}

void linux_file_close(struct env_file *file) {
    if (file) {
        close(file->fd);
        free(file);
    }
}

int linux_file_size(struct env_file *file, uint64_t *ret_size_bytes) {
    struct stat status;

    if (file->block_device) {
        return ioctl(file->fd, BLKGETSIZE64, ret_size_bytes) == 0 ? 0 : err_from_errno(errno);
    }
    if (fstat(file->fd, &status) != 0) {
        return err_from_errno(errno);
    }
    *ret_size_bytes = (uint64_t)status.st_size;
    return 0;
}

int linux_file_space(struct env_file *file, uint64_t *ret_free_bytes) {
    struct statvfs status;

    if (file->block_device) {
        *ret_free_bytes = UINT64_MAX;
        return 0;
    }
    if (fstatvfs(file->fd, &status) != 0) {
        return err_from_errno(errno);
    }
    *ret_free_bytes = (uint64_t)status.f_bavail * status.f_frsize;
    return 0;
}

void linux_file_ways(const struct env_file *file, struct env_file_ways *ret_ways) {
    enum env_way way = file->env->uring ? ENV_WAY_URING : ENV_WAY_THREADS;

    *ret_ways = (struct env_file_ways){.reads = file->in_memory ? ENV_WAY_COPY : way,
                                       .writes = way,
                                       .direct = fcntl(file->fd, F_GETFL) & O_DIRECT};
}

int linux_directory_make(struct env *base, const char *path) {
    struct env_linux *env = env_linux_of(base);
    struct stat status;

    if (mkdirat(env->root_fd, path, 0700) != 0) {
        if (errno != EEXIST) {
            return err_from_errno(errno);
        }
        if (fstatat(env->root_fd, path, &status, 0) != 0) {
            return err_from_errno(errno);
        }
        return S_ISDIR(status.st_mode) ? 0 : -ERR_NOT_DIRECTORY;
    }
    return env_path_sync(env->root_fd, path);
}

int linux_file_remove(struct env *base, const char *path) {
    struct env_linux *env = env_linux_of(base);

    if (unlinkat(env->root_fd, path, 0) != 0) {
        return err_from_errno(errno);
    }
    return env_path_sync(env->root_fd, path);
}

int linux_file_rename(struct env *base, const char *from, const char *to) {
    struct env_linux *env = env_linux_of(base);

    if (renameat(env->root_fd, from, env->root_fd, to) != 0) {
        return err_from_errno(errno);
    }
    int r = env_path_sync(env->root_fd, to);
    return r ? r : env_path_sync(env->root_fd, from);
}

int io_check(const struct env_io *io) {
    const struct env_file *file = io->file;
    bool moves_data = io->kind == ENV_IO_READ || io->kind == ENV_IO_WRITE;

    if (file->read_only && io->kind != ENV_IO_READ) {
        return -ERR_BAD_HANDLE;
    }
    if (io->offset > INT64_MAX || io->size > INT64_MAX - io->offset) {
        return -ERR_FILE_TOO_BIG;
    }
    uint64_t together = io->offset | io->size | (uintptr_t)io->buffer;
    return moves_data && file->direct_asked && together % BLOCK_BYTES ? -ERR_INVALID : 0;
}

bool io_advance(struct env_io *io, int64_t answer) {
    struct env_work *work = &io->work;

    if (answer == -EINTR || answer == -EAGAIN) {
        return false;
    }
    if (answer < 0) {
        work->result = err_from_errno((int)-answer);
        return true;
    }
    if (io->kind != ENV_IO_READ && io->kind != ENV_IO_WRITE) {
        return true;
    }
    work->progress_bytes += (size_t)answer;
    io->ret_size = work->progress_bytes;
    if (io->kind == ENV_IO_WRITE) {
        if (answer == 0 && io->size > 0) {
            work->result = -ERR_IO;
            return true;
        }
        return work->progress_bytes == io->size;
    }
    /* A direct read that stops within a block has met the end of the file; the rest could not be
     * asked for, being unaligned. */
    return work->progress_bytes == io->size || answer == 0 ||
           (io->file->direct_asked && answer % BLOCK_BYTES);
}

static int zeros_write(int fd, off_t offset, off_t end) {
    static const uint8_t zeros[ZEROS_BYTES] __attribute__((aligned(BLOCK_BYTES)));

    while (offset < end) {
        ssize_t wrote = pwrite(fd, zeros, (size_t)MIN(end - offset, (off_t)ZEROS_BYTES), offset);

        if (wrote < 0 && errno != EINTR) {
            return err_from_errno(errno);
        }
        if (wrote == 0) {
            return -ERR_IO;
        }
        offset += MAX(wrote, (ssize_t)0);
    }
    return 0;
}

/* Where the medium has no fallocate: zeros are written to the holes of [offset, end) and past the
 * end of the file; what holds data stays. Buffered, as file ends need not be aligned. */
static int allocate_by_writing(struct env_file *file, off_t offset, off_t end) {
    char path[64];

    snprintf(path, sizeof path, "/proc/self/fd/%d", file->fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return err_from_errno(errno);
    }
    int r = 0;
    while (!r && offset < end) {
        off_t hole = lseek(fd, offset, SEEK_HOLE);
        /* ENXIO: offset is at or past the end of the file. */
        if (hole < 0) {
            hole = errno == ENXIO ? offset : -1;
        }
        if (hole < 0) {
            r = err_from_errno(errno);
            break;
        }
        off_t data = lseek(fd, hole, SEEK_DATA);
        off_t until = data < 0 ? end : MIN(data, end);
        r = zeros_write(fd, hole, until);
        offset = MAX(until, hole);
    }
    if (!r) {
        r = fd_sync(fd);
    }
    close(fd);
    return r;
}

/* Whether the file may become so long. What it has already is not asked for again. */
static int room_check(const struct env_io *io, uint64_t size_bytes) {
    uint64_t end = io->offset + io->size;
    uint64_t grows = end > size_bytes ? MIN(end - size_bytes, (uint64_t)io->size) : 0;
    uint64_t free_bytes;

    if (io->keep_free_bytes == 0 || grows == 0) {
        return 0;
    }
    int r = linux_file_space(io->file, &free_bytes);
    if (r < 0) {
        return r;
    }
    return free_bytes > grows && free_bytes - grows >= io->keep_free_bytes ? 0 : -ERR_NO_SPACE;
}

static int allocate_range(struct env_io *io) {
    struct env_file *file = io->file;
    int failure = file->env->refuse_fallocate ? EOPNOTSUPP : EINTR;
    while (failure == EINTR) {
        int r = fallocate(file->fd, 0, (off_t)io->offset, (off_t)io->size);

        failure = r == 0 ? 0 : errno;
    }
    if (failure == EOPNOTSUPP || failure == ENOSYS) {
        return allocate_by_writing(file, (off_t)io->offset, (off_t)(io->offset + io->size));
    }
    return failure ? err_from_errno(failure) : 0;
}

/* One file after the other where some space must stay free, so that two do not count on the same.
 * A try that met the end of the space has taken all of it: that goes back. */
static int io_allocate(struct env_io *io) {
    struct env_file *file = io->file;
    uint64_t size_bytes;
    int r = linux_file_size(file, &size_bytes);

    if (r || file->block_device) {
        return r ? r : io->offset + io->size <= size_bytes ? 0 : -ERR_NO_SPACE;
    }
    if (io->size == 0) {
        return 0;
    }
    if (io->keep_free_bytes > 0) {
        pthread_mutex_lock(&file->env->room_mutex);
    }
    r = room_check(io, size_bytes);
    if (!r) {
        r = allocate_range(io);
        if (r && ftruncate(file->fd, (off_t)size_bytes) != 0) {
            r = err_from_errno(errno);
        }
    }
    if (io->keep_free_bytes > 0) {
        pthread_mutex_unlock(&file->env->room_mutex);
    }
    return r;
}

static int64_t io_call(struct env_io *io) {
    size_t progress = io->work.progress_bytes;
    uint8_t *data =
        progress > 0 ? (uint8_t *)io->buffer + progress : io->buffer; /* NULL for some */
    size_t size = MIN(io->size - progress, (size_t)IO_CALL_BYTES_MAX);
    off_t offset = (off_t)(io->offset + progress);
    int64_t answer = 0;

    switch (io->kind) {
    case ENV_IO_READ:
        answer = pread(io->file->fd, data, size, offset);
        break;
    case ENV_IO_WRITE:
        answer = pwrite(io->file->fd, data, size, offset);
        break;
    case ENV_IO_SYNC:
        answer = fdatasync(io->file->fd);
        break;
    case ENV_IO_ALLOCATE:
        io->work.result = io_allocate(io);
        return 0;
    }
    return answer < 0 ? -errno : answer;
}

int linux_io_run(struct env *env, struct env_io *io) {
    int r = io_check(io);

    (void)env;
    if (r) {
        return r;
    }
    io->work.progress_bytes = 0;
    io->work.result = 0;
    io->ret_size = 0;
    while (!io_advance(io, io_call(io))) {
    }
    return io->work.result;
}
