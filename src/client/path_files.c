/* Files and attributes by path. */
#include "client/path.h"
#include "env/errno_map.h"

/* Somebody may make or remove the name between our look and our attempt. */
enum { OPEN_ATTEMPTS = 8 };

static int open_found(const struct shoal_place *place, const struct path_walk *walk, uint32_t flags,
                      struct shoal_file **ret_file) {
    struct shoal_request request = path_request(place, SHOAL_OPEN);

    request.ino = walk->attributes.ino;
    request.flags = flags & ~(uint32_t)(SHOAL_OPEN_CREATE | SHOAL_OPEN_EXCLUSIVE);
    int r = (int)shoal_run(place->client, &request);
    if (r == 0) {
        *ret_file = request.file;
    }
    return r;
}

static int open_make(const struct shoal_place *place, const struct path_walk *walk,
                     const struct shoal_request *wanted, struct shoal_file **ret_file) {
    struct shoal_request request = path_request(place, SHOAL_CREATE);

    if (walk->slash) {
        return -err_to_errno(-ERR_IS_DIRECTORY);
    }
    request.ino = walk->directory;
    request.name = walk->name;
    request.name_bytes = walk->name_bytes;
    request.flags = wanted->flags & ~(uint32_t)SHOAL_OPEN_CREATE;
    request.mode = wanted->mode;
    int r = (int)shoal_run(place->client, &request);
    if (r == 0) {
        *ret_file = request.file;
    }
    return r;
}

static int open_attempt(const struct shoal_place *place, const char *path,
                        const struct shoal_request *wanted, struct shoal_file **ret_file) {
    bool makes = (wanted->flags & SHOAL_OPEN_CREATE) != 0;
    bool exclusive = makes && (wanted->flags & SHOAL_OPEN_EXCLUSIVE);
    struct path_walk walk;
    int r = path_resolve(place, path,
                         exclusive ? PATH_PARENT
                         : makes   ? PATH_CREATE
                                   : PATH_FOLLOW,
                         &walk);

    if (r) {
        return r;
    }
    if (exclusive && walk.name_bytes == 0) {
        return -err_to_errno(-ERR_EXISTS);
    }
    if (makes && walk.found && walk.attributes.mode >> 12 == 4) {
        return -err_to_errno(-ERR_IS_DIRECTORY);
    }
    return walk.found ? open_found(place, &walk, wanted->flags, ret_file)
                      : open_make(place, &walk, wanted, ret_file);
}

int shoal_path_open(const struct shoal_place *place, const char *path, uint32_t flags,
                    uint32_t mode, struct shoal_file **ret_file) {
    struct shoal_request wanted = {.flags = flags, .mode = mode};
    bool races = (flags & SHOAL_OPEN_CREATE) && !(flags & SHOAL_OPEN_EXCLUSIVE);
    int r = 0;

    for (int attempt = 0; attempt < OPEN_ATTEMPTS; attempt++) {
        r = open_attempt(place, path, &wanted, ret_file);
        bool moved = r == -err_to_errno(-ERR_NOT_FOUND) || r == -err_to_errno(-ERR_STALE) ||
                     r == -err_to_errno(-ERR_LOOP);

        if (!moved || !races) {
            break;
        }
    }
    return r;
}

static int64_t on_file(const struct shoal_place *place, enum shoal_operation operation,
                       struct shoal_file *file) {
    struct shoal_request request = path_request(place, operation);

    request.file = file;
    return shoal_run(place->client, &request);
}

int shoal_path_close(const struct shoal_place *place, struct shoal_file *file) {
    return file ? (int)on_file(place, SHOAL_RELEASE, file) : 0;
}

int shoal_path_fsync(const struct shoal_place *place, struct shoal_file *file) {
    return (int)on_file(place, SHOAL_FSYNC, file);
}

int64_t shoal_path_read(const struct shoal_place *place, struct shoal_file *file, void *data,
                        size_t size, uint64_t offset) {
    struct shoal_request request = path_request(place, SHOAL_READ);

    request.file = file;
    request.data = data;
    request.size = size;
    request.offset = offset;
    return shoal_run(place->client, &request);
}

int64_t shoal_path_write(const struct shoal_place *place, struct shoal_file *file, const void *data,
                         size_t size, uint64_t offset) {
    struct shoal_request request = path_request(place, SHOAL_WRITE);

    request.file = file;
    request.data = (void *)(uintptr_t)data; /* It is only read from. */
    request.size = size;
    request.offset = offset;
    return shoal_run(place->client, &request);
}

static int stat_end(const struct shoal_place *place, const char *path, enum path_end end,
                    struct shoal_attributes *ret_attributes) {
    struct path_walk walk;
    int r = path_resolve(place, path, end, &walk);

    if (r == 0) {
        *ret_attributes = walk.attributes;
    }
    return r;
}

int shoal_path_stat(const struct shoal_place *place, const char *path,
                    struct shoal_attributes *ret_attributes) {
    return stat_end(place, path, PATH_FOLLOW, ret_attributes);
}

int shoal_path_lstat(const struct shoal_place *place, const char *path,
                     struct shoal_attributes *ret_attributes) {
    return stat_end(place, path, PATH_ITSELF, ret_attributes);
}

static int set(const struct shoal_place *place, const char *path,
               const struct shoal_request *wanted) {
    struct shoal_request request = path_request(place, SHOAL_SETATTR);
    struct path_walk walk;
    int r = path_resolve(place, path, PATH_FOLLOW, &walk);

    if (r) {
        return r;
    }
    request.ino = walk.attributes.ino;
    request.set = wanted->set;
    request.attributes = wanted->attributes;
    return (int)shoal_run(place->client, &request);
}

int shoal_path_truncate(const struct shoal_place *place, const char *path, uint64_t size) {
    return set(place, path,
               &(struct shoal_request){.set = SHOAL_SET_SIZE, .attributes = {.size = size}});
}

int shoal_path_chmod(const struct shoal_place *place, const char *path, uint32_t mode) {
    return set(place, path,
               &(struct shoal_request){.set = SHOAL_SET_MODE, .attributes = {.mode = mode}});
}

int shoal_path_chown(const struct shoal_place *place, const char *path, uint32_t uid,
                     uint32_t gid) {
    uint32_t bits = (uid != UINT32_MAX ? (uint32_t)SHOAL_SET_UID : 0) |
                    (gid != UINT32_MAX ? (uint32_t)SHOAL_SET_GID : 0);

    return set(place, path,
               &(struct shoal_request){.set = bits, .attributes = {.uid = uid, .gid = gid}});
}

int shoal_path_utimens(const struct shoal_place *place, const char *path,
                       const int64_t times_ns[2]) {
    struct shoal_request wanted = {.set = SHOAL_SET_ATIME_NOW | SHOAL_SET_MTIME_NOW};

    if (times_ns) {
        wanted.set = SHOAL_SET_ATIME | SHOAL_SET_MTIME;
        wanted.attributes.atime_ns = times_ns[0];
        wanted.attributes.mtime_ns = times_ns[1];
    }
    return set(place, path, &wanted);
}
