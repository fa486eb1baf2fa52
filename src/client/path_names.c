/* Names and directories by path. */
#include "client/path.h"
#include "env/errno_map.h"
#include <stdlib.h>
#include <string.h>

/* What a path that names no entry, as "/", answers. */
static int parent_of(const struct shoal_place *place, const char *path, int without_name,
                     struct path_walk *ret_walk) {
    int r = path_resolve(place, path, PATH_PARENT, ret_walk);

    return r == 0 && ret_walk->name_bytes == 0 ? -err_to_errno(without_name) : r;
}

static void name_set(struct shoal_request *request, const struct path_walk *walk) {
    request->ino = walk->directory;
    request->name = walk->name;
    request->name_bytes = walk->name_bytes;
}

/* A name that a slash follows must be a directory's, if it is there. */
static int slash_check(const struct shoal_place *place, const struct path_walk *walk) {
    struct shoal_request request = path_request(place, SHOAL_LOOKUP);

    if (!walk->slash) {
        return 0;
    }
    name_set(&request, walk);
    int r = (int)shoal_run(place->client, &request);
    return r == 0 && request.attributes.mode >> 12 != 4 ? -err_to_errno(-ERR_NOT_DIRECTORY) : r;
}

int shoal_path_mkdir(const struct shoal_place *place, const char *path, uint32_t mode) {
    struct shoal_request request = path_request(place, SHOAL_MKDIR);
    struct path_walk walk;
    int r = parent_of(place, path, -ERR_EXISTS, &walk);

    if (r) {
        return r;
    }
    name_set(&request, &walk);
    request.mode = mode;
    return (int)shoal_run(place->client, &request);
}

int shoal_path_rmdir(const struct shoal_place *place, const char *path) {
    struct shoal_request request = path_request(place, SHOAL_RMDIR);
    struct path_walk walk;
    int r = parent_of(place, path, -ERR_IN_USE, &walk);

    if (r) {
        return r;
    }
    name_set(&request, &walk);
    return (int)shoal_run(place->client, &request);
}

int shoal_path_unlink(const struct shoal_place *place, const char *path) {
    struct shoal_request request = path_request(place, SHOAL_UNLINK);
    struct path_walk walk;
    int r = parent_of(place, path, -ERR_IS_DIRECTORY, &walk);

    r = r ? r : slash_check(place, &walk);
    if (r) {
        return r;
    }
    name_set(&request, &walk);
    return (int)shoal_run(place->client, &request);
}

int shoal_path_rename(const struct shoal_place *place, const char *from, const char *to,
                      uint32_t flags) {
    struct shoal_request request = path_request(place, SHOAL_RENAME);
    struct path_walk old;
    struct path_walk new;
    int r = parent_of(place, from, -ERR_IN_USE, &old);

    r = r ? r : slash_check(place, &old);
    r = r ? r : parent_of(place, to, -ERR_IN_USE, &new);
    if (r == 0 && new.slash && !old.slash) {
        old.slash = true; /* What gets a name with a slash must be a directory as well. */
        r = slash_check(place, &old);
    }
    if (r) {
        return r;
    }
    name_set(&request, &old);
    request.new_ino = new.directory;
    request.new_name = new.name;
    request.new_name_bytes = new.name_bytes;
    request.flags = flags;
    return (int)shoal_run(place->client, &request);
}

int shoal_path_link(const struct shoal_place *place, const char *from, const char *to) {
    struct shoal_request request = path_request(place, SHOAL_LINK);
    struct path_walk old;
    struct path_walk new;
    int r = path_resolve(place, from, PATH_ITSELF, &old);

    r = r ? r : parent_of(place, to, -ERR_EXISTS, &new);
    if (r == 0 && new.slash) {
        r = -err_to_errno(-ERR_NOT_FOUND);
    }
    if (r) {
        return r;
    }
    request.ino = old.attributes.ino;
    request.new_ino = new.directory;
    request.new_name = new.name;
    request.new_name_bytes = new.name_bytes;
    return (int)shoal_run(place->client, &request);
}

