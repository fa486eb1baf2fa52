/* Calls over the in-process transport: sequences, floor, retries, deadlines, sessions; at the end
 * under several threads, made for ThreadSanitizer. */
#include "env/env.h"
#include "rpc/call_origin.h"
#include "rpc/lost_logs.h"
#include "rpc/sequence.h"
#include "rpc/transport_inproc.h"
#include "rpc/worker.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

enum { LOGS_MAX = 4, CALLS = RPC_WINDOW + 10, RESEND_NS = 1000, HELD_MAX = CALLS };

static const struct log_id server_a = {7};
static const struct log_id server_b = {7 + LOGS_MAX}; /* the same place in the tables */

/* A server that answers at once with `answer`, or holds what it gets. */
struct server {
    struct actor actor;
    bool holds;
    int answer;
    struct call *held[HELD_MAX];
    uint32_t got_count;
};

static struct {
    struct env env;
    _Atomic uint64_t now_ns;
    struct worker worker;
    struct log_table *logs;
    struct rpc *rpc;
    struct actor origin;
    struct server a;
    struct server b;
    struct call calls[CALLS];
    uint32_t done_count;
    struct call *done_last;
} it;

static uint64_t fake_now_ns(struct env *env) {
    (void)env;
    return it.now_ns;
}

static const struct env_ops fake_ops = {.now_ns = fake_now_ns};

static void server_step(struct actor *actor, struct message *first) {
    struct server *server = CONTAINER_OF(actor, struct server, actor);

    while (first) {
        struct call *call = CONTAINER_OF(first, struct call, message);

        assert_int_equal(first->kind, CALL_MESSAGE_KIND);
        first = first->next;
        server->held[server->got_count++ % HELD_MAX] = call;
        if (!server->holds) {
            call->reply.getattr.attributes.size = call->request.getattr.ino.value;
            call_reply(call, server->answer);
        }
    }
}

static void count_done(struct call *call) {
    it.done_count++;
    it.done_last = call;
}

static int set_up(void **state) {
    struct rpc_options options = {.transport = &transport_inproc_ops,
                                  .env = &it.env,
                                  .resend_ns = RESEND_NS,
                                  .logs_max = LOGS_MAX};

    (void)state;
    memset(&it, 0, sizeof it);
    it.env.ops = &fake_ops;
    it.now_ns = 1;
    worker_init(&it.worker);
    worker_bind(&it.worker);
    actor_init(&it.origin, "origin", call_origin_step);
    actor_init(&it.a.actor, "server a", server_step);
    actor_init(&it.b.actor, "server b", server_step);
    if (log_table_new(LOGS_MAX, &it.logs) < 0 ||
        log_table_add(it.logs, server_a, &it.a.actor) < 0 ||
        log_table_add(it.logs, server_b, &it.b.actor) < 0) {
        return -1;
    }
    options.transport_context = it.logs;
    return rpc_new(&options, &it.rpc);
}

static int tear_down(void **state) {
    (void)state;
    rpc_free(it.rpc);
    log_table_free(it.logs);
    it.worker.in_step = false; /* A failed assertion leaves a step by a jump. */
    worker_bind(NULL);
    return 0;
}

static struct call *start(uint32_t number, uint16_t opcode, struct log_id target) {
    struct call *call = &it.calls[number];

    call->header.opcode = opcode;
    call->header.log = target;
    call->origin = &it.origin;
    call->done = count_done;
    call_start(it.rpc, call);
    return call;
}

static void answer(struct call *call, int result) {
    call_reply(call, result);
}

static void tick(uint64_t passed_ns) {
    it.now_ns += passed_ns;
    rpc_tick(it.rpc);
}

