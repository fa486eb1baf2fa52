/* A group in trouble: killed with calls in flight, a log that is full or fails, limits reached,
 * rows that are damaged, a stop. */
#include "unit.h"
#include "kv/kv_mem.h"
#include "meta/rows.h"
#include "play.h"
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 30, LANE_STEPS = 150, LANE_NAMES = 5, BURST = 500 };

enum lane_kind { LANE_CREATE, LANE_MKDIR, LANE_UNLINK, LANE_RMDIR, LANE_RENAME, LANE_CLOSE };

/* One session at work in a directory of its own, one call at a time: so the model, told of each
 * operation when it is answered, says exactly what the answer must be. */
struct lane {
    struct play *play;
    uint32_t session;
    struct model_inode *directory;
    enum lane_kind kind;
    struct model_place place;
    struct model_place to;
    struct model_inode *inode; /* to be closed */
    struct call call;
    struct call copy; /* a second copy of it, on its way at the same time */
    bool busy;
    bool copied;
    uint32_t done_count;
};

static const struct model_who nobody_else = {0};

static struct model_place lane_place(struct lane *lane) {
    return (struct model_place){&nobody_else, lane->directory,
                                lane->play->names[play_below(lane->play, LANE_NAMES)]};
}

static struct model_inode *lane_open_inode(struct lane *lane) {
    for (struct model_inode *inode = model_first(lane->play->fs); inode; inode = inode->next) {
        if (inode->write_opens[lane->session] > 0) {
            return inode;
        }
    }
    return NULL;
}

static void lane_fill(struct lane *lane) {
    struct call *call = &lane->call;
    struct ino parent = play_ino_of(lane->directory);
    static const uint16_t opcodes[] = {OP_CREATE, OP_MKDIR,  OP_UNLINK,
                                       OP_RMDIR,  OP_RENAME, OP_SETTLE};

    bench_prepare(lane->play->bench, lane->session, opcodes[lane->kind], call);
    switch (lane->kind) {
    case LANE_CREATE:
        call->request.create.parent = parent;
        call->request.create.name = lane->place.name;
        call->request.create.mode = 0644;
        call->request.create.open_flags = OPEN_WRITE;
        break;
    case LANE_MKDIR:
        call->request.mkdir.parent = parent;
        call->request.mkdir.name = lane->place.name;
        call->request.mkdir.mode = 0755;
        break;
    case LANE_UNLINK:
        call->request.unlink.parent = parent;
        call->request.unlink.name = lane->place.name;
        break;
    case LANE_RMDIR:
        call->request.rmdir.parent = parent;
        call->request.rmdir.name = lane->place.name;
        break;
    case LANE_RENAME:
        call->request.rename.parent = parent;
        call->request.rename.name = lane->place.name;
        call->request.rename.new_parent = parent;
        call->request.rename.new_name = lane->to.name;
        break;
    case LANE_CLOSE:
        call->request.settle.ino = play_ino_of(lane->inode);
        call->request.settle.close = 1;
        call->request.settle.open_flags = OPEN_WRITE;
        break;
    }
}

static void lane_begin(struct lane *lane) {
    lane->kind = (enum lane_kind)play_below(lane->play, 6);
    lane->inode = lane_open_inode(lane);
    if (lane->kind == LANE_CLOSE && !lane->inode) {
        lane->kind = LANE_CREATE;
    }
    lane->place = lane_place(lane);
    lane->to = lane_place(lane);
    lane_fill(lane);
    lane->busy = true;
    lane->copied = play_below(lane->play, 3) == 0;
    lane->copy = lane->call;
    bench_post(lane->play->bench, &lane->call);
    if (lane->copied) {
        bench_post(lane->play->bench, &lane->copy);
    }
}

static int lane_model(struct lane *lane) {
    struct model_fs *fs = lane->play->fs;
    const struct model_open open = {.session = lane->session, .flags = MODEL_WRITE, .mode = 0644};
    const struct model_new_inode directory = {.mode = 0040755};
    struct model_inode *inode = NULL;
    bool created = false;
    int r = 0;

    switch (lane->kind) {
    case LANE_CREATE:
        r = model_create(fs, &lane->place, &open, &inode, &created);
        if (created) {
            inode->ino = lane->call.reply.create.attributes.ino.value;
        }
        return r;
    case LANE_MKDIR:
        r = model_make(fs, &lane->place, &directory, &inode);
        if (r == 0) {
            inode->ino = lane->call.reply.mkdir.attributes.ino.value;
        }
        return r;
    case LANE_UNLINK:
        return model_unlink(fs, &lane->place);
    case LANE_RMDIR:
        return model_rmdir(fs, &lane->place);
    case LANE_RENAME:
        return model_rename(fs, &lane->place, &lane->to, 0);
    default:
        return model_close(fs, lane->inode, lane->session, OPEN_WRITE);
    }
}

