/* The engine at its edges: the end of the ring, a log, a memory and a table that are full, rings
 * that are damaged or another log's. Each row was a way to lose acknowledged operations, or to
 * hang. */
#include "unit.h"
#include "kv/log_format.h"
#include "kv/record.h"
#include "kv_edge.h"
#include "kv/windows.h"
#include <string.h>

/* A transaction that is given up where the ring ends, behind a filler, leaves nothing; neither does
 * one that finds an open record of an earlier, sealed one's count. A sync point, a kill and a start
 * find every record. */
static void test_end_of_ring(void **state) {
    (void)state;
    for (size_t size = 600; size < 1900; size += 37) {
        struct edge *edge = edge_new(size);
        struct kv_key key = edge_key(7);
        uint64_t count = 0;

        for (int lap = 0; lap < 400; lap++) {
            const struct kv_need need = edge_need(16);
            struct kv_grant grant;

            if (edge_put(edge, KV_CLASS_REQUEST, count, size) == 0) {
                count++;
                (void)kv_seal(edge->kv);
            }
            uint64_t position = kv_position(edge->kv);
            if (kv_admit(edge->kv, KV_CLASS_CONTROL, &need, &grant) == 0) {
                kv_begin(edge->kv, &grant);
                assert_int_equal(kv_put(edge->kv, &key, (struct bytes){edge_content, 16}), 0);
                kv_abort(edge->kv);
                assert_int_equal(kv_seal(edge->kv), position);
            }
            edge_check(edge);
            if (lap % 7 == 0) {
                edge_turn(edge, NS_PER_S);
            }
            if (lap % 40 == 0) {
                edge_kill(edge);
                assert_int_equal(edge_open(edge), 0);
                assert_int_equal(kv_position(edge->kv), position);
            }
        }
        for (uint64_t id = 0; id < count; id++) {
            assert_true(edge_has(edge, id));
        }
        edge_free(edge);
    }
}

/* A bit of a record that was acknowledged flips: the start says so, and goes on without it only
 * when it is told to, which counts as a loss. */
static void test_damaged_ring(void **state) {
    (void)state;
    for (uint64_t damaged = 0; damaged < 10; damaged++) {
        struct edge *edge = edge_new(damaged);
        struct env_shared *shared;

        for (uint64_t id = 0; id < 10; id++) {
            assert_int_equal(edge_put(edge, KV_CLASS_REQUEST, id, 100), 0);
            (void)kv_seal(edge->kv);
        }
        uint16_t losses = kv_losses(edge->kv);
        edge_kill(edge);
        size_t record = sizeof(struct log_record) + KV_ROW_RECORD_BYTES - 2 + 100;
        uint8_t *at =
            edge_region(edge, &shared) + BLOCK_BYTES + damaged * ((record + 7) & ~(size_t)7);
        at[60] ^= 4;
        edge->options.env->ops->shared_close(shared);
        assert_int_equal(edge_open(edge), -ERR_CORRUPT);
        assert_non_null(strstr(edge->problem, "the ring ring is damaged"));
        assert_non_null(strstr(edge->problem, "--accept-loss"));
        edge->options.accept_loss = true;
        assert_int_equal(edge_open(edge), 0);
        assert_int_equal(kv_losses(edge->kv), losses + 1);
        for (uint64_t id = 0; id < 10; id++) {
            assert_int_equal(edge_has(edge, id), id < damaged);
        }
        /* From then on it is a ring like any other. */
        edge->options.accept_loss = false;
        assert_int_equal(edge_put(edge, KV_CLASS_REQUEST, 100, 100), 0);
        (void)kv_seal(edge->kv);
        edge_kill(edge);
        assert_int_equal(edge_open(edge), 0);
        assert_true(edge_has(edge, 100));
        edge_free(edge);
    }
}

/* A bit of the ring's header flips, in each of its fields, or one of both starts: where the ring
 * holds what the disk log lacks, that is told as above; where it does not, nothing is lost. */
