/* More processes than a gate has connections for all their threads, over simulated streams: each
 * is served, as none has more lanes than its share, and its threads share them. */
#include "env/sim_stream.h"
#include "rpc/transport.h"
#include "sim_gate.h"
#include "unit.h"
#include <stdlib.h>
#include <string.h>

/* The thread sanitizer has no addresses for the buffers of so many. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
enum { CLIENTS = 60, CONNECTIONS = 420 };
#define CLIENTS_ARE_FEW
#endif
#endif
#if !defined(CLIENTS_ARE_FEW)
enum { CLIENTS = 600, CONNECTIONS = 4096 };
#endif
enum { THREADS = 32, ROUNDS = 2, LANE_TICKS = 5, LIMIT_S = 50 };

struct caller_thread {
    struct lane_thread *lanes;
    struct call call;
    uint32_t asked, done;
};

struct client {
    struct lanes *lanes;
    struct rpc *rpc;
    struct caller_thread threads[THREADS];
    uint32_t first, last; /* of the threads that ask */
};

static struct {
    struct sim *sim;
    struct sim_gate server;
    struct sim_process *callers;
    struct env *callers_env;
    struct worker callers_worker;
    struct actor origin;
    struct env_tick callers_tick;
    struct client *clients;
    uint32_t client_max;
    uint32_t client_count; /* that ask */
    uint32_t done_count, failed_count, ticks;
} it;

static void callers_enter(void *context) {
    (void)context;
    worker_bind(&it.callers_worker);
}

static void callers_leave(void *context) {
    (void)context;
    while (worker_run_one(&it.callers_worker)) {
    }
    worker_bind(NULL);
}

static void call_done(struct call *call) {
    struct caller_thread *thread = call->context;

    thread->done++;
    it.done_count++;
    it.failed_count += call->result != 0;
}

static void ask(struct client *client, struct caller_thread *thread) {
    thread->asked++;
    thread->call = (struct call){.header = {.opcode = OP_GETATTR, .log = sim_gate_log()},
                                 .origin = &it.origin,
                                 .done = call_done,
                                 .context = thread};
    call_start(client->rpc, &thread->call);
}

/* Each thread's turn: it asks again when it was answered. */
static void callers_turn(struct env_tick *tick) {
    (void)tick;
    it.ticks++;
    for (uint32_t i = 0; i < it.client_count; i++) {
        struct client *client = &it.clients[i];

        if (it.ticks % LANE_TICKS == 0) {
            lanes_tick(client->lanes);
            rpc_tick(client->rpc);
        }
        for (uint32_t k = client->first; k <= client->last; k++) {
            struct caller_thread *thread = &client->threads[k];

            lane_thread_bind(thread->lanes);
            if (thread->asked == thread->done && thread->asked < ROUNDS) {
                ask(client, thread);
            }
            (void)lane_thread_turn(thread->lanes);
        }
        lane_thread_bind(NULL);
    }
}

static void client_begin(struct client *client, uint64_t life) {
    const struct address address = sim_gate_address();
    const struct lanes_options options = {.env = it.callers_env, .self = {.life = {3, life}}};
    const struct lane_waker waker = {.wake = sim_gate_no_wake};
    struct rpc_options rpc = {
        .transport = &lanes_ops, .env = it.callers_env, .resend_ns = NS_PER_MS, .logs_max = 1};
    uint32_t peer;

    assert_int_equal(lanes_new(&options, &client->lanes), 0);
    assert_int_equal(lanes_peer_add(client->lanes, &address, 1, "the server", &peer), 0);
    lanes_set_default(client->lanes, peer);
    for (uint32_t k = 0; k < THREADS; k++) {
        assert_int_equal(lane_thread_new(client->lanes, &waker, &client->threads[k].lanes), 0);
    }
    client->last = THREADS - 1;
    rpc.transport_context = client->lanes;
    assert_int_equal(rpc_new(&rpc, &client->rpc), 0);
}

