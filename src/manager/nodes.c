/* Nodes that join: their numbers, their targets, their addresses.
 *
 *     asked --> join_calls --> applied to a copy of the map --> its rows flushed --> it is the map,
 *                                       joining_calls --------------------------> answered
 *
 * What comes while a version is being flushed makes the next one together, as does what is gathered
 * (gather.c). A node is known by its key, so it may ask as often as it likes: it gets the same
 * numbers, and what changes nothing makes no version. Revocations (revoke.c), full targets
 * (spaces.c), lost ones (lose.c), the key that signs (signing.c) and the number of capability keys
 * (renew.c) are of the same versions. */
#include "layout/map_lost.h"
#include "manager/gather.h"
#include "manager/heard.h"
#include "manager/lives.h"
#include "manager/lose.h"
#include "manager/map_changes.h"
#include "manager/map_waits.h"
#include "manager/manager_internal.h"
#include "manager/renew.h"
#include "manager/revoke.h"
#include "manager/signing.h"
#include "manager/slots.h"
#include "manager/spaces.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Of a node. One that leaves it to the manager has a metadata target while the cluster has fewer
 * than MDTS_ENOUGH. */
enum { MDTS_MAX = 8, OSTS_MAX = 64, MDTS_ENOUGH = 8 };
/* Of the map's room for pool versions: for targets that are declared lost, which needs one. */
enum {
    POOL_VERSIONS_KEPT = MAP_POOL_VERSIONS_MAX / 16,
    POOL_CHAINS_KEPT = MAP_POOL_CHAINS_MAX / 16
};
#define MDTS_BY_MANAGER UINT32_MAX

static struct map_node *node_of(struct cluster_map *map, const struct node_join_request *request) {
    for (uint32_t i = 0; i < map->node_count; i++) {
        struct map_node *node = &map->nodes[i];

        if (node->key[0] == request->key_high && node->key[1] == request->key_low) {
            return node;
        }
    }
    return NULL;
}

/* Of a request that was checked. */
static void address_copy(const struct node_join_request *request,
                         char address[ADDRESS_TEXT_BYTES]) {
    if (request->address.size > 0) {
        memcpy(address, request->address.data, request->address.size);
    }
    address[request->address.size] = '\0';
}

bool manager_address_is_told(const struct map_node *node, const struct node_join_request *request) {
    char address[ADDRESS_TEXT_BYTES];

    address_copy(request, address);
    return strcmp(node->address, address) == 0;
}

bool manager_node_has_targets(const struct cluster_map *map, const struct map_node *node) {
    return node->target_count == 0 ||
           cluster_map_target(map, (struct target_id){node->first_target}) != NULL;
}

static const struct map_node *node_heard(struct manager *manager,
                                         const struct node_join_request *request) {
    return manager_heard_node(manager, request->key_high, request->key_low);
}

/* Whether the map says all that the node does. */
static bool is_known(const struct manager *manager, const struct map_node *node,
                     const struct node_join_request *request) {
    return node && (!request->ready || (manager_address_is_told(node, request) &&
                                        manager_heard_has_targets(manager, node)));
}

/* Metadata targets that are not in this map yet: of nodes that have their numbers, and are on their
 * way. The manager's own map is the beginning of this one; who is new here has just asked. */
static uint32_t mdts_coming(const struct manager *manager, const struct cluster_map *map) {
    uint32_t count = 0;

    for (uint32_t i = 0; i < map->node_count; i++) {
        const struct map_node *node = &map->nodes[i];
        bool is_new = i >= manager->map->node_count;

        if (node->mdt_count > 0 &&
            (is_new || manager_heard_is_coming(manager, &manager->map->nodes[i])) &&
            !manager_node_has_targets(map, node)) {
            count += node->mdt_count;
        }
    }
    return count;
}

/* A node whose first start failed for good, behind its numbers, has none. One without a storage
 * target gets one in any case: it would be no node. */
static uint32_t mdts_for(const struct manager *manager, const struct cluster_map *map,
                         const struct node_join_request *request) {
    if (request->mdt_count != MDTS_BY_MANAGER) {
        return request->mdt_count;
    }
    uint32_t count = mdts_coming(manager, map);
    for (uint32_t i = 0; i < map->group_count; i++) {
        count += !cluster_map_group_is_lost(map, &map->groups[i]);
    }
    return count < MDTS_ENOUGH || request->target_count == 0 ? 1 : 0;
}

static uint32_t targets_for(const struct node_join_request *request, uint32_t mdt_count) {
    return request->target_count + (request->mdt_count == MDTS_BY_MANAGER ? mdt_count : 0);
}

/* Of these storage targets. */
static bool has_pools_for(const struct cluster_map *map, uint32_t count) {
    return count == 0 || (map->pool_count < MAP_POOL_VERSIONS_MAX - POOL_VERSIONS_KEPT &&
                          map->pool_chain_count + count <= MAP_POOL_CHAINS_MAX - POOL_CHAINS_KEPT);
}