static void struct_itself_goes_and_returns(void **state) {
    struct call *call = &it.calls[0];

    (void)state;
    call->request.getattr.ino.value = 99;
    call->header.sequence = 5; /* left over: a query has none */
    start(0, OP_GETATTR, server_a);
    assert_ptr_equal(it.a.held[0], call);
    assert_int_equal(it.done_count, 1);
    assert_int_equal(call->result, 0);
    assert_int_equal(call->reply.getattr.attributes.size, 99);
    assert_int_equal(call->header.sequence, 0);
    assert_int_equal(call->header.message_class, MESSAGE_REQUEST);
    assert_int_equal(rpc_in_flight(it.rpc), 0);
}

/* Sequences are drawn per target; the floor is the lowest awaited, whatever ends first. */
static void floor_is_the_lowest_awaited(void **state) {
    (void)state;
    it.a.holds = true;
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(start(i, OP_MKDIR, server_a)->header.sequence, i + 1);
        assert_int_equal(it.calls[i].header.floor, 1);
    }
    start(4, OP_MKDIR, server_b);
    assert_int_equal(it.b.held[0]->header.floor, 1);
    answer(&it.calls[1], 0);
    answer(&it.calls[2], -ERR_EXISTS);
    assert_int_equal(start(5, OP_MKDIR, server_a)->header.floor, 1);
    answer(&it.calls[0], 0);
    assert_int_equal(start(6, OP_GETATTR, server_a)->header.floor, 4);
    answer(&it.calls[3], 0);
    answer(&it.calls[5], 0);
    assert_int_equal(start(7, OP_GETATTR, server_a)->header.floor, 6);
    assert_int_equal(it.calls[2].result, -ERR_EXISTS);
    assert_int_equal(rpc_in_flight(it.rpc), 2);
    answer(&it.calls[6], 0);
    answer(&it.calls[7], 0);
    assert_int_equal(rpc_in_flight(it.rpc), 0);
}

/* At once, and at a tick what is held: the server that has it asks whether it is given up. */
static void calls_to_a_lost_log_end(void **state) {
    (void)state;
    it.a.holds = true;
    it.b.answer = -ERR_BUSY;
    start(0, OP_MKDIR, server_a);
    start(1, OP_MKDIR, server_b);
    assert_int_equal(call_given_up(&it.calls[0], it.now_ns), 0);
    rpc_log_lose(it.rpc, server_a);
    rpc_log_lose(it.rpc, server_a);
    rpc_log_lose(it.rpc, (struct log_id){0});
    assert_int_equal(lost_logs_count(rpc_lost_logs(it.rpc)), 1);
    assert_int_equal(call_given_up(&it.calls[0], it.now_ns), -ERR_TARGET_LOST);
    answer(&it.calls[0], -ERR_TARGET_LOST);
    assert_int_equal(start(2, OP_MKDIR, server_a)->result, -ERR_TARGET_LOST);
    assert_int_equal(start(3, OP_GETATTR, server_a)->result, -ERR_TARGET_LOST);
    assert_int_equal(it.done_count, 3);
    assert_int_equal(it.a.got_count, 1);
    rpc_log_lose(it.rpc, server_b); /* which shares a place in tables with the other */
    assert_int_equal(lost_logs_count(rpc_lost_logs(it.rpc)), 2);
    tick(1);
    assert_int_equal(it.calls[1].result, -ERR_TARGET_LOST);
    assert_int_equal(rpc_in_flight(it.rpc), 0);
}

/* -ERR_BUSY comes back at growing intervals, as the same mutation. */
static void busy_is_retried(void **state) {
    static const uint64_t waits_ns[] = {RESEND_NS, 2 * RESEND_NS, 4 * RESEND_NS, 8 * RESEND_NS,
                                        8 * RESEND_NS};

    (void)state;
    it.a.answer = -ERR_BUSY;
    start(0, OP_MKDIR, server_a);
    for (uint32_t i = 0; i < ARRAY_SIZE(waits_ns); i++) {
        assert_int_equal(it.a.got_count, i + 1);
        assert_int_equal(it.calls[0].header.sequence, 1);
        tick(waits_ns[i] - 1);
        assert_int_equal(it.a.got_count, i + 1);
        tick(1);
    }
    assert_int_equal(it.done_count, 0);
    it.a.answer = 0;
    tick(8 * RESEND_NS);
    assert_int_equal(it.done_count, 1);
    assert_int_equal(it.calls[0].result, 0);
    assert_int_equal(start(1, OP_MKDIR, server_a)->result, 0);
    assert_int_equal(it.calls[1].header.floor, 2);
}

