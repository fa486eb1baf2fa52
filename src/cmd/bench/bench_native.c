/* A workload's files through libshoal's path layer, in the process that has the client, as root.
 * Paths begin at the folder's inode, so that whoever renames what leads to it changes nothing. */
#include "cmd/bench/bench.h"
#include "env/errno_map.h"
#include <shoal/path.h>
#include <stdio.h>
#include <stdlib.h>

static int error_of(int64_t result) {
    return result < 0 ? err_from_errno((int)-result) : 0;
}

enum { OWN_MODE = 0755, OTHERS_WRITE = 0022, KIND_SHIFT = 12, KIND_DIRECTORY = 4 };

struct native_place {
    struct shoal_place above; /* paths begin at the root */
    struct shoal_place folder;
    char name[BENCH_PATH_BYTES];
};

static const struct shoal_place *folder_of(const void *place) {
    const struct native_place *native = place;

    return &native->folder;
}

/* Made, or found to be root's and nobody else's to write to. */
static int own_make(const struct shoal_place *place, const char *path, uint64_t *ret_ino) {
    struct shoal_attributes attributes;
    int r = shoal_path_mkdir(place, path, OWN_MODE);

    if (r < 0 && error_of(r) != -ERR_EXISTS) {
        return error_of(r);
    }
    r = shoal_path_lstat(place, path, &attributes);
    if (r < 0) {
        return error_of(r);
    }
    if (attributes.mode >> KIND_SHIFT != KIND_DIRECTORY || attributes.uid != 0 ||
        (attributes.mode & OTHERS_WRITE)) {
        return -ERR_NOT_PERMITTED;
    }
    *ret_ino = attributes.ino;
    return 0;
}

static int native_begin(void *context, const char *directory, void **ret_place) {
    struct native_place *native = calloc(1, sizeof *native);
    int r = native ? 0 : -ERR_NO_MEMORY;

    if (native) {
        snprintf(native->name, sizeof native->name, "%s/" BENCH_FOLDER, directory);
        native->above.client = context;
        native->folder.client = context;
        r = own_make(&native->above, native->name, &native->folder.directory);
    }
    if (r < 0) {
        free(native);
        return r;
    }
    *ret_place = native;
    return 0;
}

static void native_end(void *place) {
    struct native_place *native = place;

    (void)!shoal_path_rmdir(&native->above, native->name);
    free(native);
}

static int native_own(void *place, const char *path) {
    uint64_t ino;

    return own_make(folder_of(place), path, &ino);
}

static int native_enter(void *place) {
    return error_of(shoal_thread_enter(folder_of(place)->client));
}

static void native_leave(void *place) {
    shoal_thread_leave(folder_of(place)->client);
}

static int native_open(void *place, const char *path, unsigned flags, union bench_file *ret_file) {
    struct shoal_file *file;
    uint32_t words = (flags & PLAIN_FILE_READ ? SHOAL_OPEN_READ : 0U) |
                     (flags & PLAIN_FILE_WRITE ? SHOAL_OPEN_WRITE : 0U) |
                     (flags & PLAIN_FILE_CREATE ? SHOAL_OPEN_CREATE : 0U);
    int r = error_of(shoal_path_open(folder_of(place), path, words, 0644, &file));

    if (r == 0) {
        ret_file->shoal = file;
    }
    return r;
}

static int native_close(void *place, union bench_file file) {
    return error_of(shoal_path_close(folder_of(place), file.shoal));
}

static int native_read(void *place, union bench_file file, struct bench_piece *piece) {
    int64_t size =
        shoal_path_read(folder_of(place), file.shoal, piece->data, piece->size, piece->offset);

    return size >= 0 && (uint64_t)size < piece->size ? -ERR_IO : error_of(size);
}

static int native_write(void *place, union bench_file file, const struct bench_piece *piece) {
    return error_of(
        shoal_path_write(folder_of(place), file.shoal, piece->data, piece->size, piece->offset));
}

static int native_fsync(void *place, union bench_file file) {
    return error_of(shoal_path_fsync(folder_of(place), file.shoal));
}

static int native_stat(void *place, const char *path) {
    struct shoal_attributes attributes;

    return error_of(shoal_path_lstat(folder_of(place), path, &attributes));
}

static int native_mkdir(void *place, const char *path) {
    return error_of(shoal_path_mkdir(folder_of(place), path, 0755));
}

static int native_rmdir(void *place, const char *path) {
    return error_of(shoal_path_rmdir(folder_of(place), path));
}

static int native_unlink(void *place, const char *path) {
    return error_of(shoal_path_unlink(folder_of(place), path));
}

static int native_rename(void *place, const char *from, const char *to) {
    return error_of(shoal_path_rename(folder_of(place), from, to, 0));
}

static bool is_dot(const char *name) {
    return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

static int native_list(void *place, const char *path, struct buffer piece, uint64_t *ret_count) {
    struct shoal_directory *directory;
    struct shoal_entry entry;
    uint64_t count = 0;
    (void)piece; /* the library's own */
    int r = shoal_path_opendir(folder_of(place), path, &directory);

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
    .begin = native_begin,
    .end = native_end,
    .own = native_own,
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
