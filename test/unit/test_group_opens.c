/* The limit of open files, made smaller between two lives of a group: what was open stays open, and
 * nothing new comes until there is less than the limit. */
#include "unit.h"
#include "meta_bench.h"

enum { WRITERS = 10, READERS = 9, FILES = WRITERS + READERS, LESS = 4, SESSION = 1 };

struct files {
    struct meta_bench *bench;
    struct ino inos[FILES];
    uint8_t names[2 * FILES];
    struct call last; /* the open of the last one */
};

static int file_create(struct files *files, uint32_t number, uint32_t open_flags,
                       struct call *call) {
    files->names[number] = (uint8_t)('a' + number);
    bench_prepare(files->bench, SESSION, OP_CREATE, call);
    call->request.create.parent = INO_ROOT;
    call->request.create.name = (struct bytes){&files->names[number], 1};
    call->request.create.mode = 0644;
    call->request.create.open_flags = open_flags;
    return bench_run(files->bench, call);
}

static uint32_t flags_of(uint32_t number) {
    return number < WRITERS ? OPEN_WRITE : OPEN_READ;
}

static void files_make(struct files *files) {
    for (uint32_t i = 0; i < FILES; i++) {
        assert_int_equal(file_create(files, i, flags_of(i), &files->last), 0);
        files->inos[i] = files->last.reply.create.attributes.ino;
    }
}

static int file_reopen(struct files *files, uint32_t number) {
    struct call call;

    bench_prepare(files->bench, SESSION, OP_REOPEN, &call);
    call.header.term = 0;
    call.request.reopen = (struct reopen_request){.ino = files->inos[number],
                                                  .open_flags = flags_of(number),
                                                  .read_count = number < WRITERS ? 0 : 1,
                                                  .write_count = number < WRITERS ? 1 : 0};
    return bench_run(files->bench, &call);
}

static int file_close(struct files *files, uint32_t number) {
    struct call call;

    bench_prepare(files->bench, SESSION, OP_SETTLE, &call);
    call.request.settle = (struct settle_request){
        .ino = files->inos[number], .close = 1, .open_flags = flags_of(number)};
    return bench_run(files->bench, &call);
}

static uint32_t open_count(struct files *files) {
    struct group_stats stats;

    bench_stats(files->bench, &stats);
    return stats.open_count;
}

static int named_open(struct files *files, struct ino ino, struct call *call) {
    bench_prepare(files->bench, SESSION, OP_OPEN, call);
    call->request.open = (struct open_request){.ino = ino, .open_flags = OPEN_READ};
    int r = bench_run(files->bench, call);
    assert_true(r < 0 || call->reply.open.name == call->header.sequence);
    return r;
}

static int named_close(struct files *files, struct ino ino, uint64_t name) {
    struct call call;

    bench_prepare(files->bench, SESSION, OP_SETTLE, &call);
    call.request.settle = (struct settle_request){.ino = ino, .close = 1, .name = name};
    return bench_run(files->bench, &call);
}

static int name_remove(struct files *files, uint32_t number) {
    struct call call;

    bench_prepare(files->bench, SESSION, OP_UNLINK, &call);
    call.request.unlink.parent = INO_ROOT;
    call.request.unlink.name = (struct bytes){&files->names[number], 1};
    return bench_run(files->bench, &call);
}

static int look(struct files *files, struct ino ino) {
    struct call call;

    bench_prepare(files->bench, SESSION, OP_GETATTR, &call);
    call.request.getattr.ino = ino;
    return bench_run(files->bench, &call);
}

static uint64_t record_count(struct files *files) {
    struct group_stats stats;

    bench_stats(files->bench, &stats);
    return stats.kv.records;
}

/* Any number of opens for reading are one, without a record, which a close of the newest ends; one
 * of an older name, and a copy of any of them, changes nothing. */
