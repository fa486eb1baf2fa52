/* The way of a small file to chunks: when its bytes have to be on disk there before the commit, and
 * what becomes of them when nobody commits. */
#include "unit.h"
#include "meta_bench.h"
#include "meta/rows.h"
#include <string.h>

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
        (struct inline_write_request){.ino = ino, .data = {(const uint8_t *)"bytes", 5}};
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

static int commit_by(struct meta_bench *bench, uint32_t client,
                     const struct inline_convert_reply *begun, bool synced) {
    struct call call;

    bench_prepare(bench, client, OP_INLINE_CONVERT, &call);
    call.request.inline_convert = (struct inline_convert_request){
        .ino = begun->capability.ino,
        .stage = INLINE_CONVERT_COMMIT,
        .size = 5,
        .inline_epoch = begun->attributes.epoch,
        .generation = begun->capability.generation,
        .synced = synced,
    };
    return bench_run(bench, &call);
}

static int commit(struct meta_bench *bench, const struct inline_convert_reply *begun, bool synced) {
    return commit_by(bench, 0, begun, synced);
}

static bool must_sync(const struct inline_convert_reply *begun) {
    return (begun->capability.rights & RIGHT_SYNC_FIRST) != 0;
}

/* It must sync first, and the group takes nothing else. */
static void expect_promised(struct meta_bench *bench, struct ino ino) {
    struct inline_convert_reply begun = begin(bench, ino);

    assert_true(must_sync(&begun));
    assert_int_equal(commit(bench, &begun, false), -ERR_CONFLICT);
    begun = begin(bench, ino);
    assert_int_equal(commit(bench, &begun, true), 0);
}

