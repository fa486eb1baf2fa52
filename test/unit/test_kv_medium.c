/* The log on a medium that fails, forgets, is late or cut short, and what a start refuses of bytes
 * that nobody wrote so. Each row was a way to lose acknowledged operations, to hang, to end in an
 * assertion, or a start refused with no way on. */
#include "unit.h"
#include "base/crc32c.h"
#include "kv/kv_internal.h"
#include "kv_edge.h"
#include <inttypes.h>
#include <stdio.h>

static void put_sealed(struct edge *edge, uint64_t first, uint64_t count) {
    for (uint64_t id = first; id < first + count; id++) {
        assert_int_equal(edge_put(edge, KV_CLASS_REQUEST, id, 100), 0);
        (void)kv_seal(edge->kv);
    }
}

static void assert_rows(struct edge *edge, uint64_t first, uint64_t count, bool there) {
    for (uint64_t id = first; id < first + count; id++) {
        assert_int_equal(edge_has(edge, id), there);
    }
}

/* Until the sync point is at that stage, with its I/O in flight. */
static void step_to(struct edge *edge, enum sync_stage stage) {
    kv_sync_want(edge->kv);
    kv_step(edge->kv);
    for (int i = 0; i < EDGE_TURNS_MAX && edge->kv->sync.stage != stage; i++) {
        (void)memory_env_pump(edge->world, 1);
        kv_step(edge->kv);
    }
    assert_int_equal(edge->kv->sync.stage, stage);
    assert_true(edge->kv->io_busy);
}

static void close_stopped(struct edge *edge) {
    assert_int_equal(edge_stop(edge), 0);
    kv_close(edge->kv);
    edge->kv = NULL;
}

static uint64_t log_place(const struct edge *edge, uint64_t offset) {
    return DISK_LOG_REGION_START + offset % edge->kv->log.region_bytes;
}

/* A process is killed between the log's write and its flush; the next start's flush fails, and the
 * disk forgets what it had not flushed. The ring has it still. */
static void test_flush_of_a_start_fails(void **state) {
    struct edge *edge = edge_new(1);

    (void)state;
    put_sealed(edge, 0, 10);
    step_to(edge, SYNC_FLUSH);
    edge_kill(edge);
    memory_env_fail_flushes(edge->world, 1);
    assert_int_equal(edge_open(edge), -ERR_IO);
    memory_env_forget(edge->world);
    assert_int_equal(edge_open(edge), 0);
    assert_rows(edge, 0, 10, true);
    edge_free(edge);
}

/* A start flushes its superblock, and before that the log if the ring lets go of what is there. */
static void test_flushes_of_a_start(void **state) {
    (void)state;
    for (unsigned cut = 0; cut < 2; cut++) {
        struct edge *edge = edge_new(1);

        put_sealed(edge, 0, 10);
        if (cut) {
            step_to(edge, SYNC_FLUSH);
        } else {
            edge_settle(edge, false);
        }
        edge_kill(edge);
        unsigned flushes = memory_env_flushes(edge->world);
        assert_int_equal(edge_open(edge), 0);
        assert_int_equal(memory_env_flushes(edge->world), flushes + 1 + cut);
        assert_rows(edge, 0, 10, true);
        edge_free(edge);
    }
}

/* What a killed process had still with the medium does not come over what its successor writes. */
static void test_late_write(void **state) {
    struct edge *edge = edge_new(2);

    (void)state;
    put_sealed(edge, 0, 10);
    step_to(edge, SYNC_RECORDS);
    memory_env_kill_late(edge->world);
    kv_abandon(edge->kv);
    edge->kv = NULL;
    assert_int_equal(edge_open(edge), 0);
    put_sealed(edge, 10, 10);
    edge_settle(edge, false);
    memory_env_land(edge->world);
    edge_power(edge);
    assert_int_equal(edge_open(edge), 0);
    assert_rows(edge, 0, 20, true);
    edge_free(edge);
}

/* As XFS does when it is full. */
static void test_start_where_no_space_is_given(void **state) {
    struct edge *edge = edge_new(2);

    (void)state;
    put_sealed(edge, 0, 10);
    edge_settle(edge, false);
    memory_env_kill(edge->world);
    kv_abandon(edge->kv);
    edge->kv = NULL;
    memory_env_refuse_space(edge->world);
    assert_int_equal(edge_open(edge), 0);
    assert_rows(edge, 0, 10, true);
    edge_free(edge);
}

