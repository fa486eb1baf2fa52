/* The files that a workload uses: those of any mounted file system, or libshoal's in the daemon.
 * Calls block, from any thread; one that makes many does so between thread_enter and
 * thread_leave. */
#pragma once
#include "base/types.h"
#include "host/plain_file.h"

struct bench_piece {
    void *data;
    size_t size; /* of a read: all of it has to be there */
    uint64_t offset;
};

union bench_file {
    int fd;
    void *shoal;
};

struct bench_files {
    int (*thread_enter)(void *context);
    void (*thread_leave)(void *context);
    int (*open)(void *context, const char *path, unsigned flags, union bench_file *ret_file);
    int (*close)(void *context, union bench_file file);
    int (*read)(void *context, union bench_file file, struct bench_piece *piece);
    int (*write)(void *context, union bench_file file, const struct bench_piece *piece);
    int (*fsync)(void *context, union bench_file file);
    int (*stat)(void *context, const char *path);
    int (*mkdir)(void *context, const char *path);
    int (*rmdir)(void *context, const char *path);
    int (*unlink)(void *context, const char *path);
    int (*rename)(void *context, const char *from, const char *to);
    int (*list)(void *context, const char *path, uint64_t *ret_count);
};

extern const struct bench_files bench_host_files; /* context: NULL */
struct shoal_client;
extern const struct bench_files bench_native_files; /* context: struct shoal_client * */
