/* The manager as to the number of the keys that sign capabilities: when it rises, and who waits. */
#include "manager_bench.h"

static union request_body first_of(const struct bench *bench, uint32_t number) {
    const struct map_node *first = &manager_map(bench->manager)->nodes[0];

    return (union request_body){.node_join = {.key_high = first->key[0],
                                              .key_low = first->key[1],
                                              .target_count = first->target_count,
                                              .mdt_count = first->mdt_count,
                                              .capability_number = number}};
}

static union request_body other_of(uint64_t key, uint32_t number, bool is_ready) {
    const char *address = "10.0.0.2:7400";

    return (union request_body){
        .node_join = {.key_high = key,
                      .key_low = 1,
                      .target_count = 1,
                      .ready = is_ready,
                      .address = {(const uint8_t *)address, is_ready ? strlen(address) : 0},
                      .capability_number = number}};
}

static int tell(struct bench *bench, union request_body request) {
    struct asked asked;

    return ask(bench, &asked, OP_NODE_JOIN, request);
}

static int renew_keys(struct bench *bench, struct key_renew_reply *ret_reply) {
    struct asked asked;
    int r = ask(bench, &asked, OP_KEY_RENEW, (union request_body){.key_renew = {0}});

    *ret_reply = asked.call.reply.key_renew;
    return r;
}

/* A second node, with a storage target. */
static void join_second(struct bench *bench, uint32_t number) {
    assert_int_equal(tell(bench, other_of(70, number, false)), 0);
    assert_int_equal(tell(bench, other_of(70, number, true)), 0);
    assert_int_equal(manager_map(bench->manager)->node_count, 2);
}

static uint32_t number_in(const struct bench *bench) {
    return manager_map(bench->manager)->capability_number;
}

/* One that says nothing of it, as it is of the version before, holds it up, too. */
static void test_a_number_rises_when_all_have_told_the_one_before(void **state) {
    struct bench *bench = *state;
    struct key_renew_reply reply;

    join_second(bench, 0);
    uint64_t version = manager_map(bench->manager)->version;
    assert_int_equal(renew_keys(bench, &reply), -ERR_NOT_TOLD);
    assert_int_equal(reply.node, 1);
    assert_int_equal(reply.number, 1);
    assert_int_equal(tell(bench, first_of(bench, 1)), 0);
    assert_int_equal(renew_keys(bench, &reply), -ERR_NOT_TOLD);
    assert_int_equal(reply.node, 2);
    assert_int_equal(number_in(bench), 0);
    assert_int_equal(manager_map(bench->manager)->version, version);
    assert_int_equal(tell(bench, other_of(70, 1, true)), 0);
    assert_int_equal(renew_keys(bench, &reply), 0);
    assert_int_equal(reply.number, 2);
    assert_int_equal(reply.node, 0);
    assert_int_equal(reply.map_version, version + 1);
    assert_int_equal(number_in(bench), 2);
    /* What all had told was the one before. */
    assert_int_equal(renew_keys(bench, &reply), -ERR_NOT_TOLD);
    assert_int_equal(reply.number, 2);
    assert_int_equal(reply.node, 1);
}

