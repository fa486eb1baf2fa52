/* Locks, whole files, listings, space: system calls relative to the root. */
#include "host/folder.h"
#include "base/siphash.h"
#include "env/env_linux.h"
#include "env/errno_map.h"
#include "host/plain_file.h"
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

enum { TREE_DEPTH_MAX = 64 };

struct folder_lock {
    int fd;
    bool held;
};

/* Always the same number of bytes, overwritten in place: a full disk doesn't stop a start. Empty
 * lines fill it up, which a shell's $(cat lock) leaves out. */
static int lock_sign(const struct folder_lock *lock) {
    char text[FOLDER_LOCK_BYTES];
    int size = snprintf(text, sizeof text, "%d", getpid());

    memset(text + size, '\n', sizeof text - (size_t)size);
    return plain_file_write(lock->fd, text, FOLDER_LOCK_BYTES, 0);
}

/* Empty again: whoever tried and gave up has changed nothing. */
static void lock_unsign(const struct folder_lock *lock) {
    char text[FOLDER_LOCK_BYTES];

    memset(text, '\n', sizeof text);
    (void)!pwrite(lock->fd, text, sizeof text, 0);
}

int folder_lock_open(struct env *env, const char *path, struct folder_lock **ret_lock) {
    int r = env_path_check(env_linux_root(env), path);

    if (r < 0) {
        return r;
    }
    struct folder_lock *lock = calloc(1, sizeof *lock);
    if (!lock) {
        return -ERR_NO_MEMORY;
    }
    int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
    lock->fd = openat(env_linux_root(env), path, flags, 0600);
    if (lock->fd < 0) {
        r = err_from_errno(errno);
    } else if (flock(lock->fd, LOCK_EX | LOCK_NB) != 0) {
        r = errno == EWOULDBLOCK ? -ERR_IN_USE : err_from_errno(errno);
    } else {
        lock->held = true;
        r = lock_sign(lock);
    }
    if (r) {
        folder_lock_close(lock);
        return r;
    }
    *ret_lock = lock;
    return 0;
}

void folder_lock_close(struct folder_lock *lock) {
    if (lock) {
        if (lock->held) {
            lock_unsign(lock);
        }
        if (lock->fd >= 0) {
            close(lock->fd);
        }
        free(lock);
    }
}

int folder_lock_parse(struct bytes text, int *ret_process_id) {
    char line[FOLDER_LOCK_BYTES + 1] = {0};
    size_t size = MIN(text.size, sizeof line - 1);
    char *end;

    if (size > 0) {
        memcpy(line, text.data, size);
    }
    /* strtol takes blanks, a sign and zeros in front, too. */
    long process_id = strtol(line, &end, 10);
    if (line[0] < '1' || line[0] > '9' || process_id > INT_MAX ||
        end + strspn(end, "\n") != line + size) {
        return -ERR_MALFORMED;
    }
    *ret_process_id = (int)process_id;
    return 0;
}

int folder_lock_holder(struct env *env, const char *path, int *ret_process_id) {
    char text[FOLDER_LOCK_BYTES];
    ssize_t size = 0;
    int root_fd = env_linux_root(env);
    int r = env_path_check(root_fd, path);

    if (r < 0) {
        return r;
    }
    int fd = openat(root_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        return err_from_errno(errno);
    }
    if (flock(fd, LOCK_SH | LOCK_NB) == 0) {
        r = -ERR_NOT_FOUND;
    } else if (errno != EWOULDBLOCK || (size = read(fd, text, sizeof text)) < 0) {
        r = err_from_errno(errno);
    }
    close(fd);
    if (r) {
        return r;
    }
    return folder_lock_parse((struct bytes){(const uint8_t *)text, (size_t)size}, ret_process_id);
}

/* Reads fd to its end into memory that grows; files of /proc tell no size. */
static int fd_read_whole(int fd, size_t limit_bytes, char **ret_data, size_t *ret_size_bytes) {
    size_t capacity = 4096;
    size_t size_bytes = 0;
    char *data = malloc(capacity);

    while (data) {
        ssize_t got = read(fd, data + size_bytes, capacity - 1 - size_bytes);

        if (got == 0) {
            data[size_bytes] = '\0';
            *ret_data = data;
            *ret_size_bytes = size_bytes;
            return 0;
        }
        if (got < 0 && errno != EINTR) {
            int r = err_from_errno(errno);

            free(data);
            return r;
        }
        size_bytes += (size_t)MAX(got, (ssize_t)0);
        if (size_bytes > limit_bytes) {
            free(data);
            return -ERR_FILE_TOO_BIG;
        }
        if (size_bytes == capacity - 1) {
            char *larger = realloc(data, 2 * capacity);

            if (!larger) {
                free(data);
            }
            data = larger;
            capacity *= 2;
        }
    }
    return -ERR_NO_MEMORY;
}

