/* The manager against targets that only count what they are told, and of the list of the ended keep
 * what an OST keeps: sessions begin, renew and end,
 * predecessors and the silent are evicted, and a restart goes on where it was cut off. */
#include "unit.h"
#include "env/env_sim.h"
#include "kv/kv_mem.h"
#include "keys/ticket.h"
#include "manager/manager.h"
#include "rpc/transport_inproc.h"
#include "rpc/worker.h"
#include <stdlib.h>
#include <string.h>

enum { MANAGER = 1, MDT = 2, OST = 10, TARGETS = 3, HELD = 8, IDS = 4096 };

struct target {
    struct actor actor; /* first */
    uint32_t told;
    uint64_t ended_told; /* a group: of all ends up to here */
    uint64_t number, lowest, everywhere; /* of an OST: of the list of the ended */
    bool ended[IDS];
    uint32_t wholes;  /* messages of bits */
    uint64_t session; /* of the last one */
    uint64_t incarnation;
    int result;
    bool hold;
    struct call *held[HELD];
    uint32_t held_count;
};

struct bench {
    struct sim *sim;
    struct sim_process *process;
    struct env *env;
    struct worker worker;
    struct log_table *logs;
    struct rpc *rpc; /* the manager's */
    struct rpc *client_rpc;
    struct actor origin;
    struct kv_mem_store *store;
    struct prng prng;
    struct cluster_map map;
    struct manager *manager;
    struct key_ring *keys;
    struct target targets[TARGETS];
    bool has_no_room; /* for tickets, in what ask_as asks */
};

/* A call of a client. */
struct asked {
    struct call call; /* first */
    uint8_t ticket[TICKET_BYTES_MAX];
    bool done;
};

static void origin_step(struct actor *actor, struct message *first) {
    (void)actor;
    while (first) {
        struct message *message = first;

        first = first->next;
        call_done_message(message);
    }
}

static void names_take(struct target *target, const struct sessions_ended_request *body) {
    const uint8_t *names = body->names.data;

    for (size_t i = 0; i < 8 * body->names.size; i++) {
        uint64_t session = body->first != 0 ? body->first + i : load_le64(names + i / 64 * 8);

        assert_true(session < IDS);
        target->ended[session] |= body->first == 0 || (names[i / 8] >> i % 8 & 1);
    }
    target->wholes += body->first != 0;
    target->everywhere = body->everywhere;
    if (body->from == target->number) {
        assert_true(body->lowest >= target->lowest || body->lowest == 0);
        target->lowest = MAX(target->lowest, body->lowest);
        target->number = body->number;
    }
}

static bool is_ended(const struct target *target, uint64_t session) {
    return session < target->lowest || target->ended[session];
}

static void target_answer(struct target *target, struct call *call) {
    if (call->header.opcode == OP_SESSIONS_ENDED) {
        target->result == 0 ? names_take(target, &call->request.sessions_ended) : (void)0;
        call->reply.sessions_ended.number = target->number;
        call_reply(call, target->result);
        return;
    }
    target->told++;
    target->session = call->request.session_evict.session;
    target->incarnation = call->request.session_evict.incarnation;
    call_reply(call, target->result);
}

static void target_step(struct actor *actor, struct message *first) {
    struct target *target = CONTAINER_OF(actor, struct target, actor);

    while (first) {
        struct call *call = CONTAINER_OF(first, struct call, message);

        first = first->next;
        if (call->header.opcode == OP_GROUP_TELL) {
            target->ended_told = call->request.group_tell.ended;
            call_reply(call, target->result);
            continue;
        }
        assert_true(call->header.opcode == OP_SESSION_EVICT ||
                    call->header.opcode == OP_SESSIONS_ENDED);
        if (target->hold) {
            assert_true(target->held_count < HELD);
            target->held[target->held_count++] = call;
        } else {
            target_answer(target, call);
        }
    }
}

static void target_release(struct target *target) {
    target->hold = false;
    while (target->held_count > 0) {
        target_answer(target, target->held[--target->held_count]);
    }
}

static struct rpc *rpc_make(struct bench *bench) {
    struct rpc_options options = {
        .transport = &transport_inproc_ops,
        .transport_context = bench->logs,
        .env = bench->env,
        .resend_ns = 10 * NS_PER_MS,
        .logs_max = 16,
    };
    struct rpc *rpc;

    assert_int_equal(rpc_new(&options, &rpc), 0);
    return rpc;
}

static void manager_begins(struct bench *bench) {
    struct manager_options options = {
        .env = bench->env,
        .kv = {.env = bench->env,
               .directory = "manager",
               .shared_name = "manager",
               .base = &kv_mem_ops,
               .base_store = bench->store,
               .owner_id = {1},
               .ring_bytes = 128 * KIB,
               .disk_log_bytes = 2 * MIB,
               .changes_bytes_max = 16 * MIB,
               .base_memory_bytes = MIB,
               .sync_interval_ns = NS_PER_S},
        .rpc = bench->rpc,
        .map = &bench->map,
        .target = {MANAGER},
        .keys = bench->keys,
        .sessions_max = 8,
    };
    char problem[256];

    if (manager_open(&options, &bench->manager, problem)) {
        fail_msg("%s", problem);
    }
    assert_int_equal(log_table_add(bench->logs, LOG_MANAGER, manager_actor(bench->manager)), 0);
}