static void test_cut_short(void **state) {
    struct edge *edge = edge_new(3);

    (void)state;
    put_sealed(edge, 0, 10);
    close_stopped(edge);
    uint64_t size = memory_env_size(edge->world, "t/log");
    memory_env_resize(edge->world, "t/log", size - 1);
    assert_int_equal(edge_open(edge), -ERR_CORRUPT);
    assert_non_null(strstr(edge->problem, "t/log was cut short"));
    memory_env_resize(edge->world, "t/log", size);
    assert_int_equal(edge_open(edge), 0);
    edge_free(edge);
}

static const struct env_ops *plain_ops;
static uint64_t flushed_bytes;

static int run_noted(struct env *env, struct env_io *io) {
    int r = plain_ops->io_run(env, io);

    return r == 0 && io->kind == ENV_IO_SYNC ? plain_ops->file_size(io->file, &flushed_bytes) : r;
}

/* A first start without power at each of its operations: what was written is there, but the file is
 * shorter if its size was not flushed. The next start makes the log. */
static void test_first_start_cut_short(void **state) {
    static struct env_ops ops;
    int cuts = 0;
    int r = -ERR_CLOSED;

    (void)state;
    for (; r == -ERR_CLOSED; cuts++) {
        struct edge *edge = edge_new(3);
        struct env *env = edge->options.env;

        edge_kill(edge);
        edge->options.directory = "u";
        edge->options.shared_name = "other";
        plain_ops = env->ops;
        ops = *env->ops;
        ops.io_run = run_noted;
        env->ops = &ops;
        flushed_bytes = 0;
        memory_env_crash_after(edge->world, (uint64_t)cuts);
        r = edge_open(edge);
        env->ops = plain_ops;
        edge_kill(edge);
        uint64_t size = memory_env_size(edge->world, "u/log");
        if (flushed_bytes < size) {
            memory_env_resize(edge->world, "u/log", size / 2);
        }
        assert_int_equal(edge_open(edge), 0);
        edge_free(edge);
    }
    assert_int_equal(r, 0);
    assert_true(cuts > 6); /* a place, zeros, superblocks, and their flushes */
}

static uint64_t forged;
static size_t forged_at;

static void superblock_forge(struct log_superblock *superblock) {
    memcpy((uint8_t *)superblock + forged_at, &forged, sizeof forged);
}

/* Totals that no log comes to, under a right checksum. */
static void test_forged_superblock(void **state) {
    static const size_t fields[] = {offsetof(struct log_superblock, tail_offset),
                                    offsetof(struct log_superblock, tail_position),
                                    offsetof(struct log_superblock, term),
                                    offsetof(struct log_superblock, sequence)};
    static const uint64_t values[] = {UINT64_MAX, UINT64_MAX / BLOCK_BYTES * BLOCK_BYTES};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(fields) * ARRAY_SIZE(values); i++) {
        struct edge *edge = edge_new(4);

        put_sealed(edge, 0, 10);
        edge_kill(edge);
        forged_at = fields[i / ARRAY_SIZE(values)];
        forged = values[i % ARRAY_SIZE(values)];
        edge_superblocks_change(edge, superblock_forge);
        assert_int_equal(edge_open(edge), -ERR_CORRUPT);
        assert_non_null(strstr(edge->problem, "t/log: its superblock"));
        edge_free(edge);
    }
}

/* Likewise in both places that say where the ring starts. */
static void test_forged_start(void **state) {
    static const size_t fields[] = {
        offsetof(struct ring_start, sequence), offsetof(struct ring_start, offset),
        offsetof(struct ring_start, position), offsetof(struct ring_start, data_start)};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        struct edge *edge = edge_new(5);
        struct env_shared *shared;

        put_sealed(edge, 0, 10);
        edge_kill(edge);
        struct ring_header *header = (void *)edge_region(edge, &shared);
        for (size_t k = 0; k < ARRAY_SIZE(header->starts); k++) {
            struct ring_start *start = &header->starts[k];

            store_le64((uint8_t *)start + fields[i], UINT64_MAX - 7);
            start->crc = crc32c(0, start, offsetof(struct ring_start, crc));
        }
        edge->options.env->ops->shared_close(shared);
        assert_int_equal(edge_open(edge), -ERR_CORRUPT);
        assert_non_null(strstr(edge->problem, "the ring ring is damaged"));
        edge_free(edge);
    }
}

