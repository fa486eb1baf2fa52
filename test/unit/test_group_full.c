/* A group whose base cannot take a checkpoint: who is told, who waits, and that all goes on when
 * there is room again. */
#include "unit.h"
#include "base/endian.h"
#include "meta/half_format.h"
#include "meta/look.h"
#include "meta/meta_format.h"
#include "meta/move.h"
#include "half_of_make.h"
#include "meta_bench.h"

enum { SETTLES_MAX = 5000, SETTLE_WITHIN_S = 10, PROMISED = 20, MADE_MAX = 2000 };

struct files {
    struct meta_bench *bench;
    struct ino ino;
    uint8_t name[4];
};

static void name_make(struct files *files, uint32_t number) {
    for (size_t i = 0; i < sizeof files->name; i++, number /= 10) {
        files->name[i] = (uint8_t)('0' + number % 10);
    }
}

static int create(struct files *files, uint32_t number, struct call *call) {
    name_make(files, number);
    bench_prepare(files->bench, 0, OP_CREATE, call);
    call->request.create.parent = INO_ROOT;
    call->request.create.name = (struct bytes){files->name, sizeof files->name};
    call->request.create.mode = 0644;
    call->request.create.open_flags = OPEN_WRITE;
    return bench_run(files->bench, call);
}

static void settle_prepare(struct files *files, uint32_t session, bool closes, struct call *call) {
    bench_prepare(files->bench, session, OP_SETTLE, call);
    call->request.settle = (struct settle_request){
        .ino = files->ino, .wrote = !closes, .close = closes, .open_flags = OPEN_WRITE};
}

static int settle(struct files *files, bool closes) {
    struct call call;

    settle_prepare(files, 0, closes, &call);
    call.header.floor = call.header.sequence;
    return bench_run(files->bench, &call);
}

/* Each sync point takes a block of the log. */
static void sync_all(struct files *files) {
    struct call call;

    bench_prepare(files->bench, 0, OP_SYNC, &call);
    assert_int_equal(bench_run(files->bench, &call), 0);
}

static void files_open(struct files *files, uint64_t seed) {
    const struct bench_options options = {.seed = seed};
    struct call call;

    *files = (struct files){.bench = bench_new(&options)};
    assert_int_equal(create(files, 0, &call), 0);
    files->ino = call.reply.create.attributes.ino;
}

/* Until what closes and syncs has no reserve left either. */
static void fill(struct files *files) {
    int r = 0;

    kv_mem_store_full(files->bench->store, true);
    for (int i = 0; r == 0 && i < SETTLES_MAX; i++) {
        r = settle(files, false);
        sync_all(files);
    }
    assert_int_equal(r, -ERR_NO_SPACE);
}

static void empty_and_close(struct files *files) {
    int r = -ERR_NO_SPACE;

    kv_mem_store_full(files->bench->store, false);
    for (int i = 0; r == -ERR_NO_SPACE && i < SETTLE_WITHIN_S; i++) {
        bench_advance(files->bench, NS_PER_S);
        r = settle(files, true);
    }
    assert_int_equal(r, 0);
}

static void test_settle_is_told(void **state) {
    struct files files;
    struct call last, copy;
    uint64_t begin_ns;

    (void)state;
    files_open(&files, 41);
    fill(&files);
    assert_int_equal(create(&files, 1, &last), -ERR_NO_SPACE);
    settle_prepare(&files, 0, true, &last);
    copy = last;
    begin_ns = env_now_ns(memory_env_env(files.bench->world));
    assert_int_equal(bench_run(files.bench, &last), -ERR_NO_SPACE);
    assert_true(env_now_ns(memory_env_env(files.bench->world)) - begin_ns < 100 * NS_PER_MS);
    kv_mem_store_full(files.bench->store, false);
    bench_advance(files.bench, SETTLE_WITHIN_S * NS_PER_S);
    /* Another copy of what was refused must not close the file a second time. */
    assert_int_equal(bench_run(files.bench, &copy), -ERR_NO_SPACE);
    assert_int_equal(settle(&files, true), 0);
    assert_int_equal(settle(&files, true), -ERR_BAD_HANDLE);
    bench_free(files.bench);
}

