/* The bench. */
#include "unit.h"
#include "meta_bench.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool bench_is_fenced(const struct bench_ost *ost, uint64_t session) {
    for (uint32_t i = 0; i < ost->fence_count; i++) {
        if (ost->fences[i] == session) {
            return true;
        }
    }
    return false;
}

static void ost_fence(struct bench_ost *ost, uint64_t session) {
    if (session && !bench_is_fenced(ost, session)) {
        assert_true(ost->fence_count < BENCH_FENCES);
        ost->fences[ost->fence_count++] = session;
    }
}

static void ost_length(struct bench_ost *ost, struct call *call) {
    const struct chunk_length_request *request = &call->request.chunk_length;
    struct bench_chunks *chunks =
        bench_chunks_find(ost->bench, request->ino.value, request->generation);
    size_t fence_bytes = ost->fences_one ? 0 : request->fences.size;

    ost->length_count++;
    ost_fence(ost, request->fence_session);
    assert_true(request->fences.size <= WIRE_FENCES_BYTES_MAX);
    for (size_t at = 0; at < fence_bytes; at += WIRE_FENCE_BYTES) {
        ost_fence(ost, load_le64(request->fences.data + at));
    }
    call->reply.chunk_length.fenced_count = (uint32_t)(fence_bytes / WIRE_FENCE_BYTES);
    if (!chunks || chunks->deleted || ost->has_none) {
        return;
    }
    call->reply.chunk_length.length = chunks->truncate_seq < request->truncate_seq
                                          ? MIN(chunks->length, request->truncate_size)
                                          : chunks->length;
    call->reply.chunk_length.bytes_used =
        ost == ost->bench->osts ? chunks->blocks * BLOCK_BYTES : 0;
}

static void ost_cut(struct bench_ost *ost, struct call *call) {
    const struct chunk_cut_request *request = &call->request.chunk_cut;
    struct bench_chunks *chunks =
        bench_chunks_find(ost->bench, request->ino.value, request->generation);

    if (chunks && chunks->truncate_seq < request->truncate_seq) {
        chunks->truncate_seq = request->truncate_seq;
        chunks->length = MIN(chunks->length, request->truncate_size);
    }
    call->reply.chunk_cut.end = 1;
    call->reply.chunk_cut.position = ++ost->position;
}

static void ost_delete(struct bench_ost *ost, struct call *call) {
    const struct chunk_delete_request *request = &call->request.chunk_delete;
    struct bench_chunks *chunks =
        bench_chunks_find(ost->bench, request->ino.value, request->generation);

    if (chunks) {
        chunks->deleted = true;
    }
    /* In two steps, so that resuming is seen to work. */
    call->reply.chunk_delete.end = request->resume_chunk > 0;
    ost->deleted_count += call->reply.chunk_delete.end;
    call->reply.chunk_delete.resume_chunk = request->resume_chunk + 1;
    call->reply.chunk_delete.position = ++ost->position;
}

static void ost_sync(struct bench_ost *ost, const struct call *call) {
    ost->synced = MAX(ost->synced, call->request.sync.position);
}

static void call_hold(struct bench_ost *ost, struct call *call) {
    assert_true(ost->held_count < BENCH_HELD);
    ost->held[ost->held_count++] = call;
}

/* The oldest one that is held; NULL for none. */
static struct call *held_take(struct bench_ost *ost, uint16_t opcode) {
    for (uint32_t i = 0; i < ost->held_count; i++) {
        struct call *call = ost->held[i];

        if (call->header.opcode == opcode) {
            ost->held_count--;
            memmove(ost->held + i, ost->held + i + 1, (ost->held_count - i) * sizeof ost->held[0]);
            return call;
        }
    }
    return NULL;
}

bool bench_sync_answer(struct bench_ost *ost) {
    struct call *call = held_take(ost, OP_SYNC);

    if (call) {
        ost_sync(ost, call);
        call_reply(call, 0);
    }
    return call;
}

