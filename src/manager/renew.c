/* The number of the key by which capabilities are signed. It rises when somebody asks for that, by
 * one, and only when all members have told that they sign by the one of now. A node takes what is
 * signed by its own number or the one before, so none ever signs what another one refuses.
 *
 *     node_join{its number} --> told; a new node's targets are taken only with the number of now
 *     key_renew --> renew_calls --all have told the number of now--> applied to a copy of the map
 *         |                --> its rows flushed --> it is the map --> renewing_calls answered
 *         '--some have not, for as long as it may wait--> refused, with the first of them
 *
 * Renewals that come together share one rise. What nodes have told lies in memory only: each of
 * them tells it again within a second of the manager's start. One that is away holds renewals up,
 * and so does one of a version that tells no number; one that is lost does not. */
#include "manager/renew.h"
#include "base/bug.h"
#include "manager/heard.h"
#include <stdlib.h>

enum { NUMBER_FIRST = 1 };

struct manager_renewals {
    uint32_t told[MAP_NODES_MAX]; /* in the map's order, since this start; 0: nothing */
};

int manager_renewals_new(struct manager *manager) {
    manager->renewals = calloc(1, sizeof *manager->renewals);
    return manager->renewals ? 0 : -ERR_NO_MEMORY;
}

void manager_renewals_free(struct manager *manager) {
    free(TAKE_PTR(manager->renewals));
}

static uint32_t number_of(const struct cluster_map *map) {
    return MAX(map->capability_number, (uint32_t)NUMBER_FIRST);
}

/* Whoever has targets when the number rises is waited for. A new node may have slept meanwhile. */
int manager_renewals_note(struct manager *manager, const struct map_node *node,
                          const struct node_join_request *request) {
    uint32_t number = request->capability_number;

    manager->renewals->told[node - manager->map->nodes] = number;
    if (!manager->options.keys || number >= manager->map->capability_number || !request->ready ||
        manager_heard_has_targets(manager, node)) {
        return 0;
    }
    return number == 0 ? -ERR_TOO_OLD : -ERR_PENDING;
}

/* The first member that has not told the number of now; NULL: all have. */
static const struct map_node *who_lacks(const struct manager *manager) {
    const struct cluster_map *map = manager->map;

    for (uint32_t i = 0; i < map->node_count; i++) {
        if (manager_heard_is_member(manager, &map->nodes[i]) &&
            manager->renewals->told[i] < number_of(map) && !BUG(EARLY_NUMBER)) {
            return &map->nodes[i];
        }
    }
    return NULL;
}

static void renew_answer(struct manager *manager, struct call *call, int result) {
    const struct map_node *lacks = result == -ERR_NOT_TOLD ? who_lacks(manager) : NULL;

    call->reply.key_renew = (struct key_renew_reply){.map_version = manager->map->version,
                                                     .number = number_of(manager->map),
                                                     .node = lacks ? lacks->id.value : 0};
    call_reply(call, result);
}

void manager_renewals_take(struct manager *manager, struct call *call) {
    if (!manager->options.keys || number_of(manager->map) == UINT32_MAX) {
        renew_answer(manager, call, manager->options.keys ? -ERR_OVERFLOW : -ERR_INVALID);
        return;
    }
    call->started_ns = env_now_ns(manager->env);
    list_push_back(&manager->renew_calls, &call->server_node);
}

void manager_renewals_tick(struct manager *manager) {
    uint64_t now_ns = env_now_ns(manager->env);
    struct list_node *node;

    while (!manager_renewals_are_due(manager) && (node = list_first(&manager->renew_calls))) {
        struct call *call = CONTAINER_OF(node, struct call, server_node);

        if (now_ns - call->started_ns < manager->options.renew_wait_ns) {
            return;
        }
        list_remove(node);
        renew_answer(manager, call, -ERR_NOT_TOLD);
    }
}

bool manager_renewals_are_due(const struct manager *manager) {
    return !list_is_empty(&manager->renew_calls) && !who_lacks(manager);
}

bool manager_renewals_apply(struct manager *manager, struct cluster_map *map) {
    struct list_node *node;

    /* Who joins with this version has told the number of now, and is waited for from then on. */
    if (!manager_renewals_are_due(manager) || !list_is_empty(&manager->joining_calls)) {
        return false;
    }
    map->capability_number = number_of(map) + 1;
    while ((node = list_pop_front(&manager->renew_calls))) {
        list_push_back(&manager->renewing_calls, node);
    }
    return true;
}

void manager_renewals_put_back(struct manager *manager, int result) {
    struct list_node *node;

    while ((node = list_pop_front(&manager->renewing_calls))) {
        if (result == -ERR_NO_SPACE) {
            renew_answer(manager, CONTAINER_OF(node, struct call, server_node), result);
        } else {
            list_push_back(&manager->renew_calls, node);
        }
    }
}

void manager_renewals_end(struct manager *manager) {
    struct list_node *node;

    while ((node = list_pop_front(&manager->renewing_calls))) {
        renew_answer(manager, CONTAINER_OF(node, struct call, server_node), 0);
    }
}