/* A group that is killed while it is full knows its opens again; so does one that is stopped. */
static void test_full_group_starts_again(void **state) {
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        struct files files;
        struct call call;

        files_open(&files, 42 + (uint64_t)kind);
        fill(&files);
        if (kind == 2) {
            bench_stop_and_start(files.bench);
        } else {
            bench_restart(files.bench, kind == 1);
        }
        bench_prepare(files.bench, 0, OP_REOPEN, &call);
        call.header.term = 0;
        call.request.reopen =
            (struct reopen_request){.ino = files.ino, .open_flags = OPEN_WRITE, .write_count = 1};
        assert_int_equal(bench_run(files.bench, &call), 0);
        for (uint32_t i = 0; i < BENCH_SESSIONS; i++) {
            bench_attach(files.bench, i);
        }
        empty_and_close(&files);
        assert_int_equal(create(&files, 1, &call), 0);
        bench_free(files.bench);
    }
}

/* What an eviction needs for each open has no room any more; 0: not even its beginning has. */
static void fill_for_evictions(struct files *files, bool any) {
    const struct kv_need need = {.rows = 16 + 2 * MOVES_MAX, .record_bytes = 3000};
    struct kv *kv = group_kv(files->bench->group);
    struct kv_grant grant;
    int r = 0;

    for (uint64_t i = 0; i < SETTLES_MAX && r == 0; i++) {
        assert_int_equal(bench_ended(files->bench, 100000 + i), 0);
        r = kv_admit(kv, KV_CLASS_CONTROL, &need, &grant);
        r = r == -ERR_PENDING ? 0 : r;
    }
    assert_int_equal(r, -ERR_NO_SPACE);
    for (uint64_t i = 0; i < SETTLES_MAX && !any && r != 0; i++) {
        r = bench_ended(files->bench, 200000 + i) == -ERR_NO_SPACE ? 0 : r;
    }
    assert_true(any || r == 0);
}

/* Its size is the storage targets' to tell. */
static int convert(struct files *files) {
    struct call call;

    bench_prepare(files->bench, 0, OP_INLINE_CONVERT, &call);
    call.request.inline_convert =
        (struct inline_convert_request){.ino = files->ino, .stage = INLINE_CONVERT_BEGIN};
    return bench_run(files->bench, &call);
}

/* Who tells of an end is told that there is no room for it, and tells again; what has begun goes on
 * when there is room. */
static void test_eviction_is_told(void **state) {
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        struct files files;
        struct group_stats stats;

        files_open(&files, 45 + (uint64_t)kind);
        assert_int_equal(kind == 0 ? convert(&files) : 0, 0);
        fill(&files);
        uint64_t session = files.bench->sessions[0].id;
        files.bench->osts[0].is_away = true;
        assert_int_equal(kind == 0 ? bench_ended(files.bench, session) : 0, 0);
        fill_for_evictions(&files, kind == 0);
        for (int life = 0; life < 2; life++) {
            assert_int_equal(kind == 1 ? bench_ended(files.bench, session) : -ERR_NO_SPACE,
                             -ERR_NO_SPACE);
            bench_advance(files.bench, NS_PER_S);
            assert_true(bench_is_known(files.bench, session));
            assert_int_equal(bench_stop(files.bench), 0);
            bench_restart(files.bench, false);
        }
        kv_mem_store_full(files.bench->store, false);
        files.bench->osts[0].is_away = false;
        bench_advance(files.bench, SETTLE_WITHIN_S * NS_PER_S);
        assert_int_equal(kind == 1 && bench_is_known(files.bench, session), kind == 1);
        bench_evict(files.bench, session);
        bench_stats(files.bench, &stats);
        assert_int_equal(stats.open_count, 0);
        bench_free(files.bench);
    }
}

static int directory_make(struct files *files, uint32_t number) {
    struct call call;

    name_make(files, number);
    bench_prepare(files->bench, 0, OP_MKDIR, &call);
    call.request.mkdir = (struct mkdir_request){
        .parent = INO_ROOT, .name = {files->name, sizeof files->name}, .mode = 0755};
    return bench_run(files->bench, &call);
}

static uint64_t coordinator_of(const struct meta_bench *bench) {
    return cluster_map_first_log(bench->map, bench->osts[0].id).value;
}

