/* A lane and a gate over simulated streams: what only a network of that kind shows, in the world's
 * time. The simulator plays whole clusters over them; here is one call at a time. */
#include "env/sim_stream.h"
#include "rpc/transport.h"
#include "sim_gate.h"
#include "unit.h"
#include <stdlib.h>
#include <string.h>

enum { BULK_BYTES = 65536, CALLS = 32, WAITS = 4, LIMIT_S = 60 };
enum { SMALL_BULKS = 8, BULKS = SMALL_BULKS + 1 }; /* what is so small may take any */

static struct {
    struct sim *sim;
    struct sim_gate server;
    struct sim_process *client;
    struct env *client_env;
    struct worker client_worker;
    struct address address; /* that it calls */
    struct lanes *lanes;
    struct lane_thread *thread;
    struct lane_thread *other; /* a second one of the same process; NULL: none */
    struct rpc *rpc;
    struct actor origin;
    struct env_tick client_tick;
    struct call calls[CALLS];
    uint8_t *bulk;
    uint32_t done_count;
} it;

static void client_enter(void *context) {
    (void)context;
    worker_bind(&it.client_worker);
    lane_thread_bind(it.thread);
}

static void client_leave(void *context) {
    (void)context;
    while (worker_run_one(&it.client_worker) || lane_thread_turn(it.thread) ||
           (it.other && lane_thread_turn(it.other))) {
    }
    lane_thread_bind(NULL);
    worker_bind(NULL);
}

static void client_ticks(struct env_tick *tick) {
    (void)tick;
    lanes_tick(it.lanes);
    rpc_tick(it.rpc);
}

static void count_done(struct call *call) {
    (void)call;
    it.done_count++;
}

static void client_begin(uint64_t silent_ns) {
    const struct lanes_options options = {
        .env = it.client_env, .self = {.life = {3, 4}}, .silent_ns = silent_ns};
    const struct lane_waker waker = {.wake = sim_gate_no_wake};
    struct rpc_options rpc = {
        .transport = &lanes_ops, .env = it.client_env, .resend_ns = NS_PER_MS, .logs_max = 1};
    uint32_t peer;

    actor_init(&it.origin, "origin", sim_gate_origin_step);
    assert_int_equal(lanes_new(&options, &it.lanes), 0);
    assert_int_equal(lanes_peer_add(it.lanes, &it.address, 1, "the server", &peer), 0);
    lanes_set_default(it.lanes, peer);
    assert_int_equal(lane_thread_new(it.lanes, &waker, &it.thread), 0);
    rpc.transport_context = it.lanes;
    assert_int_equal(rpc_new(&rpc, &it.rpc), 0);
    worker_init(&it.client_worker);
    it.client_tick =
        (struct env_tick){.period_ns = SIM_GATE_TICK_MS * NS_PER_MS, .fire = client_ticks};
    it.client_env->ops->tick_start(it.client_env, &it.client_tick);
    sim_process_set_hooks(it.client, &(struct sim_hooks){client_enter, client_leave, NULL});
}

static void begin_at(const struct address *address, uint64_t silent_ns) {
    const struct gate_options options = {.requests_max = 16,
                                         .waits_max = WAITS,
                                         .bulk_count = BULKS - SMALL_BULKS,
                                         .small_bulk_count = SMALL_BULKS};

    memset(&it, 0, sizeof it);
    it.address = *address;
    it.sim = sim_new(7);
    it.client = sim_process_new(it.sim, "client");
    it.client_env = sim_process_env(it.client);
    it.bulk = aligned_alloc(BLOCK_BYTES, BULK_BYTES);
    sim_gate_begin(&it.server, it.sim, &options);
    client_begin(silent_ns);
}

static void begin(uint64_t silent_ns) {
    const struct address address = sim_gate_address();

    begin_at(&address, silent_ns);
}

static void end(void) {
    client_enter(NULL);
    lane_thread_free(it.thread);
    lane_thread_free(it.other);
    rpc_free(it.rpc);
    lanes_free(it.lanes);
    sim_gate_end(&it.server);
    sim_free(it.sim);
    free(it.bulk);
}

static bool all_done(void *count) {
    return it.done_count == *(uint32_t *)count;
}