static void deadline_ends_retries(void **state) {
    (void)state;
    it.a.answer = -ERR_BUSY;
    it.calls[0].deadline_ns = it.now_ns + 100 * RESEND_NS;
    start(0, OP_MKDIR, server_a);
    tick(50 * RESEND_NS);
    assert_int_equal(it.done_count, 0);
    tick(50 * RESEND_NS);
    assert_int_equal(it.done_count, 1);
    assert_int_equal(it.calls[0].result, -ERR_TIMED_OUT);
    assert_int_equal(it.calls[0].header.sequence, 0);
    assert_int_equal(rpc_in_flight(it.rpc), 0);
    tick(50 * RESEND_NS);
    assert_int_equal(it.a.got_count, 2);
}

static void cancel_ends_what_waits(void **state) {
    (void)state;
    it.a.answer = -ERR_BUSY;
    start(0, OP_MKDIR, server_a);
    call_cancel(&it.calls[0]);
    tick(1);
    assert_int_equal(it.done_count, 1);
    assert_int_equal(it.calls[0].result, -ERR_INTERRUPTED);

    /* What the server holds can't be taken from it. */
    it.a.holds = true;
    start(1, OP_MKDIR, server_a);
    call_cancel(&it.calls[1]);
    tick(RESEND_NS);
    assert_int_equal(it.done_count, 1);
    answer(&it.calls[1], -ERR_BUSY);
    tick(RESEND_NS);
    assert_int_equal(it.calls[1].result, -ERR_INTERRUPTED);
    assert_int_equal(rpc_in_flight(it.rpc), 0);
}

/* After a server's restart the same mutation must come back under the same number. */
static void sequence_is_kept_for_another_start(void **state) {
    (void)state;
    it.a.answer = -ERR_STALE_TERM;
    start(0, OP_MKDIR, server_a);
    assert_int_equal(it.calls[0].result, -ERR_STALE_TERM);
    assert_int_equal(it.calls[0].header.sequence, 1);
    assert_int_equal(rpc_in_flight(it.rpc), 1);
    it.a.answer = 0;
    assert_int_equal(start(1, OP_MKDIR, server_a)->header.floor, 1);
    start(0, OP_MKDIR, server_a);
    assert_int_equal(it.a.got_count, 3);
    assert_int_equal(it.calls[0].result, 0);
    assert_int_equal(start(2, OP_MKDIR, server_a)->header.floor, 3);

    /* The caller lets it go: not awaited any more. */
    it.a.answer = -ERR_UNKNOWN_SESSION;
    start(3, OP_MKDIR, server_a);
    assert_int_equal(it.calls[3].header.sequence, 4);
    call_abandon(&it.calls[3]);
    call_abandon(&it.calls[3]);
    assert_int_equal(start(4, OP_GETATTR, server_a)->header.floor, 5);
    assert_int_equal(rpc_in_flight(it.rpc), 0);

    /* Sent to another target it is another mutation. */
    start(5, OP_MKDIR, server_a);
    start(5, OP_MKDIR, server_b);
    assert_int_equal(it.b.held[0], &it.calls[5]);
    assert_int_equal(it.calls[5].header.sequence, 0);
    assert_int_equal(rpc_in_flight(it.rpc), 0);
}

