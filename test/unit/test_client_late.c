/* The client core and opens that nobody has answered: what the metadata target has open by them is
 * closed, and what it has not done by then it never does. */
#include "client_bench.h"
#include <stdio.h>

enum { WRITTEN = 20000 };

static struct toy_file *toy_of(struct bench *bench, const char *name) {
    for (int i = 0; i < TOY_FILES; i++) {
        struct toy_file *file = &bench->cluster.files[i];

        if (file->attributes.ino.value != 0 && strcmp(file->name, name) == 0) {
            return file;
        }
    }
    return NULL;
}

/* A file of WRITTEN bytes that nobody has open. */
static struct toy_file *make_closed(struct bench *bench, const char *name) {
    struct shoal_file *file = make(bench, name, RW);
    uint8_t *data = pattern(WRITTEN, 3);

    assert_int_equal(put(bench, file, 0, data, WRITTEN), WRITTEN);
    free(data);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    return toy_of(bench, name);
}

static int64_t open_file(struct bench *bench, const struct toy_file *file, uint32_t flags) {
    struct shoal_request open = {
        .operation = SHOAL_OPEN, .ino = file->attributes.ino.value, .flags = flags};

    return run(bench, &open);
}

static int64_t create_file(struct bench *bench, const char *name, uint32_t flags) {
    struct shoal_request create = {.operation = SHOAL_CREATE,
                                   .ino = SHOAL_INO_ROOT,
                                   .name = name,
                                   .name_bytes = strlen(name),
                                   .mode = 0644,
                                   .flags = flags};

    return run(bench, &create);
}

/* The next one is done, and its answer is lost. */
static void lose(struct bench *bench, uint16_t opcode) {
    bench->cluster.mdt.lose_opcode = opcode;
    bench->cluster.mdt.lose_count = 1;
}

/* Those that come are not done. */
static void away(struct bench *bench, uint16_t opcode, uint32_t count) {
    bench->cluster.mdt.fail_opcode = opcode;
    bench->cluster.mdt.fail_result = -ERR_AWAY;
    bench->cluster.mdt.fail_count = count;
}

static void restart(struct toy_server *mdt) {
    mdt->attached = false;
    mdt->term++;
    mdt->detached_result = -ERR_STALE_TERM;
}

/* It is asked, and then closed. */
static void end_late(struct bench *bench) {
    tick(bench, NS_PER_S);
    tick(bench, NS_PER_S);
    assert_int_equal(client_late_closes(bench->client), 0);
    assert_int_equal(rpc_in_flight(bench->cluster.rpc), 0);
}

static void test_open_that_was_taken_is_closed(void **state) {
    static const uint32_t flags[] = {RW, SHOAL_OPEN_WRITE | SHOAL_OPEN_TRUNCATE, SHOAL_OPEN_READ};
    struct bench *bench = *state;
    struct toy_server *mdt = &bench->cluster.mdt;
    struct toy_file *toy = make_closed(bench, "taken");
    struct client_counters counters;

    for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
        lose(bench, OP_OPEN);
        assert_int_equal(open_file(bench, toy, flags[i]), -EIO);
        assert_int_equal(toy->write_opens + toy->read_opens, 1);
        uint64_t number = mdt->sequences[OP_OPEN];
        away(bench, OP_OPEN, UINT32_MAX);
        for (uint32_t second = 1; second <= 3; second++) {
            tick(bench, NS_PER_S);
            assert_int_equal(client_late_closes(bench->client), 1);
            assert_int_equal(UINT32_MAX - mdt->fail_count, second);
            assert_int_equal(mdt->sequences[OP_OPEN], number);
        }
        away(bench, OP_OPEN, 0);
        end_late(bench);
        assert_int_equal(mdt->sequences[OP_OPEN], number);
        assert_int_equal(toy->write_opens + toy->read_opens, 0);
    }
    client_counters_get(bench->client, &counters);
    assert_int_equal(counters.late_opens, ARRAY_SIZE(flags));
}