bool bench_delete_answer(struct bench_ost *ost) {
    struct call *call = held_take(ost, OP_CHUNK_DELETE);

    if (call) {
        ost_delete(ost, call);
        call_reply(call, 0);
    }
    return call;
}

static void ost_step(struct actor *actor, struct message *first) {
    struct bench_ost *ost = CONTAINER_OF(actor, struct bench_ost, actor);

    while (first) {
        struct call *call = CONTAINER_OF(first, struct call, message);

        first = first->next;
        if (ost->is_dead) {
            list_push_back(&ost->unanswered, &call->server_node);
            continue;
        }
        memset(&call->reply, 0, sizeof call->reply);
        switch (call->header.opcode) {
        case OP_CHUNK_LENGTH:
            if (ost->is_away) {
                call_reply(call, -ERR_TIMED_OUT);
                continue;
            }
            ost_length(ost, call);
            break;
        case OP_CHUNK_CUT:
            if (ost->refuses_cuts) {
                call_reply(call, -ERR_INVALID);
                continue;
            }
            ost_cut(ost, call);
            break;
        case OP_CHUNK_DELETE:
            if (ost->holds_deletes) {
                call_hold(ost, call);
                continue;
            }
            ost_delete(ost, call);
            break;
        case OP_SYNC:
            if (ost->holds_syncs) {
                call_hold(ost, call);
                continue;
            }
            ost_sync(ost, call);
            break;
        case OP_CROSS_ASK:
            call->reply.cross_ask.state = call->request.cross_ask.number == ost->bench->unended
                                              ? CROSS_COMMITTED
                                              : CROSS_ABORTED;
            break;
        default:
            fail_msg("an OST got %s", wire_name(call->header.opcode));
        }
        call_reply(call, prng_chance(&ost->bench->prng, 1, 20) ? -ERR_IO : 0);
    }
}

void bench_ost_returns(struct bench_ost *ost) {
    struct list_node *node;

    ost->is_dead = false;
    while ((node = list_pop_front(&ost->unanswered))) {
        actor_post(&ost->actor, &CONTAINER_OF(node, struct call, server_node)->message);
    }
}

/* What its caller has given up ends. */
static void ost_tick(struct bench_ost *ost) {
    uint64_t now_ns = env_now_ns(memory_env_env(ost->bench->world));

    for (struct list_node *node = list_first(&ost->unanswered), *next; node; node = next) {
        struct call *call = CONTAINER_OF(node, struct call, server_node);
        int r = call_given_up(call, now_ns);

        next = list_next(&ost->unanswered, node);
        if (r) {
            list_remove(node);
            call_reply(call, r);
        }
    }
}

static struct rpc *rpc_make(struct meta_bench *bench) {
    const struct rpc_options options = {.transport = &transport_inproc_ops,
                                        .transport_context = bench->logs,
                                        .env = memory_env_env(bench->world),
                                        .resend_ns = NS_PER_S,
                                        .logs_max = 8};
    struct rpc *rpc = NULL;

    assert_int_equal(rpc_new(&options, &rpc), 0);
    return rpc;
}

static void log_line(void *context, const char *line) {
    struct meta_bench *bench = context;

    if (strstr(line, "slow")) {
        bench->slow_line_count++;
        (void)snprintf(bench->slow_line, sizeof bench->slow_line, "%s", line);
    } else {
        bench->other_line_count++;
        (void)snprintf(bench->other_line, sizeof bench->other_line, "%s", line);
    }
}

