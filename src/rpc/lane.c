/* One lane's life; the picture and the rules are in lane.h. */
#include "base/endian.h"
#include "env/env.h"
#include "rpc/frame.h"
#include "rpc/lane_share.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HELLO_VERSION = 1, HELLO_BYTES = 256, OUT_BYTES = 256 << 10, OUT_MESSAGES = 256 };
enum { REST_DOUBLINGS_MAX = 16 };

static void lane_enter(struct lane *lane, enum lane_state state) {
    if ((state == LANE_OPEN) != (lane->state == LANE_OPEN)) {
        lane_note_open(lane, state == LANE_OPEN);
    }
    lane->state = state;
    lane->since_ns = lane_now(lane);
}

static void lane_mark(struct lane *lane) {
    if (!lane->in_dirty) {
        lane->in_dirty = true;
        list_push_back(&lane->thread->dirty, &lane->dirty);
    }
}

static void count_one(_Atomic uint64_t *counter) {
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/* Calls of the thread come and go; others only read the number. */
static void lane_count(struct lane *lane, int change) {
    struct lane_thread *thread = lane->thread;
    uint64_t before = atomic_load_explicit(&thread->call_count, memory_order_relaxed);
    uint64_t after = before + (uint64_t)(int64_t)change;

    atomic_store_explicit(&thread->call_count, after, memory_order_relaxed);
    if (thread->waker.expect && (before == 0 || after == 0)) {
        thread->waker.expect(thread->waker.context, after > 0);
    }
}

static void lane_release(struct lane *lane, struct call *call) {
    list_remove(&call->rpc_node);
    if (awaited_contains(call)) {
        awaited_remove(&lane->awaited, call);
    }
    if (lane->receiving == call) {
        lane->receiving = NULL;
    }
    lane_count(lane, -1);
}

/* The call is over here. */
static void lane_answer(struct lane *lane, struct call *call, int result) {
    lane_release(lane, call);
    call->is_handed = false;
    rpc_answered(call->rpc, call, result);
}

/* What was sent is to be sent again, before what never was. */
static void lane_unsend(struct lane *lane) {
    struct list_node *node;

    while (!list_is_empty(&lane->sent)) {
        node = lane->sent.head.previous;
        list_remove(node);
        list_push_front(&lane->unsent, node);
    }
}

static void lane_drop(struct lane *lane, bool reset) {
    if (lane->connection) {
        atomic_fetch_sub_explicit(&lane->thread->open_count, 1, memory_order_relaxed);
        connection_free(TAKE_PTR(lane->connection), reset);
    }
    lane->receiving = NULL;
    lane->holds = false;
    lane_unsend(lane);
}

bool lane_is_used(const struct lane *lane) {
    return !list_is_empty(&lane->unsent) || !list_is_empty(&lane->sent);
}

/* What waits here goes by the lanes that there are. Its connection is gone, so no copy that is not
 * at work yet is read; of one that is, its number tells. */
static void lane_share(struct lane *lane) {
    struct lane_thread *sharer;
    struct list_node *node;

    while ((node = list_first(&lane->unsent)) && (sharer = lane_sharer(lane))) {
        struct call *call = CONTAINER_OF(node, struct call, rpc_node);

        lane_release(lane, call);
        lane_thread_hand(sharer, call);
    }
}

/* Nothing that waits here will be let in: each hears why, instead of waiting to its end. */
static void lane_refuse(struct lane *lane, int reason) {
    struct list_node *node;
    struct list refused;

    list_init(&refused);
    while ((node = list_pop_front(&lane->unsent))) {
        list_push_back(&refused, node);
    }
    while ((node = list_first(&refused))) {
        lane_answer(lane, CONTAINER_OF(node, struct call, rpc_node), reason);
    }
}

/* Since when nothing was heard of the peer, as far as this lane knows. */
static uint64_t unheard_since_ns(const struct lane *lane, int reason) {
    if (lane->state == LANE_JOINING) {
        return lane->since_ns;
    }
    return lane->state == LANE_OPEN && reason == -ERR_TIMED_OUT ? lane->heard_ns : lane_now(lane);
}

static void lane_rest(struct lane *lane, int reason) {
    const struct lanes_options *options = &lane->thread->lanes->options;
    uint64_t since_ns = unheard_since_ns(lane, reason);

    if (lane_is_used(lane)) {
        count_one(&lane->thread->lanes->broken_count);
    }
    bool is_revoked = reason == -ERR_REVOKED;
    bool is_news = is_revoked && atomic_load(&lane->peer->refusal) != reason;
    bool is_refused = lane->state == LANE_JOINING && err_action(reason) == ERR_ACTION_FAIL;
    if (is_refused) {
        atomic_fetch_add_explicit(&lane->peer->refusals, 1, memory_order_relaxed);
        atomic_store_explicit(&lane->peer->refusal, reason, memory_order_relaxed);
    }
    lane_drop(lane, lane_is_used(lane)); /* Its calls may go by another: no copy is read later. */
    lane->rest_ns =
        MIN(MAX(2 * lane->rest_ns, options->rest_ns), options->rest_ns * REST_DOUBLINGS_MAX);
    lane_enter(lane, LANE_RESTING);
    if (reason == -ERR_TOO_MANY_LANES) {
        lane_probe_end(lane);
        lane_share(lane);
        return;
    }
    if (is_refused && reason != -ERR_CLOSED) {
        lane_probe_end(lane); /* Somebody is there. */
    } else {
        lane_note_away(lane, since_ns);
    }
    const char *words =
        is_revoked ? "lets nobody in by this key" : "does not answer, and is tried again";
    bool is_said = !lane_is_used(lane) || lane_say_away(lane, words, reason);
    if (!is_said && is_news) {
        lane_say(lane, words, reason);
    }
    if (is_revoked) {
        lane_refuse(lane, reason);
    }
}

static void requests_send(struct lane *lane);
static bool lane_asks_plain(const struct lane *lane);

/* Messages. */

/* The call that a reply is for; NULL: it is late. */
static struct call *reply_call(const struct lane *lane, struct bytes head,
                               struct frame_reply *ret_frame, int *ret_result) {
    *ret_result = frame_decode_reply(head, ret_frame);
    return *ret_result < 0 ? NULL : awaited_find(&lane->awaited, ret_frame->id);
}

static void *lane_bulk_get(void *context, const struct connection_message *message,
                           size_t size_bytes) {
    struct lane *lane = context;
    struct frame_reply frame;
    struct call *call;
    int r;

    if (message->kind != CONNECTION_REPLY) {
        return NULL;
    }
    call = reply_call(lane, message->head, &frame, &r);
    if (!call || call->bulk_in.capacity < size_bytes) {
        return NULL;
    }
    lane->receiving = call;
    return call->bulk_in.data;
}

static void lane_bulk_put(void *context, void *bulk) {
    (void)context;
    (void)bulk; /* The caller's. */
}

static int reply_take(struct lane *lane, const struct connection_message *message) {
    struct frame_reply frame;
    int r;
    struct call *call = reply_call(lane, message->head, &frame, &r);

    if (!call) {
        return r;
    }
    if (!call->bulk_is_sent || frame.bulk_bytes != message->bulk.size ||
        (message->bulk.size > 0 && message->bulk.data != call->bulk_in.data)) {
        return -ERR_MALFORMED;
    }
    r = frame_apply_reply(&frame, call);
    if (r < 0) {
        return r;
    }
    call->bulk_in.size = message->bulk.size;
    lane->rest_ns = 0;
    lane_answer(lane, call, frame.result);
    return 0;
}

/* The answer was written between the greeting and now: in the middle, as far as one can tell. */
static int clock_check(struct lane *lane, uint64_t peer_wall_ns) {
    const struct lanes_options *options = &lane->thread->lanes->options;
    uint64_t half_ns = (lane_now(lane) - lane->since_ns) / 2;
    int64_t ahead_ns = (int64_t)(peer_wall_ns - (env_wall_ns(options->env) - half_ns));

    atomic_store_explicit(&lane->peer->clock_ahead_ns, ahead_ns, memory_order_relaxed);
    return options->clock_max_ns > 0 && (uint64_t)llabs(ahead_ns) > options->clock_max_ns + half_ns
               ? -ERR_CLOCK
               : 0;
}

static int welcome_take(struct lane *lane, struct bytes head) {
    const struct lane_identity *self = &lane->thread->lanes->options.self;
    static const uint8_t any[16];
    union reply_body body;
    uint8_t cluster[16];
    int r = wire_decode_reply(OP_HELLO, head, &body);

    if (r < 0 || lane->state != LANE_JOINING) {
        return r < 0 ? r : -ERR_MALFORMED;
    }
    if (body.hello.result == 0 || body.hello.result == -ERR_TOO_MANY_LANES) {
        lane_note_grant(lane, body.hello.lanes);
    }
    if (body.hello.result < 0) {
        return body.hello.result >= INT32_MIN ? (int)body.hello.result : -ERR_MALFORMED;
    }
    store_le64(cluster, body.hello.cluster_high);
    store_le64(cluster + 8, body.hello.cluster_low);
    if (memcmp(self->cluster_id, any, 16) != 0 && memcmp(self->cluster_id, cluster, 16) != 0) {
        return -ERR_OTHER_CLUSTER;
    }
    if (body.hello.plain && !lane_asks_plain(lane)) {
        return -ERR_OTHER_ENCRYPTION;
    }
    r = clock_check(lane, body.hello.wall_ns);
    if (r < 0) {
        return r;
    }
    r = body.hello.plain ? connection_go_plain(lane->connection) : 0;
    if (r < 0) {
        return r;
    }
    count_one(&lane->thread->lanes->connected_count);
    lane_note_welcome(lane);
    lane->attempts--; /* This address and this key are tried first when it breaks. */
    lane_enter(lane, LANE_OPEN);
    requests_send(lane);
    return 0;
}

static void lane_message(void *context, const struct connection_message *message) {
    struct lane *lane = context;
    int r = 0;

    lane->heard_ns = lane_now(lane);
    lane->pinged = false;
    lane_note_heard(lane);
    switch (message->kind) {
    case CONNECTION_WELCOME:
        r = welcome_take(lane, message->head);
        break;
    case CONNECTION_REPLY:
        r = lane->state == LANE_OPEN ? reply_take(lane, message) : -ERR_MALFORMED;
        break;
    case CONNECTION_PONG:
        break;
    default:
        r = -ERR_MALFORMED;
    }
    if (r < 0) {
        lane_rest(lane, r);
    }
}

static void lane_room(void *context) {
    requests_send(context);
}

static void lane_ended(void *context, int reason) {
    struct lane *lane = context;

    lane->refusal = connection_failure(lane->connection);
    lane_rest(lane, reason);
    lane->refusal = NULL;
}

static const struct connection_hooks lane_hooks = {
    .bulk_get = lane_bulk_get,
    .bulk_put = lane_bulk_put,
    .message = lane_message,
    .room = lane_room,
    .ended = lane_ended,
};

/* Sending. */

static void request_sent(void *context) {
    struct call *call = context;

    call->bulk_is_sent = true;
}

static int request_send(struct lane *lane, struct call *call) {
    struct connection_outgoing outgoing = {.kind = CONNECTION_REQUEST,
                                           .bulk_count = call->bulk_out_count,
                                           .sent = request_sent,
                                           .context = call};
    struct buffer head;
    bool is_again = false;
    uint64_t id;
    int r = connection_begin(lane->connection, frame_request_size(call), &head);

    if (r == 0) {
        is_again = awaited_contains(call);
        r = awaited_add(&lane->awaited, call, &id);
    }
    if (r == 0) {
        r = frame_encode_request(call, id, call_time_left_ns(call), &head);
    }
    if (r < 0) {
        return r;
    }
    if (is_again) {
        count_one(&lane->thread->lanes->again_count);
    }
    call->was_sent = true;
    call->bulk_is_sent = false;
    memcpy(outgoing.bulk, call->bulk_out, sizeof outgoing.bulk);
    connection_commit(lane->connection, &head, &outgoing);
    return 0;
}

/* Where all that leaves may wait nothing leaves yet: to send it alone would cost both sides a
 * wake-up. */
static void requests_send(struct lane *lane) {
    struct list_node *node;
    bool urgent = false;

    if (list_is_empty(&lane->sent)) {
        lane->heard_ns = lane_now(lane); /* Nothing was to be heard before. */
    }
    while (lane->state == LANE_OPEN && (node = list_first(&lane->unsent))) {
        struct call *call = CONTAINER_OF(node, struct call, rpc_node);
        int r = request_send(lane, call);

        if (r == -ERR_BUSY) {
            urgent = true;
            break;
        }
        if (r < 0) {
            lane_answer(lane, call, r);
            continue;
        }
        urgent = urgent || !call->may_wait;
        list_remove(node);
        list_push_back(&lane->sent, node);
    }
    lane->holds = !urgent;
    if (urgent) {
        lane_mark(lane);
    }
}

/* Whether it asks to go on without TLS. */
static bool lane_asks_plain(const struct lane *lane) {
    const struct lanes_options *options = &lane->thread->lanes->options;

    return lane->address->kind != ADDRESS_UNIX &&
           (options->encryption == LINK_PLAIN ||
            (options->encryption == LINK_ENCRYPTED && address_is_near(lane->address)));
}

static void hello_send(struct lane *lane) {
    const struct lanes *lanes = lane->thread->lanes;
    const struct lane_identity *self = &lanes->options.self;
    const struct connection_outgoing outgoing = {.kind = CONNECTION_HELLO};
    const struct address *address = lane->address;
    char dialled[ADDRESS_TEXT_BYTES] = "";

    if (lanes->options.encryption != LINK_PLAIN && address->kind != ADDRESS_UNIX &&
        address_is_near(address)) {
        address_format(address, dialled);
    }
    const union request_body body = {
        .hello = {.version_min = HELLO_VERSION,
                  .version_max = HELLO_VERSION,
                  .cluster_high = load_le64(self->cluster_id),
                  .cluster_low = load_le64(self->cluster_id + 8),
                  .node = self->node.value,
                  .receiver = atomic_load(&lane->peer->node),
                  .life_high = self->life[0],
                  .life_low = self->life[1],
                  .lane = lane->thread->index,
                  .number = lane->number,
                  .wall_ns = env_wall_ns(lanes->options.env),
                  .plain = lane_asks_plain(lane),
                  .dialled = {(const uint8_t *)dialled, strlen(dialled)}}};
    struct buffer head;
    int r = connection_begin(lane->connection, HELLO_BYTES, &head);

    assert(r == 0);
    r = wire_encode_request(OP_HELLO, &body, &head);
    assert(r == 0);
    connection_commit(lane->connection, &head, &outgoing);
    lane_mark(lane);
}

static struct tls_context *lane_tls(const struct lane *lane) {
    return lane->address->kind == ADDRESS_UNIX ? NULL : lane->thread->lanes->options.tls;
}

static void lane_join(struct lane *lane) {
    const struct lanes_options *options = &lane->thread->lanes->options;
    const struct lane_addresses *list =
        atomic_load_explicit(&lane->peer->addresses, memory_order_acquire);
    struct connection_options connection = {.env = options->env,
                                            .out_bytes = OUT_BYTES,
                                            .out_messages = OUT_MESSAGES,
                                            .hooks = &lane_hooks,
                                            .context = lane};
    uint64_t now_ns = lane_now(lane);
    int r;

    if (list->count == 0) {
        lane_rest(lane, -ERR_UNREACHABLE);
        return;
    }
    /* Each key at each address. */
    lane->address = &list->addresses[lane->attempts % list->count];
    connection.tls = lane_tls(lane);
    connection.tls_attempt = (uint32_t)(lane->attempts / list->count);
    lane->attempts++;
    lane->number = 1 + atomic_fetch_add(&lane->thread->lanes->numbers, 1);
    r = connection_dial(&connection, lane->address, now_ns + options->connect_ns,
                        &lane->connection);
    lane->heard_ns = now_ns;
    lane->pinged = false;
    if (r < 0) {
        lane_rest(lane, r);
        return;
    }
    atomic_fetch_add_explicit(&lane->thread->open_count, 1, memory_order_relaxed);
    lane_enter(lane, LANE_JOINING);
    hello_send(lane);
}

/* Without a connection, and none could be made. */
static bool lane_is_away(const struct lane *lane) {
    return lane->state != LANE_OPEN &&
           atomic_load_explicit(&lane->peer->said, memory_order_relaxed);
}

void lane_send(struct lane *lane, struct call *call) {
    if (call_has_waited(lane->peer, call, lane_now(lane))) {
        (void)lane_say_away(lane, "does not answer, and is tried again", 0);
        rpc_answered(call->rpc, call, -ERR_AWAY);
        return;
    }
    /* As it would at the next tick; but who has not tried since a rest tries first. */
    if (lane->state != LANE_IDLE && lane_is_away(lane) && call_is_unwanted(call)) {
        rpc_answered(call->rpc, call, -ERR_INTERRUPTED);
        return;
    }
    list_push_back(&lane->unsent, &call->rpc_node);
    lane_count(lane, 1);
    if (lane->state == LANE_OPEN) {
        lane->since_ns = lane_now(lane);
        requests_send(lane);
    } else if (lane->state == LANE_IDLE) {
        lane_join(lane);
    }
}

void lane_flush(struct lane *lane) {
    lane->in_dirty = false;
    lane->holds = false;
    if (lane->connection) {
        connection_flush(lane->connection);
    }
}

/* Times. */

/* A copy of a mutation may be on its way, or its answer into memory that is the caller's again, or
 * the connection has yet to send from there. */
static bool must_replace(const struct lane *lane, const struct call *call, bool in_sent) {
    return lane->connection && (lane->receiving == call || (in_sent && !call->bulk_is_sent) ||
                                (awaited_contains(call) && call->header.sequence > 0));
}

static int call_over(const struct lane *lane, struct call *call, uint64_t now_ns) {
    if (call_has_waited(lane->peer, call, now_ns)) {
        return -ERR_AWAY;
    }
    call_extend(lane, call);
    int r = call_given_up(call, now_ns);
    bool is_away = lane_is_away(lane) || lane_peer_is_away(lane);

    return r == 0 && is_away && call_is_unwanted(call) ? -ERR_INTERRUPTED : r;
}

/* Moves calls whose time is up: their callers, once told, may change both lists. True if the
 * connection must be replaced for one. */
static bool calls_take_over(struct lane *lane, struct list *list, struct list *over,
                            uint64_t now_ns) {
    bool replaces = false;

    for (struct list_node *node = list->head.next; node != &list->head;) {
        struct call *call = CONTAINER_OF(node, struct call, rpc_node);
        int r = call_over(lane, call, now_ns);

        node = node->next;
        if (r < 0) {
            replaces = replaces || must_replace(lane, call, list == &lane->sent);
            call->result = r;
            list_remove(&call->rpc_node);
            list_push_back(over, &call->rpc_node);
        }
    }
    return replaces;
}

static void lane_give_up(struct lane *lane, uint64_t now_ns) {
    struct list over;
    struct list_node *node;
    bool replaces;

    list_init(&over);
    replaces = calls_take_over(lane, &lane->sent, &over, now_ns);
    replaces |= calls_take_over(lane, &lane->unsent, &over, now_ns);
    if (replaces) {
        count_one(&lane->thread->lanes->replaced_count);
        lane_drop(lane, true); /* Before anybody hears of it. */
        lane_enter(lane, LANE_RESTING);
    }
    while ((node = list_first(&over))) {
        struct call *call = CONTAINER_OF(node, struct call, rpc_node);

        lane_answer(lane, call, call->result);
    }
    if (replaces && lane_is_used(lane)) {
        lane_join(lane);
    } else if (replaces) {
        lane_enter(lane, LANE_IDLE);
    }
}

static bool has_unwanted(const struct list *calls) {
    for (struct list_node *node = calls->head.next; node != &calls->head; node = node->next) {
        if (call_is_unwanted(CONTAINER_OF(node, struct call, rpc_node))) {
            return true;
        }
    }
    return false;
}

/* Two limits; one and a fifth where a caller would rather go. */
static bool lane_waited(const struct lane *lane, uint64_t waited_ns, uint64_t limit_ns) {
    return waited_ns >= 2 * limit_ns ||
           (waited_ns >= limit_ns + limit_ns / 5 &&
            (has_unwanted(&lane->sent) || has_unwanted(&lane->unsent)));
}

/* A part of an answer that comes slowly is heard, too: what is asked meanwhile stands behind it. */
static uint64_t lane_silence(const struct lane *lane, uint64_t now_ns) {
    return now_ns - MAX(lane->heard_ns, connection_heard_ns(lane->connection));
}

static void lane_ask(struct lane *lane, uint64_t now_ns) {
    const struct connection_outgoing ping = {.kind = CONNECTION_PING};
    uint64_t silent_ns = lane->thread->lanes->options.silent_ns;
    struct buffer head;

    if (lane_waited(lane, lane_silence(lane, now_ns), silent_ns)) {
        count_one(&lane->thread->lanes->silent_count);
        lane_drop(lane, true);
        lane_rest(lane, -ERR_TIMED_OUT);
    } else if (!lane->pinged && lane_silence(lane, now_ns) >= silent_ns &&
               connection_begin(lane->connection, 0, &head) == 0) {
        lane->pinged = true;
        connection_commit(lane->connection, &head, &ping);
        lane_mark(lane);
    }
}

/* After a rest: not where it would be refused, and there are others to go by. */
static void lane_try(struct lane *lane) {
    if (lane_is_surplus(lane)) {
        lane_share(lane);
    }
    if (lane_is_used(lane) || lane_probes(lane)) {
        lane_join(lane);
    } else {
        lane_enter(lane, LANE_IDLE);
    }
}

void lane_tick(struct lane *lane, uint64_t now_ns) {
    const struct lanes_options *options = &lane->thread->lanes->options;

    lane_give_up(lane, now_ns);
    now_ns = lane_now(lane); /* What has begun since then has not waited yet. */
    switch (lane->state) {
    case LANE_IDLE:
        if (lane_probes(lane)) {
            lane_join(lane);
        }
        break;
    case LANE_RESTING:
        if (!lane_is_used(lane) && !lane_probes(lane)) {
            lane_enter(lane, LANE_IDLE);
        } else if (now_ns - lane->since_ns >= lane->rest_ns) {
            lane_try(lane);
        }
        break;
    case LANE_JOINING:
        if (lane_waited(lane, now_ns - lane->since_ns, options->connect_ns)) {
            lane_rest(lane, -ERR_TIMED_OUT);
        }
        break;
    case LANE_OPEN:
        if (lane->holds) {
            lane_mark(lane);
        }
        if (!list_is_empty(&lane->sent)) {
            lane_ask(lane, now_ns);
        } else if (!lane_is_used(lane) && now_ns - lane->since_ns >= options->idle_ns) {
            lane_drop(lane, false);
            lane_enter(lane, LANE_IDLE);
        }
    }
    lane_note_calls(lane);
}

void lane_begin(struct lane *lane, struct lane_thread *thread, struct lane_peer *peer) {
    *lane = (struct lane){.thread = thread, .peer = peer};
    list_push_back(&thread->used, &lane->used);
    awaited_init(&lane->awaited);
    list_init(&lane->unsent);
    list_init(&lane->sent);
}

/* No copy may be read from here later than what its caller does next. */
void lane_finish(struct lane *lane) {
    struct lanes *lanes = lane->thread->lanes;
    struct list_node *node;

    lane_drop(lane, lane_is_used(lane));
    lane_enter(lane, LANE_IDLE);
    lane_probe_end(lane);
    while ((node = list_first(&lane->unsent))) {
        struct call *call = CONTAINER_OF(node, struct call, rpc_node);

        bool is_kept = lanes->options.keeps && atomic_load(&lanes->home) != lane->thread;
        if (!is_kept && !call->is_handed) {
            lane_answer(lane, call, -ERR_CLOSED);
            continue;
        }
        lane_release(lane, call);
        if (is_kept) {
            lanes_take_homeless(lanes, call);
        } else {
            lanes_hand_on(lane->thread, call);
        }
    }
    list_remove(&lane->dirty);
    list_remove(&lane->used);
    awaited_deinit(&lane->awaited);
    free(lane);
}