static void begin(uint32_t client_max, uint32_t connections_max) {
    const struct gate_options options = {.connections_max = connections_max};

    memset(&it, 0, sizeof it);
    it.sim = sim_new(7);
    it.callers = sim_process_new(it.sim, "callers");
    it.callers_env = sim_process_env(it.callers);
    sim_stream_faults(it.sim)->buffer_bytes = 1024;
    it.client_max = client_max;
    sim_gate_begin(&it.server, it.sim, &options);
    it.clients = calloc(client_max, sizeof *it.clients);
    assert_non_null(it.clients);
    actor_init(&it.origin, "origin", sim_gate_origin_step);
    worker_init(&it.callers_worker);
    for (uint32_t i = 0; i < client_max; i++) {
        client_begin(&it.clients[i], i + 1);
    }
    it.callers_tick =
        (struct env_tick){.period_ns = SIM_GATE_TICK_MS * NS_PER_MS, .fire = callers_turn};
    it.callers_env->ops->tick_start(it.callers_env, &it.callers_tick);
    sim_process_set_hooks(it.callers, &(struct sim_hooks){callers_enter, callers_leave, NULL});
}

static void end(void) {
    callers_enter(NULL);
    for (uint32_t i = 0; i < it.client_max; i++) {
        for (uint32_t k = 0; k < THREADS; k++) {
            lane_thread_free(it.clients[i].threads[k].lanes);
        }
        rpc_free(it.clients[i].rpc);
        lanes_free(it.clients[i].lanes);
    }
    sim_gate_end(&it.server);
    sim_free(it.sim);
    free(it.clients);
}

static bool are_served(void *context) {
    return it.done_count == *(uint32_t *)context;
}

static void run_until_served(uint32_t client_count) {
    uint32_t asked = 0;

    it.client_count = client_count;
    for (uint32_t i = 0; i < client_count; i++) {
        asked += (it.clients[i].last - it.clients[i].first + 1) * ROUNDS;
    }
    assert_int_equal(
        sim_run_until(it.sim, sim_now_ns(it.sim) + LIMIT_S * NS_PER_S, are_served, &asked),
        SIM_DONE);
    assert_int_equal(it.failed_count, 0);
}

static uint32_t open_count(const struct client *client) {
    struct lane_stats stats;

    lanes_stats(client->lanes, &stats);
    return stats.open_count;
}

static void each_has_its_share(void) {
    struct gate_stats stats;

    gate_stats(it.server.gate, &stats);
    assert_true(it.server.connections_most <= stats.connections_max);
    assert_true(stats.lanes_granted >= 1 &&
                stats.lanes_granted <= stats.connections_max / it.client_max);
    for (uint32_t i = 0; i < it.client_max; i++) {
        assert_true(open_count(&it.clients[i]) >= 1);
    }
}

/* All come at once. */
static void all_of_many_processes_are_served(void **state) {
    (void)state;
    begin(CLIENTS, CONNECTIONS);
    run_until_served(CLIENTS);
    each_has_its_share();
    end();
}

/* Each of a few has a lane a thread; when others come, they give some back, while all ask. */
static void who_has_many_gives_some_back(void **state) {
    const uint32_t few = 10;
    const uint32_t many = 60;
    struct gate_stats stats;

    (void)state;
    begin(many, 440);
    run_until_served(few);
    for (uint32_t i = 0; i < few; i++) {
        assert_int_equal(open_count(&it.clients[i]), THREADS);
        for (uint32_t k = 0; k < THREADS; k++) {
            it.clients[i].threads[k].asked = it.clients[i].threads[k].done = 0;
        }
    }
    it.done_count = 0;
    run_until_served(many);
    gate_stats(it.server.gate, &stats);
    assert_true(stats.surplus_count > 0);
    each_has_its_share();
    end();
}

/* Its server still counts a lane that is gone, the only one that it grants the process. */
static void who_has_lost_a_lane_gets_another(void **state) {
    const uint32_t processes = 4;
    struct client *again;
    struct gate_stats stats;

    (void)state;
    begin(processes, 8);
    it.clients = realloc(it.clients, (processes + 1) * sizeof *it.clients);
    assert_non_null(it.clients);
    again = &it.clients[it.client_max++];
    memset(again, 0, sizeof *again);
    callers_enter(NULL);
    client_begin(again, 1); /* The first one, as its server sees it. */
    callers_leave(NULL);
    for (uint32_t i = 0; i < it.client_max; i++) {
        it.clients[i].first = it.clients[i].last = i == processes;
    }
    run_until_served(processes);
    gate_stats(it.server.gate, &stats);
    assert_true(stats.lanes_granted == 1 && stats.surplus_count == 0);
    run_until_served(processes + 1);
    gate_stats(it.server.gate, &stats);
    assert_true(stats.connection_count == processes && stats.surplus_count == 1);
    end();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_many_processes_are_served),
        cmocka_unit_test(who_has_many_gives_some_back),
        cmocka_unit_test(who_has_lost_a_lane_gets_another),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
