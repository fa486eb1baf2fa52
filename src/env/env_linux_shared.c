/* Shared memory regions: files in memory, where the machine has a place for such.
 *
 * A region's file is PLACE/shoal-NAME; bytes of NAME that might mean something to a file system are
 * written as %xx. The name alone says whose it is, so that a directory finds its regions again by
 * whatever path it is reached. A lock on the file is held while it is mapped: should two processes
 * come upon one region (a directory and its copy), the second is refused. */
#include "env/env_linux_internal.h"
#include "env/errno_map.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

struct env_shared {
    int fd;
    void *data;
    size_t size_bytes;
};

enum { FILE_NAME_BYTES_MAX = 256 };

/* Whether a region may be kept in the directory, and the directory itself, as a descriptor. */
static int place_open(struct env_linux *env) {
    int fd = open("/dev/shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0 && faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) == 0) {
        return fd;
    }
    if (fd >= 0) {
        close(fd);
    }
    (void)mkdir("/run/shoal", 0700);
    fd = open("/run/shoal", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) == 0) {
        return fd;
    }
    if (fd >= 0) {
        close(fd);
    }
    return fcntl(env->root_fd, F_DUPFD_CLOEXEC, 0);
}

static int region_name(const char *name, char *ret_name) {
    static const char hex[] = "0123456789abcdef";
    size_t used = (size_t)snprintf(ret_name, FILE_NAME_BYTES_MAX, "shoal-");

    for (const char *from = name; *from; from++) {
        uint8_t byte = (uint8_t)*from;
        bool plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                     (byte >= '0' && byte <= '9') || byte == '-' || byte == '_' || byte == '.';

        if (used + 3 > NAME_BYTES_MAX) {
            return -ERR_NAME_TOO_LONG;
        }
        if (plain) {
            ret_name[used++] = *from;
        } else {
            ret_name[used++] = '%';
            ret_name[used++] = hex[byte >> 4];
            ret_name[used++] = hex[byte & 15];
        }
    }
    ret_name[used] = '\0';
    return 0;
}

/* Takes the region's file as it is, when it has the size asked for. Answers a locked descriptor,
 * -ERR_NOT_FOUND when there is none that fits, or another error. */
static int region_take(int place_fd, const char *file_name, size_t size_bytes) {
    struct stat status;
    int fd = openat(place_fd, file_name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0) {
        return err_from_errno(errno);
    }
    int r = 0;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        r = errno == EWOULDBLOCK ? -ERR_IN_USE : err_from_errno(errno);
    } else if (fstat(fd, &status) != 0) {
        r = err_from_errno(errno);
    } else if (!S_ISREG(status.st_mode) || status.st_uid != geteuid()) {
        r = -ERR_ACCESS;
    } else if ((uint64_t)status.st_size != size_bytes) {
        r = unlinkat(place_fd, file_name, 0) == 0 ? -ERR_NOT_FOUND : err_from_errno(errno);
    }
    if (r) {
        close(fd);
        return r;
    }
    return fd;
}

/* Space is taken at once: a full /dev/shm is an error here and not a signal at the first touch. */
static int region_create(int place_fd, const char *file_name, size_t size_bytes) {
    int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
    int fd = openat(place_fd, file_name, flags, 0600);

    if (fd < 0) {
        return err_from_errno(errno);
    }
    int failure = flock(fd, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
    if (!failure) {
        failure = posix_fallocate(fd, 0, (off_t)size_bytes);
    }
    if (failure) {
        unlinkat(place_fd, file_name, 0);
        close(fd);
        return err_from_errno(failure);
    }
    return fd;
}

static int region_map(struct env_shared *shared, int fd, size_t size_bytes) {
    void *data = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);

    if (data == MAP_FAILED) {
        return err_from_errno(errno);
    }
    shared->fd = fd;
    shared->data = data;
    shared->size_bytes = size_bytes;
    return 0;
}