static void test_damaged_header(void **state) {
    static const struct {
        size_t at[2];
    } rows[] = {
        {{offsetof(struct ring_header, magic)}},
        {{offsetof(struct ring_header, format)}},
        {{offsetof(struct ring_header, crc)}},
        {{offsetof(struct ring_header, owner_id)}},
        {{offsetof(struct ring_header, boot_id)}},
        {{offsetof(struct ring_header, log_id)}},
        {{offsetof(struct ring_header, record_bytes)}},
        {{offsetof(struct ring_header, starts), offsetof(struct ring_header, starts[1])}},
    };

    (void)state;
    for (size_t row = 0; row < 2 * ARRAY_SIZE(rows); row++) {
        struct edge *edge = edge_new(row);
        const size_t *at = rows[row / 2].at;
        struct env_shared *shared;
        bool synced = row % 2 == 1;

        for (uint64_t id = 0; id < 10; id++) {
            assert_int_equal(edge_put(edge, KV_CLASS_REQUEST, id, 100), 0);
            (void)kv_seal(edge->kv);
        }
        if (synced) {
            edge_settle(edge, false);
        }
        uint16_t losses = kv_losses(edge->kv);
        edge_kill(edge);
        uint8_t *header = edge_region(edge, &shared);
        header[at[0]] ^= 4;
        header[at[1]] ^= at[1] > 0 ? 4 : 0;
        edge->options.env->ops->shared_close(shared);
        if (!synced) {
            assert_int_equal(edge_open(edge), -ERR_CORRUPT);
            assert_non_null(strstr(edge->problem, "the ring ring is damaged"));
            assert_non_null(strstr(edge->problem, "--accept-loss"));
            edge->options.accept_loss = true;
        }
        assert_int_equal(edge_open(edge), 0);
        assert_int_equal(kv_losses(edge->kv), losses + !synced);
        for (uint64_t id = 0; id < 10; id++) {
            assert_int_equal(edge_has(edge, id), synced);
        }
        edge_free(edge);
    }
}

/* An outcome of no session, in a record that is whole. */
static void test_outcome_of_no_session(void **state) {
    struct edge *edge = edge_new(11);
    struct env_shared *shared;

    (void)state;
    assert_int_equal(edge_outcome(edge, 3, 1, 1), 0);
    edge_kill(edge);
    struct log_record *record = (void *)(edge_region(edge, &shared) + BLOCK_BYTES);
    uint8_t *session = (uint8_t *)(record + 1) + sizeof(struct log_operation);
    assert_int_equal(load_le64(session), 3);
    store_le64(session, 0);
    record->crc = record_crc(record, record + 1, 0);
    edge->options.env->ops->shared_close(shared);
    assert_int_equal(edge_open(edge), -ERR_MALFORMED);
    assert_non_null(strstr(edge->problem, "record 1 cannot be replayed"));
    edge_free(edge);
}

/* As versions wrote it that did not note how long the ring is. */
static void forget_ring(struct log_superblock *superblock) {
    superblock->ring_log2 = 0;
}

/* The first batch of a long sync point is damaged, and others behind it say that it was durable. So
 * it is also for a start with a shorter ring, and where the length of the longest is not noted. */
static void test_damaged_log_and_shorter_ring(void **state) {
    (void)state;
    for (int noted = 0; noted < 2; noted++) {
        struct edge *edge = edge_with_log(12, 64 * MIB);

        edge_kill(edge);
        edge->options.ring_bytes = 8 * MIB;
        assert_int_equal(edge_open(edge), 0);
        for (int i = 0; i < 1900; i++) {
            assert_int_equal(edge_put(edge, KV_CLASS_REQUEST, 1, 1900), 0);
            (void)kv_seal(edge->kv);
        }
        assert_int_equal(kv_synced_position(edge->kv), 0);
        edge_settle(edge, false);
        assert_int_equal(edge_put(edge, KV_CLASS_REQUEST, 2, 8), 0);
        (void)kv_seal(edge->kv);
        edge_settle(edge, false);
        edge_power(edge);
        if (!noted) {
            edge_superblocks_change(edge, forget_ring);
        }
        assert_int_equal(memory_env_flip(edge->world, "t/log", DISK_LOG_REGION_START + 5000), 0);
        edge->options.ring_bytes = 64 * KIB;
        assert_int_equal(edge_open(edge), -ERR_CORRUPT);
        assert_non_null(strstr(edge->problem, "the disk log is damaged"));
        edge_free(edge);
    }
}

