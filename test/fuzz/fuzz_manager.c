/* A manager: its rows as a start finds them, and what it is asked. Whatever they say, whoever asks
 * gets an answer, and nothing breaks in the time in which the silent are evicted and those who do
 * not answer passed over.
 *
 * An input of manager_rows is a byte, whether maps get a right checksum, and then rows: u8 type,
 * u8 id (of a piece of the map its index), u16 size, bytes. One of manager_calls is requests: u8
 * opcode, u8 of enum asker, u16 size, body. Bodies are those that decode. One of manager_answers is
 * what two groups and two storage targets answer (answers.h), while a session begins and ends. */
#include "answers.h"
#include "base/crc32c.h"
#include "kv/kv_mem.h"
#include "manager/manager.h"
#include "manager/manager_format.h"
#include "memory_env.h"
#include "rpc/call_origin.h"
#include "rpc/transport_inproc.h"
#include "rpc/worker.h"
#include "wire/wire_lives.h"
#include <stdlib.h>

enum {
    ROWS_MAX = 48,
    CALLS_MAX = 16,
    SPACE_BYTES = 65536,
    CRC_BYTES = 4,
    SHORT_TURNS = 4,
    TURNS = 12,
    OTHER_LOGS = 16,
    SESSIONS = 64
};

static struct {
    struct memory_env *world;
    struct kv_mem_store *store;
    struct worker worker;
    struct actor origin;
    struct log_table *logs;
    struct rpc *rpc, *client_rpc;
    struct manager *manager;
    bool begun; /* the call of a session has its answer */
} it;

static void wake(void *context) {
    (void)context;
}

static struct kv_options kv_options_of(struct env *env) {
    return (struct kv_options){.env = env,
                               .directory = "manager",
                               .shared_name = "manager",
                               .base = &kv_mem_ops,
                               .base_store = it.store,
                               .owner_id = {1},
                               .ring_bytes = 64 * KIB,
                               .disk_log_bytes = MIB,
                               .changes_bytes_max = 2 * MIB,
                               .base_memory_bytes = MIB,
                               .outcomes_max = 1024,
                               .sync_interval_ns = NS_PER_S,
                               .hooks = {.wake = wake}};
}

static void row_put(struct kv *kv, struct wire_cursor *cursor, bool repairs) {
    static const uint8_t types[] = {MANAGER_ROW_COUNTER, MANAGER_ROW_HANDOVER, MANAGER_ROW_LIFE,
                                    MANAGER_ROW_MAP, MANAGER_ROW_SESSION};
    uint8_t value[KV_VALUE_BYTES_MAX];
    uint8_t type = types[wire_take_number(cursor, 1) % ARRAY_SIZE(types)];
    uint64_t id = wire_take_number(cursor, 1);
    size_t size = MIN((size_t)wire_take_number(cursor, 2) % (sizeof value + 1), cursor->size);
    const uint8_t *from = wire_take(cursor, size);
    const struct kv_key key =
        type == MANAGER_ROW_MAP ? manager_key(type, 0, id) : manager_key(type, id, 0);
    const struct kv_need need = {.rows = 1,
                                 .value_bytes = (uint32_t)size,
                                 .record_bytes = KV_ROW_RECORD_BYTES + (uint32_t)size};
    struct kv_grant grant;

    if (!from || kv_admit(kv, KV_CLASS_CONTROL, &need, &grant) < 0) {
        return;
    }
    memcpy(value, from, size);
    if (type == MANAGER_ROW_MAP && repairs && size >= CRC_BYTES) {
        store_le32(value + size - CRC_BYTES, crc32c(0, value, size - CRC_BYTES));
    }
    kv_begin(kv, &grant);
    int r = kv_put(kv, &key, (struct bytes){value, size});
    assert(r == 0);
    (void)kv_commit(kv);
    (void)kv_seal(kv);
}

/* By an engine that dies at once: what the ring has is there for the manager. */
static void rows_write(struct bytes in) {
    const struct kv_options options = kv_options_of(memory_env_env(it.world));
    struct wire_cursor cursor = fuzz_cursor(in);
    bool repairs = wire_take_number(&cursor, 1) & 1;
    char problem[256];
    struct kv *kv;
    int r = kv_open(&options, &kv, problem);

    assert(r == 0);
    for (int i = 0; i < ROWS_MAX && cursor.size > 0 && !cursor.bad; i++) {
        row_put(kv, &cursor, repairs);
    }
    memory_env_kill(it.world);
    kv_abandon(kv);
}

