/* Files by their paths: plain system calls. */
#include "host/plain_file.h"
#include "env/errno_map.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MODE = 0644, DIRECTORY_MODE = 0755, OTHERS_WRITE = 0022 };

static int result_of(int returned) {
    return returned < 0 ? err_from_errno(errno) : 0;
}

int plain_file_flags(unsigned flags) {
    static const int access[] = {O_RDONLY, O_RDONLY, O_WRONLY, O_RDWR};

    return O_CLOEXEC | access[flags & (PLAIN_FILE_READ | PLAIN_FILE_WRITE)] |
           (flags & PLAIN_FILE_CREATE ? O_CREAT : 0) | (flags & PLAIN_FILE_DIRECT ? O_DIRECT : 0);
}

int plain_file_open(const char *path, unsigned flags, int *ret_fd) {
    int fd = open(path, plain_file_flags(flags), FILE_MODE);
    if (fd < 0) {
        return err_from_errno(errno);
    }
    *ret_fd = fd;
    return 0;
}

int plain_file_close(int fd) {
    return result_of(close(fd));
}

int plain_file_read(int fd, void *data, size_t size, uint64_t offset, size_t *ret_size) {
    size_t done = 0;

    while (done < size) {
        ssize_t got = pread(fd, (char *)data + done, size - done, (off_t)(offset + done));

        if (got < 0 && errno == ESPIPE) {
            got = read(fd, (char *)data + done, size - done);
        }
        if (got < 0 && errno != EINTR) {
            return err_from_errno(errno);
        }
        if (got == 0) {
            break;
        }
        done += got > 0 ? (size_t)got : 0;
    }
    *ret_size = done;
    return 0;
}

int plain_file_write(int fd, const void *data, size_t size, uint64_t offset) {
    size_t done = 0;

    while (done < size) {
        ssize_t put = pwrite(fd, (const char *)data + done, size - done, (off_t)(offset + done));

        if (put < 0 && errno != EINTR) {
            return err_from_errno(errno);
        }
        done += put > 0 ? (size_t)put : 0;
    }
    return 0;
}

int plain_file_fsync(int fd) {
    return result_of(fsync(fd));
}

int plain_file_stat(const char *path) {
    struct stat attributes;

    return result_of(lstat(path, &attributes));
}

int plain_file_mkdir(const char *path) {
    return result_of(mkdir(path, DIRECTORY_MODE));
}

int plain_file_rmdir(const char *path) {
    return result_of(rmdir(path));
}

int plain_file_unlink(const char *path) {
    return result_of(unlink(path));
}

int plain_file_make_directories(const char *path) {
    char part[PATH_MAX];
    size_t size = strlen(path);
    struct stat status;

    if (size == 0 || size >= sizeof part) {
        return size ? -ERR_NAME_TOO_LONG : -ERR_NOT_FOUND;
    }
    memcpy(part, path, size + 1);
    for (size_t i = 1; i <= size; i++) {
        if (part[i] != '/' && part[i] != '\0') {
            continue;
        }
        char ended_by = part[i];
        part[i] = '\0';
        if (mkdir(part, 0700) != 0 && errno != EEXIST) {
            return err_from_errno(errno);
        }
        part[i] = ended_by;
    }
    if (stat(path, &status) != 0) {
        return err_from_errno(errno);
    }
    return S_ISDIR(status.st_mode) ? 0 : -ERR_NOT_DIRECTORY;
}

int plain_file_resolve(const char *path, char **ret_path) {
    char *resolved = realpath(path, NULL);

    if (!resolved) {
        return err_from_errno(errno);
    }
    *ret_path = resolved;
    return 0;
}

int plain_file_ino(const char *path, uint64_t *ret_ino) {
    struct stat attributes;

    if (lstat(path, &attributes) < 0) {
        return err_from_errno(errno);
    }
    *ret_ino = attributes.st_ino;
    return 0;
}

bool plain_file_is_own(const char *path) {
    struct stat attributes;

    return stat(path, &attributes) == 0 && plain_file_status_is_own(&attributes);
}

/* What leads somewhere. From the root on, as only then nobody can change what is behind it. */
static bool step_is_safe(const char *path) {
    struct stat status;

    return lstat(path, &status) == 0 && S_ISDIR(status.st_mode) &&
           (status.st_uid == 0 || status.st_uid == geteuid()) &&
           ((status.st_mode & OTHERS_WRITE) == 0 || (status.st_mode & S_ISVTX));
}

bool plain_file_is_own_for_good(const char *path) {
    char part[PATH_MAX];
    size_t size = strlen(path);

    if (size >= sizeof part || path[0] != '/' || !step_is_safe("/")) {
        return false;
    }
    for (size_t i = 1; i < size; i++) {
        if (path[i] == '/') {
            memcpy(part, path, i);
            part[i] = '\0';
            if (!step_is_safe(part)) {
                return false;
            }
        }
    }
    return plain_file_is_own(path);
}

bool plain_file_status_is_own(const struct stat *status) {
    return status->st_uid == geteuid() && (status->st_mode & OTHERS_WRITE) == 0;
}
