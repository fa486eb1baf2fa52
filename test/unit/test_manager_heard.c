/* A manager that hears few of its nodes does not take that for the silence of its clients; one that
 * hears half of them evicts as always. */
#include "manager_bench.h"

enum { NODES_MAX = 4, TIMEOUT_S = MANAGER_TIMEOUT_DEFAULT_S, PERIOD_S = TIMEOUT_S / 3 };

/* Another's than the one that the bench begins with. */
static union request_body join_of(uint64_t number, bool ready) {
    static char addresses[NODES_MAX][20];
    char *address = addresses[number];

    snprintf(address, sizeof addresses[number], "10.0.0.%u:7400", (unsigned)number + 2);
    return (union request_body){
        .node_join = {.key_high = 70 + number,
                      .key_low = 1,
                      .target_count = 1,
                      .ready = ready,
                      .address = {(const uint8_t *)address, ready ? strlen(address) : 0}}};
}

static void nodes_number(struct bench *bench, uint64_t count) {
    struct asked asked;

    for (uint64_t i = 0; i < count; i++) {
        assert_int_equal(ask(bench, &asked, OP_NODE_JOIN, join_of(i, false)), 0);
    }
}

/* For so many seconds each of the first ones speaks each second. */
static void nodes_speak(struct bench *bench, uint64_t count, uint32_t seconds) {
    struct asked asked[NODES_MAX];

    for (uint32_t second = 0; second < seconds; second++) {
        for (uint64_t i = 0; i < count; i++) {
            start(bench, &asked[i], OP_NODE_JOIN, join_of(i, true));
        }
        pass(bench, NS_PER_S);
        for (uint64_t i = 0; i < count; i++) {
            assert_true(asked[i].done && asked[i].call.result == 0);
        }
    }
}

static void nodes_join(struct bench *bench, uint64_t count) {
    nodes_number(bench, count);
    nodes_speak(bench, count, 1);
}

static struct manager_hearing hearing_of(const struct bench *bench) {
    struct manager_hearing hearing;

    manager_hearing_get(bench->manager, &hearing);
    return hearing;
}

static void assert_hears(const struct bench *bench, uint32_t heard, uint32_t nodes, bool holds) {
    struct manager_hearing hearing = hearing_of(bench);

    assert_int_equal(hearing.nodes, nodes);
    assert_int_equal(hearing.nodes_heard, heard);
    assert_int_equal(hearing.holds, holds);
}

/* Cut off from all others for two timeouts, it evicts nobody; behind that whoever is heard within
 * one more stays, and who is not goes. It says so once, at the beginning and at the end. */
static void test_a_manager_that_is_cut_off_evicts_nobody(void **state) {
    struct bench *bench = *state;
    uint64_t gone = begin(bench, 1, 100, "/gone");
    uint64_t back = begin(bench, 2, 100, "/back");

    nodes_join(bench, 4);
    assert_hears(bench, 5, 5, false);
    pass(bench, (PERIOD_S - 2) * NS_PER_S);
    assert_hears(bench, 5, 5, false);
    assert_null(strstr(bench->line, "nodes"));
    pass(bench, 4 * NS_PER_S);
    assert_hears(bench, 1, 5, true);
    assert_non_null(strstr(bench->line, "hears 1 of 5 nodes: no client is evicted"));
    pass(bench, 2 * TIMEOUT_S * NS_PER_S);
    assert_int_equal(told(bench), 0);
    assert_int_equal(hearing_of(bench).silent_held, 2);
    nodes_speak(bench, 4, TIMEOUT_S - 4);
    assert_hears(bench, 5, 5, true);
    assert_int_equal(renew(bench, back, 100), 0);
    assert_int_equal(told(bench), 0);
    assert_int_equal(bench->lines, 1);
    nodes_speak(bench, 4, 8);
    assert_hears(bench, 5, 5, false);
    assert_int_equal(bench->lines, 2);
    assert_non_null(strstr(bench->line, "hears 5 of 5 nodes: clients are evicted"));
    assert_int_equal(renew(bench, back, 100), 0);
    assert_int_equal(renew(bench, gone, 100), -ERR_UNKNOWN_SESSION);
    assert_int_equal(hearing_of(bench).silent_evicted, 1);
    assert_int_equal(hearing_of(bench).silent_held, 2);
}

/* A break in the first timeout after a cut begins that anew. */
static void test_a_timeout_without_a_break(void **state) {
    struct bench *bench = *state;

    (void)begin(bench, 1, 100, "/gone");
    nodes_join(bench, 4);
    pass(bench, 2 * TIMEOUT_S * NS_PER_S);
    for (int i = 0; i < 3; i++) {
        nodes_speak(bench, 4, TIMEOUT_S / 2);
        assert_hears(bench, 5, 5, true);
        pass(bench, (PERIOD_S + 2) * NS_PER_S);
        assert_hears(bench, 1, 5, true);
    }
    assert_int_equal(told(bench), 0);
    assert_int_equal(bench->lines, 1);
    nodes_speak(bench, 4, TIMEOUT_S + 2);
    assert_int_equal(told(bench), 1);
}