/* More mutations than the window has wait until the oldest has ended. */
static void window_is_kept(void **state) {
    (void)state;
    it.a.holds = true;
    for (uint32_t i = 0; i < RPC_WINDOW + 2; i++) {
        start(i, OP_MKDIR, server_a);
    }
    assert_int_equal(it.a.got_count, RPC_WINDOW);
    answer(&it.calls[1], 0);
    tick(RESEND_NS);
    assert_int_equal(it.a.got_count, RPC_WINDOW);
    start(RPC_WINDOW + 2, OP_GETATTR, server_a); /* queries need none */
    assert_int_equal(it.a.got_count, RPC_WINDOW + 1);
    answer(&it.calls[0], 0);
    assert_int_equal(it.a.got_count, RPC_WINDOW + 3);
    for (uint32_t i = 2; i < RPC_WINDOW + 3; i++) {
        answer(&it.calls[i], 0);
    }
    assert_int_equal(it.done_count, RPC_WINDOW + 3);
    assert_int_equal(start(0, OP_GETATTR, server_a)->header.floor, RPC_WINDOW + 3);
    answer(&it.calls[0], 0);
    assert_int_equal(rpc_in_flight(it.rpc), 0);
}

/* A session has what the log has granted it, at least eight; who waits goes on, in the order of
 * coming and without a tick, when the floor or the window rises. */
static void window_is_what_was_granted(void **state) {
    (void)state;
    assert_int_equal(rpc_session_set(it.rpc, (struct session_id){5}, 50), 0);
    it.a.holds = true;
    for (uint32_t i = 0; i < 30; i++) {
        start(i, OP_MKDIR, server_a);
    }
    assert_int_equal(it.a.got_count, RPC_WINDOW_LEAST);
    assert_int_equal(rpc_window_waits(it.rpc), 30 - RPC_WINDOW_LEAST);
    answer(&it.calls[1], 0); /* The floor stays. */
    assert_int_equal(it.a.got_count, RPC_WINDOW_LEAST);
    answer(&it.calls[0], 0);
    assert_int_equal(it.a.got_count, RPC_WINDOW_LEAST + 2);
    assert_ptr_equal(it.a.held[RPC_WINDOW_LEAST], &it.calls[RPC_WINDOW_LEAST]);
    rpc_window_set(it.rpc, server_b, 20); /* another's */
    assert_int_equal(it.a.got_count, RPC_WINDOW_LEAST + 2);
    rpc_window_set(it.rpc, server_a, 20);
    assert_int_equal(it.a.got_count, 22);
    for (uint32_t i = 2; i < 22; i++) {
        assert_int_equal(it.calls[i].header.sequence, i + 1);
        answer(&it.calls[i], 0);
    }
    assert_int_equal(it.a.got_count, 30);
    for (uint32_t i = 22; i < 30; i++) {
        answer(&it.calls[i], 0);
    }
    assert_int_equal(it.done_count, 30);
    assert_int_equal(rpc_in_flight(it.rpc), 0);
}

/* Told once by who awaits nothing and draws nothing from one look to the next; again after the log
 * may have lost it. */
