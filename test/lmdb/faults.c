/* See faults.h. Calls go to the kernel by number, so that none comes here twice. */
#include "faults.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static struct faults *faults;

void faults_use(struct faults *use) {
    faults = use;
}

/* False: not a file below the root. */
static bool path_of(int fd, char ret_path[PATH_MAX]) {
    char link[32];
    ssize_t size;

    if (!faults) {
        return false;
    }
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    size = readlink(link, ret_path, PATH_MAX - 1);
    ret_path[size < 0 ? 0 : size] = '\0';
    return strncmp(ret_path, faults->root, strlen(faults->root)) == 0;
}

/* Also under the name that it has while it is made. */
static bool is_data(const char *path) {
    return strncmp(path, faults->name, strlen(faults->name)) == 0 && !strstr(path, "-lock");
}

/* What the next call is to meet. */
static enum fault_kind fault_next(void) {
    faults->calls++;
    if (faults->at == 0 || faults->calls < faults->at ||
        faults->calls >= faults->at + faults->width) {
        return FAULT_NONE;
    }
    faults->struck++;
    if (faults->kind == FAULT_KILL_BEFORE) {
        (void)kill(getpid(), SIGKILL);
    }
    return faults->kind;
}

/* The answer to a call that a kind lets do nothing; 0: it does something. */
static int refusal(enum fault_kind kind) {
    switch (kind) {
    case FAULT_ENOSPC:
        return ENOSPC;
    case FAULT_EDQUOT:
        return EDQUOT;
    case FAULT_EIO:
        return EIO;
    default:
        return 0;
    }
}

/* When a call has done what it was to do. */
static long answer(enum fault_kind kind, long result) {
    if (kind == FAULT_KILL_HALF || kind == FAULT_KILL_AFTER) {
        (void)kill(getpid(), SIGKILL);
    }
    if (kind == FAULT_EIO_DONE || kind == FAULT_EIO_LOST) {
        errno = EIO;
        return -1;
    }
    return result;
}

static void block_to_disk(int fd, size_t block) {
    (void)syscall(SYS_pread64, fd, faults->disk[block], FAULT_BLOCK_BYTES,
                  (off_t)(block * FAULT_BLOCK_BYTES));
    faults->dirty[block] = false;
}

/* Blocks from first to last; each second one only when step is 2. */
static void disk_write(size_t first, size_t last, size_t step) {
    int fd = (int)syscall(SYS_openat, AT_FDCWD, faults->name, O_RDONLY | O_CLOEXEC);
    char making[FAULT_PATH_BYTES + 8];
    struct stat stat;

    (void)snprintf(making, sizeof making, "%s.new", faults->name);
    if (fd < 0) {
        fd = (int)syscall(SYS_openat, AT_FDCWD, making, O_RDONLY | O_CLOEXEC);
    }
    for (size_t i = first; i <= last && i < FAULT_BLOCKS; i += step) {
        if (faults->dirty[i]) {
            block_to_disk(fd, i);
        }
    }
    if (fstat(fd, &stat) == 0) {
        faults->disk_bytes = (uint64_t)stat.st_size;
    }
    (void)syscall(SYS_close, fd);
}

/* Size bytes of a gathered write, and what they dirty. */
static long bytes_write(int fd, const struct iovec *iov, size_t size, off_t offset) {
    size_t done = 0;

    for (; done < size; iov++) {
        size_t part = iov->iov_len < size - done ? iov->iov_len : size - done;
        long r = syscall(SYS_pwrite64, fd, iov->iov_base, part, offset + (off_t)done);

        if (r < 0) {
            return r;
        }
        done += (size_t)r;
    }
    return (long)done;
}

static void range_dirty(off_t offset, long size, bool dirty) {
    for (off_t at = offset / FAULT_BLOCK_BYTES; at * FAULT_BLOCK_BYTES < offset + size; at++) {
        if (at < FAULT_BLOCKS) {
            faults->dirty[at] = dirty;
        }
    }
}

static long data_write(int fd, const struct iovec *iov, int count, off_t offset) {
    enum fault_kind kind = fault_next();
    bool syncs = (fcntl(fd, F_GETFL) & O_DSYNC) != 0;
    bool lost = syncs && (kind == FAULT_EIO_LOST || kind == FAULT_KILL_AFTER);
    size_t size = 0;
    long r;

    for (int i = 0; i < count; i++) {
        size += iov[i].iov_len;
    }
    if (kind == FAULT_EIO_LOST && !syncs) {
        kind = FAULT_EIO;
    }
    if (refusal(kind) != 0) {
        errno = refusal(kind);
        return -1;
    }
    if (kind == FAULT_SHORT || kind == FAULT_KILL_HALF) {
        size /= 2;
    }
    r = bytes_write(fd, iov, size, offset);
    if (r > 0) {
        range_dirty(offset, r, !(lost && kind == FAULT_EIO_LOST));
    }
    if (r > 0 && syncs && !lost && kind != FAULT_KILL_HALF) {
        disk_write((size_t)offset / FAULT_BLOCK_BYTES, (size_t)(offset + r - 1) / FAULT_BLOCK_BYTES,
                   1);
    }
    return answer(kind, r);
}

