/* The manager as to storage targets that are full: which pool versions it makes of what it is told.
 */
#include "layout/map_pools.h"
#include "manager/spaces.h"
#include "manager_bench.h"
#include "other_rows.h"

enum { KEY = 70, OSTS = 4 };
#define NODE_ADDRESS "10.0.0.2:7400"

/* Of what is used, in tenths of a percent. */
enum { UNKNOWN = 5000 };

static union request_body join_with(struct bytes spaces) {
    static const char address[] = NODE_ADDRESS;

    return (union request_body){
        .node_join = {.key_high = KEY,
                      .target_count = OSTS,
                      .ready = true,
                      .address = {(const uint8_t *)address, sizeof address - 1},
                      .spaces = spaces}};
}

static int tell_bytes(struct bench *bench, struct bytes spaces, struct node_join_reply *ret_reply) {
    struct asked asked;
    int r = ask(bench, &asked, OP_NODE_JOIN, join_with(spaces));

    *ret_reply = asked.call.reply.node_join;
    return r;
}

/* A node of OSTS targets beside the two of the first; answers the first of its own. */
static uint32_t node_joins(struct bench *bench) {
    union request_body request = join_with((struct bytes){NULL, 0});
    struct node_join_reply reply;
    struct asked asked;

    request.node_join.ready = false;
    request.node_join.address.size = 0;
    assert_int_equal(ask(bench, &asked, OP_NODE_JOIN, request), 0);
    assert_int_equal(tell_bytes(bench, (struct bytes){NULL, 0}, &reply), 0);
    return reply.first_target;
}

static void tell(struct bench *bench, uint32_t first, const uint32_t *used, uint32_t count) {
    struct wire_space spaces[OSTS];
    struct node_join_reply reply;
    uint32_t told = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (used[i] != UNKNOWN) {
            spaces[told++] = (struct wire_space){.target = first + i,
                                                 .used_bytes = used[i] * MIB,
                                                 .available_bytes = (1000 - used[i]) * MIB};
        }
    }
    assert_int_equal(
        tell_bytes(bench, (struct bytes){(const uint8_t *)spaces, told * sizeof *spaces}, &reply),
        0);
    pass(bench, 300 * NS_PER_MS);
}

static struct cluster_map *map_of(struct bench *bench) {
    struct cluster_map *map = malloc(sizeof *map);
    uint8_t *bytes = malloc(MIB);
    struct asked asked = {.call = {.header = {.opcode = OP_MAP_GET, .log = LOG_MANAGER},
                                   .bulk_in = {.data = bytes, .capacity = MIB},
                                   .origin = &bench->origin,
                                   .done = asked_done}};

    call_start(bench->client_rpc, &asked.call);
    for (int i = 0; i < 20 && !asked.done; i++) {
        pass(bench, 100 * NS_PER_MS);
    }
    assert_true(map && asked.done);
    assert_int_equal(cluster_map_decode((struct bytes){bytes, asked.call.bulk_in.size}, map), 0);
    free(bytes);
    return map;
}

/* The newest version has the two targets of the first node and those of the four whose bit is set
 * in `has`. */
static void newest_is(struct bench *bench, uint32_t first, uint32_t version, uint32_t has) {
    struct cluster_map *map = map_of(bench);
    struct pool_version pool;
    uint32_t at = 2;

    assert_true(cluster_map_pool(map, 0, &pool));
    assert_int_equal(pool.version, version);
    assert_true(pool.chains[0] == OST && pool.chains[1] == OST + 1);
    for (uint32_t i = 0; i < OSTS; i++) {
        if (has & 1U << i) {
            assert_true(at < pool.chain_count);
            assert_int_equal(pool.chains[at++], first + i);
        }
    }
    assert_int_equal(pool.chain_count, at);
    free(map);
}

