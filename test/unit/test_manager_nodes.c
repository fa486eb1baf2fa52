/* The manager as to maps and nodes: what is handed out, who joins, who is lost. */
#include "layout/map_lost.h"
#include "layout/map_slots.h"
#include "manager/manager_format.h"
#include "manager_bench.h"
#include "other_rows.h"

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

static struct node_join_reply join(struct bench *bench, uint64_t key, uint32_t target_count,
                                   const char *address) {
    struct asked asked;

    assert_int_equal(ask(bench, &asked, OP_NODE_JOIN, node_join_of(key, target_count, address)), 0);
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

/* Everybody has an address with this name in it. */
static void readdress(struct bench *bench, const char *name) {
    char address[64];

    for (uint32_t i = 0; i < 12; i++) {
        (void)snprintf(address, sizeof address, "10.0.0.%u%s:7400", (unsigned)i, name);
        (void)join(bench, 70 + i, 1, address);
        pass(bench, 3 * NS_PER_S);
    }
}

static size_t map_bytes(struct bench *bench) {
    struct cluster_map *map = map_of(bench);
    size_t bytes = cluster_map_size(map);

    free(map);
    return bytes;
}

/* A piece behind those of the map, as a version before has left them. */
static void piece_put(struct bench *bench, uint32_t index) {
    static const uint8_t left[MANAGER_PIECE_BYTES] = {1};
    const struct kv_need need = {
        .rows = 1, .value_bytes = sizeof left, .record_bytes = sizeof left + KV_ROW_RECORD_BYTES};
    struct kv *kv = manager_kv(bench->manager);
    struct kv_key key = manager_key(MANAGER_ROW_MAP, 0, index);
    struct kv_grant grant;

    assert_int_equal(kv_admit(kv, KV_CLASS_CONTROL, &need, &grant), 0);
    kv_begin(kv, &grant);
    assert_int_equal(kv_put(kv, &key, (struct bytes){left, sizeof left}), 0);
    (void)kv_commit(kv);
    (void)kv_seal(kv);
}

/* The map that ends before is the map, and the next one takes what is left away: else one that gets
 * as long again would be read with it. */
static void test_pieces_that_a_version_before_has_left(void **state) {
    struct bench *bench = *state;

    for (uint32_t i = 0; i < 12; i++) {
        (void)join(bench, 70 + i, 1, NULL);
    }
    readdress(bench, "");
    uint32_t pieces = (uint32_t)(map_bytes(bench) / MANAGER_PIECE_BYTES) + 1;
    piece_put(bench, pieces);
    piece_put(bench, pieces + 1);
    manager_again(bench, MANAGER_STOPS);
    struct cluster_map *map = map_of(bench);
    assert_string_equal(cluster_map_node(map, (struct node_id){2})->address, "10.0.0.0:7400");
    free(map);
    readdress(bench, ".storage");
    struct kv_key key = manager_key(MANAGER_ROW_MAP, 0, pieces + 1);
    struct bytes value;
    assert_int_equal(kv_get(manager_kv(bench->manager), &key, &value), -ERR_NOT_FOUND);
    manager_again(bench, MANAGER_LOSES_POWER);
    map = map_of(bench);
    assert_string_equal(cluster_map_node(map, (struct node_id){2})->address,
                        "10.0.0.0.storage:7400");
    free(map);
}

/* What a longer one has left in the base is no part of it. */
static void test_a_map_gets_shorter(void **state) {
    struct bench *bench = *state;

    for (uint32_t i = 0; i < 12; i++) {
        (void)join(bench, 70 + i, 1, NULL);
    }
    readdress(bench, ".storage.cluster.example.org");
    size_t long_bytes = map_bytes(bench);
    readdress(bench, "");
    assert_true(map_bytes(bench) / MANAGER_PIECE_BYTES < long_bytes / MANAGER_PIECE_BYTES);
    manager_again(bench, MANAGER_STOPS);
    struct cluster_map *map = map_of(bench);
    assert_string_equal(cluster_map_node(map, (struct node_id){2})->address, "10.0.0.0:7400");
    free(map);
}

static int lose_by(struct bench *bench, struct target_lose_request request,
                   struct target_lose_reply *ret_reply) {
    struct asked asked;
    int r = ask(bench, &asked, OP_TARGET_LOSE, (union request_body){.target_lose = request});

    *ret_reply = asked.call.reply.target_lose;
    return r;
}

static int lose(struct bench *bench, uint32_t target, bool asks_only,
                struct target_lose_reply *ret_reply) {
    const struct target_lose_request request = {
        .target = target, .asks_only = asks_only, .knows_metadata = 1};

    return lose_by(bench, request, ret_reply);
}

/* Once nobody has spoken for its node for a while; then for good, also behind a restart that lost
 * whatever was not flushed. A node that speaks again changes nothing of it. */
static void test_a_target_is_lost(void **state) {
    struct bench *bench = *state;
    uint32_t first = join(bench, 70, 2, NULL).first_target;
    struct target_lose_reply reply;

    (void)join(bench, 70, 2, "10.0.0.2:7400");
    assert_int_equal(lose(bench, MDT, true, &reply), -ERR_ROOT_TARGET);
    assert_int_equal(lose(bench, 999, true, &reply), -ERR_NOT_FOUND);
    assert_int_equal(lose(bench, OST, false, &reply), -ERR_IN_USE); /* the manager's own node */
    assert_int_equal(lose(bench, first, false, &reply), -ERR_IN_USE);
    pass(bench, 11 * NS_PER_S);
    assert_int_equal(lose(bench, first, true, &reply), 0);
    assert_int_equal(reply.node, 2);
    assert_int_equal(reply.is_known, 0);
    uint64_t version = manager_map(bench->manager)->version;
    assert_int_equal(lose(bench, first, false, &reply), 0);
    assert_int_equal(reply.map_version, version + 1);
    for (int i = 0; i < 2; i++) {
        struct cluster_map *map = map_of(bench);
        struct pool_version pool;

        assert_true(cluster_map_is_lost(map, (struct target_id){first}));
        assert_false(cluster_map_is_lost(map, (struct target_id){first + 1}));
        assert_true(cluster_map_pool(map, 0, &pool));
        assert_int_equal(pool.chains[pool.chain_count - 1], first + 1);
        assert_int_equal(pool.chains[pool.chain_count - 2], OST + 1);
        free(map);
        assert_int_equal(lose(bench, first, false, &reply), -ERR_TARGET_LOST);
        (void)join(bench, 70, 2, "10.0.0.2:7400");
        manager_dies(bench, true);
        manager_begins(bench);
    }
}

/* What is asked while another loss is on its way to the disk is looked at by the map that comes of
 * that. A manager that has just started takes all nodes for heard. */
static void test_losses_at_once(void **state) {
    struct bench *bench = *state;
    uint32_t first = join(bench, 70, 2, NULL).first_target;
    const uint32_t targets[] = {first, first, first + 1, 999, MDT, OST};
    const int results[] = {0, -ERR_TARGET_LOST, 0, -ERR_NOT_FOUND, -ERR_ROOT_TARGET, -ERR_IN_USE};
    struct asked asked[ARRAY_SIZE(targets)];
    struct target_lose_reply reply;

    (void)join(bench, 70, 2, "10.0.0.2:7400");
    pass(bench, 11 * NS_PER_S);
    manager_dies(bench, true);
    manager_begins(bench);
    assert_int_equal(lose(bench, first, false, &reply), -ERR_IN_USE);
    pass(bench, 11 * NS_PER_S);
    uint64_t version = manager_map(bench->manager)->version;
    for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
        const struct target_lose_request request = {.target = targets[i], .knows_metadata = 1};

        start(bench, &asked[i], OP_TARGET_LOSE, (union request_body){.target_lose = request});
    }
    pass(bench, 3 * NS_PER_S);
    for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
        assert_true(asked[i].done);
        assert_int_equal(asked[i].call.result, results[i]);
    }
    assert_in_range(manager_map(bench->manager)->version, version + 1, version + 2);
    assert_true(cluster_map_is_lost(manager_map(bench->manager), (struct target_id){first}));
    assert_true(cluster_map_is_lost(manager_map(bench->manager), (struct target_id){first + 1}));
}

