/* The engine against a model: random transactions, sync points, checkpoints, kills, power cuts and
 * crashes in the middle of any disk operation. After a kill everything sealed is there; after a
 * power cut everything synced and a prefix of the rest; never half a transaction. */
#include "unit.h"
#include "base/crc32c.h"
#include "kv/kv.h"
#include "kv/kv_mem.h"
#include "kv/log_format.h"
#include "memory_env.h"
#include <stdlib.h>
#include <string.h>

enum { KEYS = 200, HISTORY_MAX = 40000, SEEDS = 30, STEPS = 600 };

/* One change of one key; stamp 0 deletes. Values are made from key and stamp. */
struct change {
    uint64_t position;
    uint32_t key;
    uint32_t stamp;
};

struct bench {
    uint64_t seed;
    struct prng prng;
    struct memory_env *world;
    struct kv_mem_store *store;
    struct kv *kv;
    struct change *history;
    size_t history_count;
    uint32_t next_stamp;
    uint64_t sealed;
    uint64_t synced; /* as an answered waiter saw it */
    uint64_t next_sequence;
    uint64_t outcome_positions[HISTORY_MAX];
    bool data_pending;
    struct list waits;
    uint64_t disk_log_bytes;
    uint32_t lines; /* that were logged */
    bool ring_expected;
};

static const struct env_ops *memory_env_ops; /* where a test has put others in their place */

struct sync_wait {
    struct list_node node; /* of those that are not answered */
    struct kv_waiter waiter;
    struct bench *bench;
};

static void wake(void *context) {
    (void)context;
}

static void data_sync(void *context, uint64_t cut) {
    (void)cut;
    ((struct bench *)context)->data_pending = true;
}

static struct kv_key key_of(uint32_t index) {
    return kv_key_make((struct kv_key_fields){.space = KV_SPACE_SLOT,
                                              .slot = (uint16_t)(index % 7),
                                              .type = 'T',
                                              .id = index,
                                              .index = index * 3});
}

static size_t value_make(uint32_t key, uint32_t stamp, uint8_t *value) {
    size_t size = 8 + (stamp * 37 + key) % 300;

    memset(value, (int)(stamp & 0xff), size);
    memcpy(value, &key, 4);
    memcpy(value + 4, &stamp, 4);
    return size;
}

static void log_line(void *context, const char *line) {
    assert_true(strstr(line, "ring") || strstr(line, "file system below") ||
                strstr(line, "answers nothing more"));
    ((struct bench *)context)->lines++;
}

static int open_kv_sized(struct bench *bench, size_t ring_bytes, size_t ring_data_bytes,
                         char problem[256]) {
    const struct kv_options options = {
        .env = memory_env_env(bench->world),
        .directory = "t",
        .shared_name = "ring",
        .ring_expected = bench->ring_expected,
        .base = &kv_mem_ops,
        .base_store = bench->store,
        .owner_id = "0123456789abcde",
        .ring_bytes = ring_bytes,
        .ring_data_bytes = ring_data_bytes,
        .ring_bytes_name = "some_ring",
        .ring_data_bytes_name = "some_data",
        .disk_log_bytes = bench->disk_log_bytes,
        .changes_bytes_max = 512 * KIB,
        .sync_interval_ns = NS_PER_S,
        .outcomes_max = 1024,
        .hooks = {.wake = wake, .data_sync = data_sync},
        .hook_context = bench,
        .log = log_line,
        .log_context = bench,
    };

    bench->data_pending = false;
    return kv_open(&options, &bench->kv, problem);
}

static int open_kv(struct bench *bench, char problem[256]) {
    return open_kv_sized(bench, 64 * KIB, 64 * KIB, problem);
}

static void check_engine(struct bench *bench) {
    char problem[256];

    if (!kv_check(bench->kv, problem)) {
        fail_msg("seed %llu: %s", (unsigned long long)bench->seed, problem);
    }
}