/* Many batches in a row are damaged behind their headers. */
static void test_many_damaged_batches(void **state) {
    struct edge *edge = edge_with_log(13, 8 * MIB);

    (void)state;
    for (uint64_t id = 0; id < 12; id++) {
        for (int i = 0; i < 3; i++) {
            assert_int_equal(edge_put(edge, KV_CLASS_REQUEST, id, 1900), 0);
        }
        (void)kv_seal(edge->kv);
        edge_settle(edge, false);
    }
    edge_power(edge);
    for (uint64_t id = 0; id < 10; id++) {
        uint64_t second = DISK_LOG_REGION_START + (2 * id + 1) * BLOCK_BYTES;

        assert_int_equal(memory_env_flip(edge->world, "t/log", second + 100), 0);
    }
    assert_int_equal(edge_open(edge), -ERR_CORRUPT);
    assert_non_null(strstr(edge->problem, "the disk log is damaged"));
    edge_free(edge);
}

/* The last of ten records says that it has more operations than it has, as earlier versions did. */
static void count_wrongly(struct edge *edge) {
    struct env_shared *shared;
    size_t bytes = (sizeof(struct log_record) + KV_ROW_RECORD_BYTES - 2 + 100 + 7) & ~(size_t)7;
    uint8_t *records = edge_region(edge, &shared) + BLOCK_BYTES;
    struct log_record *last = (void *)(records + 9 * bytes);
    const struct log_record *before = (const void *)(records + 8 * bytes);

    assert_int_equal(last->position, 10);
    last->operation_count += 3;
    last->crc = record_crc(last, last + 1, before->crc);
    edge->options.env->ops->shared_close(shared);
}

/* As of a log of format 1. */
static void make_older(struct log_superblock *superblock) {
    superblock->format = 1;
    superblock->counted_from = 0;
}

/* A record with a wrong count of operations is taken from a log of format 1, and is damage in
 * others; what is recorded from then on counts. */
static void test_older_log(void **state) {
    (void)state;
    for (int older = 0; older < 2; older++) {
        struct edge *edge = edge_new(9);

        for (uint64_t id = 0; id < 10; id++) {
            assert_int_equal(edge_put(edge, KV_CLASS_REQUEST, id, 100), 0);
            (void)kv_seal(edge->kv);
        }
        edge_kill(edge);
        count_wrongly(edge);
        if (older) {
            edge_superblocks_change(edge, make_older);
        }
        int r = edge_open(edge);
        assert_int_equal(r, older ? 0 : -ERR_MALFORMED);
        for (uint64_t id = 0; id < 10 && older; id++) {
            assert_true(edge_has(edge, id));
        }
        if (older) {
            edge_kill(edge);
            assert_int_equal(edge_open(edge), 0);
        }
        edge_free(edge);
    }
}

/* The newest record in the region, whole but for what it says was given out of the data area. */
static void data_end_change(struct edge *edge, uint32_t count, uint64_t data_end) {
    struct env_shared *shared;
    uint8_t *at = edge_region(edge, &shared) + BLOCK_BYTES;
    struct log_record *record = (void *)at;
    uint32_t crc = 0;

    for (uint32_t i = 1; i < count; i++) {
        crc = record->crc;
        at += record_padded(record->length);
        record = (void *)at;
    }
    record->data_end = data_end;
    record->crc = record_crc(record, record + 1, crc);
    edge->options.env->ops->shared_close(shared);
}

