/* Calls over the simulated network: everything crosses as it is; under loss, copies, delays,
 * partitions and deaths each mutation takes effect once and every call ends; garbage is refused. */
#include "base/endian.h"
#include "env/env_sim.h"
#include "rpc/call_origin.h"
#include "rpc/transport_sim.h"
#include "rpc/worker.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

enum { CALLS = 150, BULK_BYTES = 10000, RESEND_NS = 2000000, TICK_NS = 1000000, LOG = 3 };
enum { SILENT_NS = 5 * TICK_NS, PATIENCE_NS = 100 * TICK_NS };
enum { GARBAGE_SEED = 7, GARBAGE_PACKETS = 2000 };

/* The first address that nobody chose is the client's. */
#define CLIENT_ADDRESS (UINT64_C(1) << 32)
#define STRANGER (UINT64_C(1) << 40)

/* A client's call with its space. */
struct job {
    struct call call;
    char name[16];
    uint8_t out[BULK_BYTES];
    uint8_t in[BULK_BYTES];
    uint32_t checksums[8];
    bool done;
};

/* One server that remembers the outcomes of mutations, as kv does. */
struct server {
    struct actor actor;
    struct transport_sim_server *port;
    uint32_t runs[CALLS + 1]; /* by sequence */
    uint32_t query_count;
    uint32_t copy_count;
    bool holds;
    bool discards; /* copies */
    struct call *held[CALLS];
    uint32_t held_count;
};

static struct {
    struct sim *sim;
    struct sim_net *net;
    struct sim_process *client_process;
    struct sim_process *server_process;
    struct worker worker;
    struct transport_sim *transport;
    struct rpc *rpc;
    struct actor origin;
    struct env_tick tick;
    struct server server;
    struct job *jobs;
    uint32_t done_count;
} it;

static void fill(uint8_t *data, size_t size, uint64_t seed) {
    for (size_t i = 0; i < size; i++) {
        data[i] = (uint8_t)(seed + i * 7 + i / 251);
    }
}

/* Answers with what it got: bulk from another seed, checksums one higher. */
static void server_answer(struct call *call) {
    assert_int_equal(call->header.log.value, LOG);
    if (call->header.opcode == OP_MKDIR) {
        assert_int_equal(call->request.mkdir.name.size, 5);
        assert_memory_equal(call->request.mkdir.name.data, "name", 4);
        assert_int_equal(call->request.mkdir.who.group_count, 3);
        assert_int_equal(call->request.mkdir.who.groups[2], 33);
        call->reply.mkdir.attributes.mode = call->request.mkdir.mode + 1;
    } else if (call->header.opcode == OP_CHUNK_WRITE) {
        uint8_t expected[BULK_BYTES];

        fill(expected, BULK_BYTES, call->request.chunk_write.chunk);
        assert_int_equal(call->bulk_out_count, 1);
        assert_int_equal(call->bulk_out[0].size, BULK_BYTES);
        assert_int_equal((uintptr_t)call->bulk_out[0].data % BLOCK_BYTES, 0);
        assert_memory_equal(call->bulk_out[0].data, expected, BULK_BYTES);
        assert_int_equal(call->checksum_count, 3);
        assert_int_equal(call->checksums[2], 1002);
        call->reply.chunk_write.version = call->request.chunk_write.chunk;
    } else if (call->header.opcode == OP_CHUNK_READ) {
        assert_int_equal(call->bulk_in.capacity, BULK_BYTES);
        assert_int_equal(call->checksum_count, 8);
        call->bulk_in.size = BULK_BYTES - 1;
        fill(call->bulk_in.data, call->bulk_in.size, call->request.chunk_read.chunk + 1);
        call->checksum_count = 2;
        call->checksums[1] = 77;
        call->reply.chunk_read.size = BULK_BYTES - 1;
    }
    call_reply(call, 0);
}

static void server_take(struct server *server, struct call *call) {
    if (call->header.sequence == 0) {
        server->query_count++;
    } else if (server->runs[call->header.sequence] > 0) {
        server->copy_count++;
        if (server->discards) {
            call_discard(call);
            return;
        }
    } else {
        server->runs[call->header.sequence]++;
    }
    if (server->holds) {
        server->held[server->held_count++] = call;
    } else {
        server_answer(call);
    }
}

