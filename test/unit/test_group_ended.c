/* A group and the list of the ended: sessions that were here, that never were, and restarts between
 * them. */
#include "unit.h"
#include "meta_bench.h"
#include <string.h>

static int attach_of(struct meta_bench *bench, uint64_t session, uint64_t ended) {
    struct call call;

    bench_prepare(bench, 0, OP_SESSION_ATTACH, &call);
    call.header.term = 0;
    call.request.session_attach =
        (struct session_attach_request){.session = session, .incarnation = 7, .ended = ended};
    return bench_run(bench, &call);
}

static uint64_t bits_tell(struct meta_bench *bench, struct sessions_ended_request request) {
    struct call call;

    bench_prepare(bench, 0, OP_SESSIONS_ENDED, &call);
    call.request.sessions_ended = request;
    assert_int_equal(bench_run(bench, &call), 0);
    return call.reply.sessions_ended.number;
}

/* Sessions end that were here, over a stop and over a kill, and then all that were begun beside an
 * old one, which are more than any table has: who has ended is refused, and the old one, which was
 * never here, attaches. */
static void test_many_sessions_end(void **state) {
    enum { HERE = 600, OLD = 1000, ALL = 10000 };
    const struct bench_options options = {.seed = 8, .cold_per_mille = 1000, .warm_sets = 8};
    struct meta_bench *bench = bench_new(&options);
    struct bench_session *who = &bench->sessions[1];
    uint8_t bits[WIRE_ENDED_BYTES_MAX];
    uint64_t first_of_all = who->id;

    (void)state;
    for (uint32_t i = 0; i < HERE; i++) {
        if (i == 200 || i == 400) {
            i == 200 ? bench_stop_and_start(bench) : bench_restart(bench, false);
            bench_attach(bench, 0);
            bench_attach(bench, 1);
        }
        bench_evict(bench, who->id);
        *who = (struct bench_session){.id = ++bench->next_session_id, .incarnation = 7};
        bench_attach(bench, 1);
    }
    assert_true(who->id < OLD);
    memset(bits, 0xff, sizeof bits);
    for (uint64_t at = OLD + 1; at < ALL; at += 8 * sizeof bits) {
        assert_int_equal(
            bits_tell(bench, (struct sessions_ended_request){.from = bench->list_number,
                                                             .number = bench->list_number,
                                                             .first = at,
                                                             .names = {bits, sizeof bits}}),
            bench->list_number);
        bench_restart(bench, at == OLD + 1);
        bench_attach(bench, 1);
    }
    bench->list_number += ALL;
    assert_int_equal(
        bits_tell(bench, (struct sessions_ended_request){.from = bench->list_number - ALL,
                                                         .number = bench->list_number,
                                                         .first = ALL,
                                                         .names = {bits, 1}}),
        bench->list_number);
    bench_evict(bench, bench->sessions[2].id);
    /* Of a stretch one is here: it ends as one that is named. */
    assert_int_equal(attach_of(bench, 3 * ALL, bench->list_number), 0);
    assert_int_equal(
        bits_tell(bench, (struct sessions_ended_request){.from = bench->list_number,
                                                         .number = bench->list_number,
                                                         .first = 3 * ALL - 1000,
                                                         .names = {bits, sizeof bits}}),
        bench->list_number);
    while (bench_is_known(bench, 3 * ALL)) {
        bench_turn(bench);
    }
    assert_int_equal(attach_of(bench, 3 * ALL, bench->list_number), -ERR_FENCED);
    assert_int_equal(attach_of(bench, 3 * ALL - 1001, bench->list_number), 0);
    bench_evict(bench, 3 * ALL - 1001);
    assert_int_equal(attach_of(bench, OLD, bench->list_number), 0);
    assert_int_equal(attach_of(bench, OLD + 1, bench->list_number), -ERR_FENCED);
    assert_int_equal(attach_of(bench, ALL - 1, bench->list_number), -ERR_FENCED);
    assert_int_equal(attach_of(bench, first_of_all, bench->list_number), -ERR_FENCED);
    bench_free(bench);
}

