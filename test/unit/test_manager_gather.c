/* Nodes that join close together make few versions of the map, and one alone waits for nothing. */
#include "manager_bench.h"
#include <stdio.h>

enum { FIRST_VERSION = 5, AT_ONCE = 8, NODES = 200, STEP_MS = 100, FORMATS_STEPS = 10 };
enum { PROCESS = 77, HELD_NODES = 3 };
#define PAUSE_MAX_NS (3 * NS_PER_S)
#define A_PAUSE_NS (2 * NS_PER_S)

/* Numbers are asked for without an address. */
static union request_body join_of(uint64_t key, const char *address) {
    return (union request_body){
        .node_join = {.key_high = key,
                      .key_low = 1,
                      .target_count = 1,
                      .ready = address != NULL,
                      .address = {(const uint8_t *)address, address ? strlen(address) : 0}}};
}

static void join_start(struct bench *bench, struct asked *asked, uint64_t key,
                       const char *address) {
    start(bench, asked, OP_NODE_JOIN, join_of(key, address));
}

/* Without a tick. */
static struct node_join_reply join_at_once(struct bench *bench, uint64_t key, const char *address) {
    struct asked asked;

    join_start(bench, &asked, key, address);
    finish(bench, &asked);
    assert_int_equal(asked.call.result, 0);
    return asked.call.reply.node_join;
}

/* Each of four nodes, one after another, in both of its steps. */
static void test_a_few_nodes_wait_for_nothing(void **state) {
    struct bench *bench = *state;

    pass(bench, NS_PER_S);
    for (uint64_t i = 0; i < AT_ONCE; i++) {
        char address[32];

        snprintf(address, sizeof address, "10.0.0.%u:7400", (unsigned)(i / 2));
        const struct node_join_reply reply =
            join_at_once(bench, 10 + i / 2, i % 2 ? address : NULL);
        assert_int_equal(reply.map_version, FIRST_VERSION + 1 + i);
        assert_int_equal(reply.node, 2 + i / 2);
    }
    assert_int_equal(manager_joins_gathered(bench->manager), 0);
}

struct joiner {
    struct asked asked;
    char address[32];
    uint32_t node;
    bool is_ready; /* asks for the second time */
    bool is_done;
    int next_step; /* when it asks */
    uint64_t since_ns;
};

/* It has numbers, and formats its target for a second; or has its target in the map. */
static void joiner_answered(struct joiner *joiner, int step, uint32_t *numbered) {
    const struct node_join_reply *reply = &joiner->asked.call.reply.node_join;

    assert_int_equal(joiner->asked.call.result, 0);
    if (joiner->is_ready) {
        assert_int_equal(reply->node, joiner->node);
        joiner->is_done = true;
        return;
    }
    joiner->node = reply->node;
    joiner->is_ready = true;
    joiner->next_step = step + FORMATS_STEPS;
    snprintf(joiner->address, sizeof joiner->address, "10.0.%u.%u:7400",
             (unsigned)(joiner->node / 250), (unsigned)(joiner->node % 250));
    (*numbered)++;
}

static void joiner_step(struct bench *bench, struct joiner *joiner, int step, uint64_t key,
                        uint32_t *numbered) {
    uint64_t now_ns = env_now_ns(bench->env);

    if (joiner->since_ns > 0 && joiner->asked.done) {
        joiner->since_ns = 0;
        joiner_answered(joiner, step, numbered);
    }
    assert_true(joiner->since_ns == 0 ||
                now_ns - joiner->since_ns <= PAUSE_MAX_NS + 4 * STEP_MS * NS_PER_MS);
    if (joiner->since_ns == 0 && !joiner->is_done && step >= joiner->next_step) {
        joiner->since_ns = now_ns;
        join_start(bench, &joiner->asked, key, joiner->is_ready ? joiner->address : NULL);
    }
}

static uint64_t version_of(struct bench *bench) {
    return manager_map(bench->manager)->version;
}

/* As many in 10 s as would be 1,200 a minute: 400 joins make 22 versions, and nobody waits for more
 * than 3 s. In a cluster that is quiet again one node is as quick as ever. */