static void floor_is_due_when_idle(void **state) {
    uint64_t floor = 0;

    (void)state;
    assert_int_equal(rpc_session_set(it.rpc, (struct session_id){5}, 50), 0);
    it.a.holds = true;
    assert_false(rpc_floor_is_due(it.rpc, server_a, &floor)); /* Nothing was ever drawn. */
    assert_false(rpc_floor_is_due(it.rpc, server_a, &floor));
    start(0, OP_MKDIR, server_a);
    start(1, OP_MKDIR, server_a);
    assert_false(rpc_floor_is_due(it.rpc, server_a, &floor));
    answer(&it.calls[1], 0);
    assert_false(rpc_floor_is_due(it.rpc, server_a, &floor)); /* The first is awaited. */
    answer(&it.calls[0], 0);
    assert_true(rpc_floor_is_due(it.rpc, server_a, &floor));
    assert_int_equal(floor, 3);
    assert_false(rpc_floor_is_due(it.rpc, server_b, &floor));
    start(2, OP_MKDIR, server_a);
    assert_int_equal(it.calls[2].header.sequence, 3); /* No lower than the floor. */
    answer(&it.calls[2], 0);
    assert_false(rpc_floor_is_due(it.rpc, server_a, &floor)); /* One was drawn. */
    assert_true(rpc_floor_is_due(it.rpc, server_a, &floor));
    rpc_floor_told(it.rpc, server_a, floor);
    assert_false(rpc_floor_is_due(it.rpc, server_a, &floor));
    rpc_window_set(it.rpc, server_a, 20); /* attached again */
    assert_true(rpc_floor_is_due(it.rpc, server_a, &floor));
    assert_int_equal(floor, 4);
    rpc_floor_told(it.rpc, server_a, floor);
    start(3, OP_MKDIR, server_a);
    answer(&it.calls[3], -ERR_STALE_TERM); /* It keeps its number. */
    assert_false(rpc_floor_is_due(it.rpc, server_a, &floor));
    assert_false(rpc_floor_is_due(it.rpc, server_a, &floor));
    call_abandon(&it.calls[3]);
    assert_true(rpc_floor_is_due(it.rpc, server_a, &floor));
    assert_int_equal(floor, 5);
}

/* Who waits for its number ends at its deadline, or when it is cancelled, and leaves no gap. */
static void waits_for_a_number_end(void **state) {
    (void)state;
    assert_int_equal(rpc_session_set(it.rpc, (struct session_id){6}, 60), 0);
    it.a.holds = true;
    it.calls[RPC_WINDOW_LEAST].deadline_ns = it.now_ns + 2 * RESEND_NS;
    for (uint32_t i = 0; i < RPC_WINDOW_LEAST + 3; i++) {
        start(i, OP_MKDIR, server_a);
    }
    call_cancel(&it.calls[RPC_WINDOW_LEAST + 1]);
    tick(1);
    assert_int_equal(it.calls[RPC_WINDOW_LEAST + 1].result, -ERR_INTERRUPTED);
    tick(2 * RESEND_NS);
    assert_int_equal(it.calls[RPC_WINDOW_LEAST].result, -ERR_TIMED_OUT);
    assert_int_equal(it.done_count, 2);
    answer(&it.calls[0], 0);
    assert_int_equal(it.calls[RPC_WINDOW_LEAST + 2].header.sequence, RPC_WINDOW_LEAST + 1);
    for (uint32_t i = 1; i < RPC_WINDOW_LEAST; i++) {
        answer(&it.calls[i], 0);
    }
    answer(&it.calls[RPC_WINDOW_LEAST + 2], 0);
    assert_int_equal(rpc_in_flight(it.rpc), 0);
}

static void sessions_count_from_one(void **state) {
    uint64_t incarnation = 0;

    (void)state;
    it.a.holds = true;
    start(0, OP_MKDIR, server_a);
    for (uint32_t i = 1; i < 6; i++) {
        assert_int_equal(rpc_session_set(it.rpc, (struct session_id){i}, 10 + i), 0);
        assert_int_equal(rpc_session(it.rpc, &incarnation).value, i);
        assert_int_equal(incarnation, 10 + i);
        start(2 * i, OP_MKDIR, server_a);
        start(2 * i + 1, OP_MKDIR, server_a);
        assert_int_equal(it.calls[2 * i + 1].header.sequence, 2);
        assert_int_equal(it.calls[2 * i + 1].header.floor, 1);
        assert_int_equal(it.calls[2 * i + 1].header.session.value, i);
        assert_int_equal(it.calls[2 * i + 1].header.incarnation, 10 + i);
    }
    assert_int_equal(it.calls[0].header.session.value, 0);
    assert_int_equal(rpc_in_flight(it.rpc), 11);
    answer(&it.calls[0], 0);
    for (uint32_t i = 2; i < 12; i++) {
        answer(&it.calls[i], -ERR_FENCED);
    }
    assert_int_equal(rpc_in_flight(it.rpc), 0);
}