static int setup_with(void **state, struct key_ring *keys) {
    struct bench *bench = calloc(1, sizeof *bench);
    static const uint32_t ids[TARGETS] = {MDT, OST, OST + 1};
    struct target_id osts[2] = {{OST}, {OST + 1}};
    struct kv_mem_options store = {&bench->prng, 30, 100};

    prng_init(&bench->prng, 1);
    bench->sim = sim_new(1);
    bench->process = sim_process_new(bench->sim, "manager");
    bench->env = sim_process_env(bench->process);
    worker_init(&bench->worker);
    worker_bind(&bench->worker);
    actor_init(&bench->origin, "origin", origin_step);
    assert_int_equal(log_table_new(16, &bench->logs), 0);
    bench->rpc = rpc_make(bench);
    bench->client_rpc = rpc_make(bench);
    assert_int_equal(kv_mem_store_new(&store, &bench->store), 0);
    assert_int_equal(bench->env->ops->directory_make(bench->env, "manager"), 0);
    for (int i = 0; i < TARGETS; i++) {
        actor_init(&bench->targets[i].actor, "target", target_step);
        assert_int_equal(
            log_table_add(bench->logs,
                          cluster_map_first_log(&bench->map, (struct target_id){ids[i]}),
                          &bench->targets[i].actor),
            0);
    }
    cluster_map_single(&bench->map, (struct target_id){MDT}, osts, 2);
    bench->map.version = 5;
    bench->keys = keys;
    manager_begins(bench);
    *state = bench;
    return 0;
}

static int setup(void **state) {
    return setup_with(state, NULL);
}

static int setup_with_keys(void **state) {
    const struct secret secret = {{4, 5, 6}};
    struct key_ring *keys;
    struct key_file file;

    key_file_make(&secret, &file);
    assert_int_equal(key_ring_new(&file, &keys), 0);
    return setup_with(state, keys);
}

static void note_flag(void *context) {
    *(bool *)context = true;
}

static bool is_set(void *context) {
    return *(bool *)context;
}

/* Lets time pass, with ticks. */
static void pass(struct bench *bench, uint64_t ns) {
    for (uint64_t done = 0; done < ns; done += 100 * NS_PER_MS) {
        bool flag = false;

        sim_schedule(bench->sim, NULL, 100 * NS_PER_MS, note_flag, &flag);
        sim_run_until(bench->sim, UINT64_MAX, is_set, &flag);
        if (bench->manager) {
            manager_tick(bench->manager);
        }
        while (worker_run_one(&bench->worker)) {
        }
    }
}

static void note_stopped(void *context, int result) {
    *(int *)context = result;
}

static int manager_ends(struct bench *bench) {
    int result = 1;

    manager_stop_start(bench->manager, note_stopped, &result);
    pass(bench, 5 * NS_PER_S);
    log_table_remove(bench->logs, LOG_MANAGER);
    manager_abandon(bench->manager);
    bench->manager = NULL;
    return result;
}

static int teardown(void **state) {
    struct bench *bench = *state;

    if (bench->manager) {
        assert_int_equal(manager_ends(bench), 0);
    }
    rpc_free(bench->rpc);
    rpc_free(bench->client_rpc);
    log_table_free(bench->logs);
    worker_bind(NULL);
    sim_free(bench->sim);
    kv_mem_store_free(bench->store);
    key_ring_free(bench->keys);
    free(bench);
    return 0;
}

static void asked_done(struct call *call) {
    ((struct asked *)call)->done = true;
}

/* Its caller waits for so long; 0: without end. */
static void start_for(struct bench *bench, struct asked *asked, uint64_t patience_ns,
                      uint16_t opcode, union request_body request) {
    uint64_t now_ns = env_now_ns(bench->env);

    *asked = (struct asked){.call = {.header = {.opcode = opcode, .log = LOG_MANAGER},
                                     .request = request,
                                     .origin = &bench->origin,
                                     .done = asked_done,
                                     .deadline_ns = patience_ns ? now_ns + patience_ns : 0}};
    if (opcode == OP_SESSION_BEGIN) {
        asked->call.bulk_in = (struct buffer){asked->ticket, 0, sizeof asked->ticket};
    }
    call_start(bench->client_rpc, &asked->call);
}

static void start(struct bench *bench, struct asked *asked, uint16_t opcode,
                  union request_body request) {
    start_for(bench, asked, 0, opcode, request);
}

static union request_body end_of(uint64_t session, uint64_t incarnation) {
    return (union request_body){.session_end = {.session = session, .incarnation = incarnation}};
}

static union request_body begin_of(uint32_t node, uint64_t incarnation, const char *origin) {
    return (union request_body){
        .session_begin = {node, incarnation, {(const uint8_t *)origin, strlen(origin)}}};
}

static int ask(struct bench *bench, struct asked *asked, uint16_t opcode,
               union request_body request) {
    start(bench, asked, opcode, request);
    for (int i = 0; i < 100 && !asked->done; i++) {
        pass(bench, 100 * NS_PER_MS);
    }
    assert_true(asked->done);
    return asked->call.result;
}

static uint64_t begin(struct bench *bench, uint32_t node, uint64_t incarnation,
                      const char *origin) {
    struct asked asked;

    assert_int_equal(ask(bench, &asked, OP_SESSION_BEGIN, begin_of(node, incarnation, origin)), 0);
    assert_int_equal(asked.call.reply.session_begin.map_version, 5);
    return asked.call.reply.session_begin.session;
}

static int renew(struct bench *bench, uint64_t session, uint64_t incarnation) {
    struct asked asked;

    return ask(
        bench, &asked, OP_SESSION_RENEW,
        (union request_body){.session_renew = {.session = session, .incarnation = incarnation}});
}

static uint32_t told(const struct bench *bench) {
    uint32_t sum = 0;

    for (int i = 0; i < TARGETS; i++) {
        sum += bench->targets[i].told;
    }
    return sum;
}

