/* The contract is in group_stage.h. */
#include "group_stage.h"
#include "memory_env.h"
#include "rpc/transport_inproc.h"
#include <stdlib.h>

enum { SESSIONS = 4, TURNS_MAX = 4000, SHORT_TURNS = 40, CALL_SECONDS = 5 };

struct group_stage group_stage;
static struct group_stage *const it = &group_stage;
static struct cluster_map map;

static void wake(void *context) {
    (void)context;
}

static struct kv_options kv_options_of(void) {
    return (struct kv_options){.env = memory_env_env(it->world),
                               .directory = "mdt",
                               .shared_name = "mdt-ring",
                               .base = &kv_mem_ops,
                               .base_store = it->store,
                               .owner_id = "a metadata group",
                               .log_id = cluster_map_first_log(&map, STAGE_MDT),
                               .ring_bytes = 256 * KIB,
                               .disk_log_bytes = 2 * MIB,
                               .changes_bytes_max = 1 * MIB,
                               .sync_interval_ns = NS_PER_S,
                               .outcomes_max = 8224,
                               .sessions_max = SESSIONS,
                               .hooks = {.wake = wake}};
}

int group_stage_start(void) {
    const struct rpc_options rpc = {.transport = &transport_inproc_ops,
                                    .transport_context = it->logs,
                                    .env = memory_env_env(it->world),
                                    .resend_ns = NS_PER_S,
                                    .logs_max = 16};
    struct group_options options = {
        .env = memory_env_env(it->world),
        .kv = kv_options_of(),
        .map = &map,
        .target = STAGE_MDT,
        .root_mode = 0777,
        .default_layout = {.chunk_bytes = CHUNK_BYTES_DEFAULT, .stripe_count = STRIPE_ALL},
        .sessions_max = SESSIONS,
        .opens_max = 64,
        .crossings_max = 8};
    int r = rpc_new(&rpc, &it->rpc);

    assert(r == 0);
    options.rpc = it->rpc;
    options.kv.hooks = (struct kv_hooks){0};
    return group_open(&options, &it->group, it->problem);
}

/* The process dies, and what it had under way with it-> */
void group_stage_die(void) {
    memory_env_kill(it->world);
    group_abandon(TAKE_PTR(it->group));
    rpc_free(TAKE_PTR(it->rpc));
}

static void map_make(void) {
    const struct target_id osts[] = {{2}, {3}};

    memset(&map, 0, sizeof map);
    map.cluster_id[0] = 9;
    cluster_map_single(&map, STAGE_MDT, osts, ARRAY_SIZE(osts));
    map.groups[1] = (struct map_group){.id = {2}, .log = STAGE_OTHER_LOG};
    map.group_count = 2;
    for (uint32_t i = STAGE_OTHER_SLOTS; i < SLOT_COUNT; i++) {
        map.slot_groups[i] = 1;
    }
}

void group_stage_begin(void) {
    const struct kv_mem_options store = {.cold_denominator = 1};
    struct log_id logs[] = {STAGE_OTHER_LOG, {0}, {0}};
    int r;

    *it = (struct group_stage){.sequence = 0};
    map_make();
    r = memory_env_new(1, &it->world);
    assert(r == 0);
    r = kv_mem_store_new(&store, &it->store);
    assert(r == 0);
    r = log_table_new(16, &it->logs);
    assert(r == 0);
    worker_init(&it->worker);
    worker_bind(&it->worker);
    answers_init(&it->others, (struct bytes){NULL, 0}, -ERR_TIMED_OUT);
    logs[1] = cluster_map_first_log(&map, (struct target_id){2});
    logs[2] = cluster_map_first_log(&map, (struct target_id){3});
    for (size_t i = 0; i < ARRAY_SIZE(logs); i++) {
        r = log_table_add(it->logs, logs[i], &it->others.actor);
        assert(r == 0);
    }
}

void group_stage_end(void) {
    group_stage_die();
    worker_bind(NULL);
    log_table_free(it->logs);
    kv_mem_store_free(it->store);
    memory_env_free(it->world);
}

void group_stage_turn(uint64_t ns) {
    memory_env_advance(it->world, ns);
    group_tick(it->group);
    do {
        while (worker_run_one(&it->worker)) {
        }
    } while (memory_env_pump(it->world, 16) > 0);
    while (worker_run_one(&it->worker)) {
    }
}

static void note_answer(struct call *call) {
    struct asked *one = CONTAINER_OF(call, struct asked, call);

    assert(!one->answered && call->result <= 0 && call->bulk_in.size <= call->bulk_in.capacity);
    one->answered = true;
}

void asked_begin(struct asked *one, uint16_t opcode) {
    *one = (struct asked){.space = malloc(STAGE_SPACE_BYTES)};
    assert(one->space);
    one->call.message.kind = CALL_MESSAGE_KIND;
    one->call.header = (struct call_header){.opcode = opcode,
                                            .message_class = wire_class(opcode),
                                            .log = cluster_map_first_log(&map, STAGE_MDT),
                                            .session = {1},
                                            .incarnation = 7};
    if (wire_is_mutation(opcode)) {
        one->call.header.sequence = ++it->sequence;
    }
    one->call.bulk_in = (struct buffer){one->space, 0, STAGE_SPACE_BYTES};
    one->call.reply_to = note_answer;
    one->call.deadline_ns = env_now_ns(memory_env_env(it->world)) + CALL_SECONDS * NS_PER_S;
}

void asked_post(struct asked *one) {
    actor_post(group_actor(it->group), &one->call.message);
    group_stage_turn(0);
}

/* It is answered, in its time and not long after it-> */
int asked_end(struct asked *one) {
    for (int i = 0; !one->answered; i++) {
        assert(i < TURNS_MAX);
        group_stage_turn(i < SHORT_TURNS ? 10 * NS_PER_MS : NS_PER_S / 2);
    }
    free(one->space);
    return one->call.result;
}

int group_stage_run(uint16_t opcode, const union request_body *body, union reply_body *ret_reply) {
    static struct asked one;

    asked_begin(&one, opcode);
    one.call.request = *body;
    asked_post(&one);
    int r = asked_end(&one);
    if (ret_reply) {
        *ret_reply = one.call.reply;
    }
    return r;
}

struct kv *group_stage_engine(void) {
    const struct kv_options options = kv_options_of();
    struct kv *kv;
    int r = kv_open(&options, &kv, it->problem);

    assert(r == 0);
    return kv;
}

void group_stage_engine_die(struct kv *kv) {
    memory_env_kill(it->world);
    kv_abandon(kv);
}