static struct manager_hearing hearing_of(struct bench *bench) {
    struct manager_hearing hearing;

    pass(bench, NS_PER_S);
    manager_hearing_get(bench->manager, &hearing);
    return hearing;
}

/* A node that has lost all is missed by nobody. */
static void test_who_is_lost_counts_as_no_node(void **state) {
    struct bench *bench = *state;
    uint32_t first = join(bench, 70, 1, NULL).first_target;
    struct target_lose_reply reply;

    (void)join(bench, 70, 1, "10.0.0.2:7400");
    assert_int_equal(hearing_of(bench).nodes, 2);
    pass(bench, 11 * NS_PER_S);
    assert_int_equal(lose(bench, first, false, &reply), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(hearing_of(bench).nodes, 1);
        assert_int_equal(hearing_of(bench).nodes_heard, 1);
        uint64_t version = join(bench, 70, 1, "10.0.0.2:7400").map_version;
        assert_int_equal(join(bench, 70, 1, "10.0.0.2:7400").map_version, version);
        assert_int_equal(hearing_of(bench).nodes, 1);
        manager_dies(bench, true);
        manager_begins(bench);
    }
}

static void test_who_may_not_join(void **state) {
    struct bench *bench = *state;
    const struct {
        union request_body request;
        int result;
    } rows[] = {
        {node_join_of(0, 1, NULL), 0}, /* key_low is 1: a key */
        {{.node_join = {.target_count = 1}}, -ERR_INVALID},
        {node_join_of(70, 65, NULL), -ERR_INVALID},
        {node_join_of(70, 1, "10.0.0.2"), -ERR_INVALID},
        {node_join_of(70, 1, "10.0.0.2:7400"), -ERR_OTHER_CLUSTER},
        {node_join_of(0, 2, NULL), 0}, /* as before */
        {node_join_of(0, 2, "10.0.0.2:7400"), -ERR_INVALID},
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
        start(bench, &asked[i], OP_NODE_JOIN, node_join_of(100 + i, 1, NULL));
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

/* So many targets that no record holds the map: they are refused, and others are served as ever;
 * also behind a stop, a kill and a loss of power. */
static void test_a_map_that_no_record_holds(void **state) {
    enum { NODES = 500 };
    const union request_body revoke = {.key_revoke = {.serial = 4}};
    struct bench *bench = *state;
    struct asked *asked = calloc(NODES, sizeof *asked);
    struct asked revoked;
    uint32_t refused = 0;

    for (int ready = 0; ready < 2; ready++) {
        for (uint64_t i = 0; i < NODES; i++) {
            start(bench, &asked[i], OP_NODE_JOIN,
                  node_join_of(100 + i, 1, ready ? "10.0.0.2:7400" : NULL));
        }
        pass(bench, 10 * NS_PER_S);
        for (uint64_t i = 0; i < NODES; i++) {
            assert_true(asked[i].done);
            assert_true(asked[i].call.result == 0 ||
                        (ready && asked[i].call.result == -ERR_NO_SPACE));
            refused += asked[i].call.result < 0;
        }
    }
    assert_in_range(refused, 1, NODES - 1);
    assert_int_equal(ask(bench, &revoked, OP_KEY_REVOKE, revoke), 0);
    assert_int_equal(join(bench, 5000, 1, NULL).node, NODES + 2);
    union request_body last = node_join_of(0, 1, NULL);
    int r = 0;
    for (uint64_t i = 0; r == 0; i++) {
        assert_true(i < NODES);
        last = node_join_of(100 + i, 1, "10.0.0.2:7400");
        r = ask(bench, &revoked, OP_NODE_JOIN, last);
    }
    assert_int_equal(r, -ERR_NO_SPACE);
    uint32_t targets = manager_map(bench->manager)->target_count;
    for (enum manager_end end = 0; end < MANAGER_ENDS; end++) {
        manager_again(bench, end);
        assert_int_equal(ask(bench, &revoked, OP_NODE_JOIN, last), -ERR_NO_SPACE);
        assert_int_equal(manager_map(bench->manager)->target_count, targets);
        assert_int_equal(manager_map(bench->manager)->node_count, NODES + 2);
        assert_int_equal(join(bench, 5000, 1, NULL).node, NODES + 2);
    }
    free(asked);
}

/* A node that joins with a metadata target: in the map once it is formatted, without slots. */
static uint32_t mdt_joins(struct bench *bench, struct target *joiner) {
    bool is_first = joiner == &bench->joiner;
    uint64_t key = is_first ? 90 : 91;
    union request_body request = node_join_of(key, 1, NULL);
    struct asked asked;

    request.node_join.mdt_count = UINT32_MAX;
    assert_int_equal(ask(bench, &asked, OP_NODE_JOIN, request), 0);
    assert_int_equal(asked.call.reply.node_join.mdt_count, 1);
    uint32_t target = asked.call.reply.node_join.first_target;
    joiner_begins(bench, joiner, target);
    request = node_join_of(key, 2, is_first ? "10.0.0.9:7400" : "10.0.0.10:7400");
    request.node_join.mdt_count = 1;
    assert_int_equal(ask(bench, &asked, OP_NODE_JOIN, request), 0);
    return target;
}

static uint32_t slots_of(struct bench *bench, uint16_t group, uint32_t *ret_handover) {
    struct cluster_map *map = map_of(bench);
    struct map_slots slots = {0};

    (void)cluster_map_slots_next(map, group, 0, &slots);
    *ret_handover = slots.handover;
    uint32_t count = cluster_map_slot_count(map, group);
    free(map);
    return count;
}

/* It gets its share of the slots of the other one, under one number whoever dies; it is told of
 * them when the map has them. */
static void test_slots_are_handed_over(void **state) {
    struct bench *bench = *state;
    struct target *giver = &bench->targets[0];
    uint32_t handover;

    giver->result = -ERR_IO;
    giver->gives = (struct wire_slots){.first = SLOT_COUNT / 2, .count = SLOT_COUNT / 2};
    uint32_t target = mdt_joins(bench, &bench->joiner);
    pass(bench, 3 * NS_PER_S);
    assert_true(giver->asked_count >= 2 && giver->asked_under == 1);
    assert_int_equal(slots_of(bench, 1, &handover), 0);
    assert_int_equal(bench->joiner.had_count, 0);
    for (int power = 0; power < 2; power++) {
        manager_dies(bench, power);
        manager_begins(bench);
        giver->asked_under = 0;
        pass(bench, 3 * NS_PER_S);
        assert_int_equal(giver->asked_under, 1);
    }
    giver->result = 0;
    pass(bench, 3 * NS_PER_S);
    assert_int_equal(slots_of(bench, 1, &handover), SLOT_COUNT / 2);
    assert_int_equal(handover, 1);
    assert_true(bench->joiner.had.first == SLOT_COUNT / 2 && bench->joiner.had.handover == 1);
    assert_int_equal(giver->had.count, SLOT_COUNT / 2);
    uint32_t asked = giver->asked_count;
    manager_dies(bench, true);
    manager_begins(bench);
    bench->joiner.had_count = 0;
    pass(bench, 3 * NS_PER_S);
    assert_int_equal(bench->joiner.had_count, 1);
    assert_int_equal(giver->asked_count, asked);
    assert_true(target > OST + 1);
}

/* Who has nothing to give is asked once; who gives what is not its own, or gives by another number,
 * is not believed. */
static void test_slots_that_are_not_given(void **state) {
    struct bench *bench = *state;
    struct target *giver = &bench->targets[0];
    uint32_t handover;

    giver->gives = (struct wire_slots){.first = SLOT_COUNT - 5, .count = 6};
    (void)mdt_joins(bench, &bench->joiner);
    pass(bench, 3 * NS_PER_S);
    assert_true(giver->asked_count >= 2 && giver->asked_under == 1);
    assert_int_equal(slots_of(bench, 1, &handover), 0);
    giver->gives.count = 0;
    pass(bench, 3 * NS_PER_S);
    uint32_t asked = giver->asked_count;
    pass(bench, 5 * NS_PER_S);
    assert_int_equal(giver->asked_count, asked);
    assert_int_equal(slots_of(bench, 1, &handover), 0);
    /* It was asked before it had those of the map, and has told since that it has some. */
    giver->unopened = 100;
    giver->gives = (struct wire_slots){.first = SLOT_COUNT - 100, .count = 100};
    pass(bench, 13 * NS_PER_S);
    assert_int_equal(slots_of(bench, 1, &handover), 100);
}

/* What a version to come adds to slots that it gives is skipped; of a length that no version has
 * nothing is believed, and it is asked again. */
static void test_rows_of_other_versions(void **state) {
    struct bench *bench = *state;
    struct target *giver = &bench->targets[0];
    uint32_t handover;

    giver->gives = (struct wire_slots){.first = SLOT_COUNT - 100, .count = 100};
    giver->gives_row_bytes = rows_wrong(0, sizeof giver->gives);
    (void)mdt_joins(bench, &bench->joiner);
    for (uint32_t i = 0; (giver->gives_row_bytes = rows_wrong(i, sizeof giver->gives)); i++) {
        uint32_t asked = giver->asked_count;

        pass(bench, 3 * NS_PER_S);
        assert_true(giver->asked_count > asked);
        assert_int_equal(slots_of(bench, 1, &handover), 0);
    }
    giver->gives_row_bytes = sizeof giver->gives + ROW_MORE;
    giver->gives_more_bytes = ROW_MORE;
    pass(bench, 3 * NS_PER_S);
    assert_int_equal(slots_of(bench, 1, &handover), 100);
    assert_true(bench->joiner.had.first == SLOT_COUNT - 100 && bench->joiner.had.count == 100);
}

/* Whether clients are sent to the target's log, to come back to it. */
static bool starts_name(struct bench *bench, uint32_t target) {
    struct wire_start starts[4];
    struct asked asked = {.call = {.header = {.opcode = OP_LOG_STARTS, .log = LOG_MANAGER},
                                   .bulk_in = {(uint8_t *)starts, 0, sizeof starts},
                                   .origin = &bench->origin,
                                   .done = asked_done}};
    bool named = false;

    call_start(bench->client_rpc, &asked.call);
    finish(bench, &asked);
    assert_int_equal(asked.call.result, 0);
    for (size_t i = 0; i < asked.call.bulk_in.size / sizeof *starts; i++) {
        const struct target_id id = {target};

        named = named || starts[i].log == cluster_map_first_log(&bench->map, id).value;
    }
    return named;
}

/* How many of those that come next get a metadata target from the manager. */
static uint32_t mdts_get(struct bench *bench, uint64_t key) {
    struct node_join_reply reply = {.mdt_count = 1};
    uint32_t count = 0;

    for (; reply.mdt_count > 0; key++) {
        union request_body request = node_join_of(key, 1, NULL);
        struct asked asked;

        request.node_join.mdt_count = UINT32_MAX;
        assert_int_equal(ask(bench, &asked, OP_NODE_JOIN, request), 0);
        reply = asked.call.reply.node_join;
        count += reply.mdt_count;
    }
    return count;
}

/* It keeps its slots and gets no more, gives none, and is told nothing; nobody comes back to it,
 * and a node that comes in its stead gets one. */
static void test_a_metadata_target_is_lost(void **state) {
    const uint32_t share = SLOT_COUNT / 3;
    struct bench *bench = *state;
    struct target *giver = &bench->targets[0];
    struct target_lose_reply reply;
    uint32_t handover;
    struct asked asked;

    giver->gives = (struct wire_slots){.first = SLOT_COUNT / 2, .count = SLOT_COUNT / 2};
    uint32_t target = mdt_joins(bench, &bench->joiner);
    pass(bench, 3 * NS_PER_S);
    assert_int_equal(slots_of(bench, 1, &handover), SLOT_COUNT / 2);
    assert_int_equal(lose(bench, target, false, &reply), -ERR_IN_USE);
    pass(bench, 11 * NS_PER_S);
    assert_int_equal(lose(bench, target, true, &reply), 0);
    assert_int_equal(reply.kind, TARGET_MDT);
    assert_int_equal(reply.is_known, 1);
    assert_true(starts_name(bench, target));
    const struct target_lose_request older = {.target = target};
    assert_int_equal(lose_by(bench, older, &reply), -ERR_NOT_SUPPORTED);
    assert_int_equal(lose(bench, target, false, &reply), 0);
    assert_false(starts_name(bench, target));
    assert_true(starts_name(bench, MDT));
    assert_int_equal(hearing_of(bench).nodes, 2);
    assert_int_equal(lose(bench, target + 1, false, &reply), 0); /* its storage target */
    assert_int_equal(hearing_of(bench).nodes, 1);
    const struct target before = bench->joiner;
    giver->gives = (struct wire_slots){.first = 0, .count = SLOT_COUNT / 2 - share};
    (void)mdt_joins(bench, &bench->second);
    for (int power = 0; power < 2; power++) {
        assert_int_equal(ask(bench, &asked, OP_SESSION_BEGIN, begin_of(2, 5, "/x")), 0);
        uint64_t session = asked.call.reply.session_begin.session;

        assert_int_equal(ask(bench, &asked, OP_SESSION_END, end_of(session, 5)), 0);
        pass(bench, 15 * NS_PER_S);
        assert_true(is_ended(giver, session));
        assert_int_equal(slots_of(bench, 1, &handover), SLOT_COUNT / 2);
        assert_int_equal(slots_of(bench, 2, &handover), SLOT_COUNT / 2 - share);
        assert_int_equal(bench->joiner.told, before.told);
        assert_int_equal(bench->joiner.had_count, before.had_count);
        assert_int_equal(bench->joiner.asked_count, before.asked_count);
        assert_int_equal(lose(bench, target, false, &reply), -ERR_TARGET_LOST);
        manager_dies(bench, power);
        manager_begins(bench);
    }
    assert_int_equal(mdts_get(bench, 200), 8 - 2);
}

/* Who is full is told to all groups, itself included, until it has room again. */
static void test_full_groups_are_told_of(void **state) {
    struct bench *bench = *state;
    struct target *first = &bench->targets[0];
    struct target *joiner = &bench->joiner;

    (void)mdt_joins(bench, joiner);
    pass(bench, 25 * NS_PER_S);
    assert_true(first->full_told == 0 && joiner->full_told == 0);
    for (int round = 0; round < 2; round++) {
        joiner->is_full = true;
        pass(bench, 25 * NS_PER_S);
        assert_true(first->full_told == 1 && joiner->full_told == 1);
        first->is_full = true;
        pass(bench, 25 * NS_PER_S);
        assert_true(first->full_told == 2 && joiner->full_told == 2);
        first->is_full = joiner->is_full = false;
        pass(bench, 25 * NS_PER_S);
        assert_true(first->full_told == 0 && joiner->full_told == 0);
    }
}

/* Those whose first start failed behind their numbers take no other's place, once the time of such
 * a start is over; who asks again, or may have asked before the manager's start, has all of it. */
static void test_joiners_that_never_come(void **state) {
    const uint64_t start_ns = 300 * NS_PER_S;
    struct bench *bench = *state;
    union request_body request = node_join_of(200, 1, NULL);
    struct asked asked;

    request.node_join.mdt_count = UINT32_MAX;
    assert_int_equal(mdts_get(bench, 200), 8 - 1);
    pass(bench, start_ns - 60 * NS_PER_S);
    assert_int_equal(mdts_get(bench, 300), 0);
    assert_int_equal(ask(bench, &asked, OP_NODE_JOIN, request), 0);
    assert_int_equal(asked.call.reply.node_join.mdt_count, 1);
    pass(bench, 70 * NS_PER_S);
    assert_int_equal(mdts_get(bench, 400), 8 - 2);
    manager_dies(bench, true);
    manager_begins(bench);
    pass(bench, start_ns - 10 * NS_PER_S);
    assert_int_equal(mdts_get(bench, 500), 0);
    pass(bench, 20 * NS_PER_S);
    (void)mdt_joins(bench, &bench->joiner);
    pass(bench, start_ns);
    assert_int_equal(mdts_get(bench, 600), 8 - 2);
}

/* One that stores nothing would have no target at all. */
static void test_a_joiner_without_storage_targets(void **state) {
    struct bench *bench = *state;
    union request_body request = node_join_of(300, 0, NULL);
    struct asked asked;

    assert_int_equal(mdts_get(bench, 200), 8 - 1);
    request.node_join.mdt_count = UINT32_MAX;
    assert_int_equal(ask(bench, &asked, OP_NODE_JOIN, request), 0);
    assert_int_equal(asked.call.reply.node_join.mdt_count, 1);
}

/* What one may have given and was not heard of is lost with it, also for a manager that has only
 * its row; others give then. */
static void test_a_giver_is_lost(void **state) {
    const uint32_t count = SLOT_COUNT / 2 - SLOT_COUNT / 3;
    struct bench *bench = *state;
    struct target *giver = &bench->targets[0];
    struct target_lose_reply reply;
    uint32_t handover;

    giver->gives = (struct wire_slots){.first = SLOT_COUNT / 2, .count = SLOT_COUNT / 2};
    uint32_t target = mdt_joins(bench, &bench->joiner);
    pass(bench, 3 * NS_PER_S);
    giver->gives.count = 0;
    bench->joiner.result = -ERR_IO;
    (void)mdt_joins(bench, &bench->second);
    pass(bench, 14 * NS_PER_S);
    assert_int_equal(bench->joiner.asked_under, 3);
    assert_int_equal(lose(bench, target, false, &reply), 0);
    pass(bench, 3 * NS_PER_S);
    assert_int_equal(slots_of(bench, 2, &handover), 0);
    giver->gives = (struct wire_slots){.first = 0, .count = count};
    for (int power = 0; power < 2; power++) {
        manager_dies(bench, power);
        manager_begins(bench);
        pass(bench, 15 * NS_PER_S);
        assert_int_equal(slots_of(bench, 1, &handover), SLOT_COUNT / 2);
        assert_int_equal(slots_of(bench, 2, &handover), count);
    }
}

/* Nor does it give what it tells behind that: by the map that says so it has it still, and names of
 * what is there can be removed as those of what is lost. */
static void test_a_lost_giver_gives_nothing(void **state) {
    const uint32_t count = SLOT_COUNT / 2 - SLOT_COUNT / 3;
    struct bench *bench = *state;
    struct target *giver = &bench->targets[0];
    struct target_lose_reply reply;
    uint32_t handover;

    giver->gives = (struct wire_slots){.first = SLOT_COUNT / 2, .count = SLOT_COUNT / 2};
    uint32_t target = mdt_joins(bench, &bench->joiner);
    pass(bench, 3 * NS_PER_S);
    giver->gives.count = 0;
    bench->joiner.holds_give = true;
    bench->joiner.gives = (struct wire_slots){.first = SLOT_COUNT / 2, .count = count};
    (void)mdt_joins(bench, &bench->second);
    pass(bench, 11 * NS_PER_S);
    assert_non_null(bench->joiner.give);
    assert_int_equal(lose(bench, target, false, &reply), 0);
    call_reply(bench->joiner.give, 0);
    giver->unopened = 100;
    giver->gives = (struct wire_slots){.first = 0, .count = count};
    pass(bench, 15 * NS_PER_S);
    assert_int_equal(slots_of(bench, 1, &handover), SLOT_COUNT / 2);
    assert_int_equal(slots_of(bench, 2, &handover), count);
}

/* A giver that is away is not waited for when another one can give; what it may have given under
 * its number is asked for again when it is back, whoever died meanwhile. */
static void test_a_giver_that_is_away(void **state) {
    const uint32_t share = SLOT_COUNT / 3;
    struct bench *bench = *state;
    struct target *giver = &bench->targets[0];
    uint32_t handover;

    giver->gives = (struct wire_slots){.first = SLOT_COUNT / 2, .count = SLOT_COUNT / 2};
    (void)mdt_joins(bench, &bench->joiner);
    pass(bench, 3 * NS_PER_S);
    assert_int_equal(slots_of(bench, 1, &handover), SLOT_COUNT / 2);
    giver->result = -ERR_IO;
    giver->gives = (struct wire_slots){.first = 0, .count = SLOT_COUNT / 2 - share};
    bench->joiner.gives =
        (struct wire_slots){.first = SLOT_COUNT / 2, .count = SLOT_COUNT / 2 - share};
    (void)mdt_joins(bench, &bench->second);
    pass(bench, 3 * NS_PER_S);
    assert_int_equal(giver->asked_under, 2);
    assert_int_equal(slots_of(bench, 2, &handover), 0);
    pass(bench, 20 * NS_PER_S);
    assert_int_equal(bench->joiner.asked_under, 3);
    assert_int_equal(slots_of(bench, 2, &handover), SLOT_COUNT / 2 - share);
    assert_int_equal(handover, 3);
    for (int power = 0; power < 2; power++) {
        manager_dies(bench, power);
        manager_begins(bench);
        pass(bench, 3 * NS_PER_S);
        assert_int_equal(slots_of(bench, 2, &handover), SLOT_COUNT / 2 - share);
    }
    giver->asked_under = 0;
    giver->result = 0;
    pass(bench, 20 * NS_PER_S);
    assert_int_equal(giver->asked_under, 2);
    assert_int_equal(slots_of(bench, 2, &handover), 2 * (SLOT_COUNT / 2 - share));
    assert_int_equal(handover, 2);
    uint32_t asked = giver->asked_count;
    manager_dies(bench, true);
    manager_begins(bench);
    pass(bench, 20 * NS_PER_S);
    assert_int_equal(giver->asked_count, asked);
    assert_int_equal(bench->joiner.asked_count, 1);
}

/* Of which an older copy was put back: it gives nothing away again. */
static void test_an_older_copy_does_nothing(void **state) {
    struct bench *bench = *state;
    struct node_join_reply reply = join(bench, 70, 1, NULL);
    union request_body request = node_join_of(70, 1, "10.0.0.2:7400");
    struct asked asked;

    request.node_join.map_version = reply.map_version;
    assert_int_equal(ask(bench, &asked, OP_NODE_JOIN, request), 0);
    request.node_join.map_version = asked.call.reply.node_join.map_version + 1;
    assert_int_equal(ask(bench, &asked, OP_NODE_JOIN, request), -ERR_OLD_COPY);
    assert_non_null(strstr(bench->line, "older copy: node 2 has version"));
    assert_int_equal(ask(bench, &asked, OP_NODE_JOIN, node_join_of(71, 1, NULL)), -ERR_OLD_COPY);
    assert_int_equal(ask(bench, &asked, OP_SESSION_BEGIN, begin_of(1, 100, "/mnt")), -ERR_OLD_COPY);
    /* By the map that its own node has. */
    manager_dies(bench, false);
    bench->map.version = 50;
    manager_begins(bench);
    assert_int_equal(ask(bench, &asked, OP_NODE_JOIN, node_join_of(71, 1, NULL)), -ERR_OLD_COPY);
    assert_non_null(strstr(bench->line, "older copy: this node has version 50"));
    manager_dies(bench, false);
    bench->map.version = 5;
    manager_begins(bench);
    assert_int_equal(ask(bench, &asked, OP_NODE_JOIN, node_join_of(71, 1, NULL)), 0);
}

/* The copy is of before that node joined. */
static void test_an_older_copy_does_nothing_by_a_stranger_s_word(void **state) {
    struct bench *bench = *state;
    union request_body request = node_join_of(70, 1, "10.0.0.2:7400");
    struct asked asked;

    request.node_join.map_version = 2;
    assert_int_equal(ask(bench, &asked, OP_NODE_JOIN, request), -ERR_OTHER_CLUSTER);
    request.node_join.map_version = 900;
    assert_int_equal(ask(bench, &asked, OP_NODE_JOIN, request), -ERR_OLD_COPY);
    assert_non_null(
        strstr(bench->line, "a node at 10.0.0.2:7400, which it does not know, has ver"));
    assert_int_equal(ask(bench, &asked, OP_NODE_JOIN, node_join_of(71, 1, NULL)), -ERR_OLD_COPY);
}

/* What the map says after one of two nodes has told the names of its keys. */
static uint64_t signing_after(struct bench *bench, union request_body request, uint64_t newest,
                              uint64_t older) {
    struct asked asked;

    request.node_join.members_key = newest;
    request.node_join.members_key_older = older;
    assert_int_equal(ask(bench, &asked, OP_NODE_JOIN, request), 0);
    pass(bench, NS_PER_S);
    return manager_map(bench->manager)->signing_key;
}

/* A newer key signs when all nodes have it, and not while one of them doesn't say so. */
static void test_all_have_a_key_before_it_signs(void **state) {
    const struct map_node *first;
    struct bench *bench = *state;
    struct key_name names[KEY_FILE_KEYS_MAX];

    assert_int_equal(key_ring_names(bench->keys, names), 2);
    const uint64_t newer = names[0].value;
    const uint64_t older = names[1].value;
    const union request_body other = node_join_of(70, 1, "10.0.0.2:7400");
    (void)join(bench, 70, 1, NULL);
    (void)join(bench, 70, 1, "10.0.0.2:7400");
    first = &manager_map(bench->manager)->nodes[0];
    const union request_body own = {.node_join = {.key_high = first->key[0],
                                                  .key_low = first->key[1],
                                                  .target_count = first->target_count,
                                                  .mdt_count = first->mdt_count}};
    assert_int_equal(signing_after(bench, own, newer, older), 0);
    assert_int_equal(signing_after(bench, other, older, 0), 0);
    assert_int_equal(signing_after(bench, own, older, 0), 0);
    assert_int_equal(signing_after(bench, other, newer, older), 0);
    /* It died, and has heard nobody since. */
    manager_dies(bench, false);
    manager_begins(bench);
    assert_int_equal(signing_after(bench, own, newer, older), 0);
    assert_true(signing_after(bench, other, newer, older) == newer);
    /* Who comes later without it changes nothing. */
    assert_true(signing_after(bench, other, older, 0) == newer);
    manager_dies(bench, true);
    manager_begins(bench);
    pass(bench, NS_PER_S);
    assert_true(manager_map(bench->manager)->signing_key == newer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(nodes_join),
        TEST(a_map_gets_shorter),
        TEST(pieces_that_a_version_before_has_left),
        TEST(who_may_not_join),
        TEST(a_target_is_lost),
        TEST(losses_at_once),
        TEST(who_is_lost_counts_as_no_node),
        TEST(joins_share_a_version),
        TEST(a_map_that_no_record_holds),
        TEST(slots_are_handed_over),
        TEST(slots_that_are_not_given),
        TEST(rows_of_other_versions),
        TEST(a_metadata_target_is_lost),
        TEST(full_groups_are_told_of),
        TEST(joiners_that_never_come),
        TEST(a_joiner_without_storage_targets),
        TEST(a_giver_is_lost),
        TEST(a_lost_giver_gives_nothing),
        TEST(a_giver_that_is_away),
        TEST(map_is_handed_out),
        TEST(an_older_copy_does_nothing),
        TEST(an_older_copy_does_nothing_by_a_stranger_s_word),
        cmocka_unit_test_setup_teardown(test_all_have_a_key_before_it_signs, setup_with_newer_key,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
