/* Files without a name, where a transaction of another group is about to give them one, and where
 * nobody heard that they were made. */
#include "unit.h"
#include "base/endian.h"
#include "meta/half_format.h"
#include "meta/meta_format.h"
#include "meta_bench.h"

enum { SESSION = 1, OTHER = 2, TERM = 1, NUMBER = 1, DIRECTORY = 77, INDEX = 4096 };
enum { SEQUENCES = 4096 /* more than a window */ };

static void create_prepare(struct meta_bench *bench, struct call *call) {
    bench_prepare(bench, SESSION, OP_CREATE, call);
    call->request.create = (struct create_request){
        .parent = INO_ROOT, .mode = 0644, .open_flags = OPEN_READ | OPEN_WRITE, .unnamed = 1};
}

static struct ino file_make(struct meta_bench *bench) {
    struct call call;

    create_prepare(bench, &call);
    assert_int_equal(bench_run(bench, &call), 0);
    assert_true(call.reply.create.created);
    assert_int_equal(call.reply.create.attributes.nlink, 0);
    return call.reply.create.attributes.ino;
}

static void file_close(struct meta_bench *bench, struct ino ino) {
    struct call call;

    bench_prepare(bench, SESSION, OP_SETTLE, &call);
    call.request.settle =
        (struct settle_request){.ino = ino, .close = 1, .open_flags = OPEN_READ | OPEN_WRITE};
    assert_int_equal(bench_run(bench, &call), 0);
}

static int look(struct meta_bench *bench, struct ino ino, struct call *call) {
    bench_prepare(bench, OTHER, OP_GETATTR, call);
    call->request.getattr.ino = ino;
    return bench_run(bench, call);
}

static uint64_t inode_count(struct meta_bench *bench) {
    struct group_stats stats;

    bench_stats(bench, &stats);
    return stats.inode_count;
}

static uint64_t coordinator_of(const struct meta_bench *bench) {
    return cluster_map_first_log(bench->map, bench->osts[0].id).value;
}

/* Somebody elsewhere is about to give it a name. */
static int link_promise(struct meta_bench *bench, struct ino ino) {
    const struct half half = {.format = META_FORMAT,
                              .kind = HALF_LINK,
                              .mode = 0100644,
                              .ino = ino.value,
                              .to = DIRECTORY,
                              .to_index = INDEX};
    uint8_t participant[8];
    struct call call;

    bench->unended = NUMBER;
    store_le64(participant, cluster_map_first_log(bench->map, BENCH_MDT).value);
    bench_prepare(bench, 0, OP_CROSS_PREPARE, &call);
    call.request.cross_prepare =
        (struct cross_prepare_request){.coordinator = coordinator_of(bench),
                                       .term = TERM,
                                       .number = NUMBER,
                                       .participants = {participant, sizeof participant},
                                       .halves = {(const uint8_t *)&half, sizeof half}};
    return bench_run(bench, &call);
}

static void link_abort(struct meta_bench *bench) {
    struct call call;

    bench_prepare(bench, 0, OP_CROSS_ABORT, &call);
    call.request.cross_abort = (struct cross_abort_request){
        .coordinator = coordinator_of(bench), .term = TERM, .number = NUMBER};
    assert_int_equal(bench_run(bench, &call), 0);
}

static void link_commit(struct meta_bench *bench) {
    struct call call;

    bench_prepare(bench, 0, OP_CROSS_COMMIT, &call);
    call.request.cross_commit = (struct cross_commit_request){
        .coordinator = coordinator_of(bench), .term = TERM, .number = NUMBER};
    assert_int_equal(bench_run(bench, &call), 0);
}

enum how { BY_CLOSE, BY_EVICTION, BY_KILL, BY_POWER, HOW_COUNT };

/* The group starts anew, and those come back that were not evicted. */
static void restart(struct meta_bench *bench, enum how how, bool power) {
    bench_restart(bench, power);
    for (uint32_t i = 0; i < BENCH_SESSIONS; i++) {
        if (how == BY_CLOSE || i != SESSION) {
            bench_attach(bench, i);
        }
    }
}

/* Nobody has it open any more: it is closed, or its session evicted, behind which the group may
 * start anew. */