static void run_idle(void) {
    do {
        while (worker_run_one(&it.worker)) {
        }
    } while (memory_env_pump(it.world, 16) > 0);
    while (worker_run_one(&it.worker)) {
    }
}

static void turn(uint64_t ns) {
    memory_env_advance(it.world, ns);
    manager_tick(it.manager);
    run_idle();
    rpc_tick(it.client_rpc);
    run_idle();
}

static struct rpc *rpc_make(void) {
    const struct rpc_options options = {.transport = &transport_inproc_ops,
                                        .transport_context = it.logs,
                                        .env = memory_env_env(it.world),
                                        .resend_ns = 10 * NS_PER_MS,
                                        .logs_max = OTHER_LOGS};
    struct rpc *rpc;
    int r = rpc_new(&options, &rpc);

    assert(r == 0);
    return rpc;
}

static void note_begun(struct call *call) {
    (void)call;
    it.begun = true;
}

/* Of a node and origin that no row has. */
static void session_begin(struct call *call) {
    static const uint8_t name[] = "/fuzz";

    *call = (struct call){.header = {.opcode = OP_SESSION_BEGIN, .log = LOG_MANAGER},
                          .request.session_begin = {.node = 77777,
                                                    .incarnation = 5,
                                                    .origin = {name, sizeof name - 1}},
                          .origin = &it.origin,
                          .done = note_begun,
                          .deadline_ns = env_now_ns(memory_env_env(it.world)) + NS_PER_S};
    it.begun = false;
    call_start(it.client_rpc, call);
}

static void world_begin(void) {
    const struct kv_mem_options store = {.cold_denominator = 1};
    int r = memory_env_new(1, &it.world);

    assert(r == 0);
    r = kv_mem_store_new(&store, &it.store);
    assert(r == 0);
    r = log_table_new(OTHER_LOGS, &it.logs);
    assert(r == 0);
    worker_init(&it.worker);
    worker_bind(&it.worker);
    actor_init(&it.origin, "origin", call_origin_step);
    it.rpc = rpc_make();
    it.client_rpc = rpc_make();
}

/* Its calls lie in its memory. */
static void world_end(void) {
    log_table_remove(it.logs, LOG_MANAGER);
    rpc_free(it.rpc);
    manager_abandon(it.manager);
    rpc_free(it.client_rpc);
    log_table_free(it.logs);
    worker_bind(NULL);
    kv_mem_store_free(it.store);
    memory_env_free(it.world);
}

static void map_make(struct cluster_map *map) {
    const struct target_id osts[] = {{2}, {3}};

    memset(map, 0, sizeof *map);
    map->cluster_id[0] = 9;
    cluster_map_single(map, (struct target_id){1}, osts, ARRAY_SIZE(osts));
    map->version = 5;
}

static void manager_start(const struct cluster_map *map) {
    const struct manager_options options = {.env = memory_env_env(it.world),
                                            .kv = kv_options_of(memory_env_env(it.world)),
                                            .rpc = it.rpc,
                                            .map = map,
                                            .target = {9},
                                            .sessions_max = SESSIONS};
    char problem[256];
    int r = manager_open(&options, &it.manager, problem);
    assert(r == 0);
    r = log_table_add(it.logs, LOG_MANAGER, manager_actor(it.manager));
    assert(r == 0);
}

static void turns(void) {
    for (int i = 0; i < TURNS; i++) {
        turn(i < SHORT_TURNS ? 100 * NS_PER_MS : 6 * NS_PER_S);
    }
}

static struct cluster_map first_map; /* borrowed by a manager */

void fuzz_manager_rows(struct bytes in) {
    struct call call;

    world_begin();
    rows_write(in);
    map_make(&first_map);
    manager_start(&first_map);
    session_begin(&call);
    turns();
    assert(it.begun && call.result <= 0);
    assert(call.result < 0 || call.reply.session_begin.session > 0);
    assert(manager_session_count(it.manager) <= ROWS_MAX + 1);
    world_end();
}

/* One that is asked of the manager, as the inlet hands it over. */
struct asked {
    struct call call;
    uint32_t scratch[WIRE_GROUPS_MAX];
    bool answered;
};
static struct asked asked[CALLS_MAX];

enum asker { OF_MOUNT = 1, OF_OTHER_MOUNT = 2, WITH_SPACE = 4, AFTER_A_TURN = 8 };

static const uint16_t opcodes[] = {
    OP_SESSION_BEGIN, OP_SESSION_RENEW, OP_SESSION_END, OP_NODE_JOIN, OP_KEY_REVOKE,  OP_KEY_RENEW,
    OP_TARGET_LOSE,   OP_LOG_STARTS,    OP_MAP_GET,     OP_MAP_WAIT,  OP_MAP_CHANGES,
};

