/* Keys of mounts that are revoked: the map names their serials, and the sessions begun by them end.
 *
 *     asked --> revoke_calls --> applied to a copy of the map, with what nodes ask --> its rows
 *               flushed --> it is the map: the sessions are marked --> revoking_calls answered
 *
 * A session that is marked is evicted as soon as the log has room for that, also behind a restart,
 * as its row has the serial. */
#include "manager/manager_internal.h"
#include "manager/revoke.h"

static uint32_t sessions_of(const struct manager *manager, uint64_t serial) {
    const struct list *living = &manager->sessions.living;
    uint32_t count = 0;

    for (struct list_node *node = list_first(living); node; node = list_next(living, node)) {
        count += CONTAINER_OF(node, struct manager_session, living)->serial == serial;
    }
    return count;
}

static void revoke_answer(struct manager *manager, struct call *call, int result) {
    struct key_revoke_reply *reply = &call->reply.key_revoke;

    *reply = (struct key_revoke_reply){.map_version = manager->map->version};
    if (result == 0) {
        reply->sessions = sessions_of(manager, call->request.key_revoke.serial);
    }
    call_reply(call, result);
}

void manager_revoke(struct manager *manager, struct call *call) {
    uint64_t serial = call->request.key_revoke.serial;

    if (serial == 0 || cluster_map_is_revoked(manager->map, serial)) {
        revoke_answer(manager, call, serial == 0 ? -ERR_INVALID : 0);
    } else {
        list_push_back(&manager->revoke_calls, &call->server_node);
    }
}

bool manager_revokes_apply(struct manager *manager, struct cluster_map *map) {
    struct list_node *node;

    while ((node = list_pop_front(&manager->revoke_calls))) {
        struct call *call = CONTAINER_OF(node, struct call, server_node);
        int r = cluster_map_revoke(map, call->request.key_revoke.serial);

        if (r < 0) {
            revoke_answer(manager, call, r);
        } else {
            list_push_back(&manager->revoking_calls, node);
        }
    }
    return !list_is_empty(&manager->revoking_calls);
}

void manager_revokes_put_back(struct manager *manager, int result) {
    struct list_node *node;

    while ((node = list_pop_front(&manager->revoking_calls))) {
        if (result == -ERR_NO_SPACE) {
            revoke_answer(manager, CONTAINER_OF(node, struct call, server_node), result);
        } else {
            list_push_back(&manager->revoke_calls, node);
        }
    }
}

void manager_revoked_mark(struct manager *manager) {
    struct session_table *table = &manager->sessions;

    for (struct list_node *node = list_first(&table->living); node;
         node = list_next(&table->living, node)) {
        struct manager_session *session = CONTAINER_OF(node, struct manager_session, living);

        session->is_revoked =
            session->serial != 0 && cluster_map_is_revoked(manager->map, session->serial);
        if (session->is_revoked && session->stage == STAGE_LIVE) {
            session_move(session, &table->ending);
        }
    }
}

void manager_revokes_end(struct manager *manager) {
    struct list_node *node;

    while ((node = list_pop_front(&manager->revoking_calls))) {
        revoke_answer(manager, CONTAINER_OF(node, struct call, server_node), 0);
    }
}