/* As they do within a second. */
static void test_a_renewal_waits_for_what_nodes_tell(void **state) {
    struct bench *bench = *state;
    struct key_renew_reply reply;
    struct asked asked[2];

    join_second(bench, 1);
    assert_int_equal(tell(bench, first_of(bench, 1)), 0);
    assert_int_equal(renew_keys(bench, &reply), 0);
    for (int i = 0; i < 2; i++) {
        start(bench, &asked[i], OP_KEY_RENEW, (union request_body){.key_renew = {0}});
    }
    pass(bench, NS_PER_S);
    assert_int_equal(tell(bench, first_of(bench, 2)), 0);
    pass(bench, NS_PER_S);
    assert_false(asked[0].done || asked[1].done);
    assert_int_equal(tell(bench, other_of(70, 2, true)), 0);
    pass(bench, NS_PER_S);
    /* One rise for both. */
    for (int i = 0; i < 2; i++) {
        assert_true(asked[i].done);
        assert_int_equal(asked[i].call.result, 0);
        assert_int_equal(asked[i].call.reply.key_renew.number, 3);
        assert_int_equal(asked[i].call.reply.key_renew.map_version, reply.map_version + 1);
    }
    /* Its own copy of the directory has been put back meanwhile, and signs by an older one. */
    assert_int_equal(tell(bench, first_of(bench, 3)), 0);
    assert_int_equal(tell(bench, other_of(70, 3, true)), 0);
    assert_int_equal(tell(bench, other_of(70, 2, true)), 0);
    assert_int_equal(renew_keys(bench, &reply), -ERR_NOT_TOLD);
    assert_int_equal(reply.node, 2);
}

/* It goes on from there, when all have told it anew. */
static void test_a_number_outlives_the_manager(void **state) {
    struct bench *bench = *state;
    struct key_renew_reply reply;

    assert_int_equal(tell(bench, first_of(bench, 1)), 0);
    assert_int_equal(renew_keys(bench, &reply), 0);
    assert_int_equal(tell(bench, first_of(bench, 2)), 0);
    for (int i = 0; i < 2; i++) {
        manager_dies(bench, i == 1);
        manager_begins(bench);
        assert_int_equal(renew_keys(bench, &reply), -ERR_NOT_TOLD);
        assert_int_equal(reply.number, 2 + i);
        assert_int_equal(tell(bench, first_of(bench, reply.number)), 0);
        assert_int_equal(renew_keys(bench, &reply), 0);
        assert_int_equal(reply.number, 3 + i);
        assert_int_equal(number_in(bench), 3 + i);
    }
}

/* What it would sign before it has the map would be taken nowhere. */
static void test_a_new_node_gets_targets_when_it_has_the_number(void **state) {
    struct bench *bench = *state;
    struct key_renew_reply reply;

    for (uint32_t number = 1; number < 4; number++) {
        assert_int_equal(tell(bench, first_of(bench, number)), 0);
        assert_int_equal(renew_keys(bench, &reply), 0);
    }
    assert_int_equal(tell(bench, other_of(70, 1, false)), 0);
    uint32_t targets = manager_map(bench->manager)->target_count;
    assert_int_equal(tell(bench, other_of(70, 0, true)), -ERR_TOO_OLD);
    assert_int_equal(tell(bench, other_of(70, 3, true)), 0);
    assert_int_equal(manager_map(bench->manager)->target_count, targets);
    assert_int_equal(tell(bench, first_of(bench, 4)), 0);
    assert_int_equal(renew_keys(bench, &reply), 0);
    assert_int_equal(tell(bench, other_of(70, 5, true)), 0);
    assert_int_equal(manager_map(bench->manager)->target_count, targets + 1);
    /* From now on it is waited for, and stays what it is. */
    assert_int_equal(tell(bench, first_of(bench, 5)), 0);
    assert_int_equal(tell(bench, other_of(70, 4, true)), 0);
    assert_int_equal(renew_keys(bench, &reply), -ERR_NOT_TOLD);
    assert_int_equal(reply.node, 2);
}

/* It may have told the number of now a moment before that rose: not with the version that has
 * it. */
static void test_nothing_is_renewed_with_a_join(void **state) {
    struct bench *bench = *state;
    struct asked before; /* while its version is flushed the others come */
    struct asked joins;
    struct asked renews;

    assert_int_equal(tell(bench, first_of(bench, 1)), 0);
    assert_int_equal(tell(bench, other_of(70, 1, false)), 0);
    start(bench, &before, OP_NODE_JOIN, other_of(71, 1, false));
    start(bench, &joins, OP_NODE_JOIN, other_of(70, 1, true));
    start(bench, &renews, OP_KEY_RENEW, (union request_body){.key_renew = {0}});
    pass(bench, 2 * NS_PER_S);
    assert_true(before.done && joins.done && renews.done);
    assert_int_equal(before.call.reply.node_join.map_version + 1,
                     joins.call.reply.node_join.map_version);
    assert_int_equal(joins.call.result, 0);
    assert_int_equal(renews.call.result, 0);
    assert_int_equal(renews.call.reply.key_renew.number, 2);
    assert_int_equal(renews.call.reply.key_renew.map_version,
                     joins.call.reply.node_join.map_version + 1);
}