static void test_opens_by_name(void **state) {
    const struct bench_options options = {.seed = 31, .opens_max = FILES};
    struct files files = {.bench = bench_new(&options)};
    struct call first, second;

    (void)state;
    files_make(&files);
    assert_int_equal(file_close(&files, 0), 0);
    assert_int_equal(file_close(&files, 1), 0);
    uint64_t before = record_count(&files);
    assert_int_equal(named_open(&files, files.inos[0], &first), 0);
    assert_int_equal(named_open(&files, files.inos[0], &second), 0);
    assert_int_equal(bench_run(files.bench, &first), 0);
    assert_int_equal(record_count(&files), before);
    assert_int_equal(name_remove(&files, 0), 0);
    assert_int_equal(named_close(&files, files.inos[0], second.header.sequence - 1), 0);
    assert_int_equal(look(&files, files.inos[0]), 0);
    assert_int_equal(named_close(&files, files.inos[0], second.header.sequence), 0);
    assert_int_equal(look(&files, files.inos[0]), -ERR_STALE);
    assert_int_equal(named_close(&files, files.inos[0], second.header.sequence), 0);
    /* A late copy opens nothing: the file goes with its name. */
    assert_int_equal(named_open(&files, files.inos[1], &first), 0);
    assert_int_equal(named_close(&files, files.inos[1], first.header.sequence), 0);
    assert_int_equal(bench_run(files.bench, &first), 0);
    assert_int_equal(name_remove(&files, 1), 0);
    assert_int_equal(look(&files, files.inos[1]), -ERR_STALE);
    bench_free(files.bench);
}

/* The client has had no answer to its last open and asks again; all else it presents. */
static void test_limit_made_smaller(void **state) {
    (void)state;
    for (int power = 0; power < 2; power++) {
        const struct bench_options options = {.seed = 30, .opens_max = FILES};
        struct files files = {.bench = bench_new(&options)};
        struct call call;

        files_make(&files);
        assert_int_equal(file_create(&files, FILES, OPEN_READ, &call), -ERR_TOO_MANY_OPEN);
        bench_prepare(files.bench, SESSION, OP_SYNC, &call);
        assert_int_equal(bench_run(files.bench, &call), 0);
        files.bench->opens_max = LESS;
        bench_restart(files.bench, power);
        for (uint32_t i = 0; i + 1 < FILES; i++) {
            assert_int_equal(file_reopen(&files, i), 0);
        }
        bench_attach(files.bench, SESSION);
        files.last.header.term = files.bench->sessions[SESSION].term;
        assert_int_equal(bench_run(files.bench, &files.last), 0);
        assert_int_equal(files.last.reply.create.attributes.ino.value, files.inos[FILES - 1].value);
        assert_int_equal(open_count(&files), FILES);
        for (uint32_t i = 0; i + LESS <= FILES; i++) {
            assert_int_equal(file_create(&files, FILES, OPEN_READ, &call), -ERR_TOO_MANY_OPEN);
            assert_int_equal(file_close(&files, i), 0);
        }
        assert_int_equal(open_count(&files), LESS - 1);
        assert_int_equal(file_create(&files, FILES, OPEN_READ, &call), 0);
        assert_int_equal(file_create(&files, FILES + 1, OPEN_READ, &call), -ERR_TOO_MANY_OPEN);
        bench_free(files.bench);
    }
}

/* Nobody presents anything: the session is evicted, and its opens make room. */
static void test_opens_of_the_dead(void **state) {
    const struct bench_options options = {.seed = 31, .opens_max = FILES};
    struct files files = {.bench = bench_new(&options)};
    struct bench_session *who = &files.bench->sessions[SESSION];
    struct call call;

    (void)state;
    files_make(&files);
    files.bench->opens_max = LESS;
    bench_restart(files.bench, false);
    assert_int_equal(open_count(&files), WRITERS);
    bench_evict(files.bench, who->id);
    assert_int_equal(open_count(&files), 0);
    who->id = ++files.bench->next_session_id;
    who->sequence = 0;
    bench_attach(files.bench, SESSION);
    for (uint32_t i = 0; i <= LESS; i++) {
        assert_int_equal(file_create(&files, FILES + i, OPEN_WRITE, &call),
                         i < LESS ? 0 : -ERR_TOO_MANY_OPEN);
    }
    bench_free(files.bench);
}

enum { MANY_WRITERS = 200, MANY_READERS = 150 };