static void test_a_burst_makes_few_versions(void **state) {
    struct bench *bench = *state;
    struct joiner *joiners = calloc(NODES, sizeof *joiners);
    uint32_t numbered = 0;
    bool all_done = false;

    pass(bench, NS_PER_S);
    for (int i = 0; i < NODES; i++) {
        joiners[i].next_step = i / 2;
    }
    for (int step = 0; !all_done; step++) {
        all_done = true;
        for (int i = 0; i < NODES; i++) {
            joiner_step(bench, &joiners[i], step, 1000 + (uint64_t)i, &numbered);
            all_done = all_done && joiners[i].is_done;
        }
        assert_true(step < NODES);
        pass(bench, STEP_MS * NS_PER_MS);
    }
    assert_int_equal(numbered, NODES);
    assert_int_equal(manager_map(bench->manager)->node_count, 1 + NODES);
    assert_int_equal(manager_map(bench->manager)->target_count, TARGETS + NODES);
    assert_int_equal(version_of(bench), FIRST_VERSION + 22);
    assert_true(manager_joins_gathered(bench->manager) > NODES);
    pass(bench, AT_ONCE * PAUSE_MAX_NS);
    assert_int_equal(join_at_once(bench, 5000, NULL).node, NODES + 2);
    assert_int_equal(join_at_once(bench, 5000, "10.1.0.1:7400").map_version,
                     FIRST_VERSION + 22 + 2);
    free(joiners);
}

/* So many versions without a pause, and then, of two nodes, one in A_PAUSE_NS. */
static void pauses_begin(struct bench *bench, uint32_t at_once) {
    assert_int_equal(manager_ends(bench), 0);
    bench->join_pause_ns = A_PAUSE_NS / 2;
    bench->joins_at_once = at_once;
    manager_begins(bench);
    pass(bench, NS_PER_S);
}

/* Calls in the memory of a manager that dies. */
static struct asked held[HELD_NODES];

/* The first of them is node 2; none of the others is answered. */
static void joins_hold(struct bench *bench) {
    assert_int_equal(join_at_once(bench, 10, NULL).node, 2);
    for (uint64_t i = 0; i < HELD_NODES; i++) {
        join_start(bench, &held[i], 11 + i, NULL);
    }
    pass(bench, NS_PER_S);
    for (int i = 0; i < HELD_NODES; i++) {
        assert_false(held[i].done);
    }
    assert_int_equal(manager_joins_gathered(bench->manager), HELD_NODES);
}

static void held_check(uint64_t version) {
    for (uint32_t i = 0; i < HELD_NODES; i++) {
        assert_true(held[i].done);
        assert_int_equal(held[i].call.result, 0);
        assert_int_equal(held[i].call.reply.node_join.map_version, version);
        assert_int_equal(held[i].call.reply.node_join.node, 3 + i);
    }
}

/* The last of them is one too many; a pause later there is one more, not as many as before. */
static void test_so_many_are_at_once(void **state) {
    struct bench *bench = *state;

    pauses_begin(bench, 0);
    for (uint64_t i = 0; i < AT_ONCE; i++) {
        assert_int_equal(join_at_once(bench, 10 + i, NULL).map_version, FIRST_VERSION + 1 + i);
    }
    for (int i = 0; i < 2; i++) {
        join_start(bench, &held[i], 20 + (uint64_t)i, NULL);
        pass(bench, PAUSE_MAX_NS - NS_PER_S);
        assert_false(held[i].done);
        pass(bench, NS_PER_S + 2 * STEP_MS * NS_PER_MS);
        assert_true(held[i].done);
    }
    assert_int_equal(version_of(bench), FIRST_VERSION + AT_ONCE + 2);
    assert_int_equal(manager_joins_gathered(bench->manager), 2);
}

static void test_a_pause_ends_with_one_version(void **state) {
    struct bench *bench = *state;

    pauses_begin(bench, 1);
    joins_hold(bench);
    pass(bench, A_PAUSE_NS - NS_PER_S + 2 * STEP_MS * NS_PER_MS);
    held_check(FIRST_VERSION + 2);
    pass(bench, 10 * NS_PER_S);
    assert_int_equal(version_of(bench), FIRST_VERSION + 2);
}

/* Nothing else is kept waiting, and what is gathered goes along. */
static void test_a_revocation_waits_for_no_pause(void **state) {
    const union request_body revoke = {.key_revoke = {.serial = 4}};
    struct bench *bench = *state;
    struct asked asked;

    pauses_begin(bench, 1);
    joins_hold(bench);
    start(bench, &asked, OP_KEY_REVOKE, revoke);
    finish(bench, &asked);
    assert_int_equal(asked.call.reply.key_revoke.map_version, FIRST_VERSION + 2);
    held_check(FIRST_VERSION + 2);
    pass(bench, 10 * NS_PER_S);
    assert_int_equal(version_of(bench), FIRST_VERSION + 2);
}

/* Others call it at an address where it is no more. */
static void test_a_node_that_moves_waits_for_no_pause(void **state) {
    struct bench *bench = *state;

    (void)join_at_once(bench, 9, NULL);
    (void)join_at_once(bench, 9, "10.0.0.9:7400");
    pauses_begin(bench, 1);
    assert_int_equal(join_at_once(bench, 10, NULL).map_version, FIRST_VERSION + 3);
    join_start(bench, &held[0], 11, NULL);
    pass(bench, STEP_MS * NS_PER_MS);
    assert_false(held[0].done);
    assert_int_equal(join_at_once(bench, 9, "10.0.0.99:7400").map_version, FIRST_VERSION + 4);
    assert_true(held[0].done);
    join_start(bench, &held[0], 11, "10.0.0.11:7400"); /* Nobody knows it yet. */
    pass(bench, STEP_MS * NS_PER_MS);
    assert_false(held[0].done);
}