static void test_sessions_begin_renew_and_end(void **state) {
    struct bench *bench = *state;
    struct asked asked;
    uint64_t first = begin(bench, 1, 100, "/mnt");
    uint64_t second = begin(bench, 2, 100, "/mnt");

    assert_true(first > 0 && second > first);
    assert_int_equal(manager_session_count(bench->manager), 2);
    assert_int_equal(renew(bench, first, 100), 0);
    assert_int_equal(renew(bench, first, 99), -ERR_FENCED);
    assert_int_equal(renew(bench, 999, 100), -ERR_UNKNOWN_SESSION);
    assert_int_equal(ask(bench, &asked, OP_SESSION_END, end_of(first, 99)), -ERR_FENCED);
    assert_int_equal(told(bench), 0);
    assert_int_equal(
        ask(bench, &asked, OP_SESSION_END, (union request_body){.session_end = {first, 100}}), 0);
    assert_int_equal(told(bench), 1);
    assert_int_equal(bench->targets[0].session, first);
    assert_int_equal(bench->targets[0].incarnation, 100);
    assert_int_equal(renew(bench, first, 100), -ERR_UNKNOWN_SESSION);
    assert_int_equal(renew(bench, second, 100), 0);
    assert_int_equal(manager_session_count(bench->manager), 1);
    assert_int_equal(ask(bench, &asked, OP_SESSION_BEGIN, begin_of(3, 0, "/mnt")), -ERR_INVALID);
    assert_int_equal(ask(bench, &asked, OP_LOOKUP, (union request_body){0}), -ERR_NOT_SUPPORTED);
}

/* A group that has no room is told again; who ends its session does not wait for that. */
static void test_end_does_not_wait_for_room(void **state) {
    struct bench *bench = *state;
    uint64_t first = begin(bench, 1, 100, "/mnt");
    struct asked asked;

    bench->targets[0].result = -ERR_NO_SPACE;
    assert_int_equal(ask(bench, &asked, OP_SESSION_END, end_of(first, 100)), -ERR_NO_SPACE);
    assert_int_equal(renew(bench, first, 100), -ERR_FENCED);
    pass(bench, 2 * NS_PER_S);
    assert_true(bench->targets[0].told > 2);
    assert_true(is_ended(&bench->targets[2], first)); /* The others need not wait for it. */
    assert_int_equal(manager_ending_count(bench->manager), 1);
    bench->targets[0].result = 0;
    pass(bench, NS_PER_S);
    assert_int_equal(manager_ending_count(bench->manager), 0);
    assert_int_equal(renew(bench, first, 100), -ERR_UNKNOWN_SESSION);
}

/* In process nobody but the manager can end what it holds: it does when the deadline has passed, or
 * the caller has cancelled. What was set in motion goes on. */
static void test_gives_up_what_it_holds(void **state) {
    struct bench *bench = *state;
    uint64_t first = begin(bench, 1, 100, "/mnt");
    struct asked successor;
    struct asked end;
    struct asked cancelled;
    struct asked patient;

    bench->targets[0].hold = true;
    start_for(bench, &successor, 5 * NS_PER_S, OP_SESSION_BEGIN, begin_of(1, 101, "/mnt"));
    start_for(bench, &end, 7 * NS_PER_S, OP_SESSION_END, end_of(first, 100));
    start(bench, &cancelled, OP_SESSION_END, end_of(first, 100));
    start(bench, &patient, OP_SESSION_END, end_of(first, 100));
    pass(bench, 4 * NS_PER_S);
    assert_false(end.done || cancelled.done || patient.done);
    /* It may begin: the group lets it in when it knows of the end. */
    assert_true(successor.done);
    assert_int_equal(successor.call.result, 0);
    call_cancel(&cancelled.call);
    pass(bench, 2 * NS_PER_S);
    assert_true(cancelled.done);
    assert_int_equal(cancelled.call.result, -ERR_INTERRUPTED);
    assert_false(end.done);
    pass(bench, 2 * NS_PER_S);
    assert_true(end.done);
    assert_int_equal(end.call.result, -ERR_TIMED_OUT);
    assert_false(patient.done);
    target_release(&bench->targets[0]);
    pass(bench, 10 * NS_PER_S);
    assert_true(patient.done);
    assert_int_equal(patient.call.result, 0);
    assert_int_equal(renew(bench, first, 100), -ERR_UNKNOWN_SESSION);
    assert_int_equal(manager_session_count(bench->manager), 1);
}

/* The second copy of a beginning is the same session; a new life is another. The number that it
 * begins with is of a list that names the old one's end; a group is told that it has heard of all
 * up to there when it has. */
static void test_predecessor_goes_first(void **state) {
    struct bench *bench = *state;
    uint64_t first = begin(bench, 1, 100, "/mnt");
    struct asked asked;

    assert_int_equal(begin(bench, 1, 100, "/mnt"), first);
    assert_int_not_equal(begin(bench, 1, 100, "/other"), first);
    assert_int_equal(told(bench), 0);
    bench->targets[0].hold = true;
    bench->targets[2].result = -ERR_IO;
    start(bench, &asked, OP_SESSION_BEGIN, begin_of(1, 101, "/mnt"));
    pass(bench, 3 * NS_PER_S);
    assert_true(asked.done);
    assert_int_equal(asked.call.result, 0);
    assert_true(asked.call.reply.session_begin.session > first);
    uint64_t number = asked.call.reply.session_begin.ended;
    assert_int_equal(renew(bench, first, 100), -ERR_FENCED);
    assert_true(bench->targets[0].ended_told < number);
    target_release(&bench->targets[0]);
    pass(bench, 3 * NS_PER_S);
    assert_int_equal(bench->targets[0].ended_told, number);
    assert_true(bench->targets[2].number < number);
    assert_false(is_ended(&bench->targets[2], first));
    assert_int_equal(bench->targets[1].number, number);
    assert_true(is_ended(&bench->targets[1], first));
    bench->targets[2].result = 0;
    pass(bench, 3 * NS_PER_S);
    assert_int_equal(bench->targets[2].number, number);
    assert_true(is_ended(&bench->targets[2], first));
    assert_false(is_ended(&bench->targets[2], asked.call.reply.session_begin.session));
    assert_int_equal(renew(bench, first, 100), -ERR_UNKNOWN_SESSION);
}

