/* A group that has lost the end of its log, and sessions that end without having presented what
 * they had open then: no file that they may write to is told before its OSTs refuse them. */
#include "unit.h"
#include "meta/look.h"
#include "meta_bench.h"
#include <string.h>

/* A file of 5,000 bytes in chunks, closed and on disk. */
static struct ino file_make(struct meta_bench *bench, const char *name) {
    struct call call;

    bench_prepare(bench, 0, OP_CREATE, &call);
    call.request.create =
        (struct create_request){.parent = INO_ROOT,
                                .name = {(const uint8_t *)name, (uint32_t)strlen(name)},
                                .mode = 0644,
                                .open_flags = OPEN_WRITE};
    assert_int_equal(bench_run(bench, &call), 0);
    struct ino ino = call.reply.create.attributes.ino;
    bench_prepare(bench, 0, OP_INLINE_CONVERT, &call);
    call.request.inline_convert.ino = ino;
    call.request.inline_convert.stage = INLINE_CONVERT_BEGIN;
    assert_int_equal(bench_run(bench, &call), 0);
    bench_chunk_write(bench, &call.reply.inline_convert.capability, 5000);
    bench_prepare(bench, 0, OP_SETTLE, &call);
    call.request.settle = (struct settle_request){
        .ino = ino, .size = 5000, .wrote = 1, .close = 1, .open_flags = OPEN_WRITE};
    assert_int_equal(bench_run(bench, &call), 0);
    bench_prepare(bench, 0, OP_SYNC, &call);
    assert_int_equal(bench_run(bench, &call), 0);
    return ino;
}

static void chunks_make(struct meta_bench *bench, uint32_t session, struct ino ino,
                        uint64_t epoch) {
    struct call call;

    bench_prepare(bench, session, OP_INLINE_CONVERT, &call);
    call.request.inline_convert.ino = ino;
    call.request.inline_convert.stage = INLINE_CONVERT_BEGIN;
    assert_int_equal(bench_run(bench, &call), 0);
    uint32_t generation = call.reply.inline_convert.capability.generation;
    bench_prepare(bench, session, OP_INLINE_CONVERT, &call);
    call.request.inline_convert = (struct inline_convert_request){.ino = ino,
                                                                  .stage = INLINE_CONVERT_COMMIT,
                                                                  .size = 3,
                                                                  .inline_epoch = epoch,
                                                                  .generation = generation,
                                                                  .synced = 1};
    assert_int_equal(bench_run(bench, &call), 0);
}

static struct capability write_open(struct meta_bench *bench, uint32_t session, struct ino ino) {
    struct call call;

    bench_prepare(bench, session, OP_OPEN, &call);
    call.request.open = (struct open_request){.ino = ino, .open_flags = OPEN_WRITE};
    assert_int_equal(bench_run(bench, &call), 0);
    return call.reply.open.capability;
}

static void size_prepare(struct meta_bench *bench, uint32_t session, struct ino ino,
                         struct call *call) {
    bench_prepare(bench, session, OP_GETATTR, call);
    call->request.getattr.ino = ino;
}

static uint64_t size_of(struct meta_bench *bench, uint32_t session, struct ino ino) {
    struct call call;

    size_prepare(bench, session, ino, &call);
    assert_int_equal(bench_run(bench, &call), 0);
    return call.reply.getattr.attributes.size;
}

/* The list goes on by one that names the session, if any; how many are fenced then. */
static uint32_t list_tell(struct meta_bench *bench, uint64_t session, uint64_t everywhere) {
    struct call call;

    store_le64(bench->ended, session);
    bench_prepare(bench, 0, OP_SESSIONS_ENDED, &call);
    call.request.sessions_ended =
        (struct sessions_ended_request){.from = bench->list_number,
                                        .number = bench->list_number + (session ? 1 : 0),
                                        .everywhere = everywhere,
                                        .newest = bench->list_number + (session ? 1 : 0),
                                        .names = {bench->ended, session ? 8 : 0}};
    assert_int_equal(bench_run(bench, &call), 0);
    bench->list_number = call.reply.sessions_ended.number;
    return call.reply.sessions_ended.fence_count;
}

static bool is_fenced(const struct meta_bench *bench, uint64_t session) {
    return bench_is_fenced(&bench->osts[0], session) && bench_is_fenced(&bench->osts[1], session);
}