static void server_step(struct actor *actor, struct message *first) {
    struct server *server = CONTAINER_OF(actor, struct server, actor);

    while (first) {
        struct call *call = CONTAINER_OF(first, struct call, message);

        first = first->next;
        server_take(server, call);
    }
}

static void job_done(struct call *call) {
    struct job *job = CONTAINER_OF(call, struct job, call);

    assert_false(job->done);
    job->done = true;
    it.done_count++;
}

static void fire(struct env_tick *tick) {
    (void)tick;
    transport_sim_tick(it.transport);
    rpc_tick(it.rpc);
}

/* Every actor runs as an event of its own. */
static void run_actor(void *context) {
    actor_run(&it.worker, context);
}

static void schedule(struct worker *worker, struct actor *actor) {
    (void)worker;
    sim_schedule(it.sim, NULL, prng_below(sim_prng(it.sim), 3000), run_actor, actor);
}

static void serve(uint32_t calls_max) {
    struct transport_sim_server_options options = {.net = it.net,
                                                   .process = it.server_process,
                                                   .env = sim_process_env(it.server_process),
                                                   .log = {LOG},
                                                   .actor = &it.server.actor,
                                                   .calls_max = calls_max,
                                                   .bulk_bytes_max = MIB};

    actor_init(&it.server.actor, "server", server_step);
    assert_int_equal(transport_sim_serve(&options, &it.server.port), 0);
}

static void start_world(uint64_t seed) {
    struct rpc_options options = {
        .transport = &transport_sim_ops, .resend_ns = RESEND_NS, .logs_max = 4};
    struct env *env;

    memset(&it, 0, sizeof it);
    it.sim = sim_new(seed);
    it.net = sim_net_new(it.sim);
    it.client_process = sim_process_new(it.sim, "client");
    it.server_process = sim_process_new(it.sim, "server");
    worker_init(&it.worker);
    it.worker.schedule = schedule;
    worker_bind(&it.worker);
    it.jobs = calloc(CALLS, sizeof *it.jobs);
    actor_init(&it.origin, "origin", call_origin_step);
    serve(CALLS);
    assert_int_equal(transport_sim_new(it.net, it.client_process, &it.transport), 0);
    env = sim_process_env(it.client_process);
    options.transport_context = it.transport;
    options.env = env;
    assert_int_equal(rpc_new(&options, &it.rpc), 0);
    it.tick = (struct env_tick){.period_ns = TICK_NS, .fire = fire};
    env->ops->tick_start(env, &it.tick);
}

static void stop_world(void) {
    struct env *env = sim_process_env(it.client_process);

    env->ops->tick_stop(env, &it.tick);
    transport_sim_server_free(it.server.port);
    rpc_free(it.rpc);
    transport_sim_free(it.transport);
    sim_net_free(it.net);
    sim_free(it.sim);
    free(it.jobs);
    it.worker.in_step = false; /* A failed assertion leaves a step by a jump. */
    worker_bind(NULL);
}

static int set_up(void **state) {
    (void)state;
    start_world(1);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    stop_world();
    return 0;
}

static const uint32_t groups[] = {11, 22, 33};

static void job_start(uint32_t index, uint16_t opcode) {
    struct job *job = &it.jobs[index];
    struct call *call = &job->call;

    call->header.opcode = opcode;
    call->header.log.value = LOG;
    call->origin = &it.origin;
    call->done = job_done;
    if (opcode == OP_MKDIR) {
        memcpy(job->name, "name", 5);
        call->request.mkdir.name = (struct bytes){(uint8_t *)job->name, 5};
        call->request.mkdir.mode = index;
        call->request.mkdir.who = (struct credentials){1, 2, ARRAY_SIZE(groups), groups};
    } else if (opcode == OP_CHUNK_WRITE) {
        call->request.chunk_write.chunk = index;
        fill(job->out, BULK_BYTES, index);
        call->bulk_out[0] = (struct bytes){job->out, 1};
        call->bulk_out[1] = (struct bytes){job->out + 1, 5000};
        call->bulk_out[2] = (struct bytes){job->out + 5001, BULK_BYTES - 5001};
        call->bulk_out_count = 3;
        for (uint32_t i = 0; i < 3; i++) {
            job->checksums[i] = 1000 + i;
        }
        call->checksums = job->checksums;
        call->checksum_count = 3;
    } else if (opcode == OP_CHUNK_READ) {
        call->request.chunk_read.chunk = index;
        call->bulk_in = (struct buffer){.data = job->in, .capacity = BULK_BYTES};
        call->checksums = job->checksums;
        call->checksum_count = 8;
    }
    call_start(it.rpc, call);
}

