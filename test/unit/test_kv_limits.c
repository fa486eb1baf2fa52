/* The engine's limits to the byte, and what it does once and not more often: what no count of
 * crashes tells from a limit that is one off. */
#include "unit.h"
#include "base/crc32c.h"
#include "kv/kv_internal.h"
#include "kv_edge.h"
#include <stdlib.h>

static struct kv_counters counters_of(const struct edge *edge) {
    struct kv_counters counters;

    kv_counters_get(edge->kv, &counters);
    return counters;
}

static void reopen(struct edge *edge) {
    edge_kill(edge);
    assert_int_equal(edge_open(edge), 0);
}

static void put_sealed(struct edge *edge, uint64_t id, size_t size) {
    assert_int_equal(edge_put(edge, KV_CLASS_CONTROL, id, size), 0);
    (void)kv_seal(edge->kv);
}

/* Who has nothing to sync takes no sync points; who has opened waits an interval for the first. */
static void test_idle(void **state) {
    struct edge *edge = edge_new(1);

    (void)state;
    memory_env_advance(edge->world, 100 * NS_PER_S);
    reopen(edge);
    put_sealed(edge, 1, 8);
    for (int i = 0; i < 10; i++) {
        edge_turn(edge, NS_PER_MS);
    }
    assert_int_equal(counters_of(edge).sync_points, 0);
    edge_settle(edge, false);
    for (int i = 0; i < 10; i++) {
        edge_turn(edge, NS_PER_S);
    }
    assert_int_equal(counters_of(edge).sync_points, 1);
    edge_free(edge);
}

/* A checkpoint of what is synced needs no sync point of its own. */
static void test_checkpoint_of_what_is_synced(void **state) {
    struct edge *edge = edge_new(2);

    (void)state;
    edge->options.checkpoint_ns = 5 * NS_PER_S;
    reopen(edge);
    put_sealed(edge, 1, 8);
    edge_settle(edge, false);
    assert_int_equal(counters_of(edge).checkpoints_begun, 0);
    edge_settle(edge, true);
    edge_turn(edge, 0);
    assert_int_equal(counters_of(edge).sync_points, 1);
    edge_free(edge);
}

/* One that needs a sync point takes one, and asks for no second while that is under way. */
static void test_checkpoint_takes_one_sync_point(void **state) {
    struct edge *edge = edge_new(18);

    (void)state;
    edge->options.checkpoint_ns = 3600 * NS_PER_S;
    reopen(edge);
    put_sealed(edge, 1, 8);
    kv_checkpoint_want(edge->kv);
    while (counters_of(edge).checkpoints == 0) {
        edge_turn(edge, NS_PER_MS);
    }
    for (int i = 0; i < 10; i++) {
        edge_turn(edge, NS_PER_S);
    }
    assert_int_equal(counters_of(edge).sync_points, 1);
    edge_free(edge);
}

/* What lies in a ring beside its start is reached by running totals: one that would run over was
 * written by nobody, though its checksum is right. It is damage, answered with a line. */
static void test_ring_start_beyond_all_totals(void **state) {
    static const size_t fields[] = {offsetof(struct ring_start, offset),
                                    offsetof(struct ring_start, position),
                                    offsetof(struct ring_start, data_start)};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        struct edge *edge = edge_new(19);
        struct env_shared *shared;
        uint64_t far = UINT64_MAX - 4095;

        put_sealed(edge, 1, 8);
        edge_kill(edge);
        struct ring_header *header = (void *)edge_region(edge, &shared);
        for (int k = 0; k < 2; k++) {
            struct ring_start *start = &header->starts[k];

            memcpy((uint8_t *)start + fields[i], &far, sizeof far);
            start->crc = crc32c(0, start, offsetof(struct ring_start, crc));
        }
        memory_env_env(edge->world)->ops->shared_close(shared);
        assert_int_equal(edge_open(edge), -ERR_CORRUPT);
        assert_non_null(strstr(edge->problem, "is damaged: its header"));
        edge_free(edge);
    }
}

static uint64_t available_of(const struct edge *edge) {
    struct kv_space space;

    kv_space_get(edge->kv, &space);
    return space.available_bytes;
}