static void lane_look(struct lane *lane) {
    if (!lane->busy || !bench_is_answered(&lane->call) ||
        (lane->copied && !bench_is_answered(&lane->copy))) {
        return;
    }
    if (lane->copied && lane->copy.result != CALL_DISCARDED &&
        lane->call.result != CALL_DISCARDED) {
        assert_int_equal(lane->copy.result, lane->call.result);
    }
    if (lane->call.result == CALL_DISCARDED) {
        assert_true(lane->copied);
        lane->call = lane->copy;
    }
    int result = lane->call.result;
    int wanted = lane_model(lane);
    if (result != wanted) {
        fail_msg("seed %llu: %s answers %s, the model %s",
                 (unsigned long long)lane->play->bench->seed, wire_name(lane->call.header.opcode),
                 err_name(result), err_name(wanted));
    }
    lane->busy = false;
    lane->done_count++;
}

/* What was in flight is sent again, same sequence, once the session is attached anew. */
static void lanes_restart(struct play *play, struct lane *lanes) {
    if (play_below(play, 2)) {
        bench_restart(play->bench, false);
    } else {
        bench_stop_and_start(play->bench);
    }
    for (uint32_t i = 0; i < BENCH_SESSIONS; i++) {
        play_present(play, i, lanes[i].busy && lanes[i].kind == LANE_CLOSE ? lanes[i].inode : NULL);
        bench_attach(play->bench, i);
    }
    for (uint32_t i = 0; i < BENCH_SESSIONS; i++) {
        struct lane *lane = &lanes[i];

        if (!lane->busy) {
            continue;
        }
        lane->call.header.term = play->bench->sessions[i].term;
        lane->copied = false;
        bench_post(play->bench, &lane->call);
    }
}

static void lanes_start(struct play *play, struct lane *lanes) {
    for (uint32_t i = 0; i < BENCH_SESSIONS; i++) {
        const struct model_new_inode what = {.mode = 0040755};
        struct model_place place = {&nobody_else, model_root(play->fs), play->names[i]};
        struct call call;

        lanes[i] = (struct lane){.play = play, .session = i};
        bench_prepare(play->bench, i, OP_MKDIR, &call);
        call.request.mkdir.parent = INO_ROOT;
        call.request.mkdir.name = place.name;
        call.request.mkdir.mode = 0755;
        assert_int_equal(bench_run(play->bench, &call), 0);
        assert_int_equal(model_make(play->fs, &place, &what, &lanes[i].directory), 0);
        lanes[i].directory->ino = call.reply.mkdir.attributes.ino.value;
    }
}

static bool lanes_done(const struct lane *lanes) {
    bool done = true;

    for (uint32_t i = 0; i < BENCH_SESSIONS; i++) {
        done = done && !lanes[i].busy && lanes[i].done_count >= LANE_STEPS;
    }
    return done;
}

/* Kills and stops with calls of four sessions in flight: each mutation takes effect just once. */
static void test_kill_in_flight(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        const struct bench_options options = {.seed = seed, .cold_per_mille = 300};
        static struct lane lanes[BENCH_SESSIONS];
        struct group_stats stats;
        struct play play;

        play_new(&play, &options);
        lanes_start(&play, lanes);
        while (!lanes_done(lanes)) {
            for (uint32_t i = 0; i < BENCH_SESSIONS; i++) {
                if (!lanes[i].busy && lanes[i].done_count < LANE_STEPS) {
                    lane_begin(&lanes[i]);
                }
            }
            if (play_below(&play, 120) == 0) {
                lanes_restart(&play, lanes);
            }
            bench_turn(play.bench);
            for (uint32_t i = 0; i < BENCH_SESSIONS; i++) {
                lane_look(&lanes[i]);
            }
        }
        for (uint32_t i = 0; i < BENCH_SESSIONS; i++) {
            play_list(&play, lanes[i].directory, 4000, true);
        }
        bench_stats(play.bench, &stats);
        assert_int_equal(stats.inode_count, model_inode_count(play.fs));
        for (uint32_t i = 0; i < BENCH_SESSIONS; i++) {
            play_evict(&play, i);
        }
        bench_stats(play.bench, &stats);
        assert_int_equal(stats.inode_count, model_inode_count(play.fs));
        assert_int_equal(stats.open_count, 0);
        play_free(&play);
    }
}

static void create_prepare(struct meta_bench *bench, uint32_t number, struct call *call,
                           uint8_t name[4]) {
    name[0] = 'f';
    name[1] = (uint8_t)('0' + number / 100);
    name[2] = (uint8_t)('0' + number / 10 % 10);
    name[3] = (uint8_t)('0' + number % 10);
    bench_prepare(bench, number % BENCH_SESSIONS, OP_CREATE, call);
    call->request.create.parent = INO_ROOT;
    call->request.create.name = (struct bytes){name, 4};
    call->request.create.mode = 0644;
    call->request.create.open_flags = OPEN_WRITE;
}

/* More at once than the log takes: some wait, all are answered. */
static void test_full_log(void **state) {
    static struct call calls[BURST];
    static uint8_t names[BURST][4];
    const struct bench_options options = {.seed = 3, .opens_max = BURST};
    struct meta_bench *bench = bench_new(&options);
    struct group_stats stats;

    (void)state;
    for (uint32_t i = 0; i < BURST; i++) {
        create_prepare(bench, i, &calls[i], names[i]);
        bench_post(bench, &calls[i]);
    }
    for (uint32_t i = 0; i < BURST; i++) {
        assert_int_equal(bench_finish(bench, &calls[i]), 0);
    }
    bench_stats(bench, &stats);
    assert_true(stats.totals.waited > 0);
    assert_int_equal(stats.inode_count, BURST + 1);
    assert_int_equal(stats.open_count, BURST);
    bench_free(bench);
}