/* One thing may complete, then the engine goes on. */
static void turn(struct bench *bench) {
    (void)memory_env_pump(bench->world, prng_below(&bench->prng, 3));
    if (bench->data_pending && prng_chance(&bench->prng, 1, 2)) {
        bench->data_pending = false;
        kv_data_synced(bench->kv, 0);
    }
    kv_step(bench->kv);
    check_engine(bench);
}

static void transaction(struct bench *bench) {
    uint8_t value[KV_VALUE_BYTES_MAX];
    size_t first = bench->history_count;
    uint32_t changes = 1 + (uint32_t)prng_below(&bench->prng, 4);
    int r = 0;

    uint64_t sequence = bench->next_sequence;
    struct kv_need need = {.rows = 4,
                           .value_bytes = 2048,
                           .record_bytes = 2048,
                           .session = {7},
                           .floor = sequence > 20 ? sequence - 20 : 0,
                           .window = 32};
    struct kv_grant grant;

    if (kv_admit(bench->kv, KV_CLASS_REQUEST, &need, &grant) < 0) {
        return;
    }
    kv_begin(bench->kv, &grant);
    for (uint32_t i = 0; i < changes && r == 0; i++) {
        uint32_t index = (uint32_t)prng_below(&bench->prng, KEYS);
        struct kv_key key = key_of(index);
        uint32_t stamp = prng_chance(&bench->prng, 1, 4) ? 0 : bench->next_stamp++;

        if (stamp == 0) {
            r = kv_delete(bench->kv, &key);
        } else {
            r = kv_put(bench->kv, &key, (struct bytes){value, value_make(index, stamp, value)});
        }
        bench->history[bench->history_count++] = (struct change){0, index, stamp};
    }
    struct kv_outcome outcome = {.session = {7},
                                 .sequence = sequence,
                                 .floor = need.floor,
                                 .result = 0,
                                 .reply = {(const uint8_t *)&sequence, sizeof sequence}};
    if (r == 0) {
        r = kv_outcome_put(bench->kv, &outcome);
    }
    if (r < 0 || prng_chance(&bench->prng, 1, 10)) {
        kv_abort(bench->kv);
        bench->history_count = first;
        assert_true(r == 0 || memory_env_is_crashed(bench->world));
        return;
    }
    uint64_t position = kv_commit(bench->kv);
    bench->outcome_positions[bench->next_sequence++] = position;
    for (size_t i = first; i < bench->history_count; i++) {
        bench->history[i].position = position;
    }
}

static int admit(struct bench *bench, enum kv_class message_class, uint32_t record_bytes) {
    const struct kv_need need = {.rows = 1, .record_bytes = record_bytes};
    struct kv_grant grant;

    return kv_admit(bench->kv, message_class, &need, &grant);
}

static void seal(struct bench *bench) {
    bench->sealed = kv_seal(bench->kv);
}

static void sync_done(struct kv_waiter *waiter, int result) {
    struct sync_wait *wait = CONTAINER_OF(waiter, struct sync_wait, waiter);

    if (result == 0) {
        wait->bench->synced = MAX(wait->bench->synced, waiter->position);
    }
    list_remove(&wait->node);
    free(wait);
}

/* What the model says at a position: the newest changes at or below it. */
static void model_stamps(const struct bench *bench, uint64_t position, uint32_t stamps[KEYS]) {
    memset(stamps, 0, KEYS * sizeof *stamps);
    for (size_t i = 0; i < bench->history_count; i++) {
        if (bench->history[i].position <= position) {
            stamps[bench->history[i].key] = bench->history[i].stamp;
        }
    }
}

static int get_now(struct bench *bench, const struct kv_key *key, struct bytes *value) {
    int r;

    while ((r = kv_get(bench->kv, key, value)) == -ERR_PENDING) {
        (void)memory_env_pump(bench->world, 1);
        kv_step(bench->kv);
    }
    return r;
}

