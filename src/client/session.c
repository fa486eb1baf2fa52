/* The session's step; the picture is in session.h. */
#include "client/session.h"
#include "client/client_internal.h"
#include "rpc/transport.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void session_step(struct actor *actor, struct message *first);

int session_init(struct session *session, struct shoal_client *client) {
    session->client = client;
    actor_init(&session->actor, "client session", session_step);
    return session_map_init(session);
}

void session_deinit(struct session *session) {
    map_follower_deinit(&session->maps);
}

static uint64_t session_now_ns(const struct session *session) {
    return env_now_ns(session->client->options.env);
}

/* A session that begins or ends waits for as long as its call may take. */
uint64_t session_patience_ns(const struct session *session) {
    return session->stage == SESSION_RUNNING ? session->client->options.request_timeout_ns : 0;
}

static void session_done(struct session *session, int result) {
    session->done(session->done_context, result);
}

void session_call_start(void *context, struct call *call) {
    struct session *session = context;
    const struct client_options *options = &session->client->options;

    call->header.log = session->stage == SESSION_FINDING ? LOG_MEMBER : LOG_MANAGER;
    call->origin = &session->actor;
    if (call->deadline_ns == 0) {
        call->deadline_ns = session_now_ns(session) + options->request_timeout_ns;
    }
    if (call->header.opcode == OP_MAP_GET || call->header.opcode == OP_MAP_CHANGES) {
        call->patience_ns = session_patience_ns(session);
    }
    call_start(options->rpc, call);
}

void session_call(struct session *session, struct call *call, uint16_t opcode,
                  void (*done)(struct call *call)) {
    call->header.opcode = opcode;
    call->done = done;
    call->context = session;
    session_call_start(session, call);
}

void client_session_fence(struct session *session, struct session_id id) {
    if (id.value == atomic_load(&session->id)) {
        atomic_store(&session->fenced, true);
    }
}

