/* The manager's log when it is full, as the disk below has no room for a checkpoint: what needs a
 * record is told so, also a start and a stop, and what needs none goes on. Likewise its map, when
 * it names as many nodes or targets as it may. */
#include "manager_bench.h"

enum { KEPT = 4, ROUNDS_MAX = 4000, SESSIONS = 8, SILENT_S = 60 };

static uint64_t kept[KEPT];

/* What is not answered at once waits for a sync point. */
static int ask_begin(struct bench *bench, uint32_t node) {
    struct asked asked;
    int r = ask(bench, &asked, OP_SESSION_BEGIN, begin_of(node, 100, "/mnt"));

    return r < 0 ? r : (int)asked.call.reply.session_begin.session;
}

static void fill(struct bench *bench) {
    int r = 0;

    for (uint32_t i = 0; i < KEPT; i++) {
        kept[i] = begin(bench, 1 + i, 100, "/kept");
    }
    kv_mem_store_full(bench->store, true);
    for (uint32_t i = 0; r >= 0; i++) {
        assert_true(i < ROUNDS_MAX);
        r = ask_begin(bench, 100);
        if (r > 0) {
            struct asked asked;
            int ended = ask(bench, &asked, OP_SESSION_END, end_of((uint64_t)r, 100));

            assert_true(ended == 0 || ended == -ERR_NO_SPACE);
        }
        for (uint32_t k = 0; k < KEPT; k++) {
            assert_int_equal(renew(bench, kept[k], 100), 0);
        }
    }
    assert_int_equal(r, -ERR_NO_SPACE);
}

/* As another thread is told: since when, where the log is almost full. */
static uint64_t full_s(const struct bench *bench) {
    struct manager_room room;

    manager_room_get(bench->manager, &room);
    assert_int_equal(room.waiting_count, 0);
    assert_true(room.levels.full_ns == 0 || room.levels.log > 700);
    return room.levels.full_ns / NS_PER_S;
}

static int revoke(struct bench *bench, uint64_t serial) {
    struct asked asked;

    return ask(bench, &asked, OP_KEY_REVOKE, (union request_body){.key_revoke = {serial}});
}

static int end(struct bench *bench, uint64_t session) {
    struct asked asked;

    return ask(bench, &asked, OP_SESSION_END, end_of(session, 100));
}

/* Those that are there stay; one that comes again would need its predecessor's end first. */
static void check_full(struct bench *bench) {
    struct asked asked;

    assert_int_equal(ask_begin(bench, 200), -ERR_NO_SPACE);
    assert_int_equal(ask(bench, &asked, OP_SESSION_BEGIN, begin_of(3, 101, "/kept")),
                     -ERR_NO_SPACE);
    assert_int_equal(renew(bench, kept[3], 100), 0);
}

static void check_restarts(struct bench *bench) {
    assert_int_equal(manager_ends(bench), 0);
    manager_begins(bench);
    check_full(bench);
    for (int power = 0; power < 2; power++) {
        manager_dies(bench, power);
        manager_begins(bench);
        check_full(bench);
    }
}

/* Begins are told first, so that sessions can end and keys be revoked for a while longer; then
 * these are told, too. Once there is room all of it goes on, and what could not be ended is. */