/* Another copy of a call is answered as the first one was when the disk below is full by then: with
 * what was done; and when what was refused could be done since. */
static void test_copies_on_full_disk(void **state) {
    const struct bench_options options = {.seed = 6, .opens_max = 1000};
    struct meta_bench *bench = bench_new(&options);
    static uint8_t names[1000][4];
    struct call first, copy, last, sync;
    uint32_t count = 1;
    int r = 0;

    (void)state;
    create_prepare(bench, 0, &first, names[0]);
    copy = first;
    assert_int_equal(bench_run(bench, &first), 0);
    kv_mem_store_full(bench->store, true);
    while (r == 0 && count < 1000) {
        create_prepare(bench, count, &last, names[count]);
        last.header.floor = first.header.sequence;
        r = bench_run(bench, &last);
        count++;
        /* Each sync point takes a block of the log. */
        bench_prepare(bench, 0, OP_SYNC, &sync);
        assert_int_equal(r < 0 ? 0 : bench_run(bench, &sync), 0);
    }
    assert_int_equal(r, -ERR_NO_SPACE);
    copy.header.floor = first.header.sequence;
    assert_int_equal(bench_run(bench, &copy), 0);
    assert_int_equal(copy.reply.create.attributes.ino.value,
                     first.reply.create.attributes.ino.value);
    kv_mem_store_full(bench->store, false);
    assert_int_equal(bench_run(bench, &last), -ERR_NO_SPACE);
    bench_free(bench);
}

/* The medium fails at the n-th operation: every call is answered, and so is the stop. */
static void test_failing_log(void **state) {
    (void)state;
    for (uint64_t countdown = 0; countdown < 12; countdown++) {
        /* Reads of rows end with the crash as well: a call that waits for one would wait on. */
        const struct bench_options options = {.seed = countdown + 1, .cold_per_mille = 0};
        struct meta_bench *bench = bench_new(&options);
        uint8_t name[4];
        struct call call;
        int r = 0;

        memory_env_crash_after(bench->world, countdown);
        for (uint32_t i = 0; r == 0; i++) {
            assert_true(i < 1000);
            create_prepare(bench, i % 1000, &call, name);
            r = bench_run(bench, &call);
            if (r == 0) {
                bench_prepare(bench, 0, OP_SYNC, &call);
                r = bench_run(bench, &call);
            }
        }
        assert_true(bench_ended(bench, bench->sessions[1].id) < 0);
        bench_prepare(bench, 0, OP_GETATTR, &call);
        call.request.getattr.ino = INO_ROOT;
        assert_true(bench_run(bench, &call) < 0);
        assert_true(bench_stop(bench) < 0);
        bench_free(bench);
    }
}

static void test_limits(void **state) {
    const struct bench_options options = {.seed = 5, .opens_max = 10};
    struct meta_bench *bench = bench_new(&options);
    uint8_t name[4];
    struct call call;

    (void)state;
    for (uint32_t i = 0; i < 10; i++) {
        create_prepare(bench, i, &call, name);
        assert_int_equal(bench_run(bench, &call), 0);
    }
    create_prepare(bench, 10, &call, name);
    assert_int_equal(bench_run(bench, &call), -ERR_TOO_MANY_OPEN);
    /* It has had no effect: the name is free. */
    bench_prepare(bench, 0, OP_LOOKUP, &call);
    call.request.lookup.parent = INO_ROOT;
    call.request.lookup.name = (struct bytes){name, 4};
    assert_int_equal(bench_run(bench, &call), -ERR_NOT_FOUND);
    bench_prepare(bench, 0, OP_SESSION_ATTACH, &call);
    call.request.session_attach = (struct session_attach_request){
        .session = 900, .incarnation = 1, .node = 1, .known_term = 0};
    assert_int_equal(bench_run(bench, &call), -ERR_BUSY);
    bench_prepare(bench, 0, OP_CHUNK_READ, &call);
    assert_int_equal(bench_run(bench, &call), -ERR_NOT_SUPPORTED);
    bench_free(bench);
}

/* A damaged inode or entry answers -ERR_CORRUPT, and all else goes on. */
static void test_damaged_rows(void **state) {
    const struct bench_options options = {.seed = 6};
    struct meta_bench *bench = bench_new(&options);
    uint8_t name[4];
    struct ino inos[2];
    struct call call;

    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        create_prepare(bench, i, &call, name);
        assert_int_equal(bench_run(bench, &call), 0);
        inos[i] = call.reply.create.attributes.ino;
    }
    assert_int_equal(bench_stop(bench), 0);
    struct kv_key key = key_inode(inos[0]);
    assert_int_equal(kv_mem_store_damage(bench->store, &key), 0);
    bench_restart(bench, false);
    bench_attach(bench, 2);
    bench_prepare(bench, 2, OP_GETATTR, &call);
    call.request.getattr.ino = inos[0];
    assert_int_equal(bench_run(bench, &call), -ERR_CORRUPT);
    bench_prepare(bench, 2, OP_GETATTR, &call);
    call.request.getattr.ino = inos[1];
    assert_int_equal(bench_run(bench, &call), 0);
    create_prepare(bench, 2, &call, name);
    assert_int_equal(bench_run(bench, &call), 0);
    /* The session that has it open can still be ended. */
    bench_evict(bench, bench->sessions[0].id);
    bench_free(bench);
}

