/* The client core on a full metadata target: who is told, and the closes that stay with the client
 * until they are taken. */
#include "client_bench.h"

enum { WRITTEN = 20000 };

static void full(struct bench *bench, int result) {
    bench->cluster.mdt.fail_opcode = OP_SETTLE;
    bench->cluster.mdt.fail_result = result;
    bench->cluster.mdt.fail_count = result ? UINT32_MAX : 0;
}

static struct shoal_file *make_written(struct bench *bench, const char *name) {
    struct shoal_file *file = make(bench, name, RW);
    uint8_t *data = pattern(WRITTEN, 3);

    assert_int_equal(put(bench, file, 0, data, WRITTEN), WRITTEN);
    free(data);
    return file;
}

/* A client and servers as they were in the beginning, for the teardown. */
static void anew(struct bench *bench) {
    client_free(bench->client);
    assert_int_equal(rpc_in_flight(bench->cluster.rpc), 0);
    toy_cluster_deinit(&bench->cluster);
    bench_open(bench, (struct client_options){.open_files_max = 640});
}

static void test_full_target_is_told_at_once(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file = make_written(bench, "told");

    full(bench, -ERR_NO_SPACE);
    assert_int_equal(on_file(bench, SHOAL_FSYNC, file), -ENOSPC);
    assert_int_equal(on_file(bench, SHOAL_FLUSH, file), -ENOSPC);
    assert_int_equal(client_late_closes(bench->client), 0);
    full(bench, 0);
    assert_int_equal(on_file(bench, SHOAL_FSYNC, file), 0);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    assert_int_equal(toy_osts_seen(&bench->cluster, OP_SYNC) > 0, true);
}

static void test_close_stays_until_it_is_taken(void **state) {
    struct bench *bench = *state;
    struct toy_server *mdt = &bench->cluster.mdt;
    struct shoal_file *file = make_written(bench, "late");
    struct toy_file *toy = toy_file_find(&bench->cluster, ino_of(bench, file));
    struct client_counters counters;

    full(bench, -ERR_NO_SPACE);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    assert_int_equal(client_late_closes(bench->client), 1);
    for (uint32_t second = 0; second < 5; second++) {
        uint32_t seen = UINT32_MAX - mdt->fail_count;

        for (int i = 0; i < 10; i++) {
            tick(bench, NS_PER_S / 10);
        }
        assert_int_equal(UINT32_MAX - mdt->fail_count, seen + 1);
        assert_int_equal(toy->write_opens, 1);
        /* What the target does not know yet is overlaid as before. */
        assert_int_equal(toy->attributes.size, 0);
        assert_int_equal(size_by_lookup(bench, "late"), WRITTEN);
    }
    full(bench, 0);
    tick(bench, NS_PER_S);
    assert_int_equal(client_late_closes(bench->client), 0);
    assert_int_equal(toy->write_opens, 0);
    assert_int_equal(toy->attributes.size, WRITTEN);
    assert_int_equal(size_by_lookup(bench, "late"), WRITTEN);
    client_counters_get(bench->client, &counters);
    assert_int_equal(counters.late_closes, 1);
}

/* One is refused in a round of a shard; when it is taken, all are. Their handles are counted. */
static void test_late_closes_of_one_file(void **state) {
    struct bench *bench = *state;
    struct toy_server *mdt = &bench->cluster.mdt;
    struct shoal_file *files[640];
    struct shoal_file *writer = make_written(bench, "many");
    struct toy_file *toy = toy_file_find(&bench->cluster, ino_of(bench, writer));
    struct shoal_request open = {
        .operation = SHOAL_OPEN, .ino = ino_of(bench, writer), .flags = SHOAL_OPEN_READ};

    files[0] = writer;
    for (int i = 1; i < 640; i++) {
        assert_int_equal(run(bench, &open), 0);
        files[i] = open.file;
    }
    full(bench, -ERR_NO_SPACE);
    for (int i = 0; i < 640; i++) {
        assert_int_equal(on_file(bench, SHOAL_RELEASE, files[i]), 0);
    }
    assert_int_equal(run(bench, &open), -ENFILE);
    uint32_t left = mdt->fail_count;
    tick(bench, NS_PER_S);
    assert_int_equal(mdt->fail_count, left - 1);
    full(bench, 0);
    tick(bench, NS_PER_S);
    assert_int_equal(client_late_closes(bench->client), 0);
    assert_int_equal(toy->read_opens + toy->write_opens, 0);
    assert_int_equal(toy->attributes.size, WRITTEN);
    assert_int_equal(run(bench, &open), 0);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, open.file), 0);
}

