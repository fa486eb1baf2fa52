/* How many blocks a file has: what writers tell, when the OSTs are asked, and what is told until
 * then. */
#include "unit.h"
#include "meta_bench.h"
#include "meta/usage.h"
#include "wire/wire_blocks.h"

enum { FIRST = 1, SECOND = 2, SIZE = 100000, SIZE_BLOCKS = 25, SOON_S = 5 };

struct file {
    struct meta_bench *bench;
    struct ino ino;
    struct bench_chunks *chunks;
    uint32_t truncate_seq;
};

static void file_open(struct file *file, uint32_t session) {
    struct call call;

    bench_prepare(file->bench, session, OP_OPEN, &call);
    call.request.open = (struct open_request){.ino = file->ino, .open_flags = OPEN_WRITE};
    assert_int_equal(bench_run(file->bench, &call), 0);
}

/* A file in chunks without any, open by the first session. */
static struct file file_make(uint64_t seed) {
    const struct bench_options options = {.seed = seed};
    struct file file = {.bench = bench_new(&options)};
    struct call call;

    bench_prepare(file.bench, FIRST, OP_CREATE, &call);
    call.request.create.parent = INO_ROOT;
    call.request.create.name = (struct bytes){(const uint8_t *)"file", 4};
    call.request.create.mode = 0644;
    call.request.create.open_flags = OPEN_WRITE;
    assert_int_equal(bench_run(file.bench, &call), 0);
    file.ino = call.reply.create.attributes.ino;
    bench_prepare(file.bench, FIRST, OP_INLINE_CONVERT, &call);
    call.request.inline_convert =
        (struct inline_convert_request){.ino = file.ino, .stage = INLINE_CONVERT_BEGIN};
    assert_int_equal(bench_run(file.bench, &call), 0);
    bench_chunk_write(file.bench, &call.reply.inline_convert.capability, SIZE);
    file.chunks = bench_chunks_find(file.bench, file.ino.value,
                                    call.reply.inline_convert.capability.generation);
    return file;
}

/* Tells so many blocks, of writes of that sequence. */
static void file_tell(struct file *file, uint32_t session, int64_t blocks, uint32_t seq) {
    struct call call;

    bench_prepare(file->bench, session, OP_SETTLE, &call);
    call.request.settle = (struct settle_request){.ino = file->ino,
                                                  .truncate_seq = seq,
                                                  .size = SIZE,
                                                  .open_flags = OPEN_WRITE,
                                                  .wrote = 1,
                                                  .blocks = blocks,
                                                  .blocks_seq = seq,
                                                  .blocks_told = BLOCKS_SUM};
    assert_int_equal(bench_run(file->bench, &call), 0);
}

static void file_close(struct file *file, uint32_t session, enum blocks_told told, bool wrote) {
    struct call call;

    bench_prepare(file->bench, session, OP_SETTLE, &call);
    call.request.settle = (struct settle_request){.ino = file->ino,
                                                  .truncate_seq = file->truncate_seq,
                                                  .close = 1,
                                                  .open_flags = OPEN_WRITE,
                                                  .wrote = wrote,
                                                  .blocks_told = (uint8_t)told};
    assert_int_equal(bench_run(file->bench, &call), 0);
}

static void file_cut(struct file *file, uint64_t size) {
    struct call call;

    bench_prepare(file->bench, 0, OP_SETATTR, &call);
    call.request.setattr =
        (struct setattr_request){.ino = file->ino, .valid = SETATTR_SIZE, .size = size};
    assert_int_equal(bench_run(file->bench, &call), 0);
    file->truncate_seq = call.reply.setattr.attributes.truncate_seq;
}

/* Blocks as stat tells them. */
static uint64_t file_blocks(struct file *file) {
    struct call call;

    bench_prepare(file->bench, 0, OP_GETATTR, &call);
    call.request.getattr.ino = file->ino;
    assert_int_equal(bench_run(file->bench, &call), 0);
    assert_int_equal(call.reply.getattr.attributes.bytes_used % BLOCK_BYTES, 0);
    assert_int_equal(call.reply.getattr.attributes.rdev, 0);
    return call.reply.getattr.attributes.bytes_used / BLOCK_BYTES;
}

static uint64_t counted(struct file *file) {
    struct group_stats stats;

    bench_advance(file->bench, SOON_S * NS_PER_S);
    bench_stats(file->bench, &stats);
    return stats.totals.counted;
}

/* Sums of any number of writers, without a question. */
static void test_sums(void **state) {
    struct file file = file_make(1);

    (void)state;
    assert_int_equal(file_blocks(&file), 0);
    file_open(&file, SECOND);
    file_tell(&file, FIRST, 20, 0);
    file_tell(&file, SECOND, 7, 0);
    assert_int_equal(file_blocks(&file), 27);
    file_tell(&file, FIRST, -2, 0);
    file_close(&file, FIRST, BLOCKS_SUM, false);
    file_close(&file, SECOND, BLOCKS_SUM, false);
    assert_int_equal(counted(&file), 0);
    assert_int_equal(file_blocks(&file), 25);
    assert_int_equal(file.bench->osts[0].length_count, 0);
    bench_free(file.bench);
}