/* An answer that can't be used leaves nothing open. */
static void test_open_with_no_layout_is_closed(void **state) {
    static const uint32_t flags[] = {RW, SHOAL_OPEN_READ, SHOAL_OPEN_WRITE | SHOAL_OPEN_TRUNCATE};
    struct bench *bench = *state;
    struct toy_file *toy = make_closed(bench, "damaged");
    struct layout layout = toy->layout;

    for (size_t i = 0; i < 2 * ARRAY_SIZE(flags); i++) {
        toy->layout.chunk_bytes = 1;
        assert_int_equal(i % 2 ? create_file(bench, "damaged", flags[i / 2])
                               : open_file(bench, toy, flags[i / 2]),
                         -EPROTO);
        assert_int_equal(toy->write_opens + toy->read_opens, 1);
        away(bench, OP_SETTLE, 1);
        tick(bench, NS_PER_S);
        assert_int_equal(client_late_closes(bench->client), 1);
        end_late(bench);
        assert_int_equal(toy->write_opens + toy->read_opens, 0);
        toy->layout = layout;
        struct shoal_request open = {
            .operation = SHOAL_OPEN, .ino = toy->attributes.ino.value, .flags = SHOAL_OPEN_READ};
        assert_int_equal(run(bench, &open), 0);
        assert_int_equal(on_file(bench, SHOAL_RELEASE, open.file), 0);
    }
}

/* It would cut what others have written since. */
static void test_open_that_was_not_taken_never_is(void **state) {
    struct bench *bench = *state;
    struct toy_server *mdt = &bench->cluster.mdt;
    struct toy_file *toy = make_closed(bench, "whole");

    away(bench, OP_OPEN, 1);
    assert_int_equal(open_file(bench, toy, SHOAL_OPEN_WRITE | SHOAL_OPEN_TRUNCATE), -EIO);
    uint64_t number = mdt->sequences[OP_OPEN];
    assert_int_equal(client_late_closes(bench->client), 1);
    tick(bench, NS_PER_S);
    assert_int_equal(mdt->sequences[OP_OPEN], number);
    assert_int_equal(client_late_closes(bench->client), 0);
    assert_int_equal(rpc_in_flight(bench->cluster.rpc), 0);
    assert_int_equal(toy->attributes.size, WRITTEN);
    assert_int_equal(toy->write_opens, 0);
}

/* In the shard of its directory it is asked, in its own it is closed. */
static void test_create_that_was_taken_is_closed(void **state) {
    struct bench *bench = *state;
    char name[16];

    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof name, "made-%d", i);
        lose(bench, OP_CREATE);
        bench->cluster.mdt.lose_result = i % 2 ? -ERR_INTERRUPTED : -ERR_AWAY;
        assert_int_equal(create_file(bench, name, RW), i % 2 ? -EINTR : -EIO);
        struct toy_file *toy = toy_of(bench, name);
        assert_non_null(toy);
        assert_int_equal(toy->write_opens, 1);
        end_late(bench);
        assert_int_equal(toy->write_opens, 0);
    }
}

static void test_create_that_was_not_taken_never_is(void **state) {
    struct bench *bench = *state;

    away(bench, OP_CREATE, 3);
    assert_int_equal(create_file(bench, "never", RW), -EIO);
    tick(bench, NS_PER_S);
    tick(bench, NS_PER_S);
    assert_int_equal(client_late_closes(bench->client), 1);
    end_late(bench);
    assert_null(toy_of(bench, "never"));
    struct shoal_file *file = make(bench, "never", RW);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
}