static void unknown_targets(void **state) {
    (void)state;
    start(0, OP_GETATTR, (struct log_id){100});
    assert_int_equal(it.calls[0].result, -ERR_STALE_MAP);
    log_table_remove(it.logs, server_a);
    start(1, OP_GETATTR, server_a);
    assert_int_equal(it.calls[1].result, -ERR_STALE_MAP);
    assert_int_equal(log_table_add(it.logs, server_b, &it.b.actor), -ERR_EXISTS);
    assert_int_equal(log_table_add(it.logs, server_a, &it.a.actor), 0);
    start(2, OP_GETATTR, server_a);
    assert_int_equal(it.calls[2].result, 0);
    /* More logs than there are links. */
    for (uint32_t i = 0; i < LOGS_MAX; i++) {
        start(3, OP_GETATTR, (struct log_id){1000 + i});
    }
    assert_int_equal(it.calls[3].result, -ERR_NO_MEMORY);
    assert_int_equal(rpc_in_flight(it.rpc), 0);
}

static void discard_without_copies_is_busy(void **state) {
    (void)state;
    it.a.holds = true;
    start(0, OP_MKDIR, server_a);
    call_discard(&it.calls[0]);
    assert_int_equal(it.done_count, 0);
    tick(RESEND_NS);
    assert_int_equal(it.a.got_count, 2);
    answer(&it.calls[0], 0);
    assert_int_equal(it.done_count, 1);
}

static void bad_options_are_refused(void **state) {
    struct rpc_options good = {
        .transport = &transport_inproc_ops, .env = &it.env, .resend_ns = 1, .logs_max = 1};
    struct transport_ops forgetful = {.send = transport_inproc_ops.send};
    struct rpc_options options[4] = {good, good, good, good};
    struct log_table *logs;
    struct rpc *rpc;

    (void)state;
    options[0].logs_max = 0;
    options[1].resend_ns = 0;
    options[2].env = NULL;
    options[3].transport = &forgetful;
    for (uint32_t i = 0; i < ARRAY_SIZE(options); i++) {
        assert_int_equal(rpc_new(&options[i], &rpc), -ERR_INVALID);
    }
    assert_int_equal(log_table_new(0, &logs), -ERR_INVALID);
    rpc_free(NULL);
    log_table_free(NULL);
}

/* Threads: each has an origin with a few calls that start again when they are done. The server
 * sees that no number is used twice in a session, and that none comes that is below the floor or
 * beyond the window above it. */

enum { THREADS = 3, CALLS_EACH = 8, ROUNDS = 20000, SESSIONS = 200 };

struct caller {
    pthread_t thread;
    struct worker worker;
    struct actor origin;
    struct message begin;
    struct call calls[CALLS_EACH];
    uint32_t left;
    atomic_uint ended;
};

static struct {
    struct actor server;
    uint64_t floors[SESSIONS + 1];
    uint64_t last[SESSIONS + 1];
    uint8_t seen[SESSIONS + 1][(THREADS * ROUNDS) / 8 + 1];
    atomic_int errors;
    atomic_int running;
    struct caller callers[THREADS];
} threads;

static void checking_step(struct actor *actor, struct message *first) {
    (void)actor;
    while (first) {
        struct call *call = CONTAINER_OF(first, struct call, message);
        uint64_t session = call->header.session.value;
        uint64_t sequence = call->header.sequence;
        uint8_t *byte = &threads.seen[session][sequence / 8];
        uint32_t window = session == 0 ? RPC_WINDOW : RPC_WINDOW_LEAST;
        bool good = sequence >= threads.floors[session] && call->header.floor <= sequence &&
                    sequence - call->header.floor < window && !(*byte & 1U << sequence % 8);

        first = first->next;
        if (!good) {
            atomic_fetch_add(&threads.errors, 1);
        }
        *byte = (uint8_t)(*byte | 1U << sequence % 8);
        threads.floors[session] = MAX(threads.floors[session], call->header.floor);
        threads.last[session] = MAX(threads.last[session], sequence);
        call_reply(call, 0);
    }
}