/* A file of 5,000 bytes in chunks, closed and on disk. */
static struct ino chunked_file(struct meta_bench *bench, struct bench_chunks **ret_chunks) {
    uint8_t name[4];
    struct call call;

    create_prepare(bench, 0, &call, name);
    assert_int_equal(bench_run(bench, &call), 0);
    struct ino ino = call.reply.create.attributes.ino;
    bench_prepare(bench, 0, OP_INLINE_CONVERT, &call);
    call.request.inline_convert.ino = ino;
    call.request.inline_convert.stage = INLINE_CONVERT_BEGIN;
    assert_int_equal(bench_run(bench, &call), 0);
    bench_chunk_write(bench, &call.reply.inline_convert.capability, 5000);
    *ret_chunks =
        bench_chunks_find(bench, ino.value, call.reply.inline_convert.capability.generation);
    bench_prepare(bench, 0, OP_SETTLE, &call);
    call.request.settle = (struct settle_request){
        .ino = ino, .size = 5000, .wrote = 1, .close = 1, .open_flags = OPEN_WRITE};
    assert_int_equal(bench_run(bench, &call), 0);
    bench_prepare(bench, 0, OP_SYNC, &call);
    assert_int_equal(bench_run(bench, &call), 0);
    return ino;
}

static uint64_t size_of(struct meta_bench *bench, struct ino ino) {
    struct call call;

    bench_prepare(bench, 1, OP_GETATTR, &call);
    call.request.getattr.ino = ino;
    assert_int_equal(bench_run(bench, &call), 0);
    return call.reply.getattr.attributes.size;
}

static void power_cut(struct meta_bench *bench) {
    bench_restart(bench, true);
    for (uint32_t i = 0; i < BENCH_SESSIONS; i++) {
        bench_attach(bench, i);
    }
}

/* An unlink that power loss takes back has not destroyed what was synced; one that is on disk frees
 * the chunks. */
static void test_unlink_on_disk_first(void **state) {
    const struct bench_options options = {.seed = 8};
    struct meta_bench *bench = bench_new(&options);
    struct bench_chunks *chunks = NULL;
    struct ino ino = chunked_file(bench, &chunks);
    struct call call;

    (void)state;
    for (int round = 0; round < 2; round++) {
        bench_prepare(bench, 1, OP_UNLINK, &call);
        call.request.unlink.parent = INO_ROOT;
        call.request.unlink.name = (struct bytes){(const uint8_t *)"f000", 4};
        assert_int_equal(bench_run(bench, &call), 0);
        (void)size_of(bench, INO_ROOT);
        assert_false(chunks->deleted);
        if (round == 0) {
            power_cut(bench);
            assert_int_equal(size_of(bench, ino), 5000);
            assert_false(chunks->deleted);
        }
    }
    bench_prepare(bench, 0, OP_SYNC, &call);
    assert_int_equal(bench_run(bench, &call), 0);
    power_cut(bench);
    bench_advance(bench, 10 * NS_PER_S);
    assert_true(chunks->deleted);
    bench_free(bench);
}

/* Nothing tells of a truncation before it is on disk: not its answer, not another's open. */
static void test_truncate_on_disk_first(void **state) {
    const struct bench_options options = {.seed = 10};
    struct meta_bench *bench = bench_new(&options);
    struct bench_chunks *chunks = NULL;
    struct ino ino = chunked_file(bench, &chunks);
    struct call truncate;
    struct call opened;
    struct call stat;

    (void)state;
    for (int round = 0; round < 2; round++) {
        bench_prepare(bench, 1, OP_SETATTR, &truncate);
        truncate.request.setattr =
            (struct setattr_request){.ino = ino, .valid = SETATTR_SIZE, .size = 10};
        bench_post(bench, &truncate);
        bench_prepare(bench, 2, OP_OPEN, &opened);
        opened.request.open = (struct open_request){.ino = ino, .open_flags = OPEN_WRITE};
        bench_post(bench, &opened);
        bench_prepare(bench, 3, OP_GETATTR, &stat);
        stat.request.getattr.ino = ino;
        bench_post(bench, &stat);
        assert_false(bench_is_answered(&truncate));
        assert_false(bench_is_answered(&opened));
        assert_true(bench_is_answered(&stat));
        assert_int_equal(chunks->length, 5000);
        if (round == 0) {
            power_cut(bench);
            assert_int_equal(size_of(bench, ino), 5000);
        }
    }
    assert_int_equal(bench_finish(bench, &truncate), 0);
    assert_int_equal(bench_finish(bench, &opened), 0);
    assert_int_equal(opened.reply.open.capability.truncate_seq, 1);
    assert_int_equal(size_of(bench, ino), 10);
    bench_advance(bench, 10 * NS_PER_S);
    assert_int_equal(chunks->length, 10);
    bench_free(bench);
}