/* All numbers of the window are kept: who waits for one is sent when the target is back. */
static void test_opens_give_the_window_back(void **state) {
    struct bench *bench = *state;
    struct asked asked;

    bench->cluster.mdt.window = RPC_WINDOW_LEAST;
    restart(&bench->cluster.mdt);
    struct toy_file *toy = make_closed(bench, "many");
    struct toy_file *other = make_closed(bench, "other");
    away(bench, OP_OPEN, UINT32_MAX);
    for (uint32_t i = 0; i < RPC_WINDOW_LEAST; i++) {
        assert_int_equal(open_file(bench, toy, RW), -EIO);
    }
    assert_int_equal(client_late_closes(bench->client), RPC_WINDOW_LEAST);
    struct shoal_request set = {.operation = SHOAL_SETATTR,
                                .ino = other->attributes.ino.value,
                                .set = SHOAL_SET_SIZE,
                                .attributes = {.size = 5}};
    start(bench, &asked, set);
    tick(bench, NS_PER_S);
    assert_false(asked.done);
    away(bench, OP_OPEN, 0);
    end_late(bench);
    assert_true(asked.done);
    assert_int_equal(asked.request.result, 0);
    assert_int_equal(other->attributes.size, 5);
    assert_int_equal(toy->write_opens, 0);
}

/* A close that needs a number, ahead of the opens of its file that keep them all (the simulator's
 * seed 332, when this was found). */
static void test_a_close_does_not_hold_up_what_it_waits_for(void **state) {
    struct bench *bench = *state;

    bench->cluster.mdt.window = RPC_WINDOW_LEAST;
    restart(&bench->cluster.mdt);
    struct shoal_file *file = make(bench, "many", RW);
    struct toy_file *toy = toy_of(bench, "many");
    away(bench, OP_SETTLE, UINT32_MAX);
    bench->cluster.mdt.fail_result = -ERR_NO_SPACE;
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    away(bench, OP_OPEN, UINT32_MAX);
    for (uint32_t i = 0; i < RPC_WINDOW_LEAST; i++) {
        assert_int_equal(open_file(bench, toy, RW), -EIO);
    }
    assert_int_equal(client_late_closes(bench->client), RPC_WINDOW_LEAST + 1);
    tick(bench, NS_PER_S);
    away(bench, OP_OPEN, 0);
    end_late(bench);
    assert_int_equal(toy->write_opens, 0);
}

/* The target has started anew, and counts by its outcome what nobody has presented. */
static void test_open_of_a_target_that_starts_anew(void **state) {
    struct bench *bench = *state;
    struct toy_file *toy = make_closed(bench, "anew");

    lose(bench, OP_OPEN);
    assert_int_equal(open_file(bench, toy, RW), -EIO);
    restart(&bench->cluster.mdt);
    tick(bench, NS_PER_S);
    assert_true(bench->cluster.mdt.attached);
    assert_int_equal(bench->cluster.mdt.seen[OP_REOPEN], 0);
    assert_int_equal(toy->write_opens, 1);
    end_late(bench);
    assert_int_equal(toy->write_opens, 0);
}

/* It is known to be open, and presented as that. */
static void test_open_is_presented_until_it_is_closed(void **state) {
    struct bench *bench = *state;
    struct toy_server *mdt = &bench->cluster.mdt;
    struct toy_file *toy = make_closed(bench, "shown");

    lose(bench, OP_OPEN);
    assert_int_equal(open_file(bench, toy, RW), -EIO);
    tick(bench, NS_PER_S);
    assert_int_equal(client_late_closes(bench->client), 1);
    restart(mdt);
    toy->write_opens = 0;
    tick(bench, NS_PER_S);
    assert_int_equal(mdt->seen[OP_REOPEN], 1);
    assert_int_equal(client_late_closes(bench->client), 0);
    assert_int_equal(toy->write_opens, 0);
    assert_int_equal(toy->attributes.size, WRITTEN);
}

/* The target has told that it is open, and has started anew before we hear of that: it is opened
 * once more, without cutting it, so that it can be closed. */
