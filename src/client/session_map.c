/* The session's maps: fetched when they are needed, or when the manager says that there is a newer
 * one, and put to use.
 *
 *     map_wait --there is a newer one--> map_changes --applied to ours--> installed
 *                                             '--none, or of another map--> map_get, as a whole
 *
 * A map_wait that is not answered, or is refused, costs nothing: renewals tell the version, too. */
#include "client/client_internal.h"
#include "layout/map_change.h"
#include "layout/map_lost.h"
#include "rpc/transport.h"
#include <assert.h>
#include <stdlib.h>

/* A map's bytes are fewer than its struct; the room that is left is for maps of newer versions. */
enum { MAP_BYTES_MAX = sizeof(struct cluster_map) + 65536 };

int session_map_init(struct session *session) {
    list_init(&session->map_waiting);
    session->map_bytes = malloc(MAP_BYTES_MAX);
    return session->map_bytes ? 0 : -ERR_NO_MEMORY;
}

void session_map_deinit(struct session *session) {
    free(TAKE_PTR(session->map_bytes));
}

/* The map is ours to free, where it is not installed. */
static int map_install(struct session *session, struct route_map *map, int result) {
    const struct client_options *options = &session->client->options;

    if (result == 0 && options->map_came) {
        options->map_came(options->map_context, &map->map);
    }
    if (result == 0) {
        result = router_install(&session->client->router, map);
    }
    if (result < 0) {
        router_map_free(map);
    }
    return result;
}

static int map_take(struct session *session) {
    const struct call *call = &session->mapping_call;
    struct bytes bytes = {call->bulk_in.data, call->bulk_in.size};
    struct route_map *map;

    if (bytes.size == 0) {
        return 0; /* Ours is the newest. */
    }
    map = router_map_new();
    return map ? map_install(session, map, cluster_map_decode(bytes, &map->map)) : -ERR_NO_MEMORY;
}

/* -ERR_NOT_FOUND: it is to be fetched as a whole. */
static int changes_take(struct session *session) {
    const struct call *call = &session->mapping_call;
    const struct cluster_map *known = router_map(&session->client->router);
    struct bytes bytes = {call->bulk_in.data, call->bulk_in.size};
    struct route_map *map;

    if (bytes.size == 0) {
        return call->reply.map_changes.version > known->version ? -ERR_NOT_FOUND : 0;
    }
    map = router_map_new();
    if (!map) {
        return -ERR_NO_MEMORY;
    }
    map->map = *known;
    if (cluster_map_changes_apply(&map->map, bytes) < 0) {
        router_map_free(map);
        return -ERR_NOT_FOUND;
    }
    return map_install(session, map, 0);
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

static void map_answered(struct call *call);

static void map_ask_by(struct session *session, uint16_t opcode) {
    const struct cluster_map *map = router_map(&session->client->router);
    uint64_t known_version = map ? map->version : 0;
    size_t capacity = opcode == OP_MAP_CHANGES ? MAP_CHANGES_BYTES_MAX : MAP_BYTES_MAX;

    session->mapping_call = (struct call){0};
    if (opcode == OP_MAP_CHANGES) {
        session->mapping_call.request.map_changes.known_version = known_version;
    } else {
        session->mapping_call.request.map_get.known_version = known_version;
    }
    session->mapping_call.bulk_in =
        (struct buffer){.data = session->map_bytes, .capacity = capacity};
    session_call(session, &session->mapping_call, opcode, map_answered);
}

/* By a manager of the version before, which takes what it does not know for a member's. */
static bool is_unknown(const struct call *call) {
    return call->result == -ERR_NOT_SUPPORTED || call->result == -ERR_NOT_PERMITTED;
}

/* What the answer has brought is in use, or -ERR_NOT_FOUND: as a whole it may be. */
static int map_answer_take(struct session *session) {
    const struct call *call = &session->mapping_call;

    if (call->header.opcode == OP_MAP_CHANGES && is_unknown(call)) {
        return -ERR_NOT_FOUND;
    }
    if (call->result < 0) {
        return call->result;
    }
    return call->header.opcode == OP_MAP_CHANGES ? changes_take(session) : map_take(session);
}

static void map_answered(struct call *call) {
    struct session *session = call->context;
    int r = map_answer_take(session);

    assert(session->mapping);
    if (call->header.opcode == OP_MAP_CHANGES && r == -ERR_NOT_FOUND && !session->stopping) {
        map_ask_by(session, OP_MAP_GET);
        return;
    }
    lost_follow(session);
    session->mapping = false;
    bool finds = session->stage == SESSION_FINDING && !session->stopping;
    if ((finds || session->stage == SESSION_MAPPING) &&
        (r || !router_map(&session->client->router))) {
        session_begun(session, r ? r : -ERR_MALFORMED);
    } else if (finds) {
        session_begin(session);
    } else if (session->stage == SESSION_MAPPING) {
        session_attach_root(session);
    } else if (r == 0) {
        map_resume_waiting(session);
    } else if (r == -ERR_AWAY) {
        session_map_expire(session, r);
    }
    session_over(session);
}

void session_map_ask(struct session *session) {
    if (!session->mapping) {
        session->mapping = true;
        map_ask_by(session, router_map(&session->client->router) ? OP_MAP_CHANGES : OP_MAP_GET);
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

static void watch_answered(struct call *call) {
    struct session *session = call->context;
    const struct cluster_map *map = router_map(&session->client->router);
    uint64_t now_ns = env_now_ns(session->client->options.env);
    bool is_refused = call->result < 0 || call->reply.map_wait.is_full;

    session->watching = false;
    session->watch_ns = MAX(session->watch_ns, is_refused ? now_ns + MAP_WATCH_REFUSED_NS : now_ns);
    if (call->result == 0 && call->reply.map_wait.version > map->version &&
        session->stage == SESSION_RUNNING && !session->stopping) {
        session_map_ask(session);
    }
    session_over(session);
}

/* Versions that come within MAP_WATCH_AGAIN_NS are fetched together. */
void session_map_watch(struct session *session, uint64_t now_ns) {
    const struct client_options *options = &session->client->options;

    if (session->watching || session->mapping || now_ns < session->watch_ns) {
        return;
    }
    session->watching = true;
    session->watch_ns = now_ns + MAP_WATCH_AGAIN_NS;
    session->watch_call = (struct call){0};
    session->watch_call.request.map_wait = (struct map_wait_request){
        .known_version = router_map(&session->client->router)->version,
        .who = options->incarnation ^ (uint64_t)options->node.value << 40};
    session->watch_call.deadline_ns = now_ns + MAP_WATCH_NS;
    session_call(session, &session->watch_call, OP_MAP_WAIT, watch_answered);
}

void session_map_cancel(struct session *session) {
    if (session->watching) {
        call_cancel(&session->watch_call);
    }
}