static void test_silence_ends_a_session(void **state) {
    struct bench *bench = *state;
    uint64_t quiet = begin(bench, 1, 100, "/mnt");
    uint64_t lively = begin(bench, 2, 100, "/mnt");

    for (int i = 0; i < 18; i++) {
        pass(bench, 2 * NS_PER_S);
        assert_int_equal(renew(bench, lively, 100), 0);
        if (i < 12) {
            assert_int_equal(told(bench), 0);
        }
    }
    assert_int_equal(told(bench), 1);
    assert_int_equal(bench->targets[0].session, quiet);
    assert_true(is_ended(&bench->targets[1], quiet) && is_ended(&bench->targets[2], quiet));
    assert_false(is_ended(&bench->targets[1], lively));
    assert_int_equal(manager_session_count(bench->manager), 1);
}

/* Stopped for longer than a session may be silent, the manager has not listened: whoever is quiet
 * is given the rest of the time once it goes on. */
static void test_a_stopped_manager_evicts_nobody(void **state) {
    struct bench *bench = *state;
    uint64_t quiet = begin(bench, 1, 100, "/mnt");
    uint64_t lively = begin(bench, 2, 100, "/mnt");

    pass(bench, 20 * NS_PER_S);
    for (int stop = 0; stop < 3; stop++) {
        bool flag = false;

        sim_schedule(bench->sim, NULL, 40 * NS_PER_S, note_flag, &flag);
        sim_run_until(bench->sim, UINT64_MAX, is_set, &flag);
        pass(bench, 2 * NS_PER_S);
        assert_int_equal(told(bench), 0);
    }
    assert_int_equal(renew(bench, lively, 100), 0);
    pass(bench, 8 * NS_PER_S);
    assert_int_equal(told(bench), 1);
    assert_int_equal(bench->targets[0].session, quiet);
    assert_int_equal(renew(bench, lively, 100), 0);
}

/* A storage target that cannot be told is told again, at the pace of ticks; it holds up no end, and
 * takes nobody's place. */
static void test_unreachable_target_is_told_again(void **state) {
    struct bench *bench = *state;
    uint64_t session = begin(bench, 1, 100, "/mnt");
    struct asked asked;

    bench->targets[1].result = -ERR_IO;
    start(bench, &asked, OP_SESSION_END, end_of(session, 100));
    pass(bench, 2 * NS_PER_S);
    assert_true(asked.done);
    assert_int_equal(asked.call.result, 0);
    assert_int_equal(manager_session_count(bench->manager), 0);
    assert_int_equal(manager_ending_count(bench->manager), 1);
    assert_true(bench->targets[2].number > bench->targets[2].everywhere);
    bench->targets[1].result = 0;
    pass(bench, 2 * NS_PER_S);
    assert_int_equal(manager_ending_count(bench->manager), 0);
    assert_true(is_ended(&bench->targets[1], session));
    assert_true(bench->targets[1].number == bench->targets[2].number);
}

static void test_sessions_have_a_limit(void **state) {
    struct bench *bench = *state;
    struct asked asked;

    for (uint32_t i = 0; i < 8; i++) {
        begin(bench, i + 1, 100, "/mnt");
    }
    /* Busy: tried again until there is room. */
    start(bench, &asked, OP_SESSION_BEGIN, begin_of(9, 100, "/mnt"));
    rpc_tick(bench->client_rpc);
    pass(bench, NS_PER_S);
    assert_false(asked.done);
    uint64_t again = begin(bench, 3, 101, "/mnt");
    assert_int_equal(renew(bench, again, 101), 0);
    /* All the others fall silent, so the ninth gets its place. */
    for (int i = 0; i < 40; i++) {
        pass(bench, NS_PER_S);
        rpc_tick(bench->client_rpc);
        if (!asked.done) {
            assert_int_equal(renew(bench, again, 101), 0);
        }
    }
    assert_true(asked.done);
    assert_int_equal(asked.call.result, 0);
}

/* Alike in all that is encoded; between the fields lies anything. */
static void map_check(const struct cluster_map *got, const struct cluster_map *wanted) {
    size_t size = cluster_map_size(wanted);
    struct buffer pair[2] = {{malloc(size), 0, size}, {malloc(size), 0, size}};

    assert_int_equal(cluster_map_size(got), size);
    assert_true(pair[0].data && pair[1].data);
    cluster_map_encode(got, &pair[0]);
    cluster_map_encode(wanted, &pair[1]);
    assert_int_equal(pair[0].size, size);
    assert_memory_equal(pair[0].data, pair[1].data, size);
    free(pair[0].data);
    free(pair[1].data);
}

static void test_map_is_handed_out(void **state) {
    struct bench *bench = *state;
    size_t size = cluster_map_size(&bench->map);
    struct cluster_map *map = calloc(1, sizeof *map);
    uint8_t *bytes = malloc(size);
    struct asked asked;

    for (uint64_t known = 4; known <= 5; known++) {
        asked = (struct asked){.call = {.header = {.opcode = OP_MAP_GET, .log = LOG_MANAGER},
                                        .request.map_get.known_version = known,
                                        .bulk_in = {bytes, 0, size},
                                        .origin = &bench->origin,
                                        .done = asked_done}};
        call_start(bench->client_rpc, &asked.call);
        pass(bench, NS_PER_S);
        assert_true(asked.done);
        assert_int_equal(asked.call.result, 0);
        assert_int_equal(asked.call.reply.map_get.version, 5);
        assert_int_equal(asked.call.bulk_in.size, known < 5 ? size : 0);
    }
    assert_int_equal(cluster_map_decode((struct bytes){bytes, size}, map), 0);
    map_check(map, &bench->map);
    asked = (struct asked){.call = {.header = {.opcode = OP_MAP_GET, .log = LOG_MANAGER},
                                    .bulk_in = {bytes, 0, size - 1},
                                    .origin = &bench->origin,
                                    .done = asked_done}};
    call_start(bench->client_rpc, &asked.call);
    pass(bench, NS_PER_S);
    assert_int_equal(asked.call.result, -ERR_TOO_SMALL);
    free(bytes);
    free(map);
}