/* The first record of the ring that a killed process left, changed but whole. */
static int open_with_record(uint64_t seed, void (*change)(struct log_record *), char problem[256]) {
    struct edge *edge = edge_new(seed);
    struct env_shared *shared;

    put_sealed(edge, 0, 1);
    edge_kill(edge);
    struct ring_header *header = (void *)edge_region(edge, &shared);
    struct log_record *record = (void *)((uint8_t *)header + BLOCK_BYTES);
    change(record);
    record->crc = record_crc(record, record + 1, 0);
    for (size_t i = 0; i < ARRAY_SIZE(header->newest); i++) {
        struct ring_newest *newest = &header->newest[i];

        newest->position = 1;
        newest->end = record_padded(record->length);
        newest->check = crc32c(LOG_RECORD_MAGIC, newest, offsetof(struct ring_newest, check));
    }
    edge->options.env->ops->shared_close(shared);
    int r = edge_open(edge);
    if (r == 0) {
        edge_settle(edge, false);
    }
    memcpy(problem, edge->problem, sizeof edge->problem);
    edge_free(edge);
    return r;
}

static void forge_term(struct log_record *record) {
    record->term = UINT64_MAX;
}

static void forge_engine_row(struct log_record *record) {
    uint8_t *key = (uint8_t *)(record + 1) + sizeof(struct log_operation);

    key[0] = KV_SPACE_ENGINE;
}

/* As long as the ring, and longer than a batch of the disk log. */
static void forge_length(struct log_record *record) {
    struct kv_key key = edge_key(7);
    uint8_t *at = (uint8_t *)(record + 1);

    record->operation_count = 0;
    while ((size_t)(at - (uint8_t *)record) < EDGE_RING_BYTES - 3000) {
        at += record_write_put(at, &key, (struct bytes){edge_content, sizeof edge_content});
        record->operation_count++;
    }
    record->length = (uint32_t)(at - (uint8_t *)record);
}

static void test_forged_records(void **state) {
    char problem[256];

    (void)state;
    assert_int_equal(open_with_record(6, forge_term, problem), -ERR_CORRUPT);
    assert_non_null(strstr(problem, "record 1 is of term"));
    assert_int_equal(open_with_record(7, forge_engine_row, problem), -ERR_MALFORMED);
    assert_non_null(strstr(problem, "record 1 cannot be replayed"));
    assert_int_equal(open_with_record(8, forge_length, problem), -ERR_CORRUPT);
    assert_non_null(strstr(problem, "record 1 of 1 is not whole"));
}

static int waited;

static void wait_done(struct kv_waiter *waiter, int result) {
    (void)waiter;
    waited = result;
}

/* Nobody waits for a record that there is not. */
static void test_sync_of_no_record(void **state) {
    struct edge *edge = edge_new(9);
    struct kv_waiter waiter = {.done = wait_done};

    (void)state;
    put_sealed(edge, 0, 2);
    waited = 1;
    kv_sync(edge->kv, &waiter, 3);
    assert_int_equal(waited, -ERR_INVALID);
    assert_int_equal(edge_put(edge, KV_CLASS_REQUEST, 2, 100), 0);
    waited = 1;
    kv_sync(edge->kv, &waiter, 3);
    assert_int_equal(waited, 1);
    edge_settle(edge, false);
    assert_int_equal(waited, 0);
    edge_free(edge);
}

/* A stop that finds no room in the base leaves the last records to the log; they are missed when
 * the medium has lost them. */
