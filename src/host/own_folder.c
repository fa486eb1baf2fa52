/* Calls relative to a descriptor: whoever may rename what leads to the folder changes nothing. */
#include "host/own_folder.h"
#include "env/errno_map.h"
#include "host/plain_file.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    FILE_MODE = 0644,
    DIRECTORY_MODE = 0755,
    DIRECTORY_FLAGS = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW
};

static int result_of(int returned) {
    return returned < 0 ? err_from_errno(errno) : 0;
}

/* Made, or found: what is opened is what is looked at. A symbolic link is refused by the open. */
static int own_open(int at, const char *path, int *ret_fd) {
    struct stat status;

    if (mkdirat(at, path, DIRECTORY_MODE) < 0 && errno != EEXIST) {
        return err_from_errno(errno);
    }
    int fd = openat(at, path, DIRECTORY_FLAGS);
    int r = fd >= 0                                                 ? result_of(fstat(fd, &status))
            : errno == ENOTDIR || errno == ELOOP || errno == EACCES ? -ERR_NOT_PERMITTED
                                                                    : err_from_errno(errno);
    if (r == 0 && !plain_file_status_is_own(&status)) {
        r = -ERR_NOT_PERMITTED;
    }
    if (r < 0) {
        if (fd >= 0) {
            close(fd);
        }
        return r;
    }
    *ret_fd = fd;
    return 0;
}

int own_folder_open(const char *directory, const char *name, struct own_folder *ret_folder) {
    struct own_folder folder;
    int size = snprintf(folder.name, sizeof folder.name, "%s", name);

    if (size < 0 || (size_t)size >= sizeof folder.name) {
        return -ERR_NAME_TOO_LONG;
    }
    folder.parent = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder.parent < 0) {
        return err_from_errno(errno);
    }
    int r = own_open(folder.parent, name, &folder.folder);
    if (r < 0) {
        close(folder.parent);
        return r;
    }
    *ret_folder = folder;
    return 0;
}

void own_folder_close(struct own_folder *folder) {
    (void)unlinkat(folder->parent, folder->name, AT_REMOVEDIR);
    close(folder->folder);
    close(folder->parent);
}

int own_folder_make(const struct own_folder *folder, const char *path) {
    int fd = -1;
    int r = own_open(folder->folder, path, &fd);

    return r < 0 ? r : result_of(close(fd));
}

int own_folder_file_open(const struct own_folder *folder, const char *path, unsigned flags,
                         int *ret_fd) {
    int fd = openat(folder->folder, path, plain_file_flags(flags) | O_NOFOLLOW, FILE_MODE);

    if (fd < 0) {
        return err_from_errno(errno);
    }
    *ret_fd = fd;
    return 0;
}

int own_folder_stat(const struct own_folder *folder, const char *path) {
    struct stat attributes;

    return result_of(fstatat(folder->folder, path, &attributes, AT_SYMLINK_NOFOLLOW));
}

int own_folder_mkdir(const struct own_folder *folder, const char *path) {
    return result_of(mkdirat(folder->folder, path, DIRECTORY_MODE));
}

int own_folder_rmdir(const struct own_folder *folder, const char *path) {
    return result_of(unlinkat(folder->folder, path, AT_REMOVEDIR));
}

int own_folder_unlink(const struct own_folder *folder, const char *path) {
    return result_of(unlinkat(folder->folder, path, 0));
}

int own_folder_rename(const struct own_folder *folder, const char *from, const char *to) {
    return result_of(renameat(folder->folder, from, folder->folder, to));
}

static bool is_dot(const char *name) {
    return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

/* Of one piece of the listing; or an error. */
static int entries_stat(int directory, const uint8_t *entries, size_t size, uint64_t *count) {
    struct stat attributes;
    int r = 0;

    for (size_t at = 0; r == 0 && at < size;) {
        const struct dirent64 *entry = (const void *)(entries + at);

        if (!is_dot(entry->d_name)) {
            (*count)++;
            r = result_of(fstatat(directory, entry->d_name, &attributes, AT_SYMLINK_NOFOLLOW));
        }
        at += entry->d_reclen;
    }
    return r;
}

int own_folder_list(const struct own_folder *folder, const char *path, struct buffer piece,
                    uint64_t *ret_count) {
    int fd = openat(folder->folder, path, DIRECTORY_FLAGS);
    int r = result_of(fd);
    uint64_t count = 0;
    ssize_t got = 1;

    while (r == 0 && got > 0) {
        got = getdents64(fd, piece.data, piece.capacity);
        r = got < 0 ? err_from_errno(errno) : entries_stat(fd, piece.data, (size_t)got, &count);
    }
    if (fd >= 0) {
        close(fd);
    }
    if (r == 0) {
        *ret_count = count;
    }
    return r;
}
