/* A workload's files through the kernel: a mount of ours, or anybody else's. */
#include "cmd/bench/bench_files.h"

static int host_enter(void *context) {
    (void)context;
    return 0;
}

static void host_leave(void *context) {
    (void)context;
}

static int host_open(void *context, const char *path, unsigned flags, union bench_file *ret_file) {
    (void)context;
    return plain_file_open(path, flags, &ret_file->fd);
}

static int host_close(void *context, union bench_file file) {
    (void)context;
    return plain_file_close(file.fd);
}

static int host_read(void *context, union bench_file file, struct bench_piece *piece) {
    size_t size;
    int r = plain_file_read(file.fd, piece->data, piece->size, piece->offset, &size);

    (void)context;
    return r == 0 && size < piece->size ? -ERR_IO : r;
}

static int host_write(void *context, union bench_file file, const struct bench_piece *piece) {
    (void)context;
    return plain_file_write(file.fd, piece->data, piece->size, piece->offset);
}

static int host_fsync(void *context, union bench_file file) {
    (void)context;
    return plain_file_fsync(file.fd);
}

static int host_stat(void *context, const char *path) {
    (void)context;
    return plain_file_stat(path);
}

static int host_mkdir(void *context, const char *path) {
    (void)context;
    return plain_file_mkdir(path);
}

static int host_rmdir(void *context, const char *path) {
    (void)context;
    return plain_file_rmdir(path);
}

static int host_unlink(void *context, const char *path) {
    (void)context;
    return plain_file_unlink(path);
}

static int host_rename(void *context, const char *from, const char *to) {
    (void)context;
    return plain_file_rename(from, to);
}

static int host_list(void *context, const char *path, uint64_t *ret_count) {
    (void)context;
    return plain_file_list(path, ret_count);
}

const struct bench_files bench_host_files = {
    .thread_enter = host_enter,
    .thread_leave = host_leave,
    .open = host_open,
    .close = host_close,
    .read = host_read,
    .write = host_write,
    .fsync = host_fsync,
    .stat = host_stat,
    .mkdir = host_mkdir,
    .rmdir = host_rmdir,
    .unlink = host_unlink,
    .rename = host_rename,
    .list = host_list,
};