/* Who is lost holds nothing up. */
static void test_a_lost_node_is_not_waited_for(void **state) {
    struct bench *bench = *state;
    struct key_renew_reply reply;
    struct asked asked;

    join_second(bench, 1);
    uint32_t first = manager_map(bench->manager)->nodes[1].first_target;
    pass(bench, 11 * NS_PER_S);
    assert_int_equal(tell(bench, first_of(bench, 1)), 0);
    assert_int_equal(renew_keys(bench, &reply), 0);
    assert_int_equal(tell(bench, first_of(bench, 2)), 0);
    assert_int_equal(renew_keys(bench, &reply), -ERR_NOT_TOLD);
    assert_int_equal(
        ask(bench, &asked, OP_TARGET_LOSE, (union request_body){.target_lose = {.target = first}}),
        0);
    assert_int_equal(renew_keys(bench, &reply), 0);
    assert_int_equal(reply.number, 3);
}

/* Whoever has given up is answered, and is no reason to renew anything later. */
static void test_who_waits_no_more_renews_nothing(void **state) {
    struct bench *bench = *state;
    struct asked asked;

    start_for(bench, &asked, NS_PER_S, OP_KEY_RENEW, (union request_body){.key_renew = {0}});
    pass(bench, 2 * NS_PER_S);
    assert_true(asked.done);
    assert_int_equal(asked.call.result, -ERR_TIMED_OUT);
    assert_int_equal(tell(bench, first_of(bench, 1)), 0);
    pass(bench, NS_PER_S);
    assert_int_equal(number_in(bench), 0);
}

static void test_what_cannot_be_renewed(void **state) {
    struct bench *bench = *state;
    struct cluster_map *map = (struct cluster_map *)(uintptr_t)manager_map(bench->manager);
    struct key_renew_reply reply;

    map->capability_number = UINT32_MAX;
    assert_int_equal(tell(bench, first_of(bench, UINT32_MAX)), 0);
    assert_int_equal(renew_keys(bench, &reply), -ERR_OVERFLOW);
    assert_int_equal(number_in(bench), UINT32_MAX);
}

static void test_without_keys_there_is_nothing_to_renew(void **state) {
    struct bench *bench = *state;
    struct key_renew_reply reply;

    assert_int_equal(tell(bench, first_of(bench, 1)), 0);
    assert_int_equal(renew_keys(bench, &reply), -ERR_INVALID);
    assert_int_equal(number_in(bench), 0);
}

int main(void) {
#define WITH_KEYS(name) cmocka_unit_test_setup_teardown(test_##name, setup_with_keys, teardown)
    const struct CMUnitTest tests[] = {
        WITH_KEYS(a_number_rises_when_all_have_told_the_one_before),
        WITH_KEYS(a_renewal_waits_for_what_nodes_tell),
        WITH_KEYS(a_number_outlives_the_manager),
        WITH_KEYS(a_new_node_gets_targets_when_it_has_the_number),
        WITH_KEYS(nothing_is_renewed_with_a_join),
        WITH_KEYS(a_lost_node_is_not_waited_for),
        WITH_KEYS(who_waits_no_more_renews_nothing),
        WITH_KEYS(what_cannot_be_renewed),
        TEST(without_keys_there_is_nothing_to_renew),
    };
#undef WITH_KEYS

    return cmocka_run_group_tests(tests, NULL, NULL);
}