/* Of so many nodes besides the manager's so many speak; is a silent client evicted? */
static void half_play(struct bench *bench, uint64_t nodes, uint64_t speaking, bool evicts) {
    (void)begin(bench, 1, 100, "/gone");
    nodes_join(bench, nodes);
    nodes_speak(bench, speaking, TIMEOUT_S + 5);
    assert_hears(bench, (uint32_t)speaking + 1, (uint32_t)nodes + 1, !evicts);
    assert_int_equal(told(bench), evicts);
    assert_int_equal(hearing_of(bench).silent_evicted, evicts);
    assert_int_equal(bench->lines, !evicts);
}

static void test_one_node_evicts(void **state) {
    half_play(*state, 0, 0, true);
}

static void test_one_of_two_is_half(void **state) {
    half_play(*state, 1, 0, true);
}

static void test_one_of_three_is_less(void **state) {
    half_play(*state, 2, 0, false);
}

static void test_two_of_four_are_half(void **state) {
    half_play(*state, 3, 1, true);
}

static void test_two_of_five_are_less(void **state) {
    half_play(*state, 4, 1, false);
}

/* Numbers alone make no member: who got some and never came back is not missed. */
static void test_a_node_without_targets_is_nobody(void **state) {
    struct bench *bench = *state;

    (void)begin(bench, 1, 100, "/gone");
    nodes_number(bench, 4);
    pass(bench, (TIMEOUT_S + 2) * NS_PER_S);
    assert_hears(bench, 1, 1, false);
    assert_int_equal(told(bench), 1);
}

/* After a start all count as heard, and the map says who there is: a manager that starts while it
 * is cut off evicts nobody either. */
static void test_a_start_hears_all_at_first(void **state) {
    struct bench *bench = *state;
    uint64_t session = begin(bench, 1, 100, "/kept");

    nodes_join(bench, 4);
    for (int i = 0; i < 3; i++) {
        manager_dies(bench, i == 1);
        manager_begins(bench);
        pass(bench, (PERIOD_S - 1) * NS_PER_S);
        assert_hears(bench, 5, 5, false);
        pass(bench, 2 * NS_PER_S);
        assert_hears(bench, 1, 5, true);
    }
    pass(bench, 2 * TIMEOUT_S * NS_PER_S);
    assert_int_equal(told(bench), 0);
    assert_int_equal(renew(bench, session, 100), 0);
}

/* Stopped for longer than the period, it has not listened to nodes either. */
static void test_a_stop_is_no_silence_of_nodes(void **state) {
    struct bench *bench = *state;
    bool flag = false;

    nodes_join(bench, 4);
    sim_schedule(bench->sim, NULL, 3 * PERIOD_S * NS_PER_S, note_flag, &flag);
    sim_run_until(bench->sim, UINT64_MAX, is_set, &flag);
    pass(bench, 2 * NS_PER_S);
    assert_hears(bench, 5, 5, false);
    assert_int_equal(bench->lines, 0);
}

/* Stopped in the first timeout behind a cut, it has not listened to those that come back. */
static void test_a_stop_behind_a_cut_is_no_time_to_come_back(void **state) {
    struct bench *bench = *state;
    uint64_t session = begin(bench, 1, 100, "/kept");
    bool flag = false;

    nodes_join(bench, 4);
    pass(bench, 2 * TIMEOUT_S * NS_PER_S);
    nodes_speak(bench, 4, 3);
    assert_hears(bench, 5, 5, true);
    sim_schedule(bench->sim, NULL, 2 * TIMEOUT_S * NS_PER_S, note_flag, &flag);
    sim_run_until(bench->sim, UINT64_MAX, is_set, &flag);
    nodes_speak(bench, 4, 3);
    assert_hears(bench, 5, 5, true);
    assert_int_equal(told(bench), 0);
    assert_int_equal(renew(bench, session, 100), 0);
    nodes_speak(bench, 4, TIMEOUT_S);
    assert_hears(bench, 5, 5, false);
    assert_int_equal(told(bench), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_manager_that_is_cut_off_evicts_nobody),
        TEST(a_timeout_without_a_break),
        TEST(one_node_evicts),
        TEST(one_of_two_is_half),
        TEST(one_of_three_is_less),
        TEST(two_of_four_are_half),
        TEST(two_of_five_are_less),
        TEST(a_node_without_targets_is_nobody),
        TEST(a_start_hears_all_at_first),
        TEST(a_stop_is_no_silence_of_nodes),
        TEST(a_stop_behind_a_cut_is_no_time_to_come_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
