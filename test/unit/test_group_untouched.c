/* Chunks that a file gets as it is made: when its maker may give them back, and when not any
 * more. */
#include "unit.h"
#include "meta_bench.h"
#include <string.h>

enum { MAKER, OTHER };

struct made {
    struct meta_bench *bench;
    struct ino ino;
    uint32_t generation;
    uint64_t sequence; /* of the create */
    struct attributes attributes;
};

static void create_fill(struct call *call, uint32_t open_flags, bool draws) {
    static const uint8_t name[] = "a";

    call->request.create = (struct create_request){.parent = INO_ROOT,
                                                   .name = {name, 1},
                                                   .mode = 0644,
                                                   .open_flags = open_flags,
                                                   .draws = draws};
}

static void make(struct made *made, uint32_t open_flags, bool draws) {
    struct call call;

    bench_prepare(made->bench, MAKER, OP_CREATE, &call);
    create_fill(&call, open_flags, draws);
    made->sequence = call.header.sequence;
    assert_int_equal(bench_run(made->bench, &call), 0);
    made->attributes = call.reply.create.attributes;
    made->ino = made->attributes.ino;
    made->generation = call.reply.create.capability.generation;
}

static struct made scene(uint64_t seed) {
    struct made made = {.bench = bench_new(&(struct bench_options){.seed = seed})};

    make(&made, OPEN_WRITE | OPEN_READ, true);
    assert_int_equal(made.attributes.data_state, DATA_CHUNKED);
    assert_int_not_equal(made.generation, 0);
    return made;
}

static struct inline_write_reply write_small(const struct made *made, uint32_t untouched) {
    struct call call;

    bench_prepare(made->bench, MAKER, OP_INLINE_WRITE, &call);
    call.request.inline_write = (struct inline_write_request){
        .ino = made->ino, .data = {(const uint8_t *)"bytes", 5}, .untouched = untouched};
    assert_int_equal(bench_run(made->bench, &call), 0);
    return call.reply.inline_write;
}

static struct attributes settle(const struct made *made, bool close, uint64_t size,
                                uint32_t untouched) {
    struct call call;

    bench_prepare(made->bench, MAKER, OP_SETTLE, &call);
    call.request.settle = (struct settle_request){.ino = made->ino,
                                                  .size = size,
                                                  .wrote = size > 0,
                                                  .close = close,
                                                  .open_flags = OPEN_READ | OPEN_WRITE,
                                                  .untouched = untouched};
    assert_int_equal(bench_run(made->bench, &call), 0);
    return call.reply.settle.attributes;
}

static struct attributes look(const struct made *made) {
    struct call call;

    bench_prepare(made->bench, OTHER, OP_GETATTR, &call);
    call.request.getattr.ino = made->ino;
    assert_int_equal(bench_run(made->bench, &call), 0);
    return call.reply.getattr.attributes;
}

static struct setattr_reply set(const struct made *made, uint32_t valid, uint64_t size,
                                uint32_t untouched) {
    struct call call;

    bench_prepare(made->bench, MAKER, OP_SETATTR, &call);
    call.request.setattr = (struct setattr_request){.ino = made->ino,
                                                    .valid = valid,
                                                    .mode = 0600,
                                                    .size = size,
                                                    .opened = 1,
                                                    .untouched = untouched};
    assert_int_equal(bench_run(made->bench, &call), 0);
    return call.reply.setattr;
}

static int set_layout(const struct made *made, uint32_t untouched) {
    struct call call;

    bench_prepare(made->bench, MAKER, OP_LAYOUT_SET, &call);
    call.request.layout_set = (struct layout_set_request){
        .ino = made->ino,
        .layout = {.pool_version = 0, .chunk_bytes = 1 << 20, .stripe_count = 1},
        .untouched = untouched};
    return bench_run(made->bench, &call);
}

static void test_only_who_asks_for_it_and_may_write_gets_chunks(void **state) {
    static const uint32_t flags[] = {OPEN_WRITE, OPEN_READ};

    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        struct made made = {.bench = bench_new(&(struct bench_options){.seed = 1})};

        make(&made, flags[i], flags[i] == OPEN_READ);
        assert_int_equal(made.attributes.data_state, DATA_EMPTY);
        assert_int_equal(made.generation, 0);
        bench_free(made.bench);
    }
}

static void test_a_small_write_gives_them_back(void **state) {
    struct made made = scene(2);

    (void)state;
    struct inline_write_reply reply = write_small(&made, made.generation);
    assert_int_equal(reply.attributes.data_state, DATA_INLINE);
    assert_int_equal(reply.attributes.size, 5);
    assert_int_equal(reply.capability.generation, 0);
    bench_free(made.bench);
}