static void check_all(struct bench *bench) {
    uint8_t expected[KV_VALUE_BYTES_MAX];
    uint32_t stamps[KEYS];
    struct bytes value;

    model_stamps(bench, kv_position(bench->kv), stamps);
    for (uint32_t index = 0; index < KEYS; index++) {
        uint32_t stamp = stamps[index];
        struct kv_key key = key_of(index);
        int r = get_now(bench, &key, &value);

        if (stamp == 0) {
            assert_int_equal(r, -ERR_NOT_FOUND);
        } else {
            assert_int_equal(r, 0);
            assert_int_equal(value.size, value_make(index, stamp, expected));
            assert_memory_equal(value.data, expected, value.size);
        }
    }
}

/* A walk gives exactly the rows that gets give, in order. */
static void check_walk(struct bench *bench) {
    struct kv_key from = {{0}};
    struct kv_key to;
    struct kv_key last = from;
    struct kv_cursor cursor;
    struct bytes value;
    size_t present = 0;
    size_t walked = 0;
    int r;

    uint32_t stamps[KEYS];

    model_stamps(bench, kv_position(bench->kv), stamps);
    memset(&to, 0xff, sizeof to);
    to.bytes[0] = 2;
    memset(to.bytes + 1, 0, sizeof to.bytes - 1);
    for (uint32_t index = 0; index < KEYS; index++) {
        present += stamps[index] != 0;
    }
    kv_cursor_init(&cursor, &from, &to);
    while ((r = kv_next(bench->kv, &cursor, &value)) != -ERR_NOT_FOUND) {
        if (r == -ERR_PENDING) {
            (void)memory_env_pump(bench->world, 1);
            kv_step(bench->kv);
            continue;
        }
        assert_int_equal(r, 0);
        assert_true(kv_key_compare(&last, &cursor.key) < 0);
        last = cursor.key;
        walked++;
    }
    assert_int_equal(walked, present);
    struct kv_key found;
    while ((r = kv_last(bench->kv, &from, &to, &found, &value)) == -ERR_PENDING) {
        (void)memory_env_pump(bench->world, 1);
        kv_step(bench->kv);
    }
    assert_int_equal(r, present > 0 ? 0 : -ERR_NOT_FOUND);
    if (present > 0) {
        assert_memory_equal(found.bytes, last.bytes, KV_KEY_BYTES);
    }
}

static void check_outcomes(struct bench *bench) {
    uint64_t position = kv_position(bench->kv);
    uint64_t highest = 0;
    struct kv_outcome outcome;

    for (uint64_t sequence = 1; sequence < bench->next_sequence; sequence++) {
        highest = bench->outcome_positions[sequence] <= position ? sequence : highest;
    }
    for (uint64_t sequence = 1; sequence < bench->next_sequence; sequence++) {
        int r =
            kv_outcome_get(bench->kv, (struct slot){0}, (struct session_id){7}, sequence, &outcome);
        uint64_t floor = highest > 20 ? highest - 20 : 0;

        if (sequence < floor) {
            assert_int_equal(r, -ERR_OUTDATED);
        } else if (bench->outcome_positions[sequence] <= position) {
            assert_int_equal(r, 0);
            assert_memory_equal(outcome.reply.data, &sequence, sizeof sequence);
        } else {
            assert_int_equal(r, -ERR_NOT_FOUND);
        }
    }
}

/* What lies above the recovered position never happened. */
static void forget_lost(struct bench *bench) {
    uint64_t position = kv_position(bench->kv);
    size_t kept = 0;

    for (size_t i = 0; i < bench->history_count; i++) {
        if (bench->history[i].position <= position) {
            bench->history[kept++] = bench->history[i];
        }
    }
    bench->history_count = kept;
    while (bench->next_sequence > 1 &&
           bench->outcome_positions[bench->next_sequence - 1] > position) {
        bench->next_sequence--;
    }
}