static void ask_for(uint32_t number, uint16_t opcode, size_t bulk_bytes, uint64_t time_ns) {
    struct call *call = &it.calls[number];

    *call = (struct call){.header = {.opcode = opcode, .log = sim_gate_log()},
                          .unwanted = call->unwanted,
                          .origin = &it.origin,
                          .done = count_done,
                          .bulk_in = {.data = it.bulk, .capacity = bulk_bytes},
                          .deadline_ns = env_now_ns(it.client_env) + time_ns};
    client_enter(NULL);
    call_start(it.rpc, call);
    client_leave(NULL);
}

static void ask(uint32_t number, uint64_t time_ns) {
    ask_for(number, OP_READLINK, BULK_BYTES, time_ns);
}

static void run_until_done(uint32_t count) {
    uint64_t end_ns = sim_now_ns(it.sim) + LIMIT_S * NS_PER_S;

    assert_int_equal(sim_run_until(it.sim, end_ns, all_done, &count), SIM_DONE);
}

/* It takes many times as long as a lane may be silent, and what is asked meanwhile whether the
 * other end lives stands behind it: that it comes at all says so. */
static void a_slow_answer_is_no_silence(void **state) {
    struct sim_stream_faults *faults;
    struct lane_stats stats;

    (void)state;
    begin(100 * NS_PER_MS);
    faults = sim_stream_faults(it.sim);
    faults->buffer_bytes = faults->segment_bytes_max = 1024;
    faults->delay_ns_min = faults->delay_ns_max = 10 * NS_PER_MS;
    ask(0, LIMIT_S * NS_PER_S);
    run_until_done(1);
    assert_int_equal(it.calls[0].result, 0);
    assert_int_equal(it.calls[0].bulk_in.size, BULK_BYTES);
    assert_int_equal(it.server.ran_count, 1);
    lanes_stats(it.lanes, &stats);
    assert_int_equal(stats.connected_count, 1);
    assert_int_equal(stats.broken_count, 0);
    end();
}

/* Nothing comes any more, though the other end has closed nothing. */
static void a_machine_without_power_is_silent(void **state) {
    struct lane_stats stats;

    (void)state;
    begin(100 * NS_PER_MS);
    ask(0, NS_PER_S);
    run_until_done(1);
    assert_int_equal(it.calls[0].result, 0);
    sim_power(it.server.process);
    ask(1, NS_PER_S);
    run_until_done(2);
    assert_int_equal(it.calls[1].result, -ERR_TIMED_OUT);
    lanes_stats(it.lanes, &stats);
    assert_int_equal(stats.silent_count, 1);
    end();
}

static void silent_event(struct env_stream *stream, enum env_stream_event event, int reason) {
    (void)stream;
    (void)event;
    (void)reason;
}

static void accept_silent(struct env_listener *listener, struct env_stream *stream) {
    (void)listener;
    stream->event = silent_event;
}

static bool is_unwanted(void *context) {
    (void)context;
    return true;
}

/* Its machine takes the connection, and the process stands still: who does not want to wait does so
 * no longer for its welcome than for an answer. */
static void who_wants_to_go_waits_for_no_welcome(void **state) {
    const struct env_listen_options options = {.accepted = accept_silent};
    const struct address address = {.kind = ADDRESS_UNIX, .name = "/silent"};
    struct env_listener *listener;

    (void)state;
    begin_at(&address, 5 * NS_PER_S);
    struct env *env = sim_process_env(sim_process_new(it.sim, "silent"));

    assert_int_equal(env->streams->listen(env, &address, &options, &listener), 0);
    it.calls[0].unwanted = is_unwanted;
    uint64_t start_ns = sim_now_ns(it.sim);

    ask(0, LIMIT_S * NS_PER_S);
    run_until_done(1);
    assert_int_equal(it.calls[0].result, -ERR_INTERRUPTED);
    assert_in_range(sim_now_ns(it.sim) - start_ns, 6 * NS_PER_S, 61 * NS_PER_S / 10);
    ask(1, LIMIT_S / 2 * NS_PER_S);
    run_until_done(2);
    assert_int_equal(it.calls[1].result, -ERR_TIMED_OUT);
    end();
}