int shoal_path_symlink(const struct shoal_place *place, const char *target, const char *path) {
    struct shoal_request request = path_request(place, SHOAL_SYMLINK);
    struct path_walk walk;
    int r = parent_of(place, path, -ERR_EXISTS, &walk);

    if (r == 0 && (walk.slash || !target || !target[0])) {
        r = -err_to_errno(-ERR_NOT_FOUND);
    }
    if (r) {
        return r;
    }
    name_set(&request, &walk);
    request.data = (void *)(uintptr_t)target; /* It is only read from. */
    request.size = strlen(target);
    return (int)shoal_run(place->client, &request);
}

int64_t shoal_path_readlink(const struct shoal_place *place, const char *path, char *target,
                            size_t size) {
    struct shoal_request request = path_request(place, SHOAL_READLINK);
    char whole[PATH_BYTES_MAX];
    struct path_walk walk;
    int r = path_resolve(place, path, PATH_ITSELF, &walk);

    if (r) {
        return r;
    }
    request.ino = walk.attributes.ino;
    request.data = whole;
    request.size = sizeof whole;
    int64_t bytes = shoal_run(place->client, &request);
    if (bytes > 0) {
        bytes = MIN(bytes, (int64_t)size);
        memcpy(target, whole, (size_t)bytes);
    }
    return bytes;
}

enum { ENTRIES_BYTES = 16384 };

/* Entries that were read ahead: a shoal_entry each, its name behind it. */
struct shoal_directory {
    struct shoal_place place;
    struct shoal_file *file;
    uint64_t cookie; /* of the last entry that was taken in */
    bool ended;
    size_t used;
    size_t at;
    _Alignas(struct shoal_entry) uint8_t entries[ENTRIES_BYTES];
};

int shoal_path_opendir(const struct shoal_place *place, const char *path,
                       struct shoal_directory **ret_directory) {
    struct shoal_directory *directory = calloc(1, sizeof *directory);
    int r;

    if (!directory) {
        return -err_to_errno(-ERR_NO_MEMORY);
    }
    directory->place = *place;
    r = shoal_path_open(place, path, SHOAL_OPEN_READ | SHOAL_OPEN_DIRECTORY, 0, &directory->file);
    if (r) {
        free(directory);
        return r;
    }
    *ret_directory = directory;
    return 0;
}

void shoal_path_closedir(struct shoal_directory *directory) {
    if (directory) {
        (void)shoal_path_close(&directory->place, directory->file);
        free(directory);
    }
}

static size_t entry_bytes(size_t name_bytes) {
    size_t align = _Alignof(struct shoal_entry);

    return (sizeof(struct shoal_entry) + name_bytes + 1 + align - 1) / align * align;
}

static int entry_take(void *context, const struct shoal_entry *entry) {
    struct shoal_directory *directory = context;
    size_t bytes = entry_bytes(entry->name_bytes);

    if (bytes > ENTRIES_BYTES - directory->used) {
        return 1;
    }
    struct shoal_entry *kept = (struct shoal_entry *)(void *)(directory->entries + directory->used);
    char *name = (char *)(kept + 1);
    *kept = *entry;
    kept->name = name;
    memcpy(name, entry->name, entry->name_bytes);
    name[entry->name_bytes] = '\0';
    directory->used += bytes;
    directory->cookie = entry->cookie;
    return 0;
}

static int entries_read(struct shoal_directory *directory) {
    struct shoal_request request = path_request(&directory->place, SHOAL_READDIR);

    directory->used = 0;
    directory->at = 0;
    request.file = directory->file;
    request.offset = directory->cookie;
    request.size = ENTRIES_BYTES;
    request.entry = entry_take;
    request.entry_context = directory;
    int64_t r = shoal_run(directory->place.client, &request);
    directory->ended = r == 0;
    return r < 0 ? (int)r : 0;
}

int shoal_path_readdir(struct shoal_directory *directory, struct shoal_entry *ret_entry) {
    if (directory->at == directory->used && !directory->ended) {
        int r = entries_read(directory);

        if (r) {
            return r;
        }
    }
    if (directory->at == directory->used) {
        return 0;
    }
    *ret_entry = *(struct shoal_entry *)(void *)(directory->entries + directory->at);
    directory->at += entry_bytes(ret_entry->name_bytes);
    return 1;
}
