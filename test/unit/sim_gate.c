/* The contract is in sim_gate.h. */
#include "sim_gate.h"
#include "unit.h"
#include <string.h>

static struct sim_gate *it;

struct log_id sim_gate_log(void) {
    return (struct log_id){77};
}

struct address sim_gate_address(void) {
    return (struct address){.kind = ADDRESS_UNIX, .name = "/server"};
}

void sim_gate_no_wake(void *context) {
    (void)context;
}

void sim_gate_origin_step(struct actor *actor, struct message *first) {
    (void)actor;
    while (first) {
        struct message *message = first;

        first = first->next;
        call_done_message(message);
    }
}

static void enter(void *context) {
    (void)context;
    worker_bind(&it->worker);
}

static void leave(void *context) {
    struct gate_stats stats;

    (void)context;
    while (worker_run_one(&it->worker) || gate_turn(it->gate)) {
    }
    gate_stats(it->gate, &stats);
    it->connections_most = MAX(it->connections_most, stats.connection_count);
    worker_bind(NULL);
}

static void tick_fire(struct env_tick *tick) {
    (void)tick;
    gate_tick(it->gate);
}

static void step(struct actor *actor, struct message *first) {
    (void)actor;
    while (first) {
        struct call *call = CONTAINER_OF(first, struct call, message);

        first = first->next;
        it->ran_count++;
        if (it->holds) {
            assert_true(it->held_count < SIM_GATE_HELD);
            it->held[it->held_count++] = call;
            continue;
        }
        if (call->bulk_in.capacity > 0) {
            memset(call->bulk_in.data, 'b', call->bulk_in.capacity);
        }
        call->bulk_in.size = call->bulk_in.capacity;
        call_reply(call, 0);
    }
}

void sim_gate_begin(struct sim_gate *server, struct sim *sim, const struct gate_options *options) {
    struct gate_options own = *options;
    struct address address = sim_gate_address();

    *server = (struct sim_gate){.process = sim_process_new(sim, "server")};
    server->env = sim_process_env(server->process);
    it = server;
    assert_int_equal(log_table_new(1, &server->logs), 0);
    actor_init(&server->actor, "server", step);
    assert_int_equal(log_table_add(server->logs, sim_gate_log(), &server->actor), 0);
    own.env = server->env;
    own.self = (struct lane_identity){.node = {1}, .life = {1, 2}};
    own.logs = server->logs;
    own.waker = (struct lane_waker){.wake = sim_gate_no_wake};
    worker_init(&server->worker);
    enter(NULL);
    assert_int_equal(gate_new(&own, &server->gate), 0);
    assert_int_equal(gate_listen(server->gate, &address), 0);
    worker_bind(NULL);
    server->tick = (struct env_tick){.period_ns = SIM_GATE_TICK_MS * NS_PER_MS, .fire = tick_fire};
    server->env->ops->tick_start(server->env, &server->tick);
    sim_process_set_hooks(server->process, &(struct sim_hooks){enter, leave, NULL});
}

void sim_gate_release(struct sim_gate *server) {
    enter(NULL);
    server->holds = false;
    while (server->held_count > 0) {
        call_reply(server->held[--server->held_count], 0);
    }
    leave(NULL);
}

void sim_gate_end(struct sim_gate *server) {
    enter(NULL);
    gate_abandon(server->gate);
    worker_bind(NULL);
    log_table_free(server->logs);
}