/* A record that gives out more of the data area than there is, or takes some back, was not written
 * by us: the ring is damaged there. */
static void test_unsound_data_end(void **state) {
    const uint64_t ends[] = {UINT64_C(1) << 40, EDGE_RING_BYTES + 1, 100};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
        struct edge *edge = edge_new(1);
        struct kv_need need = edge_need(8);
        struct kv_key key = edge_key(9);
        struct kv_grant grant;
        uint64_t offset;

        edge_power(edge);
        edge->options.directory = "data";
        edge->options.ring_data_bytes = EDGE_RING_BYTES;
        assert_int_equal(edge_open(edge), 0);
        need.data_bytes = BLOCK_BYTES;
        assert_int_equal(kv_admit(edge->kv, KV_CLASS_CONTROL, &need, &grant), 0);
        kv_begin(edge->kv, &grant);
        assert_non_null(kv_data_allocate(edge->kv, BLOCK_BYTES, &offset));
        assert_int_equal(kv_put(edge->kv, &key, (struct bytes){edge_content, 8}), 0);
        (void)kv_commit(edge->kv);
        (void)kv_seal(edge->kv);
        assert_int_equal(edge_put(edge, KV_CLASS_CONTROL, 1, 8), 0);
        (void)kv_seal(edge->kv);
        edge_kill(edge);
        data_end_change(edge, 2, BLOCK_BYTES); /* as it was */
        assert_int_equal(edge_open(edge), 0);
        edge_kill(edge);
        data_end_change(edge, 2, ends[i]);
        assert_int_equal(edge_open(edge), -ERR_CORRUPT);
        assert_non_null(strstr(edge->problem, "record 2 of 2 is not whole"));
        edge->options.accept_loss = true;
        assert_int_equal(edge_open(edge), 0);
        assert_true(edge_has(edge, 9) && !edge_has(edge, 1));
        edge_free(edge);
    }
}

/* Whatever is in a file that is no log, it is not made one. */
static void test_log_is_overwritten(void **state) {
    struct edge *edge = edge_new(1);

    (void)state;
    assert_int_equal(edge_stop(edge), 0);
    kv_close(edge->kv);
    edge->kv = NULL;
    assert_int_equal(memory_env_flip(edge->world, "t/log", 0), 0);
    assert_int_equal(memory_env_flip(edge->world, "t/log", BLOCK_BYTES), 0);
    assert_int_equal(edge_open(edge), -ERR_CORRUPT);
    assert_non_null(strstr(edge->problem, "t/log is no disk log"));
    edge_free(edge);
}

/* Nor is one that is shorter than a block, or longer than its blocks. */
static void test_short_file_for_a_log(void **state) {
    static uint8_t blocks[2 * BLOCK_BYTES];
    uint8_t line[] = "not ours";
    const uint64_t at[] = {0, 100, BLOCK_BYTES, sizeof blocks};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(at); i++) {
        struct edge *edge = edge_new(1);
        struct env_io io = {.kind = ENV_IO_WRITE, .buffer = blocks, .size = at[i]};

        edge_kill(edge);
        edge->options.directory = "u";
        const struct env_ops *env = edge->options.env->ops;
        assert_int_equal(env->file_open(edge->options.env, "u/log", ENV_FILE_CREATE, &io.file), 0);
        assert_int_equal(env->io_run(edge->options.env, &io), 0);
        io.buffer = line;
        io.offset = at[i];
        io.size = sizeof line;
        assert_int_equal(env->io_run(edge->options.env, &io), 0);
        env->file_close(io.file);
        assert_int_equal(edge_open(edge), -ERR_CORRUPT);
        assert_non_null(strstr(edge->problem, "u/log is no disk log"));
        edge_free(edge);
    }
}

/* Who knows which log it should be gets that one or none; one that is made new gets the id that is
 * asked for. */