static void ask_by_other(uint32_t number, uint64_t time_ns) {
    struct lane_thread *first = it.thread;

    it.thread = it.other;
    it.other = first;
    ask_for(number, OP_GETATTR, 0, time_ns);
    it.other = it.thread;
    it.thread = first;
}

/* Its process stands still, and two threads have lanes that are open: the second goes by what the
 * first has found out, instead of waiting for as long again. */
static void who_wants_to_go_goes_by_what_other_threads_know(void **state) {
    const struct lane_waker waker = {.wake = sim_gate_no_wake};

    (void)state;
    begin(5 * NS_PER_S);
    assert_int_equal(lane_thread_new(it.lanes, &waker, &it.other), 0);
    ask(0, LIMIT_S * NS_PER_S);
    ask_by_other(1, LIMIT_S * NS_PER_S);
    run_until_done(2);
    assert_int_equal(it.calls[0].result, 0);
    assert_int_equal(it.calls[1].result, 0);
    sim_power(it.server.process);
    it.calls[2].unwanted = it.calls[3].unwanted = is_unwanted;
    uint64_t start_ns = sim_now_ns(it.sim);

    ask(2, LIMIT_S * NS_PER_S);
    run_until_done(3);
    assert_int_equal(it.calls[2].result, -ERR_INTERRUPTED);
    assert_in_range(sim_now_ns(it.sim) - start_ns, 6 * NS_PER_S, 61 * NS_PER_S / 10);
    ask_by_other(3, LIMIT_S * NS_PER_S);
    run_until_done(4);
    assert_int_equal(it.calls[3].result, -ERR_INTERRUPTED);
    assert_in_range(sim_now_ns(it.sim) - start_ns, 6 * NS_PER_S, 62 * NS_PER_S / 10);
    end();
}

static bool never(void *context) {
    (void)context;
    return false;
}

/* How many requests the gate has at work while as many as may wait for a newer map. */
static uint32_t taken_beside(uint32_t waits) {
    begin(LIMIT_S * NS_PER_S);
    it.server.holds = true;
    for (uint32_t i = 0; i < CALLS; i++) {
        ask_for(i, i < waits ? OP_MAP_WAIT : OP_GETATTR, 0, LIMIT_S * NS_PER_S);
    }
    sim_run_until(it.sim, sim_now_ns(it.sim) + NS_PER_S, never, NULL);
    uint32_t taken = it.server.held_count - waits;

    sim_gate_release(&it.server);
    run_until_done(CALLS);
    for (uint32_t i = 0; i < CALLS; i++) {
        assert_int_equal(it.calls[i].result, 0);
    }
    end();
    return taken;
}

/* An answer without bulk has no memory kept for some, whatever its caller says: what waits would
 * keep all of it from those that read. */
static void what_waits_keeps_no_memory(void **state) {
    (void)state;
    begin(LIMIT_S * NS_PER_S);
    it.server.holds = true;
    for (uint32_t i = 0; i < BULKS; i++) {
        ask_for(i, OP_MAP_WAIT, BULK_BYTES, LIMIT_S * NS_PER_S);
    }
    sim_run_until(it.sim, sim_now_ns(it.sim) + NS_PER_S, never, NULL);
    assert_int_equal(it.server.held_count, BULKS);
    it.server.holds = false;
    ask(BULKS, NS_PER_S);
    run_until_done(1);
    assert_int_equal(it.calls[BULKS].result, 0);
    assert_int_equal(it.calls[BULKS].bulk_in.size, BULK_BYTES);
    sim_gate_release(&it.server);
    run_until_done(BULKS + 1);
    assert_int_equal(it.calls[0].result, 0);
    end();
}

/* Of 16 requests 6 are kept for what is more important, however many wait. */
static void what_waits_takes_no_place(void **state) {
    (void)state;
    assert_int_equal(taken_beside(0), 10);
    assert_int_equal(taken_beside(WAITS), 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_answer_is_no_silence),
        cmocka_unit_test(a_machine_without_power_is_silent),
        cmocka_unit_test(who_wants_to_go_waits_for_no_welcome),
        cmocka_unit_test(who_wants_to_go_goes_by_what_other_threads_know),
        cmocka_unit_test(what_waits_takes_no_place),
        cmocka_unit_test(what_waits_keeps_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