static uint32_t questions(const struct meta_bench *bench) {
    return bench->osts[0].length_count + bench->osts[1].length_count;
}

/* Power takes the record of an open for writing; the session that had it ends, and the size is told
 * only when each OST refuses it, with what it has written meanwhile. Asked once. */
static void test_told_after_the_fence(void **state) {
    const struct bench_options options = {.seed = 21, .cold_per_mille = 200};
    struct meta_bench *bench = bench_new(&options);
    struct ino ino = file_make(bench, "a");
    uint64_t gone = bench->sessions[1].id;
    struct call call;

    (void)state;
    struct capability capability = write_open(bench, 1, ino);
    bench_restart(bench, true);
    bench_attach(bench, 0);
    bench_attach(bench, 2);
    bench_attach(bench, 3);
    bench_chunk_write(bench, &capability, 7000);
    assert_int_equal(list_tell(bench, gone, 0), 1);
    while (bench_is_known(bench, gone)) {
        bench_turn(bench);
    }
    bench->osts[1].is_away = true;
    size_prepare(bench, 0, ino, &call);
    bench_post(bench, &call);
    bench_advance(bench, NS_PER_S);
    assert_false(bench_is_answered(&call));
    bench->osts[1].is_away = false;
    assert_int_equal(bench_finish(bench, &call), 0);
    assert_true(is_fenced(bench, gone));
    assert_int_equal(call.reply.getattr.attributes.size, 7000);
    uint32_t asked = questions(bench);
    assert_int_equal(size_of(bench, 2, ino), 7000);
    assert_int_equal(write_open(bench, 2, ino).truncate_seq, 0);
    assert_int_equal(questions(bench), asked);
    bench_free(bench);
}

/* What is fenced outlives kill and power, until all OSTs have the list: then nobody is asked. */
static void test_fences_end(void **state) {
    const struct bench_options options = {.seed = 22};
    struct meta_bench *bench = bench_new(&options);
    struct ino one = file_make(bench, "a");
    struct ino other = file_make(bench, "b");
    uint64_t gone = bench->sessions[1].id;
    struct call call;

    (void)state;
    bench_restart(bench, true);
    assert_int_equal(list_tell(bench, gone, bench->list_number), 1);
    for (int power = 0; power < 2; power++) {
        bench_restart(bench, power);
        bench_attach(bench, 0);
        bench_attach(bench, 2);
        bench_attach(bench, 3);
        assert_int_equal(list_tell(bench, 0, bench->list_number - 1), 1);
    }
    assert_int_equal(size_of(bench, 0, one), 5000);
    assert_true(is_fenced(bench, gone));
    uint32_t asked = questions(bench);
    assert_int_equal(list_tell(bench, 0, bench->list_number), 0);
    assert_int_equal(size_of(bench, 0, other), 5000);
    assert_int_equal(questions(bench), asked);
    bench_restart(bench, true);
    assert_int_equal(list_tell(bench, 0, 0), 0);
    /* Also of who has attached since the loss, as long as that is not over. */
    bench_attach(bench, 0);
    bench_attach(bench, 3);
    assert_int_equal(list_tell(bench, bench->sessions[3].id, 0), 1);
    assert_int_equal(list_tell(bench, bench->sessions[2].id, bench->list_number + 1), 0);
    size_prepare(bench, 0, other, &call);
    assert_int_equal(bench_run(bench, &call), 0);
    assert_int_equal(questions(bench), asked);
    bench_free(bench);
}

/* More than one message takes, by OSTs of which one is of the version before: the fences of each
 * come one after another, and an older manager has not told which number they wait for. */
static void many_are_fenced(bool old) {
    enum { LOSSES = 24 };
    const struct bench_options options = {.seed = 23};
    struct meta_bench *bench = bench_new(&options);
    struct ino ino = file_make(bench, "a");
    uint64_t gone[LOSSES * 3];
    uint32_t count = 0;

    for (int loss = 0; loss < LOSSES; loss++) {
        bench_restart(bench, true);
        bench_attach(bench, 0);
        for (uint32_t i = 1; i < BENCH_SESSIONS; i++) {
            gone[count++] = bench->sessions[i].id;
            bench_evict(bench, bench->sessions[i].id);
            bench->sessions[i].id = ++bench->next_session_id;
        }
        for (uint32_t i = 1; i < BENCH_SESSIONS; i++) {
            bench_attach(bench, i);
        }
    }
    assert_true(count > WIRE_FENCES_MAX);
    bench->osts[0].fences_one = old;
    assert_int_equal(size_of(bench, 0, ino), 5000);
    for (uint32_t i = 0; i < count; i++) {
        assert_true(is_fenced(bench, gone[i]));
    }
    assert_int_equal(list_tell(bench, 0, bench->list_number - 1), count);
    assert_int_equal(list_tell(bench, 0, bench->list_number), 0);
    bench_free(bench);
}