int bench_open(struct meta_bench *bench, char problem[256]) {
    const struct group_options options = {
        .env = memory_env_env(bench->world),
        .kv = {.directory = "mdt",
               .shared_name = "mdt-ring",
               .base = &kv_mem_ops,
               .base_store = bench->store,
               .owner_id = "a metadata group",
               .log_id = cluster_map_first_log(bench->map, BENCH_MDT),
               .ring_bytes = 256 * KIB,
               .disk_log_bytes = 2 * MIB,
               .changes_bytes_max = 1 * MIB,
               .sync_interval_ns = NS_PER_S,
               .outcomes_max = 8224, /* of a session 128 */
               .warm_sets = bench->warm_sets,
               .log = log_line,
               .log_context = bench},
        .map = bench->map,
        .target = BENCH_MDT,
        .rpc = bench->rpc,
        .keys = bench->keys,
        .root_mode = 0755,
        .default_layout = {.chunk_bytes = CHUNK_BYTES_DEFAULT, .stripe_count = STRIPE_ALL},
        .sessions_max = BENCH_SESSIONS,
        .opens_max = bench->opens_max,
        .slow_request_ns = bench->slow_request_ns,
        .name_hash_bits = bench->hash_bits,
        .crossings_max = bench->crossings_max,
        .settles_later_max = bench->settles_later_max,
        .listing_step = bench->listing_step,
    };

    return group_open(&options, &bench->group, problem);
}

static void group_start(struct meta_bench *bench) {
    char problem[256];
    int r = bench_open(bench, problem);

    if (r < 0) {
        fail_msg("seed %llu: group_open answers %s: %s", (unsigned long long)bench->seed,
                 err_name(r), problem);
    }
}

struct meta_bench *bench_new(const struct bench_options *options) {
    struct meta_bench *bench = calloc(1, sizeof *bench);
    struct target_id osts[BENCH_OSTS];

    assert_non_null(bench);
    bench->seed = options->seed;
    bench->hash_bits = options->hash_bits;
    bench->warm_sets = options->warm_sets;
    bench->slow_request_ns = options->slow_request_ns;
    bench->keys = options->keys;
    bench->crossings_max = options->crossings_max;
    bench->settles_later_max = options->settles_later_max;
    bench->listing_step = options->listing_step;
    bench->opens_max = options->opens_max ? options->opens_max : 256;
    prng_init(&bench->prng, options->seed);
    const struct kv_mem_options store = {&bench->prng, options->cold_per_mille, 1000};
    assert_int_equal(memory_env_new(options->seed, &bench->world), 0);
    assert_int_equal(kv_mem_store_new(&store, &bench->store), 0);
    assert_int_equal(log_table_new(8, &bench->logs), 0);
    bench->map = calloc(1, sizeof *bench->map);
    assert_non_null(bench->map);
    worker_init(&bench->worker);
    worker_bind(&bench->worker);
    for (uint32_t i = 0; i < BENCH_OSTS; i++) {
        osts[i].value = 2 + i;
        bench->osts[i].bench = bench;
        bench->osts[i].id = osts[i];
        list_init(&bench->osts[i].unanswered);
        actor_init(&bench->osts[i].actor, "ost", ost_step);
        assert_int_equal(log_table_add(bench->logs, cluster_map_first_log(bench->map, osts[i]),
                                       &bench->osts[i].actor),
                         0);
    }
    cluster_map_single(bench->map, BENCH_MDT, osts, BENCH_OSTS);
    bench->map->name_hash_key[0] = options->seed;
    for (uint32_t i = 0; i < SLOT_COUNT; i++) {
        if (i < options->slot_first || (options->slot_count > 0 && i >= options->slot_count)) {
            bench->map->groups[1] = (struct map_group){.id = {2}, .log = BENCH_OTHER_LOG};
            bench->map->group_count = 2;
            bench->map->slot_groups[i] = 1;
        }
    }
    bench->rpc = rpc_make(bench);
    group_start(bench);
    assert_int_equal(bench_ended(bench, 0), 0);
    for (uint32_t i = 0; i < BENCH_SESSIONS; i++) {
        bench->sessions[i].id = ++bench->next_session_id;
        bench->sessions[i].incarnation = 7;
        bench_attach(bench, i);
    }
    return bench;
}

void bench_free(struct meta_bench *bench) {
    memory_env_kill(bench->world);
    group_abandon(bench->group);
    rpc_free(bench->rpc);
    worker_bind(NULL);
    log_table_free(bench->logs);
    kv_mem_store_free(bench->store);
    memory_env_free(bench->world);
    free(bench->map);
    free(bench);
}

