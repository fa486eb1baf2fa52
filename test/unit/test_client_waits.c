/* Requests that wait for what another one has asked for: what ends that one alone, an interrupt or
 * the end of its time, does not end them. */
#include "client_bench.h"

enum { WRITTEN = 300000 };

static void refuse(struct toy_server *server, uint16_t opcode, int result, uint32_t count) {
    server->fail_opcode = opcode;
    server->fail_result = result;
    server->fail_count = count;
}

static struct shoal_request read_of(struct shoal_file *file, void *data) {
    return (struct shoal_request){
        .operation = SHOAL_READ, .file = file, .data = data, .size = WRITTEN};
}

/* A file in chunks, whose capability nobody takes any more; what asks for another one is held. */
static struct shoal_file *make_stale(struct bench *bench, const uint8_t *data) {
    struct shoal_file *file = make(bench, "shared", RW);
    struct toy_file *toy = toy_file_find(&bench->cluster, ino_of(bench, file));

    assert_int_equal(put(bench, file, 0, data, WRITTEN), WRITTEN);
    assert_int_equal(on_file(bench, SHOAL_FLUSH, file), 0);
    toy->truncate_seq++;
    toy->truncate_size = WRITTEN;
    toy->attributes.truncate_seq = toy->truncate_seq;
    toy->attributes.epoch = ++bench->cluster.epoch;
    bench->cluster.mdt.hold = true;
    return file;
}

/* A read and a write, of which one asks for both; two of another kind wait behind them. */
static void one_ends_alone(struct bench *bench, bool write_asks, uint16_t opcode, int result,
                           int64_t expected) {
    struct toy_server *mdt = &bench->cluster.mdt;
    uint8_t *data = pattern(WRITTEN, 21);
    uint8_t *back = malloc(WRITTEN);
    struct shoal_file *file = make_stale(bench, data);
    struct asked read;
    struct asked write;
    struct asked *asker = write_asks ? &write : &read;
    struct asked *other = write_asks ? &read : &write;

    start(bench, asker, write_asks ? write_of(file, 0, data, WRITTEN) : read_of(file, back));
    start(bench, other, write_asks ? read_of(file, back) : write_of(file, 0, data, WRITTEN));
    assert_false(asker->done || other->done);
    assert_int_equal(mdt->held_count, 1);
    assert_int_equal(mdt->held[0]->header.opcode, OP_REOPEN);
    refuse(mdt, opcode, result, 1);
    mdt->hold = false;
    toy_release(mdt, UINT32_MAX);
    while (worker_run_one(&bench->cluster.worker)) {
    }
    assert_true(asker->done && other->done);
    assert_int_equal(mdt->fail_count, 0);
    assert_int_equal(asker->request.result, expected);
    assert_int_equal(other->request.result, WRITTEN);
    assert_int_equal(get(bench, file, 0, back, WRITTEN), WRITTEN);
    assert_memory_equal(back, data, WRITTEN);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    free(data);
    free(back);
}

static void test_an_interrupted_read_leaves_the_write(void **state) {
    one_ends_alone(*state, false, OP_REOPEN, -ERR_INTERRUPTED, -EINTR);
}

static void test_an_interrupted_write_leaves_the_read(void **state) {
    one_ends_alone(*state, true, OP_REOPEN, -ERR_INTERRUPTED, -EINTR);
}

/* The capability has come, and the size that is asked for as well has not. */
static void test_an_interrupt_behind_the_capability(void **state) {
    one_ends_alone(*state, false, OP_GETATTR, -ERR_INTERRUPTED, -EINTR);
}

static void test_a_read_whose_time_is_up_leaves_the_write(void **state) {
    one_ends_alone(*state, false, OP_REOPEN, -ERR_TIMED_OUT, -EIO);
}