static void test_log_of_another_id(void **state) {
    struct edge *edge = edge_new(1);
    const struct log_id id = kv_log_id(edge->kv);

    (void)state;
    assert_int_equal(edge_put(edge, KV_CLASS_REQUEST, 1, 100), 0);
    (void)kv_seal(edge->kv);
    edge_kill(edge);
    edge->options.log_id = (struct log_id){id.value ^ 1};
    assert_int_equal(edge_open(edge), -ERR_NOT_OURS);
    assert_non_null(strstr(edge->problem, "t/log is log "));
    edge->options.log_id = id;
    assert_int_equal(edge_open(edge), 0);
    assert_int_equal(kv_log_id(edge->kv).value, id.value);
    assert_true(edge_has(edge, 1));
    edge_kill(edge);
    edge->options.directory = "u";
    edge->options.shared_name = "other";
    edge->options.log_id = (struct log_id){4711};
    assert_int_equal(edge_open(edge), 0);
    assert_int_equal(kv_log_id(edge->kv).value, 4711);
    edge_free(edge);
}

/* Every class, a record each and each flushed, until none gets more. */
static uint64_t fill_log(struct edge *edge, enum kv_class message_class, uint64_t id) {
    int r;

    for (int i = 0; (r = edge_put(edge, message_class, id, 64)) != -ERR_NO_SPACE; i++) {
        id += r == 0;
        (void)kv_seal(edge->kv);
        edge_settle(edge, false);
        edge_turn(edge, NS_PER_S);
        assert_true(i < EDGE_TURNS_MAX);
    }
    return id;
}

/* While the base has no room, closes and fsyncs fill the log to the last batch. Each class is told
 * in turn; a kill loses nothing; once there is room all of it goes on. */
static void test_full_log(void **state) {
    static const enum kv_class order[] = {KV_CLASS_REQUEST, KV_CLASS_FREEING, KV_CLASS_RELEASE,
                                          KV_CLASS_CONTROL};

    (void)state;
    for (int killed = 0; killed < 2; killed++) {
        struct edge *edge = edge_new(3);
        uint64_t count = 0;

        kv_mem_store_full(edge->store, true);
        for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
            uint64_t before = count;

            count = fill_log(edge, order[i], count);
            assert_true(count > before);
        }
        if (killed) {
            edge_kill(edge);
            assert_int_equal(edge_open(edge), 0);
        }
        kv_mem_store_full(edge->store, false);
        edge_settle(edge, true);
        for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
            edge_goes_on(edge, order[i], count++);
        }
        for (uint64_t id = 0; id < count; id++) {
            assert_true(edge_has(edge, id));
        }
        assert_int_equal(edge_stop(edge), 0);
        edge_free(edge);
    }
}

/* A start with less memory than what was not in a checkpoint takes, with and without room below. */
static void test_less_memory(void **state) {
    (void)state;
    for (int full = 0; full < 2; full++) {
        struct edge *edge = edge_with_log(4, 8 * MIB);
        uint64_t count = 0;

        edge->options.changes_bytes_max = 4 * MIB;
        edge_kill(edge);
        assert_int_equal(edge_open(edge), 0);
        kv_mem_store_full(edge->store, true);
        while (edge_put(edge, KV_CLASS_REQUEST, count * 7919 % 100000, 8) != -ERR_NO_SPACE) {
            count++;
            (void)kv_seal(edge->kv);
            edge_turn(edge, 10 * NS_PER_MS);
        }
        edge_kill(edge);
        kv_mem_store_full(edge->store, full);
        edge->options.changes_bytes_max = 256 * KIB;
        assert_int_equal(edge_open(edge), 0);
        edge_check(edge);
        assert_int_equal(strstr(edge->line, "until the next start") != NULL, full);
        for (uint64_t id = 0; id < count; id++) {
            assert_true(edge_has(edge, id * 7919 % 100000));
        }
        kv_mem_store_full(edge->store, false);
        edge_goes_on(edge, KV_CLASS_REQUEST, 1);
        edge_free(edge);
    }
}