void session_begun(struct session *session, int result) {
    if (session->again.is_beginning) {
        again_begun(session, result);
        return;
    }
    session->stage = result ? SESSION_OVER : SESSION_RUNNING;
    session->start_result = result;
    if (!result || !session->renewing) {
        session_done(session, result);
    } else { /* Whoever is told may free what the call lies in. */
        call_cancel(&session->renewal);
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

    if (session->stage != SESSION_ATTACHING || session->stopping) {
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

void session_attach_root(struct session *session) {
    struct peer *root;
    int r = router_slot(&session->client->router, ino_slot(INO_ROOT), &root);

    session->stage = SESSION_ATTACHING;
    if (r == 0) {
        peer_mend(session, root, -ERR_UNKNOWN_SESSION);
    }
    client_session_attached(session, r);
}

struct bytes session_ticket(const struct session *session) {
    return (struct bytes){session->ticket, session->ticket_bytes};
}

static struct buffer ticket_space(struct session *session) {
    return (struct buffer){.data = session->ticket_space, .capacity = sizeof session->ticket_space};
}

static void ticket_take(struct session *session, const struct call *call) {
    if (call->bulk_in.size > 0 && call->bulk_in.size <= sizeof session->ticket) {
        memcpy(session->ticket, session->ticket_space, call->bulk_in.size);
        session->ticket_bytes = call->bulk_in.size;
    }
}

static struct bytes session_origin(const struct session *session) {
    const struct shoal_client *client = session->client;

    return (struct bytes){client->origin_told, client->origin_told_bytes};
}

static void session_stop(struct session *session);

static void begin_answered(struct call *call) {
    struct session *session = call->context;
    const struct client_options *options = &session->client->options;
    struct session_id id = {call->reply.session_begin.session};
    int r = call->result;

    call_abandon(call); /* An error may have kept its number, for a copy that never comes. */
    session->renewing = false;
    r = r ? r : rpc_session_set(options->rpc, id, options->incarnation);
    if (session->stopping && session->again.is_beginning) {
        session_begun(session, r);
        session_over(session);
        return;
    }
    if (r == 0) {
        atomic_store(&session->id, id.value);
    }
    if (session->stopping) {
        ticket_take(session, call);
        session_stop(session);
        return;
    }
    if (r) {
        session_begun(session, r);
        return;
    }
    session->renewed_ns = session_now_ns(session);
    session->ended_number = call->reply.session_begin.ended;
    session->starts = call->reply.session_begin.starts;
    ticket_take(session, call);
    session->stage = SESSION_MAPPING;
    session_map_ask(session);
}

/* Who stops waits for a begin as long as the manager is there: what it has begun is to be ended. */
static bool is_stopping(void *context) {
    return atomic_load(&((struct session *)context)->stop_ns) != 0;
}

void session_begin(struct session *session) {
    const struct client_options *options = &session->client->options;

    session->stage = SESSION_BEGINNING;
    session->renewing = true; /* Its call is the one that begins. */
    session->renewal = (struct call){0};
    session->renewal.request.session_begin = (struct session_begin_request){
        .node = options->node.value,
        .incarnation = options->incarnation,
        .origin = session_origin(session),
    };
    session->renewal.bulk_in = ticket_space(session);
    session->renewal.unwanted = is_stopping;
    session->renewal.unwanted_context = session;
    session_call(session, &session->renewal, OP_SESSION_BEGIN, begin_answered);
}

/* The one before may have failed as its session was evicted, which says nothing of the next. */
static void session_start(struct session *session) {
    atomic_store(&session->id, 0);
    atomic_store(&session->fenced, false);
    if (session->client->options.finds_manager && !router_map(&session->client->router)) {
        session->stage = SESSION_FINDING;
        session_map_ask(session);
    } else {
        session_begin(session);
    }
}

/* Calls of ours lie in our memory: whoever is told of the end may free it. */
void session_over(struct session *session) {
    if (session->ended && !map_follower_is_busy(&session->maps) && !session->renewing &&
        !session->asking_starts && !peers_are_busy(session) && session->floors_under_way == 0) {
        session->ended = false;
        session->stage = SESSION_OVER;
        session_done(session, session->end_result);
    }
}

static void end_answered(struct call *call) {
    struct session *session = call->context;

    assert(session->stage == SESSION_ENDING && !session->ended && !session->renewing);
    call_abandon(call);
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
    /* By a ticket whose key is gone from the manager's file it would end for its silence. */
    if (call->result == -ERR_FENCED || call->result == -ERR_UNKNOWN_SESSION ||
        call->result == -ERR_BAD_TICKET) {
        client_session_fence(session, client_session(session->client));
    }
    if (session->stopping) {
        session_stop(session);
        return;
    }
    if (session->stage == SESSION_OVER) {
        session_done(session, session->start_result);
        return;
    }
    if (session->stage != SESSION_RUNNING) {
        return;
    }
    if (call->result == 0 && call->reply.session_renew.map_version > map->version) {
        session_map_ask(session);
    }
    if (call->result == 0) {
        session_starts_told(session, call->reply.session_renew.starts);
    }
}

static void session_renew(struct session *session, uint64_t now_ns) {
    const struct client_options *options = &session->client->options;

    session->renewing = true;
    session->renewed_ns = now_ns;
    session->renewal = (struct call){0};
    session->renewal.request.session_renew = (struct session_renew_request){
        .session = atomic_load(&session->id),
        .incarnation = options->incarnation,
        .ticket = session_ticket(session),
        .files_user = atomic_load(&session->client->files_user),
        .requests_user = atomic_load(&session->client->requests_user),
        .origin = session_origin(session),
    };
    session->renewal.bulk_in = ticket_space(session);
    session_call(session, &session->renewal, OP_SESSION_RENEW, renewal_answered);
}

static void session_renew_in_time(struct session *session, uint64_t now_ns) {
    if (!session->renewing && now_ns - session->renewed_ns >= session->client->options.renew_ns) {
        session_renew(session, now_ns);
    }
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
    bool starts = session->stage == SESSION_MAPPING || session->stage == SESSION_ATTACHING;
    if (starts && !session->stopping) {
        session_renew_in_time(session, now_ns); /* The root's group may be away for long. */
    }
    if (session->stage != SESSION_RUNNING) {
        return;
    }
    router_reclaim(&session->client->router);
    peers_expire(session, result);
    session_map_expire(session, result);
    if (!list_is_empty(&session->map_waiting)) {
        session_map_ask(session);
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
        session_map_watch(session);
        session_renew_in_time(session, now_ns);
    }
}

static void errand_stalled(struct session *session, struct errand *errand) {
    assert(!list_contains(&errand->node));
    if (err_action(errand->call.result) == ERR_ACTION_REFRESH) {
        list_push_back(&session->map_waiting, &errand->node);
        session_map_ask(session);
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
        session->done = session->stop_done;
        session->done_context = session->stop_context;
        peers_cancel(session);
        map_follower_unwatch(&session->maps);
        session_starts_cancel(session);
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