/* A file of the session, open; a writer's is in chunks. */
static void one_of_many(struct meta_bench *bench, uint32_t number) {
    uint8_t name[2] = {(uint8_t)('A' + number / 60), (uint8_t)('A' + number % 60)};
    bool writes = number >= MANY_READERS;
    struct call call;

    bench_prepare(bench, SESSION, OP_CREATE, &call);
    call.request.create.parent = INO_ROOT;
    call.request.create.name = (struct bytes){name, sizeof name};
    call.request.create.mode = 0644;
    call.request.create.open_flags = writes ? OPEN_WRITE : OPEN_READ;
    assert_int_equal(bench_run(bench, &call), 0);
    struct ino ino = call.reply.create.attributes.ino;
    if (writes) {
        bench_prepare(bench, SESSION, OP_INLINE_CONVERT, &call);
        call.request.inline_convert =
            (struct inline_convert_request){.ino = ino, .stage = INLINE_CONVERT_BEGIN};
        assert_int_equal(bench_run(bench, &call), 0);
        bench_chunk_write(bench, &call.reply.inline_convert.capability, 5000);
    }
}

/* More opens than are looked at in a step, and a storage target that is away: what does not need it
 * is closed at once, all else when it is back. */
static void test_many_opens_of_the_dead(void **state) {
    const struct bench_options options = {.seed = 32, .opens_max = 1024};
    struct meta_bench *bench = bench_new(&options);
    struct group_stats stats;

    (void)state;
    for (uint32_t i = 0; i < MANY_WRITERS + MANY_READERS; i++) {
        one_of_many(bench, i);
    }
    bench->osts[1].is_away = true;
    assert_int_equal(bench_ended(bench, bench->sessions[SESSION].id), 0);
    bench_advance(bench, 2 * NS_PER_S);
    assert_true(bench_is_known(bench, bench->sessions[SESSION].id));
    bench_stats(bench, &stats);
    assert_int_equal(stats.open_count, MANY_WRITERS);
    assert_int_equal(stats.totals.settled, 0);
    bench->osts[1].is_away = false;
    while (bench_is_known(bench, bench->sessions[SESSION].id)) {
        bench_turn(bench);
    }
    bench_stats(bench, &stats);
    assert_int_equal(stats.open_count, 0);
    assert_int_equal(stats.totals.settled, MANY_WRITERS);
    bench_free(bench);
}

/* A client that has a file open twice for writing, closes it once, and after a restart presents
 * nothing and sends that close again: the file's row goes with it, as nothing would take it later,
 * and a group with a row of a session that has ended doesn't start. */
static void test_a_close_of_what_nobody_presents(void **state) {
    const struct bench_options options = {.seed = 31, .opens_max = FILES};
    struct files files = {.bench = bench_new(&options)};
    struct meta_bench *bench = files.bench;
    struct call made, again, close, sync;

    (void)state;
    assert_int_equal(file_create(&files, 0, OPEN_WRITE, &made), 0);
    struct ino ino = made.reply.create.attributes.ino;
    bench_prepare(bench, SESSION, OP_OPEN, &again);
    again.request.open = (struct open_request){.ino = ino, .open_flags = OPEN_WRITE};
    assert_int_equal(bench_run(bench, &again), 0);
    bench_prepare(bench, SESSION, OP_SETTLE, &close);
    close.request.settle =
        (struct settle_request){.ino = ino, .close = 1, .open_flags = OPEN_WRITE};
    assert_int_equal(bench_run(bench, &close), 0);
    bench_prepare(bench, SESSION, OP_SYNC, &sync);
    assert_int_equal(bench_run(bench, &sync), 0);
    bench_restart(bench, false);
    bench_attach(bench, SESSION);
    close.header.term = bench->sessions[SESSION].term;
    assert_int_equal(bench_run(bench, &close), 0);
    bench_evict(bench, bench->sessions[SESSION].id);
    while (bench_is_known(bench, bench->sessions[SESSION].id)) {
        bench_turn(bench);
    }
    bench_restart(bench, false);
    assert_int_equal(open_count(&files), 0);
    bench_free(bench);
}

/* The same request under its number, as one that opens nothing. */
static int asked_again(struct files *files, struct call *call) {
    if (call->header.opcode == OP_OPEN) {
        call->request.open.open_flags = 0;
    } else {
        call->request.create.open_flags = 0;
        call->request.create.name = (struct bytes){(const uint8_t *)"-", 1};
    }
    return bench_run(files->bench, call);
}

/* What a client asks of an open that nobody has answered (client/late.h): one that was run is told,
 * also to a later start, which counts it; one that was not is refused, and so is each copy. */