static void manager_dies(struct bench *bench, bool power) {
    log_table_remove(bench->logs, LOG_MANAGER);
    if (power) {
        sim_power(bench->process);
    } else {
        sim_kill(bench->process);
    }
    manager_abandon(bench->manager);
    bench->manager = NULL;
    bench->env = sim_restart(bench->process);
}

/* In steps so small that nothing gets done beside what is waited for. */
static void finish(struct bench *bench, const struct asked *asked) {
    for (int i = 0; i < 100000 && !asked->done; i++) {
        bool flag = false;

        while (worker_run_one(&bench->worker)) {
        }
        sim_schedule(bench->sim, NULL, NS_PER_US, note_flag, &flag);
        sim_run_until(bench->sim, UINT64_MAX, is_set, &flag);
    }
    assert_true(asked->done);
}

/* Killed before the record of a session is on disk, asked again after the next start: it is said to
 * have begun only when it is, so that its number is nobody else's after a power failure. */
static void test_a_begin_that_the_ring_kept(void **state) {
    struct bench *bench = *state;

    for (uint32_t round = 1; round <= 7; round++) {
        struct asked asked;
        struct asked again;

        begin(bench, 1, round, "/mnt"); /* What was to be synced is. */
        pass(bench, NS_PER_S);
        start(bench, &asked, OP_SESSION_BEGIN, begin_of(1 + round, 100, "/mnt"));
        while (worker_run_one(&bench->worker)) {
        }
        uint64_t position = kv_position(manager_kv(bench->manager));
        assert_true(position > kv_synced_position(manager_kv(bench->manager)) && !asked.done);
        manager_dies(bench, false);
        manager_begins(bench);
        start(bench, &again, OP_SESSION_BEGIN, begin_of(1 + round, 100, "/mnt"));
        finish(bench, &again);
        assert_int_equal(again.call.result, 0);
        assert_true(kv_synced_position(manager_kv(bench->manager)) >= position);
    }
}

static void end(struct bench *bench, uint64_t session, uint64_t incarnation) {
    struct asked asked;

    assert_int_equal(ask(bench, &asked, OP_SESSION_END,
                         (union request_body){.session_end = {session, incarnation}}),
                     0);
}

/* Who is away for many ends gets them in messages of many; who is away for more than are
 * remembered, or has lost what he had, gets the whole list. Nobody that lives is ever named. */
static void test_list_of_the_ended(void **state) {
    struct bench *bench = *state;
    struct target *near = &bench->targets[1];
    struct target *far = &bench->targets[2];

    uint64_t oldest = begin(bench, 1, 1, "/oldest");
    pass(bench, NS_PER_S);
    for (int round = 0; round < 4; round++) {
        uint32_t wholes = far->wholes, count = round == 1 ? 1100 : 200;

        far->result = -ERR_IO;
        for (uint32_t i = 0; i < count; i++) {
            end(bench, begin(bench, 2, 1, "/gone"), 1);
            assert_int_equal(renew(bench, oldest, 1), 0);
        }
        uint64_t other = begin(bench, 2, 1, "/stays");
        pass(bench, NS_PER_S);
        assert_true(far->number < near->number);
        if (round == 2) {
            manager_dies(bench, true);
            manager_begins(bench);
        }
        if (round == 3) { /* Its disk is gone, and it is a new one. */
            far->number = far->lowest = 0;
            memset(far->ended, 0, sizeof far->ended);
        }
        far->result = 0;
        pass(bench, 2 * NS_PER_S);
        assert_int_equal(far->number, near->number);
        assert_int_equal(far->wholes > wholes, round > 0);
        for (uint64_t session = 1; session <= other; session++) {
            bool lives = session == oldest || session == other;

            assert_int_equal(is_ended(far, session), !lives);
            assert_int_equal(is_ended(near, session), !lives);
        }
        assert_int_equal(renew(bench, oldest, 1), 0);
        end(bench, other, 1);
    }
    end(bench, oldest, 1);
    pass(bench, NS_PER_S);
    assert_true(far->lowest > oldest && near->lowest == far->lowest);
}

static void tick(struct bench *bench) {
    manager_tick(bench->manager);
    while (worker_run_one(&bench->worker)) {
    }
}

/* Something of its log is not on disk. */
static bool is_behind(const struct bench *bench) {
    struct kv *kv = manager_kv(bench->manager);

    return kv_position(kv) > kv_synced_position(kv);
}

/* A beginning that is given up while its record is being flushed, and one while the manager is only
 * finding out what it knows: the session is there for who asks again. */
static void test_gives_up_a_beginning(void **state) {
    struct bench *bench = *state;
    struct asked asked;
    bool found_out = false;
    uint32_t node = 1;

    begin(bench, node, 1, "/mnt");
    pass(bench, NS_PER_S);
    /* What was on its way to the disk when the manager died may have arrived: then there is nothing
     * to find out, and the next one is tried. */
    while (!found_out && ++node < 7) {
        for (int round = 0; round < 2; round++) {
            bool flag = false;

            start_for(bench, &asked, NS_PER_US, OP_SESSION_BEGIN, begin_of(node, 100, "/mnt"));
            tick(bench);
            assert_false(asked.done);
            sim_schedule(bench->sim, NULL, NS_PER_US, note_flag, &flag);
            sim_run_until(bench->sim, UINT64_MAX, is_set, &flag);
            tick(bench);
            assert_true(asked.done);
            assert_int_equal(asked.call.result, -ERR_TIMED_OUT);
            if (round == 0) {
                assert_true(is_behind(bench));
                manager_dies(bench, false);
                manager_begins(bench);
                found_out = is_behind(bench);
                round += !found_out;
            }
        }
        start(bench, &asked, OP_SESSION_BEGIN, begin_of(node, 100, "/mnt"));
        finish(bench, &asked);
        assert_int_equal(asked.call.result, 0);
        assert_int_equal(manager_session_count(bench->manager), node);
    }
    assert_true(found_out);
}

