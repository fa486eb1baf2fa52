/* A file beside the one that is meant, which then gets its name: by a link, which takes no other's
 * place, or by a rename, which does. */
#include "host/secret_file.h"
#include "env/errno_map.h"
#include "host/machine.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SECRET_MODE = 0600, OTHERS_MODE = 0077 };

static int result_of(int returned) {
    return returned < 0 ? err_from_errno(errno) : 0;
}

static int descriptor_read(int fd, struct buffer *buffer) {
    struct stat status;

    if (fstat(fd, &status) < 0) {
        return err_from_errno(errno);
    }
    if (!S_ISREG(status.st_mode)) {
        return -ERR_NOT_FILE;
    }
    if (status.st_mode & OTHERS_MODE) {
        return -ERR_NOT_PERMITTED;
    }
    if ((uint64_t)status.st_size > buffer->capacity) {
        return -ERR_FILE_TOO_BIG;
    }
    ssize_t got = pread(fd, buffer->data, buffer->capacity, 0);
    if (got < 0) {
        return err_from_errno(errno);
    }
    buffer->size = (size_t)got;
    return 0;
}

int secret_file_read(const char *path, struct buffer *buffer) {
    /* What opens only when somebody comes to the other end is no file. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0) {
        return err_from_errno(errno);
    }
    int r = descriptor_read(fd, buffer);
    close(fd);
    return r;
}

static int content_write(int fd, struct bytes content) {
    size_t done = 0;

    while (done < content.size) {
        ssize_t put = pwrite(fd, content.data + done, content.size - done, (off_t)done);

        if (put < 0 && errno != EINTR) {
            return err_from_errno(errno);
        }
        done += put > 0 ? (size_t)put : 0;
    }
    return result_of(fsync(fd));
}

static int directory_flush(const char *path) {
    char directory[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t size = slash == path ? 1 : slash ? (size_t)(slash - path) : 0;

    if (size >= sizeof directory) {
        return -ERR_NAME_TOO_LONG;
    }
    memcpy(directory, slash ? path : ".", slash ? size : 1);
    directory[slash ? size : 1] = '\0';
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return err_from_errno(errno);
    }
    int r = result_of(fsync(fd));
    close(fd);
    return r;
}

/* A file of this content under a name that nobody else uses. */
static int beside_write(const char *path, struct bytes content) {
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, SECRET_MODE);

    if (fd < 0) {
        return err_from_errno(errno);
    }
    int r = result_of(fchmod(fd, SECRET_MODE));
    if (r == 0) {
        r = content_write(fd, content);
    }
    close(fd);
    if (r < 0) {
        (void)unlink(path);
    }
    return r;
}

/* No process id: who was killed may have left a file, and ids come again, in each container. */
static int beside_name(const char *path, char ret_name[PATH_MAX]) {
    uint64_t random;

    machine_random(&random, sizeof random);
    int size = snprintf(ret_name, PATH_MAX, "%s.%016" PRIx64 ".tmp", path, random);

    return size < PATH_MAX ? 0 : -ERR_NAME_TOO_LONG;
}

int secret_file_make(const char *path, struct bytes content) {
    char beside[PATH_MAX];
    struct stat status;
    int r = beside_name(path, beside);

    if (r == 0 && lstat(path, &status) == 0) {
        return -ERR_EXISTS;
    }
    if (r == 0) {
        r = beside_write(beside, content);
    }
    if (r < 0) {
        return r;
    }
    r = result_of(link(beside, path));
    (void)unlink(beside);
    return r < 0 ? r : directory_flush(path);
}

int secret_file_replace(const char *path, struct bytes content) {
    char beside[PATH_MAX];
    struct stat status;

    if (lstat(path, &status) < 0) {
        return err_from_errno(errno);
    }
    int r = S_ISREG(status.st_mode) ? beside_name(path, beside) : -ERR_NOT_FILE;
    if (r == 0) {
        r = beside_write(beside, content);
    }
    if (r < 0) {
        return r;
    }
    r = result_of(rename(beside, path));
    if (r < 0) {
        (void)unlink(beside);
        return r;
    }
    return directory_flush(path);
}