static void opens_end(struct meta_bench *bench, struct ino ino, enum how how) {
    if (how == BY_CLOSE) {
        file_close(bench, ino);
    } else {
        bench_evict(bench, bench->sessions[SESSION].id);
    }
    if (how == BY_KILL || how == BY_POWER) {
        restart(bench, how, how == BY_POWER);
    }
}

/* Its last close comes while the name is promised: it stays until that is given up, and goes. */
static void test_closed_and_given_up(void **state) {
    (void)state;
    for (enum how how = BY_CLOSE; how < HOW_COUNT; how++) {
        const struct bench_options options = {.seed = 71};
        struct meta_bench *bench = bench_new(&options);
        uint64_t before = inode_count(bench);
        struct ino ino = file_make(bench);
        struct call call;

        assert_int_equal(link_promise(bench, ino), 0);
        opens_end(bench, ino, how);
        bench_advance(bench, NS_PER_S);
        assert_int_equal(inode_count(bench), before + 1);
        link_abort(bench);
        bench_advance(bench, NS_PER_S);
        assert_int_equal(look(bench, ino, &call), -ERR_STALE);
        assert_int_equal(inode_count(bench), before);
        bench_free(bench);
    }
}

/* Or the name comes: then it has one link, and no close takes it. */
static void test_closed_and_named(void **state) {
    (void)state;
    for (enum how how = BY_CLOSE; how < HOW_COUNT; how++) {
        const struct bench_options options = {.seed = 72};
        struct meta_bench *bench = bench_new(&options);
        uint64_t before = inode_count(bench);
        struct ino ino = file_make(bench);
        struct call call;

        assert_int_equal(link_promise(bench, ino), 0);
        opens_end(bench, ino, how);
        link_commit(bench);
        bench_advance(bench, NS_PER_S);
        assert_int_equal(look(bench, ino, &call), 0);
        assert_int_equal(call.reply.getattr.attributes.nlink, 1);
        restart(bench, how, false);
        bench_advance(bench, NS_PER_S);
        assert_int_equal(look(bench, ino, &call), 0);
        assert_int_equal(inode_count(bench), before + 1);
        bench_free(bench);
    }
}

/* One that has lost its names, or never gets any, is promised none. */
static void test_not_to_be_named(void **state) {
    const struct bench_options options = {.seed = 73};
    struct meta_bench *bench = bench_new(&options);
    struct call call;

    (void)state;
    create_prepare(bench, &call);
    call.request.create.exclusive = 1;
    assert_int_equal(bench_run(bench, &call), 0);
    assert_int_equal(link_promise(bench, call.reply.create.attributes.ino), -ERR_CHANGED);
    create_prepare(bench, &call);
    call.request.create.name = (struct bytes){(const uint8_t *)"x", 1};
    assert_int_equal(bench_run(bench, &call), -ERR_INVALID);
    create_prepare(bench, &call);
    call.request.create.open_flags = OPEN_READ;
    assert_int_equal(bench_run(bench, &call), -ERR_INVALID);
    bench_free(bench);
}

/* The answer was lost with the process, and its client has presented nothing of it: it is kept for
 * who asks again. */
static void test_nobody_heard_of_it(void **state) {
    const struct bench_options options = {.seed = 74};
    struct meta_bench *bench = bench_new(&options);
    uint64_t before = inode_count(bench);
    struct call made, again;

    (void)state;
    create_prepare(bench, &made);
    assert_int_equal(bench_run(bench, &made), 0);
    restart(bench, BY_CLOSE, false);
    bench_advance(bench, NS_PER_S);
    create_prepare(bench, &again);
    again.header.sequence = made.header.sequence;
    assert_int_equal(bench_run(bench, &again), 0);
    assert_int_equal(again.reply.create.attributes.ino.value,
                     made.reply.create.attributes.ino.value);
    assert_int_equal(inode_count(bench), before + 1);
    file_close(bench, made.reply.create.attributes.ino);
    assert_int_equal(inode_count(bench), before);
    bench_free(bench);
}

static const struct bytes file_name = {(const uint8_t *)"f", 1};

/* A file of somebody else's, which SESSION has open to read, and then to write as well: the answer
 * to that is lost with the process. By then the file has no name. */
static struct ino open_lose(struct meta_bench *bench, struct call *lost) {
    struct call call;

