/* A workload's files through the kernel: a mount of ours, or anybody else's. The place is a struct
 * own_folder. */
#include "cmd/bench/bench_files.h"
#include "host/own_folder.h"
#include <stdlib.h>

static int host_begin(void *context, const char *directory, void **ret_place) {
    struct own_folder *folder = malloc(sizeof *folder);
    int r = folder ? own_folder_open(directory, BENCH_FOLDER, folder) : -ERR_NO_MEMORY;

    (void)context;
    if (r < 0) {
        free(folder);
        return r;
    }
    *ret_place = folder;
    return 0;
}

static void host_end(void *place) {
    own_folder_close(place);
    free(place);
}

static int host_own(void *place, const char *path) {
    return own_folder_make(place, path);
}

static int host_enter(void *place) {
    (void)place;
    return 0;
}

static void host_leave(void *place) {
    (void)place;
}

static int host_open(void *place, const char *path, unsigned flags, union bench_file *ret_file) {
    return own_folder_file_open(place, path, flags, &ret_file->fd);
}

static int host_close(void *place, union bench_file file) {
    (void)place;
    return plain_file_close(file.fd);
}

static int host_read(void *place, union bench_file file, struct bench_piece *piece) {
    size_t size;
    int r = plain_file_read(file.fd, piece->data, piece->size, piece->offset, &size);

    (void)place;
    return r == 0 && size < piece->size ? -ERR_IO : r;
}

static int host_write(void *place, union bench_file file, const struct bench_piece *piece) {
    (void)place;
    return plain_file_write(file.fd, piece->data, piece->size, piece->offset);
}

static int host_fsync(void *place, union bench_file file) {
    (void)place;
    return plain_file_fsync(file.fd);
}

static int host_stat(void *place, const char *path) {
    return own_folder_stat(place, path);
}

static int host_mkdir(void *place, const char *path) {
    return own_folder_mkdir(place, path);
}

static int host_rmdir(void *place, const char *path) {
    return own_folder_rmdir(place, path);
}

static int host_unlink(void *place, const char *path) {
    return own_folder_unlink(place, path);
}

static int host_rename(void *place, const char *from, const char *to) {
    return own_folder_rename(place, from, to);
}

static int host_list(void *place, const char *path, struct buffer piece, uint64_t *ret_count) {
    return own_folder_list(place, path, piece, ret_count);
}

const struct bench_files bench_host_files = {
    .begin = host_begin,
    .end = host_end,
    .own = host_own,
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
