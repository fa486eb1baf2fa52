/* Threads of a process that has fewer lanes than threads, each in a loop of its own, over a real
 * Unix socket: each call is answered once, also where a thread ends that others called by. */
#include "env/env_linux.h"
#include "env/env_stream.h"
#include "rpc/call.h"
#include "rpc/call_origin.h"
#include "rpc/gate.h"
#include "rpc/transport.h"
#include "rpc/worker.h"
#include "unit.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 8, ROUNDS = 150, CALLS = 4, CONNECTIONS = 4, TICK_MS = 2 };

static const struct log_id log_served = {7};

struct caller {
    pthread_t thread;
    uint32_t rounds;
    struct actor origin;
    struct call calls[CALLS];
    _Atomic uint32_t done_count, failed_count;
};

static struct {
    char folder[32];
    struct address address;
    struct env *env;
    struct log_table *logs;
    struct actor server;
    struct lanes *lanes;
    struct rpc *rpc;
    struct caller callers[THREADS];
    _Atomic uint32_t ran_count, left_count;
    atomic_bool is_open, is_over;
    pthread_t gate_thread;
    struct gate_stats stats;
} it;

static void loop_wake(void *context) {
    env_loop_wake(context);
}

static void server_step(struct actor *actor, struct message *first) {
    (void)actor;
    while (first) {
        struct call *call = CONTAINER_OF(first, struct call, message);

        first = first->next;
        atomic_fetch_add(&it.ran_count, 1);
        call_reply(call, 0);
    }
}

static void call_done(struct call *call) {
    struct caller *caller = call->context;

    atomic_fetch_add(&caller->failed_count, call->result != 0);
    atomic_fetch_add(&caller->done_count, 1);
}

static void thread_enter(struct worker *worker) {
    assert_int_equal(env_thread_enter(it.env), 0);
    worker_init(worker);
    worker_bind(worker);
}

static void thread_leave(struct worker *worker) {
    while (worker_run_one(worker)) {
    }
    worker_bind(NULL);
    env_thread_leave(it.env);
}

static void *serve(void *context) {
    struct worker worker;
    struct gate_options options = {.env = it.env,
                                   .self = {.node = {1}, .life = {1, 2}},
                                   .logs = it.logs,
                                   .connections_max = CONNECTIONS,
                                   .requests_max = 64};
    struct gate *gate;

    (void)context;
    thread_enter(&worker);
    options.waker = (struct lane_waker){.wake = loop_wake, .context = env_thread_loop(it.env)};
    assert_int_equal(gate_new(&options, &gate), 0);
    assert_int_equal(gate_listen(gate, &it.address), 0);
    atomic_store(&it.is_open, true);
    while (!atomic_load(&it.is_over)) {
        (void)env_loop_wait(it.env, -1, TICK_MS * NS_PER_MS);
        while (worker_run_one(&worker)) {
        }
        gate_tick(gate);
        (void)gate_turn(gate);
    }
    gate_stats(gate, &it.stats);
    gate_free(gate);
    thread_leave(&worker);
    return NULL;
}

static void turn(struct caller *caller, struct worker *worker, struct lane_thread *lanes) {
    (void)env_loop_wait(it.env, -1, TICK_MS * NS_PER_MS);
    while (worker_run_one(worker)) {
    }
    if (caller == &it.callers[THREADS - 1]) { /* It is the last to leave. */
        lanes_tick(it.lanes);
        rpc_tick(it.rpc);
    }
    (void)lane_thread_turn(lanes);
}

static bool others_have_left(const struct caller *caller) {
    return caller != &it.callers[THREADS - 1] || atomic_load(&it.left_count) == THREADS - 1;
}

static void *ask(void *context) {
    struct caller *caller = context;
    struct worker worker;
    struct lane_thread *lanes;

    thread_enter(&worker);
    const struct lane_waker waker = {.wake = loop_wake, .context = env_thread_loop(it.env)};
    assert_int_equal(lane_thread_new(it.lanes, &waker, &lanes), 0);
    lane_thread_bind(lanes);
    for (uint32_t round = 0; round < caller->rounds; round++) {
        atomic_store(&caller->done_count, 0);
        for (uint32_t i = 0; i < CALLS; i++) {
            caller->calls[i] = (struct call){
                .header = {.opcode = i % 2 ? OP_MKDIR : OP_GETATTR, .log = log_served},
                .origin = &caller->origin,
                .done = call_done,
                .context = caller};
            call_start(it.rpc, &caller->calls[i]);
        }
        while (atomic_load(&caller->done_count) < CALLS) {
            turn(caller, &worker, lanes);
        }
    }
    while (!others_have_left(caller)) {
        turn(caller, &worker, lanes);
    }
    lane_thread_free(lanes);
    atomic_fetch_add(&it.left_count, 1);
    thread_leave(&worker);
    return NULL;
}

static void begin(void) {
    const struct env_linux_options env = {.root = "/"};
    struct rpc_options rpc = {.transport = &lanes_ops, .resend_ns = NS_PER_MS, .logs_max = 4};
    struct lanes_options lanes = {.self = {.life = {3, 4}}, .rest_ns = NS_PER_MS};
    uint32_t peer;

    memset(&it, 0, sizeof it);
    snprintf(it.folder, sizeof it.folder, "/tmp/shoal-share-XXXXXX");
    assert_non_null(mkdtemp(it.folder));
    it.address.kind = ADDRESS_UNIX;
    snprintf(it.address.name, sizeof it.address.name, "%s/socket", it.folder);
    assert_int_equal(env_linux_new(&env, &it.env), 0);
    assert_int_equal(log_table_new(4, &it.logs), 0);
    actor_init(&it.server, "server", server_step);
    assert_int_equal(log_table_add(it.logs, log_served, &it.server), 0);
    lanes.env = it.env;
    assert_int_equal(lanes_new(&lanes, &it.lanes), 0);
    assert_int_equal(lanes_peer_add(it.lanes, &it.address, 1, "the daemon", &peer), 0);
    lanes_set_default(it.lanes, peer);
    rpc.env = it.env;
    rpc.transport_context = it.lanes;
    assert_int_equal(rpc_new(&rpc, &it.rpc), 0);
}

static void end(void) {
    rpc_free(it.rpc);
    lanes_free(it.lanes);
    log_table_free(it.logs);
    env_linux_free(it.env);
    unlink(it.address.name);
    rmdir(it.folder);
}

static void threads_share_the_lanes_that_are_granted(void **state) {
    uint32_t asked = 0;

    (void)state;
    begin();
    assert_int_equal(pthread_create(&it.gate_thread, NULL, serve, NULL), 0);
    while (!atomic_load(&it.is_open)) {
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        struct caller *caller = &it.callers[i];

        caller->rounds = ROUNDS * (i + 1) / THREADS;
        asked += caller->rounds * CALLS;
        actor_init(&caller->origin, "origin", call_origin_step);
        assert_int_equal(pthread_create(&caller->thread, NULL, ask, caller), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(it.callers[i].thread, NULL), 0);
        assert_int_equal(it.callers[i].failed_count, 0);
    }
    atomic_store(&it.is_over, true);
    assert_int_equal(pthread_join(it.gate_thread, NULL), 0);
    assert_true(it.ran_count >= asked);
    assert_int_equal(it.stats.lanes_granted, CONNECTIONS * 3 / 4);
    end();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_share_the_lanes_that_are_granted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