/* Sessions, numbers, the map and an eviction that was under way outlive the manager: after a clean
 * stop, after a kill, and after a power failure. */
static void test_restarts_forget_nothing(void **state) {
    struct bench *bench = *state;
    uint64_t newest = 0;

    for (uint64_t round = 1; round <= 6; round++) {
        uint64_t kept = begin(bench, 1, round, "/kept");
        uint64_t going = begin(bench, 2, round, "/going");
        struct asked asked;

        assert_true(kept > newest && going > kept);
        newest = going;
        bench->targets[0].result = -ERR_IO; /* So that the end does not come to its end. */
        start(bench, &asked, OP_SESSION_END, (union request_body){.session_end = {going, round}});
        pass(bench, 2 * NS_PER_S);
        assert_true(asked.done); /* Who does not answer holds up nobody. */
        assert_int_equal(asked.call.result, 0);
        if (round % 3 == 0) {
            assert_int_equal(manager_ends(bench), 0);
        } else {
            manager_dies(bench, round % 3 == 2);
        }
        bench->targets[0].result = 0;
        uint32_t before = bench->targets[0].told;
        manager_begins(bench);
        pass(bench, 3 * NS_PER_S);
        assert_int_equal(bench->targets[0].told, before + 1);
        assert_int_equal(bench->targets[0].session, going);
        assert_true(is_ended(&bench->targets[2], going));
        assert_int_equal(renew(bench, kept, round), 0);
        assert_int_equal(renew(bench, going, round), -ERR_UNKNOWN_SESSION);
    }
}