static void note_answer(struct call *call) {
    struct asked *one = CONTAINER_OF(call, struct asked, call);

    assert(!one->answered && call->result <= 0 && call->bulk_in.size <= call->bulk_in.capacity);
    one->answered = true;
}

/* False: it is none that the inlet would hand over. */
static bool ask(struct asked *one, struct wire_cursor *cursor) {
    static const struct identity mounts[] = {{.kind = IDENTITY_MOUNT, .serial = 1},
                                             {.kind = IDENTITY_MOUNT, .serial = 2}};
    uint16_t opcode = opcodes[wire_take_number(cursor, 1) % ARRAY_SIZE(opcodes)];
    uint32_t asker = (uint32_t)wire_take_number(cursor, 1);
    size_t size = MIN((size_t)wire_take_number(cursor, 2), cursor->size);
    const uint8_t *body = wire_take(cursor, size);
    bool by_mount = asker & (OF_MOUNT | OF_OTHER_MOUNT);
    struct env *env = memory_env_env(it.world);

    *one = (struct asked){.call = {.header = {.opcode = opcode, .log = LOG_MANAGER},
                                   .message.kind = CALL_MESSAGE_KIND,
                                   .reply_to = note_answer,
                                   .deadline_ns = env_now_ns(env) + 5 * NS_PER_S}};
    if (!body || (by_mount && wire_from(opcode) == WIRE_MEMBER_ONLY) ||
        wire_decode_request(opcode, (struct bytes){body, size}, one->scratch, &one->call.request) <
            0) {
        return false;
    }
    one->call.identity = by_mount ? &mounts[!(asker & OF_MOUNT)] : NULL;
    one->call.bulk_in.capacity = asker & WITH_SPACE ? SPACE_BYTES : 0;
    one->call.bulk_in.data = malloc(SPACE_BYTES);
    assert(one->call.bulk_in.data);
    if (asker & AFTER_A_TURN) {
        turn(NS_PER_S);
    }
    actor_post(manager_actor(it.manager), &one->call.message);
    run_idle();
    return true;
}

void fuzz_manager_calls(struct bytes in) {
    struct wire_cursor cursor = fuzz_cursor(in);
    size_t count = 0;

    world_begin();
    map_make(&first_map);
    manager_start(&first_map);
    turn(NS_PER_S);
    while (count < CALLS_MAX && cursor.size > 0 && !cursor.bad) {
        count += ask(&asked[count], &cursor);
    }
    turns();
    world_end();
    for (size_t i = 0; i < count; i++) {
        assert(asked[i].answered);
        free(asked[i].call.bulk_in.data);
    }
}

static void give_call(struct buffer *out, uint16_t opcode, uint8_t asker,
                      const union request_body *body) {
    uint8_t at = 0;

    while (opcodes[at] != opcode) {
        at++;
    }
    wire_give_number(out, at, 1);
    give_request(out, opcode, asker, body);
}

/* One node joins, with targets, an address, a life and what space it has; one that is ready has
 * rows of a version to come. */
static void give_join(struct buffer *out, bool ready) {
    static const struct {
        struct wire_life known;
        uint64_t added;
    } life = {{.log = 40, .term = 1, .life_high = 5, .life_low = 6}, 7};
    static const struct {
        struct wire_space known;
        uint64_t added;
    } space = {{.target = 4, .used_bytes = 9, .available_bytes = 1}, 7};
    const size_t life_bytes = ready ? sizeof life : sizeof life.known;
    const size_t space_bytes = ready ? sizeof space : sizeof space.known;
    const union request_body body = {
        .node_join = {.key_high = 1,
                      .key_low = 2,
                      .target_count = 2,
                      .mdt_count = 1,
                      .ready = ready,
                      .address = {(const uint8_t *)"10.0.0.2:7400", 13},
                      .spaces = {(const uint8_t *)&space, space_bytes},
                      .lives = {(const uint8_t *)&life, life_bytes},
                      .spaces_row_bytes = (uint16_t)space_bytes,
                      .lives_row_bytes = (uint16_t)life_bytes,
                      .members_key = 3,
                      .map_version = 5,
                      .place = 8,
                      .capability_number = 1}};

    give_call(out, OP_NODE_JOIN, AFTER_A_TURN, &body);
}

