/* The client's side of calls; the contract is in call.h.
 *
 *     reliable transport:   call_start -> transport -> rpc_answered -> origin
 *                                  \                  / BUSY
 *                                   window full     keeper: waits for its next try
 *     any other:            call_start -> keeper -> transport -> rpc_answered -> keeper -> origin
 *
 * The keeper is an actor: it has the list of the calls that a tick may have to do something about.
 * Where nothing gets lost, a call on its way needs no tick, so it never meets the keeper. One that
 * finds its log's window full waits in another list of it for a number; who ends a mutation that
 * was awaited posts KEEPER_ROOM, and those who wait come before those who come later.
 *
 * A session's table is entered before it is used: a call counts itself in, then looks whether the
 * table is still the current one. So one that is not current and has no calls is nobody's. */
#include "env/env.h"
#include "rpc/call_number.h"
#include "rpc/call_origin.h"
#include "rpc/lost_logs.h"
#include "rpc/sequence.h"
#include "rpc/transport.h"
#include <assert.h>
#include <stdlib.h>

enum keeper_message { KEEPER_TICK = 1, KEEPER_SEND, KEEPER_DELAY, KEEPER_ANSWERED, KEEPER_ROOM };

/* DELAYED: not with the transport. Both are in a list of the keeper's unless the transport is
 * reliable; then only the delayed are. */
enum call_stage { CALL_IDLE, CALL_SENT, CALL_DELAYED };

enum { RESEND_DOUBLINGS_MAX = 3 };

struct rpc {
    struct actor keeper;
    struct rpc_options options;
    struct lost_logs *lost;
    struct list waiting;  /* the keeper's */
    struct list roomless; /* likewise: calls that wait for their number */
    _Atomic uint64_t window_waits;
    _Atomic(struct rpc_session *) session;
    _Atomic(struct rpc_session *) sessions; /* all there are, linked by next */
    struct message tick;
    atomic_bool tick_posted;
    struct message room;
    atomic_bool room_posted;
};

static void keeper_step(struct actor *actor, struct message *first);

static struct rpc_session *session_enter(struct rpc *rpc) {
    for (;;) {
        struct rpc_session *session = atomic_load(&rpc->session);

        atomic_fetch_add(&session->call_count, 1);
        if (session == atomic_load(&rpc->session)) {
            return session;
        }
        atomic_fetch_sub(&session->call_count, 1);
    }
}

static void session_leave(struct rpc_session *session) {
    atomic_fetch_sub(&session->call_count, 1);
}

static void room_post(struct rpc *rpc) {
    if (!atomic_exchange(&rpc->room_posted, true)) {
        rpc->room.kind = KEEPER_ROOM;
        actor_post(&rpc->keeper, &rpc->room);
    }
}

static void sequence_end(struct call *call) {
    if (rpc_link_end(call->link, call->header.sequence)) {
        room_post(call->rpc);
    }
    call->header.sequence = 0;
}

static void keeper_post(struct call *call, enum keeper_message kind) {
    call->message.kind = (uint16_t)kind;
    actor_post(&call->rpc->keeper, &call->message);
}

static void origin_post(struct call *call, int result) {
    call->result = result;
    call->stage = CALL_IDLE;
    call->message.kind = CALL_DONE_KIND;
    actor_post(call->origin, &call->message);
}

static bool keeps_sequence(const struct call *call, int result) {
    enum err_action action;

    if (result >= 0 || call->header.sequence == 0) {
        return false;
    }
    action = err_action(result);
    return action == ERR_ACTION_REFRESH || action == ERR_ACTION_REOPEN ||
           (call->keeps_number && call_is_unanswered(result));
}

static void call_finish(struct call *call, int result) {
    if (!keeps_sequence(call, result)) {
        if (call->header.sequence > 0) {
            sequence_end(call);
        }
        session_leave(call->link->session);
    }
    origin_post(call, result);
}

static bool needs_number(const struct call *call) {
    return call->header.sequence == 0 && wire_is_mutation(call->header.opcode);
}

/* True: it has its number, or needs none. Those who wait already come first. */
static bool number_draw(struct call *call) {
    if (needs_number(call) && atomic_load(&call->link->waiting_count) == 0) {
        call->header.sequence = rpc_link_draw(call->link);
    }
    return !needs_number(call);
}