    bench_prepare(bench, OTHER, OP_CREATE, &call);
    call.request.create =
        (struct create_request){.parent = INO_ROOT, .name = file_name, .mode = 0666};
    call.request.create.open_flags = OPEN_WRITE;
    assert_int_equal(bench_run(bench, &call), 0);
    struct ino ino = call.reply.create.attributes.ino;
    bench_prepare(bench, OTHER, OP_SETTLE, &call);
    call.request.settle = (struct settle_request){.ino = ino, .close = 1, .open_flags = OPEN_WRITE};
    assert_int_equal(bench_run(bench, &call), 0);
    bench_prepare(bench, SESSION, OP_OPEN, &call);
    call.request.open = (struct open_request){.ino = ino, .open_flags = OPEN_READ};
    assert_int_equal(bench_run(bench, &call), 0);
    bench_prepare(bench, SESSION, OP_OPEN, lost);
    lost->request.open = (struct open_request){.ino = ino, .open_flags = OPEN_READ | OPEN_WRITE};
    call = *lost;
    assert_int_equal(bench_run(bench, &call), 0);
    bench_prepare(bench, OTHER, OP_UNLINK, &call);
    call.request.unlink = (struct unlink_request){.parent = INO_ROOT, .name = file_name};
    assert_int_equal(bench_run(bench, &call), 0);
    bench_restart(bench, false);
    bench_prepare(bench, SESSION, OP_REOPEN, &call);
    call.header.term = 0;
    call.request.reopen =
        (struct reopen_request){.ino = ino, .open_flags = OPEN_READ, .read_count = 1};
    assert_int_equal(bench_run(bench, &call), 0);
    for (uint32_t i = 0; i < BENCH_SESSIONS; i++) {
        bench_attach(bench, i);
    }
    bench_prepare(bench, SESSION, OP_SETTLE, &call);
    call.request.settle = (struct settle_request){.ino = ino, .close = 1, .open_flags = OPEN_READ};
    assert_int_equal(bench_run(bench, &call), 0);
    return ino;
}

/* The last open that was presented ends before that one is asked for again: the file is there. */
static void test_lost_open_is_asked_for_behind_the_last_close(void **state) {
    const struct bench_options options = {.seed = 75};
    struct meta_bench *bench = bench_new(&options);
    uint64_t before = inode_count(bench);
    struct call lost, call;

    (void)state;
    struct ino ino = open_lose(bench, &lost);
    bench_advance(bench, NS_PER_S);
    lost.header.term = bench->sessions[SESSION].term;
    assert_int_equal(bench_run(bench, &lost), 0);
    assert_int_equal(look(bench, ino, &call), 0);
    file_close(bench, ino);
    assert_int_equal(inode_count(bench), before);
    bench_free(bench);
}

/* Or it never is: the file goes once it can't be any more. */
static void test_lost_open_is_not_asked_for(void **state) {
    const struct bench_options options = {.seed = 76};
    struct meta_bench *bench = bench_new(&options);
    uint64_t before = inode_count(bench);
    struct call lost, call;

    (void)state;
    struct ino ino = open_lose(bench, &lost);
    bench_advance(bench, NS_PER_S);
    assert_int_equal(look(bench, ino, &call), 0);
    for (int i = 0; i < 2; i++) { /* The first floor that is heard of is where it counts from. */
        bench->sessions[SESSION].sequence += SEQUENCES;
        bench_prepare(bench, SESSION, OP_UNLINK, &call);
        call.request.unlink = (struct unlink_request){.parent = INO_ROOT, .name = file_name};
        call.header.floor = call.header.sequence;
        assert_int_equal(bench_run(bench, &call), -ERR_NOT_FOUND);
        bench_advance(bench, NS_PER_S);
    }
    bench_advance(bench, NS_PER_S);
    assert_int_equal(look(bench, ino, &call), -ERR_STALE);
    assert_int_equal(inode_count(bench), before);
    bench_free(bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lost_open_is_asked_for_behind_the_last_close),
        cmocka_unit_test(test_lost_open_is_not_asked_for),
        cmocka_unit_test(test_closed_and_given_up),
        cmocka_unit_test(test_closed_and_named),
        cmocka_unit_test(test_not_to_be_named),
        cmocka_unit_test(test_nobody_heard_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