/* When the log cannot be written nobody is told of a session. */
static void test_failed_log_is_told(void **state) {
    struct bench *bench = *state;
    struct asked asked;

    begin(bench, 1, 100, "/mnt");
    sim_process_faults(bench->process)->error_per_million = 1000000;
    assert_int_equal(ask(bench, &asked, OP_SESSION_BEGIN, begin_of(2, 100, "/mnt")), -ERR_IO);
    assert_int_equal(ask(bench, &asked, OP_SESSION_BEGIN, begin_of(3, 100, "/mnt")), -ERR_IO);
    assert_int_equal(manager_ends(bench), -ERR_IO);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

/* Asks with room for a ticket, over a connection of this identity; NULL: a member's. */
static int ask_as(struct bench *bench, struct asked *asked, const struct identity *identity,
                  struct call call) {
    *asked = (struct asked){.call = call};
    asked->call.header.log = LOG_MANAGER;
    asked->call.identity = identity;
    asked->call.bulk_in =
        (struct buffer){asked->ticket, 0, bench->has_no_room ? 0 : sizeof asked->ticket};
    asked->call.origin = &bench->origin;
    asked->call.done = asked_done;
    call_start(bench->client_rpc, &asked->call);
    for (int i = 0; i < 100 && !asked->done; i++) {
        pass(bench, 100 * NS_PER_MS);
    }
    assert_true(asked->done);
    return asked->call.result;
}

static int begin_as(struct bench *bench, struct asked *asked, const struct identity *identity) {
    return ask_as(
        bench, asked, identity,
        (struct call){.header.opcode = OP_SESSION_BEGIN, .request = begin_of(1, 100, "/mnt")});
}

static int renew_as(struct bench *bench, struct asked *asked, const struct identity *identity,
                    struct bytes ticket) {
    union request_body request = {
        .session_renew = {.session = 1, .incarnation = 100, .ticket = ticket}};

    return ask_as(bench, asked, identity,
                  (struct call){.header.opcode = OP_SESSION_RENEW, .request = request});
}

static struct bytes ticket_of(const struct asked *asked) {
    return (struct bytes){asked->ticket, asked->call.bulk_in.size};
}

/* What a target of the same members' key makes of a ticket. */
static int admit(struct bench *bench, const struct asked *asked, const struct identity *identity) {
    struct signer signer;

    ticket_signer_init(&signer, bench->keys);
    int r = ticket_admit(&signer, (struct ticket_session){1, 100}, ticket_of(asked), identity);
    signer_deinit(&signer);
    return r;
}

static const struct identity laptop = {.kind = IDENTITY_MOUNT, .serial = 17};
static const struct identity phone = {.kind = IDENTITY_MOUNT, .serial = 18};

static void test_a_session_gets_its_ticket(void **state) {
    struct bench *bench = *state;
    struct asked first;
    struct asked again;

    assert_int_equal(begin_as(bench, &first, &laptop), 0);
    assert_int_equal(first.call.reply.session_begin.session, 1);
    assert_int_equal(admit(bench, &first, &laptop), 0);
    assert_int_equal(admit(bench, &first, NULL), -ERR_BAD_TICKET);
    /* A second copy of the same begin gets as good a one. */
    assert_int_equal(begin_as(bench, &again, &laptop), 0);
    assert_int_equal(admit(bench, &again, &laptop), 0);
    bench->has_no_room = true;
    assert_int_equal(begin_as(bench, &again, &laptop), -ERR_TOO_SMALL);
}

/* A renewal needs the ticket, and answers with another when this one is of an older key. */
static void test_a_ticket_is_renewed(void **state) {
    struct bench *bench = *state;
    struct asked first;
    struct asked renewed;

    assert_int_equal(begin_as(bench, &first, &laptop), 0);
    assert_int_equal(renew_as(bench, &renewed, &laptop, (struct bytes){NULL, 0}), -ERR_BAD_TICKET);
    first.ticket[20] ^= 1;
    assert_int_equal(renew_as(bench, &renewed, &laptop, ticket_of(&first)), -ERR_BAD_TICKET);
    first.ticket[20] ^= 1;
    assert_int_equal(renew_as(bench, &renewed, &laptop, ticket_of(&first)), 0);
    assert_int_equal(renewed.call.bulk_in.size, 0);
    key_ring_number_set(bench->keys, 2);
    assert_int_equal(renew_as(bench, &renewed, &laptop, ticket_of(&first)), 0);
    assert_int_equal(admit(bench, &renewed, &laptop), 0);
    struct asked newest = renewed;
    assert_int_equal(renew_as(bench, &renewed, &laptop, ticket_of(&newest)), 0);
    assert_int_equal(renewed.call.bulk_in.size, 0);
    /* The mount comes with another key: it has shown that the session is its own. */
    assert_int_equal(renew_as(bench, &renewed, NULL, ticket_of(&newest)), 0);
    assert_int_equal(admit(bench, &renewed, NULL), 0);
    assert_int_equal(admit(bench, &renewed, &laptop), -ERR_BAD_TICKET);
}

/* Renewals that show nothing do not keep a session alive that its client has left. */
static void test_renewals_without_ticket_keep_nothing_alive(void **state) {
    struct bench *bench = *state;
    struct asked asked;

    assert_int_equal(begin_as(bench, &asked, &laptop), 0);
    for (int i = 0; i < 40 && manager_session_count(bench->manager) > 0; i++) {
        int r = renew_as(bench, &asked, &laptop, (struct bytes){NULL, 0});

        assert_true(r == -ERR_BAD_TICKET || r == -ERR_FENCED || r == -ERR_UNKNOWN_SESSION);
        pass(bench, NS_PER_S);
    }
    assert_int_equal(manager_session_count(bench->manager), 0);
}

static int revoke(struct bench *bench, uint64_t serial, struct key_revoke_reply *ret_reply) {
    struct asked asked;
    int r = ask(bench, &asked, OP_KEY_REVOKE, (union request_body){.key_revoke = {serial}});

    *ret_reply = asked.call.reply.key_revoke;
    return r;
}

/* Its sessions end, also one that is known from its row only; it begins none; and all that is still
 * so behind a restart that lost whatever was not flushed. */
static void test_a_key_is_revoked(void **state) {
    struct bench *bench = *state;
    struct key_revoke_reply reply;
    struct asked first;
    struct asked other;
    struct asked asked;

    assert_int_equal(begin_as(bench, &first, &laptop), 0);
    assert_int_equal(begin_as(bench, &other, &phone), 0);
    manager_dies(bench, true);
    manager_begins(bench);
    assert_int_equal(revoke(bench, 0, &reply), -ERR_INVALID);
    assert_int_equal(revoke(bench, 17, &reply), 0);
    assert_int_equal(reply.map_version, 6);
    assert_int_equal(reply.sessions, 1);
    for (int i = 0; i < 2; i++) {
        pass(bench, NS_PER_S);
        int r = renew_as(bench, &asked, &laptop, ticket_of(&first));

        assert_true(r == -ERR_UNKNOWN_SESSION || r == -ERR_FENCED);
        assert_int_equal(begin_as(bench, &asked, &laptop), -ERR_REVOKED);
        assert_int_equal(manager_session_count(bench->manager), 1);
        assert_true(cluster_map_is_revoked(manager_map(bench->manager), 17));
        /* Known already: no version more. */
        assert_int_equal(revoke(bench, 17, &reply), 0);
        assert_int_equal(reply.map_version, 6);
        assert_int_equal(reply.sessions, 0);
        manager_dies(bench, true);
        manager_begins(bench);
    }
}

static void test_as_many_keys_as_a_map_names(void **state) {
    struct bench *bench = *state;
    struct key_revoke_reply reply;
    struct asked *asked = calloc(MAP_REVOKED_MAX, sizeof *asked);

    for (uint64_t i = 0; i < MAP_REVOKED_MAX; i++) {
        start(bench, &asked[i], OP_KEY_REVOKE, (union request_body){.key_revoke = {100 + i}});
    }
    pass(bench, 5 * NS_PER_S);
    assert_int_equal(manager_map(bench->manager)->revoked_count, MAP_REVOKED_MAX);
    uint64_t version = manager_map(bench->manager)->version;
    assert_int_equal(revoke(bench, 17, &reply), -ERR_TOO_MANY_REVOKED);
    assert_int_equal(reply.map_version, version);
    free(asked);
}

/* Who names the node and origin of another one's session begins one beside it; who knows its
 * number ends it not without its ticket. */
static void test_nobody_ends_anothers_session(void **state) {
    struct bench *bench = *state;
    struct asked nodes_own;
    struct asked laptops;
    struct asked asked;
    union request_body end = {.session_end = {.session = 1, .incarnation = 100}};
    const struct identity *not_ours[] = {&laptop, &phone};

    assert_int_equal(begin_as(bench, &nodes_own, NULL), 0);
    assert_int_equal(begin_as(bench, &laptops, &laptop), 0);
    assert_int_equal(laptops.call.reply.session_begin.session, 2);
    pass(bench, 3 * NS_PER_S);
    assert_int_equal(renew_as(bench, &asked, NULL, ticket_of(&nodes_own)), 0);
    const struct bytes tickets[] = {{NULL, 0}, ticket_of(&laptops), ticket_of(&nodes_own)};
    for (size_t i = 0; i < ARRAY_SIZE(not_ours); i++) {
        for (size_t with = 0; with < ARRAY_SIZE(tickets); with++) {
            end.session_end.ticket = tickets[with];
            assert_int_equal(ask_as(bench, &asked, not_ours[i],
                                    (struct call){.header.opcode = OP_SESSION_END, .request = end}),
                             -ERR_BAD_TICKET);
        }
    }
    assert_int_equal(manager_session_count(bench->manager), 2);
    end.session_end.ticket = ticket_of(&nodes_own);
    assert_int_equal(
        ask_as(bench, &asked, NULL, (struct call){.header.opcode = OP_SESSION_END, .request = end}),
        0);
}

static union request_body join_of(uint64_t key, uint32_t target_count, const char *address) {
    return (union request_body){
        .node_join = {.key_high = key,
                      .key_low = 1,
                      .target_count = target_count,
                      .ready = address != NULL,
                      .address = {(const uint8_t *)address, address ? strlen(address) : 0}}};
}

static struct node_join_reply join(struct bench *bench, uint64_t key, uint32_t target_count,
                                   const char *address) {
    struct asked asked;

    assert_int_equal(ask(bench, &asked, OP_NODE_JOIN, join_of(key, target_count, address)), 0);
    return asked.call.reply.node_join;
}

static struct cluster_map *map_of(struct bench *bench) {
    struct cluster_map *map = malloc(sizeof *map);
    uint8_t *bytes = malloc(MIB);
    struct asked asked = {.call = {.header = {.opcode = OP_MAP_GET, .log = LOG_MANAGER},
                                   .bulk_in = {.data = bytes, .capacity = MIB},
                                   .origin = &bench->origin,
                                   .done = asked_done}};

    call_start(bench->client_rpc, &asked.call);
    pass(bench, NS_PER_S);
    assert_true(map && asked.done);
    assert_int_equal(cluster_map_decode((struct bytes){bytes, asked.call.bulk_in.size}, map), 0);
    free(bytes);
    return map;
}

/* Numbers first, then its targets, in a pool version of their own; asked again, nothing changes. */
static void test_nodes_join(void **state) {
    struct bench *bench = *state;
    struct node_join_reply first = join(bench, 70, 2, NULL);
    struct node_join_reply second = join(bench, 71, 1, NULL);
    struct pool_version pool;
    struct cluster_map *map;

    assert_int_equal(first.node, 2);
    assert_int_equal(second.node, 3);
    assert_true(first.first_target > OST + 1 && second.first_target == first.first_target + 2);
    assert_int_equal(join(bench, 70, 2, NULL).first_target, first.first_target);
    map = map_of(bench);
    assert_int_equal(map->pool_count, 1);
    assert_int_equal(map->target_count, TARGETS);
    free(map);
    assert_int_equal(join(bench, 71, 1, "10.0.0.3:7400").map_version, 8);
    assert_int_equal(join(bench, 71, 1, "10.0.0.3:7400").map_version, 8);
    for (int i = 0; i < 2; i++) {
        map = map_of(bench);
        assert_int_equal(map->version, 8);
        assert_string_equal(cluster_map_node(map, (struct node_id){3})->address, "10.0.0.3:7400");
        assert_null(cluster_map_target(map, (struct target_id){first.first_target}));
        assert_true(cluster_map_pool(map, 0, &pool));
        assert_int_equal(pool.version, 2);
        assert_int_equal(pool.chain_count, 3);
        assert_int_equal(pool.chains[2], second.first_target);
        free(map);
        manager_dies(bench, i == 0);
        manager_begins(bench);
    }
    assert_int_equal(join(bench, 71, 1, "10.0.0.9:7400").map_version, 9);
    assert_int_equal(join(bench, 70, 2, "10.0.0.2:7400").map_version, 10);
}

static void test_who_may_not_join(void **state) {
    struct bench *bench = *state;
    const struct {
        union request_body request;
        int result;
    } rows[] = {
        {join_of(0, 1, NULL), 0}, /* key_low is 1: a key */
        {{.node_join = {.target_count = 1}}, -ERR_INVALID},
        {join_of(70, 65, NULL), -ERR_INVALID},
        {join_of(70, 1, "10.0.0.2"), -ERR_INVALID},
        {join_of(70, 1, "10.0.0.2:7400"), -ERR_OTHER_CLUSTER},
        {join_of(0, 2, NULL), 0}, /* as before */
        {join_of(0, 2, "10.0.0.2:7400"), -ERR_INVALID},
    };
    struct asked asked;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        assert_int_equal(ask(bench, &asked, OP_NODE_JOIN, rows[i].request), rows[i].result);
    }
    assert_int_equal(asked.call.reply.node_join.map_version, 6);
}