void seed_manager_calls(const struct fuzz_seeds *seeds) {
    static uint8_t space[8192];
    const struct bytes name = {(const uint8_t *)"/mnt", 4};
    const union request_body begin = {
        .session_begin = {.node = 1, .incarnation = 7, .origin = name}};
    const union request_body of_first = {.session_end = {.session = 1, .incarnation = 7}};
    const union request_body number = {.key_revoke = {.serial = 2}};
    const union request_body lose = {.target_lose = {.target = 3}};
    const union request_body newest = {.map_wait = {.known_version = 5, .who = 3}};
    struct buffer out = {space, 0, sizeof space};

    give_call(&out, OP_SESSION_BEGIN, OF_MOUNT | WITH_SPACE, &begin);
    give_call(&out, OP_SESSION_BEGIN, OF_OTHER_MOUNT | WITH_SPACE, &begin);
    give_call(&out, OP_SESSION_RENEW, OF_MOUNT, &of_first);
    give_call(&out, OP_KEY_REVOKE, 0, &number);
    give_call(&out, OP_SESSION_END, OF_MOUNT, &of_first);
    fuzz_seed(seeds, (struct bytes){space, out.size});
    out.size = 0;
    give_join(&out, false);
    give_join(&out, true);
    give_call(&out, OP_MAP_WAIT, OF_MOUNT, &newest);
    give_call(&out, OP_KEY_RENEW, 0, &(const union request_body){0});
    give_call(&out, OP_TARGET_LOSE, AFTER_A_TURN, &lose);
    give_call(&out, OP_MAP_CHANGES, WITH_SPACE, &(const union request_body){0});
    give_call(&out, OP_MAP_GET, WITH_SPACE, &(const union request_body){0});
    give_call(&out, OP_LOG_STARTS, WITH_SPACE, &(const union request_body){0});
    fuzz_seed(seeds, (struct bytes){space, out.size});
}

static void give_row(struct buffer *out, uint8_t type, uint8_t id, const void *value, size_t size) {
    wire_give_number(out, type, 1);
    wire_give_number(out, id, 1);
    wire_give_number(out, size, 2);
    wire_give(out, value, size);
}

/* A map of one node, with a group or none, as a row. Answers the log of the group. */
static uint64_t give_map(struct buffer *out, bool with_group) {
    static struct cluster_map map;
    static uint8_t encoded[MANAGER_PIECE_BYTES];
    struct buffer bytes = {encoded, 0, sizeof encoded};

    map_make(&map);
    uint64_t log = map.groups[0].log.value;
    if (!with_group) {
        map.group_count = 0;
        memset(map.slot_groups, 0xff, sizeof map.slot_groups);
    }
    assert(cluster_map_size(&map) <= sizeof encoded);
    cluster_map_encode(&map, &bytes);
    give_row(out, 3, 0, encoded, bytes.size);
    return log;
}

/* As it was left by one that had two sessions, a life of a log and a hand-over under way; and by
 * one whose map has nobody left to hand over to. */
void seed_manager_rows(const struct fuzz_seeds *seeds) {
    static uint8_t space[8192];
    const struct manager_session_row session = {
        .format = MANAGER_ROW_FORMAT, .node = 1, .incarnation = 7};
    const struct manager_life_row life = {
        .format = MANAGER_ROW_FORMAT, .node = 1, .term = 4, .life_high = 6, .life_low = 8};
    struct manager_handover_row handover = {.format = MANAGER_ROW_FORMAT, .number = 3, .count = 9};
    uint8_t named[sizeof session + 4];
    const uint64_t counter = 12;
    struct buffer out = {space, 1, sizeof space};

    space[0] = 1;
    handover.from = handover.to = give_map(&out, true);
    fuzz_seed(seeds, (struct bytes){space, out.size});
    memcpy(named, &session, sizeof session);
    memcpy(named + sizeof session, "/mnt", 4);
    give_row(&out, 0, 0, &counter, sizeof counter);
    give_row(&out, 0, 1, &counter, sizeof counter);
    give_row(&out, 4, 3, named, sizeof named);
    give_row(&out, 4, 5, &session, sizeof session);
    give_row(&out, 2, 4, &life, sizeof life);
    give_row(&out, 1, 0, &handover, sizeof handover);
    fuzz_seed(seeds, (struct bytes){space, out.size});
    out.size = 1;
    (void)give_map(&out, false);
    give_row(&out, 1, 0, &handover, sizeof handover);
    fuzz_seed(seeds, (struct bytes){space, out.size});
}

static struct answers others;

/* One group has all slots, and one none yet; they and the storage targets answer by the input. */
static void others_begin(struct bytes in) {
    map_make(&first_map);
    int r = cluster_map_add_mdt(&first_map, (struct node_id){1}, (struct target_id){20});
    assert(r == 0);
    answers_init(&others, in, -ERR_TIMED_OUT);
    for (uint32_t i = 0; i < cluster_map_log_places(&first_map); i++) {
        struct log_id log = cluster_map_log_at(&first_map, i).id;

        r = log.value == 0 ? 0 : log_table_add(it.logs, log, &others.actor);
        assert(r == 0);
    }
}