/* Behind a cut to 0 the writes of its sequence are all that there is. */
static void test_cut_to_nothing(void **state) {
    struct file file = file_make(2);

    (void)state;
    file_tell(&file, FIRST, 20, 0);
    file_cut(&file, 0);
    assert_int_equal(file_blocks(&file), 0);
    file_tell(&file, FIRST, 5, 0); /* of before it */
    assert_int_equal(file_blocks(&file), 0);
    file_tell(&file, FIRST, 3, 1);
    file_close(&file, FIRST, BLOCKS_SUM, false);
    assert_int_equal(file_blocks(&file), 3);
    assert_int_equal(counted(&file), 0);
    bench_free(file.bench);
}

/* A cut elsewhere: at most what the size allows; the OSTs are asked when it is done and nobody
 * writes, and stat asks nobody. */
static void test_cut(void **state) {
    struct file file = file_make(3);

    (void)state;
    file_tell(&file, FIRST, SIZE_BLOCKS, 0);
    file.chunks->blocks = 2;
    file_cut(&file, 3 * BLOCK_BYTES);
    assert_int_equal(file_blocks(&file), 3);
    assert_int_equal(counted(&file), 0); /* as somebody writes */
    assert_int_equal(file_blocks(&file), 3);
    assert_int_equal(file.bench->osts[0].length_count, 0);
    file_close(&file, FIRST, BLOCKS_SUM, false);
    assert_int_equal(counted(&file), 1);
    assert_int_equal(file_blocks(&file), 2);
    file.chunks->blocks = 1;
    file_cut(&file, 100); /* and nobody writes */
    assert_int_equal(counted(&file), 2);
    assert_int_equal(file_blocks(&file), 1);
    file_cut(&file, SIZE); /* nothing is cut */
    assert_int_equal(counted(&file), 2);
    assert_int_equal(file_blocks(&file), 1);
    bench_free(file.bench);
}

/* What is written behind a cut may be where the row counts blocks that are none any more: no more
 * is told than the size has. */
static void test_cut_and_written(void **state) {
    struct file file = file_make(3);

    (void)state;
    file_tell(&file, FIRST, SIZE_BLOCKS, 0);
    file_cut(&file, (SIZE_BLOCKS - 1) * BLOCK_BYTES);
    file_tell(&file, FIRST, 2, file.truncate_seq);
    assert_int_equal(file_blocks(&file), SIZE_BLOCKS);
    bench_free(file.bench);
}

/* Who does not know, or tells nothing, has the OSTs asked; with the last close, once. */
static void test_unsure_writers(void **state) {
    static const struct {
        enum blocks_told told;
        bool wrote;
        uint64_t questions;
    } rows[] = {{BLOCKS_SUM, true, 0}, {BLOCKS_UNSURE, false, 1}, {0, false, 0}, {0, true, 1}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct file file = file_make(10 + i);

        file_tell(&file, FIRST, 9, 0);
        file_open(&file, SECOND);
        file.chunks->blocks = 11;
        file_close(&file, FIRST, rows[i].told, rows[i].wrote);
        assert_int_equal(counted(&file), 0);
        assert_int_equal(file_blocks(&file), 9);
        file_close(&file, SECOND, BLOCKS_SUM, false);
        assert_int_equal(counted(&file), rows[i].questions);
        assert_int_equal(file_blocks(&file), rows[i].questions > 0 ? 11 : 9);
        bench_free(file.bench);
    }
}

static void session_evict(struct file *file, uint32_t session) {
    bench_evict(file->bench, file->bench->sessions[session].id);
}

/* What an evicted session has not told is found by the question for the size; or later, when nobody
 * else writes. */
static void test_evictions(void **state) {
    (void)state;
    for (int is_shared = 0; is_shared < 2; is_shared++) {
        struct file file = file_make(20 + (uint64_t)is_shared);

        file_tell(&file, FIRST, 4, 0);
        file.chunks->blocks = 6;
        if (is_shared) {
            file_open(&file, SECOND);
        }
        session_evict(&file, FIRST);
        assert_int_equal(file_blocks(&file), is_shared ? 4 : 6);
        if (is_shared) {
            file_close(&file, SECOND, BLOCKS_SUM, false);
        }
        assert_int_equal(counted(&file), is_shared);
        assert_int_equal(file_blocks(&file), 6);
        bench_free(file.bench);
    }
}