static void reopen(struct bench *bench, bool power) {
    uint64_t term = kv_term(bench->kv);
    uint32_t starts = 0;
    char problem[256];
    int r = -ERR_CLOSED;

    while (r < 0) {
        if (power) {
            memory_env_power(bench->world);
        } else {
            memory_env_kill(bench->world);
        }
        kv_abandon(bench->kv);
        bench->kv = NULL;
        /* Nobody will answer them any more. */
        while (!list_is_empty(&bench->waits)) {
            free(CONTAINER_OF(list_pop_front(&bench->waits), struct sync_wait, node));
        }
        if (prng_chance(&bench->prng, 1, 2)) {
            memory_env_crash_after(bench->world, 1 + prng_below(&bench->prng, 40));
        }
        r = open_kv(bench, problem);
        starts++;
        if (r < 0 && r != -ERR_CLOSED) {
            fail_msg("seed %llu: open answers %s: %s", (unsigned long long)bench->seed, err_name(r),
                     problem);
        }
    }
    memory_env_crash_after(bench->world, UINT64_MAX);
    uint64_t position = kv_position(bench->kv);
    if (!power) {
        assert_true(position >= bench->sealed);
    }
    assert_true(position >= bench->synced);
    /* Of the term before so much is left, however many starts were cut since. */
    if (starts <= 16) {
        assert_int_equal(kv_survived_position(bench->kv, term), position);
    }
    assert_true(kv_survived_position(bench->kv, kv_term(bench->kv)) == UINT64_MAX);
    forget_lost(bench);
    bench->sealed = position;
    check_all(bench);
    check_walk(bench);
    check_outcomes(bench);
}

static void one_step(struct bench *bench) {
    uint64_t dice = prng_below(&bench->prng, 100);

    if (dice < 60) {
        transaction(bench);
    } else if (dice < 75) {
        seal(bench);
    } else if (dice < 80) {
        struct sync_wait *wait = calloc(1, sizeof *wait);

        assert_non_null(wait);
        seal(bench);
        wait->bench = bench;
        list_push_back(&bench->waits, &wait->node);
        wait->waiter.done = sync_done;
        kv_sync(bench->kv, &wait->waiter, bench->sealed);
    } else if (dice < 82) {
        memory_env_advance(bench->world, NS_PER_S);
    }
    turn(bench);
    if (dice == 99) {
        /* What the last step sealed by itself counts as sealed when we come back. */
        reopen(bench, prng_chance(&bench->prng, 1, 2));
    } else if (dice == 98) {
        memory_env_crash_after(bench->world, prng_below(&bench->prng, 10));
    }
    if (memory_env_is_crashed(bench->world)) {
        reopen(bench, prng_chance(&bench->prng, 1, 2));
    }
}

static struct bench *bench_with_log(uint64_t seed, uint64_t cold, uint64_t disk_log_bytes) {
    char problem[256];
    struct bench *bench = calloc(1, sizeof *bench);

    assert_non_null(bench);
    bench->seed = seed;
    bench->disk_log_bytes = disk_log_bytes;
    bench->history = calloc(HISTORY_MAX, sizeof *bench->history);
    bench->next_stamp = 1;
    bench->next_sequence = 1;
    list_init(&bench->waits);
    prng_init(&bench->prng, seed);
    const struct kv_mem_options store = {
        .prng = &bench->prng, .cold_numerator = cold, .cold_denominator = 10};
    assert_int_equal(memory_env_new(seed, &bench->world), 0);
    assert_int_equal(kv_mem_store_new(&store, &bench->store), 0);
    assert_int_equal(open_kv(bench, problem), 0);
    return bench;
}

static struct bench *bench_new(uint64_t seed, uint64_t cold) {
    return bench_with_log(seed, cold, 512 * KIB);
}

static void bench_free(struct bench *bench) {
    kv_abandon(bench->kv);
    kv_mem_store_free(bench->store);
    memory_env_free(bench->world);
    free(bench->history);
    free(bench);
}

static void run_seed(uint64_t seed, uint64_t cold) {
    struct bench *bench = bench_new(seed, cold);

    for (int step = 0; step < STEPS; step++) {
        one_step(bench);
    }
    reopen(bench, false);
    bench_free(bench);
}

static void test_model(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        run_seed(seed, seed % 3);
    }
}

static void stop_done(void *context, int result) {
    *(int *)context = result;
}