static struct capability open_to_write(struct meta_bench *bench, uint32_t session, struct ino ino) {
    struct call call;

    bench_prepare(bench, session, OP_OPEN, &call);
    call.request.open = (struct open_request){.ino = ino, .open_flags = OPEN_WRITE};
    assert_int_equal(bench_run(bench, &call), 0);
    return call.reply.open.capability;
}

static void close_writer(struct meta_bench *bench, uint32_t session, struct ino ino) {
    struct call call;

    bench_prepare(bench, session, OP_SETTLE, &call);
    call.request.settle = (struct settle_request){.ino = ino, .close = 1, .open_flags = OPEN_WRITE};
    assert_int_equal(bench_run(bench, &call), 0);
}

static void grow(struct meta_bench *bench, struct ino ino, uint64_t size) {
    struct call call;

    bench_prepare(bench, 1, OP_SETATTR, &call);
    call.request.setattr =
        (struct setattr_request){.ino = ino, .valid = SETATTR_SIZE, .size = size};
    assert_int_equal(bench_run(bench, &call), 0);
}

/* Opened, written and closed since the last sync point: the group forgets it, the OSTs do not. */
static void lose_growth(struct meta_bench *bench, struct ino ino, struct bench_chunks *chunks) {
    struct capability capability = open_to_write(bench, 2, ino);

    bench_chunk_write(bench, &capability, 9000);
    close_writer(bench, 2, ino);
    power_cut(bench);
    assert_int_equal(size_of(bench, ino), 5000);
    assert_int_equal(chunks->length, 9000);
}

/* What power loss leaves behind a file's end is cut before the file grows, be it by a truncation or
 * by one who opens it for writing; once for each loss, and not for a kill or a stop. */
static void test_growth_after_power_loss(void **state) {
    const struct bench_options options = {.seed = 12};
    struct meta_bench *bench = bench_new(&options);
    struct bench_chunks *chunks = NULL;
    struct ino ino = chunked_file(bench, &chunks);
    struct capability capability;

    (void)state;
    grow(bench, ino, 5000);
    assert_int_equal(chunks->truncate_seq, 0); /* nothing was lost so far */
    lose_growth(bench, ino, chunks);
    grow(bench, ino, 20000);
    bench_advance(bench, NS_PER_S);
    assert_int_equal(chunks->length, 5000);
    assert_int_equal(chunks->truncate_seq, 1);
    grow(bench, ino, 5000);
    bench_advance(bench, NS_PER_S);

    lose_growth(bench, ino, chunks);
    capability = open_to_write(bench, 1, ino);
    assert_int_equal(capability.truncate_seq, 3);
    assert_int_equal(capability.truncate_size, 5000);
    bench_chunk_write(bench, &capability, 12000);
    close_writer(bench, 1, ino);
    assert_int_equal(open_to_write(bench, 1, ino).truncate_seq, 3);
    close_writer(bench, 1, ino);

    bench_restart(bench, false);
    for (uint32_t i = 0; i < BENCH_SESSIONS; i++) {
        bench_attach(bench, i);
    }
    assert_int_equal(open_to_write(bench, 1, ino).truncate_seq, 3);
    close_writer(bench, 1, ino);
    bench_stop_and_start(bench);
    for (uint32_t i = 0; i < BENCH_SESSIONS; i++) {
        bench_attach(bench, i);
    }
    assert_int_equal(open_to_write(bench, 1, ino).truncate_seq, 3);
    bench_free(bench);
}

static struct lost_row lost_row_of(struct meta_bench *bench, bool *ret_found) {
    struct lost_row row = {0};
    uint16_t count;
    struct call call;

    bench_prepare(bench, 0, OP_FSCK_LIST, &call);
    call.request.fsck_list = (struct fsck_list_request){.what = FSCK_LOST, .bytes_max = 4096};
    call.bulk_in = (struct buffer){.data = bench->bulk, .capacity = sizeof bench->bulk};
    assert_int_equal(bench_run(bench, &call), 0);
    assert_true(call.reply.fsck_list.end);
    *ret_found = call.bulk_in.size > 0;
    if (*ret_found) {
        memcpy(&count, bench->bulk, sizeof count);
        assert_int_equal(count, sizeof row);
        assert_int_equal(call.bulk_in.size, sizeof count + KV_KEY_BYTES + sizeof row);
        memcpy(&row, bench->bulk + sizeof count + KV_KEY_BYTES, sizeof row);
    }
    return row;
}

/* A loss leaves a note of the inode numbers that it may have taken back: from the first one that
 * nobody had drawn at the last sync point. A kill and a stop leave none. */