static void test_full_log(void **state) {
    struct bench *bench = *state;
    uint64_t serial = 100;
    int r = 0;

    assert_int_equal(full_s(bench), 0);
    fill(bench);
    assert_int_equal(ask_begin(bench, 200), -ERR_NO_SPACE);
    pass(bench, 5 * NS_PER_S);
    assert_true(full_s(bench) >= 5);
    check_restarts(bench);
    assert_int_equal(end(bench, kept[0]), 0);
    assert_int_equal(revoke(bench, serial++), 0);
    while (r == 0) {
        r = revoke(bench, serial);
        serial += r == 0;
        assert_int_equal(renew(bench, kept[1], 100), 0);
        assert_int_equal(renew(bench, kept[3], 100), 0);
    }
    assert_int_equal(r, -ERR_NO_SPACE);
    assert_int_equal(end(bench, kept[1]), -ERR_NO_SPACE);
    check_restarts(bench);
    assert_int_equal(revoke(bench, serial), -ERR_NO_SPACE);
    assert_int_equal(end(bench, kept[1]), -ERR_NO_SPACE);
    pass(bench, 2 * NS_PER_S);
    assert_true(full_s(bench) > 0);
    kv_mem_store_full(bench->store, false);
    pass(bench, 3 * NS_PER_S);
    assert_int_equal(full_s(bench), 0);
    assert_int_equal(renew(bench, kept[0], 100), -ERR_UNKNOWN_SESSION);
    assert_int_equal(renew(bench, kept[1], 100), -ERR_UNKNOWN_SESSION);
    assert_true(is_ended(&bench->targets[1], kept[1]));
    assert_int_equal(renew(bench, kept[3], 100), 0);
    assert_true(ask_begin(bench, 200) > 0);
    assert_int_equal(revoke(bench, serial), 0);
    assert_int_equal(manager_map(bench->manager)->revoked_count, serial - 99);
}

static void renew_from(struct bench *bench, const uint64_t *sessions, uint32_t from) {
    for (uint32_t i = from; i < SESSIONS; i++) {
        assert_int_equal(renew(bench, sessions[i], 100), 0);
    }
}

/* As many sessions as there may be, of which one is silent, and no room for the record of its end:
 * it keeps its place, and who comes is told of the number. A node that joins is told of the room.
 * Both end with the room. */
static void test_full_sessions_and_log(void **state) {
    struct bench *bench = *state;
    uint64_t sessions[SESSIONS];
    struct asked asked;
    uint64_t serial = 100;
    int r = 0;

    for (uint32_t i = 0; i < SESSIONS; i++) {
        sessions[i] = begin(bench, 1 + i, 100, "/mnt");
    }
    kv_mem_store_full(bench->store, true);
    for (; r == 0; serial++) {
        r = revoke(bench, serial);
        renew_from(bench, sessions, 0);
    }
    assert_int_equal(r, -ERR_NO_SPACE);
    for (int times = 0; times < 2; times++) {
        for (uint32_t s = 0; s < SILENT_S; s++) {
            pass(bench, NS_PER_S);
            renew_from(bench, sessions, 1);
        }
        assert_int_equal(manager_session_count(bench->manager), SESSIONS);
        assert_int_equal(ask_begin(bench, 200), -ERR_TOO_MANY_SESSIONS);
        assert_int_equal(ask(bench, &asked, OP_NODE_JOIN,
                             (union request_body){
                                 .node_join = {.key_high = 70, .key_low = 1, .target_count = 1}}),
                         -ERR_NO_SPACE);
        manager_dies(bench, times == 1);
        manager_begins(bench);
        renew_from(bench, sessions, 1);
    }
    kv_mem_store_full(bench->store, false);
    r = -ERR_TOO_MANY_SESSIONS;
    for (uint32_t s = 0; s < SILENT_S && r == -ERR_TOO_MANY_SESSIONS; s++) {
        pass(bench, NS_PER_S);
        renew_from(bench, sessions, 1);
        r = ask_begin(bench, 200);
    }
    assert_true(r > 0);
    assert_int_equal(renew(bench, sessions[0], 100), -ERR_UNKNOWN_SESSION);
}

static union request_body mdts_of(uint64_t key, uint32_t count, const char *address) {
    union request_body request = node_join_of(key, count, address);

    request.node_join.mdt_count = count;
    return request;
}

/* With a ring as a daemon has it. */
static void ring_grow(struct bench *bench) {
    assert_int_equal(manager_ends(bench), 0);
    bench->ring_bytes = 256 * KIB;
    manager_begins(bench);
}

/* A node that comes is refused, one that is there is known, and sessions begin; also behind a stop,
 * a kill and a loss of power. */