/* Hands the call, which has its number, to the transport. It may be gone afterwards. */
static void call_send(struct call *call) {
    struct rpc *rpc = call->rpc;

    assert(!needs_number(call));
    call->header.floor = rpc_link_floor(call->link);
    call->header.origin = call->header.log;
    call->stage = CALL_SENT;
    call->attempts++;
    if (!rpc->options.transport->reliable) {
        call->sent_ns = env_now_ns(rpc->options.env);
    }
    rpc->options.transport->send(rpc->options.transport_context, call);
}

/* Finds the call's link, and keeps the sequence of an earlier start if that was for it. */
static bool call_link(struct call *call) {
    struct rpc_session *session = session_enter(call->rpc);
    struct rpc_link *link = rpc_session_link(session, call->header.log);

    if (call->link && call->header.sequence > 0) {
        if (call->link == link) {
            session_leave(session); /* It has been counted in all the time. */
        } else {
            call_abandon(call);
        }
    } else {
        call->header.sequence = 0;
    }
    if (!link) {
        session_leave(session);
        return false;
    }
    call->link = link;
    call->header.session = session->id;
    call->header.incarnation = session->incarnation;
    return true;
}

void call_start(struct rpc *rpc, struct call *call) {
    assert(call->stage == CALL_IDLE && call->origin && call->done);
    call->rpc = rpc;
    call->attempts = 0;
    atomic_store_explicit(&call->answered, false, memory_order_relaxed);
    atomic_store_explicit(&call->cancelled, false, memory_order_relaxed);
    call->header.message_class = wire_class(call->header.opcode);
    call->message.message_class = call->header.message_class;
    if (!call_link(call)) {
        origin_post(call, -ERR_NO_MEMORY);
        return;
    }
    call->stage = CALL_DELAYED;
    if (lost_logs_have(rpc->lost, call->header.log)) {
        call_finish(call, -ERR_TARGET_LOST);
    } else if (rpc->options.transport->reliable && number_draw(call)) {
        call_send(call);
    } else {
        keeper_post(call, KEEPER_SEND);
    }
}

void call_abandon(struct call *call) {
    assert(call->stage == CALL_IDLE);
    if (call->link && call->header.sequence > 0) {
        sequence_end(call);
        session_leave(call->link->session);
    }
}

struct call_number call_number_take(struct call *call) {
    struct call_number number = {0};

    assert(call->stage == CALL_IDLE);
    if (call->link && call->header.sequence > 0) {
        number = (struct call_number){call->rpc, call->link, call->header.sequence};
        call->header.sequence = 0;
    }
    return number;
}

void call_number_give(struct call *call, struct call_number *number) {
    assert(call->stage == CALL_IDLE && !call->link && call->header.sequence == 0);
    call->rpc = number->rpc;
    call->link = number->link;
    call->header.sequence = number->sequence;
    *number = (struct call_number){0};
}

void call_number_drop(struct call_number *number) {
    if (number->sequence > 0) {
        if (rpc_link_end(number->link, number->sequence)) {
            room_post(number->rpc);
        }
        session_leave(number->link->session);
    }
    *number = (struct call_number){0};
}

void call_cancel(struct call *call) {
    atomic_store_explicit(&call->cancelled, true, memory_order_relaxed);
}

void call_reply(struct call *call, int result) {
    assert(result <= 0);
    call->result = result;
    call->reply_to(call);
}

uint64_t call_time_left_ns(const struct call *call) {
    uint64_t now_ns = env_now_ns(call->rpc->options.env);

    if (call->deadline_ns == 0) {
        return UINT64_MAX;
    }
    return call->deadline_ns > now_ns ? call->deadline_ns - now_ns : 0;
}

void call_discard(struct call *call) {
    call->result = CALL_DISCARDED;
    call->reply_to(call);
}

void call_done_message(struct message *message) {
    struct call *call = CONTAINER_OF(message, struct call, message);

    assert(message->kind == CALL_DONE_KIND);
    call->done(call);
}