static void test_the_last_close_gives_them_back(void **state) {
    struct made made = scene(3);

    (void)state;
    assert_int_equal(settle(&made, true, 0, made.generation).data_state, DATA_EMPTY);
    assert_int_equal(look(&made).data_state, DATA_EMPTY);
    bench_free(made.bench);
}

static void test_a_new_size_gives_them_back(void **state) {
    struct made made = scene(4);

    (void)state;
    struct setattr_reply reply = set(&made, SETATTR_SIZE, 100000, made.generation);
    assert_int_equal(reply.attributes.data_state, DATA_EMPTY);
    assert_int_equal(reply.attributes.size, 100000);
    assert_int_equal(reply.attributes.truncate_seq, 0); /* Nobody has anything to cut. */
    bench_free(made.bench);
}

static void test_a_layout_gives_them_back(void **state) {
    struct made made = scene(5);

    (void)state;
    assert_int_equal(set_layout(&made, 0), -ERR_INVALID);
    assert_int_equal(set_layout(&made, made.generation), 0);
    assert_int_equal(look(&made).data_state, DATA_EMPTY);
    bench_free(made.bench);
}

/* Only its maker, by the answer that made it. */
static void test_nobody_is_told_of_them(void **state) {
    struct made made = scene(6);
    struct call call;

    (void)state;
    assert_int_equal(set(&made, SETATTR_MODE, 0, 0).capability.generation, 0);
    bench_prepare(made.bench, MAKER, OP_INLINE_READ, &call);
    call.request.inline_read.ino = made.ino;
    assert_int_equal(bench_run(made.bench, &call), 0);
    assert_int_equal(call.reply.inline_read.attributes.data_state, DATA_CHUNKED);
    assert_int_equal(call.reply.inline_read.capability.generation, 0);
    bench_prepare(made.bench, OTHER, OP_OPEN, &call);
    call.request.open = (struct open_request){.ino = made.ino, .open_flags = OPEN_READ};
    assert_int_equal(bench_run(made.bench, &call), 0);
    assert_int_equal(call.reply.open.capability.generation, 0);
    assert_int_equal(write_small(&made, made.generation).attributes.data_state, DATA_INLINE);
    bench_free(made.bench);
}

/* What comes between, after which somebody may have written to them. */

static void between_open(struct made *made, uint32_t session, uint32_t open_flags) {
    struct call call;

    bench_prepare(made->bench, session, OP_OPEN, &call);
    call.request.open = (struct open_request){.ino = made->ino, .open_flags = open_flags};
    assert_int_equal(bench_run(made->bench, &call), 0);
    assert_int_equal(call.reply.open.capability.generation, made->generation);
}

static void other_opens_to_write(struct made *made) {
    between_open(made, OTHER, OPEN_WRITE);
}

static void maker_opens_to_write(struct made *made) {
    between_open(made, MAKER, OPEN_WRITE | OPEN_READ);
}

static void other_creates_it(struct made *made) {
    struct call call;

    bench_prepare(made->bench, OTHER, OP_CREATE, &call);
    create_fill(&call, OPEN_WRITE, true);
    assert_int_equal(bench_run(made->bench, &call), 0);
    assert_int_equal(call.reply.create.created, 0);
    assert_int_equal(call.reply.create.capability.generation, made->generation);
}

static void maker_presents_it(struct made *made) {
    struct call call;

    bench_prepare(made->bench, MAKER, OP_REOPEN, &call);
    call.request.reopen =
        (struct reopen_request){.ino = made->ino, .open_flags = OPEN_WRITE, .write_count = 1};
    assert_int_equal(bench_run(made->bench, &call), 0);
    assert_int_equal(call.reply.reopen.capability.generation, made->generation);
}

static void group_starts_again(struct made *made) {
    bench_restart(made->bench, false);
    maker_presents_it(made);
    for (uint32_t i = 0; i < BENCH_SESSIONS; i++) {
        bench_attach(made->bench, i);
    }
}

/* Its maker had no answer, and asks once more behind a start, which may have lost that others have
 * opened it. */