/* Rows one after another, of one cluster: a pause is over before each. */
static void test_marks(void **state) {
    static const struct {
        uint32_t used[OSTS];
        uint32_t version, has;
    } rows[] = {
        {{100, 950, 940, 0}, 2, 0xf},     /* just at the upper mark: in */
        {{100, 951, 940, 0}, 3, 0xd},     /* above: out */
        {{100, 900, 940, 0}, 3, 0xd},     /* between the marks: as it was */
        {{100, 850, 940, 0}, 3, 0xd},     /* just at the lower mark: still out */
        {{100, UNKNOWN, 940, 0}, 3, 0xd}, /* not told: as it was */
        {{100, 849, 940, 0}, 4, 0xf},     /* below: in again */
        {{100, 920, 940, 0}, 4, 0xf},     /* between the marks: as it was */
        {{960, 970, 940, 0}, 5, 0xc},     /* two at once: one version */
        {{10, 970, 951, 0}, 6, 0x9},      /* one comes and one goes: one version */
        {{10, 10, 10, 10}, 7, 0xf},       /* all are back */
    };
    struct bench *bench = *state;
    uint32_t first = node_joins(bench);

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        pass(bench, 11 * NS_PER_S);
        tell(bench, first, rows[i].used, OSTS);
        newest_is(bench, first, rows[i].version, rows[i].has);
    }
    /* The last one is as the second was, and those chains stand in the map once. */
    struct cluster_map *map = map_of(bench);
    assert_int_equal(map->pools[6].first, map->pools[1].first);
    assert_int_equal(cluster_map_pool_lacks(map, first), 0);
    free(map);
}

/* What is told within the pause makes one version when that is over, and only the last word of each
 * counts. */
static void test_a_pause_between_versions(void **state) {
    struct bench *bench = *state;
    uint32_t first = node_joins(bench);

    tell(bench, first, (const uint32_t[]){990, 0, 0, 0}, OSTS);
    newest_is(bench, first, 3, 0xe);
    tell(bench, first, (const uint32_t[]){0, 990, 0, 990}, OSTS);
    tell(bench, first, (const uint32_t[]){990, 990, 990, 0}, OSTS);
    pass(bench, 5 * NS_PER_S);
    newest_is(bench, first, 3, 0xe);
    pass(bench, 5 * NS_PER_S);
    newest_is(bench, first, 4, 0x8);
}

/* A manager that starts anew knows by the map who is out, and leaves it until it is told. */
static void test_restarts(void **state) {
    struct bench *bench = *state;
    uint32_t first = node_joins(bench);

    tell(bench, first, (const uint32_t[]){990, 0, 0, 0}, OSTS);
    newest_is(bench, first, 3, 0xe);
    for (int power = 0; power < 2; power++) {
        manager_dies(bench, power);
        manager_begins(bench);
        pass(bench, 11 * NS_PER_S);
        newest_is(bench, first, 3, 0xe);
        tell(bench, first, (const uint32_t[]){900, 0, 0, 0}, OSTS);
        newest_is(bench, first, 3, 0xe);
    }
    manager_dies(bench, true);
    manager_begins(bench);
    tell(bench, first, (const uint32_t[]){800, 0, 0, 0}, OSTS);
    newest_is(bench, first, 4, 0xf);
}

/* A target of a newcomer is added to what is left. */
static void test_a_join_leaves_them_out(void **state) {
    struct bench *bench = *state;
    uint32_t first = node_joins(bench);
    struct cluster_map *map;
    struct asked asked;
    union request_body request;

    tell(bench, first, (const uint32_t[]){0, 990, 0, 0}, OSTS);
    newest_is(bench, first, 3, 0xd);
    pass(bench, 11 * NS_PER_S);
    tell(bench, first, (const uint32_t[]){0, 0, 0, 0}, OSTS);
    newest_is(bench, first, 4, 0xf); /* stands where version 2 does, in the midst of the map */
    request = join_with((struct bytes){NULL, 0});
    request.node_join.key_low = 1;
    request.node_join.target_count = 1;
    request.node_join.ready = false;
    assert_int_equal(ask(bench, &asked, OP_NODE_JOIN, request), 0);
    request.node_join.ready = true;
    assert_int_equal(ask(bench, &asked, OP_NODE_JOIN, request), 0);
    map = map_of(bench);
    struct pool_version pool;
    assert_true(cluster_map_pool(map, 0, &pool));
    assert_int_equal(pool.version, 5);
    assert_int_equal(pool.chain_count, 2 + OSTS + 1);
    assert_int_equal(pool.chains[2 + OSTS], asked.call.reply.node_join.first_target);
    free(map);
}