int folder_file_read(struct env *env, const char *path, size_t limit_bytes, char **ret_data,
                     size_t *ret_size_bytes) {
    int root_fd = env_linux_root(env);
    int r = env_path_check(root_fd, path);

    if (r < 0) {
        return r;
    }
    int fd = openat(root_fd, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return err_from_errno(errno);
    }
    r = fd_read_whole(fd, limit_bytes, ret_data, ret_size_bytes);
    close(fd);
    return r;
}

static int new_file_written(int root_fd, const char *path, const void *data, size_t size_bytes,
                            bool durable) {
    int r = env_path_check(root_fd, path);

    if (r < 0) {
        return r;
    }
    /* What was left when it was cut may be a second name of the file itself: see rename_to_new. */
    if (unlinkat(root_fd, path, 0) != 0 && errno != ENOENT) {
        return err_from_errno(errno);
    }
    int fd = openat(root_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return err_from_errno(errno);
    }
    r = plain_file_write(fd, data, size_bytes, 0);
    if (!r && durable && fsync(fd) != 0) {
        r = err_from_errno(errno);
    }
    close(fd);
    return r;
}

/* Some network file systems have no rename of the kind: there a second link does the same. */
static int rename_to_new(int root_fd, const char *from, const char *to) {
    int r = renameat2(root_fd, from, root_fd, to, RENAME_NOREPLACE);

    if (r != 0 && errno == EINVAL) {
        r = linkat(root_fd, from, root_fd, to, 0);
        if (r == 0) {
            r = unlinkat(root_fd, from, 0);
        }
    }
    return r == 0 ? env_path_sync(root_fd, to) : err_from_errno(errno);
}

enum write_how { WRITE_OVER, WRITE_NEW, WRITE_NOTE };

static int file_write(struct env *env, const char *path, struct bytes content, enum write_how how) {
    int root_fd = env_linux_root(env);
    char temporary[PATH_MAX];
    int length = snprintf(temporary, sizeof temporary, "%s" FOLDER_FILE_NEW_SUFFIX, path);

    if (length < 0 || (size_t)length >= sizeof temporary) {
        return -ERR_NAME_TOO_LONG;
    }
    int r = new_file_written(root_fd, temporary, content.data, content.size, how != WRITE_NOTE);
    if (!r && how == WRITE_NOTE) {
        r = renameat(root_fd, temporary, root_fd, path) == 0 ? 0 : err_from_errno(errno);
    } else if (!r) {
        r = how == WRITE_OVER ? env->ops->file_rename(env, temporary, path)
                              : rename_to_new(root_fd, temporary, path);
    }
    if (r) {
        (void)unlinkat(root_fd, temporary, 0);
    }
    return r;
}

int folder_file_write(struct env *env, const char *path, const void *data, size_t size_bytes) {
    return file_write(env, path, (struct bytes){data, size_bytes}, WRITE_OVER);
}

int folder_file_write_new(struct env *env, const char *path, const void *data, size_t size_bytes) {
    return file_write(env, path, (struct bytes){data, size_bytes}, WRITE_NEW);
}

int folder_file_note(struct env *env, const char *path, const void *data, size_t size_bytes) {
    return file_write(env, path, (struct bytes){data, size_bytes}, WRITE_NOTE);
}

static enum folder_kind kind_of(mode_t mode) {
    if (S_ISREG(mode)) {
        return FOLDER_KIND_FILE;
    }
    return S_ISDIR(mode) ? FOLDER_KIND_DIRECTORY : FOLDER_KIND_OTHER;
}

static bool is_dots(const char *name) {
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static int directory_open(int parent_fd, const char *name, int flags, DIR **ret_directory) {
    int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);

    *ret_directory = fd < 0 ? NULL : fdopendir(fd);
    int r = *ret_directory ? 0 : err_from_errno(errno);
    if (r < 0 && fd >= 0) {
        close(fd);
    }
    return r;
}