/* Since when the base has had no room, by the clock; as long it has none, whatever is free. */
static void test_full_since(void **state) {
    struct edge *edge = edge_new(3);

    (void)state;
    edge->options.checkpoint_ns = NS_PER_S;
    memory_env_advance(edge->world, 100 * NS_PER_S);
    reopen(edge);
    uint64_t available = available_of(edge);
    assert_true(available > 0);
    kv_mem_store_full(edge->store, true);
    put_sealed(edge, 1, 8);
    for (int i = 0; i < EDGE_TURNS_MAX && !edge->kv->checkpoint.no_space; i++) {
        edge_turn(edge, 100 * NS_PER_MS);
    }
    edge_turn(edge, 7 * NS_PER_S);
    uint64_t full_ns = counters_of(edge).levels.full_ns;
    assert_in_range(full_ns, 7 * NS_PER_S, 8 * NS_PER_S);
    assert_int_equal(available_of(edge), 0);
    kv_mem_store_full(edge->store, false);
    for (int i = 0; i < EDGE_TURNS_MAX && edge->kv->checkpoint.no_space; i++) {
        edge_turn(edge, 100 * NS_PER_MS);
    }
    assert_int_equal(available_of(edge), available);
    edge_free(edge);
}

/* A table of outcomes that was made much smaller than what is kept is as full as can be told. */
static void test_level_of_outcomes(void **state) {
    enum { SESSIONS = 40, OF_SESSION = 8, FEWER = 4 };
    struct edge *edge = edge_new(17);

    (void)state;
    edge->options.outcomes_max = SESSIONS * OF_SESSION;
    edge->options.sessions_max = SESSIONS;
    reopen(edge);
    for (uint64_t i = 0; i < SESSIONS * OF_SESSION; i++) {
        assert_int_equal(edge_outcome(edge, 1 + i % SESSIONS, 1 + i / SESSIONS, 1), 0);
        if (i % SESSIONS == 0) {
            edge_settle(edge, false);
        }
    }
    assert_int_equal(counters_of(edge).levels.outcomes, 1000);
    edge->options.outcomes_max = FEWER;
    reopen(edge);
    assert_int_equal(counters_of(edge).levels.outcomes, UINT16_MAX);
    edge_free(edge);
}

/* Sizes that are not whole blocks are rounded down; without a data area nothing lies in it. */
static void test_data_area(void **state) {
    struct edge *edge = edge_new(4);
    struct env *env = edge->options.env;
    uint64_t size;

    (void)state;
    assert_null(kv_data_at(edge->kv, 0, 8));
    assert_int_equal(edge_stop(edge), 0);
    kv_close(edge->kv);
    edge->options.ring_data_bytes = 3 * BLOCK_BYTES + 1;
    assert_int_equal(edge_open(edge), 0);
    assert_int_equal(env->ops->shared_size(env, "ring", &size), 0);
    assert_int_equal(size, ring_region_bytes(EDGE_RING_BYTES, 3 * BLOCK_BYTES));
    assert_non_null(kv_data_at(edge->kv, 2 * BLOCK_BYTES, BLOCK_BYTES));
    assert_null(kv_data_at(edge->kv, 2 * BLOCK_BYTES, BLOCK_BYTES + 1));
    edge_free(edge);
}

static void note_result(struct kv_waiter *waiter, int result) {
    waiter->position = (uint64_t)-result;
}

/* A log that fails says so, with what failed; who waits for it then is told at once. */
static void test_failure_is_said(void **state) {
    struct edge *edge = edge_new(14);

    (void)state;
    put_sealed(edge, 1, 8);
    memory_env_crash_after(edge->world, 0);
    for (int i = 0; i < EDGE_TURNS_MAX && kv_failure(edge->kv) == 0; i++) {
        edge_turn(edge, 100 * NS_PER_MS);
    }
    assert_int_equal(kv_failure(edge->kv), -ERR_CLOSED);
    assert_non_null(strstr(edge->line, "t: writing the log failed"));
    struct kv_waiter waiter = {.done = note_result};
    kv_sync(edge->kv, &waiter, 1);
    assert_int_equal(waiter.position, ERR_CLOSED);
    edge_free(edge);
}

/* Who waits, and meets a damaged row as soon as it is told. */
struct finder {
    struct kv_waiter waiter;
    struct edge *edge;
};