/* Sets `map` to what the manager answers. */
static void map_ask(struct cluster_map *map) {
    static uint8_t space[SPACE_BYTES];
    struct call call = {.header = {.opcode = OP_MAP_GET, .log = LOG_MANAGER},
                        .bulk_in = {space, 0, sizeof space},
                        .origin = &it.origin,
                        .done = note_begun,
                        .deadline_ns = env_now_ns(memory_env_env(it.world)) + NS_PER_S};

    it.begun = false;
    call_start(it.client_rpc, &call);
    turn(NS_PER_MS);
    assert(it.begun && call.result == 0);
    int r = cluster_map_decode((struct bytes){space, call.bulk_in.size}, map);
    assert(r == 0 && map->version == call.reply.map_get.version);
}

/* All slots stay somebody's; one that another group has was handed over, once or more. */
static void check_slots(const struct cluster_map *map) {
    assert(map->version >= first_map.version && map->group_count == first_map.group_count);
    for (uint32_t slot = 0; slot < SLOT_COUNT; slot++) {
        assert(map->slot_groups[slot] < map->group_count);
        assert(map->slot_handovers[slot] > 0 ||
               map->slot_groups[slot] == first_map.slot_groups[slot]);
    }
}

static void session_end(uint64_t session) {
    struct call call = {.header = {.opcode = OP_SESSION_END, .log = LOG_MANAGER},
                        .request.session_end = {.session = session, .incarnation = 5},
                        .origin = &it.origin,
                        .done = note_begun,
                        .deadline_ns = env_now_ns(memory_env_env(it.world)) + NS_PER_S};

    it.begun = false;
    call_start(it.client_rpc, &call);
    turns();
    assert(it.begun && call.result <= 0);
}

static void manager_killed(void) {
    log_table_remove(it.logs, LOG_MANAGER);
    memory_env_kill(it.world);
    rpc_free(it.rpc);
    manager_abandon(it.manager);
    it.rpc = rpc_make();
    manager_start(&first_map);
    turn(NS_PER_S);
}

void fuzz_manager_answers(struct bytes in) {
    static struct cluster_map map, again;
    struct call call;

    world_begin();
    others_begin(in);
    manager_start(&first_map);
    session_begin(&call);
    turns();
    assert(it.begun && call.result <= 0);
    if (call.result == 0) {
        session_end(call.reply.session_begin.session);
    }
    map_ask(&map);
    check_slots(&map);
    manager_killed();
    map_ask(&again);
    check_slots(&again);
    assert(again.version >= map.version);
    turns();
    world_end();
}

/* Answers come in the order in which they are asked for: three targets tell their number of the
 * list, two groups are told of slots, one gives some, by turns as a version before and as this one
 * says it. */
void seed_manager_answers(const struct fuzz_seeds *seeds) {
    static uint8_t space[4096];
    const struct wire_slots given = {.first = 40000, .count = 300, .handover = 1};
    const struct bytes slots = {(const uint8_t *)&given, sizeof given}, none = {NULL, 0};
    static const uint16_t orders[][4] = {
        {OP_SESSIONS_ENDED, OP_GROUP_TELL, OP_SLOTS_GIVE, OP_GROUP_TELL},
        {OP_GROUP_TELL, OP_SLOTS_GIVE, OP_SESSIONS_ENDED, OP_SLOTS_GIVE},
        {OP_SLOTS_GIVE, OP_GROUP_TELL, OP_GROUP_TELL, OP_SESSIONS_ENDED}};

    for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
        struct buffer out = {space, 0, sizeof space};

        for (size_t k = 0; k < 6 * ARRAY_SIZE(orders[i]); k++) {
            uint16_t opcode = orders[i][k % ARRAY_SIZE(orders[i])];
            union reply_body reply = {0};

            if (opcode == OP_SESSIONS_ENDED) {
                reply.sessions_ended.number = 1 + k / 6;
            } else if (opcode == OP_GROUP_TELL) {
                reply.group_tell.unopened = 1000;
            } else if (k % 2 == 1) {
                reply.slots_give.row_bytes = sizeof given;
            }
            give_reply(&out, opcode, &reply, opcode == OP_SLOTS_GIVE ? slots : none);
        }
        give_error(&out, -ERR_TARGET_LOST);
        fuzz_seed(seeds, (struct bytes){space, out.size});
    }
}