/* A clean stop leaves no ring, and everything in the base. */
static void test_clean_stop(void **state) {
    struct bench *bench = bench_new(5, 0);
    int stopped = 1;

    (void)state;
    for (int i = 0; i < 50; i++) {
        transaction(bench);
        turn(bench);
    }
    kv_stop_start(bench->kv, stop_done, &stopped);
    for (int i = 0; i < 1000 && stopped == 1; i++) {
        turn(bench);
    }
    assert_int_equal(stopped, 0);
    bench->sealed = kv_position(bench->kv);
    bench->synced = bench->sealed;
    uint16_t losses = kv_losses(bench->kv);
    reopen(bench, true);
    struct kv_counters counters;
    kv_counters_get(bench->kv, &counters);
    assert_int_equal(counters.replayed_records, 0);
    assert_int_equal(kv_losses(bench->kv), losses);
    bench_free(bench);
}

/* A checkpoint of many rows takes few of them in each step, and has all in the end. */
static void test_checkpoint_steps(void **state) {
    enum { ROWS = 1600, STEP_ROWS_MAX = 512 };
    struct bench *bench = bench_new(7, 0);
    struct kv_counters counters;
    uint8_t value[8] = {1};
    uint64_t before = 0;
    uint64_t largest = 0;
    int stopped = 1;

    (void)state;
    for (uint32_t i = 0; i < ROWS; i++) {
        struct kv_need need = {.rows = 1, .value_bytes = 8, .record_bytes = 100};
        struct kv_key key = key_of(i);
        struct kv_grant grant;

        while (kv_admit(bench->kv, KV_CLASS_REQUEST, &need, &grant) < 0) {
            turn(bench);
        }
        kv_begin(bench->kv, &grant);
        assert_int_equal(kv_put(bench->kv, &key, (struct bytes){value, sizeof value}), 0);
        (void)kv_commit(bench->kv);
        (void)kv_seal(bench->kv);
    }
    kv_stop_start(bench->kv, stop_done, &stopped);
    for (int i = 0; i < 10000 && stopped == 1; i++) {
        kv_counters_get(bench->kv, &counters);
        before = counters.checkpoint_rows;
        turn(bench);
        kv_counters_get(bench->kv, &counters);
        largest = MAX(largest, counters.checkpoint_rows - before);
    }
    assert_int_equal(stopped, 0);
    assert_true(counters.checkpoint_rows >= ROWS);
    assert_in_range(largest, 1, STEP_ROWS_MAX);
    bench_free(bench);
}

/* Power takes the ring, and the start after it is killed at each of its disk operations in turn: a
 * later one that finds the ring of the killed one says all the same that something may be lost. A
 * kill alone loses nothing. */
static void test_losses_are_counted(void **state) {
    struct bench *bench = bench_new(6, 0);
    char problem[256];
    int r = -ERR_CLOSED;

    (void)state;
    for (uint64_t crash_after = 1; r < 0; crash_after++) {
        uint16_t losses = kv_losses(bench->kv);

        memory_env_kill(bench->world);
        kv_abandon(bench->kv);
        assert_int_equal(open_kv(bench, problem), 0);
        assert_int_equal(kv_losses(bench->kv), losses);
        memory_env_power(bench->world);
        kv_abandon(bench->kv);
        memory_env_crash_after(bench->world, crash_after);
        r = open_kv(bench, problem);
        memory_env_crash_after(bench->world, UINT64_MAX);
        if (r < 0) {
            assert_int_equal(r, -ERR_CLOSED);
            memory_env_kill(bench->world);
            assert_int_equal(open_kv(bench, problem), 0);
        }
        assert_int_not_equal(kv_losses(bench->kv), losses);
        assert_true(crash_after < 1000);
    }
    bench_free(bench);
}

/* As many starts as a log remembers tell what is left of a term; one more, and all of it counts as
 * lost, while of those behind it what is left is known still. */
