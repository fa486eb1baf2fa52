/* The way of a small file to chunks: when its bytes have to be on disk there before the commit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "meta_bench.h"

static struct ino file_make(struct meta_bench *bench, const char *name) {
    struct call call;

    bench_advance(bench, NS_PER_MS); /* The clock may stand still during a call. */
    bench_prepare(bench, 0, OP_CREATE, &call);
    call.request.create.parent = INO_ROOT;
    call.request.create.name = (struct bytes){(const uint8_t *)name, 1};
    call.request.create.mode = 0644;
    call.request.create.open_flags = OPEN_WRITE;
    assert_int_equal(bench_run(bench, &call), 0);
    struct ino ino = call.reply.create.attributes.ino;
    bench_prepare(bench, 0, OP_INLINE_WRITE, &call);
    call.request.inline_write =
        (struct inline_write_request){ino, 0, {(const uint8_t *)"bytes", 5}, false};
    assert_int_equal(bench_run(bench, &call), 0);
    return ino;
}

static void sync_all(struct meta_bench *bench) {
    struct call call;

    bench_prepare(bench, 1, OP_SYNC, &call);
    assert_int_equal(bench_run(bench, &call), 0);
}

static void open_elsewhere(struct meta_bench *bench, struct ino ino, uint32_t open_flags) {
    struct call call;

    bench_prepare(bench, 1, OP_OPEN, &call);
    call.request.open.ino = ino;
    call.request.open.open_flags = open_flags;
    assert_int_equal(bench_run(bench, &call), 0);
}

static struct inline_convert_reply begin(struct meta_bench *bench, struct ino ino) {
    struct call call;

    bench_prepare(bench, 0, OP_INLINE_CONVERT, &call);
    call.request.inline_convert =
        (struct inline_convert_request){.ino = ino, .stage = INLINE_CONVERT_BEGIN};
    assert_int_equal(bench_run(bench, &call), 0);
    assert_int_equal(call.bulk_in.size, 5);
    bench_chunk_write(bench, &call.reply.inline_convert.capability, 5);
    return call.reply.inline_convert;
}

static int commit(struct meta_bench *bench, struct ino ino,
                  const struct inline_convert_reply *begun, bool synced) {
    struct call call;

    bench_prepare(bench, 0, OP_INLINE_CONVERT, &call);
    call.request.inline_convert = (struct inline_convert_request){
        .ino = ino,
        .stage = INLINE_CONVERT_COMMIT,
        .size = 5,
        .inline_epoch = begun->attributes.epoch,
        .generation = begun->capability.generation,
        .synced = synced,
    };
    return bench_run(bench, &call);
}

static bool must_sync(const struct inline_convert_reply *begun) {
    return (begun->capability.rights & RIGHT_SYNC_FIRST) != 0;
}

/* It must sync first, and the group takes nothing else. */
static void expect_promised(struct meta_bench *bench, struct ino ino) {
    struct inline_convert_reply begun = begin(bench, ino);

    assert_true(must_sync(&begun));
    assert_int_equal(commit(bench, ino, &begun, false), -ERR_CONFLICT);
    begun = begin(bench, ino);
    assert_int_equal(commit(bench, ino, &begun, true), 0);
}

static void test_new_file(void **state) {
    struct meta_bench *bench = bench_new(&(struct bench_options){.seed = 1});
    struct inline_convert_reply begun;

    (void)state;
    sync_all(bench);
    struct ino ino = file_make(bench, "a");
    begun = begin(bench, ino);
    assert_false(must_sync(&begun));
    assert_int_equal(commit(bench, ino, &begun, false), 0);
    bench_free(bench);
}

static void test_synced(void **state) {
    struct meta_bench *bench = bench_new(&(struct bench_options){.seed = 2});
    struct inline_convert_reply begun;

    (void)state;
    struct ino before = file_make(bench, "a");
    struct ino between = file_make(bench, "b");
    begun = begin(bench, between);
    assert_false(must_sync(&begun));
    sync_all(bench);
    assert_int_equal(commit(bench, between, &begun, false), -ERR_CONFLICT);
    expect_promised(bench, between);
    expect_promised(bench, before);
    bench_free(bench);
}

static void test_started_again(void **state) {
    struct meta_bench *bench = bench_new(&(struct bench_options){.seed = 3});
    struct call call;

    (void)state;
    struct ino ino = file_make(bench, "a");
    bench_restart(bench, false);
    bench_prepare(bench, 0, OP_REOPEN, &call);
    call.request.reopen =
        (struct reopen_request){.ino = ino, .open_flags = OPEN_WRITE, .write_count = 1};
    assert_int_equal(bench_run(bench, &call), 0);
    for (uint32_t i = 0; i < BENCH_SESSIONS; i++) {
        bench_attach(bench, i);
    }
    expect_promised(bench, ino);
    bench_free(bench);
}

static void test_open_elsewhere(void **state) {
    struct meta_bench *bench = bench_new(&(struct bench_options){.seed = 4});

    (void)state;
    struct ino ino = file_make(bench, "a");
    open_elsewhere(bench, ino, OPEN_READ);
    expect_promised(bench, ino);
    bench_free(bench);
}

/* What a second writer has left, even if it is gone, its maker would not hear the loss of. */
static void test_written_elsewhere(void **state) {
    struct meta_bench *bench = bench_new(&(struct bench_options){.seed = 5});
    struct call call;

    (void)state;
    struct ino ino = file_make(bench, "a");
    open_elsewhere(bench, ino, OPEN_WRITE);
    bench_prepare(bench, 1, OP_SETTLE, &call);
    call.request.settle = (struct settle_request){.ino = ino, .close = 1, .open_flags = OPEN_WRITE};
    assert_int_equal(bench_run(bench, &call), 0);
    expect_promised(bench, ino);
    bench_free(bench);
}

/* Its rows have been on disk for long. */
static void test_old_file(void **state) {
    struct meta_bench *bench = bench_new(&(struct bench_options){.seed = 6});

    (void)state;
    struct ino ino = file_make(bench, "a");
    bench_advance(bench, NS_PER_S);
    expect_promised(bench, ino);
    bench_free(bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_new_file),          cmocka_unit_test(test_synced),
        cmocka_unit_test(test_started_again),     cmocka_unit_test(test_open_elsewhere),
        cmocka_unit_test(test_written_elsewhere), cmocka_unit_test(test_old_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