static void test_new_file(void **state) {
    struct meta_bench *bench = bench_new(&(struct bench_options){.seed = 1});
    struct inline_convert_reply begun;

    (void)state;
    sync_all(bench);
    struct ino ino = file_make(bench, "a");
    begun = begin(bench, ino);
    assert_false(must_sync(&begun));
    assert_int_equal(commit(bench, &begun, false), 0);
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
    assert_int_equal(commit(bench, &begun, false), -ERR_CONFLICT);
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

static void evict(struct meta_bench *bench, uint32_t session) {
    bench_evict(bench, bench->sessions[session].id);
}

static void unlink_name(struct meta_bench *bench, const char *name) {
    struct call call;

    bench_prepare(bench, 1, OP_UNLINK, &call);
    call.request.unlink.parent = INO_ROOT;
    call.request.unlink.name = (struct bytes){(const uint8_t *)name, 1};
    assert_int_equal(bench_run(bench, &call), 0);
}

/* The first session is dead; the others come back. */
static void restart(struct meta_bench *bench, bool power) {
    bench_restart(bench, power);
    for (uint32_t i = 1; i < BENCH_SESSIONS; i++) {
        bench_attach(bench, i);
    }
}

static uint32_t row_count(struct meta_bench *bench, uint32_t what) {
    struct call call;
    uint32_t count = 0;
    uint16_t size;

    bench_prepare(bench, 1, OP_FSCK_LIST, &call);
    call.request.fsck_list =
        (struct fsck_list_request){.what = what, .bytes_max = sizeof bench->bulk};
    assert_int_equal(bench_run(bench, &call), 0);
    assert_true(call.reply.fsck_list.end);
    for (size_t at = 0; at < call.bulk_in.size; at += sizeof size + KV_KEY_BYTES + size) {
        memcpy(&size, bench->bulk + at, sizeof size);
        count++;
    }
    return count;
}

static bool is_deleted(struct meta_bench *bench, const struct inline_convert_reply *begun) {
    return bench_chunks_find(bench, begun->capability.ino.value, begun->capability.generation)
        ->deleted;
}

static void expect_no_rows(struct meta_bench *bench) {
    bench_advance(bench, 10 * NS_PER_S);
    assert_int_equal(row_count(bench, FSCK_MOVES), 0);
    assert_int_equal(row_count(bench, FSCK_QUEUE), 0);
}

/* Its client dies before the commit: what it wrote goes, whatever befalls the target, and also when
 * the file goes before anybody has looked. */
static void test_unfinished(void **state) {
    (void)state;
    for (uint64_t round = 0; round < 8; round++) {
        bool power = round & 1;
        bool unlinked = round & 2;
        bool again = round & 4;
        struct meta_bench *bench = bench_new(&(struct bench_options){.seed = 20 + round});
        struct ino ino = file_make(bench, "a");
        struct inline_convert_reply begun = begin(bench, ino);

        assert_int_equal(row_count(bench, FSCK_MOVES), 1);
        if (power) {
            sync_all(bench);
        }
        restart(bench, power);
        assert_int_equal(row_count(bench, FSCK_MOVES), 1);
        if (unlinked) {
            unlink_name(bench, "a");
        }
        if (again) {
            sync_all(bench);
            restart(bench, power);
        }
        assert_false(is_deleted(bench, &begun));
        evict(bench, 0);
        expect_no_rows(bench);
        assert_true(is_deleted(bench, &begun));
        bench_free(bench);
    }
}

/* The last close for writing ends it too. */
static void test_given_up(void **state) {
    struct meta_bench *bench = bench_new(&(struct bench_options){.seed = 30});
    struct call call;

    (void)state;
    struct ino ino = file_make(bench, "a");
    struct inline_convert_reply begun = begin(bench, ino);
    bench_prepare(bench, 0, OP_SETTLE, &call);
    call.request.settle = (struct settle_request){.ino = ino, .close = 1, .open_flags = OPEN_WRITE};
    assert_int_equal(bench_run(bench, &call), 0);
    expect_no_rows(bench);
    assert_true(is_deleted(bench, &begun));
    bench_free(bench);
}

/* Power loss has taken its record: nobody may commit it, and the start has noted its generation, so
 * that what was written can be told from what is left of a file. */
static void test_begin_is_lost(void **state) {
    struct meta_bench *bench = bench_new(&(struct bench_options){.seed = 31});
    uint8_t row_copy[sizeof(struct lost_row)];
    struct inline_convert_reply begun;
    const struct lost_row *row;
    struct call call;

    (void)state;
    struct ino ino = file_make(bench, "a");
    begun = begin(bench, ino);
    assert_int_equal(commit(bench, &begun, true), 0);
    struct ino other = file_make(bench, "b");
    sync_all(bench);
    begun = begin(bench, other);
    bench_restart(bench, true);
    bench_prepare(bench, 0, OP_REOPEN, &call);
    call.request.reopen =
        (struct reopen_request){.ino = other, .open_flags = OPEN_WRITE, .write_count = 1};
    assert_int_equal(bench_run(bench, &call), 0);
    for (uint32_t i = 0; i < BENCH_SESSIONS; i++) {
        bench_attach(bench, i);
    }
    assert_int_equal(row_count(bench, FSCK_MOVES), 0);
    assert_int_equal(row_count(bench, FSCK_LOST), 1);
    memcpy(row_copy, bench->bulk + sizeof(uint16_t) + KV_KEY_BYTES, sizeof row_copy);
    assert_int_equal(lost_row_check((struct bytes){row_copy, sizeof row_copy}, &row), 0);
    assert_true(lost_row_has(row, other, begun.capability.generation));
    assert_false(lost_row_has(row, other, begun.capability.generation - 1));

    assert_int_equal(commit(bench, &begun, true), -ERR_CONFLICT);
    expect_no_rows(bench);
    assert_true(is_deleted(bench, &begun));
    begun = begin(bench, other);
    assert_false(lost_row_has(row, other, begun.capability.generation));
    assert_int_equal(commit(bench, &begun, true), 0);
    bench_free(bench);
}

/* Whoever names another session's move is refused and ends nothing. */
static void test_move_of_another(void **state) {
    struct meta_bench *bench = bench_new(&(struct bench_options){.seed = 34});

    (void)state;
    struct ino ino = file_make(bench, "a");
    open_elsewhere(bench, ino, OPEN_WRITE);
    struct inline_convert_reply begun = begin(bench, ino);
    assert_int_equal(commit_by(bench, 1, &begun, true), -ERR_CONFLICT);
    assert_int_equal(row_count(bench, FSCK_MOVES), 1);
    assert_int_equal(row_count(bench, FSCK_QUEUE), 0);
    assert_int_equal(commit(bench, &begun, true), 0);
    expect_no_rows(bench);
    assert_false(is_deleted(bench, &begun));
    bench_free(bench);
}

/* Who lived through a kill goes on where it was. */
static void test_survived_a_kill(void **state) {
    struct meta_bench *bench = bench_new(&(struct bench_options){.seed = 32});
    struct call call;

    (void)state;
    struct ino ino = file_make(bench, "a");
    struct inline_convert_reply begun = begin(bench, ino);
    bench_restart(bench, false);
    bench_prepare(bench, 0, OP_REOPEN, &call);
    call.request.reopen =
        (struct reopen_request){.ino = ino, .open_flags = OPEN_WRITE, .write_count = 1};
    assert_int_equal(bench_run(bench, &call), 0);
    for (uint32_t i = 0; i < BENCH_SESSIONS; i++) {
        bench_attach(bench, i);
    }
    assert_int_equal(commit(bench, &begun, true), 0);
    expect_no_rows(bench);
    assert_false(is_deleted(bench, &begun));
    bench_free(bench);
}

/* Those that were begun and left are few: the oldest makes way, and cannot be committed. The rest
 * are ended by one record. */
static void test_begun_too_often(void **state) {
    struct meta_bench *bench = bench_new(&(struct bench_options){.seed = 33});
    struct inline_convert_reply begun[7];

    (void)state;
    struct ino ino = file_make(bench, "a");
    for (size_t i = 0; i < ARRAY_SIZE(begun); i++) {
        begun[i] = begin(bench, ino);
    }
    assert_int_equal(row_count(bench, FSCK_MOVES), 4);
    assert_int_equal(commit(bench, &begun[0], true), -ERR_CONFLICT);
    assert_int_equal(commit(bench, &begun[4], true), 0);
    evict(bench, 0);
    expect_no_rows(bench);
    for (size_t i = 0; i < ARRAY_SIZE(begun); i++) {
        assert_int_equal(is_deleted(bench, &begun[i]), i != 4);
    }
    bench_free(bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_new_file),          cmocka_unit_test(test_synced),
        cmocka_unit_test(test_started_again),     cmocka_unit_test(test_open_elsewhere),
        cmocka_unit_test(test_written_elsewhere), cmocka_unit_test(test_old_file),
        cmocka_unit_test(test_unfinished),        cmocka_unit_test(test_given_up),
        cmocka_unit_test(test_begin_is_lost),     cmocka_unit_test(test_survived_a_kill),
        cmocka_unit_test(test_begun_too_often),   cmocka_unit_test(test_move_of_another),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