/* done may free the call, and with it the message. */
void call_origin_step(struct actor *actor, struct message *first) {
    (void)actor;
    while (first) {
        struct message *next = first->next;

        call_done_message(first);
        first = next;
    }
}

void rpc_answered(struct rpc *rpc, struct call *call, int result) {
    if (!rpc->options.transport->reliable) {
        call->result = result;
        atomic_store_explicit(&call->answered, true, memory_order_release);
        keeper_post(call, KEEPER_ANSWERED);
    } else if (result == -ERR_BUSY) {
        keeper_post(call, KEEPER_DELAY);
    } else {
        call_finish(call, result);
    }
}

/* The rest is the keeper's. */

static void call_delay(struct rpc *rpc, struct call *call) {
    call->stage = CALL_DELAYED;
    call->sent_ns = env_now_ns(rpc->options.env);
}

static void keeper_answered(struct rpc *rpc, struct call *call) {
    atomic_store_explicit(&call->answered, false, memory_order_relaxed);
    if (call->result == -ERR_BUSY) {
        call_delay(rpc, call);
    } else {
        list_remove(&call->rpc_node);
        call_finish(call, call->result);
    }
}

static bool is_answered(struct call *call) {
    return atomic_load_explicit(&call->answered, memory_order_acquire);
}

/* Ends the call early, unless its answer came first: then that message of it is on its way. */
static void call_give_up(struct rpc *rpc, struct call *call, int result) {
    if (call->stage == CALL_SENT) {
        rpc->options.transport->forget(rpc->options.transport_context, call);
        if (is_answered(call)) {
            return;
        }
    }
    list_remove(&call->rpc_node);
    call_finish(call, result);
}

/* The call has its number, and is in no list. */
static void call_go(struct rpc *rpc, struct call *call) {
    if (!rpc->options.transport->reliable) {
        list_push_back(&rpc->waiting, &call->rpc_node);
    }
    call_send(call);
}

/* Counted before it tries once more: see sequence.h. */
static void keeper_send(struct rpc *rpc, struct call *call) {
    struct rpc_link *link = call->link;

    if (needs_number(call)) {
        if (atomic_fetch_add(&link->waiting_count, 1) == 0) {
            call->header.sequence = rpc_link_draw(link);
        }
        if (needs_number(call)) {
            atomic_fetch_add_explicit(&rpc->window_waits, 1, memory_order_relaxed);
            list_push_back(&rpc->roomless, &call->rpc_node);
            return;
        }
        atomic_fetch_sub(&link->waiting_count, 1);
    }
    call_go(rpc, call);
}

static void keeper_room(struct rpc *rpc) {
    struct list_node *node = list_first(&rpc->roomless);

    while (node) {
        struct call *call = CONTAINER_OF(node, struct call, rpc_node);

        node = list_next(&rpc->roomless, node);
        call->header.sequence = rpc_link_draw(call->link);
        if (call->header.sequence > 0) {
            atomic_fetch_sub(&call->link->waiting_count, 1);
            list_remove(&call->rpc_node);
            call_go(rpc, call);
        }
    }
}

static void call_resend(struct rpc *rpc, struct call *call) {
    /* Out of the list first: the call may have ended when the transport is back. */
    if (rpc->options.transport->reliable) {
        list_remove(&call->rpc_node);
    }
    call_send(call);
}

static uint64_t resend_ns(const struct rpc *rpc, const struct call *call) {
    uint32_t doublings = call->attempts > 1 ? call->attempts - 1 : 0;

    return rpc->options.resend_ns << MIN(doublings, (uint32_t)RESEND_DOUBLINGS_MAX);
}

int call_given_up(const struct call *call, uint64_t now_ns) {
    if (atomic_load_explicit(&call->cancelled, memory_order_relaxed)) {
        return -ERR_INTERRUPTED;
    }
    if (call->rpc && lost_logs_have(call->rpc->lost, call->header.log)) {
        return -ERR_TARGET_LOST;
    }
    return call->deadline_ns > 0 && now_ns >= call->deadline_ns ? -ERR_TIMED_OUT : 0;
}

bool call_is_unanswered(int result) {
    return result == -ERR_AWAY || result == -ERR_TIMED_OUT || result == -ERR_INTERRUPTED;
}