static void test_terms_of_losses(void **state) {
    struct bench *bench = bench_new(7, 0);
    uint64_t first = kv_term(bench->kv);
    char problem[256];

    (void)state;
    transaction(bench);
    seal(bench);
    uint64_t left = kv_position(bench->kv);
    assert_true(left > 0);
    for (uint64_t i = 1; i <= LOG_STARTS + 2; i++) {
        memory_env_kill(bench->world);
        kv_abandon(bench->kv);
        assert_int_equal(open_kv(bench, problem), 0);
        assert_int_equal(kv_term(bench->kv), first + i);
        assert_int_equal(kv_position(bench->kv), left);
        for (uint64_t term = 0; term < i; term++) {
            assert_int_equal(kv_survived_position(bench->kv, first + term),
                             i - term > LOG_STARTS ? 0 : left);
        }
    }
    bench_free(bench);
}

/* After a kill the ring is gone. That is worth a line where it must be there, and only there. */
static void test_lost_ring(void **state) {
    (void)state;
    for (int expected = 0; expected < 2; expected++) {
        struct bench *bench = bench_new(8, 0);
        struct env *env = memory_env_env(bench->world);
        char problem[256];

        transaction(bench);
        seal(bench);
        memory_env_kill(bench->world);
        kv_abandon(bench->kv);
        assert_int_equal(env->ops->shared_remove(env, "ring"), 0);
        bench->ring_expected = expected;
        assert_int_equal(open_kv(bench, problem), 0);
        assert_int_equal(bench->lines, expected);
        kv_abandon(bench->kv);
        /* Now there is one. */
        assert_int_equal(open_kv(bench, problem), 0);
        assert_int_equal(bench->lines, expected);
        bench_free(bench);
    }
}

/* The disk goes back to an earlier state, as a copy that is put back does: the ring is named. */
static void test_ring_behind_its_log(void **state) {
    struct bench *bench = bench_new(9, 0);
    struct env *env = memory_env_env(bench->world);
    struct env_shared *shared;
    uint64_t size_bytes;
    char problem[256];
    bool created;

    (void)state;
    transaction(bench);
    seal(bench);
    memory_env_kill(bench->world);
    kv_abandon(bench->kv);
    bench->kv = NULL;
    assert_int_equal(env->ops->shared_size(env, "ring", &size_bytes), 0);
    assert_int_equal(env->ops->shared_open(env, "ring", size_bytes, &shared, &created), 0);
    struct ring_header *header = env->ops->shared_data(shared);
    for (int i = 0; i < 2; i++) {
        struct ring_start *start = &header->starts[i];

        start->position += 10;
        start->crc = crc32c(0, start, offsetof(struct ring_start, crc));
    }
    env->ops->shared_close(shared);
    assert_int_equal(open_kv(bench, problem), -ERR_CORRUPT);
    assert_non_null(strstr(problem, "disagree from its byte 8192, record 1, on"));
    assert_non_null(strstr(problem, "remove the ring"));
    bench_free(bench);
}

/* The files are wiped and made anew by the same owner, but the ring in shared memory is still
 * there, with records that no sync point has taken, or whose start is behind one: what it holds is
 * of a log that is gone. It joins no other, and is not overwritten: the refusal names it. */
static void test_ring_of_another_log(void **state) {
    (void)state;
    for (int synced = 0; synced < 2; synced++) {
        struct bench *bench = bench_new(7, 0);
        struct env *env = memory_env_env(bench->world);
        char problem[256];

        for (int i = 0; i < 20; i++) {
            transaction(bench);
            seal(bench);
            for (int k = 0; synced && k < 50; k++) {
                memory_env_advance(bench->world, NS_PER_S);
                turn(bench);
            }
        }
        assert_true(synced == (kv_synced_position(bench->kv) > 0));
        memory_env_kill(bench->world);
        kv_abandon(bench->kv);
        kv_mem_store_free(bench->store);
        assert_int_equal(env->ops->file_remove(env, "t/log"), 0);
        const struct kv_mem_options store = {.prng = &bench->prng, .cold_denominator = 10};
        assert_int_equal(kv_mem_store_new(&store, &bench->store), 0);
        bench->kv = NULL;
        assert_int_equal(open_kv(bench, problem), -ERR_IN_USE);
        assert_non_null(strstr(problem, "the ring ring belongs to another log"));
        assert_int_equal(env->ops->shared_remove(env, "ring"), 0);
        assert_int_equal(open_kv(bench, problem), 0);
        assert_int_equal(bench->lines, 0);
        assert_int_equal(kv_position(bench->kv), 0);
        bench->history_count = 0;
        bench->sealed = 0;
        bench->synced = 0;
        bench->next_sequence = 1;
        check_all(bench);
        /* From now on it is this log's. */
        for (int i = 0; i < 20; i++) {
            transaction(bench);
            seal(bench);
        }
        reopen(bench, false);
        assert_int_equal(bench->lines, 0);
        bench_free(bench);
    }
}