/* Numbers that no node and no target ever had. */
static int node_add(const struct manager *manager, struct cluster_map *map,
                    const struct node_join_request *request) {
    struct map_node node = {.key = {request->key_high, request->key_low},
                            .mdt_count = mdts_for(manager, map, request)};

    node.target_count = targets_for(request, node.mdt_count);
    if (map->node_count == MAP_NODES_MAX ||
        node.target_count > MAP_TARGETS_MAX - map->target_count ||
        node.mdt_count > MAP_GROUPS_MAX - map->group_count ||
        !has_pools_for(map, node.target_count - node.mdt_count)) {
        return -ERR_NO_SPACE;
    }
    for (uint32_t i = 0; i < map->node_count; i++) {
        const struct map_node *other = &map->nodes[i];

        node.id.value = MAX(node.id.value, other->id.value);
        node.first_target = MAX(node.first_target, other->first_target + other->target_count);
    }
    for (uint32_t i = 0; i < map->target_count; i++) {
        node.first_target = MAX(node.first_target, map->targets[i].id.value + 1);
    }
    node.id.value++;
    map->nodes[map->node_count++] = node;
    return 0;
}

static int targets_add(struct cluster_map *map, const struct map_node *node) {
    uint32_t chains[OSTS_MAX];
    uint32_t chain_count = 0;
    int r = 0;

    for (uint32_t i = 0; i < node->target_count && r == 0; i++) {
        struct target_id target = {node->first_target + i};

        if (i < node->mdt_count) {
            r = cluster_map_add_mdt(map, node->id, target);
        } else {
            chains[chain_count++] = target.value;
            r = cluster_map_add_ost(map, node->id, target, cluster_map_first_log(map, target));
        }
    }
    return r < 0 || chain_count == 0 ? r : cluster_map_grow_pool(map, chains, chain_count);
}

static int join_apply(const struct manager *manager, struct cluster_map *map,
                      const struct node_join_request *request) {
    struct map_node *node = node_of(map, request);

    if (!node) {
        /* One that says it has targets, and is not known, is another cluster's. */
        return request->ready ? -ERR_OTHER_CLUSTER : node_add(manager, map, request);
    }
    if (node->target_count != targets_for(request, node->mdt_count) ||
        (request->mdt_count != MDTS_BY_MANAGER && node->mdt_count != request->mdt_count)) {
        return -ERR_INVALID;
    }
    if (!request->ready) {
        return 0;
    }
    address_copy(request, node->address);
    return manager_node_has_targets(map, node) ? 0 : targets_add(map, node);
}

static int join_check(const struct node_join_request *request) {
    uint32_t mdts = request->mdt_count == MDTS_BY_MANAGER ? 0 : request->mdt_count;
    char text[ADDRESS_TEXT_BYTES];
    struct address address;

    if ((request->key_high | request->key_low) == 0 || mdts > MDTS_MAX ||
        mdts > request->target_count || request->target_count - mdts > OSTS_MAX ||
        request->address.size >= sizeof text) {
        return -ERR_INVALID;
    }
    address_copy(request, text);
    int r = text[0] == '\0' ? 0 : address_parse(text, &address);
    if (r == 0) {
        r = manager_lives_check(request);
    }
    return r < 0 ? r : manager_spaces_check(request);
}

static void join_answer(struct manager *manager, struct call *call, int result) {
    const struct map_node *node = node_heard(manager, &call->request.node_join);
    struct node_join_reply *reply = &call->reply.node_join;

    reply->map_version = manager->map->version;
    if (node) {
        reply->node = node->id.value;
        reply->first_target = node->first_target;
        reply->mdt_count = node->mdt_count;
    }
    call_reply(call, result);
}

/* Also by the word of a node that is not in this map: it has targets, and its HELLO named this
 * cluster, so what named it there is newer. */
static int map_is_old(struct manager *manager, const struct node_join_request *request,
                      const struct map_node *node) {
    char address[ADDRESS_TEXT_BYTES];
    char who[sizeof address + 48];

    if (node) {
        snprintf(who, sizeof who, "node %" PRIu32, node->id.value);
    } else {
        address_copy(request, address);
        snprintf(who, sizeof who, "a node at %s, which it does not know,", address);
    }
    return manager_map_is_old(manager, request->map_version, who);
}