static void test_opens_that_nobody_answered(void **state) {
    const struct bench_options options = {.seed = 33, .opens_max = FILES};
    struct files files = {.bench = bench_new(&options)};
    struct bench_session *who = &files.bench->sessions[SESSION];
    struct call made, open, sync, copy;

    (void)state;
    assert_int_equal(file_create(&files, 0, OPEN_WRITE, &made), 0);
    struct ino ino = made.reply.create.attributes.ino;
    assert_int_equal(asked_again(&files, &made), 0);
    assert_int_equal(made.reply.create.attributes.ino.value, ino.value);
    assert_int_equal(open_count(&files), 1);
    bench_prepare(files.bench, SESSION, OP_SYNC, &sync);
    assert_int_equal(bench_run(files.bench, &sync), 0);
    bench_restart(files.bench, true);
    bench_attach(files.bench, SESSION);
    made.header.term = who->term;
    assert_int_equal(asked_again(&files, &made), 0);
    files.inos[0] = ino;
    assert_int_equal(file_close(&files, 0), 0);
    assert_int_equal(open_count(&files), 0);
    for (int kind = 0; kind < 3; kind++) {
        static const uint32_t flags[] = {OPEN_WRITE | OPEN_TRUNCATE, OPEN_READ, 0};

        bench_prepare(files.bench, SESSION, kind == 2 ? OP_CREATE : OP_OPEN, &open);
        if (kind == 2) {
            open.request.create = (struct create_request){
                .parent = INO_ROOT, .name = {(const uint8_t *)"z", 1}, .open_flags = OPEN_WRITE};
        } else {
            open.request.open = (struct open_request){.ino = ino, .open_flags = flags[kind]};
        }
        copy = open; /* that comes late */
        assert_int_equal(asked_again(&files, &open), -ERR_INVALID);
        assert_int_equal(bench_run(files.bench, &copy), -ERR_INVALID);
        assert_int_equal(open_count(&files), 0);
    }
    assert_int_equal(named_open(&files, ino, &open), 0);
    assert_int_equal(asked_again(&files, &open), 0);
    assert_int_equal(open.reply.open.name, open.header.sequence);
    assert_int_equal(named_open(&files, ino, &copy), 0);
    assert_int_equal(asked_again(&files, &open), -ERR_INVALID); /* A newer name stands for it. */
    assert_int_equal(named_close(&files, ino, copy.header.sequence), 0);
    assert_int_equal(file_create(&files, 1, OPEN_WRITE, &made), 0);
    bench_free(files.bench);
}

/* The client awaits nothing of before, and says so. */
static void floor_tell(struct files *files) {
    struct call call;

    bench_prepare(files->bench, SESSION, OP_SESSION_FLOOR, &call);
    call.header.floor = files->bench->sessions[SESSION].sequence + 1;
    assert_int_equal(bench_run(files->bench, &call), 0);
    bench_advance(files->bench, 2 * NS_PER_S);
}

static void sync_all(struct files *files) {
    struct call call;

    bench_prepare(files->bench, SESSION, OP_SYNC, &call);
    assert_int_equal(bench_run(files->bench, &call), 0);
}

/* In chunks, of which nobody has been told how many bytes they are. */
static void file_write(struct files *files, uint32_t number, uint64_t end) {
    struct call call;

    bench_prepare(files->bench, SESSION, OP_INLINE_CONVERT, &call);
    call.request.inline_convert =
        (struct inline_convert_request){.ino = files->inos[number], .stage = INLINE_CONVERT_BEGIN};
    assert_int_equal(bench_run(files->bench, &call), 0);
    struct capability capability = call.reply.inline_convert.capability;
    bench_chunk_write(files->bench, &capability, end);
    bench_prepare(files->bench, SESSION, OP_INLINE_CONVERT, &call);
    call.request.inline_convert =
        (struct inline_convert_request){.ino = files->inos[number],
                                        .stage = INLINE_CONVERT_COMMIT,
                                        .generation = capability.generation};
    assert_int_equal(bench_run(files->bench, &call), 0);
}

static void all_attach(struct files *files) {
    for (uint32_t i = 0; i < BENCH_SESSIONS; i++) {
        bench_attach(files->bench, i);
    }
}

/* Power takes the records of closes that were answered, and brings their rows back: a client that
 * comes back and presents nothing of them has closed them. What its last close said of a size is
 * asked of the OSTs; what was removed goes. */
