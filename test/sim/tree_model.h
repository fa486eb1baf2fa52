/* A small tree of names as a value, and what each operation makes of it.
 *
 *     entries[directory][name] = object      objects 1 .. 7: directories, 1 is the root
 *                                            objects 8 .. 15: files; 0: the name is free
 *
 * Of several errors that apply, any may be answered: POSIX leaves the order open.
 *
 * Memory: the caller's, plain bytes. */
#pragma once
#include "base/types.h"
#include "shoal/shoal.h"

enum {
    TREE_ROOT = 1,
    TREE_DIRECTORIES = 7,
    TREE_FILES = 8,
    TREE_OBJECTS = 1 + TREE_DIRECTORIES + TREE_FILES, /* 0 is none */
    TREE_NAMES = 3,
};

struct tree_state {
    uint8_t entries[1 + TREE_DIRECTORIES][TREE_NAMES];
};

struct tree_place {
    uint8_t directory;
    uint8_t name;
};

struct tree_operation {
    enum shoal_operation operation;
    uint32_t flags; /* of a rename */
    struct tree_place from;
    struct tree_place to; /* of a rename; of a link, its new name */
    uint8_t object;       /* that is made, or gets the link */
};

enum tree_error {
    TREE_NOT_FOUND = 1,
    TREE_STALE = 2, /* the inode itself is gone */
    TREE_EXISTS = 4,
    TREE_NOT_DIRECTORY = 8,
    TREE_IS_DIRECTORY = 16,
    TREE_NOT_EMPTY = 32,
    TREE_INVALID = 64,
};

/* Without padding, so that it can be compared as bytes. */
struct tree_outcome {
    uint8_t errors;   /* those that may be answered; 0: it succeeds */
    uint8_t object;   /* that was found or linked */
    uint8_t nlink;    /* of it then */
    uint8_t replaced; /* a name was taken from another object */
};

static inline bool tree_is_directory(uint8_t object) {
    return object >= TREE_ROOT && object <= TREE_DIRECTORIES;
}
void tree_apply(struct tree_state *state, const struct tree_operation *operation,
                struct tree_outcome *ret_outcome);
bool tree_has(const struct tree_state *state, uint8_t object);
/* The bit of an answer; 0: no answer of the tree's. */
uint8_t tree_error_of(int64_t result);