/* The whole cluster of one node, so that all can be full: in the bench the first node tells of its
 * two targets by its key. */
static void first_tells(struct bench *bench, uint32_t a, uint32_t b) {
    struct wire_space spaces[2] = {
        {.target = OST, .used_bytes = a * MIB, .available_bytes = (1000 - a) * MIB},
        {.target = OST + 1, .used_bytes = b * MIB, .available_bytes = (1000 - b) * MIB}};
    union request_body request = {
        .node_join = {.key_high = load_le64(bench->map.cluster_id),
                      .key_low = load_le64(bench->map.cluster_id + 8),
                      .target_count = TARGETS,
                      .mdt_count = 1,
                      .ready = true,
                      .spaces = {(const uint8_t *)spaces, sizeof spaces}}};
    struct asked asked;

    assert_int_equal(ask(bench, &asked, OP_NODE_JOIN, request), 0);
    pass(bench, 11 * NS_PER_S);
}

static void first_has(struct bench *bench, uint32_t version, uint32_t count, uint32_t chain) {
    struct cluster_map *map = map_of(bench);
    struct pool_version pool;

    assert_true(cluster_map_pool(map, 0, &pool));
    assert_int_equal(pool.version, version);
    assert_int_equal(pool.chain_count, count);
    assert_int_equal(pool.chains[0], chain);
    free(map);
}

/* Somebody has to take new files, and be it one that is full. */
static void test_none_would_be_left(void **state) {
    struct bench *bench = *state;

    first_tells(bench, 960, 970);
    first_has(bench, 1, 2, OST);
    first_tells(bench, 960, 900);
    first_has(bench, 2, 1, OST + 1);
    first_tells(bench, 960, 960);
    first_has(bench, 2, 1, OST + 1);
    first_tells(bench, 900, 960); /* above the lower mark, yet it has more room than who is full */
    first_has(bench, 3, 1, OST);
    first_tells(bench, 800, 800);
    first_has(bench, 4, 2, OST);
}

/* Nobody tells of another one's targets, nor of what is none; and what is no space is refused. */
static void test_what_is_not_believed(void **state) {
    struct bench *bench = *state;
    uint32_t first = node_joins(bench);
    struct wire_space spaces[] = {
        {.target = OST, .used_bytes = 100, .available_bytes = 1},
        {.target = MDT, .used_bytes = 100, .available_bytes = 1},
        {.target = 12345, .used_bytes = 100, .available_bytes = 1},
        {.target = first, .used_bytes = 0, .available_bytes = 0},
    };
    struct node_join_reply reply;

    assert_int_equal(
        tell_bytes(bench, (struct bytes){(const uint8_t *)spaces, sizeof spaces}, &reply), 0);
    pass(bench, 11 * NS_PER_S);
    newest_is(bench, first, 2, 0xf);
    assert_int_equal(
        tell_bytes(bench, (struct bytes){(const uint8_t *)spaces, sizeof spaces - 1}, &reply),
        -ERR_MALFORMED);
    spaces[0].used_bytes = UINT64_MAX;
    assert_int_equal(
        tell_bytes(bench, (struct bytes){(const uint8_t *)spaces, sizeof spaces}, &reply),
        -ERR_INVALID);
}

/* What a version to come adds to a space is skipped; of a length that no version has nothing is
 * taken. */