static void patch_damaged(struct kv_waiter *waiter, int result) {
    const struct edge *edge = CONTAINER_OF(waiter, struct finder, waiter)->edge;
    const struct kv_need need = edge_need(100);
    struct kv_key key = edge_key(1);
    struct kv_grant grant;

    assert_int_equal(result, 0);
    assert_int_equal(kv_admit(edge->kv, KV_CLASS_CONTROL, &need, &grant), 0);
    kv_begin(edge->kv, &grant);
    assert_int_equal(kv_patch(edge->kv, &key, 0, (struct bytes){edge_content, 8}), 0);
    (void)kv_commit(edge->kv);
}

/* A sync point's first waiter finds the row that stops the log: the next one, for whom it was too
 * early, is told that. */
static void test_failure_between_waiters(void **state) {
    struct edge *edge = edge_new(17);
    struct finder first = {.waiter = {.done = patch_damaged}, .edge = edge};
    struct kv_waiter second = {.done = note_result};
    struct kv_key key = edge_key(1);

    (void)state;
    put_sealed(edge, 1, 100);
    kv_checkpoint_want(edge->kv);
    edge_settle(edge, true);
    edge_kill(edge);
    assert_int_equal(kv_mem_store_damage(edge->store, &key), 0);
    assert_int_equal(edge_open(edge), 0);
    put_sealed(edge, 2, 100);
    kv_sync(edge->kv, &first.waiter, 2);
    kv_step(edge->kv);
    put_sealed(edge, 3, 100);
    kv_sync(edge->kv, &second, 3);
    for (int i = 0; i < EDGE_TURNS_MAX && kv_failure(edge->kv) == 0; i++) {
        edge_turn(edge, NS_PER_MS);
    }
    assert_int_equal(kv_failure(edge->kv), -ERR_CORRUPT);
    assert_int_equal(kv_synced_position(edge->kv), 2);
    assert_int_equal(second.position, ERR_CORRUPT);
    edge_free(edge);
}

static void check_row(struct edge *edge, const struct kv_key *key, const char *want) {
    struct bytes value;

    assert_int_equal(kv_get(edge->kv, key, &value), 0);
    assert_int_equal(value.size, strlen(want));
    assert_memory_equal(value.data, want, value.size);
}

/* A transaction sees what it has staged, step by step, and so does who comes behind it. */
static void test_staged_rows(void **state) {
    const struct kv_need need = {.rows = 4, .value_bytes = 4000, .record_bytes = 4000};
    struct edge *edge = edge_new(15);
    struct kv_key key = edge_key(1);
    struct bytes value;
    struct kv_grant grant;

    (void)state;
    assert_int_equal(kv_admit(edge->kv, KV_CLASS_CONTROL, &need, &grant), 0);
    kv_begin(edge->kv, &grant);
    assert_int_equal(kv_patch(edge->kv, &key, 1, (struct bytes){(const void *)"new", 3}), 0);
    assert_int_equal(kv_get(edge->kv, &key, &value), 0);
    assert_int_equal(value.size, 4);
    assert_memory_equal(value.data, "\0new", 4);
    assert_int_equal(kv_put(edge->kv, &key, (struct bytes){(const void *)"first", 5}), 0);
    check_row(edge, &key, "first");
    assert_int_equal(kv_patch(edge->kv, &key, 2, (struct bytes){(const void *)"XY", 2}), 0);
    check_row(edge, &key, "fiXYt");
    assert_int_equal(kv_delete(edge->kv, &key), 0);
    assert_int_equal(kv_get(edge->kv, &key, &value), -ERR_NOT_FOUND);
    assert_int_equal(kv_put(edge->kv, &key, (struct bytes){(const void *)"second", 6}), 0);
    assert_int_equal(kv_patch(edge->kv, &key, 4, (struct bytes){(const void *)"12", 2}), 0);
    assert_int_equal(kv_patch(edge->kv, &key, 6, (struct bytes){(const void *)"3", 1}), 0);
    check_row(edge, &key, "seco123");
    (void)kv_commit(edge->kv);
    check_row(edge, &key, "seco123");
    uint64_t position = kv_seal(edge->kv);
    assert_int_equal(kv_admit(edge->kv, KV_CLASS_CONTROL, &need, &grant), 0);
    kv_begin(edge->kv, &grant);
    (void)kv_commit(edge->kv); /* of nothing */
    assert_int_equal(kv_seal(edge->kv), position);
    edge_free(edge);
}