static void test_stop_on_full_disk(void **state) {
    struct edge *edge = edge_new(10);

    (void)state;
    kv_mem_store_full(edge->store, true);
    put_sealed(edge, 0, 5);
    edge_settle(edge, false);
    put_sealed(edge, 5, 5);
    edge_settle(edge, false);
    uint64_t last = log_place(edge, edge->kv->log.head - BLOCK_BYTES);
    uint16_t losses = kv_losses(edge->kv);
    close_stopped(edge);
    assert_int_equal(edge_open(edge), 0);
    assert_rows(edge, 0, 10, true);
    close_stopped(edge);
    assert_int_equal(memory_env_flip(edge->world, "t/log", last + 100), 0);
    assert_int_equal(edge_open(edge), -ERR_CORRUPT);
    assert_non_null(strstr(edge->problem, "it ends at record 5"));
    edge->options.accept_loss = true;
    assert_int_equal(edge_open(edge), 0);
    assert_non_null(strstr(edge->line, "behind record 5 is lost"));
    assert_int_equal(kv_losses(edge->kv), losses + 1);
    assert_rows(edge, 0, 5, true);
    assert_rows(edge, 5, 5, false);
    edge->options.accept_loss = false;
    put_sealed(edge, 20, 1);
    edge_settle(edge, false);
    edge_power(edge);
    assert_int_equal(edge_open(edge), 0);
    assert_rows(edge, 20, 1, true);
    edge_free(edge);
}

/* One superblock of two: the start goes by the other, and writes it anew. It may have been the one
 * that told of a loss, so there is one. */
static void test_unreadable_superblock(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 4; i++) {
        struct edge *edge = edge_new(11);
        uint64_t place = i % 2 * BLOCK_BYTES;

        put_sealed(edge, 0, 10);
        if (i < 2) {
            kv_checkpoint_want(edge->kv);
            edge_settle(edge, true);
        }
        uint64_t term = kv_term(edge->kv);
        uint16_t losses = kv_losses(edge->kv);
        edge_kill(edge);
        memory_env_block_lose(edge->world, "t/log", place);
        assert_int_equal(edge_open(edge), 0);
        assert_non_null(strstr(edge->line, "one of the superblocks"));
        assert_rows(edge, 0, 10, true);
        assert_true(kv_term(edge->kv) > term && kv_losses(edge->kv) == losses + 1);
        edge_kill(edge);
        assert_int_equal(edge_open(edge), 0);
        assert_int_equal(kv_losses(edge->kv), losses + 1);
        edge_kill(edge);
        memory_env_block_lose(edge->world, "t/log", 0);
        memory_env_block_lose(edge->world, "t/log", BLOCK_BYTES);
        assert_int_equal(edge_open(edge), -ERR_IO);
        assert_non_null(strstr(edge->problem, "t/log: its superblock, at byte"));
        edge_free(edge);
    }
}

/* Two sync points, and five records that only the ring has. What is unreadable: */
enum { FIRST_BATCH, SECOND_BATCH, BEHIND, FAR_BEHIND, PLACES };

static struct edge *edge_unreadable(int what, char byte[32]) {
    struct edge *edge = edge_new(12);

    put_sealed(edge, 0, 5);
    edge_settle(edge, false);
    put_sealed(edge, 5, 5);
    edge_settle(edge, false);
    put_sealed(edge, 10, 5);
    const uint64_t blocks_back[PLACES] = {2, 1, 0, UINT64_MAX - 3};
    uint64_t place =
        log_place(edge, edge->kv->log.head - blocks_back[what] * (uint64_t)BLOCK_BYTES);

    (void)snprintf(byte, 32, "byte %" PRIu64 " ", place);
    memory_env_block_lose(edge->world, "t/log", place);
    return edge;
}

/* Behind what the ring begins with, nothing is missed. */
static void test_unreadable_log_and_ring(void **state) {
    char byte[32];

    (void)state;
    for (int what = 0; what < PLACES; what++) {
        struct edge *edge = edge_unreadable(what, byte);

        edge_kill(edge);
        int r = edge_open(edge);
        assert_int_equal(r, what >= BEHIND ? 0 : -ERR_IO);
        if (r == 0) {
            assert_rows(edge, 0, 15, true);
        } else {
            assert_non_null(strstr(edge->problem, byte));
            assert_non_null(strstr(edge->problem, "t/log"));
        }
        edge_free(edge);
    }
}

