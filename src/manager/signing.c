/* By which members' key the cluster signs: a node that has a newer one must not sign by it before
 * all others have it, too, as they would take nothing of what it has signed.
 *
 *     node_join{names of its keys} --> noted --all have the newest of the manager's--> due
 *         --> in the next version of the map --> each node signs by it when it has that version
 *
 * A node that is away holds this up: its file may lack the key. One that is lost does not. A
 * manager whose own file lacks the key of the map takes its newest at once: it can't sign by the
 * other any more, and whoever takes keys away has seen to it that all have what is left. */
#include "manager/signing.h"
#include "manager/heard.h"
#include <stdlib.h>

struct manager_signing {
    bool has_newest[MAP_NODES_MAX]; /* in the map's order: told since this start */
    bool look;                      /* something has changed since all were looked through */
    bool is_due;
};

int manager_signing_new(struct manager *manager) {
    manager->signing = calloc(1, sizeof *manager->signing);
    if (!manager->signing) {
        return -ERR_NO_MEMORY;
    }
    manager->signing->look = true;
    return 0;
}

void manager_signing_free(struct manager *manager) {
    free(TAKE_PTR(manager->signing));
}

void manager_signing_note(struct manager *manager, const struct map_node *node,
                          const struct node_join_request *request) {
    struct manager_signing *signing = manager->signing;
    bool *has = &signing->has_newest[node - manager->map->nodes];

    if (manager->options.keys) {
        uint64_t newest = key_ring_newest(manager->options.keys).value;
        bool told = request->members_key == newest || request->members_key_older == newest;

        signing->look = signing->look || told != *has;
        *has = told;
    }
}

void manager_signing_map(struct manager *manager) {
    manager->signing->look = true;
}

static bool all_have_newest(const struct manager *manager) {
    for (uint32_t i = 0; i < manager->map->node_count; i++) {
        if (manager_heard_is_member(manager, &manager->map->nodes[i]) &&
            !manager->signing->has_newest[i]) {
            return false;
        }
    }
    return true;
}

static bool is_due(const struct manager *manager) {
    const struct key_ring *ring = manager->options.keys;
    const struct key_name now = {manager->map->signing_key};

    if (!ring || now.value == key_ring_newest(manager->options.keys).value) {
        return false;
    }
    return all_have_newest(manager) || (now.value != 0 && !key_ring_has(ring, now));
}

bool manager_signing_is_due(struct manager *manager) {
    struct manager_signing *signing = manager->signing;

    if (signing->look) {
        signing->look = false;
        signing->is_due = is_due(manager);
    }
    return signing->is_due;
}

bool manager_signing_apply(struct manager *manager, struct cluster_map *map) {
    if (!manager_signing_is_due(manager)) {
        return false;
    }
    map->signing_key = key_ring_newest(manager->options.keys).value;
    return true;
}