static void job_check(uint32_t index) {
    struct job *job = &it.jobs[index];
    uint8_t expected[BULK_BYTES];

    assert_true(job->done);
    assert_int_equal(job->call.result, 0);
    if (job->call.header.opcode == OP_MKDIR) {
        assert_int_equal(job->call.reply.mkdir.attributes.mode, index + 1);
    } else if (job->call.header.opcode == OP_CHUNK_WRITE) {
        assert_int_equal(job->call.reply.chunk_write.version, index);
    } else {
        fill(expected, BULK_BYTES - 1, index + 1);
        assert_int_equal(job->call.bulk_in.size, BULK_BYTES - 1);
        assert_memory_equal(job->in, expected, BULK_BYTES - 1);
        assert_int_equal(job->call.checksum_count, 2);
        assert_int_equal(job->checksums[1], 77);
    }
}

static const uint16_t opcodes[] = {OP_MKDIR, OP_CHUNK_WRITE, OP_CHUNK_READ};

static void start_all(void) {
    for (uint32_t i = 0; i < CALLS; i++) {
        job_start(i, opcodes[i % ARRAY_SIZE(opcodes)]);
    }
}

static bool all_done(void *context) {
    return it.done_count == *(uint32_t *)context;
}

/* Whether that many are done within so much simulated time. */
static bool run_until_done(uint32_t count, uint64_t time_ns) {
    return sim_run_until(it.sim, sim_now_ns(it.sim) + time_ns, all_done, &count) == SIM_DONE;
}

static void run_for(uint64_t time_ns) {
    (void)sim_run_until(it.sim, sim_now_ns(it.sim) + time_ns, NULL, NULL);
}

static void check_all(void) {
    for (uint32_t i = 0; i < CALLS; i++) {
        job_check(i);
    }
    for (uint32_t i = 1; i <= 2 * CALLS / 3; i++) {
        assert_int_equal(it.server.runs[i], 1);
    }
    assert_int_equal(rpc_in_flight(it.rpc), 0);
}

static void everything_crosses(void **state) {
    (void)state;
    start_all();
    assert_true(run_until_done(CALLS, NS_PER_S));
    check_all();
    assert_int_equal(it.server.copy_count, 0);
    assert_int_equal(sim_counter(it.sim, "calls sent"), CALLS);
}

static uint64_t run_with_faults(uint64_t seed) {
    uint64_t hash;

    start_world(seed);
    *sim_net_faults(it.net) = (struct sim_net_faults){.delay_ns_min = 1000,
                                                      .delay_ns_max = RESEND_NS,
                                                      .drop_per_million = 200000,
                                                      .double_per_million = 200000,
                                                      .slow_per_million = 100000,
                                                      .slow_ns = 10 * (uint64_t)RESEND_NS};
    start_all();
    assert_true(run_until_done(CALLS, 100 * NS_PER_S));
    check_all();
    assert_true(it.server.copy_count > 0);
    assert_true(sim_counter(it.sim, "packets dropped") > 0);
    assert_true(sim_counter(it.sim, "packets doubled") > 0);
    assert_true(sim_counter(it.sim, "packets slow") > 0);
    run_for(NS_PER_S);
    assert_true(sim_counter(it.sim, "replies late") > 0);
    assert_int_equal(sim_counter(it.sim, "replies malformed"), 0);
    hash = sim_trace_hash(it.sim);
    stop_world();
    return hash;
}

/* Lost, doubled, late and out of order: each mutation once, every call answered; the same again
 * from the same seed. */