/* A start may have lost what was told before: who had it open then has the OSTs asked. */
static void test_restart(void **state) {
    struct file file = file_make(30);
    struct call call;

    (void)state;
    file_tell(&file, FIRST, 4, 0);
    file.chunks->blocks = 8;
    bench_restart(file.bench, false);
    bench_prepare(file.bench, FIRST, OP_REOPEN, &call);
    call.header.term = 0;
    call.request.reopen = (struct reopen_request){
        .ino = file.ino, .open_flags = OPEN_READ | OPEN_WRITE, .write_count = 1};
    assert_int_equal(bench_run(file.bench, &call), 0);
    for (uint32_t i = 0; i < BENCH_SESSIONS; i++) {
        bench_attach(file.bench, i);
    }
    file_tell(&file, FIRST, 1, 0);
    assert_int_equal(file_blocks(&file), 5);
    file_close(&file, FIRST, BLOCKS_SUM, false);
    assert_int_equal(counted(&file), 1);
    assert_int_equal(file_blocks(&file), 8);
    bench_free(file.bench);
}

/* Nobody waits for a question that an OST does not answer; who writes meanwhile has it asked anew,
 * and who wants the size then makes it his. */
static void test_slow_answers(void **state) {
    struct file file = file_make(40);
    struct meta_bench *bench = file.bench;

    (void)state;
    file_tell(&file, FIRST, 4, 0);
    bench->osts[0].is_dead = true;
    file.chunks->blocks = 5;
    file_close(&file, FIRST, BLOCKS_UNSURE, false);
    assert_int_equal(counted(&file), 0);
    assert_int_equal(file_blocks(&file), 4);
    file_open(&file, SECOND);
    file_tell(&file, SECOND, 3, 0);
    bench_ost_returns(&bench->osts[0]);
    bench_advance(bench, 5 * NS_PER_S);
    assert_int_equal(file_blocks(&file), 7); /* somebody writes */
    file.chunks->blocks = 6;
    file_close(&file, SECOND, BLOCKS_SUM, false);
    bench_advance(bench, 5 * NS_PER_S);
    assert_int_equal(file_blocks(&file), 6);
    bench->osts[0].is_dead = true;
    file_open(&file, FIRST);
    file_close(&file, FIRST, BLOCKS_UNSURE, false);
    file_open(&file, SECOND);
    assert_int_equal(bench_ended(bench, bench->sessions[SECOND].id), 0);
    bench_advance(bench, SOON_S * NS_PER_S);
    file.chunks->blocks = 9;
    bench_ost_returns(&bench->osts[0]);
    while (bench_is_known(bench, bench->sessions[SECOND].id)) {
        bench_turn(bench);
    }
    assert_true(bench_is_fenced(&bench->osts[0], bench->sessions[SECOND].id));
    assert_int_equal(file_blocks(&file), 9);
    bench_free(bench);
}

/* Rows by hand: what a version before has left, sums that make no sense, the most there can be. */
static void test_rows(void **state) {
    struct inode_row row = {.data_state = DATA_CHUNKED, .size = SIZE};
    struct settle_request tell = {.blocks = -1, .blocks_told = BLOCKS_SUM};
    const uint64_t most = (UINT64_C(1) << 48) - 1;

    (void)state;
    assert_int_equal(usage_bytes(&row), SIZE_BLOCKS * BLOCK_BYTES);
    usage_set(&row, 0);
    assert_int_equal(usage_bytes(&row), 0);
    usage_settle(&row, &tell); /* fewer than none */
    assert_false(row.flags & INODE_COUNTED);
    assert_int_equal(inode_blocks(&row), 0);
    usage_set(&row, most + 5);
    assert_int_equal(inode_blocks(&row), most);
    tell.blocks = INT64_MAX;
    usage_settle(&row, &tell);
    assert_int_equal(inode_blocks(&row), most);
    assert_false(row.flags & INODE_COUNTED);
    tell.blocks = INT64_MIN;
    usage_settle(&row, &tell);
    assert_int_equal(inode_blocks(&row), most);
    usage_cut(&row, 5000, false);
    assert_int_equal(inode_blocks(&row), 2);
    row = (struct inode_row){.data_state = DATA_INLINE, .size = 513};
    assert_int_equal(usage_bytes(&row), 1024);
    row.size = FILE_BYTES_MAX;
    assert_int_equal(usage_bytes(&row), INLINE_BYTES_MAX);
    usage_settle(&row, &tell);
    assert_int_equal(row.blocks_low, 0);
    row.data_state = DATA_EMPTY;
    assert_int_equal(usage_bytes(&row), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_cut_to_nothing),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_cut_and_written),
        cmocka_unit_test(test_unsure_writers),
        cmocka_unit_test(test_evictions),
        cmocka_unit_test(test_restart),
        cmocka_unit_test(test_slow_answers),
        cmocka_unit_test(test_rows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