static bool unreadable;

static int next_unreadable(struct kv_base *base, const struct kv_key *key, bool inclusive,
                           struct kv_key *ret_key, struct bytes *ret_value) {
    return unreadable ? -ERR_CORRUPT : kv_mem_ops.next(base, key, inclusive, ret_key, ret_value);
}

/* A walk over a base that cannot be read stays where it is. */
static void test_unreadable_base(void **state) {
    static struct kv_base_ops ops;
    struct edge *edge = edge_new(5);
    struct kv_key from = edge_key(3), to = edge_key(9);
    struct kv_cursor cursor;
    struct bytes value;

    (void)state;
    ops = kv_mem_ops;
    ops.next = next_unreadable;
    edge->options.base = &ops;
    reopen(edge);
    put_sealed(edge, 5, 8);
    kv_cursor_init(&cursor, &from, &to);
    unreadable = true;
    assert_int_equal(kv_next(edge->kv, &cursor, &value), -ERR_CORRUPT);
    assert_memory_equal(&cursor.key, &from, sizeof from);
    assert_true(cursor.inclusive);
    unreadable = false;
    assert_int_equal(kv_next(edge->kv, &cursor, &value), 0);
    edge_free(edge);
}

/* The longest record is taken, one that is a byte longer never. */
static void test_longest_record(void **state) {
    struct edge *edge = edge_new(6);
    size_t longest = ring_record_bytes_max(EDGE_RING_BYTES) - sizeof(struct log_record);
    struct kv_need need = {.rows = 1, .value_bytes = 8, .record_bytes = (uint32_t)longest};
    struct kv_grant grant;

    (void)state;
    assert_int_equal(kv_admit(edge->kv, KV_CLASS_CONTROL, &need, &grant), 0);
    need.record_bytes++;
    assert_int_equal(kv_admit(edge->kv, KV_CLASS_CONTROL, &need, &grant), -ERR_INVALID);
    edge_free(edge);
}

/* The log takes what fills it to the last byte of what its sync points may need. */
static void test_log_to_the_byte(void **state) {
    struct edge *edge = edge_new(7);
    const struct kv *kv = edge->kv;

    (void)state;
    for (uint64_t id = 0; id < 20; id++) {
        put_sealed(edge, id, 100);
    }
    uint64_t cost = disk_log_cost(&kv->log, 0, kv->ring.head - kv->ring.start.offset);
    uint64_t rest = kv->log.region_bytes - disk_log_used_bytes(&kv->log) - cost;
    assert_true(kv_log_has_room(kv, kv->ring.head, rest));
    assert_false(kv_log_has_room(kv, kv->ring.head, rest + 1));
    edge_free(edge);
}

/* A batch that is as long as its buffer is found again. */
static void test_longest_batch(void **state) {
    enum { RECORDS = 44, RECORD_BYTES = 1096, ROWS = 8, ROW_BYTES = 1638 };
    const size_t put_bytes = KV_ROW_RECORD_BYTES - 2;
    const struct kv_need need = {
        .rows = ROWS, .value_bytes = ROWS * ROW_BYTES, .record_bytes = ROWS * ROW_BYTES};
    struct edge *edge = edge_new(8);
    struct kv_grant grant;
    uint64_t id = 0;

    (void)state;
    while (id < RECORDS) {
        put_sealed(edge, id++, RECORD_BYTES - sizeof(struct log_record) - put_bytes);
    }
    assert_int_equal(kv_admit(edge->kv, KV_CLASS_CONTROL, &need, &grant), 0);
    kv_begin(edge->kv, &grant);
    for (size_t row = 0; row < ROWS; row++) {
        struct kv_key key = edge_key(id++);
        struct bytes value = {edge_content, ROW_BYTES - put_bytes};

        assert_int_equal(kv_put(edge->kv, &key, value), 0);
    }
    (void)kv_commit(edge->kv);
    (void)kv_seal(edge->kv);
    assert_int_equal(edge->kv->ring.head, edge->kv->log.payload_bytes_max);
    edge_settle(edge, false);
    edge_power(edge);
    assert_int_equal(edge_open(edge), 0);
    while (id > 0) {
        assert_true(edge_has(edge, --id));
    }
    edge_free(edge);
}