/* The handle is presented to the server that starts anew, which is still full then. */
static void test_late_close_outlives_restarts(void **state) {
    struct bench *bench = *state;
    struct toy_server *mdt = &bench->cluster.mdt;
    struct shoal_file *file = make_written(bench, "restart");
    struct toy_file *toy = toy_file_find(&bench->cluster, ino_of(bench, file));

    full(bench, -ERR_NO_SPACE);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    for (uint32_t i = 1; i <= 2; i++) {
        mdt->attached = false;
        mdt->term++;
        mdt->detached_result = -ERR_STALE_TERM;
        toy->write_opens = 0;
        full(bench, 0);
        mdt->hold_answers = true;
        tick(bench, NS_PER_S); /* its refusal is on its way */
        full(bench, -ERR_NO_SPACE);
        mdt->hold_answers = false;
        toy_release(mdt, UINT32_MAX);
        tick(bench, NS_PER_S / 10);
        assert_int_equal(mdt->seen[OP_REOPEN], i);
        assert_int_equal(toy->write_opens, 1);
        assert_int_equal(client_late_closes(bench->client), 1);
        assert_int_equal(size_by_lookup(bench, "restart"), WRITTEN);
    }
    full(bench, 0);
    tick(bench, NS_PER_S);
    assert_int_equal(client_late_closes(bench->client), 0);
    assert_int_equal(toy->write_opens, 0);
    assert_int_equal(toy->attributes.size, WRITTEN);
}

/* The server has taken it, and starts anew before we hear of that: what was presented since has the
 * handle counted, so it is closed once more. */
static void test_late_close_of_a_term_that_is_over(void **state) {
    struct bench *bench = *state;
    struct toy_server *mdt = &bench->cluster.mdt;
    struct shoal_file *file = make_written(bench, "over");
    struct toy_file *toy = toy_file_find(&bench->cluster, ino_of(bench, file));
    struct shoal_request look = {
        .operation = SHOAL_LOOKUP, .ino = SHOAL_INO_ROOT, .name = "over", .name_bytes = 4};
    struct asked asked;

    full(bench, -ERR_NO_SPACE);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    full(bench, 0);
    mdt->hold_answers = true;
    tick(bench, NS_PER_S);
    assert_int_equal(toy->write_opens, 0);
    mdt->hold_answers = false;
    mdt->attached = false;
    mdt->term++;
    mdt->detached_result = -ERR_STALE_TERM;
    start(bench, &asked, look); /* by which we hear of the new term */
    assert_true(asked.done);
    assert_int_equal(toy->write_opens, 1);
    toy_release(mdt, UINT32_MAX);
    tick(bench, NS_PER_S / 10);
    assert_int_equal(toy->write_opens, 0);
    assert_int_equal(client_late_closes(bench->client), 0);
}

/* The server has started anew, and is away while it is shown the handle: when it is tried again it
 * is shown that first. Who attaches without has nothing open. */
static void test_late_close_is_shown_before_attaching(void **state) {
    struct bench *bench = *state;
    struct toy_server *mdt = &bench->cluster.mdt;
    struct shoal_file *file = make_written(bench, "away");
    struct toy_file *toy = toy_file_find(&bench->cluster, ino_of(bench, file));

    full(bench, -ERR_NO_SPACE);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    uint32_t attached = mdt->seen[OP_SESSION_ATTACH];
    mdt->attached = false;
    mdt->term++;
    mdt->detached_result = -ERR_STALE_TERM;
    toy->write_opens = 0;
    mdt->fail_opcode = OP_REOPEN;
    mdt->fail_result = -ERR_AWAY;
    mdt->fail_count = 1;
    tick(bench, NS_PER_S);
    assert_int_equal(mdt->fail_count, 0);
    assert_int_equal(mdt->seen[OP_SESSION_ATTACH], attached);
    mdt->hold = true;
    tick(bench, NS_PER_S);
    assert_int_equal(mdt->held[0]->header.opcode, OP_SETTLE);
    toy_release(mdt, 1);
    tick(bench, NS_PER_S / 10);
    assert_int_equal(mdt->held_count, 1);
    assert_int_equal(mdt->held[0]->header.opcode, OP_REOPEN);
    mdt->hold = false;
    toy_release(mdt, UINT32_MAX);
    tick(bench, NS_PER_S / 10);
    assert_int_equal(mdt->seen[OP_SESSION_ATTACH], attached + 1);
    assert_int_equal(client_late_closes(bench->client), 0);
    assert_int_equal(toy->write_opens, 0);
    assert_int_equal(toy->attributes.size, WRITTEN);
}