void bench_restart(struct meta_bench *bench, bool power) {
    if (power) {
        memory_env_power(bench->world);
    } else {
        memory_env_kill(bench->world);
    }
    group_abandon(bench->group);
    rpc_free(bench->rpc);
    for (uint32_t i = 0; i < BENCH_OSTS; i++) {
        list_init(&bench->osts[i].unanswered);
    }
    bench->rpc = rpc_make(bench);
    group_start(bench);
}

static void stopped(void *context, int result) {
    *(int *)context = result;
}

int bench_stop(struct meta_bench *bench) {
    int result = 1;

    group_stop_start(bench->group, stopped, &result);
    for (int i = 0; i < 100000 && result > 0; i++) {
        bench_advance(bench, NS_PER_MS);
    }
    assert_true(result <= 0);
    return result;
}

void bench_stop_and_start(struct meta_bench *bench) {
    assert_int_equal(bench_stop(bench), 0);
    bench_restart(bench, false);
}

struct bytes bench_ticket(struct meta_bench *bench, const struct bench_session *who,
                          const struct identity *identity) {
    struct signer signer;

    ticket_signer_init(&signer, bench->keys);
    size_t size = ticket_make(&signer, (struct ticket_session){who->id, who->incarnation}, identity,
                              bench->ticket);
    signer_deinit(&signer);
    return (struct bytes){bench->ticket, size};
}

int bench_ended(struct meta_bench *bench, uint64_t session) {
    struct call call;

    store_le64(bench->ended, session);
    bench_prepare(bench, 0, OP_SESSIONS_ENDED, &call);
    call.request.sessions_ended =
        (struct sessions_ended_request){.from = bench->list_number,
                                        .number = bench->list_number + 1,
                                        .names = {bench->ended, session ? 8 : 0}};
    int r = bench_run(bench, &call);
    if (r == 0) {
        assert_int_equal(call.reply.sessions_ended.number, ++bench->list_number);
    }
    return r;
}

bool bench_is_known(struct meta_bench *bench, uint64_t session) {
    struct group_stats stats;
    bool known = false;

    bench_stats(bench, &stats);
    for (uint32_t i = 0; i < stats.clients.count; i++) {
        known = known || stats.clients.rows[i].session.value == session;
    }
    return known;
}

void bench_evict(struct meta_bench *bench, uint64_t session) {
    assert_int_equal(bench_ended(bench, session), 0);
    for (int i = 0; bench_is_known(bench, session); i++) {
        if (i > 100000) {
            fail_msg("seed %llu: session %llu never ends", (unsigned long long)bench->seed,
                     (unsigned long long)session);
        }
        bench_turn(bench);
    }
}

void bench_attach(struct meta_bench *bench, uint32_t session) {
    struct bench_session *who = &bench->sessions[session];
    struct call call;

    bench_prepare(bench, session, OP_SESSION_ATTACH, &call);
    call.header.term = 0; /* the test itself sees to it that opens are presented anew */
    call.request.session_attach =
        (struct session_attach_request){.session = who->id, .incarnation = who->incarnation};
    if (bench->keys) {
        call.request.session_attach.ticket = bench_ticket(bench, who, &IDENTITY_OF_MEMBER);
    }
    int r = bench_run(bench, &call);
    if (r < 0) {
        fail_msg("seed %llu: attach answers %s", (unsigned long long)bench->seed, err_name(r));
    }
    who->term = call.reply.session_attach.term;
}

void bench_prepare(struct meta_bench *bench, uint32_t session, uint16_t opcode, struct call *call) {
    struct bench_session *who = &bench->sessions[session];

    memset(call, 0, sizeof *call);
    call->header.opcode = opcode;
    call->header.log = cluster_map_first_log(bench->map, BENCH_MDT);
    call->header.session.value = who->id;
    call->header.incarnation = who->incarnation;
    call->header.term = who->term;
    if (wire_is_mutation(opcode)) {
        call->header.sequence = ++who->sequence;
        call->header.floor = who->sequence > 8 ? who->sequence - 8 : 0;
    }
    call->bulk_in = (struct buffer){.data = bench->bulk, .capacity = sizeof bench->bulk};
}