/* A walk passes all deleted rows at once, or so many as it was told; then it wakes its owner. */
static void test_walk_over_deleted_rows(void **state) {
    enum { ROWS = 100, SKIPS = 9 };
    struct edge *edge = edge_new(6);
    struct kv_key from = edge_key(0), to = edge_key(ROWS + 1);
    const struct kv_need need = edge_need(0);
    struct kv_cursor cursor;
    struct bytes value;
    struct kv_grant grant;
    int pending = 0;
    int r;

    (void)state;
    for (uint64_t id = 1; id <= ROWS; id++) {
        struct kv_key key = edge_key(id);

        put_sealed(edge, id, 8);
        if (id < ROWS) {
            assert_int_equal(kv_admit(edge->kv, KV_CLASS_CONTROL, &need, &grant), 0);
            kv_begin(edge->kv, &grant);
            assert_int_equal(kv_delete(edge->kv, &key), 0);
            (void)kv_commit(edge->kv);
        }
    }
    (void)kv_seal(edge->kv);
    struct kv_key last = edge_key(ROWS);
    kv_cursor_init(&cursor, &from, &to);
    assert_int_equal(kv_next(edge->kv, &cursor, &value), 0);
    assert_int_equal(kv_key_compare(&cursor.key, &last), 0);
    kv_cursor_init(&cursor, &from, &to);
    cursor.skips_max = SKIPS;
    edge->woken = false;
    while ((r = kv_next(edge->kv, &cursor, &value)) == -ERR_PENDING) {
        assert_true(edge->woken);
        edge->woken = false;
        pending++;
    }
    assert_int_equal(r, 0);
    assert_int_equal(kv_key_compare(&cursor.key, &last), 0);
    assert_in_range(pending, ROWS / SKIPS - 2, ROWS / SKIPS);
    edge_free(edge);
}

/* What a start finds in the base is no part of the log any more, though the superblock that says so
 * was not written. */
static void test_cut_before_the_superblock(void **state) {
    struct edge *edge = edge_new(9);

    (void)state;
    edge->options.checkpoint_ns = NS_PER_S;
    reopen(edge);
    for (uint64_t id = 0; id < 20; id++) {
        put_sealed(edge, id, 1000);
    }
    for (int i = 0; i < EDGE_TURNS_MAX && edge->kv->checkpoint.stage != CHECKPOINT_SUPERBLOCK_FLUSH;
         i++) {
        memory_env_advance(edge->world, NS_PER_MS);
        (void)memory_env_pump(edge->world, 1);
        kv_step(edge->kv);
    }
    assert_int_equal(edge->kv->checkpoint.stage, CHECKPOINT_SUPERBLOCK_FLUSH);
    assert_true(disk_log_used_bytes(&edge->kv->log) > 0);
    edge_kill(edge);
    edge->options.checkpoint_ns = 0;
    assert_int_equal(edge_open(edge), 0);
    edge_check(edge);
    assert_int_equal(disk_log_used_bytes(&edge->kv->log), 0);
    edge_free(edge);
}

static const struct env_ops *counted_ops;
static size_t opened;

static int open_counted(struct env *env, const char *path, unsigned flags,
                        struct env_file **ret_file) {
    opened++;
    return counted_ops->file_open(env, path, flags, ret_file);
}

/* A start that goes to the base several times, as its memory is small, looks at the log once before
 * it does so for the first time. */
static void test_one_look(void **state) {
    static struct env_ops ops;
    struct edge *edge = edge_with_log(10, 8 * MIB);
    struct env *env = edge->options.env;

    (void)state;
    edge->options.changes_bytes_max = 4 * MIB;
    reopen(edge);
    kv_mem_store_full(edge->store, true);
    for (uint64_t id = 0; id < 2000; id++) {
        put_sealed(edge, id, 500);
        edge_turn(edge, 100 * NS_PER_MS);
    }
    edge_settle(edge, false);
    edge_kill(edge);
    kv_mem_store_full(edge->store, false);
    edge->options.changes_bytes_max = 256 * KIB;
    counted_ops = env->ops;
    ops = *env->ops;
    ops.file_open = open_counted;
    env->ops = &ops;
    assert_int_equal(edge_open(edge), 0);
    env->ops = counted_ops;
    assert_true(counters_of(edge).checkpoint_rows > 1000);
    assert_int_equal(opened, 2);
    edge_free(edge);
}

