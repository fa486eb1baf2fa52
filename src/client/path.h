/* The walk along a path: names are looked up one after the other, symbolic links are put in their
 * place in what is left of it.
 *
 *     rest = "a/link/b"   lookup a, lookup link -> symlink to "x/y"   rest = "x/y/b"   ...
 *
 * Thread: the caller's. Memory: the struct, on the caller's stack. */
#pragma once
#include <shoal/path.h>

#include "base/err.h"

enum { PATH_BYTES_MAX = 4096, PATH_LINKS_MAX = 40 };

enum path_end {
    PATH_FOLLOW, /* what the path names, behind a symbolic link */
    PATH_ITSELF, /* what it names, be it a symbolic link; behind one with a trailing slash */
    PATH_PARENT, /* the directory and the last name, which need not exist */
    PATH_CREATE  /* like FOLLOW; when nothing is there, like PARENT */
};

struct path_walk {
    uint64_t directory; /* that the last name is in */
    const char *name;   /* the last name, in rest; none: the path names a directory by itself */
    size_t name_bytes;  /* 0 for none */
    bool slash;         /* one follows: it must be a directory */
    bool found;         /* attributes are those of what the path names */
    struct shoal_attributes attributes;
    uint32_t link_count;
    char rest[PATH_BYTES_MAX + 1];
};

/* 0 or -errno. */
MUST_CHECK int path_resolve(const struct shoal_place *place, const char *path, enum path_end end,
                            struct path_walk *ret_walk);
/* A request of the place's client and identity. */
struct shoal_request path_request(const struct shoal_place *place, enum shoal_operation operation);