static void test_many_are_fenced(void **state) {
    (void)state;
    many_are_fenced(false);
}

static void test_many_by_an_older_ost(void **state) {
    (void)state;
    many_are_fenced(true);
}

/* As long as a session may come back nobody's bytes are cut off, and nobody waits for it. Its end
 * is seen also where the file was opened in between. */
static void test_nobody_waits_for_the_unsure(void **state) {
    const struct bench_options options = {.seed = 24};
    struct meta_bench *bench = bench_new(&options);
    struct ino ino = file_make(bench, "a");
    uint64_t late = bench->sessions[1].id;
    struct call call;

    (void)state;
    struct capability capability = write_open(bench, 1, ino);
    bench_chunk_write(bench, &capability, 6000);
    bench_restart(bench, true);
    bench_attach(bench, 0);
    bench_attach(bench, 2);
    bench_attach(bench, 3);
    assert_int_equal(write_open(bench, 2, ino).truncate_seq, 0);
    assert_int_equal(size_of(bench, 0, ino), 6000);
    uint32_t asked = questions(bench);
    assert_int_equal(write_open(bench, 3, ino).truncate_seq, 0);
    assert_int_equal(questions(bench), asked);
    assert_int_equal(list_tell(bench, late, 0), 1);
    bench_chunk_write(bench, &capability, 8000);
    size_prepare(bench, 0, ino, &call);
    assert_int_equal(bench_run(bench, &call), 0);
    assert_true(is_fenced(bench, late));
    assert_int_equal(call.reply.getattr.attributes.size, 8000);
    bench_free(bench);
}

static void write_close(struct meta_bench *bench, uint32_t session, struct ino ino, uint64_t size) {
    struct call call;

    bench_prepare(bench, session, OP_SETTLE, &call);
    call.request.settle =
        (struct settle_request){.ino = ino, .size = size, .close = 1, .open_flags = OPEN_WRITE};
    assert_int_equal(bench_run(bench, &call), 0);
}

static uint64_t truncated_by_open(struct meta_bench *bench, uint32_t session, struct ino ino) {
    uint32_t sequence = write_open(bench, session, ino).truncate_seq;

    assert_int_equal(size_of(bench, 0, ino), 6000);
    return sequence;
}

/* A file was asked for while a session was unsure, which has written on and ended. The next open
 * for writing cuts that off, also where no fence was needed any more, or it has gone. */
static void end_is_seen_behind_the_question(bool was_fenced) {
    const struct bench_options options = {.seed = 24};
    struct meta_bench *bench = bench_new(&options);
    struct ino ino = file_make(bench, "a");
    uint64_t late = bench->sessions[1].id;

    struct capability capability = write_open(bench, 1, ino);
    bench_chunk_write(bench, &capability, 6000);
    bench_restart(bench, true);
    bench_attach(bench, 0);
    bench_attach(bench, 2);
    bench_attach(bench, 3);
    assert_int_equal(truncated_by_open(bench, 2, ino), 0);
    write_close(bench, 2, ino, 6000);
    bench_chunk_write(bench, &capability, 8000);
    assert_int_equal(list_tell(bench, late, was_fenced ? 0 : bench->list_number + 1), was_fenced);
    assert_int_equal(list_tell(bench, 0, bench->list_number), 0);
    while (bench_is_known(bench, late)) {
        bench_turn(bench);
    }
    assert_int_equal(truncated_by_open(bench, 3, ino), 1);
    bench_free(bench);
}

static void test_a_silent_end_behind_the_question(void **state) {
    (void)state;
    end_is_seen_behind_the_question(false);
}

static void test_a_fence_that_went_behind_the_question(void **state) {
    (void)state;
    end_is_seen_behind_the_question(true);
}

