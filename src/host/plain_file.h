/* Files of this machine as any program uses them, by the path that the user typed: one system call
 * each, blocking. Errors: -ERR_. Threads: any. */
#pragma once
#include "base/err.h"
#include "base/types.h"
#include <sys/stat.h>

enum plain_file_open {
    PLAIN_FILE_READ = 1,
    PLAIN_FILE_WRITE = 2,
    PLAIN_FILE_CREATE = 4,
    PLAIN_FILE_DIRECT = 8, /* past the page cache: offsets, sizes and memory in blocks of 4 KiB */
};

/* What open(2) takes for these. */
int plain_file_flags(unsigned flags);
MUST_CHECK int plain_file_open(const char *path, unsigned flags, int *ret_fd);
MUST_CHECK int plain_file_close(int fd);
/* All bytes, unless the file ends. Of a pipe what comes next, wherever the offset is. */
MUST_CHECK int plain_file_read(int fd, void *data, size_t size, uint64_t offset, size_t *ret_size);
MUST_CHECK int plain_file_write(int fd, const void *data, size_t size, uint64_t offset);
MUST_CHECK int plain_file_fsync(int fd);
MUST_CHECK int plain_file_stat(const char *path);
MUST_CHECK int plain_file_mkdir(const char *path);
MUST_CHECK int plain_file_rmdir(const char *path);
MUST_CHECK int plain_file_unlink(const char *path);

/* Makes the directory and those above it as needed. */
MUST_CHECK int plain_file_make_directories(const char *path);
/* The absolute path, free of symbolic links, that the caller frees. */
MUST_CHECK int plain_file_resolve(const char *path, char **ret_path);
/* The inode number of what path names; a symbolic link's own. */
MUST_CHECK int plain_file_ino(const char *path, uint64_t *ret_ino);
/* It is the caller's, and nobody else may write to it. */
bool plain_file_is_own(const char *path);
/* And of the directories that lead to it none is another user's but root's, or others' to write to
 * but where each may only move what is his (sticky): so nobody can lay something else in its place.
 * path: absolute, free of symbolic links. */
bool plain_file_is_own_for_good(const char *path);
bool plain_file_status_is_own(const struct stat *status);
