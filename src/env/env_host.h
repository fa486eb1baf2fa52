/* Files of this machine as any program uses them, and threads that use them at the same time: what
 * `shoal bench` measures a mount with, from outside. One system call each, blocking, by the path
 * that the user typed. Errors: -ERR_. Threads: any. */
#pragma once
#include "base/err.h"
#include "base/types.h"

enum env_host_open {
    ENV_HOST_READ = 1,
    ENV_HOST_WRITE = 2,
    ENV_HOST_CREATE = 4,
    ENV_HOST_DIRECT = 8, /* past the page cache: offsets, sizes and memory in blocks of 4 KiB */
};

MUST_CHECK int env_host_open(const char *path, unsigned flags, int *ret_fd);
MUST_CHECK int env_host_close(int fd);
/* All bytes, unless the file ends. Of a pipe what comes next, wherever the offset is. */
MUST_CHECK int env_host_read(int fd, void *data, size_t size, uint64_t offset, size_t *ret_size);
MUST_CHECK int env_host_write(int fd, const void *data, size_t size, uint64_t offset);
MUST_CHECK int env_host_fsync(int fd);
MUST_CHECK int env_host_stat(const char *path);
MUST_CHECK int env_host_mkdir(const char *path);
MUST_CHECK int env_host_rmdir(const char *path);
MUST_CHECK int env_host_unlink(const char *path);
MUST_CHECK int env_host_rename(const char *from, const char *to);
/* Entries but "." and "..", each with its attributes, as `ls -l` asks for them. */
MUST_CHECK int env_host_list(const char *path, uint64_t *ret_count);

uint64_t env_host_clock_ns(void); /* monotonic */

/* Calls run(context, 0..count - 1), each on a thread of its own, and waits for all. When a thread
 * cannot be had, those there are still run, and the result is -ERR_BUSY. */
MUST_CHECK int env_host_threads(unsigned count, void (*run)(void *context, unsigned index),
                                void *context);
