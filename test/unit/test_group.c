/* The group against the model: thousands of random operations by several sessions, with reads that
 * have to wait, duplicates, restarts, evictions and files that are removed while open. Every answer
 * and, in the end, every row must be what the model says. */
#include "unit.h"
#include "play.h"
#include <string.h>

enum { SEEDS = 30, STEPS = 700 };

static void do_restart(struct play *play) {
    uint64_t how = play_below(play, 3);
    struct call call;

    play_begin(play, OP_SYNC);
    if (how == 0) {
        bench_restart(play->bench, false);
    } else if (how == 1) {
        assert_int_equal(play_run(play), 0);
        bench_restart(play->bench, true);
    } else {
        bench_stop_and_start(play->bench);
    }
    for (uint32_t i = 0; i < BENCH_SESSIONS; i++) {
        bench_prepare(play->bench, i, OP_GETATTR, &call);
        call.request.getattr.ino = INO_ROOT;
        assert_int_equal(bench_run(play->bench, &call), -ERR_STALE_TERM);
    }
    for (uint32_t i = 0; i < BENCH_SESSIONS; i++) {
        if (play_below(play, 6) == 0) {
            play_evict(play, i);
        } else {
            play_present(play, i, NULL);
            bench_attach(play->bench, i);
        }
    }
}

static void do_evict(struct play *play) {
    play_evict(play, (uint32_t)play_below(play, BENCH_SESSIONS));
}

static const struct {
    void (*run)(struct play *play);
    uint32_t weight;
} operations[] = {
    {do_lookup, 8},      {do_getattr, 6},        {do_create, 14}, {do_mkdir, 9},   {do_mknod, 4},
    {do_symlink, 3},     {do_readlink, 2},       {do_link, 5},    {do_unlink, 9},  {do_rmdir, 5},
    {do_rename, 14},     {do_access, 3},         {do_open, 8},    {do_close, 10},  {do_setattr, 12},
    {do_write, 16},      {do_readdir, 5},        {do_layout, 2},  {do_restart, 1}, {do_evict, 1},
    {do_inline_read, 4}, {do_create_unnamed, 6},
};

static void one(struct play *play) {
    uint32_t sum = 0;

    for (size_t i = 0; i < ARRAY_SIZE(operations); i++) {
        sum += operations[i].weight;
    }
    uint64_t drawn = play_below(play, sum);
    size_t i = 0;
    while (drawn >= operations[i].weight) {
        drawn -= operations[i].weight;
        i++;
    }
    operations[i].run(play);
}

/* Everything that the model has, and not one inode more. */
static void all_check(struct play *play) {
    struct group_stats stats;

    for (struct model_inode *inode = model_first(play->fs); inode; inode = inode->next) {
        bench_prepare(play->bench, 0, OP_GETATTR, &play->call);
        play->call.request.getattr.ino = play_ino_of(inode);
        play_expect(play, play_run(play), 0);
        play_attributes_check(play, &play->call.reply.getattr.attributes, inode);
        if (inode->mode >> 12 == 4) {
            play_list(play, inode, 1000, false);
        }
    }
    bench_stats(play->bench, &stats);
    assert_int_equal(stats.inode_count, model_inode_count(play->fs));
}

/* Rows of that kind as fsck is told of them. */
static size_t rows_count(struct play *play, uint32_t what) {
    uint8_t cursor[KV_KEY_BYTES];
    size_t cursor_bytes = 0;
    size_t count = 0;

    do {
        bench_prepare(play->bench, 0, OP_FSCK_LIST, &play->call);
        play->call.header.session.value = 0;
        play->call.request.fsck_list =
            (struct fsck_list_request){what, {cursor, cursor_bytes}, 2000};
        play_expect(play, play_run(play), 0);
        for (size_t at = 0; at < play->call.bulk_in.size; count++) {
            const uint8_t *row = play->call.bulk_in.data + at;

            cursor_bytes = sizeof cursor;
            memcpy(cursor, row + 2, sizeof cursor);
            at += 2 + KV_KEY_BYTES + load_le16(row);
        }
    } while (!play->call.reply.fsck_list.end);
    return count;
}

/* When all is closed and quiet nothing is left of what was removed. */
static void rest_check(struct play *play) {
    size_t directories = 0;
    size_t entries = 0;

    for (uint32_t i = 0; i < BENCH_SESSIONS; i++) {
        play_evict(play, i);
    }
    bench_advance(play->bench, 30 * NS_PER_S);
    for (struct model_inode *inode = model_first(play->fs); inode; inode = inode->next) {
        directories += inode->mode >> 12 == 4;
        entries += inode->entry_count;
    }
    assert_int_equal(rows_count(play, FSCK_INODES), model_inode_count(play->fs));
    assert_int_equal(rows_count(play, FSCK_PARTITIONS), directories);
    assert_true(rows_count(play, FSCK_DENTRIES) >= entries);
    assert_int_equal(rows_count(play, FSCK_ORPHANS), 0);
    assert_int_equal(rows_count(play, FSCK_QUEUE), 0);
    for (uint32_t i = 0; i < play->bench->chunks_count; i++) {
        const struct bench_chunks *chunks = &play->bench->chunks[i];
        const struct model_inode *inode = model_find(play->fs, chunks->ino);

        if (!inode && !chunks->deleted) {
            fail_msg("seed %llu: chunks of %llx are left", (unsigned long long)play->bench->seed,
                     (unsigned long long)chunks->ino);
        }
    }
}

/* Answers how often who had made a file gave its chunks back. */
static uint64_t play_seed(const struct bench_options *options) {
    struct play play;

    play_new(&play, options);
    for (play.step = 0; play.step < STEPS; play.step++) {
        one(&play);
    }
    all_check(&play);
    rest_check(&play);
    all_check(&play);
    assert_true(play.succeeded > STEPS / 4);
    assert_true(play.parents_told > STEPS / 20);
    uint64_t given_back = play.given_back;
    play_free(&play);
    return given_back;
}

static void test_model(void **state) {
    uint64_t given_back = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        const struct bench_options options = {
            .seed = seed,
            .cold_per_mille = seed % 3 == 0 ? 0 : 200,
            .hash_bits = seed % 2 ? 2 : 0,
        };
        given_back += play_seed(&options);
    }
    assert_true(given_back > SEEDS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