/* Killed, then opened with a ring of another size: what only the old ring holds is never lost. The
 * refusal names the setting and its value; with that value all is there. The third row has the same
 * whole size, divided otherwise. */
static void test_ring_of_another_size(void **state) {
    static const struct {
        size_t ring_bytes;
        size_t data_bytes;
        const char *words;
    } rows[] = {
        {128 * KIB, 64 * KIB, "some_ring back to 65536"},
        {64 * KIB, 128 * KIB, "some_data back to 65536"},
        {96 * KIB, 32 * KIB, "some_data back to 65536"},
        {72 * KIB, 64 * KIB, "some_ring back to 65536"},
        {64 * KIB, 0, "some_data back to 65536"},
    };

    (void)state;
    for (size_t row = 0; row < ARRAY_SIZE(rows); row++) {
        struct bench *bench = bench_with_log(11 + row, 0, MIB);
        char problem[256] = "";

        while (bench->sealed < 10) {
            transaction(bench);
            seal(bench);
        }
        assert_true(kv_synced_position(bench->kv) < bench->sealed);
        memory_env_kill(bench->world);
        kv_abandon(bench->kv);
        for (int tries = 0; tries < 2; tries++) {
            assert_int_equal(
                open_kv_sized(bench, rows[row].ring_bytes, rows[row].data_bytes, problem),
                -ERR_IN_USE);
            assert_non_null(strstr(problem, rows[row].words));
        }
        assert_int_equal(open_kv(bench, problem), 0);
        assert_int_equal(kv_position(bench->kv), bench->sealed);
        check_all(bench);
        assert_int_equal(bench->lines, 0);
        bench_free(bench);
    }
}

/* A ring of another size that holds nothing the disk log lacks makes way. */
static void test_ring_grows_when_synced(void **state) {
    struct bench *bench = bench_with_log(17, 0, MIB);
    char problem[256] = "";

    (void)state;
    while (bench->sealed < 10) {
        transaction(bench);
        seal(bench);
    }
    for (int i = 0; i < 1000 && kv_synced_position(bench->kv) < bench->sealed; i++) {
        memory_env_advance(bench->world, NS_PER_S);
        turn(bench);
    }
    assert_int_equal(kv_synced_position(bench->kv), bench->sealed);
    memory_env_kill(bench->world);
    kv_abandon(bench->kv);
    assert_int_equal(open_kv_sized(bench, 128 * KIB, 0, problem), 0);
    assert_int_equal(kv_position(bench->kv), bench->sealed);
    check_all(bench);
    bench_free(bench);
}

/* As in a file system that has room for the old region only, which goes first. */
static int shared_open_full(struct env *env, const char *name, size_t size_bytes,
                            struct env_shared **ret_shared, bool *ret_created) {
    const struct env_ops *whole = memory_env_ops;
    uint64_t old_bytes = 0;

    if (whole->shared_size(env, name, &old_bytes) == 0 && old_bytes == size_bytes) {
        return whole->shared_open(env, name, size_bytes, ret_shared, ret_created);
    }
    assert_int_equal(whole->shared_remove(env, name), 0);
    return -ERR_NO_SPACE;
}

/* A start that has taken a ring away in which nothing was missed, and has not made its own yet, may
 * be cut: it has lost nothing, and says nothing of a loss. */