/* Who began by a newer list waits for it; below the lowest all are refused and what they had open
 * here is closed, also of whom no message has named. The answer is on disk. */
static void test_list_of_the_ended(void **state) {
    const struct bench_options options = {.seed = 9, .cold_per_mille = 300};
    struct meta_bench *bench = bench_new(&options);
    uint64_t mine = bench->sessions[0].id;
    struct call attach;
    struct call call;

    (void)state;
    bench_evict(bench, bench->sessions[3].id); /* Its place is free. */
    bench_prepare(bench, 0, OP_CREATE, &call);
    call.request.create.parent = INO_ROOT;
    call.request.create.name = (struct bytes){(const uint8_t *)"file", 4};
    call.request.create.mode = 0644;
    call.request.create.open_flags = OPEN_WRITE;
    assert_int_equal(bench_run(bench, &call), 0);
    bench_prepare(bench, 1, OP_SESSION_ATTACH, &attach);
    attach.request.session_attach = (struct session_attach_request){
        .session = 900, .incarnation = 1, .ended = bench->list_number + 1};
    bench_post(bench, &attach);
    bench_advance(bench, NS_PER_S);
    assert_false(bench_is_answered(&attach));
    /* It begins elsewhere than where the list stands. */
    assert_int_equal(
        bits_tell(bench, (struct sessions_ended_request){.from = bench->list_number + 1,
                                                         .number = bench->list_number + 2}),
        bench->list_number);
    assert_false(bench_is_answered(&attach));
    assert_int_equal(
        bits_tell(bench, (struct sessions_ended_request){.from = bench->list_number,
                                                         .number = bench->list_number + 5,
                                                         .first = 900,
                                                         .lowest = 900}),
        bench->list_number + 5);
    assert_int_equal(bench_finish(bench, &attach), 0);
    bench_restart(bench, true);
    while (bench_is_known(bench, mine) || bench_is_known(bench, bench->sessions[1].id)) {
        bench_turn(bench);
    }
    assert_int_equal(attach_of(bench, mine, 1), -ERR_FENCED);
    assert_int_equal(attach_of(bench, 899, 1), -ERR_FENCED);
    assert_int_equal(attach_of(bench, 901, bench->list_number + 5), 0);
    bench_prepare(bench, 0, OP_SESSIONS_ENDED, &call);
    call.request.sessions_ended = (struct sessions_ended_request){.from = 2, .number = 1};
    assert_int_equal(bench_run(bench, &call), -ERR_INVALID);
    bench_free(bench);
}

/* News that tell of a lowest, and name none of those below it: they end as those that are named. */
static void test_lowest_without_names(void **state) {
    const struct bench_options options = {.seed = 11};
    struct meta_bench *bench = bench_new(&options);
    uint64_t mine = bench->sessions[1].id;

    (void)state;
    assert_true(bench_is_known(bench, mine));
    assert_int_equal(
        bits_tell(bench, (struct sessions_ended_request){.from = bench->list_number,
                                                         .number = bench->list_number + 1,
                                                         .lowest = mine + 1}),
        bench->list_number + 1);
    while (bench_is_known(bench, mine)) {
        bench_turn(bench);
    }
    assert_int_equal(attach_of(bench, mine, 1), -ERR_FENCED);
    assert_true(bench_is_known(bench, bench->sessions[2].id));
    bench_free(bench);
}

/* The lowest may be any number: the rows below it that are not there cost nothing. */
static void test_lowest_beyond_all(void **state) {
    const struct bench_options options = {.seed = 12};
    struct meta_bench *bench = bench_new(&options);

    (void)state;
    assert_int_equal(
        bits_tell(bench, (struct sessions_ended_request){.from = bench->list_number,
                                                         .number = bench->list_number + 1,
                                                         .lowest = UINT64_MAX}),
        bench->list_number + 1);
    assert_int_equal(attach_of(bench, UINT64_MAX - 1, 1), -ERR_FENCED);
    bench_free(bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_sessions_end),
        cmocka_unit_test(test_list_of_the_ended),
        cmocka_unit_test(test_lowest_without_names),
        cmocka_unit_test(test_lowest_beyond_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