void manager_join(struct manager *manager, struct call *call) {
    const struct node_join_request *request = &call->request.node_join;
    int r = join_check(request);
    const struct map_node *node = r < 0 ? NULL : node_heard(manager, request);

    if (r == 0 && (node || request->ready)) {
        r = map_is_old(manager, request, node);
        if (r < 0) {
            call_reply(call, r);
            return;
        }
    }
    if (node && r == 0) {
        r = manager_lives_look(manager, node, call);
        if (r == -ERR_PENDING) {
            return;
        }
    }
    if (node && r == 0) {
        manager_heard_note(manager, node);
        manager_signing_note(manager, node, request);
        r = manager_renewals_note(manager, node, request);
    }
    if (r == -ERR_TWO_LIVES || r == -ERR_PENDING) {
        join_answer(manager, call, 0);
        return;
    }
    if (r < 0 || is_known(manager, node, request)) {
        if (r == 0 && request->spaces.size > 0) {
            manager_spaces_note(manager, node->id, request);
        }
        join_answer(manager, call, r);
        return;
    }
    manager_gather_join(manager, call, node);
}

static void map_flushed(struct kv_waiter *waiter, int result) {
    struct manager *manager = CONTAINER_OF(waiter, struct manager, map_waiter);

    manager->map_waiting = false;
    if (result < 0) {
        manager->failure = result;
    }
}

/* A copy with all that was asked for, and slots that are given; who asks for what can't be is told
 * so. */
static struct cluster_map *map_changed(struct manager *manager) {
    struct cluster_map *next = malloc(sizeof *next);
    struct cluster_map *before = next ? malloc(sizeof *before) : NULL;
    struct list_node *node;

    if (!before) {
        free(next);
        return NULL;
    }
    cluster_map_copy(next, manager->map);
    while ((node = list_pop_front(&manager->join_calls))) {
        struct call *call = CONTAINER_OF(node, struct call, server_node);

        cluster_map_copy(before, next);
        int r = join_apply(manager, next, &call->request.node_join);
        if (r < 0) {
            cluster_map_copy(next, before);
            join_answer(manager, call, r);
        } else {
            list_push_back(&manager->joining_calls, &call->server_node);
        }
    }
    free(before);
    manager_slots_apply(manager, next);
    next->version++;
    return next;
}

/* Where there is no room now they wait on, in front of who comes later. A map that is too large
 * with another pool version is tried without. */
static void joins_begin(struct manager *manager) {
    struct cluster_map *next = map_changed(manager);
    bool pools = next && manager_spaces_apply(manager, next);
    bool revokes = next && manager_revokes_apply(manager, next);
    bool loses = next && manager_losses_apply(manager, next);
    bool signs = next && manager_signing_apply(manager, next);
    bool renews = next && manager_renewals_apply(manager, next);
    struct list_node *node;
    int r = next ? 0 : -ERR_NO_MEMORY;

    if (r == 0 && !pools && !revokes && !loses && !signs && !renews &&
        list_is_empty(&manager->joining_calls) && !manager_slots_are_given(manager)) {
        free(next);
        return;
    }
    manager->map_waiter.done = map_flushed;
    if (r == 0) {
        r = manager_map_store(manager, next, &manager->map_waiter);
    }
    if (r == 0) {
        manager->map_waiting = true;
        manager->next_map = next;
        return;
    }
    free(next);
    r = r == -ERR_NO_SPACE && pools ? -ERR_BUSY : r;
    manager_revokes_put_back(manager, r);
    manager_losses_put_back(manager, r);
    manager_renewals_put_back(manager, r);
    while (r == -ERR_NO_SPACE && (node = list_pop_front(&manager->joining_calls))) {
        join_answer(manager, CONTAINER_OF(node, struct call, server_node), r);
    }
    while ((node = list_first(&manager->joining_calls))) {
        list_remove(node);
        list_push_back(&manager->join_calls, node);
    }
}

static void joins_end(struct manager *manager) {
    bool revokes = manager->next_map->revoked_count > manager->map->revoked_count;
    struct list_node *node;

    manager_map_changes_note(manager, manager->next_map);
    free(manager->map);
    manager->map = TAKE_PTR(manager->next_map);
    manager_map_waits_answer(manager);
    manager_heard_map(manager);
    manager_signing_map(manager);
    manager_slots_recorded(manager);
    if (revokes) { /* Whoever asked may have given up. */
        manager_revoked_mark(manager);
    }
    manager_revokes_end(manager);
    manager_losses_end(manager);
    manager_renewals_end(manager);
    while ((node = list_pop_front(&manager->joining_calls))) {
        join_answer(manager, CONTAINER_OF(node, struct call, server_node), 0);
    }
}

void manager_nodes_step(struct manager *manager) {
    if (manager->next_map && !manager->map_waiting) {
        joins_end(manager);
    }
    bool joins = manager_gather_is_due(manager);
    if (!manager->next_map &&
        (joins || !list_is_empty(&manager->revoke_calls) || !list_is_empty(&manager->lose_calls) ||
         manager_slots_are_given(manager) || manager_spaces_are_due(manager) ||
         manager_signing_is_due(manager) || manager_renewals_are_due(manager))) {
        joins_begin(manager);
        if (joins && manager->next_map) {
            manager_gather_version(manager);
        }
    }
}