static void faults_are_survived(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        uint64_t first = run_with_faults(seed);

        assert_int_equal(first, run_with_faults(seed));
        assert_int_not_equal(first, run_with_faults(seed + 100));
    }
}

/* Requests arrive, replies don't: copies are answered when the way back is there again. */
static void one_way_partition(void **state) {
    (void)state;
    sim_net_cut(it.net, it.server_process, it.client_process, true);
    start_all();
    assert_false(run_until_done(1, 50 * RESEND_NS));
    assert_true(it.server.runs[1] == 1 && it.server.copy_count > 0);
    assert_true(sim_counter(it.sim, "packets cut off") > 0);
    sim_net_heal(it.net);
    assert_true(run_until_done(CALLS, 20 * RESEND_NS));
    check_all();
}

/* Past the deadline a call ends without its answer, which is late when it comes. */
static void deadlines_end_calls(void **state) {
    (void)state;
    it.server.holds = true;
    it.jobs[0].call.deadline_ns =
        env_now_ns(sim_process_env(it.client_process)) + 3 * (uint64_t)RESEND_NS;
    job_start(0, OP_CHUNK_READ);
    it.jobs[1].call.deadline_ns = it.jobs[0].call.deadline_ns;
    job_start(1, OP_MKDIR);
    assert_true(run_until_done(2, 5 * RESEND_NS));
    assert_int_equal(it.jobs[0].call.result, -ERR_TIMED_OUT);
    assert_int_equal(it.jobs[1].call.result, -ERR_TIMED_OUT);
    assert_int_equal(rpc_in_flight(it.rpc), 0);
    memset(it.jobs, 0xee, sizeof *it.jobs); /* the caller's again */
    for (uint32_t i = 0; i < it.server.held_count; i++) {
        server_answer(it.server.held[i]);
    }
    run_for(RESEND_NS);
    assert_int_equal(sim_counter(it.sim, "replies late"), it.server.held_count);
    for (size_t i = 0; i < sizeof it.jobs[0]; i++) {
        assert_int_equal(((uint8_t *)&it.jobs[0])[i], 0xee);
    }
}

/* The reply to a call that is over must not be taken for one to the call that came after it. */
static void late_replies_are_nobody_elses(void **state) {
    struct call *first;

    (void)state;
    it.server.holds = true;
    it.jobs[0].call.deadline_ns = env_now_ns(sim_process_env(it.client_process)) + RESEND_NS / 8;
    job_start(0, OP_GETATTR);
    assert_true(run_until_done(1, RESEND_NS));
    first = it.server.held[0];
    job_start(1, OP_GETATTR);
    run_for(RESEND_NS / 2);
    assert_int_equal(it.server.held_count, 2);
    first->reply.getattr.attributes.size = 1111;
    call_reply(first, 0);
    run_for(RESEND_NS / 4);
    assert_int_equal(sim_counter(it.sim, "replies late"), 1);
    assert_false(it.jobs[1].done);
    it.server.held[1]->reply.getattr.attributes.size = 2222;
    call_reply(it.server.held[1], 0);
    assert_true(run_until_done(2, RESEND_NS));
    assert_int_equal(it.jobs[1].call.reply.getattr.attributes.size, 2222);
}

static void cancelled_calls_end(void **state) {
    (void)state;
    it.server.holds = true;
    job_start(0, OP_MKDIR);
    run_for(RESEND_NS / 2);
    call_cancel(&it.jobs[0].call);
    assert_true(run_until_done(1, 2 * TICK_NS));
    assert_int_equal(it.jobs[0].call.result, -ERR_INTERRUPTED);
}

/* A server that is down swallows; its successor answers what is sent again. */
static void server_dies_and_returns(void **state) {
    (void)state;
    it.server.holds = true;
    start_all();
    run_for(RESEND_NS / 2);
    assert_true(it.server.held_count > 0);
    sim_kill(it.server_process);
    run_for(20 * RESEND_NS);
    assert_int_equal(it.done_count, 0);
    assert_true(sim_counter(it.sim, "packets swallowed") > 0);
    transport_sim_server_free(it.server.port);
    (void)sim_restart(it.server_process);
    memset(&it.server, 0, sizeof it.server);
    serve(CALLS);
    assert_true(run_until_done(CALLS, 20 * RESEND_NS));
    check_all();
}

