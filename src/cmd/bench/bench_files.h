/* The files that a workload uses: those of any mounted file system, or libshoal's in the daemon.
 * All lie in a folder of the caller's alone, as whoever else may write on their way could make them
 * lead elsewhere. Calls block, from any thread; one that makes many does so between thread_enter
 * and thread_leave. */
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

#define BENCH_FOLDER "shoal-bench"

struct bench_files {
    /* Makes the folder in the directory, or takes it, if it is the caller's and nobody else may
     * write to it: -ERR_NOT_PERMITTED. What follows is given the place, and paths within it. */
    int (*begin)(void *context, const char *directory, void **ret_place);
    void (*end)(void *place);                  /* removes the folder if it is empty */
    int (*own)(void *place, const char *path); /* likewise, a folder below; it may stay */

    int (*thread_enter)(void *place);
    void (*thread_leave)(void *place);
    int (*open)(void *place, const char *path, unsigned flags, union bench_file *ret_file);
    int (*close)(void *place, union bench_file file);
    int (*read)(void *place, union bench_file file, struct bench_piece *piece);
    int (*write)(void *place, union bench_file file, const struct bench_piece *piece);
    int (*fsync)(void *place, union bench_file file);
    int (*stat)(void *place, const char *path);
    int (*mkdir)(void *place, const char *path);
    int (*rmdir)(void *place, const char *path);
    int (*unlink)(void *place, const char *path);
    int (*rename)(void *place, const char *from, const char *to);
    int (*list)(void *place, const char *path, struct buffer piece, uint64_t *ret_count);
};

extern const struct bench_files bench_host_files; /* context: NULL */
struct shoal_client;
extern const struct bench_files bench_native_files; /* context: struct shoal_client * */