static void test_rows_of_other_versions(void **state) {
    struct bench *bench = *state;
    uint32_t first = node_joins(bench);
    const struct wire_space spaces[] = {
        {.target = first, .used_bytes = 1, .available_bytes = 999},
        {.target = first + 2, .used_bytes = 999, .available_bytes = 1},
    };
    uint8_t space[ARRAY_SIZE(spaces) * (sizeof *spaces + ROW_MORE)];
    union request_body request = join_with((struct bytes){(const uint8_t *)spaces, sizeof spaces});
    struct node_join_request *join = &request.node_join;
    struct asked asked;

    for (uint32_t i = 0; (join->spaces_row_bytes = rows_wrong(i, sizeof *spaces)); i++) {
        assert_int_equal(ask(bench, &asked, OP_NODE_JOIN, request), -ERR_MALFORMED);
    }
    pass(bench, 11 * NS_PER_S);
    newest_is(bench, first, 2, 0xf);
    join->spaces = rows_longer(join->spaces, sizeof *spaces, space);
    join->spaces_row_bytes = sizeof *spaces + ROW_MORE;
    assert_int_equal(ask(bench, &asked, OP_NODE_JOIN, request), 0);
    pass(bench, 11 * NS_PER_S);
    newest_is(bench, first, 3, 0xb);
}

/* The fuller the map is of versions, the longer is the pause; and the last quarter is for joins. */
static void test_versions_run_short(void **state) {
    static const struct {
        uint32_t pools, chains;
        uint64_t pause_s; /* 0: none is made any more */
    } rows[] = {{1, 1, 10},        {255, 4095, 10}, {256, 1, 20},     {1, 4096, 20},
                {511, 8191, 20},   {512, 1, 40},    {3071, 1, 20480}, {3072, 1, 0},
                {1, 49151, 20480}, {1, 49152, 0},   {4096, 65536, 0}};
    struct cluster_map *map = calloc(1, sizeof *map);

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        uint64_t pause_ns = rows[i].pause_s ? rows[i].pause_s * NS_PER_S : UINT64_MAX;

        map->pool_count = rows[i].pools;
        map->pool_chain_count = rows[i].chains;
        assert_int_equal(manager_spaces_pause_ns(map, 10 * NS_PER_S), pause_ns);
    }
    free(map);
}

/* Three quarters of the versions that a map holds: one more leaves out a target that is full, then
 * none does, also behind each end of the manager; a node that joins still makes one. */
static void test_versions_for_full_targets_run_out(void **state) {
    struct bench *bench = *state;
    const uint32_t most = MAP_POOL_VERSIONS_MAX / 4 * 3;

    first_tells(bench, 960, 100);
    first_has(bench, most, 1, OST + 1);
    for (enum manager_end end = 0; end < MANAGER_ENDS; end++) {
        first_tells(bench, 100, 960);
        pass(bench, NS_PER_S * 60);
        first_has(bench, most, 1, OST + 1);
        manager_again(bench, end);
        pass(bench, NS_PER_S);
    }
    uint32_t first = node_joins(bench);
    struct cluster_map *map = map_of(bench);
    struct pool_version pool;
    assert_true(cluster_map_pool(map, 0, &pool));
    assert_int_equal(pool.version, most + 1);
    assert_int_equal(pool.chains[pool.chain_count - 1], first + OSTS - 1);
    free(map);
}

static int lose(struct bench *bench, uint32_t target) {
    struct asked asked;

    return ask(bench, &asked, OP_TARGET_LOSE,
               (union request_body){.target_lose = {.target = target}});
}

static int store_joins(struct bench *bench, uint64_t key, uint32_t targets, bool ready,
                       struct node_join_reply *ret_reply) {
    union request_body request = join_with((struct bytes){NULL, 0});
    struct asked asked;

    request.node_join.key_high = key;
    request.node_join.target_count = targets;
    request.node_join.ready = ready;
    request.node_join.address.size = ready ? request.node_join.address.size : 0;
    int r = ask(bench, &asked, OP_NODE_JOIN, request);
    *ret_reply = asked.call.reply.node_join;
    return r;
}