static void test_numbers_of_the_lost(void **state) {
    const struct bench_options options = {.seed = 14};
    struct meta_bench *bench = bench_new(&options);
    struct bench_chunks *chunks = NULL;
    struct ino synced = chunked_file(bench, &chunks);
    struct call call;
    bool found;

    (void)state;
    bench_restart(bench, false);
    bench_stop_and_start(bench);
    for (uint32_t i = 0; i < BENCH_SESSIONS; i++) {
        bench_attach(bench, i);
    }
    (void)lost_row_of(bench, &found);
    assert_false(found);
    bench_prepare(bench, 1, OP_CREATE, &call);
    call.request.create = (struct create_request){.parent = INO_ROOT,
                                                  .name = {(const uint8_t *)"late", 4},
                                                  .mode = 0644,
                                                  .open_flags = OPEN_WRITE};
    assert_int_equal(bench_run(bench, &call), 0);
    uint64_t lost = call.reply.create.attributes.ino.value;
    power_cut(bench);
    struct lost_row row = lost_row_of(bench, &found);
    assert_true(found);
    assert_true(row.counter_from > synced.value && row.counter_from <= lost);
    assert_true(row.counter_to > lost);
    bench_free(bench);
}

/* Who had the file open for writing since before the loss keeps what he wrote; what others had
 * written beyond it becomes part of the file rather than to come back later. */
static void test_growth_by_an_old_writer(void **state) {
    const struct bench_options options = {.seed = 13};
    struct meta_bench *bench = bench_new(&options);
    struct bench_chunks *chunks = NULL;
    struct ino ino = chunked_file(bench, &chunks);
    struct capability capability = open_to_write(bench, 1, ino);
    struct call call;

    (void)state;
    bench_chunk_write(bench, &capability, 9000);
    bench_restart(bench, true);
    bench_prepare(bench, 1, OP_REOPEN, &call);
    call.request.reopen = (struct reopen_request){.ino = ino, .write_count = 1};
    assert_int_equal(bench_run(bench, &call), 0);
    assert_int_equal(call.reply.reopen.capability.truncate_seq, 0);
    for (uint32_t i = 0; i < BENCH_SESSIONS; i++) {
        bench_attach(bench, i);
    }
    bench_advance(bench, NS_PER_S);
    assert_int_equal(size_of(bench, ino), 9000);
    close_writer(bench, 1, ino);
    assert_int_equal(open_to_write(bench, 2, ino).truncate_seq, 0);
    assert_int_equal(chunks->length, 9000);
    bench_free(bench);
}

static int trim(struct meta_bench *bench, struct ino ino, uint64_t size, uint32_t truncate_seq,
                struct call *call) {
    bench_prepare(bench, 1, OP_SETATTR, call);
    call->request.setattr = (struct setattr_request){.ino = ino,
                                                     .valid = SETATTR_SIZE | SETATTR_TRIM,
                                                     .size = size,
                                                     .opened = 1,
                                                     .truncate_seq = truncate_seq};
    return bench_run(bench, call);
}

/* A failed write's remains are cut off only where nobody else can have written. */
static void test_trim_spares_what_others_wrote(void **state) {
    const struct bench_options options = {.seed = 11};
    struct meta_bench *bench = bench_new(&options);
    struct bench_chunks *chunks = NULL;
    struct ino ino = chunked_file(bench, &chunks);
    struct call call;

    (void)state;
    for (uint32_t session = 1; session <= 2; session++) {
        bench_prepare(bench, session, OP_OPEN, &call);
        call.request.open = (struct open_request){.ino = ino, .open_flags = OPEN_WRITE};
        assert_int_equal(bench_run(bench, &call), 0);
    }
    assert_int_equal(trim(bench, ino, 5000, 0, &call), 0); /* another has it open */
    assert_int_equal(call.reply.setattr.attributes.truncate_seq, 0);
    bench_prepare(bench, 2, OP_SETTLE, &call);
    call.request.settle = (struct settle_request){.ino = ino, .close = 1, .open_flags = OPEN_WRITE};
    assert_int_equal(bench_run(bench, &call), 0);
    assert_int_equal(trim(bench, ino, 4000, 0, &call), 0); /* another has made it longer */
    assert_int_equal(trim(bench, ino, 5000, 7, &call), 0); /* another has cut it */
    assert_int_equal(call.reply.setattr.attributes.truncate_seq, 0);
    assert_int_equal(size_of(bench, ino), 5000);
    assert_int_equal(trim(bench, ino, 5000, 0, &call), 0);
    assert_int_equal(call.reply.setattr.attributes.truncate_seq, 1);
    bench_prepare(bench, 1, OP_SETATTR, &call);
    call.request.setattr = (struct setattr_request){.ino = ino, .valid = SETATTR_TRIM};
    assert_int_equal(bench_run(bench, &call), -ERR_INVALID);
    bench_free(bench);
}

/* What cannot be cut off at once, as others write, is when they have closed: it would become a part
 * of the file as soon as that grows. */