/* A table that is full lets those pass who empty it, and one session does not fill it for all. */
static void test_full_outcomes(void **state) {
    struct edge *edge = edge_new(5);
    uint64_t sequence = 1;

    (void)state;
    while (edge_outcome(edge, 1, sequence, 1) == 0) {
        sequence++;
    }
    assert_int_equal(sequence - 1, 8); /* as no window was granted */
    for (uint64_t session = 2; session <= 8; session++) {
        for (uint64_t i = 1; i <= 8; i++) {
            assert_int_equal(edge_outcome(edge, session, i, 1), 0);
        }
    }
    assert_int_equal(edge_outcome(edge, 9, 1, 1), -ERR_BUSY);
    assert_int_equal(edge_outcome(edge, 2, 9, 1), -ERR_BUSY);
    for (int restarted = 0; restarted < 3; restarted++) {
        uint64_t next = 10 + (uint64_t)restarted;

        assert_int_equal(edge_outcome(edge, 2, next, next), 0);
        edge_check(edge);
        edge_kill(edge);
        edge->options.outcomes_max = restarted == 1 ? 16 : 64; /* fewer than there are */
        assert_int_equal(edge_open(edge), 0);
    }
    edge_free(edge);
}

/* The first session gets most, each one eight, and all that was granted has a place. */
static void test_windows(void **state) {
    enum { SESSIONS = 4096, PLACES = 8 * SESSIONS + 131072 };
    struct windows windows;
    uint64_t granted = 0;

    (void)state;
    windows_init(&windows, PLACES, SESSIONS);
    assert_int_equal(windows_offer(&windows), WINDOW_MOST);
    for (uint32_t session = 0; session < SESSIONS; session++) {
        uint16_t window = windows_offer(&windows);

        assert_in_range(window, WINDOW_LEAST, WINDOW_MOST);
        windows_take(&windows, window);
        granted += window;
        assert_true(granted <= PLACES);
    }
    assert_int_equal(windows_offer(&windows), WINDOW_LEAST);
    windows_give_back(&windows, WINDOW_MOST);
    assert_in_range(windows_offer(&windows), 2 * WINDOW_LEAST, WINDOW_MOST);
    windows_take(&windows, WINDOW_MOST);
    windows_init(&windows, 8, 64); /* fewer than each one's eight */
    assert_int_equal(windows_offer(&windows), WINDOW_LEAST);
}

/* Stored outcomes that are superfluous go, and so do those of a session that has ended; a start
 * finds none of them. */
static void test_superfluous_outcomes(void **state) {
    struct edge *edge = edge_new(6);
    const struct kv_need need = {.session = {1}, .drops = true};
    struct kv_outcome outcome;
    struct kv_grant grant;

    (void)state;
    edge->options.checkpoint_ns = NS_PER_S;
    edge_kill(edge);
    assert_int_equal(edge_open(edge), 0);
    for (uint64_t sequence = 1; sequence <= 8; sequence++) {
        assert_int_equal(edge_outcome(edge, 1, sequence, 1), 0);
        assert_int_equal(edge_outcome(edge, 2, sequence, 1), 0);
    }
    edge_settle(edge, true);
    assert_int_equal(edge_outcome(edge, 2, 9, 9), 0);
    assert_int_equal(kv_admit(edge->kv, KV_CLASS_CONTROL, &need, &grant), 0);
    kv_begin(edge->kv, &grant);
    assert_int_equal(kv_outcome_drop(edge->kv, (struct session_id){1}), 0);
    (void)kv_commit(edge->kv);
    (void)kv_seal(edge->kv);
    edge_settle(edge, true);
    edge_turn(edge, 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(
            kv_outcome_get(edge->kv, (struct slot){0}, (struct session_id){1}, 3, &outcome),
            -ERR_NOT_FOUND);
        assert_int_equal(
            kv_outcome_get(edge->kv, (struct slot){0}, (struct session_id){2}, 3, &outcome),
            -ERR_OUTDATED);
        assert_int_equal(
            kv_outcome_get(edge->kv, (struct slot){0}, (struct session_id){2}, 9, &outcome), 0);
        edge_kill(edge);
        assert_int_equal(edge_open(edge), 0);
    }
    edge_free(edge);
}