enum { BENCH_OPEN = 1, BENCH_ANSWERED = 2 };

static void answered(struct call *call) {
    call->stage = BENCH_ANSWERED;
}

void bench_post(struct meta_bench *bench, struct call *call) {
    call->message = (struct message){.kind = CALL_MESSAGE_KIND};
    call->stage = BENCH_OPEN;
    call->reply_to = answered;
    actor_post(group_actor(bench->group), &call->message);
}

bool bench_is_answered(const struct call *call) {
    return call->stage == BENCH_ANSWERED;
}

void bench_turn(struct meta_bench *bench) {
    (void)memory_env_pump(bench->world, 1 + prng_below(&bench->prng, 3));
    while (worker_run_one(&bench->worker)) {
    }
    memory_env_advance(bench->world, 20 * NS_PER_US);
    if (prng_chance(&bench->prng, 1, 50)) {
        memory_env_advance(bench->world, 100 * NS_PER_MS);
        group_tick(bench->group);
        for (uint32_t i = 0; i < BENCH_OSTS; i++) {
            ost_tick(&bench->osts[i]);
        }
    }
}

int bench_finish(struct meta_bench *bench, struct call *call) {
    for (int i = 0; call->stage != BENCH_ANSWERED; i++) {
        if (i > 100000) {
            fail_msg("seed %llu: %s is never answered", (unsigned long long)bench->seed,
                     wire_name(call->header.opcode));
        }
        bench_turn(bench);
    }
    return call->result;
}

int bench_run(struct meta_bench *bench, struct call *call) {
    bench_post(bench, call);
    return bench_finish(bench, call);
}

void bench_advance(struct meta_bench *bench, uint64_t ns) {
    uint64_t end = env_now_ns(memory_env_env(bench->world)) + ns;

    do {
        bench_turn(bench);
    } while (env_now_ns(memory_env_env(bench->world)) < end);
}

struct bench_chunks *bench_chunks_find(struct meta_bench *bench, uint64_t ino,
                                       uint32_t generation) {
    for (uint32_t i = 0; i < bench->chunks_count; i++) {
        if (bench->chunks[i].ino == ino && bench->chunks[i].generation == generation) {
            return &bench->chunks[i];
        }
    }
    return NULL;
}

void bench_chunk_write(struct meta_bench *bench, const struct capability *capability,
                       uint64_t end) {
    struct bench_chunks *chunks =
        bench_chunks_find(bench, capability->ino.value, capability->generation);

    for (uint32_t i = 0; i < BENCH_OSTS; i++) {
        assert_false(bench_is_fenced(&bench->osts[i], capability->session));
    }
    if (!chunks) {
        assert_true(bench->chunks_count < BENCH_CHUNKS);
        chunks = &bench->chunks[bench->chunks_count++];
        *chunks = (struct bench_chunks){.ino = capability->ino.value,
                                        .generation = capability->generation,
                                        .truncate_seq = capability->truncate_seq};
    }
    if (chunks->deleted) {
        fail_msg("seed %llu: generation %u of %llx is written after its end",
                 (unsigned long long)bench->seed, chunks->generation,
                 (unsigned long long)chunks->ino);
    }
    if (chunks->truncate_seq < capability->truncate_seq) {
        chunks->truncate_seq = capability->truncate_seq;
        chunks->length = MIN(chunks->length, capability->truncate_size);
    }
    chunks->length = MAX(chunks->length, end);
}

static void stats_done(struct group_stats *stats) {
    *(bool *)stats->context = true;
}

void bench_stats(struct meta_bench *bench, struct group_stats *ret_stats) {
    bool done = false;

    memset(ret_stats, 0, sizeof *ret_stats);
    ret_stats->done = stats_done;
    ret_stats->clients =
        (struct session_counters_list){bench->clients, ARRAY_SIZE(bench->clients), 0};
    ret_stats->context = &done;
    group_stats_start(bench->group, ret_stats);
    while (!done) {
        bench_turn(bench);
    }
}