static void test_late_close_goes_with_the_session(void **state) {
    struct bench *bench = *state;
    struct shoal_file *files[3] = {make_written(bench, "a"), make_written(bench, "b"),
                                   make_written(bench, "c")};

    full(bench, -ERR_NO_SPACE);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(on_file(bench, SHOAL_RELEASE, files[i]), 0);
    }
    full(bench, -ERR_FENCED);
    tick(bench, NS_PER_S);
    tick(bench, NS_PER_S);
    assert_int_equal(client_late_closes(bench->client), 0);
    assert_true(client_is_fenced(bench->client));
}

static void stop(struct bench *bench) {
    bench->stopped = 1;
    client_stop(bench->client, note_result, &bench->stopped);
    while (worker_run_one(&bench->cluster.worker)) {
    }
}

/* Each is tried once, and let go. */
static void test_stop_on_a_full_target(void **state) {
    struct bench *bench = *state;
    struct toy_server *mdt = &bench->cluster.mdt;
    struct shoal_file *file = make_written(bench, "stop");
    struct shoal_file *other = make_written(bench, "other");
    uint64_t ino = ino_of(bench, file);

    full(bench, -ERR_NO_SPACE);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, other), 0);
    mdt->fail_count = 1; /* One finds room, and is settled. */
    uint32_t seen = mdt->seen[OP_SETTLE];
    stop(bench);
    tick(bench, NS_PER_S / 100);
    assert_int_equal(bench->stopped, 0);
    assert_int_equal(mdt->seen[OP_SETTLE], seen + 2);
    assert_int_equal(mdt->fail_count, 0);
    assert_true(toy_file_find(&bench->cluster, ino)->settled <= 1);
    anew(bench);
}

/* A target that is busy, or that has started anew and cannot be attached: a stop ends all the
 * same, a moment later. */
static void test_stop_does_not_wait_for_a_target(void **state) {
    struct bench *bench = *state;

    for (int kind = 0; kind < 2; kind++) {
        struct shoal_file *file = make_written(bench, "stuck");

        full(bench, -ERR_NO_SPACE);
        assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
        full(bench, kind ? -ERR_STALE_MAP : -ERR_BUSY);
        tick(bench, NS_PER_S);
        stop(bench);
        for (int i = 0; i < 9; i++) {
            tick(bench, NS_PER_S / 10);
            assert_int_equal(bench->stopped, 1);
        }
        for (int i = 0; i < 5; i++) {
            tick(bench, NS_PER_S / 10);
        }
        assert_int_equal(bench->stopped, 0);
        anew(bench);
    }
}

/* Who is put off for ever waits no longer than for anything else; a late close does. */
static void test_close_on_a_busy_target_ends(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file = make_written(bench, "busy");
    struct shoal_file *other = make_written(bench, "late");
    struct asked close;

    full(bench, -ERR_NO_SPACE);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, other), 0);
    full(bench, -ERR_BUSY);
    start(bench, &close, (struct shoal_request){.operation = SHOAL_RELEASE, .file = file});
    for (int i = 0; i < 12; i++) {
        tick(bench, NS_PER_S);
    }
    assert_true(close.done);
    assert_int_equal(close.request.result, -EIO);
    assert_int_equal(client_late_closes(bench->client), 2);
    full(bench, 0);
    tick(bench, NS_PER_S);
    assert_int_equal(client_late_closes(bench->client), 0);
}

/* Whether it was taken before the target went nobody knows: it is told under the number that it
 * had, until it is answered. Its caller has heard that it may be lost. */