bool call_is_unwanted(const struct call *call) {
    return call->unwanted && call->unwanted(call->unwanted_context);
}

bool rpc_is_away(const struct rpc *rpc, struct log_id log) {
    const struct transport_ops *transport = rpc->options.transport;

    return transport->is_away && transport->is_away(rpc->options.transport_context, log);
}

static bool has_waited(const struct rpc *rpc, const struct call *call) {
    const struct transport_ops *transport = rpc->options.transport;

    return transport->has_waited && transport->has_waited(rpc->options.transport_context, call);
}

/* Of a call that the keeper has. Those who have their number may wait for one that is away, or keep
 * it until that is back. */
static int call_over(const struct rpc *rpc, const struct call *call, uint64_t now_ns) {
    int r = call_given_up(call, now_ns);

    if ((r == 0 || r == -ERR_TIMED_OUT) && has_waited(rpc, call)) {
        return -ERR_AWAY;
    }
    return r == 0 && rpc_is_away(rpc, call->header.log) && call_is_unwanted(call) ? -ERR_INTERRUPTED
                                                                                  : r;
}

static void roomless_expire(struct rpc *rpc, uint64_t now_ns) {
    struct list_node *node = list_first(&rpc->roomless);

    while (node) {
        struct call *call = CONTAINER_OF(node, struct call, rpc_node);
        int r = call_over(rpc, call, now_ns);

        node = list_next(&rpc->roomless, node);
        if (r < 0) {
            atomic_fetch_sub(&call->link->waiting_count, 1);
            call_give_up(rpc, call, r);
        }
    }
}

static void keeper_tick(struct rpc *rpc) {
    uint64_t now_ns = env_now_ns(rpc->options.env);
    struct list_node *node = list_first(&rpc->waiting);
    struct list_node *end = rpc->waiting.head.previous;
    bool at_end = node == NULL;

    roomless_expire(rpc, now_ns);

    while (!at_end) {
        struct call *call = CONTAINER_OF(node, struct call, rpc_node);

        at_end = node == end; /* What is put behind it waits for the next tick. */
        node = node->next;
        if (is_answered(call)) {
            continue;
        }
        int r = call_over(rpc, call, now_ns);
        if (r < 0) {
            call_give_up(rpc, call, r);
        } else if (now_ns - call->sent_ns >= resend_ns(rpc, call)) {
            call_resend(rpc, call);
        }
    }
}

static void keeper_handle(struct rpc *rpc, struct message *message) {
    struct call *call = CONTAINER_OF(message, struct call, message);

    switch (message->kind) {
    case KEEPER_TICK:
        atomic_store_explicit(&rpc->tick_posted, false, memory_order_release);
        keeper_tick(rpc);
        break;
    case KEEPER_SEND:
        keeper_send(rpc, call);
        break;
    case KEEPER_ROOM:
        atomic_store(&rpc->room_posted, false);
        keeper_room(rpc);
        break;
    case KEEPER_DELAY:
        call_delay(rpc, call);
        list_push_back(&rpc->waiting, &call->rpc_node);
        break;
    case KEEPER_ANSWERED:
        keeper_answered(rpc, call);
        break;
    default:
        assert(false);
    }
}

static void keeper_step(struct actor *actor, struct message *first) {
    struct rpc *rpc = CONTAINER_OF(actor, struct rpc, keeper);

    while (first) {
        struct message *next = first->next;

        keeper_handle(rpc, first);
        first = next;
    }
}

void rpc_log_lose(struct rpc *rpc, struct log_id log) {
    lost_logs_add(rpc->lost, log);
}

const struct lost_logs *rpc_lost_logs(const struct rpc *rpc) {
    return rpc->lost;
}

void rpc_tick(struct rpc *rpc) {
    if (!atomic_exchange_explicit(&rpc->tick_posted, true, memory_order_acquire)) {
        rpc->tick.kind = KEEPER_TICK;
        actor_post(&rpc->keeper, &rpc->tick);
    }
}

