/* Of what a group may have open for all sessions a user has half, and all but root 15 of 16: by one
 * session or by several, behind a restart too, and a line tells who has met his share. */
#include "unit.h"
#include "meta_bench.h"
#include "base/user_shares.h"
#include <string.h>

enum {
    MOST = 32,
    SHARE = MOST / 2,
    OTHERS = MOST - MOST / 16,
    FILES = 2 * MOST,
    ONE = 1000,
    OTHER = 2000,
    THIRD = 3000,
};

struct ground {
    struct meta_bench *bench;
    struct ino inos[FILES];
};

static void ground_make(struct ground *ground, uint64_t seed) {
    const struct bench_options options = {.seed = seed, .opens_max = MOST};
    struct call call;

    *ground = (struct ground){.bench = bench_new(&options)};
    for (uint32_t i = 0; i < FILES; i++) {
        uint8_t name[2] = {'f', (uint8_t)('0' + i)};

        bench_prepare(ground->bench, 0, OP_CREATE, &call);
        call.request.create.parent = INO_ROOT;
        call.request.create.name = (struct bytes){name, 2};
        call.request.create.mode = 0666;
        call.request.create.open_flags = OPEN_READ;
        assert_int_equal(bench_run(ground->bench, &call), 0);
        ground->inos[i] = call.reply.create.attributes.ino;
        bench_prepare(ground->bench, 0, OP_SETTLE, &call);
        call.request.settle =
            (struct settle_request){.ino = ground->inos[i], .close = 1, .open_flags = OPEN_READ};
        assert_int_equal(bench_run(ground->bench, &call), 0);
    }
}

static int file_open(struct ground *ground, uint32_t session, uint32_t uid, uint32_t number,
                     uint32_t flags) {
    struct call call;

    bench_prepare(ground->bench, session, OP_OPEN, &call);
    call.request.open = (struct open_request){
        .ino = ground->inos[number], .who = {.uid = uid, .gid = uid}, .open_flags = flags};
    return bench_run(ground->bench, &call);
}

static int file_close(struct ground *ground, uint32_t session, uint32_t number) {
    struct call call;

    bench_prepare(ground->bench, session, OP_SETTLE, &call);
    call.request.settle =
        (struct settle_request){.ino = ground->inos[number], .close = 1, .open_flags = OPEN_WRITE};
    return bench_run(ground->bench, &call);
}

static uint64_t opens_met(struct ground *ground) {
    struct group_stats stats;

    bench_stats(ground->bench, &stats);
    return stats.opens_met;
}

/* By turns of two sessions, from the first file on; how many there are then. */
static uint32_t open_all(struct ground *ground, uint32_t uid, uint32_t first) {
    uint32_t number = first;
    int r = 0;

    while (r == 0 && number < FILES) {
        r = file_open(ground, number % 2, uid, number, OPEN_WRITE);
        number += r == 0;
    }
    assert_int_equal(r, -ERR_TOO_MANY_OPEN);
    return number;
}

static void test_users_share(void **state) {
    struct ground ground;

    (void)state;
    ground_make(&ground, 41);
    assert_int_equal(open_all(&ground, ONE, 0), SHARE);
    assert_int_equal(file_open(&ground, 2, ONE, SHARE, OPEN_READ), -ERR_TOO_MANY_OPEN);
    assert_int_equal(file_open(&ground, 1, ONE, 1, OPEN_READ), 0); /* the session has it open */
    assert_int_equal(opens_met(&ground), ONE + 1);
    assert_int_equal(open_all(&ground, OTHER, SHARE), OTHERS);
    assert_int_equal(opens_met(&ground), ONE + 1); /* it is not his share that is spent */
    assert_int_equal(file_open(&ground, 0, THIRD, OTHERS, OPEN_READ), -ERR_TOO_MANY_OPEN);
    assert_int_equal(open_all(&ground, 0, OTHERS), MOST);
    /* What was closed is its user's again, whoever closed it last. */
    assert_int_equal(file_close(&ground, 0, 0), 0);
    assert_int_equal(file_open(&ground, 0, ONE, 0, OPEN_WRITE), 0);
    assert_int_equal(file_open(&ground, 0, ONE, MOST, OPEN_WRITE), -ERR_TOO_MANY_OPEN);
    bench_free(ground.bench);
}

static void test_who_meets_his_share_is_told_of(void **state) {
    struct ground ground;

    (void)state;
    ground_make(&ground, 42);
    struct meta_bench *bench = ground.bench;
    assert_int_equal(open_all(&ground, ONE, 0), SHARE);
    uint32_t before = bench->other_line_count;
    bench_advance(bench, NS_PER_S);
    assert_int_equal(bench->other_line_count, before + 1);
    assert_non_null(strstr(bench->other_line, "user 1000 has as many files open by all mounts as "
                                              "one may, 16 of 32"));
    assert_int_equal(file_open(&ground, 2, ONE, SHARE, OPEN_READ), -ERR_TOO_MANY_OPEN);
    bench_advance(bench, NS_PER_S);
    assert_int_equal(bench->other_line_count, before + 1); /* a line a minute */
    bench_advance(bench, SHARES_TOLD_NS);
    assert_int_equal(bench->other_line_count, before + 2);
    bench_free(bench);
}

static void file_present(struct ground *ground, uint32_t number, uint32_t uid) {
    struct call call;

    bench_prepare(ground->bench, number % 2, OP_REOPEN, &call);
    call.header.term = 0;
    call.request.reopen = (struct reopen_request){.ino = ground->inos[number],
                                                  .open_flags = OPEN_WRITE,
                                                  .write_count = 1,
                                                  .who = {.uid = uid}};
    assert_int_equal(bench_run(ground->bench, &call), 0);
}

/* Whose they were is presented with what was open; a client of before does not tell, so that what
 * it presents counts as nobody's. */
static void test_shares_outlive_a_restart(void **state) {
    (void)state;
    for (uint32_t old = 0; old < 2; old++) {
        uint32_t least = old ? SHARE / 2 : 0;
        struct ground ground;
        struct call sync;

        ground_make(&ground, 43);
        assert_int_equal(open_all(&ground, ONE, 0), SHARE);
        bench_prepare(ground.bench, 0, OP_SYNC, &sync);
        assert_int_equal(bench_run(ground.bench, &sync), 0);
        bench_restart(ground.bench, old);
        for (uint32_t i = 0; i < SHARE; i++) {
            file_present(&ground, i, i < least ? 0 : ONE);
        }
        for (uint32_t i = 0; i < BENCH_SESSIONS; i++) {
            bench_attach(ground.bench, i);
        }
        assert_int_equal(open_all(&ground, ONE, SHARE), SHARE + least);
        assert_int_equal(file_close(&ground, 1, SHARE - 1), 0);
        assert_int_equal(file_open(&ground, 1, ONE, SHARE - 1, OPEN_READ), 0);
        assert_int_equal(file_open(&ground, 1, ONE, MOST, OPEN_READ), -ERR_TOO_MANY_OPEN);
        bench_free(ground.bench);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_users_share),
        cmocka_unit_test(test_who_meets_his_share_is_told_of),
        cmocka_unit_test(test_shares_outlive_a_restart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