/* A flush of the data file, or of a directory: then names are on disk. */
static int data_sync(int fd, long number) {
    char path[PATH_MAX];
    enum fault_kind kind;

    if (!path_of(fd, path)) {
        return (int)syscall(number, fd);
    }
    kind = fault_next();
    if (refusal(kind) != 0 || kind == FAULT_SHORT) {
        errno = kind == FAULT_SHORT ? EIO : refusal(kind);
        return -1;
    }
    if (!is_data(path)) {
        bool done = kind != FAULT_EIO_LOST && kind != FAULT_KILL_HALF;

        faults->named = faults->named || (done && access(faults->name, F_OK) == 0);
    } else if (kind == FAULT_EIO_LOST) {
        memset(faults->dirty, 0, sizeof faults->dirty);
    } else {
        disk_write(0, FAULT_BLOCKS - 1, kind == FAULT_KILL_HALF ? 2 : 1);
    }
    return (int)answer(kind, 0);
}

/* What changes size or name, all at once. */
static int change(long number, long a, long b, long c, long d) {
    enum fault_kind kind = fault_next();

    if (refusal(kind) != 0 || kind == FAULT_SHORT || kind == FAULT_EIO_LOST) {
        errno = refusal(kind) != 0 ? refusal(kind) : EIO;
        return -1;
    }
    return (int)answer(kind, syscall(number, a, b, c, d));
}

/* The C library's names, of which some have a second one. */
#define STANDS_FOR(NAME) __asm__(#NAME)
#define ALSO(NAME) __attribute__((alias(#NAME)))

ssize_t faulty_pwrite(int, const void *, size_t, off_t) STANDS_FOR(pwrite);
ssize_t faulty_pwrite64(int, const void *, size_t, off_t) STANDS_FOR(pwrite64) ALSO(pwrite);
ssize_t faulty_pwritev(int, const struct iovec *, int, off_t) STANDS_FOR(pwritev);
ssize_t faulty_pwritev64(int, const struct iovec *, int, off_t) STANDS_FOR(pwritev64) ALSO(pwritev);
ssize_t faulty_write(int, const void *, size_t) STANDS_FOR(write);
ssize_t faulty_writev(int, const struct iovec *, int) STANDS_FOR(writev);
int faulty_fdatasync(int) STANDS_FOR(fdatasync);
int faulty_fsync(int) STANDS_FOR(fsync);
int faulty_msync(void *, size_t, int) STANDS_FOR(msync);
int faulty_ftruncate(int, off_t) STANDS_FOR(ftruncate);
int faulty_ftruncate64(int, off_t) STANDS_FOR(ftruncate64) ALSO(ftruncate);
int faulty_fallocate(int, int, off_t, off_t) STANDS_FOR(fallocate);
int faulty_fallocate64(int, int, off_t, off_t) STANDS_FOR(fallocate64) ALSO(fallocate);
int faulty_rename(const char *, const char *) STANDS_FOR(rename);

ssize_t faulty_pwritev(int fd, const struct iovec *iov, int count, off_t offset) {
    char path[PATH_MAX];

    if (!path_of(fd, path)) {
        return syscall(SYS_pwritev, fd, iov, count, offset, 0);
    }
    return data_write(fd, iov, count, offset);
}

ssize_t faulty_pwrite(int fd, const void *data, size_t size, off_t offset) {
    char path[PATH_MAX];
    struct iovec iov = {(void *)(uintptr_t)data, size};

    if (!path_of(fd, path)) {
        return syscall(SYS_pwrite64, fd, data, size, offset);
    }
    return data_write(fd, &iov, 1, offset);
}

/* At the file's position, which it moves. */
ssize_t faulty_writev(int fd, const struct iovec *iov, int count) {
    char path[PATH_MAX];
    off_t offset;
    ssize_t r;

    if (!path_of(fd, path)) {
        return syscall(SYS_writev, fd, iov, count);
    }
    offset = lseek(fd, 0, SEEK_CUR);
    r = data_write(fd, iov, count, offset);
    if (r > 0) {
        (void)lseek(fd, offset + r, SEEK_SET);
    }
    return r;
}

ssize_t faulty_write(int fd, const void *data, size_t size) {
    char path[PATH_MAX];
    struct iovec iov = {(void *)(uintptr_t)data, size};

    return path_of(fd, path) ? faulty_writev(fd, &iov, 1) : syscall(SYS_write, fd, data, size);
}

int faulty_fdatasync(int fd) {
    return data_sync(fd, SYS_fdatasync);
}

int faulty_fsync(int fd) {
    return data_sync(fd, SYS_fsync);
}

int faulty_msync(void *at, size_t size, int flags) {
    return faults ? change(SYS_msync, (long)at, (long)size, flags, 0)
                  : (int)syscall(SYS_msync, at, size, flags);
}

int faulty_ftruncate(int fd, off_t size) {
    char path[PATH_MAX];

    return path_of(fd, path) ? change(SYS_ftruncate, fd, size, 0, 0)
                             : (int)syscall(SYS_ftruncate, fd, size);
}

int faulty_fallocate(int fd, int mode, off_t offset, off_t size) {
    char path[PATH_MAX];

    return path_of(fd, path) ? change(SYS_fallocate, fd, mode, offset, size)
                             : (int)syscall(SYS_fallocate, fd, mode, offset, size);
}

int faulty_rename(const char *from, const char *to) {
    return faults ? change(SYS_rename, (long)from, (long)to, 0, 0)
                  : (int)syscall(SYS_rename, from, to);
}