static void test_close_on_a_target_that_is_away(void **state) {
    struct bench *bench = *state;
    struct toy_server *mdt = &bench->cluster.mdt;
    struct shoal_file *file = make_written(bench, "away");
    struct toy_file *toy = toy_file_find(&bench->cluster, ino_of(bench, file));

    full(bench, -ERR_AWAY);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), -EIO);
    uint64_t number = mdt->sequences[OP_SETTLE];
    for (uint32_t second = 1; second <= 3; second++) {
        tick(bench, NS_PER_S);
        assert_int_equal(client_late_closes(bench->client), 1);
        assert_int_equal(UINT32_MAX - mdt->fail_count, 1 + second);
        assert_int_equal(mdt->sequences[OP_SETTLE], number);
    }
    assert_int_equal(toy->write_opens, 1);
    full(bench, 0);
    tick(bench, NS_PER_S);
    assert_int_equal(mdt->sequences[OP_SETTLE], number);
    assert_int_equal(client_late_closes(bench->client), 0);
    assert_int_equal(toy->write_opens, 0);
    assert_int_equal(toy->attributes.size, WRITTEN);
    assert_int_equal(size_by_lookup(bench, "away"), WRITTEN);
    assert_int_equal(rpc_in_flight(bench->cluster.rpc), 0);
}

/* It was taken, and the target has started anew since: what it was presented has the handle
 * counted, so it is closed once more, by a number of its own. */
static void test_close_taken_by_a_target_that_went_away(void **state) {
    struct bench *bench = *state;
    struct toy_server *mdt = &bench->cluster.mdt;
    struct shoal_file *file = make_written(bench, "taken");
    struct toy_file *toy = toy_file_find(&bench->cluster, ino_of(bench, file));

    full(bench, -ERR_AWAY);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), -EIO);
    uint64_t number = mdt->sequences[OP_SETTLE];
    mdt->attached = false;
    mdt->term++;
    mdt->detached_result = -ERR_STALE_TERM;
    toy->write_opens = 0;
    full(bench, 0);
    tick(bench, NS_PER_S);
    assert_int_equal(mdt->seen[OP_REOPEN], 1);
    assert_int_equal(mdt->sequences[OP_SETTLE], number);
    assert_int_equal(client_late_closes(bench->client), 0);
    assert_int_equal(toy->write_opens, 0);
    assert_int_equal(toy->attributes.size, WRITTEN);
}

/* What is late of a session that was evicted is nobody's, and neither is its number. */
static void test_late_numbers_go_with_the_session(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file = make_written(bench, "gone");

    full(bench, -ERR_AWAY);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), -EIO);
    assert_int_equal(rpc_in_flight(bench->cluster.rpc), 1);
    full(bench, -ERR_FENCED);
    tick(bench, NS_PER_S);
    tick(bench, NS_PER_S);
    assert_int_equal(client_late_closes(bench->client), 0);
    assert_int_equal(rpc_in_flight(bench->cluster.rpc), 0);
}

/* Nobody will take it any more: it goes, with its number. */
static void test_late_close_goes_with_its_target(void **state) {
    struct bench *bench = *state;
    struct cluster_map *map = &bench->cluster.map;
    struct toy_server *gone = &bench->cluster.second_mdt;

    toy_second_mdt_add(&bench->cluster);
    while (client_map(bench->client)->version < map->version) {
        tick(bench, NS_PER_S);
    }
    struct shoal_file *file = make_written(bench, "there");
    (void)ino_of(bench, file);
    gone->fail_opcode = OP_SETTLE;
    gone->fail_result = -ERR_AWAY;
    gone->fail_count = UINT32_MAX;
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), -EIO);
    tick(bench, NS_PER_S);
    assert_int_equal(client_late_closes(bench->client), 1);
    assert_int_equal(rpc_in_flight(bench->cluster.rpc), 1); /* its number */
    for (uint32_t i = 0; i < map->target_count; i++) {
        bool is_it = map->targets[i].id.value == gone->id.value;

        map->targets[i].state = is_it ? TARGET_LOST : map->targets[i].state;
    }
    map->version++;
    for (int i = 0; i < 40; i++) {
        tick(bench, NS_PER_S / 10);
    }
    assert_int_equal(client_map(bench->client)->version, map->version);
    assert_int_equal(client_late_closes(bench->client), 0);
    assert_int_equal(rpc_in_flight(bench->cluster.rpc), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(full_target_is_told_at_once),       TEST(close_stays_until_it_is_taken),
        TEST(late_closes_of_one_file),           TEST(late_close_outlives_restarts),
        TEST(late_close_of_a_term_that_is_over), TEST(late_close_is_shown_before_attaching),
        TEST(late_close_goes_with_the_session),  TEST(stop_on_a_full_target),
        TEST(stop_does_not_wait_for_a_target),   TEST(close_on_a_busy_target_ends),
        TEST(close_on_a_target_that_is_away),    TEST(close_taken_by_a_target_that_went_away),
        TEST(late_numbers_go_with_the_session),  TEST(late_close_goes_with_its_target),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
