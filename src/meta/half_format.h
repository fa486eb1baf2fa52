/* Halves as bytes: over the wire and in rows, packed, little-endian (docs/internals/halves.md). */
#pragma once
#include "base/err.h"
#include "meta/cross_format.h"

enum half_kind {
    HALF_MAKE = 1, /* a directory; its number is drawn by the prepare */
    HALF_LINK,     /* a name more */
    HALF_UNLINK,   /* a name less; a directory goes */
    HALF_NAME,     /* a name is made, or gets another inode */
    HALF_MOVED,    /* a name that has moved: parent and index of the first one */
    HALF_COUNT,    /* a move of a directory */
};

struct __attribute__((packed)) half {
    uint8_t format;
    uint8_t kind;     /* enum half_kind */
    uint8_t type;     /* NAME: of the inode that it gets */
    uint8_t old_type; /* NAME: of the one that it has; 0: it is free */
    /* MAKE: the new directory's. Else relied on: those of the inode; NAME: of the directory. */
    uint32_t mode;
    uint32_t uid;
    uint32_t gid;
    uint32_t domain;
    uint32_t pool_version; /* MAKE */
    uint32_t chunk_bytes;  /* MAKE */
    uint16_t stripe_count; /* MAKE */
    uint8_t redundancy;    /* MAKE */
    uint8_t name_bytes;    /* NAME */
    uint64_t ino;          /* of the inode; NAME: the directory; MAKE: 0 until it is drawn */
    uint64_t from;       /* NAME: the inode that it has, 0: free; MOVED: the parent; COUNT: so far;
                            * LINK, UNLINK: links so far */
    uint64_t to;         /* NAME: the inode that it gets; MAKE, MOVED, LINK: the parent */
    uint64_t from_index; /* NAME: where it is, or would be; MOVED: of the name */
    uint64_t to_index;   /* MAKE, MOVED, LINK: of the name */
    uint8_t name[];
};
static_assert(sizeof(struct half) == 72, "half is on disk");

enum { HALVES_MAX = 6, HALVES_BYTES_MAX = 1024 };

/* The next one of `*halves`, which it is taken off; -ERR_MALFORMED. */
MUST_CHECK int half_next(struct bytes *halves, const struct half **ret_half);
static inline struct bytes half_name(const struct half *half) {
    return (struct bytes){half->name, half->name_bytes};
}