/* A client that died leaves replies that nobody takes. */
static void client_dies(void **state) {
    struct env *env = sim_process_env(it.client_process);

    (void)state;
    it.server.holds = true;
    job_start(0, OP_MKDIR);
    run_for(RESEND_NS / 2);
    env->ops->tick_stop(env, &it.tick);
    sim_kill(it.client_process);
    server_answer(it.server.held[0]);
    run_for(RESEND_NS);
    assert_int_equal(sim_counter(it.sim, "packets swallowed"), 1);
    assert_int_equal(it.done_count, 0);
}

/* Out of twins: busy, and tried again until there is one. */
static void full_pool_is_busy(void **state) {
    (void)state;
    transport_sim_server_free(it.server.port);
    serve(2);
    start_all();
    assert_true(run_until_done(CALLS, 100 * NS_PER_S));
    check_all();
    assert_true(sim_counter(it.sim, "calls busy") > 0);
}

static void watch(void) {
    transport_sim_watch(it.transport, sim_process_env(it.client_process), SILENT_NS);
}

static void patient_start(uint32_t index, uint64_t deadline_ns) {
    it.jobs[index].call.patience_ns = PATIENCE_NS;
    it.jobs[index].call.deadline_ns = env_now_ns(sim_process_env(it.client_process)) + deadline_ns;
    job_start(index, OP_GETATTR);
}

static void server_go(void) {
    sim_kill(it.server_process);
    transport_sim_server_free(it.server.port);
    it.server.port = NULL;
}

/* Once it has been away for as long as a call's patience that one ends, whenever its own time would
 * have been up, and later ones end at once, until somebody is there again. */
static void patience_counts_from_the_absence(void **state) {
    const struct log_id log = {LOG};
    const struct log_id other = {LOG + 1};

    (void)state;
    watch();
    job_start(0, OP_GETATTR);
    assert_true(run_until_done(1, RESEND_NS));
    server_go();
    patient_start(1, 2 * PATIENCE_NS);
    patient_start(2, 4 * SILENT_NS); /* it would be over long before */
    run_for(PATIENCE_NS - 10 * TICK_NS);
    assert_int_equal(it.done_count, 1);
    assert_true(rpc_is_away(it.rpc, log) && rpc_is_away(it.rpc, (struct log_id){0}));
    assert_false(rpc_is_away(it.rpc, other));
    assert_true(run_until_done(3, 20 * TICK_NS));
    assert_int_equal(it.jobs[1].call.result, -ERR_AWAY);
    assert_int_equal(it.jobs[2].call.result, -ERR_AWAY);
    patient_start(3, 2 * PATIENCE_NS);
    assert_true(run_until_done(4, 2 * TICK_NS));
    assert_int_equal(it.jobs[3].call.result, -ERR_AWAY);
    assert_false(it.jobs[3].call.was_sent);
    /* Found out by nobody's call. */
    (void)sim_restart(it.server_process);
    serve(CALLS);
    run_for(3 * TICK_NS);
    assert_false(rpc_is_away(it.rpc, log) || rpc_is_away(it.rpc, (struct log_id){0}));
    patient_start(4, 2 * PATIENCE_NS);
    assert_true(run_until_done(5, RESEND_NS));
    assert_int_equal(it.jobs[4].call.result, 0);
}

/* Who is at work on it is there. */
static void who_works_is_not_away(void **state) {
    (void)state;
    watch();
    it.server.holds = true;
    patient_start(0, 10 * PATIENCE_NS);
    run_for(3 * PATIENCE_NS);
    assert_int_equal(it.done_count, 0);
    assert_false(rpc_is_away(it.rpc, (struct log_id){LOG}));
    call_reply(it.server.held[0], 0);
    assert_true(run_until_done(1, RESEND_NS));
    assert_int_equal(it.jobs[0].call.result, 0);
}

static bool nobody_wants(void *context) {
    return *(bool *)context;
}