static void test_closes_that_power_took(void **state) {
    const struct bench_options options = {.seed = 34, .opens_max = FILES};
    struct files files = {.bench = bench_new(&options)};
    struct call call;

    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(file_create(&files, i, OPEN_WRITE, &call), 0);
        files.inos[i] = call.reply.create.attributes.ino;
        file_write(&files, i, 5000);
    }
    sync_all(&files);
    assert_int_equal(file_close(&files, 0), 0);
    assert_int_equal(file_close(&files, 1), 0);
    assert_int_equal(open_count(&files), 0);
    bench_restart(files.bench, true);
    all_attach(&files);
    assert_int_equal(open_count(&files), 2);
    assert_int_equal(name_remove(&files, 1), 0);
    assert_int_equal(look(&files, files.inos[1]), 0);
    floor_tell(&files);
    assert_int_equal(open_count(&files), 0);
    assert_int_equal(look(&files, files.inos[1]), -ERR_STALE);
    bench_prepare(files.bench, SESSION, OP_GETATTR, &call);
    call.request.getattr.ino = files.inos[0];
    assert_int_equal(bench_run(files.bench, &call), 0);
    assert_int_equal(call.reply.getattr.attributes.size, 5000);
    assert_false(bench_is_fenced(&files.bench->osts[0], files.bench->sessions[SESSION].id));
    bench_restart(files.bench, false);
    assert_int_equal(open_count(&files), 0);
    bench_free(files.bench);
}

/* An open that was run, and whose answer did not come, is not presented either. It stays as long as
 * the client may ask again, also of a file that is removed meanwhile. */
static void test_an_open_whose_answer_is_awaited(void **state) {
    const struct bench_options options = {.seed = 35, .opens_max = FILES};
    struct files files = {.bench = bench_new(&options)};
    struct call made, copy;

    (void)state;
    assert_int_equal(file_create(&files, 0, OPEN_WRITE, &made), 0);
    files.inos[0] = made.reply.create.attributes.ino;
    copy = made;
    bench_restart(files.bench, false);
    all_attach(&files);
    assert_int_equal(name_remove(&files, 0), 0);
    bench_advance(files.bench, 10 * NS_PER_S);
    assert_int_equal(open_count(&files), 1);
    copy.header.term = files.bench->sessions[SESSION].term;
    assert_int_equal(bench_run(files.bench, &copy), 0);
    floor_tell(&files);
    assert_int_equal(open_count(&files), 1);
    assert_int_equal(look(&files, files.inos[0]), 0);
    assert_int_equal(file_close(&files, 0), 0);
    assert_int_equal(open_count(&files), 0);
    assert_int_equal(look(&files, files.inos[0]), -ERR_STALE);
    bench_free(files.bench);
}

/* Of two opens for writing one is answered, presented and closed before the other one is asked for
 * again, whose row has gone with that close: it is written anew. */
static void test_an_open_behind_a_close(void **state) {
    const struct bench_options options = {.seed = 36, .opens_max = FILES};
    struct files files = {.bench = bench_new(&options)};
    struct call made, again;

    (void)state;
    assert_int_equal(file_create(&files, 0, OPEN_WRITE, &made), 0);
    files.inos[0] = made.reply.create.attributes.ino;
    bench_prepare(files.bench, SESSION, OP_OPEN, &again);
    again.request.open = (struct open_request){.ino = files.inos[0], .open_flags = OPEN_WRITE};
    struct call copy = again;
    assert_int_equal(bench_run(files.bench, &again), 0);
    bench_restart(files.bench, false);
    assert_int_equal(file_reopen(&files, 0), 0);
    all_attach(&files);
    assert_int_equal(file_close(&files, 0), 0);
    assert_int_equal(open_count(&files), 0);
    copy.header.term = files.bench->sessions[SESSION].term;
    assert_int_equal(bench_run(files.bench, &copy), 0);
    assert_int_equal(open_count(&files), 1);
    bench_restart(files.bench, false);
    assert_int_equal(open_count(&files), 1);
    bench_free(files.bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_close_of_what_nobody_presents),
        cmocka_unit_test(test_an_open_whose_answer_is_awaited),
        cmocka_unit_test(test_an_open_behind_a_close),
        cmocka_unit_test(test_closes_that_power_took),
        cmocka_unit_test(test_limit_made_smaller),
        cmocka_unit_test(test_opens_by_name),
        cmocka_unit_test(test_opens_that_nobody_answered),
        cmocka_unit_test(test_opens_of_the_dead),
        cmocka_unit_test(test_many_opens_of_the_dead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