int rpc_new(const struct rpc_options *options, struct rpc **ret_rpc) {
    struct rpc *rpc;

    if (!options->transport || !options->env || options->logs_max == 0 || options->resend_ns == 0 ||
        !(options->transport->reliable || options->transport->forget)) {
        return -ERR_INVALID;
    }
    rpc = calloc(1, sizeof *rpc);
    if (!rpc) {
        return -ERR_NO_MEMORY;
    }
    rpc->options = *options;
    list_init(&rpc->waiting);
    list_init(&rpc->roomless);
    actor_init(&rpc->keeper, "rpc", keeper_step);
    rpc->session = rpc_session_new(options->logs_max);
    rpc->lost = lost_logs_new(options->logs_max);
    if (!rpc->session || !rpc->lost) {
        rpc_session_free(rpc->session);
        rpc_free(rpc);
        return -ERR_NO_MEMORY;
    }
    rpc->sessions = rpc->session;
    *ret_rpc = rpc;
    return 0;
}

void rpc_free(struct rpc *rpc) {
    struct list_node *node;
    struct rpc_session *session;

    if (!rpc) {
        return;
    }
    while ((node = list_pop_front(&rpc->waiting))) {
        struct call *call = CONTAINER_OF(node, struct call, rpc_node);

        if (call->stage == CALL_SENT) {
            rpc->options.transport->forget(rpc->options.transport_context, call);
        }
    }
    while ((session = rpc->sessions)) {
        rpc->sessions = session->next;
        rpc_session_free(session);
    }
    lost_logs_free(rpc->lost);
    free(rpc);
}

/* A table that no call can meet: not the current one, and none is counted in. */
static struct rpc_session *session_unused(struct rpc *rpc) {
    struct rpc_session *session;

    for (session = rpc->sessions; session; session = session->next) {
        if (session != rpc->session && atomic_load(&session->call_count) == 0) {
            return session;
        }
    }
    session = rpc_session_new(rpc->options.logs_max);
    if (session) {
        session->next = rpc->sessions;
        atomic_store(&rpc->sessions, session);
    }
    return session;
}

int rpc_session_set(struct rpc *rpc, struct session_id id, uint64_t incarnation) {
    struct rpc_session *session = session_unused(rpc);

    if (!session) {
        return -ERR_NO_MEMORY;
    }
    rpc_session_reset(session, id, incarnation);
    atomic_store(&rpc->session, session);
    return 0;
}

struct session_id rpc_session(const struct rpc *rpc, uint64_t *ret_incarnation) {
    const struct rpc_session *session = atomic_load(&rpc->session);

    *ret_incarnation = session->incarnation;
    return session->id;
}

void rpc_window_set(struct rpc *rpc, struct log_id log, uint32_t window) {
    struct rpc_session *session = session_enter(rpc);
    struct rpc_link *link = rpc_session_link(session, log);

    if (link) {
        link->told = 0;
    }
    if (link && rpc_link_window_set(link, window)) {
        room_post(rpc);
    }
    session_leave(session);
}

bool rpc_floor_is_due(struct rpc *rpc, struct log_id log, uint64_t *ret_floor) {
    struct rpc_session *session = session_enter(rpc);
    struct rpc_link *link = session->id.value != 0 ? rpc_session_link(session, log) : NULL;
    bool due = false;

    if (link) {
        /* In this order: what was drawn at the second look had all ended at the first. */
        uint64_t passed = atomic_load(&link->passed);
        uint64_t drawn = atomic_load(&link->drawn);

        due = drawn > 0 && passed == drawn && link->quiet == drawn && link->told <= drawn;
        link->quiet = drawn;
        *ret_floor = drawn + 1;
    }
    session_leave(session);
    return due;
}

void rpc_floor_told(struct rpc *rpc, struct log_id log, uint64_t floor) {
    struct rpc_session *session = session_enter(rpc);
    struct rpc_link *link = rpc_session_link(session, log);

    if (link) {
        link->told = MAX(link->told, floor);
    }
    session_leave(session);
}

uint64_t rpc_window_waits(const struct rpc *rpc) {
    return atomic_load_explicit(&rpc->window_waits, memory_order_relaxed);
}

uint64_t rpc_in_flight(struct rpc *rpc) {
    uint64_t count = 0;

    for (struct rpc_session *session = rpc->sessions; session; session = session->next) {
        count += atomic_load_explicit(&session->call_count, memory_order_relaxed);
    }
    return count;
}
