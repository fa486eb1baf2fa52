/* See manager_bench.h. */
#include "manager_bench.h"
#include "layout/map_pools.h"
#include "rpc/call_origin.h"

static void names_take(struct target *target, const struct sessions_ended_request *body) {
    const uint8_t *names = body->names.data;

    for (size_t i = 0; i < 8 * body->names.size; i++) {
        uint64_t session = body->first != 0 ? body->first + i : load_le64(names + i / 64 * 8);

        assert_true(session < IDS);
        if ((body->first == 0 || (names[i / 8] >> i % 8 & 1)) && !target->ended[session]) {
            target->ended[session] = true;
            target->session = session;
            target->heard++;
        }
    }
    target->wholes += body->first != 0;
    target->everywhere = body->everywhere;
    target->newest = body->newest;
    if (body->from == target->number) {
        assert_true(body->lowest >= target->lowest || body->lowest == 0);
        target->lowest = MAX(target->lowest, body->lowest);
        target->number = body->number;
    }
}

bool is_ended(const struct target *target, uint64_t session) {
    return session < target->lowest || target->ended[session];
}

static void target_answer(struct target *target, struct call *call) {
    int result = target->result;

    target->told++;
    if (target->fails_of > 0 && target->told % target->fails_of == 0) {
        result = -ERR_TIMED_OUT;
    }
    result == 0 ? names_take(target, &call->request.sessions_ended) : (void)0;
    call->reply.sessions_ended.number = target->number;
    call_reply(call, result);
}

static void slots_give(const struct target *target, struct call *call) {
    call->reply.slots_give.row_bytes = target->gives_row_bytes;
    call->bulk_in.size = 0;
    if (target->gives.count > 0) {
        call->bulk_in.size = sizeof target->gives + target->gives_more_bytes;
        assert_true(call->bulk_in.size <= call->bulk_in.capacity);
        memset(call->bulk_in.data, 0xee, call->bulk_in.size);
        memcpy(call->bulk_in.data, &target->gives, sizeof target->gives);
    }
}

/* How many groups it is told to be full. */
static uint32_t full_count(const struct call *call) {
    const struct group_tell_request *request = &call->request.group_tell;
    size_t slots_bytes = request->slots * sizeof(struct wire_slots);
    uint32_t count = 0;

    for (uint32_t i = 0; i < request->loads; i++) {
        struct wire_load load;

        memcpy(&load, call->bulk_out[0].data + slots_bytes + i * sizeof load, sizeof load);
        count += load.is_full;
    }
    return count;
}

static void group_answer(struct target *target, struct call *call) {
    if (call->header.opcode == OP_SLOTS_GIVE) {
        target->asked_count++;
        target->asked_under = call->request.slots_give.handover;
        target->gives.handover = target->asked_under;
        slots_give(target, call);
        if (target->holds_give) {
            target->give = call;
            return;
        }
    } else {
        assert_int_equal(call->request.group_tell.slots_row_bytes, sizeof target->had);
        assert_int_equal(call->request.group_tell.loads_row_bytes, sizeof(struct wire_load));
        target->had_count = call->request.group_tell.slots;
        call->reply.group_tell.unopened = target->unopened;
        call->reply.group_tell.is_full = target->is_full;
        target->full_told = full_count(call);
        if (target->had_count > 0) {
            memcpy(&target->had, call->bulk_out[0].data, sizeof target->had);
        }
    }
    call_reply(call, target->result);
}

static void target_step(struct actor *actor, struct message *first) {
    struct target *target = CONTAINER_OF(actor, struct target, actor);

    while (first) {
        struct call *call = CONTAINER_OF(first, struct call, message);

        first = first->next;
        if (call->header.opcode == OP_GROUP_TELL || call->header.opcode == OP_SLOTS_GIVE) {
            group_answer(target, call);
            continue;
        }
        assert_int_equal(call->header.opcode, OP_SESSIONS_ENDED);
        if (target->hold) {
            assert_true(target->held_count < HELD);
            target->held[target->held_count++] = call;
        } else {
            target_answer(target, call);
        }
    }
}

