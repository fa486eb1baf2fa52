/* A file that another session may be writing to can't begin to act for its owner or group: who
 * writes goes by the mode that it saw when it opened the file. */
#include "unit.h"
#include "meta_bench.h"

enum { WRITER = 1, OTHER = 2, OWNER = 7 };

static struct ino file_make(struct meta_bench *bench) {
    struct call call;

    bench_prepare(bench, 0, OP_MKNOD, &call);
    call.request.mknod.parent = INO_ROOT;
    call.request.mknod.name = (struct bytes){(const uint8_t *)"a", 1};
    call.request.mknod.mode = 0100755;
    assert_int_equal(bench_run(bench, &call), 0);
    return call.reply.mknod.attributes.ino;
}

static void file_open(struct meta_bench *bench, struct ino ino, uint32_t flags) {
    struct call call;

    bench_prepare(bench, WRITER, OP_OPEN, &call);
    call.request.open = (struct open_request){.ino = ino, .open_flags = flags};
    assert_int_equal(bench_run(bench, &call), 0);
}

static void file_reopen(struct meta_bench *bench, struct ino ino) {
    struct call call;

    bench_prepare(bench, WRITER, OP_REOPEN, &call);
    call.header.term = 0;
    call.request.reopen =
        (struct reopen_request){.ino = ino, .open_flags = OPEN_WRITE, .write_count = 1};
    assert_int_equal(bench_run(bench, &call), 0);
}

static void file_close(struct meta_bench *bench, struct ino ino) {
    struct call call;

    bench_prepare(bench, WRITER, OP_SETTLE, &call);
    call.request.settle = (struct settle_request){.ino = ino, .close = 1, .open_flags = OPEN_WRITE};
    assert_int_equal(bench_run(bench, &call), 0);
}

static int change(struct meta_bench *bench, uint32_t session, struct setattr_request asked) {
    struct call call;

    bench_prepare(bench, session, OP_SETATTR, &call);
    call.request.setattr = asked;
    return bench_run(bench, &call);
}

static int mode_set(struct meta_bench *bench, uint32_t session, struct ino ino, uint32_t mode) {
    return change(bench, session,
                  (struct setattr_request){.ino = ino, .valid = SETATTR_MODE, .mode = mode});
}

static uint32_t mode_of(struct meta_bench *bench, struct ino ino) {
    struct call call;

    bench_prepare(bench, OTHER, OP_GETATTR, &call);
    call.request.getattr.ino = ino;
    assert_int_equal(bench_run(bench, &call), 0);
    return call.reply.getattr.attributes.mode & 07777;
}

/* Each from the mode before it, by a session that doesn't write. */
static void test_what_begins_to_act_has_no_other_writer(void **state) {
    static const struct {
        uint32_t mode;
        int wanted;
    } rows[] = {
        {0700, 0},
        {04700, -ERR_IN_USE},
        {02710, -ERR_IN_USE},
        {06711, -ERR_IN_USE},
        {01777, 0},
        {02644, 0}, /* of a file that the group can't run it only marks */
        {02654, -ERR_IN_USE},
        {0600, 0},
    };
    const struct bench_options options = {.seed = 51};
    struct meta_bench *bench = bench_new(&options);
    struct ino ino = file_make(bench);

    (void)state;
    file_open(bench, ino, OPEN_WRITE);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        uint32_t before = mode_of(bench, ino);

        assert_int_equal(mode_set(bench, OTHER, ino, rows[i].mode), rows[i].wanted);
        assert_int_equal(mode_of(bench, ino), rows[i].wanted == 0 ? rows[i].mode : before);
    }
    bench_free(bench);
}

/* Its own writers a mount knows; who only reads does no harm; and what acts already was seen. */
static void test_who_may_let_it_act(void **state) {
    const struct bench_options options = {.seed = 52};
    struct meta_bench *bench = bench_new(&options);
    struct ino ino = file_make(bench);
    const struct setattr_request given = {.ino = ino,
                                          .valid = SETATTR_UID | SETATTR_GID | SETATTR_MODE,
                                          .uid = OWNER,
                                          .gid = OWNER,
                                          .mode = 04755};

    (void)state;
    file_open(bench, ino, OPEN_READ);
    assert_int_equal(mode_set(bench, OTHER, ino, 04755), 0);
    file_open(bench, ino, OPEN_WRITE);
    assert_int_equal(mode_set(bench, OTHER, ino, 04711), 0);
    assert_int_equal(change(bench, OTHER, given), -ERR_IN_USE); /* for somebody else, now */
    assert_int_equal(mode_of(bench, ino), 04711);
    assert_int_equal(change(bench, WRITER, given), 0);
    assert_int_equal(mode_set(bench, OTHER, ino, 06755), -ERR_IN_USE);
    assert_int_equal(mode_set(bench, WRITER, ino, 06755), 0);
    bench_free(bench);
}

/* All but the one that sets modes. */
static void others_attach(struct meta_bench *bench) {
    for (uint32_t i = 0; i < BENCH_SESSIONS; i++) {
        if (i != OTHER) {
            bench_attach(bench, i);
        }
    }
}

/* Also a writer that has not come back since a start, until it closes the file or is evicted. */
static void test_writers_of_before_a_start_count(void **state) {
    const struct bench_options options = {.seed = 53};
    struct meta_bench *bench = bench_new(&options);
    struct ino ino = file_make(bench);

    (void)state;
    file_open(bench, ino, OPEN_WRITE);
    bench_restart(bench, false);
    bench_attach(bench, OTHER);
    assert_int_equal(mode_set(bench, OTHER, ino, 04755), -ERR_IN_USE);
    file_reopen(bench, ino);
    others_attach(bench);
    file_close(bench, ino);
    assert_int_equal(mode_set(bench, OTHER, ino, 04755), 0);
    assert_int_equal(mode_set(bench, OTHER, ino, 0755), 0);
    file_open(bench, ino, OPEN_WRITE);
    assert_int_equal(mode_set(bench, OTHER, ino, 04755), -ERR_IN_USE);
    bench_evict(bench, bench->sessions[WRITER].id);
    bench_advance(bench, NS_PER_S);
    assert_int_equal(mode_set(bench, OTHER, ino, 04755), 0);
    bench_free(bench);
}

/* Power may have taken what a session had open that has not come back. */
static void test_who_may_have_been_a_writer_counts(void **state) {
    const struct bench_options options = {.seed = 54};
    struct meta_bench *bench = bench_new(&options);
    struct ino ino = file_make(bench);
    struct call call;

    (void)state;
    bench_prepare(bench, 0, OP_SYNC, &call);
    assert_int_equal(bench_run(bench, &call), 0);
    bench_restart(bench, true);
    bench_attach(bench, OTHER);
    assert_int_equal(mode_set(bench, OTHER, ino, 04755), -ERR_IN_USE);
    assert_int_equal(mode_set(bench, OTHER, ino, 0711), 0);
    others_attach(bench);
    assert_int_equal(mode_set(bench, OTHER, ino, 04755), 0);
    bench_free(bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_begins_to_act_has_no_other_writer),
        cmocka_unit_test(test_who_may_let_it_act),
        cmocka_unit_test(test_writers_of_before_a_start_count),
        cmocka_unit_test(test_who_may_have_been_a_writer_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
