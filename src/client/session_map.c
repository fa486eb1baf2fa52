/* The session's maps: fetched when they are needed, or when the manager says that there is a newer
 * one (maps/map_follower.h), and put to use. */
#include "client/client_internal.h"
#include "layout/map_lost.h"

static const struct cluster_map *map_known(void *context) {
    const struct session *session = context;

    return router_map(&session->client->router);
}

static struct cluster_map *map_make(void *context) {
    struct route_map *map = router_map_new();

    (void)context;
    return map ? &map->map : NULL;
}

static int map_take(void *context, struct cluster_map *cluster_map, int result) {
    struct shoal_client *client = ((struct session *)context)->client;
    struct route_map *map = CONTAINER_OF(cluster_map, struct route_map, map);

    if (result == 0 && client->options.map_came) {
        client->options.map_came(client->options.map_context, cluster_map);
    }
    if (result == 0) {
        result = router_install(&client->router, map);
    }
    if (result < 0) {
        router_map_free(map);
    }
    return result;
}

/* Those that are lost, and were not: what is not on disk there is lost, and they are called no
 * more. What is under way there ends at a tick; what has stalled, with the call it waits for. */
static void lost_follow(struct session *session) {
    struct router *router = &session->client->router;
    const struct cluster_map *map = router_map(router);

    for (uint32_t i = 0; map && i < map->target_count; i++) {
        struct log_id log = cluster_map_lost_log(map, i);
        struct peer *peer = log.value != 0 ? router_peer(router, log) : NULL;

        if (peer && !atomic_load(&peer->is_lost)) {
            ledger_lose(&peer->ledger);
            atomic_store(&peer->is_lost, true);
            rpc_log_lose(session->client->options.rpc, peer->log);
        }
    }
}

/* Errands that were sent by an older map go on; others wait for the next answer. */
static void map_resume_waiting(struct session *session) {
    const struct cluster_map *map = router_map(&session->client->router);
    struct list_node *last = session->map_waiting.head.previous;
    struct list_node *node = NULL;

    while (node != last && (node = list_pop_front(&session->map_waiting)) != NULL) {
        struct errand *errand = CONTAINER_OF(node, struct errand, node);

        if (errand->map_version < map->version) {
            session_give_back(errand, 0);
        } else {
            list_push_back(&session->map_waiting, node);
        }
    }
}

void session_map_expire(struct session *session, int result) {
    struct list_node *node = list_first(&session->map_waiting);

    while (node) {
        struct errand *errand = CONTAINER_OF(node, struct errand, node);

        int r = session_stalled_over(session, errand, LOG_MANAGER, result);

        node = list_next(&session->map_waiting, node);
        if (r) {
            list_remove(&errand->node);
            session_give_back(errand, r);
        }
    }
}

/* An errand that waits for one is looked at by each answer; a start goes on by it, or ends. */
static void map_fetched(void *context, int result) {
    struct session *session = context;
    bool finds = session->stage == SESSION_FINDING && !session->stopping;
    bool starts = session->stage == SESSION_MAPPING && !session->stopping;

    lost_follow(session);
    if ((finds || starts) && (result || !map_known(session))) {
        session_begun(session, result ? result : -ERR_MALFORMED);
    } else if (finds) {
        session_begin(session);
    } else if (starts) {
        session_attach_root(session);
    } else if (result == 0) {
        map_resume_waiting(session);
    } else if (result == -ERR_AWAY) {
        session_map_expire(session, result);
    }
    session_over(session);
}

static void map_watched(void *context, uint64_t version) {
    struct session *session = context;

    if (version > map_known(session)->version && session->stage == SESSION_RUNNING &&
        !session->stopping) {
        session_map_ask(session);
    }
    session_over(session);
}

static const struct map_follower_hooks map_hooks = {.start = session_call_start,
                                                    .known = map_known,
                                                    .make = map_make,
                                                    .take = map_take,
                                                    .fetched = map_fetched,
                                                    .watched = map_watched};

int session_map_init(struct session *session) {
    list_init(&session->map_waiting);
    return map_follower_init(&session->maps, session->client->options.env, &map_hooks, session);
}

void session_map_ask(struct session *session) {
    map_follower_fetch(&session->maps);
}

void session_map_watch(struct session *session) {
    const struct client_options *options = &session->client->options;

    map_follower_watch(&session->maps, options->incarnation ^ (uint64_t)options->node.value << 40);
}