static int floor_raise(struct edge *edge, uint64_t session, uint64_t floor) {
    const struct kv_need need = {.session = {session}, .floor = floor, .floors = true};
    const struct kv_outcome outcome = {.session = {session}, .floor = floor};
    struct kv_grant grant;
    int r = kv_admit(edge->kv, KV_CLASS_CONTROL, &need, &grant);

    if (r == 0) {
        kv_begin(edge->kv, &grant);
        assert_int_equal(kv_outcome_put(edge->kv, &outcome), 0);
        (void)kv_commit(edge->kv);
        (void)kv_seal(edge->kv);
    }
    return r;
}

/* A floor that is told by itself: also where all places are taken, and kept over a kill; what it
 * makes superfluous is refused from then on and not run again. */
static void test_floor_by_itself(void **state) {
    struct edge *edge = edge_new(7);
    struct kv_outcome outcome;

    (void)state;
    edge->options.checkpoint_ns = NS_PER_S;
    edge_kill(edge);
    assert_int_equal(edge_open(edge), 0);
    for (uint64_t session = 1; session <= 8; session++) {
        for (uint64_t i = 1; i <= 8; i++) {
            assert_int_equal(edge_outcome(edge, session, i, 1), 0);
        }
    }
    assert_int_equal(edge_outcome(edge, 9, 1, 1), -ERR_BUSY);
    assert_true(kv_floor_is_due(edge->kv, (struct session_id){1}, 9));
    assert_false(kv_floor_is_due(edge->kv, (struct session_id){1}, 1));
    assert_int_equal(floor_raise(edge, 1, 9), 0);
    assert_int_equal(floor_raise(edge, 2, 5), 0);
    for (int life = 0; life < 3; life++) {
        assert_false(kv_floor_is_due(edge->kv, (struct session_id){1}, 9));
        assert_int_equal(kv_outcomes_of(edge->kv, (struct session_id){1}), 0);
        assert_int_equal(kv_outcomes_of(edge->kv, (struct session_id){2}), 4);
        for (uint64_t i = 1; i <= 8; i++) {
            assert_int_equal(
                kv_outcome_get(edge->kv, (struct slot){0}, (struct session_id){1}, i, &outcome),
                -ERR_OUTDATED);
        }
        edge_check(edge);
        if (life == 1) {
            edge_settle(edge, true);
        }
        edge_kill(edge);
        assert_int_equal(edge_open(edge), 0);
    }
    assert_int_equal(floor_raise(edge, 1, 3), 0); /* only raises */
    assert_int_equal(
        kv_outcome_get(edge->kv, (struct slot){0}, (struct session_id){1}, 8, &outcome),
        -ERR_OUTDATED);
    assert_int_equal(edge_outcome(edge, 9, 1, 1), 0);
    edge_free(edge);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_end_of_ring),
        cmocka_unit_test(test_damaged_ring),
        cmocka_unit_test(test_damaged_header),
        cmocka_unit_test(test_outcome_of_no_session),
        cmocka_unit_test(test_damaged_log_and_shorter_ring),
        cmocka_unit_test(test_many_damaged_batches),
        cmocka_unit_test(test_unsound_data_end),
        cmocka_unit_test(test_log_is_overwritten),
        cmocka_unit_test(test_short_file_for_a_log),
        cmocka_unit_test(test_log_of_another_id),
        cmocka_unit_test(test_older_log),
        cmocka_unit_test(test_full_log),
        cmocka_unit_test(test_less_memory),
        cmocka_unit_test(test_full_outcomes),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_superfluous_outcomes),
        cmocka_unit_test(test_floor_by_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