/* All but the last are interrupted, each when it asks itself. */
static void test_each_that_waits_asks_itself(void **state) {
    struct bench *bench = *state;
    struct toy_server *mdt = &bench->cluster.mdt;
    uint8_t *data = pattern(WRITTEN, 22);
    uint8_t *back = malloc(WRITTEN);
    struct shoal_file *file = make_stale(bench, data);
    struct asked asked[4];

    for (size_t i = 0; i < ARRAY_SIZE(asked); i++) {
        start(bench, &asked[i], read_of(file, back));
    }
    refuse(mdt, OP_REOPEN, -ERR_INTERRUPTED, ARRAY_SIZE(asked) - 1);
    for (size_t i = 0; i < ARRAY_SIZE(asked); i++) {
        assert_int_equal(mdt->held_count, 1);
        assert_false(asked[i].done);
        toy_release(mdt, 1);
        while (worker_run_one(&bench->cluster.worker)) {
        }
        assert_int_equal(asked[i].done, i + 1 < ARRAY_SIZE(asked));
    }
    mdt->hold = false;
    toy_release(mdt, UINT32_MAX); /* the size */
    while (worker_run_one(&bench->cluster.worker)) {
    }
    for (size_t i = 0; i < ARRAY_SIZE(asked); i++) {
        assert_true(asked[i].done);
        assert_int_equal(asked[i].request.result, i + 1 < ARRAY_SIZE(asked) ? -EINTR : WRITTEN);
    }
    assert_memory_equal(back, data, WRITTEN);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    free(data);
    free(back);
}

/* That the server has been away for so long is so for all. */
static void test_all_end_with_a_server_that_is_away(void **state) {
    struct bench *bench = *state;
    struct toy_server *mdt = &bench->cluster.mdt;
    uint8_t *data = pattern(WRITTEN, 23);
    uint8_t *back = malloc(WRITTEN);
    struct shoal_file *file = make_stale(bench, data);
    struct asked asked[2];

    for (size_t i = 0; i < ARRAY_SIZE(asked); i++) {
        start(bench, &asked[i], read_of(file, back));
    }
    refuse(mdt, OP_REOPEN, -ERR_AWAY, 1);
    mdt->hold = false;
    toy_release(mdt, UINT32_MAX);
    while (worker_run_one(&bench->cluster.worker)) {
    }
    for (size_t i = 0; i < ARRAY_SIZE(asked); i++) {
        assert_true(asked[i].done);
        assert_int_equal(asked[i].request.result, -EIO);
    }
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    free(data);
    free(back);
}

/* Attributes of an inode of the second metadata target, to which nobody has attached yet. */
static struct shoal_request look_at_second(struct bench *bench) {
    toy_second_mdt_add(&bench->cluster);
    while (client_map(bench->client)->version < bench->cluster.map.version) {
        tick(bench, NS_PER_S);
    }
    return (struct shoal_request){.operation = SHOAL_GETATTR,
                                  .ino = (uint64_t)TOY_SECOND_SLOT << 48 | 1};
}

/* One attachment for all that need it: who came later waits on when its time is up, and is served
 * by the next one. */
static void test_an_attachment_whose_time_is_up(void **state) {
    struct bench *bench = *state;
    struct toy_server *mdt = &bench->cluster.second_mdt;
    struct shoal_request look = look_at_second(bench);
    struct asked first;
    struct asked later;

    mdt->hold = true;
    start(bench, &first, look);
    for (int i = 0; i < 9; i++) {
        tick(bench, NS_PER_S);
    }
    start(bench, &later, look);
    assert_int_equal(mdt->held_count, 1);
    assert_int_equal(mdt->held[0]->header.opcode, OP_SESSION_ATTACH);
    tick(bench, NS_PER_S);
    assert_true(first.done);
    assert_int_equal(first.request.result, -EIO);
    assert_false(later.done);
    refuse(mdt, OP_SESSION_ATTACH, -ERR_TIMED_OUT, 1);
    toy_release(mdt, 1);
    while (worker_run_one(&bench->cluster.worker)) {
    }
    assert_false(later.done);
    mdt->hold = false;
    tick(bench, NS_PER_S);
    assert_true(later.done);
    assert_int_equal(later.request.result, -ENOENT);
}