/* What nobody wants any more ends where its server is known to be away, and there only. */
static void unwanted_calls_end_of_one_that_is_away(void **state) {
    bool unwanted = true;

    (void)state;
    watch();
    it.server.holds = true;
    for (uint32_t i = 0; i < 3; i++) {
        it.jobs[i].call.unwanted = nobody_wants;
        it.jobs[i].call.unwanted_context = &unwanted;
    }
    patient_start(0, 10 * PATIENCE_NS);
    run_for(4 * SILENT_NS);
    assert_int_equal(it.done_count, 0);
    server_go();
    assert_true(run_until_done(1, 4 * SILENT_NS));
    assert_int_equal(it.jobs[0].call.result, -ERR_INTERRUPTED);
    patient_start(1, 10 * PATIENCE_NS);
    assert_true(run_until_done(2, 2 * TICK_NS));
    assert_int_equal(it.jobs[1].call.result, -ERR_INTERRUPTED);
    unwanted = false;
    patient_start(2, 10 * PATIENCE_NS);
    run_for(2 * SILENT_NS);
    assert_int_equal(it.done_count, 2);
    unwanted = true;
    assert_true(run_until_done(3, 2 * TICK_NS));
    assert_int_equal(it.jobs[2].call.result, -ERR_INTERRUPTED);
}

/* Two of a mutation at the server at once: one is discarded, the other answers. */
static void discarded_copies(void **state) {
    uint32_t held;

    (void)state;
    it.server.holds = true;
    it.server.discards = true;
    job_start(0, OP_MKDIR);
    run_for(4 * RESEND_NS);
    held = it.server.held_count;
    assert_int_equal(held, 1);
    assert_true(it.server.copy_count > 0);
    server_answer(it.server.held[0]);
    assert_true(run_until_done(1, RESEND_NS / 2));
    job_check(0);
}

/* Whatever bytes come, at either end: counted, nothing else. What is left of a request that can be
 * answered gets an error. */
static void garbage_does_no_harm(void **state) {
    struct sim_port *stranger = sim_net_bind(it.net, it.client_process, STRANGER, NULL, NULL);
    struct prng prng;

    (void)state;
    print_message("seed %d\n", GARBAGE_SEED);
    prng_init(&prng, GARBAGE_SEED);
    it.server.holds = true;
    job_start(0, OP_GETATTR);
    run_for(RESEND_NS / 2);
    for (uint32_t i = 0; i < GARBAGE_PACKETS; i++) {
        size_t size = prng_below(&prng, 9000);
        struct sim_packet *packet = sim_packet_new(size);

        for (size_t j = 0; j < size; j++) {
            packet->data[j] = (uint8_t)prng_next(&prng);
        }
        /* A head of some size and, in most, an opcode that there is. */
        if (size >= 8) {
            store_le32(packet->data, (uint32_t)prng_below(&prng, 256));
            store_le16(packet->data + 4, (uint16_t)prng_below(&prng, 160));
            store_le16(packet->data + 6, (uint16_t)prng_below(&prng, OPCODE_COUNT));
        }
        sim_net_send(stranger, i % 2 ? LOG : CLIENT_ADDRESS, packet);
    }
    sim_net_unbind(stranger);
    run_for(RESEND_NS);
    assert_in_range(sim_counter(it.sim, "requests malformed"), GARBAGE_PACKETS / 4,
                    GARBAGE_PACKETS / 2);
    assert_in_range(sim_counter(it.sim, "replies malformed"), GARBAGE_PACKETS / 4,
                    GARBAGE_PACKETS / 2);
    assert_int_equal(it.done_count, 0);
    for (uint32_t i = 0; i < it.server.held_count; i++) {
        call_reply(it.server.held[i], 0);
    }
    assert_true(run_until_done(1, RESEND_NS));
    assert_int_equal(it.jobs[0].call.result, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(everything_crosses),
        cmocka_unit_test(faults_are_survived),
        TEST(one_way_partition),
        TEST(deadlines_end_calls),
        TEST(late_replies_are_nobody_elses),
        TEST(cancelled_calls_end),
        TEST(server_dies_and_returns),
        TEST(client_dies),
        TEST(full_pool_is_busy),
        TEST(patience_counts_from_the_absence),
        TEST(who_works_is_not_away),
        TEST(unwanted_calls_end_of_one_that_is_away),
        TEST(discarded_copies),
        TEST(garbage_does_no_harm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
