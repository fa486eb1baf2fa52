/* A workload's files through libshoal's path layer, in the process that has the client. */
#include "cmd/bench/bench_files.h"
#include "env/errno_map.h"
#include <shoal/path.h>

static struct shoal_place place_of(void *context) {
    return (struct shoal_place){.client = context};
}

static int error_of(int64_t result) {
    return result < 0 ? err_from_errno((int)-result) : 0;
}

static int native_enter(void *context) {
    return error_of(shoal_thread_enter(context));
}

static void native_leave(void *context) {
    shoal_thread_leave(context);
}

static int native_open(void *context, const char *path, unsigned flags,
                       union bench_file *ret_file) {
    struct shoal_place place = place_of(context);
    struct shoal_file *file;
    uint32_t words = (flags & PLAIN_FILE_READ ? SHOAL_OPEN_READ : 0U) |
                     (flags & PLAIN_FILE_WRITE ? SHOAL_OPEN_WRITE : 0U) |
                     (flags & PLAIN_FILE_CREATE ? SHOAL_OPEN_CREATE : 0U);
    int r = error_of(shoal_path_open(&place, path, words, 0644, &file));

    if (r == 0) {
        ret_file->shoal = file;
    }
    return r;
}

static int native_close(void *context, union bench_file file) {
    struct shoal_place place = place_of(context);

    return error_of(shoal_path_close(&place, file.shoal));
}

static int native_read(void *context, union bench_file file, struct bench_piece *piece) {
    struct shoal_place place = place_of(context);
    int64_t size = shoal_path_read(&place, file.shoal, piece->data, piece->size, piece->offset);

    return size >= 0 && (uint64_t)size < piece->size ? -ERR_IO : error_of(size);
}

static int native_write(void *context, union bench_file file, const struct bench_piece *piece) {
    struct shoal_place place = place_of(context);

    return error_of(shoal_path_write(&place, file.shoal, piece->data, piece->size, piece->offset));
}

static int native_fsync(void *context, union bench_file file) {
    struct shoal_place place = place_of(context);

    return error_of(shoal_path_fsync(&place, file.shoal));
}

static int native_stat(void *context, const char *path) {
    struct shoal_place place = place_of(context);
    struct shoal_attributes attributes;

    return error_of(shoal_path_lstat(&place, path, &attributes));
}

static int native_mkdir(void *context, const char *path) {
    struct shoal_place place = place_of(context);

    return error_of(shoal_path_mkdir(&place, path, 0755));
}

static int native_rmdir(void *context, const char *path) {
    struct shoal_place place = place_of(context);

    return error_of(shoal_path_rmdir(&place, path));
}

static int native_unlink(void *context, const char *path) {
    struct shoal_place place = place_of(context);

    return error_of(shoal_path_unlink(&place, path));
}

static int native_rename(void *context, const char *from, const char *to) {
    struct shoal_place place = place_of(context);

    return error_of(shoal_path_rename(&place, from, to, 0));
}

static bool is_dot(const char *name) {
    return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

static int native_list(void *context, const char *path, uint64_t *ret_count) {
    struct shoal_place place = place_of(context);
    struct shoal_directory *directory;
    struct shoal_entry entry;
    uint64_t count = 0;
    int r = shoal_path_opendir(&place, path, &directory);

    if (r < 0) {
        return error_of(r);
    }
    while ((r = shoal_path_readdir(directory, &entry)) > 0) {
        count += !is_dot(entry.name);
    }
    shoal_path_closedir(directory);
    if (r == 0) {
        *ret_count = count;
    }
    return error_of(r);
}

const struct bench_files bench_native_files = {
    .thread_enter = native_enter,
    .thread_leave = native_leave,
    .open = native_open,
    .close = native_close,
    .read = native_read,
    .write = native_write,
    .fsync = native_fsync,
    .stat = native_stat,
    .mkdir = native_mkdir,
    .rmdir = native_rmdir,
    .unlink = native_unlink,
    .rename = native_rename,
    .list = native_list,
};