int folder_list(struct env *env, const char *path,
                int (*each)(void *context, const struct folder_entry *entry), void *context) {
    DIR *directory;
    int r = directory_open(env_linux_root(env), path, 0, &directory);

    if (r < 0) {
        return r;
    }
    while (!r) {
        struct stat status;

        errno = 0;
        struct dirent *found = readdir(directory);
        if (!found) {
            r = errno ? err_from_errno(errno) : 0;
            break;
        }
        /* One that has gone meanwhile is not there. */
        if (is_dots(found->d_name) ||
            fstatat(dirfd(directory), found->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
            continue;
        }
        struct folder_entry entry = {found->d_name, kind_of(status.st_mode), 0};
        if (entry.kind == FOLDER_KIND_FILE) {
            entry.size_bytes = (uint64_t)status.st_size;
        }
        r = each(context, &entry);
    }
    closedir(directory);
    return r;
}

static int tree_empty(int parent_fd, const char *name, unsigned depth);

static int tree_remove_at(int parent_fd, const char *name, unsigned depth) {
    if (unlinkat(parent_fd, name, 0) == 0) {
        return 0;
    }
    if (errno != EISDIR && errno != EPERM) {
        return err_from_errno(errno);
    }
    int r = tree_empty(parent_fd, name, depth);
    if (!r && unlinkat(parent_fd, name, AT_REMOVEDIR) != 0) {
        r = err_from_errno(errno);
    }
    return r;
}

static int tree_empty(int parent_fd, const char *name, unsigned depth) {
    DIR *directory;
    int r = directory_open(parent_fd, name, O_NOFOLLOW, &directory);

    if (r < 0) {
        return r;
    }
    if (depth == TREE_DEPTH_MAX) {
        r = -ERR_LOOP;
    }
    while (!r) {
        errno = 0;
        struct dirent *found = readdir(directory);
        if (!found) {
            r = errno ? err_from_errno(errno) : 0;
            break;
        }
        if (!is_dots(found->d_name)) {
            r = tree_remove_at(dirfd(directory), found->d_name, depth + 1);
        }
    }
    closedir(directory);
    return r;
}

int folder_tree_remove(struct env *env, const char *path) {
    int r = tree_remove_at(env_linux_root(env), path, 0);

    return r ? r : env_path_sync(env_linux_root(env), path);
}

int folder_place(struct env *env, uint64_t *ret_place) {
    const struct siphash_key key = {{0}};
    uint64_t named[4];
    struct stat status;

    if (fstat(env_linux_root(env), &status) != 0) {
        return err_from_errno(errno);
    }
    env->ops->boot_id(env, (uint8_t *)named);
    named[2] = status.st_dev;
    named[3] = status.st_ino;
    *ret_place = siphash(&key, named, sizeof named) | 1;
    return 0;
}

int folder_space_get(struct env *env, struct folder_space *ret_space) {
    static const struct {
        uint32_t magic;
        const char *name;
        enum { PLAIN, COPIES, MEMORY } way;
    } kinds[] = {
        {0xef53, "ext4", PLAIN},        {0x58465342, "xfs", PLAIN},
        {0x01021994, "tmpfs", MEMORY},  {0x9123683e, "btrfs", COPIES},
        {0x2fc12fc1, "zfs", COPIES},    {0xca451a4e, "bcachefs", COPIES},
        {0xf2f52010, "f2fs", COPIES},   {0x3434, "nilfs2", COPIES},
        {0x794c7630, "overlay", PLAIN}, {0x6969, "nfs", PLAIN},
        {0x65735546, "fuse", PLAIN},    {0x858458f6, "ramfs", MEMORY},
    };
    struct statfs status;

    if (fstatfs(env_linux_root(env), &status) != 0) {
        return err_from_errno(errno);
    }
    *ret_space = (struct folder_space){
        .total_bytes = (uint64_t)status.f_blocks * (uint64_t)status.f_frsize,
        .free_bytes = (uint64_t)status.f_bavail * (uint64_t)status.f_frsize,
        .fs_name = "unknown",
    };
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if ((uint32_t)status.f_type == kinds[i].magic) {
            ret_space->fs_name = kinds[i].name;
            ret_space->copies_on_write = kinds[i].way == COPIES;
            ret_space->in_memory = kinds[i].way == MEMORY;
        }
    }
    return 0;
}