static void map_stays_full(struct bench *bench, union request_body more, union request_body there) {
    uint32_t nodes = manager_map(bench->manager)->node_count;
    uint32_t targets = manager_map(bench->manager)->target_count;
    struct asked one;

    for (int end = 0; end < 4; end++) {
        assert_int_equal(ask(bench, &one, OP_NODE_JOIN, more), -ERR_NO_SPACE);
        assert_int_equal(ask(bench, &one, OP_NODE_JOIN, there), 0);
        assert_int_equal(
            ask(bench, &one, OP_SESSION_BEGIN, begin_of(1, 100 + (uint64_t)end, "/mnt")), 0);
        assert_int_equal(manager_map(bench->manager)->node_count, nodes);
        assert_int_equal(manager_map(bench->manager)->target_count, targets);
        manager_again(bench, (enum manager_end)(end % MANAGER_ENDS));
        pass(bench, NS_PER_S);
    }
}

static void test_as_many_nodes_as_a_map_names(void **state) {
    struct bench *bench = *state;
    struct asked *asked = calloc(MAP_NODES_MAX, sizeof *asked);
    uint32_t count = manager_map(bench->manager)->node_count;

    ring_grow(bench);
    for (uint64_t i = count; i < MAP_NODES_MAX; i++) {
        start(bench, &asked[i], OP_NODE_JOIN, node_join_of(100 + i, 0, NULL));
    }
    pass(bench, 10 * NS_PER_S);
    for (uint64_t i = count; i < MAP_NODES_MAX; i++) {
        assert_true(asked[i].done);
        assert_int_equal(asked[i].call.result, 0);
    }
    free(asked);
    assert_int_equal(manager_map(bench->manager)->node_count, MAP_NODES_MAX);
    map_stays_full(bench, node_join_of(5000, 0, NULL), node_join_of(100 + count, 0, NULL));
}

static void test_as_many_targets_as_a_map_names(void **state) {
    struct bench *bench = *state;
    uint32_t of_node = 64;
    uint64_t key = 100;
    struct asked one;

    ring_grow(bench);
    for (; of_node > 0; key++) {
        assert_int_equal(ask(bench, &one, OP_NODE_JOIN, node_join_of(key, of_node, NULL)), 0);
        assert_int_equal(
            ask(bench, &one, OP_NODE_JOIN, node_join_of(key, of_node, "10.0.0.2:7400")), 0);
        of_node = MIN(of_node, MAP_TARGETS_MAX - manager_map(bench->manager)->target_count);
    }
    assert_int_equal(manager_map(bench->manager)->target_count, MAP_TARGETS_MAX);
    map_stays_full(bench, node_join_of(key, 1, NULL), node_join_of(100, 64, "10.0.0.2:7400"));
}

/* As many as a node may have, and once so many as are left; none of them answers. */
static void test_as_many_metadata_targets_as_a_map_names(void **state) {
    struct bench *bench = *state;
    uint32_t of_node = 8;
    uint64_t key = 100;
    struct asked one;

    ring_grow(bench);
    assert_int_equal(ask(bench, &one, OP_NODE_JOIN, mdts_of(99, 9, NULL)), -ERR_INVALID);
    for (; of_node > 0; key++) {
        assert_int_equal(ask(bench, &one, OP_NODE_JOIN, mdts_of(key, of_node, NULL)), 0);
        assert_int_equal(ask(bench, &one, OP_NODE_JOIN, mdts_of(key, of_node, "10.0.0.2:7400")), 0);
        of_node = MIN(of_node, MAP_GROUPS_MAX - manager_map(bench->manager)->group_count);
    }
    assert_int_equal(manager_map(bench->manager)->group_count, MAP_GROUPS_MAX);
    map_stays_full(bench, mdts_of(key, 1, NULL), mdts_of(100, 8, "10.0.0.2:7400"));
    assert_int_equal(manager_map(bench->manager)->group_count, MAP_GROUPS_MAX);
    /* One with storage targets alone finds a place. */
    assert_int_equal(ask(bench, &one, OP_NODE_JOIN, node_join_of(key, 1, NULL)), 0);
    assert_int_equal(ask(bench, &one, OP_NODE_JOIN, node_join_of(key, 1, "10.0.0.2:7400")), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(full_log),
        TEST(full_sessions_and_log),
        TEST(as_many_nodes_as_a_map_names),
        TEST(as_many_targets_as_a_map_names),
        TEST(as_many_metadata_targets_as_a_map_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
