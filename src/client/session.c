/* The session's step; the picture is in session.h. */
#include "client/session.h"
#include "client/client_internal.h"
#include "rpc/transport.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A map's bytes are fewer than its struct; the room that is left is for maps of newer versions. */
enum { MAP_BYTES_MAX = sizeof(struct cluster_map) + 65536, RENEWALS_PER_DEADLINE = 5 };

static void session_step(struct actor *actor, struct message *first);
static void map_ask(struct session *session);

int session_init(struct session *session, struct shoal_client *client) {
    session->client = client;
    actor_init(&session->actor, "client session", session_step);
    list_init(&session->map_waiting);
    session->map_bytes = malloc(MAP_BYTES_MAX);
    return session->map_bytes ? 0 : -ERR_NO_MEMORY;
}

void session_deinit(struct session *session) {
    free(session->map_bytes);
    session->map_bytes = NULL;
}

static uint64_t session_now_ns(const struct session *session) {
    return env_now_ns(session->client->options.env);
}

static void session_done(struct session *session, int result) {
    session->done(session->done_context, result);
}

static void session_call(struct session *session, struct call *call, uint16_t opcode,
                         void (*done)(struct call *call)) {
    const struct client_options *options = &session->client->options;

    call->header.opcode = opcode;
    call->header.log = session->stage == SESSION_FINDING ? LOG_MEMBER : LOG_MANAGER;
    call->origin = &session->actor;
    call->done = done;
    call->context = session;
    call->deadline_ns = session_now_ns(session) + options->request_timeout_ns;
    call_start(options->rpc, call);
}

void client_session_fence(struct session *session, struct session_id id) {
    if (id.value == atomic_load(&session->id)) {
        atomic_store(&session->fenced, true);
    }
}

/* Of the start, or of a beginning in place of an evicted session. */
static void session_begun(struct session *session, int result) {
    if (session->again.is_beginning) {
        again_begun(session, result);
    } else {
        session->stage = result ? SESSION_OVER : SESSION_RUNNING;
        session_done(session, result);
    }
}

void session_stall(struct session *session, struct errand *errand) {
    errand->message.kind = SESSION_STALLED;
    errand->message.message_class = MESSAGE_RELEASE;
    actor_post(&session->actor, &errand->message);
}

void session_give_back(struct errand *errand, int result) {
    errand->call.result = result;
    errand->message.kind = SHARD_ERRAND;
    actor_post(&errand->shard->actor, &errand->message);
}

void client_session_attached(struct session *session, int result) {
    struct peer *root;

    if (session->stage != SESSION_ATTACHING) {
        return;
    }
    if (result == 0) {
        result = router_slot(&session->client->router, ino_slot(INO_ROOT), &root);
    }
    if (result == 0 && root->stage != PEER_ATTACHED) {
        return;
    }
    session->renewed_ns = session_now_ns(session);
    session_begun(session, result);
}

/* To the root's group; to another target when something is asked there for the first time, as it
 * may be away, and there may be many. */
static void session_attach_root(struct session *session) {
    struct peer *root;
    int r = router_slot(&session->client->router, ino_slot(INO_ROOT), &root);

    session->stage = SESSION_ATTACHING;
    if (r == 0) {
        peer_mend(session, root, -ERR_UNKNOWN_SESSION);
    }
    client_session_attached(session, r);
}

static int map_take(struct session *session) {
    const struct call *call = &session->mapping_call;
    struct bytes bytes = {call->bulk_in.data, call->bulk_in.size};
    struct route_map *map;
    int r;

    if (bytes.size == 0) {
        return 0; /* Ours is the newest. */
    }
    map = router_map_new();
    if (!map) {
        return -ERR_NO_MEMORY;
    }
    r = cluster_map_decode(bytes, &map->map);
    if (r == 0 && session->client->options.map_came) {
        session->client->options.map_came(session->client->options.map_context, &map->map);
    }
    r = r ? r : router_install(&session->client->router, map);
    if (r) {
        router_map_free(map);
    }
    return r;
}

/* Those that are lost, and were not: what is not on disk there is lost, and they are called no
 * more. What is under way there ends at a tick; what has stalled, with the call it waits for. */