/* It ends while one OST has answered and the other one has not: both are asked again. */
static void test_a_silent_end_between_the_answers(void **state) {
    const struct bench_options options = {.seed = 24};
    struct meta_bench *bench = bench_new(&options);
    struct ino ino = file_make(bench, "a");
    uint64_t late = bench->sessions[1].id;
    struct call call;

    (void)state;
    struct capability capability = write_open(bench, 1, ino);
    bench_chunk_write(bench, &capability, 6000);
    bench_restart(bench, true);
    bench_attach(bench, 0);
    bench_attach(bench, 2);
    bench_attach(bench, 3);
    uint32_t before = bench->osts[0].length_count;
    bench->osts[1].is_away = true;
    bench->osts[1].has_none = true;
    bench_prepare(bench, 2, OP_OPEN, &call);
    call.request.open = (struct open_request){.ino = ino, .open_flags = OPEN_WRITE};
    bench_post(bench, &call);
    while (bench->osts[0].length_count == before) {
        bench_turn(bench);
    }
    bench_chunk_write(bench, &capability, 8000);
    assert_int_equal(list_tell(bench, late, bench->list_number + 1), 0);
    bench->osts[1].is_away = false;
    assert_int_equal(bench_finish(bench, &call), 0);
    assert_int_equal(call.reply.open.attributes.size, 8000);
    assert_true(bench->osts[0].length_count > before + 1);
    bench_free(bench);
}

/* What a session had written behind the end when the loss was over was told to nobody. It stays
 * nobody's at the next loss, of which others are fenced or unsure: the size that was told stays,
 * and whoever opens the file for writing cuts it off. */
static void test_an_end_stays_when_its_loss_is_over(void **state) {
    const struct bench_options options = {.seed = 26};
    struct meta_bench *bench = bench_new(&options);
    struct ino ino = file_make(bench, "a");
    struct ino other = file_make(bench, "b");
    uint64_t gone = bench->sessions[1].id;

    (void)state;
    struct capability capability = write_open(bench, 1, ino);
    bench_restart(bench, true);
    bench_attach(bench, 0);
    bench_attach(bench, 2);
    bench_attach(bench, 3);
    bench_chunk_write(bench, &capability, 7000);
    assert_int_equal(list_tell(bench, gone, 0), 1);
    assert_int_equal(list_tell(bench, 0, bench->list_number), 0);
    assert_int_equal(size_of(bench, 0, ino), 5000);
    /* Its loss is not over, so it is asked for. */
    capability = write_open(bench, 2, other);
    bench_restart(bench, true);
    bench_attach(bench, 0);
    bench_chunk_write(bench, &capability, 8000);
    assert_int_equal(list_tell(bench, bench->sessions[2].id, 0), 1);
    uint32_t asked = questions(bench);
    assert_int_equal(size_of(bench, 0, ino), 5000);
    assert_int_equal(questions(bench), asked);
    assert_int_equal(size_of(bench, 0, other), 8000);
    assert_int_equal(write_open(bench, 0, ino).truncate_seq, 1);
    assert_int_equal(size_of(bench, 0, ino), 5000);
    bench_free(bench);
}

/* Two end, one after the other, and all storage targets refuse the first one at once: what it has
 * written is asked for before its end is told, not after the second one's. A kill between changes
 * nothing, and the fences go when the last session is back though nobody tells of them again. */
static void test_an_end_is_told_once_of_several(void **state) {
    const struct bench_options options = {.seed = 27};
    struct meta_bench *bench = bench_new(&options);
    struct ino ino = file_make(bench, "a");
    struct ino other = file_make(bench, "b");
    uint64_t gone = bench->sessions[1].id;

    (void)state;
    struct capability capability = write_open(bench, 1, ino);
    bench_restart(bench, true);
    bench_attach(bench, 0);
    bench_chunk_write(bench, &capability, 7000);
    uint32_t fenced = list_tell(bench, gone, bench->list_number + 1);
    uint64_t told = size_of(bench, 0, ino);
    bench_restart(bench, false);
    bench_attach(bench, 0);
    (void)list_tell(bench, bench->sessions[2].id, 0);
    assert_int_equal(size_of(bench, 0, ino), told);
    assert_int_equal(told, 7000);
    assert_int_equal(fenced, 1);
    assert_int_equal(list_tell(bench, 0, bench->list_number), 1);
    bench_restart(bench, false);
    bench_attach(bench, 0);
    bench_attach(bench, 3);
    assert_int_equal(list_tell(bench, 0, 0), 0);
    uint32_t asked = questions(bench);
    assert_int_equal(size_of(bench, 0, other), 5000);
    assert_int_equal(questions(bench), asked);
    bench_free(bench);
}