/* Many at once make few versions. */
static void test_joins_share_a_version(void **state) {
    enum { NODES = 60 };
    struct bench *bench = *state;
    struct asked *asked = calloc(NODES, sizeof *asked);
    struct cluster_map *map;

    for (uint64_t i = 0; i < NODES; i++) {
        start(bench, &asked[i], OP_NODE_JOIN, join_of(100 + i, 1, NULL));
    }
    pass(bench, 5 * NS_PER_S);
    map = map_of(bench);
    assert_int_equal(map->node_count, 1 + NODES);
    assert_true(map->version <= 8);
    for (uint64_t i = 0; i < NODES; i++) {
        assert_true(asked[i].done && asked[i].call.result == 0);
    }
    free(map);
    free(asked);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(nodes_join),
        TEST(who_may_not_join),
        TEST(joins_share_a_version),
        TEST(end_does_not_wait_for_room),
        TEST(sessions_begin_renew_and_end),
        TEST(predecessor_goes_first),
        TEST(list_of_the_ended),
        TEST(silence_ends_a_session),
        TEST(a_stopped_manager_evicts_nobody),
        TEST(unreachable_target_is_told_again),
        TEST(sessions_have_a_limit),
        TEST(gives_up_what_it_holds),
        TEST(gives_up_a_beginning),
        TEST(map_is_handed_out),
        TEST(a_begin_that_the_ring_kept),
        TEST(restarts_forget_nothing),
        TEST(failed_log_is_told),
        cmocka_unit_test_setup_teardown(test_a_session_gets_its_ticket, setup_with_keys, teardown),
        cmocka_unit_test_setup_teardown(test_a_ticket_is_renewed, setup_with_keys, teardown),
        cmocka_unit_test_setup_teardown(test_a_key_is_revoked, setup_with_keys, teardown),
        cmocka_unit_test_setup_teardown(test_as_many_keys_as_a_map_names, setup_with_keys,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_nobody_ends_anothers_session, setup_with_keys,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_renewals_without_ticket_keep_nothing_alive,
                                        setup_with_keys, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