int linux_shared_open(struct env *env, const char *name, size_t size_bytes,
                      struct env_shared **ret_shared, bool *ret_created) {
    char file_name[FILE_NAME_BYTES_MAX];
    bool created = false;
    int r = region_name(name, file_name);

    if (r || size_bytes == 0) {
        return r ? r : -ERR_INVALID;
    }
    struct env_shared *shared = calloc(1, sizeof *shared);
    if (!shared) {
        return -ERR_NO_MEMORY;
    }
    int place_fd = place_open(env_linux_of(env));
    int fd = place_fd < 0 ? err_from_errno(errno) : region_take(place_fd, file_name, size_bytes);
    if (fd == -ERR_NOT_FOUND) {
        created = true;
        fd = region_create(place_fd, file_name, size_bytes);
    }
    r = fd < 0 ? fd : region_map(shared, fd, size_bytes);
    if (r && fd >= 0) {
        close(fd);
    }
    if (place_fd >= 0) {
        close(place_fd);
    }
    if (r) {
        free(shared);
        return r;
    }
    *ret_shared = shared;
    *ret_created = created;
    return 0;
}

/* What lies where a region belongs. */
static int region_status(struct env *env, const char *name, struct stat *ret_status) {
    char file_name[FILE_NAME_BYTES_MAX];
    int r = region_name(name, file_name);

    if (r) {
        return r;
    }
    int place_fd = place_open(env_linux_of(env));
    if (place_fd < 0) {
        return err_from_errno(errno);
    }
    r = fstatat(place_fd, file_name, ret_status, AT_SYMLINK_NOFOLLOW) == 0 ? 0
                                                                           : err_from_errno(errno);
    close(place_fd);
    return r;
}

int linux_shared_size(struct env *env, const char *name, uint64_t *ret_size_bytes) {
    struct stat status;
    int r = region_status(env, name, &status);

    if (r == 0) {
        *ret_size_bytes = (uint64_t)status.st_size;
    }
    return r;
}

void *linux_shared_data(struct env_shared *shared) {
    return shared->data;
}

void linux_shared_close(struct env_shared *shared) {
    if (shared) {
        munmap(shared->data, shared->size_bytes);
        close(shared->fd);
        free(shared);
    }
}

int linux_shared_remove(struct env *env, const char *name) {
    char file_name[FILE_NAME_BYTES_MAX];
    int r = region_name(name, file_name);

    if (r) {
        return r;
    }
    int place_fd = place_open(env_linux_of(env));
    if (place_fd < 0) {
        return err_from_errno(errno);
    }
    r = unlinkat(place_fd, file_name, 0) == 0 ? 0 : err_from_errno(errno);
    close(place_fd);
    return r;
}

/* Empty when it cannot be told. */
static void place_path(int place_fd, char ret_place[PATH_MAX]) {
    char link[64];

    snprintf(link, sizeof link, "/proc/self/fd/%d", place_fd);
    ssize_t size = place_fd < 0 ? -1 : readlink(link, ret_place, PATH_MAX - 1);
    ret_place[MAX(size, (ssize_t)0)] = '\0';
}

void linux_shared_path(struct env *env, const char *name, size_t size_bytes, char *ret_path) {
    char file_name[FILE_NAME_BYTES_MAX];
    char place[PATH_MAX];
    int place_fd = place_open(env_linux_of(env));

    place_path(place_fd, place);
    if (place_fd >= 0) {
        close(place_fd);
    }
    if (region_name(name, file_name) < 0) {
        snprintf(file_name, sizeof file_name, "shoal-%.200s", name);
    }
    snprintf(ret_path, size_bytes, "%s%s%s", place, place[0] ? "/" : "", file_name);
}

int env_shared_space(struct env *env, uint64_t *ret_free_bytes, size_t size_bytes,
                     char *ret_place) {
    char place[PATH_MAX];
    struct statfs status;
    int place_fd = place_open(env_linux_of(env));

    if (place_fd < 0) {
        return err_from_errno(errno);
    }
    int r = fstatfs(place_fd, &status) == 0 ? 0 : err_from_errno(errno);
    place_path(place_fd, place);
    close(place_fd);
    if (r < 0) {
        return r;
    }
    snprintf(ret_place, size_bytes, "%s", place);
    /* A tmpfs without a limit tells zeros. */
    *ret_free_bytes =
        status.f_blocks == 0 ? UINT64_MAX : (uint64_t)status.f_bavail * (uint64_t)status.f_frsize;
    return 0;
}

int env_shared_owner(struct env *env, const char *name, struct env_shared_owner *ret_owner) {
    struct stat status;
    int r = region_status(env, name, &status);

    if (r < 0) {
        return r;
    }
    *ret_owner = (struct env_shared_owner){.uid = status.st_uid,
                                           .is_theirs = status.st_uid != geteuid(),
                                           .is_file = S_ISREG(status.st_mode),
                                           .is_open_to_others = (status.st_mode & 0022) != 0};
    return 0;
}