/* A loss takes what a session had opened, written and closed. It comes back and ends, while another
 * one has not come back yet: what was told behind that is told behind the other one's end, too. */
static void test_an_end_is_told_once_of_who_came_back(void **state) {
    const struct bench_options options = {.seed = 30};
    struct meta_bench *bench = bench_new(&options);
    struct ino ino = file_make(bench, "a");

    (void)state;
    struct capability capability = write_open(bench, 1, ino);
    bench_chunk_write(bench, &capability, 7000);
    write_close(bench, 1, ino, 7000);
    bench_restart(bench, true);
    bench_attach(bench, 0);
    bench_attach(bench, 1);
    bench_attach(bench, 2);
    assert_int_equal(size_of(bench, 0, ino), 5000);
    (void)list_tell(bench, bench->sessions[1].id, bench->list_number + 1);
    uint64_t told = size_of(bench, 0, ino);
    (void)list_tell(bench, bench->sessions[3].id, 0);
    assert_int_equal(size_of(bench, 0, ino), told);
    bench_free(bench);
}

static struct capability reopen(struct meta_bench *bench, uint32_t session, struct ino ino) {
    struct call call;

    bench_prepare(bench, session, OP_REOPEN, &call);
    call.request.reopen =
        (struct reopen_request){.ino = ino, .open_flags = OPEN_WRITE, .write_count = 1};
    assert_int_equal(bench_run(bench, &call), 0);
    return call.reply.reopen.capability;
}

/* A file that one session kept open over a loss is opened by another one, once that is over. The
 * next loss takes nothing of what makes the file asked for, or the second one was not answered. */
static void test_an_open_outlives_that_its_loss_was_over(void **state) {
    const struct bench_options options = {.seed = 28};
    struct meta_bench *bench = bench_new(&options);
    struct ino ino = file_make(bench, "a");

    (void)state;
    (void)write_open(bench, 1, ino);
    bench_restart(bench, true);
    (void)reopen(bench, 1, ino);
    bench_attach(bench, 0);
    assert_int_equal(size_of(bench, 0, ino), 5000);
    for (uint32_t i = 1; i < BENCH_SESSIONS; i++) {
        bench_attach(bench, i);
    }
    assert_int_equal(list_tell(bench, 0, 0), 0);
    struct capability capability = write_open(bench, 2, ino);
    bench_restart(bench, true);
    bench_attach(bench, 0);
    bench_chunk_write(bench, &capability, 8000);
    assert_int_equal(list_tell(bench, bench->sessions[2].id, 0), 1);
    assert_int_equal(size_of(bench, 0, ino), 8000);
    assert_true(is_fenced(bench, bench->sessions[2].id));
    bench_free(bench);
}

/* Who kept a file open over a loss that is over closes it, and speaks of a truncation's past: what
 * the storage targets have is his. */
static void test_a_close_outlives_that_its_loss_was_over(void **state) {
    const struct bench_options options = {.seed = 29};
    struct meta_bench *bench = bench_new(&options);
    struct ino ino = file_make(bench, "a");
    struct call call;

    (void)state;
    (void)write_open(bench, 1, ino);
    bench_restart(bench, true);
    struct capability capability = reopen(bench, 1, ino);
    bench_attach(bench, 1);
    bench_attach(bench, 0);
    bench_prepare(bench, 0, OP_SETATTR, &call);
    call.request.setattr =
        (struct setattr_request){.ino = ino, .valid = SETATTR_SIZE, .size = 4000};
    assert_int_equal(bench_run(bench, &call), 0);
    bench_attach(bench, 2);
    bench_attach(bench, 3);
    assert_int_equal(list_tell(bench, 0, 0), 0);
    capability.truncate_seq = 1;
    bench_chunk_write(bench, &capability, 9000);
    write_close(bench, 1, ino, 0);
    assert_int_equal(size_of(bench, 0, ino), 9000);
    bench_free(bench);
}

/* A writer that has not heard of a truncation closes the file. The group is killed, or power fails,
 * before the storage targets have said how long it is: who asks next has them asked again. */