static void call_again(struct call *call) {
    struct caller *caller = call->context;

    if (caller->left == 0) {
        atomic_fetch_add(&caller->ended, 1);
        return;
    }
    caller->left--;
    call_start(it.rpc, call);
}

static void caller_step(struct actor *actor, struct message *first) {
    struct caller *caller = CONTAINER_OF(actor, struct caller, origin);

    while (first) {
        struct message *next = first->next;

        if (first == &caller->begin) {
            for (uint32_t i = 0; i < CALLS_EACH; i++) {
                struct call *call = &caller->calls[i];

                call->header.opcode = OP_MKDIR;
                call->header.log = server_b;
                call->origin = &caller->origin;
                call->done = call_again;
                call->context = caller;
                call_again(call);
            }
        } else {
            call_done_message(first);
        }
        first = next;
    }
}

static void *caller_run(void *argument) {
    struct caller *caller = argument;

    worker_bind(&caller->worker);
    actor_post(&caller->origin, &caller->begin);
    while (atomic_load(&caller->ended) < CALLS_EACH) {
        if (!worker_run_one(&caller->worker)) {
            sched_yield(); /* The window is full: who ends a call wakes us, without a tick. */
        }
    }
    atomic_fetch_sub(&threads.running, 1);
    /* What this thread came to own it must run to the end, also for the others. */
    while (atomic_load(&threads.running) > 0) {
        if (!worker_run_one(&caller->worker)) {
            sched_yield();
        }
    }
    while (worker_run_one(&caller->worker)) {
    }
    worker_bind(NULL);
    return NULL;
}

static void sequences_under_threads(void **state) {
    uint64_t total = 0;

    (void)state;
    actor_init(&threads.server, "server", checking_step);
    log_table_remove(it.logs, server_b);
    assert_int_equal(log_table_add(it.logs, server_b, &threads.server), 0);
    atomic_store(&threads.running, THREADS);
    for (uint32_t i = 0; i < THREADS; i++) {
        struct caller *caller = &threads.callers[i];

        worker_init(&caller->worker);
        actor_init(&caller->origin, "caller", caller_step);
        caller->left = ROUNDS;
        assert_int_equal(pthread_create(&caller->thread, NULL, caller_run, caller), 0);
    }
    for (uint32_t i = 1; i <= SESSIONS; i++) {
        assert_int_equal(rpc_session_set(it.rpc, (struct session_id){i}, i), 0);
        sched_yield();
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads.callers[i].thread, NULL), 0);
    }
    assert_int_equal(threads.errors, 0);
    for (uint32_t i = 0; i <= SESSIONS; i++) {
        total += threads.last[i]; /* numbers without gaps: as many as calls */
    }
    assert_int_equal(total, THREADS * ROUNDS);
    assert_int_equal(rpc_in_flight(it.rpc), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(struct_itself_goes_and_returns),
        TEST(floor_is_the_lowest_awaited),
        TEST(calls_to_a_lost_log_end),
        TEST(busy_is_retried),
        TEST(deadline_ends_retries),
        TEST(cancel_ends_what_waits),
        TEST(sequence_is_kept_for_another_start),
        TEST(window_is_kept),
        TEST(window_is_what_was_granted),
        TEST(floor_is_due_when_idle),
        TEST(waits_for_a_number_end),
        TEST(sessions_count_from_one),
        TEST(unknown_targets),
        TEST(discard_without_copies_is_busy),
        TEST(bad_options_are_refused),
        TEST(sequences_under_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