static void maker_is_answered_late(struct made *made) {
    struct call call;

    bench_restart(made->bench, false);
    for (uint32_t i = 0; i < BENCH_SESSIONS; i++) {
        bench_attach(made->bench, i);
    }
    bench_prepare(made->bench, MAKER, OP_CREATE, &call);
    made->bench->sessions[MAKER].sequence--;
    call.header.sequence = made->sequence;
    create_fill(&call, OPEN_WRITE | OPEN_READ, true);
    assert_int_equal(bench_run(made->bench, &call), 0);
    assert_int_equal(call.reply.create.created, 1);
    assert_int_equal(call.reply.create.capability.generation, made->generation);
}

static void maker_asks_for_chunks(struct made *made) {
    struct call call;

    bench_prepare(made->bench, MAKER, OP_INLINE_CONVERT, &call);
    call.request.inline_convert =
        (struct inline_convert_request){.ino = made->ino, .stage = INLINE_CONVERT_BEGIN};
    assert_int_equal(bench_run(made->bench, &call), 0);
    assert_int_equal(call.reply.inline_convert.capability.generation, made->generation);
}

static void maker_writes_and_says_nothing(struct made *made) {
    struct inline_write_reply reply = write_small(made, 0);

    assert_int_equal(reply.attributes.data_state, DATA_CHUNKED);
    assert_int_equal(reply.capability.generation, made->generation);
}

static void maker_tells_a_size(struct made *made) {
    assert_int_equal(settle(made, false, 10000, 0).size, 10000);
}

static void maker_cuts_it(struct made *made) {
    assert_int_equal(set(made, SETATTR_SIZE, 0, 0).attributes.data_state, DATA_CHUNKED);
}

static void test_who_may_have_written_keeps_them(void **state) {
    static void (*const betweens[])(struct made *) = {
        other_opens_to_write,  maker_opens_to_write,
        other_creates_it,      maker_presents_it,
        group_starts_again,    maker_is_answered_late,
        maker_asks_for_chunks, maker_tells_a_size,
        maker_cuts_it,         maker_writes_and_says_nothing,
    };

    (void)state;
    for (uint32_t i = 0; i < ARRAY_SIZE(betweens); i++) {
        struct made made = scene(10 + i);

        betweens[i](&made);
        struct inline_write_reply reply = write_small(&made, made.generation);
        assert_int_equal(reply.attributes.data_state, DATA_CHUNKED);
        assert_int_equal(reply.capability.generation, made.generation);
        assert_int_equal(set_layout(&made, made.generation), -ERR_INVALID);
        assert_int_equal(settle(&made, true, 0, made.generation).data_state, DATA_CHUNKED);
        bench_free(made.bench);
    }
}

static void test_those_of_another_file_are_none(void **state) {
    struct made made = scene(30);

    (void)state;
    assert_int_equal(write_small(&made, made.generation + 1).attributes.data_state, DATA_CHUNKED);
    bench_free(made.bench);
}

/* A size is of the chunks that it names, as a start may have lost that there were others. */
static void test_a_size_of_other_chunks_counts_for_nothing(void **state) {
    struct made made = scene(32);
    struct call call;

    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        bench_prepare(made.bench, MAKER, OP_SETTLE, &call);
        call.request.settle = (struct settle_request){.ino = made.ino,
                                                      .size = 10000,
                                                      .wrote = 1,
                                                      .open_flags = OPEN_WRITE,
                                                      .generation = made.generation + 1 - i};
        assert_int_equal(bench_run(made.bench, &call), 0);
        assert_int_equal(call.reply.settle.attributes.size, i == 0 ? 0 : 10000);
    }
    bench_free(made.bench);
}

/* Without a claim they are the file's when its maker has closed it. */
static void test_a_close_ends_it(void **state) {
    struct made made = scene(31);

    (void)state;
    assert_int_equal(settle(&made, true, 0, 0).data_state, DATA_CHUNKED);
    between_open(&made, MAKER, OPEN_WRITE);
    assert_int_equal(write_small(&made, made.generation).attributes.data_state, DATA_CHUNKED);
    bench_free(made.bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_who_asks_for_it_and_may_write_gets_chunks),
        cmocka_unit_test(test_a_small_write_gives_them_back),
        cmocka_unit_test(test_the_last_close_gives_them_back),
        cmocka_unit_test(test_a_new_size_gives_them_back),
        cmocka_unit_test(test_a_layout_gives_them_back),
        cmocka_unit_test(test_nobody_is_told_of_them),
        cmocka_unit_test(test_who_may_have_written_keeps_them),
        cmocka_unit_test(test_those_of_another_file_are_none),
        cmocka_unit_test(test_a_size_of_other_chunks_counts_for_nothing),
        cmocka_unit_test(test_a_close_ends_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