static int prepare(struct meta_bench *bench, uint64_t number, const struct half *half) {
    uint8_t participant[8];
    struct call call;

    store_le64(participant, cluster_map_first_log(bench->map, BENCH_MDT).value);
    bench_prepare(bench, 0, OP_CROSS_PREPARE, &call);
    call.request.cross_prepare =
        (struct cross_prepare_request){.coordinator = coordinator_of(bench),
                                       .term = 1,
                                       .number = number,
                                       .participants = {participant, sizeof participant},
                                       .halves = {(const uint8_t *)half, sizeof *half}};
    return bench_run(bench, &call);
}

static int make_prepare(struct meta_bench *bench, uint64_t number) {
    const struct half half = half_of_make(number);

    return prepare(bench, number, &half);
}

/* The name of a file that this group has is to go elsewhere. */
static int unlink_prepare(struct meta_bench *bench, uint64_t number, struct ino ino) {
    const struct half half = {
        .format = META_FORMAT, .kind = HALF_UNLINK, .mode = 0100644, .ino = ino.value, .from = 1};

    return prepare(bench, number, &half);
}

static void commit_prepare(struct meta_bench *bench, uint64_t number, struct call *call) {
    bench_prepare(bench, 0, OP_CROSS_COMMIT, call);
    call->request.cross_commit = (struct cross_commit_request){
        .coordinator = coordinator_of(bench), .term = 1, .number = number};
}

static int look(struct meta_bench *bench) {
    struct call call;

    bench_prepare(bench, 0, OP_CROSS_LOOK, &call);
    call.request.cross_look = (struct cross_look_request){.ino = INO_ROOT, .what = LOOK_INODE};
    return bench_run(bench, &call);
}

/* A group that is full promises nothing any more, and says so; what it has promised it does, and
 * who looks, attaches or gives up is not held up. */
static void test_prepare_is_told(void **state) {
    struct files files;
    struct ino inos[PROMISED];
    struct call call;
    uint64_t number = 0;
    int r = 0;

    (void)state;
    files_open(&files, 47);
    for (uint32_t i = 0; i < BENCH_OSTS; i++) {
        files.bench->osts[i].is_dead = true; /* Nobody tells how a promise has ended. */
    }
    for (uint32_t i = 0; i < PROMISED; i++) {
        assert_int_equal(create(&files, 1 + i, &call), 0);
        inos[i] = call.reply.create.attributes.ino;
    }
    while (number < PROMISED / 2) {
        number++;
        assert_int_equal(make_prepare(files.bench, number), 0);
    }
    kv_mem_store_full(files.bench->store, true);
    for (uint32_t i = 0; r == 0 && i < MADE_MAX; i++) {
        r = directory_make(&files, 100 + i);
    }
    assert_int_equal(r, -ERR_NO_SPACE);
    assert_int_equal(make_prepare(files.bench, PROMISED + 1), -ERR_NO_SPACE);
    r = 0;
    for (uint32_t i = 0; r == 0 && i < PROMISED; i++) {
        r = unlink_prepare(files.bench, number + 1, inos[i]);
        number += r == 0;
    }
    assert_true(number > PROMISED / 2); /* What frees space has some of its own. */
    assert_int_equal(look(files.bench), 0);
    bench_attach(files.bench, 1);
    for (uint64_t i = 1; i <= number; i++) {
        commit_prepare(files.bench, i, &call);
        assert_int_equal(bench_run(files.bench, &call), 0);
    }
    assert_int_equal(look(files.bench), 0);
    bench_attach(files.bench, 2);
    bench_free(files.bench);
}

/* Who waits for room lets those pass who only read. */
static void test_reads_pass(void **state) {
    struct files files;
    struct call waiting;

    (void)state;
    files_open(&files, 48);
    fill(&files);
    fill_for_evictions(&files, false);
    commit_prepare(files.bench, 1, &waiting);
    bench_post(files.bench, &waiting);
    bench_advance(files.bench, NS_PER_S);
    assert_false(bench_is_answered(&waiting));
    assert_int_equal(look(files.bench), 0);
    assert_false(bench_is_answered(&waiting));
    kv_mem_store_full(files.bench->store, false);
    assert_int_equal(bench_finish(files.bench, &waiting), 0);
    bench_free(files.bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prepare_is_told),  cmocka_unit_test(test_reads_pass),
        cmocka_unit_test(test_settle_is_told),   cmocka_unit_test(test_full_group_starts_again),
        cmocka_unit_test(test_eviction_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