static void test_remains_of_a_failed_write_go_when_others_have_closed(void **state) {
    const struct bench_options options = {.seed = 17};
    struct meta_bench *bench = bench_new(&options);
    struct bench_chunks *chunks = NULL;
    struct ino ino = chunked_file(bench, &chunks);
    struct capability capability = open_to_write(bench, 1, ino);
    struct call call;

    (void)state;
    assert_int_equal(open_to_write(bench, 2, ino).truncate_seq, 0);
    bench_chunk_write(bench, &capability, 9000);
    assert_int_equal(trim(bench, ino, 5000, 0, &call), 0);
    assert_int_equal(call.reply.setattr.attributes.truncate_seq, 0);
    assert_int_equal(open_to_write(bench, 0, ino).truncate_seq, 0); /* There still are others. */
    close_writer(bench, 0, ino);
    close_writer(bench, 1, ino);
    close_writer(bench, 2, ino);
    assert_int_equal(size_of(bench, ino), 5000);
    bench_restart(bench, false);
    for (uint32_t i = 0; i < BENCH_SESSIONS; i++) {
        bench_attach(bench, i);
    }
    assert_int_equal(chunks->length, 9000);
    assert_int_equal(open_to_write(bench, 0, ino).truncate_seq, 1);
    bench_advance(bench, NS_PER_S);
    assert_int_equal(chunks->length, 5000);
    assert_int_equal(size_of(bench, ino), 5000);
    close_writer(bench, 0, ino);
    assert_int_equal(open_to_write(bench, 1, ino).truncate_seq, 1); /* Once. */
    bench_free(bench);
}

/* Opens that were presented to a term that is over do not count for the next. */
static void test_attach_to_another_term(void **state) {
    const struct bench_options options = {.seed = 10};
    struct meta_bench *bench = bench_new(&options);
    struct bench_session *who = &bench->sessions[0];
    uint64_t presented = 0;
    uint8_t name[4];
    struct call call;

    (void)state;
    create_prepare(bench, 0, &call, name);
    assert_int_equal(bench_run(bench, &call), 0);
    struct ino ino = call.reply.create.attributes.ino;
    for (int round = 0; round < 2; round++) {
        bench_restart(bench, false);
        bench_prepare(bench, 0, OP_SESSION_ATTACH, &call);
        call.header.term = presented;
        call.request.session_attach = (struct session_attach_request){
            .session = who->id, .incarnation = who->incarnation, .node = 0, .known_term = 0};
        if (round == 1) {
            assert_int_equal(bench_run(bench, &call), -ERR_STALE_TERM);
        }
        bench_prepare(bench, 0, OP_REOPEN, &call);
        call.request.reopen =
            (struct reopen_request){.ino = ino, .open_flags = OPEN_WRITE, .write_count = 1};
        assert_int_equal(bench_run(bench, &call), 0);
        assert_true(call.reply.reopen.term > presented);
        presented = call.reply.reopen.term;
    }
    bench_prepare(bench, 0, OP_SESSION_ATTACH, &call);
    call.header.term = presented;
    call.request.session_attach = (struct session_attach_request){
        .session = who->id, .incarnation = who->incarnation, .node = 0, .known_term = 0};
    assert_int_equal(bench_run(bench, &call), 0);
    assert_int_equal(call.reply.session_attach.window, 128); /* as granted before two restarts */
    bench_free(bench);
}

/* A number that was drawn for another log is not run, leaves no outcome, and raises no floor. */
static void test_numbers_of_another_log(void **state) {
    const struct bench_options options = {.seed = 11};
    struct meta_bench *bench = bench_new(&options);
    struct call call, copy;
    uint8_t name[4];

    (void)state;
    create_prepare(bench, 0, &call, name);
    copy = call;
    call.header.origin.value = call.header.log.value + 1;
    call.header.floor = call.header.sequence + 1000;
    assert_int_equal(bench_run(bench, &call), -ERR_STALE_MAP);
    copy.header.origin = copy.header.log;
    assert_int_equal(bench_run(bench, &copy), 0);
    assert_int_equal(copy.reply.create.created, 1);
    bench_free(bench);
}

/* In process nobody but the group can end what it holds: it does when the deadline has passed, or
 * the caller has cancelled. What ran before stays done. */
static void test_gives_up_what_it_holds(void **state) {
    (void)state;
    for (int cancelled = 0; cancelled < 2; cancelled++) {
        const struct bench_options options = {.seed = 11};
        struct meta_bench *bench = bench_new(&options);
        struct env *env = memory_env_env(bench->world);
        struct call make;
        struct call sync;
        struct call stat;
        uint8_t name[4];

        create_prepare(bench, 1, &make, name);
        assert_int_equal(bench_run(bench, &make), 0);
        bench_prepare(bench, 0, OP_SYNC, &sync);
        sync.deadline_ns = cancelled ? 0 : env_now_ns(env) + 5 * NS_PER_S;
        bench_post(bench, &sync);
        group_tick(bench->group);
        /* Its I/O doesn't come to its end, as nobody pumps it. */
        assert_false(bench_is_answered(&sync));
        if (cancelled) {
            call_cancel(&sync);
        } else {
            memory_env_advance(bench->world, 6 * NS_PER_S);
        }
        group_tick(bench->group);
        assert_true(bench_is_answered(&sync));
        assert_int_equal(sync.result, cancelled ? -ERR_INTERRUPTED : -ERR_TIMED_OUT);
        bench_prepare(bench, 0, OP_GETATTR, &stat);
        stat.request.getattr.ino = INO_ROOT;
        assert_int_equal(bench_run(bench, &stat), 0);
        bench_free(bench);
    }
}