static void test_ring_gives_way_in_two_starts(void **state) {
    struct bench *bench = bench_with_log(18, 0, MIB);
    struct env *env = memory_env_env(bench->world);
    char problem[256];

    (void)state;
    memory_env_ops = env->ops;
    struct env_ops full = *memory_env_ops;
    full.shared_open = shared_open_full;
    transaction(bench);
    seal(bench);
    for (int i = 0; i < 1000 && kv_synced_position(bench->kv) < bench->sealed; i++) {
        memory_env_advance(bench->world, NS_PER_S);
        turn(bench);
    }
    memory_env_kill(bench->world);
    kv_abandon(bench->kv);
    bench->kv = NULL;
    bench->ring_expected = true;
    env->ops = &full;
    assert_int_equal(open_kv_sized(bench, 128 * KIB, 64 * KIB, problem), -ERR_NO_SPACE);
    env->ops = memory_env_ops;
    assert_int_equal(open_kv(bench, problem), 0);
    assert_int_equal(kv_losses(bench->kv), 0);
    assert_int_equal(bench->lines, 0);
    check_all(bench);
    bench_free(bench);
}

static uint64_t checkpoints_of(struct bench *bench) {
    struct kv_counters counters;

    kv_counters_get(bench->kv, &counters);
    return counters.checkpoints;
}

/* The base cannot grow: all goes on until the log is full, then requests are told; reads go on, a
 * kill or a clean stop loses nothing and ends, and with space the checkpoint is taken. */
static void test_base_without_space(void **state) {
    (void)state;
    for (unsigned seed = 0; seed < 3; seed++) {
        struct bench *bench = bench_new(23 + seed, 0);
        int stopped = 1;

        kv_mem_store_full(bench->store, true);
        while (admit(bench, KV_CLASS_REQUEST, 2048) != -ERR_NO_SPACE) {
            transaction(bench);
            seal(bench);
            memory_env_advance(bench->world, 100 * NS_PER_MS);
            turn(bench);
            assert_true(bench->history_count < HISTORY_MAX - 8);
        }
        assert_int_equal(bench->lines, 1);
        assert_int_equal(kv_failure(bench->kv), 0);
        assert_int_equal(checkpoints_of(bench), 0);
        /* A little is left for what helps. */
        assert_int_equal(admit(bench, KV_CLASS_FREEING, 512), 0);
        assert_int_equal(admit(bench, KV_CLASS_RELEASE, 512), 0);
        assert_int_equal(admit(bench, KV_CLASS_CONTROL, 512), 0);
        check_all(bench);
        if (seed == 1) {
            kv_stop_start(bench->kv, stop_done, &stopped);
            for (int i = 0; i < 1000 && stopped == 1; i++) {
                turn(bench);
            }
            assert_int_equal(stopped, 0);
            bench->sealed = kv_position(bench->kv);
            bench->synced = bench->sealed;
            reopen(bench, true);
        } else if (seed == 2) {
            reopen(bench, false);
        }
        kv_mem_store_full(bench->store, false);
        for (int i = 0; i < 1000 && checkpoints_of(bench) == 0; i++) {
            memory_env_advance(bench->world, 100 * NS_PER_MS);
            turn(bench);
        }
        assert_int_equal(checkpoints_of(bench), 1);
        for (int i = 0; i < 100 && admit(bench, KV_CLASS_REQUEST, 4096) < 0; i++) {
            memory_env_advance(bench->world, 100 * NS_PER_MS);
            turn(bench);
        }
        assert_int_equal(admit(bench, KV_CLASS_REQUEST, 4096), 0);
        transaction(bench);
        seal(bench);
        check_all(bench);
        bench_free(bench);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model),
        cmocka_unit_test(test_clean_stop),
        cmocka_unit_test(test_lost_ring),
        cmocka_unit_test(test_ring_behind_its_log),
        cmocka_unit_test(test_checkpoint_steps),
        cmocka_unit_test(test_losses_are_counted),
        cmocka_unit_test(test_terms_of_losses),
        cmocka_unit_test(test_ring_of_another_log),
        cmocka_unit_test(test_ring_of_another_size),
        cmocka_unit_test(test_ring_grows_when_synced),
        cmocka_unit_test(test_ring_gives_way_in_two_starts),
        cmocka_unit_test(test_base_without_space),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