enum { NODES = 5, OF_NODE = 64, KEPT = MAP_POOL_VERSIONS_MAX / 16 };

/* A node with storage targets is refused, before it has got a number; one without them joins, and
 * one that is there is known; sessions begin. */
static void joins_are_refused(struct bench *bench, uint64_t number) {
    uint32_t nodes = manager_map(bench->manager)->node_count;
    uint32_t pools = manager_map(bench->manager)->pool_count;
    struct node_join_reply reply;
    struct asked asked;

    for (int times = 0; times < 2; times++) {
        assert_int_equal(store_joins(bench, 600, 1, false, &reply), -ERR_NO_SPACE);
    }
    assert_int_equal(manager_map(bench->manager)->node_count, nodes);
    assert_int_equal(store_joins(bench, 500, OF_NODE, true, &reply), 0);
    assert_int_equal(store_joins(bench, 700 + number, 0, false, &reply), 0);
    assert_int_equal(ask(bench, &asked, OP_SESSION_BEGIN, begin_of(1, 100 + number, "/mnt")), 0);
    assert_int_equal(manager_map(bench->manager)->pool_count, pools);
}

/* All but those that are kept for targets that are lost; then as many of these are declared lost,
 * and one more is refused. Each through the ends of the manager. */
static void test_versions_run_out(void **state) {
    struct bench *bench = *state;
    struct node_join_reply reply;
    uint64_t number = 0;

    for (uint64_t i = 0; i < NODES; i++) {
        assert_int_equal(store_joins(bench, 500 + i, OF_NODE, false, &reply), 0);
        assert_int_equal(store_joins(bench, 500 + i, OF_NODE, true, &reply), 0);
    }
    uint32_t last = reply.first_target + OF_NODE - 1;
    assert_int_equal(manager_map(bench->manager)->pool_count, MAP_POOL_VERSIONS_MAX - KEPT);
    for (enum manager_end end = 0; end < MANAGER_ENDS; end++) {
        joins_are_refused(bench, number++);
        manager_again(bench, end);
        pass(bench, NS_PER_S);
    }
    pass(bench, 11 * NS_PER_S);
    for (uint32_t i = 0; i < KEPT; i++) {
        assert_int_equal(lose(bench, last - i), 0);
    }
    assert_int_equal(manager_map(bench->manager)->pool_count, MAP_POOL_VERSIONS_MAX);
    for (enum manager_end end = 0; end < MANAGER_ENDS; end++) {
        joins_are_refused(bench, number++);
        pass(bench, 11 * NS_PER_S);
        assert_int_equal(lose(bench, last - KEPT), -ERR_NO_SPACE);
        manager_again(bench, end);
        pass(bench, NS_PER_S);
    }
    first_tells(bench, 960, 100);
    assert_int_equal(manager_map(bench->manager)->pool_count, MAP_POOL_VERSIONS_MAX);
}

static int set_up_three_quarters(void **state) {
    return setup_with_pools(state, MAP_POOL_VERSIONS_MAX / 4 * 3 - 1);
}

static int set_up_almost_all(void **state) {
    return setup_with_pools(state, MAP_POOL_VERSIONS_MAX - KEPT - NODES);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(marks),
        TEST(a_pause_between_versions),
        TEST(restarts),
        TEST(a_join_leaves_them_out),
        TEST(none_would_be_left),
        TEST(what_is_not_believed),
        TEST(rows_of_other_versions),
        cmocka_unit_test(test_versions_run_short),
        cmocka_unit_test_setup_teardown(test_versions_for_full_targets_run_out,
                                        set_up_three_quarters, teardown),
        cmocka_unit_test_setup_teardown(test_versions_run_out, set_up_almost_all, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