/* Likewise where the server has started anew, and is shown what is open. */
static void test_opens_that_are_shown_in_vain(void **state) {
    struct bench *bench = *state;
    struct toy_server *mdt = &bench->cluster.mdt;
    struct shoal_file *file = make(bench, "shown", RW);
    struct shoal_request look = {.operation = SHOAL_GETATTR, .file = file};
    struct asked first;
    struct asked later;

    mdt->attached = false;
    mdt->term++;
    mdt->detached_result = -ERR_STALE_TERM;
    mdt->hold = true;
    start(bench, &first, look);
    toy_release(mdt, 1);
    while (worker_run_one(&bench->cluster.worker)) {
    }
    assert_int_equal(mdt->held_count, 1);
    assert_int_equal(mdt->held[0]->header.opcode, OP_REOPEN);
    for (int i = 0; i < 9; i++) {
        tick(bench, NS_PER_S);
    }
    mdt->hold = false;
    start(bench, &later, look);
    mdt->hold = true;
    tick(bench, NS_PER_S);
    assert_true(first.done);
    assert_int_equal(first.request.result, -EIO);
    refuse(mdt, OP_REOPEN, -ERR_TIMED_OUT, 1);
    toy_release(mdt, 1);
    while (worker_run_one(&bench->cluster.worker)) {
    }
    assert_int_equal(mdt->fail_count, 0);
    assert_false(later.done);
    mdt->hold = false;
    toy_release(mdt, UINT32_MAX);
    tick(bench, NS_PER_S);
    assert_true(later.done && mdt->attached);
    assert_int_equal(later.request.result, 0);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
}

/* And it ends when its own is. */
static void test_attachments_that_nobody_answers(void **state) {
    struct bench *bench = *state;
    struct toy_server *mdt = &bench->cluster.second_mdt;
    struct shoal_request look = look_at_second(bench);
    struct asked asked;

    refuse(mdt, OP_SESSION_ATTACH, -ERR_TIMED_OUT, UINT32_MAX);
    start(bench, &asked, look);
    for (int i = 0; i < 9; i++) {
        tick(bench, NS_PER_S);
        assert_false(asked.done);
    }
    tick(bench, NS_PER_S);
    assert_true(asked.done);
    assert_int_equal(asked.request.result, -EIO);
}

static int setup_few(void **state) {
    *state = malloc(sizeof(struct bench));
    bench_open(*state, (struct client_options){.open_files_max = 640, .chunk_calls_max = 1});
    return 0;
}

/* The map doesn't name the file's chains yet, and when the seek's turn has come the file has become
 * shorter: there is nothing to ask for. */
static void test_a_seek_in_a_file_that_becomes_shorter(void **state) {
    struct bench *bench = *state;
    struct toy_server *ost = &bench->cluster.osts[0];
    struct shoal_file *file = make(bench, "shorter", RW);
    struct toy_file *toy = toy_file_find(&bench->cluster, ino_of(bench, file));
    uint8_t *data = pattern(WRITTEN, 23);
    struct asked space;
    struct asked sought;

    assert_int_equal(put(bench, file, 0, data, WRITTEN), WRITTEN);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    toy->layout.pool_version = 99;
    struct shoal_request open = {
        .operation = SHOAL_OPEN, .ino = toy->attributes.ino.value, .flags = RW};
    assert_int_equal(run(bench, &open), 0);
    ost->hold = true;
    start(bench, &space, (struct shoal_request){.operation = SHOAL_STATFS, .ino = open.ino});
    assert_int_equal(ost->held_count, 1);
    start(bench, &sought,
          (struct shoal_request){.operation = SHOAL_SEEK,
                                 .file = open.file,
                                 .flags = SHOAL_SEEK_DATA,
                                 .offset = (size_t)2 * TOY_CHUNK_BYTES});
    assert_false(sought.done);
    toy->attributes.size = 0;
    toy->attributes.epoch = ++bench->cluster.epoch;
    struct shoal_request look = {.operation = SHOAL_GETATTR, .file = open.file};
    assert_int_equal(run(bench, &look), 0);
    ost->hold = false;
    toy_release(ost, UINT32_MAX);
    while (worker_run_one(&bench->cluster.worker)) {
    }
    assert_true(space.done && sought.done);
    assert_int_equal(sought.request.result, -ENXIO);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, open.file), 0);
    free(data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(an_interrupted_read_leaves_the_write),
        TEST(an_interrupted_write_leaves_the_read),
        TEST(an_interrupt_behind_the_capability),
        TEST(a_read_whose_time_is_up_leaves_the_write),
        TEST(each_that_waits_asks_itself),
        TEST(all_end_with_a_server_that_is_away),
        TEST(an_attachment_whose_time_is_up),
        TEST(opens_that_are_shown_in_vain),
        TEST(attachments_that_nobody_answers),
        cmocka_unit_test_setup_teardown(test_a_seek_in_a_file_that_becomes_shorter, setup_few,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
