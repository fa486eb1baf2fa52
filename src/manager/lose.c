/* Targets that will not come back, which somebody has said.
 *
 *     asked --> refused: no such target, lost already, the last of its kind, the one that has the
 *         |               root, or its node is heard
 *         '--> lose_calls --> applied to a copy of the map, with what nodes ask, and a pool version
 *              without it --> its rows flushed --> it is the map: nobody calls the target any
 *              more --> losing_calls answered
 *
 * A target that is lost stays so: no message makes it anything else. */
#include "manager/lose.h"
#include "layout/map_lost.h"
#include "manager/heard.h"
#include "manager/slots.h"
#include "manager/spaces.h"

static void lose_answer(struct manager *manager, struct call *call, int result) {
    const struct target_id id = {call->request.target_lose.target};
    const struct map_target *target = cluster_map_target(manager->map, id);
    struct target_lose_reply *reply = &call->reply.target_lose;

    *reply = (struct target_lose_reply){.map_version = manager->map->version};
    if (target) {
        reply->node = target->node.value;
        reply->kind = target->kind;
        reply->is_known = target->kind == TARGET_MDT
                              ? manager_slots_inodes(manager, id, &reply->inode_count)
                              : manager_spaces_used(manager, target, &reply->used_bytes);
    }
    call_reply(call, result);
}

/* A daemon that speaks has its targets still. */
static int lose_check(const struct manager *manager, const struct cluster_map *map,
                      const struct target_lose_request *request) {
    const struct target_id id = {request->target};
    const struct map_target *target = cluster_map_target(map, id);

    if (target && target->kind == TARGET_MDT && !request->knows_metadata) {
        return -ERR_NOT_SUPPORTED; /* Of the version before: its verb would tell a false cost. */
    }
    int r = cluster_map_lose_check(map, id);
    if (r == 0 && manager_heard_is(manager, target->node)) {
        r = -ERR_IN_USE;
    }
    return r;
}

void manager_lose(struct manager *manager, struct call *call) {
    const struct target_lose_request *request = &call->request.target_lose;
    int r = lose_check(manager, manager->map, request);

    if (r < 0 || request->asks_only) {
        lose_answer(manager, call, r);
    } else {
        list_push_back(&manager->lose_calls, &call->server_node);
    }
}

bool manager_losses_apply(struct manager *manager, struct cluster_map *map) {
    struct list_node *node;

    while ((node = list_pop_front(&manager->lose_calls))) {
        struct call *call = CONTAINER_OF(node, struct call, server_node);
        const struct target_lose_request *request = &call->request.target_lose;
        int r = lose_check(manager, map, request);

        if (r == 0) {
            r = cluster_map_lose(map, (struct target_id){request->target});
        }
        if (r < 0) {
            lose_answer(manager, call, r);
        } else {
            list_push_back(&manager->losing_calls, node);
        }
    }
    return !list_is_empty(&manager->losing_calls);
}

void manager_losses_put_back(struct manager *manager, int result) {
    struct list_node *node;

    while ((node = list_pop_front(&manager->losing_calls))) {
        if (result == -ERR_NO_SPACE) {
            lose_answer(manager, CONTAINER_OF(node, struct call, server_node), result);
        } else {
            list_push_back(&manager->lose_calls, node);
        }
    }
}

void manager_losses_end(struct manager *manager) {
    struct list_node *node;

    manager_losses_follow(manager); /* Whoever asked may have given up. */
    while ((node = list_pop_front(&manager->losing_calls))) {
        lose_answer(manager, CONTAINER_OF(node, struct call, server_node), 0);
    }
}

void manager_losses_follow(struct manager *manager) {
    for (uint32_t i = 0; i < manager->map->target_count; i++) {
        rpc_log_lose(manager->options.rpc, cluster_map_lost_log(manager->map, i));
    }
}