static void size_outlives(bool power) {
    const struct bench_options options = {.seed = 30};
    struct meta_bench *bench = bench_new(&options);
    struct ino ino = file_make(bench, "a");
    struct call call;

    struct capability capability = write_open(bench, 1, ino);
    bench_prepare(bench, 0, OP_SETATTR, &call);
    call.request.setattr =
        (struct setattr_request){.ino = ino, .valid = SETATTR_SIZE, .size = 4000};
    assert_int_equal(bench_run(bench, &call), 0);
    capability.truncate_seq = 1;
    bench_chunk_write(bench, &capability, 9000);
    bench->osts[1].is_away = true;
    write_close(bench, 1, ino, 0);
    if (power) {
        bench_prepare(bench, 1, OP_SYNC, &call);
        assert_int_equal(bench_run(bench, &call), 0);
    }
    bench_restart(bench, power);
    for (uint32_t i = 0; i < BENCH_SESSIONS; i++) {
        bench_attach(bench, i);
    }
    size_prepare(bench, 0, ino, &call);
    bench_post(bench, &call);
    bench_advance(bench, NS_PER_S);
    assert_false(bench_is_answered(&call));
    bench->osts[1].is_away = false;
    assert_int_equal(bench_finish(bench, &call), 0);
    assert_int_equal(call.reply.getattr.attributes.size, 9000);
    uint32_t asked = questions(bench);
    assert_int_equal(size_of(bench, 2, ino), 9000);
    assert_int_equal(questions(bench), asked);
    bench_free(bench);
}

static void test_a_size_that_osts_know_outlives_a_kill(void **state) {
    (void)state;
    size_outlives(false);
}

static void test_a_size_that_osts_know_outlives_power(void **state) {
    (void)state;
    size_outlives(true);
}

/* An open by the third client, which waits for a size that a storage target is to tell. */
static struct meta_bench *bench_of_waiting_open(uint64_t seed, struct ino *ret_ino,
                                                struct call *first) {
    const struct bench_options options = {.seed = seed};
    struct meta_bench *bench = bench_new(&options);
    struct ino ino = file_make(bench, "a");
    struct call call;

    (void)write_open(bench, 1, ino);
    bench_prepare(bench, 0, OP_SETATTR, &call);
    call.request.setattr =
        (struct setattr_request){.ino = ino, .valid = SETATTR_SIZE, .size = 4000};
    assert_int_equal(bench_run(bench, &call), 0);
    bench->osts[1].is_away = true;
    write_close(bench, 1, ino, 0);
    bench_prepare(bench, 2, OP_OPEN, first);
    first->request.open = (struct open_request){.ino = ino, .open_flags = OPEN_WRITE};
    *ret_ino = ino;
    return bench;
}

/* An open waits for a size. Who asked has given it up, and asks under its number whether it has
 * taken effect: he gets the answer, by whom nobody waits for it any more is let go. */
static void test_who_asks_again_is_answered(void **state) {
    struct ino ino;
    struct call first;
    struct meta_bench *bench = bench_of_waiting_open(31, &ino, &first);
    struct call call = first;

    (void)state;
    call.request.open.open_flags = 0;
    bench_post(bench, &first);
    bench_advance(bench, NS_PER_S);
    assert_false(bench_is_answered(&first));
    bench_post(bench, &call);
    assert_int_equal(bench_finish(bench, &call), -ERR_INVALID);
    assert_true(bench_is_answered(&first));
    assert_int_equal(first.result, CALL_DISCARDED);
    bench->osts[1].is_away = false;
    assert_int_equal(size_of(bench, 2, ino), 4000);
    bench_free(bench);
}

/* Somebody else who sends the number of a mutation that waits is refused, and ends nothing. */
static void test_a_stranger_takes_nobody_s_place(void **state) {
    struct ino ino;
    struct call first;
    struct meta_bench *bench = bench_of_waiting_open(33, &ino, &first);
    struct call call = first;

    (void)state;
    call.life[0] ^= 1;
    bench_post(bench, &first);
    bench_advance(bench, NS_PER_S);
    bench_post(bench, &call);
    assert_int_equal(bench_finish(bench, &call), -ERR_UNKNOWN_SESSION);
    assert_false(bench_is_answered(&first));
    bench->osts[1].is_away = false;
    assert_int_equal(bench_finish(bench, &first), 0);
    bench_free(bench);
}

/* Who writes into the chunks that another one has made of a file relies on them, and is told of no
 * loss but of his own: so power that comes behind his open leaves them there. */