/* A start with less memory than it takes has room for the rows of each outcome of the log, at
 * whichever of them that begins to be too little. */
static void test_outcomes_of_the_log(void **state) {
    enum { ROWS = 1600, OUTCOMES = 64, SESSIONS = 8 };
    struct edge *edge = edge_with_log(11, 8 * MIB);
    size_t bytes[OUTCOMES];

    (void)state;
    edge->options.changes_bytes_max = 4 * MIB;
    reopen(edge);
    kv_mem_store_full(edge->store, true);
    for (uint64_t id = 0; id < ROWS; id++) {
        put_sealed(edge, id, 50);
        if (id % 64 == 0) {
            edge_settle(edge, false);
        }
    }
    for (uint64_t i = 0; i < OUTCOMES; i++) {
        edge->options.changes_bytes_max = 4 * MIB;
        reopen(edge);
        assert_int_equal(edge_outcome(edge, 1 + i % SESSIONS, 1 + i / SESSIONS, 1), 0);
        edge->options.changes_bytes_max = 256 * KIB;
        reopen(edge);
        edge_check(edge);
        bytes[i] = changes_pool_bytes(edge->kv->pool);
    }
    assert_true(bytes[0] < bytes[OUTCOMES - 1]);
    edge_free(edge);
}

/* All of a file, to or from memory. */
static void log_copy(struct edge *edge, enum env_io_kind kind, void *copy, size_t size) {
    struct env *env = edge->options.env;
    struct env_io io = {.kind = kind, .buffer = copy, .size = size};

    assert_int_equal(env->ops->file_open(env, "t/log", ENV_FILE_DIRECT, &io.file), 0);
    assert_int_equal(env->ops->io_run(env, &io), 0);
    env->ops->file_close(io.file);
}

/* Only the log was put back from a copy, and the base holds more: the line names what can't be read
 * where that may be why, and nothing else. */
static void test_log_behind_its_base(void **state) {
    const size_t log_bytes = 8 * EDGE_RING_BYTES;
    const char *line = "t: the disk log ends at record 1, the base holds 2";
    uint8_t *log = aligned_alloc(BLOCK_BYTES, log_bytes);
    struct edge *edge = edge_new(18);

    (void)state;
    assert_non_null(log);
    put_sealed(edge, 1, 100);
    edge_settle(edge, false);
    log_copy(edge, ENV_IO_READ, log, log_bytes);
    put_sealed(edge, 2, 100);
    kv_checkpoint_want(edge->kv);
    edge_settle(edge, true);
    edge_kill(edge);
    log_copy(edge, ENV_IO_WRITE, log, log_bytes);
    assert_int_equal(edge_open(edge), -ERR_CORRUPT);
    assert_memory_equal(edge->problem, line, strlen(line));
    assert_non_null(strstr(edge->problem, "put the right one back, or restore DIR from a backup"));
    memory_env_block_lose(edge->world, "t/log", DISK_LOG_REGION_START + BLOCK_BYTES);
    assert_int_equal(edge_open(edge), -ERR_IO);
    assert_memory_equal(edge->problem, line, strlen(line));
    assert_non_null(strstr(edge->problem, ": byte 12288 of it cannot be read"));
    free(log);
    edge_free(edge);
}

/* DIR was put back from a copy, and went on differently: a ring of the first life that begins right
 * where the disk log of the second ends is not taken. */