void target_release(struct target *target) {
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

static void line_keep(void *context, const char *line) {
    struct bench *bench = context;

    bench->lines++;
    snprintf(bench->line, sizeof bench->line, "%s", line);
}

void manager_begins(struct bench *bench) {
    struct manager_options options = {
        .env = bench->env,
        .kv = {.env = bench->env,
               .directory = "manager",
               .shared_name = "manager",
               .base = &kv_mem_ops,
               .base_store = bench->store,
               .owner_id = {1},
               .ring_bytes = bench->ring_bytes > 0 ? bench->ring_bytes : 128 * KIB,
               .disk_log_bytes = 2 * MIB,
               .changes_bytes_max = 16 * MIB,
               .base_memory_bytes = MIB,
               .sync_interval_ns = NS_PER_S},
        .rpc = bench->rpc,
        .map = &bench->map,
        .rebuilt = bench->rebuilt,
        .target = {MANAGER},
        .place = bench->place,
        .keys = bench->keys,
        .sessions_max = bench->sessions_max ? bench->sessions_max : 8,
        .map_waits_max = bench->map_waits_max,
        .join_pause_ns = bench->join_pause_ns,
        .joins_at_once = bench->joins_at_once,
        .log = line_keep,
        .log_context = bench,
    };
    char problem[256];

    if (manager_open(&options, &bench->manager, problem)) {
        fail_msg("%s", problem);
    }
    assert_int_equal(log_table_add(bench->logs, LOG_MANAGER, manager_actor(bench->manager)), 0);
}

static int setup_with(void **state, struct key_ring *keys, uint32_t pools) {
    struct bench *bench = calloc(1, sizeof *bench);
    static const uint32_t ids[TARGETS] = {MDT, OST, OST + 1};
    struct target_id osts[2] = {{OST}, {OST + 1}};
    struct kv_mem_options store = {&bench->prng, 30, 100};

    bench->map.cluster_id[0] = 1;
    prng_init(&bench->prng, 1);
    bench->sim = sim_new(1);
    bench->process = sim_process_new(bench->sim, "manager");
    bench->env = sim_process_env(bench->process);
    worker_init(&bench->worker);
    worker_bind(&bench->worker);
    actor_init(&bench->origin, "origin", call_origin_step);
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
    while (bench->map.pool_count < pools) {
        const uint32_t chains[2] = {OST, OST + 1};
        uint32_t count = (pools - bench->map.pool_count) % 2 == 0 ? 1 : 2;

        assert_int_equal(cluster_map_put_pool(&bench->map, chains, count), 0);
    }
    bench->ring_bytes = pools > 0 ? 256 * KIB : 0;
    bench->keys = keys;
    manager_begins(bench);
    *state = bench;
    return 0;
}

int setup(void **state) {
    return setup_with(state, NULL, 0);
}

int setup_with_pools(void **state, uint32_t count) {
    return setup_with(state, NULL, count);
}

int setup_with_keys(void **state) {
    const struct secret secret = {{4, 5, 6}};
    struct key_ring *keys;
    struct key_file file;

    key_file_make(&secret, &file);
    assert_int_equal(key_ring_new(&file, &keys), 0);
    return setup_with(state, keys, 0);
}

int setup_with_newer_key(void **state) {
    const struct secret secrets[] = {{{4, 5, 6}}, {{7, 8, 9}}};
    char problem[KEY_PROBLEM_BYTES];
    struct key_file newer;
    struct key_ring *keys;
    struct key_file file;

    key_file_make(&secrets[0], &file);
    key_file_make(&secrets[1], &newer);
    assert_int_equal(key_file_add(&file, &newer, problem), 0);
    assert_int_equal(key_ring_new(&file, &keys), 0);
    return setup_with(state, keys, 0);
}

void note_flag(void *context) {
    *(bool *)context = true;
}

bool is_set(void *context) {
    return *(bool *)context;
}

/* Lets time pass, with ticks. */
void pass(struct bench *bench, uint64_t ns) {
    for (uint64_t done = 0; done < ns; done += 100 * NS_PER_MS) {
        bool flag = false;

        sim_schedule(bench->sim, NULL, 100 * NS_PER_MS, note_flag, &flag);
        sim_run_until(bench->sim, UINT64_MAX, is_set, &flag);
        if (bench->manager) {
            manager_tick(bench->manager);
        }
        rpc_tick(bench->client_rpc); /* who was told that it is busy asks again */
        while (worker_run_one(&bench->worker)) {
        }
    }
}

static void note_stopped(void *context, int result) {
    *(int *)context = result;
}

int manager_ends(struct bench *bench) {
    int result = 1;

    manager_stop_start(bench->manager, note_stopped, &result);
    pass(bench, 5 * NS_PER_S);
    log_table_remove(bench->logs, LOG_MANAGER);
    manager_abandon(bench->manager);
    bench->manager = NULL;
    return result;
}

int teardown(void **state) {
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

void asked_done(struct call *call) {
    ((struct asked *)call)->done = true;
}

/* Its caller waits for so long; 0: without end. */
void start_for(struct bench *bench, struct asked *asked, uint64_t patience_ns, uint16_t opcode,
               union request_body request) {
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

void start(struct bench *bench, struct asked *asked, uint16_t opcode, union request_body request) {
    start_for(bench, asked, 0, opcode, request);
}

union request_body end_of(uint64_t session, uint64_t incarnation) {
    return (union request_body){.session_end = {.session = session, .incarnation = incarnation}};
}

union request_body node_join_of(uint64_t key, uint32_t target_count, const char *address) {
    return (union request_body){
        .node_join = {.key_high = key,
                      .key_low = 1,
                      .target_count = target_count,
                      .ready = address != NULL,
                      .address = {(const uint8_t *)address, address ? strlen(address) : 0}}};
}

union request_body begin_of(uint32_t node, uint64_t incarnation, const char *origin) {
    return (union request_body){
        .session_begin = {node, incarnation, {(const uint8_t *)origin, strlen(origin)}}};
}

int ask(struct bench *bench, struct asked *asked, uint16_t opcode, union request_body request) {
    start(bench, asked, opcode, request);
    for (int i = 0; i < 100 && !asked->done; i++) {
        pass(bench, 100 * NS_PER_MS);
    }
    assert_true(asked->done);
    return asked->call.result;
}

int ask_as(struct bench *bench, struct asked *asked, const struct identity *identity,
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

uint64_t begin(struct bench *bench, uint32_t node, uint64_t incarnation, const char *origin) {
    struct asked asked;

    assert_int_equal(ask(bench, &asked, OP_SESSION_BEGIN, begin_of(node, incarnation, origin)), 0);
    assert_int_equal(asked.call.reply.session_begin.map_version, 5);
    return asked.call.reply.session_begin.session;
}

int renew(struct bench *bench, uint64_t session, uint64_t incarnation) {
    struct asked asked;

    return ask(
        bench, &asked, OP_SESSION_RENEW,
        (union request_body){.session_renew = {.session = session, .incarnation = incarnation}});
}

uint32_t told(const struct bench *bench) {
    return bench->targets[0].heard;
}

void joiner_begins(struct bench *bench, struct target *joiner, uint32_t target) {
    struct log_id log = cluster_map_first_log(&bench->map, (struct target_id){target});

    actor_init(&joiner->actor, "joiner", target_step);
    assert_int_equal(log_table_add(bench->logs, log, &joiner->actor), 0);
}

void manager_dies(struct bench *bench, bool power) {
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

void manager_again(struct bench *bench, enum manager_end end) {
    if (end == MANAGER_STOPS) {
        assert_int_equal(manager_ends(bench), 0);
    } else {
        manager_dies(bench, end == MANAGER_LOSES_POWER);
    }
    manager_begins(bench);
}

/* In steps so small that nothing gets done beside what is waited for. */
void finish(struct bench *bench, const struct asked *asked) {
    for (int i = 0; i < 100000 && !asked->done; i++) {
        bool flag = false;

        while (worker_run_one(&bench->worker)) {
        }
        sim_schedule(bench->sim, NULL, NS_PER_US, note_flag, &flag);
        sim_run_until(bench->sim, UINT64_MAX, is_set, &flag);
    }
    assert_true(asked->done);
}