/* Without a ring nobody knows what was there: a loss that has to be accepted, at the log's end. */
static void test_unreadable_log(void **state) {
    char byte[32];

    (void)state;
    for (int what = 0; what < PLACES; what++) {
        struct edge *edge = edge_unreadable(what, byte);
        uint64_t kept = what == SECOND_BATCH ? 5 : 10;
        uint16_t losses = kv_losses(edge->kv);

        edge_power(edge);
        assert_int_equal(edge_open(edge), -ERR_IO);
        assert_non_null(strstr(edge->problem, byte));
        assert_int_equal(strstr(edge->problem, "--accept-loss") != NULL, what != FIRST_BATCH);
        edge->options.accept_loss = true;
        int r = edge_open(edge);
        assert_int_equal(r, what == FIRST_BATCH ? -ERR_IO : 0);
        if (r == 0) {
            assert_int_equal(kv_losses(edge->kv), losses + 1);
            assert_rows(edge, 0, kept, true);
            assert_rows(edge, kept, 15 - kept, false);
            edge->options.accept_loss = false;
            put_sealed(edge, 20, 200);
            edge_settle(edge, false);
            edge_power(edge);
            assert_int_equal(edge_open(edge), 0);
            assert_rows(edge, 20, 200, true);
        }
        edge_free(edge);
    }
}

/* Behind a stop the superblock says where the log ends. */
static void test_unreadable_log_and_stop(void **state) {
    (void)state;
    for (int full = 0; full < 2; full++) {
        struct edge *edge = edge_new(13);

        kv_mem_store_full(edge->store, full);
        put_sealed(edge, 0, 10);
        edge_settle(edge, false);
        uint64_t behind = log_place(edge, edge->kv->log.head);
        close_stopped(edge);
        memory_env_block_lose(edge->world, "t/log", behind);
        assert_int_equal(edge_open(edge), 0);
        assert_rows(edge, 0, 10, true);
        edge_free(edge);
    }
}

static void assert_sync_points(const struct edge *edge, uint64_t count, uint64_t unasked) {
    struct kv_counters counters;

    kv_counters_get(edge->kv, &counters);
    assert_int_equal(counters.sync_points, count);
    assert_int_equal(counters.sync_points_unasked, unasked);
}

/* Half a ring takes one sync point, and so does a checkpoint, whatever begins it. Nobody has asked
 * for these, as who waits for a record does. */
static void test_sync_points_of_checkpoint(void **state) {
    (void)state;
    for (int half = 0; half < 2; half++) {
        struct kv_waiter waiter = {.done = wait_done};
        struct edge *edge = edge_new(14);

        put_sealed(edge, 0, half ? 180 : 10);
        if (!half) {
            kv_checkpoint_want(edge->kv);
        }
        for (int i = 0; i < 200; i++) {
            edge_turn(edge, 0);
        }
        assert_int_equal(kv_synced_position(edge->kv), half ? 180 : 10);
        assert_sync_points(edge, 1, 1);
        put_sealed(edge, 200, 10);
        kv_checkpoint_want(edge->kv);
        edge_settle(edge, true);
        assert_sync_points(edge, 2, 2);
        put_sealed(edge, 210, 1);
        kv_sync(edge->kv, &waiter, kv_position(edge->kv));
        edge_settle(edge, false);
        assert_sync_points(edge, 3, 2);
        edge_free(edge);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flush_of_a_start_fails),
        cmocka_unit_test(test_flushes_of_a_start),
        cmocka_unit_test(test_late_write),
        cmocka_unit_test(test_start_where_no_space_is_given),
        cmocka_unit_test(test_cut_short),
        cmocka_unit_test(test_first_start_cut_short),
        cmocka_unit_test(test_forged_superblock),
        cmocka_unit_test(test_forged_start),
        cmocka_unit_test(test_forged_records),
        cmocka_unit_test(test_sync_of_no_record),
        cmocka_unit_test(test_stop_on_full_disk),
        cmocka_unit_test(test_unreadable_superblock),
        cmocka_unit_test(test_unreadable_log_and_ring),
        cmocka_unit_test(test_unreadable_log),
        cmocka_unit_test(test_unreadable_log_and_stop),
        cmocka_unit_test(test_sync_points_of_checkpoint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
