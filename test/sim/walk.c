/* The contract is in walk.h. */
#include "walk.h"
#include <string.h>

enum { TRIES_MAX = 100000 };

void walk_begin(struct walk *walk, struct node *node, struct kv_key from, struct kv_key to) {
    walk->world = node->world;
    walk->node = node;
    kv_cursor_init(&walk->cursor, &from, &to);
}

/* The next row, waiting for those that are not in memory. A stop of the world would be an error of
 * its own: targets have their ticks. */
int walk_next(struct walk *walk) {
    struct node *node = walk->node;
    struct kv *kv = node->role == NODE_MDT       ? group_kv(node_group(node))
                    : node->role == NODE_MANAGER ? manager_kv(node_manager(node))
                                                 : ost_kv(node_ost(node));
    int r = -ERR_PENDING;

    for (int i = 0; r == -ERR_PENDING && i < TRIES_MAX; i++) {
        struct kv_cursor cursor = walk->cursor;
        struct bytes value;

        node_enter(walk->node);
        r = kv_next(kv, &cursor, &value);
        if (r == 0 || r == -ERR_PENDING) {
            walk->cursor = cursor; /* Who waits keeps it: it is behind rows that are deleted. */
        }
        if (r == 0) {
            walk->size = MIN(value.size, sizeof walk->value);
            memcpy(walk->value, value.data, walk->size);
        }
        node_leave(walk->node);
        if (r == -ERR_PENDING) {
            (void)sim_run_until(walk->world->sim, sim_now_ns(walk->world->sim) + NS_PER_MS, NULL,
                                NULL);
        }
    }
    return r;
}
