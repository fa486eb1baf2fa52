/* Resolving paths. */
#include "client/path.h"
#include "env/errno_map.h"
#include <string.h>

static bool mode_is(const struct shoal_attributes *attributes, uint32_t type) {
    return attributes->mode >> 12 == type;
}

enum { TYPE_DIRECTORY = 4, TYPE_LINK = 10 };

struct shoal_request path_request(const struct shoal_place *place, enum shoal_operation operation) {
    return (struct shoal_request){.operation = operation, .identity = place->identity};
}

static int error(int result) {
    return -err_to_errno(result);
}

/* Takes the next name off the front of what is left; *at moves behind it and its slashes. */
static int next_name(const char **at, const char **ret_name, size_t *ret_bytes) {
    const char *name = *at;
    size_t bytes = strcspn(name, "/");

    if (bytes > SHOAL_NAME_BYTES_MAX) {
        return error(-ERR_NAME_TOO_LONG);
    }
    *at = name + bytes + strspn(name + bytes, "/");
    *ret_name = name;
    *ret_bytes = bytes;
    return 0;
}

static int lookup(const struct shoal_place *place, struct path_walk *walk) {
    struct shoal_request request = path_request(place, SHOAL_LOOKUP);

    request.ino = walk->directory;
    request.name = walk->name;
    request.name_bytes = walk->name_bytes;
    int r = (int)shoal_run(place->client, &request);
    if (r == 0) {
        walk->attributes = request.attributes;
        walk->found = true;
    }
    return r;
}

static int getattr(const struct shoal_place *place, struct path_walk *walk) {
    struct shoal_request request = path_request(place, SHOAL_GETATTR);

    request.ino = walk->directory;
    int r = (int)shoal_run(place->client, &request);
    if (r == 0) {
        walk->attributes = request.attributes;
        walk->found = true;
    }
    return r;
}

/* Puts the target of the symbolic link that was found in front of what follows it. */
static int expand(const struct shoal_place *place, struct path_walk *walk, const char **at) {
    char target[PATH_BYTES_MAX + 1];
    struct shoal_request request = path_request(place, SHOAL_READLINK);
    size_t left = strlen(*at);

    if (++walk->link_count > PATH_LINKS_MAX) {
        return error(-ERR_LOOP);
    }
    request.ino = walk->attributes.ino;
    request.data = target;
    request.size = PATH_BYTES_MAX;
    int64_t bytes = shoal_run(place->client, &request);
    if (bytes <= 0) {
        return bytes < 0 ? (int)bytes : error(-ERR_NOT_FOUND);
    }
    if ((size_t)bytes + 1 + left > PATH_BYTES_MAX) {
        return error(-ERR_NAME_TOO_LONG);
    }
    /* A slash behind the link, or something more, keeps its slash. */
    bool slash = walk->slash;
    memmove(walk->rest + bytes + slash, *at, left + 1);
    memcpy(walk->rest, target, (size_t)bytes);
    if (slash) {
        walk->rest[bytes] = '/';
    }
    if (walk->rest[0] == '/') {
        walk->directory = SHOAL_INO_ROOT;
    }
    *at = walk->rest + strspn(walk->rest, "/");
    walk->found = false;
    return 0;
}

/* Whether a symbolic link that was found at the end is to be followed. */
static bool follows(const struct path_walk *walk, enum path_end end) {
    return end == PATH_FOLLOW || end == PATH_CREATE || (end == PATH_ITSELF && walk->slash);
}

static int walk_names(const struct shoal_place *place, enum path_end end, struct path_walk *walk) {
    const char *at = walk->rest + strspn(walk->rest, "/");

    for (;;) {
        walk->found = false;
        walk->name_bytes = 0;
        walk->slash = false;
        if (*at == '\0') {
            return getattr(place, walk);
        }
        int r = next_name(&at, &walk->name, &walk->name_bytes);
        if (r) {
            return r;
        }
        bool last = *at == '\0';
        walk->slash = walk->name[walk->name_bytes] == '/';
        if (last && end == PATH_PARENT) {
            return 0;
        }
        r = lookup(place, walk);
        if (r == error(-ERR_NOT_FOUND) && last && end == PATH_CREATE) {
            return 0;
        }
        if (r) {
            return r;
        }
        if (mode_is(&walk->attributes, TYPE_LINK) && (!last || follows(walk, end))) {
            r = expand(place, walk, &at);
            if (r) {
                return r;
            }
            continue;
        }
        if ((walk->slash || !last) && !mode_is(&walk->attributes, TYPE_DIRECTORY)) {
            return error(-ERR_NOT_DIRECTORY);
        }
        if (last) {
            return 0;
        }
        walk->directory = walk->attributes.ino;
    }
}

int path_resolve(const struct shoal_place *place, const char *path, enum path_end end,
                 struct path_walk *ret_walk) {
    size_t bytes = path ? strlen(path) : 0;

    if (bytes == 0) {
        return error(-ERR_NOT_FOUND);
    }
    if (bytes > PATH_BYTES_MAX) {
        return error(-ERR_NAME_TOO_LONG);
    }
    ret_walk->link_count = 0;
    ret_walk->directory =
        path[0] == '/' || place->directory == 0 ? SHOAL_INO_ROOT : place->directory;
    memcpy(ret_walk->rest, path, bytes + 1);
    return walk_names(place, end, ret_walk);
}