static void test_chunks_of_another_one_are_on_disk(void **state) {
    static const char name[] = "a";
    const struct bench_options options = {.seed = 32};
    struct meta_bench *bench = bench_new(&options);
    struct call call;

    (void)state;
    bench_prepare(bench, 0, OP_CREATE, &call);
    call.request.create = (struct create_request){.parent = INO_ROOT,
                                                  .name = {(const uint8_t *)name, 1},
                                                  .mode = 0644,
                                                  .open_flags = OPEN_WRITE};
    assert_int_equal(bench_run(bench, &call), 0);
    struct ino ino = call.reply.create.attributes.ino;
    bench_prepare(bench, 0, OP_SYNC, &call);
    assert_int_equal(bench_run(bench, &call), 0);
    bench_prepare(bench, 0, OP_INLINE_WRITE, &call);
    call.request.inline_write.ino = ino;
    call.request.inline_write.data = (struct bytes){(const uint8_t *)"abc", 3};
    assert_int_equal(bench_run(bench, &call), 0);
    chunks_make(bench, 0, ino, call.reply.inline_write.attributes.epoch);
    (void)write_open(bench, 1, ino);
    bench_restart(bench, true);
    bench_attach(bench, 2);
    size_prepare(bench, 2, ino, &call);
    assert_int_equal(bench_run(bench, &call), 0);
    assert_int_equal(call.reply.getattr.attributes.data_state, DATA_CHUNKED);
    bench_free(bench);
}

static void look_prepare(struct meta_bench *bench, struct ino ino, bool any_size,
                         struct call *call) {
    bench_prepare(bench, 0, OP_CROSS_LOOK, call);
    call->request.cross_look =
        (struct cross_look_request){.ino = ino, .what = LOOK_INODE, .any_size = any_size};
}

static uint64_t size_looked_at(const struct meta_bench *bench) {
    struct look_answer answer;

    memcpy(&answer, bench->bulk, sizeof answer);
    assert_true(answer.has_inode);
    return answer.inode.size;
}

/* A transaction of another group that tells no size waits for no OST. */
static void test_a_look_waits_for_no_size(void **state) {
    const struct bench_options options = {.seed = 25};
    struct meta_bench *bench = bench_new(&options);
    struct ino ino = file_make(bench, "a");
    struct call call;

    (void)state;
    struct capability capability = write_open(bench, 1, ino);
    bench_restart(bench, true);
    bench_chunk_write(bench, &capability, 7000);
    assert_int_equal(list_tell(bench, bench->sessions[1].id, 0), 1);
    bench->osts[1].is_away = true;
    look_prepare(bench, ino, true, &call);
    assert_int_equal(bench_run(bench, &call), 0);
    assert_int_equal(size_looked_at(bench), 5000);
    look_prepare(bench, ino, false, &call);
    bench_post(bench, &call);
    bench_advance(bench, NS_PER_S);
    assert_false(bench_is_answered(&call));
    bench->osts[1].is_away = false;
    assert_int_equal(bench_finish(bench, &call), 0);
    assert_int_equal(size_looked_at(bench), 7000);
    bench_free(bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_told_after_the_fence),
        cmocka_unit_test(test_fences_end),
        cmocka_unit_test(test_many_are_fenced),
        cmocka_unit_test(test_many_by_an_older_ost),
        cmocka_unit_test(test_nobody_waits_for_the_unsure),
        cmocka_unit_test(test_a_silent_end_behind_the_question),
        cmocka_unit_test(test_a_fence_that_went_behind_the_question),
        cmocka_unit_test(test_a_silent_end_between_the_answers),
        cmocka_unit_test(test_an_end_stays_when_its_loss_is_over),
        cmocka_unit_test(test_an_end_is_told_once_of_several),
        cmocka_unit_test(test_an_end_is_told_once_of_who_came_back),
        cmocka_unit_test(test_an_open_outlives_that_its_loss_was_over),
        cmocka_unit_test(test_a_close_outlives_that_its_loss_was_over),
        cmocka_unit_test(test_a_size_that_osts_know_outlives_a_kill),
        cmocka_unit_test(test_a_size_that_osts_know_outlives_power),
        cmocka_unit_test(test_who_asks_again_is_answered),
        cmocka_unit_test(test_a_stranger_takes_nobody_s_place),
        cmocka_unit_test(test_chunks_of_another_one_are_on_disk),
        cmocka_unit_test(test_a_look_waits_for_no_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
