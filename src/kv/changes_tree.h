/* A generation of changes, shared by changes*.c only. */
#pragma once
#include "kv/changes_node.h"

struct changes {
    struct changes_arena arena;
    size_t row_count;
    size_t leaf_count;
    size_t inner_count;
    changes_ref root;
    unsigned levels; /* of inner nodes above the leaves */
};

enum { CHANGES_HEAD_BYTES = 128 };
static_assert(sizeof(struct changes) <= CHANGES_HEAD_BYTES, "the head fits its place");