/* Who was answered keeps its numbers; who was not asks again, and gets some that nobody has. */
static void test_a_crash_takes_back_nothing(void **state) {
    struct bench *bench = *state;

    for (int power = 0; power < 2; power++) {
        assert_int_equal(teardown(state), 0);
        assert_int_equal(setup(state), 0);
        bench = *state;
        pauses_begin(bench, 1);
        joins_hold(bench);
        manager_dies(bench, power);
        manager_begins(bench);
        pass(bench, NS_PER_S);
        for (uint32_t i = HELD_NODES; i > 0; i--) {
            struct asked asked;

            assert_int_equal(ask(bench, &asked, OP_NODE_JOIN, join_of(10 + i, NULL)), 0);
            assert_int_equal(asked.call.reply.node_join.node, 3 + HELD_NODES - i);
        }
        assert_int_equal(join_at_once(bench, 10, NULL).node, 2);
    }
}

static void test_a_stop_keeps_nobody_waiting(void **state) {
    struct bench *bench = *state;

    pauses_begin(bench, 1);
    joins_hold(bench);
    manager_quiet(bench->manager);
    pass(bench, 2 * STEP_MS * NS_PER_MS);
    held_check(FIRST_VERSION + 2);
    join_start(bench, &held[0], 20, NULL);
    pass(bench, 2 * STEP_MS * NS_PER_MS);
    assert_true(held[0].done);
    pauses_begin(bench, 1);
    assert_int_equal(join_at_once(bench, 30, NULL).map_version, FIRST_VERSION + 4);
    join_start(bench, &held[0], 31, NULL);
    pass(bench, STEP_MS * NS_PER_MS);
    assert_false(held[0].done);
    assert_int_equal(manager_ends(bench), 0);
    assert_true(held[0].done);
    assert_int_equal(held[0].call.result, -ERR_CLOSED);
}

/* Who gives up makes no version. */
static void test_who_gives_up_is_let_go(void **state) {
    struct bench *bench = *state;
    struct asked asked;

    pauses_begin(bench, 1);
    (void)join_at_once(bench, 10, NULL);
    start_for(bench, &asked, NS_PER_S, OP_NODE_JOIN, join_of(11, NULL));
    pass(bench, NS_PER_S + 2 * STEP_MS * NS_PER_MS);
    assert_true(asked.done);
    assert_int_equal(asked.call.result, -ERR_TIMED_OUT);
    pass(bench, 10 * NS_PER_S);
    assert_int_equal(version_of(bench), FIRST_VERSION + 1);
}

static int results[3];

static void copy_replied(struct call *call) {
    *(int *)call->context = call->result;
}

static void copy_post(struct bench *bench, struct call *call, uint64_t key, int *ret_result) {
    *call = (struct call){.message.kind = CALL_MESSAGE_KIND,
                          .header = {.opcode = OP_NODE_JOIN, .log = LOG_MANAGER},
                          .request = join_of(key, NULL),
                          .reply_to = copy_replied,
                          .context = ret_result,
                          .life = {PROCESS}};
    *ret_result = -1;
    actor_post(manager_actor(bench->manager), &call->message);
    pass(bench, STEP_MS * NS_PER_MS);
}

/* By a link that broke: it takes one place, not one for each try. */
static void test_a_copy_takes_the_place_of_the_first(void **state) {
    struct bench *bench = *state;
    struct call copies[3];

    pauses_begin(bench, 1);
    (void)join_at_once(bench, 10, NULL);
    copy_post(bench, &copies[0], 11, &results[0]);
    copy_post(bench, &copies[1], 12, &results[1]);
    copy_post(bench, &copies[2], 11, &results[2]);
    assert_int_equal(results[0], CALL_DISCARDED);
    assert_int_equal(results[1], -1);
    assert_int_equal(results[2], -1);
    pass(bench, A_PAUSE_NS);
    assert_int_equal(results[1], 0);
    assert_int_equal(results[2], 0);
    assert_int_equal(version_of(bench), FIRST_VERSION + 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_few_nodes_wait_for_nothing),
        TEST(a_burst_makes_few_versions),
        TEST(so_many_are_at_once),
        TEST(a_pause_ends_with_one_version),
        TEST(a_revocation_waits_for_no_pause),
        TEST(a_node_that_moves_waits_for_no_pause),
        TEST(a_crash_takes_back_nothing),
        TEST(a_stop_keeps_nobody_waiting),
        TEST(who_gives_up_is_let_go),
        TEST(a_copy_takes_the_place_of_the_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