static void test_ring_of_another_life(void **state) {
    const size_t log_bytes = 8 * EDGE_RING_BYTES;
    const size_t ring_bytes = ring_region_bytes(EDGE_RING_BYTES, 0);
    uint8_t *log = aligned_alloc(BLOCK_BYTES, log_bytes);
    uint8_t *ring = malloc(ring_bytes);
    struct edge *edge = edge_new(12);
    struct env_shared *shared;

    (void)state;
    assert_true(log && ring);
    put_sealed(edge, 1, 100);
    edge_settle(edge, false);
    log_copy(edge, ENV_IO_READ, log, log_bytes);
    put_sealed(edge, 2, 100);
    edge_settle(edge, false);
    edge_kill(edge);
    memcpy(ring, edge_region(edge, &shared), ring_bytes);
    edge->options.env->ops->shared_close(shared);
    edge_power(edge);
    log_copy(edge, ENV_IO_WRITE, log, log_bytes);
    assert_int_equal(edge_open(edge), 0);
    put_sealed(edge, 3, 100);
    edge_settle(edge, false);
    assert_int_equal(kv_position(edge->kv), 2);
    edge_kill(edge);
    memcpy(edge_region(edge, &shared), ring, ring_bytes);
    edge->options.env->ops->shared_close(shared);
    assert_int_equal(edge_open(edge), -ERR_CORRUPT);
    assert_non_null(strstr(edge->problem, "disagree"));
    free(log);
    free(ring);
    edge_free(edge);
}

/* A ring whose size is changed is refused for its last record, also where it begins with what the
 * disk log has and, as earlier versions left it, does not say what its newest record is. */
static void test_other_size_far_behind(void **state) {
    struct edge *edge = edge_with_log(16, 16 * EDGE_RING_BYTES);
    struct ring_header *header;
    struct ring_start starts[2];
    struct env_shared *shared;

    (void)state;
    memcpy(starts, edge->kv->ring.header->starts, sizeof starts);
    for (uint64_t id = 1; id <= 3; id++) {
        put_sealed(edge, id, 100);
    }
    edge_settle(edge, false);
    put_sealed(edge, 4, 100);
    edge_kill(edge);
    header = (void *)edge_region(edge, &shared);
    memcpy(header->starts, starts, sizeof starts);
    memset(header->newest, 0, sizeof header->newest);
    edge->options.env->ops->shared_close(shared);
    edge->options.ring_bytes = 2 * EDGE_RING_BYTES;
    assert_int_equal(edge_open(edge), -ERR_IN_USE);
    edge->options.ring_bytes = EDGE_RING_BYTES;
    assert_int_equal(edge_open(edge), 0);
    assert_int_equal(kv_position(edge->kv), 4);
    assert_true(edge_has(edge, 4));
    edge_free(edge);
}

/* A ring that is emptied has nothing open, whatever was before. */
static void test_ring_reset(void **state) {
    struct edge *edge = edge_new(13);
    struct ring *ring = &edge->kv->ring;

    (void)state;
    put_sealed(edge, 1, 100);
    assert_int_equal(edge_put(edge, KV_CLASS_CONTROL, 2, 100), 0);
    assert_true(ring->open_bytes > 0);
    ring_reset(ring, 7, 9);
    assert_int_equal(ring->open_bytes, 0);
    assert_int_equal(ring->open_operations, 0);
    assert_int_equal(ring_used_bytes(ring), 0);
    assert_int_equal(ring->start.position, 8);
    edge_free(edge);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idle),
        cmocka_unit_test(test_checkpoint_of_what_is_synced),
        cmocka_unit_test(test_checkpoint_takes_one_sync_point),
        cmocka_unit_test(test_ring_start_beyond_all_totals),
        cmocka_unit_test(test_full_since),
        cmocka_unit_test(test_level_of_outcomes),
        cmocka_unit_test(test_data_area),
        cmocka_unit_test(test_failure_is_said),
        cmocka_unit_test(test_failure_between_waiters),
        cmocka_unit_test(test_staged_rows),
        cmocka_unit_test(test_unreadable_base),
        cmocka_unit_test(test_walk_over_deleted_rows),
        cmocka_unit_test(test_longest_record),
        cmocka_unit_test(test_log_to_the_byte),
        cmocka_unit_test(test_longest_batch),
        cmocka_unit_test(test_cut_before_the_superblock),
        cmocka_unit_test(test_one_look),
        cmocka_unit_test(test_outcomes_of_the_log),
        cmocka_unit_test(test_log_behind_its_base),
        cmocka_unit_test(test_ring_of_another_life),
        cmocka_unit_test(test_other_size_far_behind),
        cmocka_unit_test(test_ring_reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