static void open_in_a_term_that_is_over(struct bench *bench, uint16_t opcode, const char *name) {
    struct toy_server *mdt = &bench->cluster.mdt;
    struct toy_file *toy = opcode == OP_OPEN ? make_closed(bench, name) : NULL;
    struct shoal_request look = {
        .operation = SHOAL_LOOKUP, .ino = SHOAL_INO_ROOT, .name = name, .name_bytes = 4};
    struct asked asked;

    lose(bench, opcode);
    assert_int_equal(
        toy ? open_file(bench, toy, RW | SHOAL_OPEN_TRUNCATE) : create_file(bench, name, RW), -EIO);
    toy = toy_of(bench, name);
    toy->attributes.size = 7; /* that somebody has written since */
    mdt->hold_answers = true;
    tick(bench, NS_PER_S);
    mdt->hold_answers = false;
    restart(mdt);
    toy->write_opens = 0;
    uint32_t opens = mdt->seen[OP_OPEN];
    start(bench, &asked, look); /* by which we hear of the new term */
    assert_true(asked.done);
    toy_release(mdt, UINT32_MAX);
    tick(bench, NS_PER_S);
    end_late(bench);
    assert_int_equal(mdt->seen[OP_OPEN], opens + 1);
    assert_int_equal(toy->write_opens, 0);
    assert_int_equal(toy->attributes.size, 7);
}

static void test_open_of_a_term_that_is_over(void **state) {
    open_in_a_term_that_is_over(*state, OP_OPEN, "over");
}

static void test_create_of_a_term_that_is_over(void **state) {
    open_in_a_term_that_is_over(*state, OP_CREATE, "past");
}

static void test_late_opens_go_with_the_session(void **state) {
    struct bench *bench = *state;
    struct toy_file *toy = make_closed(bench, "gone");

    lose(bench, OP_OPEN);
    assert_int_equal(open_file(bench, toy, RW), -EIO);
    lose(bench, OP_CREATE);
    assert_int_equal(create_file(bench, "never", RW), -EIO);
    bench->cluster.mdt.fail_opcode = OP_OPEN;
    bench->cluster.mdt.fail_result = -ERR_FENCED;
    bench->cluster.mdt.fail_count = UINT32_MAX;
    for (int i = 0; i < 3; i++) {
        tick(bench, NS_PER_S);
    }
    assert_true(client_is_fenced(bench->client));
    assert_int_equal(client_late_closes(bench->client), 0);
    assert_int_equal(rpc_in_flight(bench->cluster.rpc), 0);
}

/* Each is asked once more, and left to the end of the session. */
static void test_stop_does_not_wait_for_opens(void **state) {
    struct bench *bench = *state;
    struct toy_file *toy = make_closed(bench, "stop");

    lose(bench, OP_OPEN);
    assert_int_equal(open_file(bench, toy, RW), -EIO);
    lose(bench, OP_CREATE);
    assert_int_equal(create_file(bench, "stopped", RW), -EIO);
    away(bench, OP_OPEN, UINT32_MAX);
    bench->stopped = 1;
    client_stop(bench->client, note_result, &bench->stopped);
    for (int i = 0; i < 20; i++) {
        tick(bench, NS_PER_S / 10);
    }
    assert_int_equal(bench->stopped, 0);
    client_free(bench->client);
    assert_int_equal(rpc_in_flight(bench->cluster.rpc), 0);
    toy_cluster_deinit(&bench->cluster);
    bench_open(bench, (struct client_options){.open_files_max = 640});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(open_that_was_taken_is_closed),
        TEST(open_that_was_not_taken_never_is),
        TEST(open_with_no_layout_is_closed),
        TEST(create_that_was_taken_is_closed),
        TEST(create_that_was_not_taken_never_is),
        TEST(opens_give_the_window_back),
        TEST(a_close_does_not_hold_up_what_it_waits_for),
        TEST(open_of_a_target_that_starts_anew),
        TEST(open_is_presented_until_it_is_closed),
        TEST(open_of_a_term_that_is_over),
        TEST(create_of_a_term_that_is_over),
        TEST(late_opens_go_with_the_session),
        TEST(stop_does_not_wait_for_opens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
