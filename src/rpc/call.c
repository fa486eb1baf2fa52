/* The client's side of calls; the contract is in call.h.
 *
 *     reliable transport:   call_start -> transport -> rpc_answered -> origin
 *                                  \                  / BUSY
 *                                   window full     keeper: waits for its next try
 *     any other:            call_start -> keeper -> transport -> rpc_answered -> keeper -> origin
 *
 * The keeper is an actor: it has the list of the calls that a tick may have to do something about.
 * Where nothing gets lost, a call on its way needs no tick, so it never meets the keeper.
 *
 * A session's table is entered before it is used: a call counts itself in, then looks whether the
 * table is still the current one. So one that is not current and has no calls is nobody's. */
#include "env/env.h"
#include "rpc/sequence.h"
#include "rpc/transport.h"
#include <assert.h>
#include <stdlib.h>

enum keeper_message { KEEPER_TICK = 1, KEEPER_SEND, KEEPER_DELAY, KEEPER_ANSWERED };

/* DELAYED: not with the transport. Both are in the keeper's list unless the transport is reliable;
 * then only the delayed are. */
enum call_stage { CALL_IDLE, CALL_SENT, CALL_DELAYED };

enum { RESEND_DOUBLINGS_MAX = 3 };

struct rpc {
    struct actor keeper;
    struct rpc_options options;
    struct list waiting; /* the keeper's */
    _Atomic(struct rpc_session *) session;
    _Atomic(struct rpc_session *) sessions; /* all there are, linked by next */
    struct message tick;
    atomic_bool tick_posted;
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

static void sequence_end(struct call *call) {
    rpc_link_end(call->link, call->header.sequence);
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
    return action == ERR_ACTION_REFRESH || action == ERR_ACTION_REOPEN;
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

/* Hands the call to the transport; false when it can't have a sequence yet. The call may be gone
 * afterwards. */
static bool call_send(struct call *call) {
    struct rpc *rpc = call->rpc;

    if (call->header.sequence == 0 && wire_is_mutation(call->header.opcode)) {
        call->header.sequence = rpc_link_draw(call->link);
        if (call->header.sequence == 0) {
            return false;
        }
    }
    call->header.floor = rpc_link_floor(call->link);
    call->header.origin = call->header.log;
    call->stage = CALL_SENT;
    call->attempts++;
    if (!rpc->options.transport->reliable) {
        call->sent_ns = env_now_ns(rpc->options.env);
    }
    rpc->options.transport->send(rpc->options.transport_context, call);
    return true;
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
    if (!rpc->options.transport->reliable) {
        keeper_post(call, KEEPER_SEND);
    } else if (!call_send(call)) {
        keeper_post(call, KEEPER_DELAY);
    }
}

void call_abandon(struct call *call) {
    assert(call->stage == CALL_IDLE);
    if (call->link && call->header.sequence > 0) {
        sequence_end(call);
        session_leave(call->link->session);
    }
}

void call_cancel(struct call *call) {
    atomic_store_explicit(&call->cancelled, true, memory_order_relaxed);
}

void call_reply(struct call *call, int result) {
    assert(result <= 0);
    call->result = result;
    call->reply_to(call);
}

int call_given_up(const struct call *call, uint64_t now_ns) {
    if (atomic_load_explicit(&call->cancelled, memory_order_relaxed)) {
        return -ERR_INTERRUPTED;
    }
    return call->deadline_ns > 0 && now_ns >= call->deadline_ns ? -ERR_TIMED_OUT : 0;
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

static void call_resend(struct rpc *rpc, struct call *call) {
    if (!rpc->options.transport->reliable) {
        if (!call_send(call)) {
            call_delay(rpc, call);
        }
        return;
    }
    /* Out of the list first: the call may have ended when the transport is back. */
    list_remove(&call->rpc_node);
    if (!call_send(call)) {
        call_delay(rpc, call);
        list_push_back(&rpc->waiting, &call->rpc_node);
    }
}

static uint64_t resend_ns(const struct rpc *rpc, const struct call *call) {
    uint32_t doublings = call->attempts > 1 ? call->attempts - 1 : 0;

    return rpc->options.resend_ns << MIN(doublings, (uint32_t)RESEND_DOUBLINGS_MAX);
}

static void keeper_tick(struct rpc *rpc) {
    uint64_t now_ns = env_now_ns(rpc->options.env);
    struct list_node *node = list_first(&rpc->waiting);
    struct list_node *end = rpc->waiting.head.previous;
    bool at_end = node == NULL;

    while (!at_end) {
        struct call *call = CONTAINER_OF(node, struct call, rpc_node);

        at_end = node == end; /* What is put behind it waits for the next tick. */
        node = node->next;
        if (is_answered(call)) {
            continue;
        }
        if (atomic_load_explicit(&call->cancelled, memory_order_relaxed)) {
            call_give_up(rpc, call, -ERR_INTERRUPTED);
        } else if (call->deadline_ns > 0 && now_ns >= call->deadline_ns) {
            call_give_up(rpc, call, -ERR_TIMED_OUT);
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
        list_push_back(&rpc->waiting, &call->rpc_node);
        if (!call_send(call)) {
            call_delay(rpc, call);
        }
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
    actor_init(&rpc->keeper, "rpc", keeper_step);
    rpc->session = rpc_session_new(options->logs_max);
    if (!rpc->session) {
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

uint64_t rpc_in_flight(struct rpc *rpc) {
    uint64_t count = 0;

    for (struct rpc_session *session = rpc->sessions; session; session = session->next) {
        count += atomic_load_explicit(&session->call_count, memory_order_relaxed);
    }
    return count;
}
