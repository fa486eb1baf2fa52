/* A walk over the rows of a target that is up, as the world goes on: what is not in memory is
 * waited for. */
#pragma once
#include "kv/kv.h"
#include "world.h"

enum { WALK_VALUE_BYTES = 2048 };

struct walk {
    struct world *world;
    struct node *node;
    struct kv_cursor cursor;
    uint8_t value[WALK_VALUE_BYTES];
    size_t size;
};

/* Rows of [from, to) of the manager, a metadata or a storage target. */
void walk_begin(struct walk *walk, struct node *node, struct kv_key from, struct kv_key to);
/* The next one, in cursor.key and value; -ERR_NOT_FOUND behind the last. */
int walk_next(struct walk *walk);