static uint64_t epoch_of_mkdir(struct meta_bench *bench, const char *name, uint64_t seen) {
    struct call call;

    bench_prepare(bench, 0, OP_MKDIR, &call);
    call.header.epoch = seen;
    call.request.mkdir.parent = INO_ROOT;
    call.request.mkdir.name = (struct bytes){(const uint8_t *)name, strlen(name)};
    call.request.mkdir.mode = 0755;
    assert_int_equal(bench_run(bench, &call), 0);
    assert_int_equal(call.server_term, bench->sessions[0].term);
    assert_true(call.server_epoch >= call.reply.mkdir.attributes.epoch);
    return call.reply.mkdir.attributes.epoch;
}

/* A change is later than all that its caller has seen, also of other logs, whose clock may be
 * ahead; not of one that is far ahead, which a line tells. */
static void test_epochs_of_others(void **state) {
    const struct bench_options options = {.seed = 5};
    struct meta_bench *bench = bench_new(&options);

    (void)state;
    uint64_t first = epoch_of_mkdir(bench, "a", 0);
    uint64_t second = epoch_of_mkdir(bench, "b", first + 30 * NS_PER_S);
    assert_true(second > first + 30 * NS_PER_S);
    assert_int_equal(bench->other_line_count, 0);
    uint64_t third = epoch_of_mkdir(bench, "c", second + 120 * NS_PER_S);
    assert_in_range(third, second + 1, second + NS_PER_S);
    assert_int_equal(bench->other_line_count, 1);
    assert_non_null(strstr(bench->other_line, "session 1 has met a clock that is 1"));
    assert_non_null(strstr(bench->other_line, "set both right"));
    /* What was taken is kept over a start. */
    bench_restart(bench, false);
    bench_attach(bench, 0);
    assert_true(epoch_of_mkdir(bench, "d", 0) > third);
    bench_free(bench);
}

/* With keys, a session is the one's that the manager has given it to; a copy of its ticket at
 * another connection opens nothing, and leaves nothing. */
static void test_a_session_attaches_by_its_ticket(void **state) {
    static const struct identity laptop = {.kind = IDENTITY_MOUNT, .serial = 17};
    const struct secret secret = {{7, 8, 9}};
    struct bench_options options = {.seed = 91};
    const struct bench_session who = {.id = 900, .incarnation = 5};
    const struct identity *const proven[] = {NULL, &laptop};
    struct key_file file;
    struct call call;

    (void)state;
    key_file_make(&secret, &file);
    assert_int_equal(key_ring_new(&file, &options.keys), 0);
    struct meta_bench *bench = bench_new(&options);
    for (uint64_t session = 899; session <= 900; session++) {
        for (size_t i = 0; i < ARRAY_SIZE(proven); i++) {
            uint64_t before = kv_position(group_kv(bench->group));
            bool good = session == who.id && proven[i] == &laptop; /* Is told that all is taken. */

            bench_prepare(bench, 0, OP_SESSION_ATTACH, &call);
            call.identity = proven[i];
            call.request.session_attach =
                (struct session_attach_request){.session = session,
                                                .incarnation = who.incarnation,
                                                .ticket = bench_ticket(bench, &who, &laptop)};
            assert_int_equal(bench_run(bench, &call), good ? -ERR_BUSY : -ERR_BAD_TICKET);
            assert_int_equal(kv_position(group_kv(bench->group)), before);
        }
    }
    bench_restart(bench, false);
    bench_attach(bench, 0);
    bench_free(bench);
    key_ring_free(options.keys);
}

static int getattr_from(struct meta_bench *bench, uint64_t life) {
    struct call call;

    bench_prepare(bench, 0, OP_GETATTR, &call);
    call.request.getattr.ino = INO_ROOT;
    call.life[0] = life;
    return bench_run(bench, &call);
}

/* Another process may know a session's number and incarnation: only an attach changes whose it is.
 */
static void test_requests_come_from_who_attached(void **state) {
    struct bench_options options = {.seed = 92};
    struct meta_bench *bench = bench_new(&options);

    (void)state;
    assert_int_equal(getattr_from(bench, 0), 0);
    assert_int_equal(getattr_from(bench, 5), -ERR_UNKNOWN_SESSION);
    bench_restart(bench, false);
    bench_attach(bench, 0);
    assert_int_equal(getattr_from(bench, 5), -ERR_UNKNOWN_SESSION);
    assert_int_equal(getattr_from(bench, 0), 0);
    bench_free(bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_epochs_of_others),
        cmocka_unit_test(test_kill_in_flight),
        cmocka_unit_test(test_full_log),
        cmocka_unit_test(test_copies_on_full_disk),
        cmocka_unit_test(test_failing_log),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_damaged_rows),
        cmocka_unit_test(test_unlink_on_disk_first),
        cmocka_unit_test(test_truncate_on_disk_first),
        cmocka_unit_test(test_growth_after_power_loss),
        cmocka_unit_test(test_growth_by_an_old_writer),
        cmocka_unit_test(test_numbers_of_the_lost),
        cmocka_unit_test(test_trim_spares_what_others_wrote),
        cmocka_unit_test(test_remains_of_a_failed_write_go_when_others_have_closed),
        cmocka_unit_test(test_attach_to_another_term),
        cmocka_unit_test(test_numbers_of_another_log),
        cmocka_unit_test(test_a_session_attaches_by_its_ticket),
        cmocka_unit_test(test_requests_come_from_who_attached),
        cmocka_unit_test(test_gives_up_what_it_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