static void lost_follow(struct session *session) {
    struct router *router = &session->client->router;
    const struct cluster_map *map = router_map(router);

    for (uint32_t i = 0; map && i < map->target_count; i++) {
        const struct map_target *target = &map->targets[i];
        struct peer *peer = target->state == TARGET_LOST ? router_peer(router, target->log) : NULL;

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

static void map_answered(struct call *call) {
    struct session *session = call->context;
    int r = call->result ? call->result : map_take(session);

    lost_follow(session);
    assert(session->mapping);
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
    }
    session_over(session);
}

static void map_ask(struct session *session) {
    const struct cluster_map *map = router_map(&session->client->router);

    if (session->mapping) {
        return;
    }
    session->mapping = true;
    session->mapping_call = (struct call){0};
    session->mapping_call.request.map_get.known_version = map ? map->version : 0;
    session->mapping_call.bulk_in =
        (struct buffer){.data = session->map_bytes, .capacity = MAP_BYTES_MAX};
    session_call(session, &session->mapping_call, OP_MAP_GET, map_answered);
}

struct bytes session_ticket(const struct session *session) {
    return (struct bytes){session->ticket, session->ticket_bytes};
}

static struct buffer ticket_space(struct session *session) {
    return (struct buffer){.data = session->ticket_space, .capacity = sizeof session->ticket_space};
}

/* The next renewal brings another one when this isn't the time. */
static void ticket_take(struct session *session, const struct call *call) {
    if (call->bulk_in.size > 0 && call->bulk_in.size <= sizeof session->ticket &&
        !peers_are_busy(session)) {
        memcpy(session->ticket, session->ticket_space, call->bulk_in.size);
        session->ticket_bytes = call->bulk_in.size;
    }
}

static void begin_answered(struct call *call) {
    struct session *session = call->context;
    const struct client_options *options = &session->client->options;
    struct session_id id = {call->reply.session_begin.session};
    int r = call->result;

    session->renewing = false;
    r = r ? r : rpc_session_set(options->rpc, id, options->incarnation);
    if (r || session->stopping) {
        session_begun(session, r);
        session_over(session);
        return;
    }
    atomic_store(&session->id, id.value);
    session->ended_number = call->reply.session_begin.ended;
    ticket_take(session, call);
    session->stage = SESSION_MAPPING;
    map_ask(session);
}

void session_begin(struct session *session) {
    const struct client_options *options = &session->client->options;

    session->stage = SESSION_BEGINNING;
    session->renewal = (struct call){0};
    session->renewal.request.session_begin = (struct session_begin_request){
        .node = options->node.value,
        .incarnation = options->incarnation,
        .origin = {(const uint8_t *)options->origin, strlen(options->origin)},
    };
    session->renewal.bulk_in = ticket_space(session);
    session_call(session, &session->renewal, OP_SESSION_BEGIN, begin_answered);
}

static void session_start(struct session *session) {
    if (session->client->options.finds_manager && !router_map(&session->client->router)) {
        session->stage = SESSION_FINDING;
        map_ask(session);
    } else {
        session_begin(session);
    }
}

/* Calls of ours lie in our memory: whoever is told of the end may free it. */
void session_over(struct session *session) {
    if (session->ended && !session->mapping && !session->renewing && !peers_are_busy(session) &&
        session->floors_under_way == 0) {
        session->ended = false;
        session->stage = SESSION_OVER;
        session_done(session, session->end_result);
    }
}

static void end_answered(struct call *call) {
    struct session *session = call->context;

    assert(session->stage == SESSION_ENDING && !session->ended && !session->renewing);
    session->ended = true;
    session->end_result = call->result;
    session_over(session);
}

/* One that has been evicted, or never began, has nothing to end. */
static void session_end(struct session *session) {
    uint64_t id = atomic_load(&session->id);

    if (session->renewing) {
        return; /* Its answer brings us back. */
    }
    if (id == 0 || atomic_load(&session->fenced)) {
        session->ended = true;
        session_over(session);
        return;
    }
    session->stage = SESSION_ENDING;
    session->renewal = (struct call){0};
    session->renewal.request.session_end.session = id;
    session->renewal.request.session_end.incarnation = session->client->options.incarnation;
    session->renewal.request.session_end.ticket = session_ticket(session);
    session_call(session, &session->renewal, OP_SESSION_END, end_answered);
}

/* Late closes are tried once more; those that find no room again are closed by the end. */
static void session_stop(struct session *session) {
    if (session->stage != SESSION_RUNNING || late_wake(session->client) == 0) {
        session_end(session);
    }
}

static void renewal_answered(struct call *call) {
    struct session *session = call->context;
    const struct cluster_map *map = router_map(&session->client->router);

    assert(session->renewing);
    session->renewing = false;
    if (call->result == 0) {
        ticket_take(session, call);
    }
    if (call->result == -ERR_FENCED || call->result == -ERR_UNKNOWN_SESSION) {
        client_session_fence(session, client_session(session->client));
    }
    if (session->stopping) {
        session_stop(session);
    } else if (call->result == 0 && call->reply.session_renew.map_version > map->version) {
        map_ask(session);
    }
}

static void session_renew(struct session *session, uint64_t now_ns) {
    const struct client_options *options = &session->client->options;

    session->renewing = true;
    session->renewed_ns = now_ns;
    session->renewal = (struct call){0};
    session->renewal.request.session_renew.session = atomic_load(&session->id);
    session->renewal.request.session_renew.incarnation = options->incarnation;
    session->renewal.request.session_renew.ticket = session_ticket(session);
    session->renewal.bulk_in = ticket_space(session);
    session_call(session, &session->renewal, OP_SESSION_RENEW, renewal_answered);
}

int session_stalled_over(const struct session *session, const struct errand *errand,
                         struct log_id log, int result) {
    if (result == 0 && session_now_ns(session) >= errand->call.deadline_ns) {
        return -ERR_TIMED_OUT;
    }
    if (result == 0 && rpc_is_away(session->client->options.rpc, log) &&
        call_is_unwanted(&errand->call)) {
        return -ERR_INTERRUPTED;
    }
    return result;
}

static void map_expire(struct session *session, int result) {
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

/* What ends errands that are stalled: before a stop is to go on, no request is in flight. */
static int stalled_end(const struct session *session, uint64_t now_ns) {
    if (atomic_load(&session->fenced)) {
        return -ERR_FENCED;
    }
    return session->stopping && now_ns - session->stop_ns >= LATE_STOP_NS ? -ERR_INTERRUPTED : 0;
}

static void session_tick(struct session *session) {
    uint64_t now_ns = session_now_ns(session);
    int result = stalled_end(session, now_ns);

    atomic_store_explicit(&session->tick_posted, false, memory_order_release);
    if (session->stage != SESSION_RUNNING) {
        return;
    }
    router_reclaim(&session->client->router);
    peers_expire(session, result);
    map_expire(session, result);
    if (!list_is_empty(&session->map_waiting)) {
        map_ask(session);
    }
    if (session->stopping) {
        session_stop(session);
        return;
    }
    if (now_ns - session->late_ns >= NS_PER_S) {
        session->late_ns = now_ns;
        (void)late_wake(session->client);
    }
    if (result == -ERR_FENCED) {
        again_tick(session);
    }
    if (result == 0) {
        floors_tell(session, now_ns);
    }
    if (!session->renewing && result == 0 &&
        now_ns - session->renewed_ns >= session->client->options.renew_ns) {
        session_renew(session, now_ns);
    }
}

static void errand_stalled(struct session *session, struct errand *errand) {
    assert(!list_contains(&errand->node));
    if (err_action(errand->call.result) == ERR_ACTION_REFRESH) {
        list_push_back(&session->map_waiting, &errand->node);
        map_ask(session);
    } else {
        peer_stall(session, errand);
    }
}

static void session_handle(struct session *session, struct message *message) {
    switch (message->kind) {
    case CALL_DONE_KIND:
        call_done_message(message);
        break;
    case SESSION_START:
        session_start(session);
        break;
    case SESSION_TICK:
        session_tick(session);
        break;
    case SESSION_STOP:
        session->stopping = true;
        peers_cancel(session);
        atomic_store_explicit(&session->stop_ns, session_now_ns(session), memory_order_release);
        session_stop(session);
        break;
    case SESSION_STALLED:
        errand_stalled(session, CONTAINER_OF(message, struct errand, message));
        break;
    case SESSION_PRESENTED:
        peer_presented(session, message);
        break;
    case SESSION_LET_GO:
        again_let_go(session);
        break;
    default:
        assert(false);
    }
}

static void session_step(struct actor *actor, struct message *first) {
    struct session *session = CONTAINER_OF(actor, struct session, actor);

    while (first) {
        struct message *message = first;

        first = message->next;
        session_handle(session, message);
    }
}
