/* What a client says of changes that servers had acknowledged and a power failure took back: EIO
 * from the fsync of each handle, once; and of what it was told by a server that is no more. */
#include "client/ledger.h"
#include "client_bench.h"

/* The server starts anew; of the term before, all answers up to `survived` are left. */
static void restart(struct toy_server *server, uint64_t survived) {
    server->term++;
    server->attached = false;
    server->detached_result = -ERR_STALE_TERM;
    server->survived = survived;
}

static struct shoal_file *open_again(struct bench *bench, uint64_t ino) {
    struct shoal_request request = {.operation = SHOAL_OPEN, .ino = ino, .flags = RW};

    assert_int_equal(run(bench, &request), 0);
    return request.file;
}

/* Where the first bytes of the file go. */
static struct toy_server *home_of(struct bench *bench, struct shoal_file *file) {
    uint64_t before[TOY_OSTS];
    uint8_t *data = pattern(10000, 1);
    struct toy_server *home = NULL;

    for (int i = 0; i < TOY_OSTS; i++) {
        before[i] = bench->cluster.osts[i].seen[OP_CHUNK_WRITE];
    }
    assert_int_equal(put(bench, file, 0, data, 10000), 10000);
    for (int i = 0; i < TOY_OSTS; i++) {
        if (bench->cluster.osts[i].seen[OP_CHUNK_WRITE] > before[i]) {
            home = &bench->cluster.osts[i];
        }
    }
    free(data);
    assert_non_null(home);
    return home;
}

static void test_a_kill_loses_nothing(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file = make(bench, "killed", RW);
    struct toy_server *ost = home_of(bench, file);

    restart(ost, ost->position);
    restart(&bench->cluster.mdt, bench->cluster.mdt.position);
    assert_int_equal(on_file(bench, SHOAL_FSYNC, file), 0);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
}

static void test_each_handle_is_told_once(void **state) {
    struct bench *bench = *state;
    struct shoal_file *first = make(bench, "lost", RW);
    struct shoal_file *second = open_again(bench, ino_of(bench, first));
    struct shoal_file *other = make(bench, "other", RW);
    struct toy_server *ost = home_of(bench, first);

    assert_int_equal(on_file(bench, SHOAL_FSYNC, first), 0);
    restart(ost, ost->position);
    assert_int_equal(on_file(bench, SHOAL_FSYNC, first), 0);
    uint64_t synced = ost->position;

    assert_int_equal(put(bench, first, 0, "new", 3), 3);
    restart(ost, synced);
    assert_int_equal(put(bench, other, 0, "other", 5), 5);
    assert_int_equal(on_file(bench, SHOAL_FSYNC, first), -EIO);
    assert_int_equal(on_file(bench, SHOAL_FSYNC, first), 0);
    assert_int_equal(on_file(bench, SHOAL_FLUSH, second), -EIO);
    assert_int_equal(on_file(bench, SHOAL_FSYNC, second), -EIO);
    assert_int_equal(on_file(bench, SHOAL_FSYNC, second), 0);
    assert_int_equal(on_file(bench, SHOAL_FLUSH, second), 0);
    assert_int_equal(on_file(bench, SHOAL_FSYNC, other), 0);

    /* Who comes after somebody was told has nothing to be told. */
    struct shoal_file *late = open_again(bench, ino_of(bench, first));

    assert_int_equal(on_file(bench, SHOAL_FSYNC, late), 0);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, late), 0);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, other), 0);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, second), 0);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, first), 0);
}

/* A target that was declared lost is called no more: what had its place there answers EIO at once,
 * also what is under way, and fsync tells of what was not on disk, once. The rest goes on. */
static void test_a_target_is_lost(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file = make(bench, "part", RW);
    struct shoal_file *clean = make(bench, "clean", RW);
    struct shoal_file *small = make(bench, "small", RW);
    struct toy_server *ost = home_of(bench, file);
    struct asked read;
    uint8_t data[100];

    assert_int_equal(put(bench, small, 0, "small", 5), 5);
    assert_int_equal(put(bench, clean, TOY_OSTS * TOY_CHUNK_BYTES, "far", 3), 3);
    assert_int_equal(on_file(bench, SHOAL_FSYNC, clean), 0);
    assert_int_equal(put(bench, file, 0, "new", 3), 3);
    ost->hold = true;
    start(bench, &read,
          (struct shoal_request){
              .operation = SHOAL_READ, .file = file, .data = data, .size = sizeof data});
    assert_false(read.done);
    for (uint32_t i = 0; i < bench->cluster.map.target_count; i++) {
        struct map_target *target = &bench->cluster.map.targets[i];

        target->state = target->id.value == ost->id.value ? TARGET_LOST : target->state;
    }
    bench->cluster.map.version++;
    for (int i = 0; i < 40; i++) {
        tick(bench, NS_PER_S / 10);
    }
    uint32_t held = ost->held_count;
    assert_int_equal(get(bench, file, 0, data, sizeof data), -EIO);
    assert_int_equal(put(bench, file, 0, data, sizeof data), -EIO);
    assert_int_equal(get(bench, small, 0, data, sizeof data), 5);
    assert_int_equal(put(bench, small, 0, "Small", 5), 5);
    assert_int_equal(on_file(bench, SHOAL_FSYNC, clean), 0);
    assert_int_equal(on_file(bench, SHOAL_FSYNC, file), -EIO);
    assert_int_equal(on_file(bench, SHOAL_FSYNC, file), 0);
    struct shoal_request everything = {.operation = SHOAL_SYNC};
    assert_int_equal(run(bench, &everything), -EIO);
    everything = (struct shoal_request){.operation = SHOAL_SYNC};
    assert_int_equal(run(bench, &everything), 0);
    struct shoal_request space = {.operation = SHOAL_STATFS};
    assert_int_equal(run(bench, &space), 0);
    assert_int_equal(ost->held_count, held);
    /* In one process it is the server that asks whether somebody still waits. */
    assert_int_equal(call_given_up(ost->held[0], env_now_ns(bench->cluster.env)), -ERR_TARGET_LOST);
    ost->fail_opcode = OP_CHUNK_READ;
    ost->fail_count = 1;
    ost->fail_result = -ERR_TARGET_LOST;
    toy_release(ost, UINT32_MAX);
    tick(bench, NS_PER_S / 10);
    assert_true(read.done);
    assert_int_equal(read.request.result, -EIO);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, small), 0);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, clean), 0);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
}

/* A loss that nobody has been told of waits for the next one who opens the file. */
static void test_a_closed_file_is_not_forgotten(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file = make(bench, "closed", RW);
    uint64_t ino = ino_of(bench, file);
    struct toy_server *ost = home_of(bench, file);

    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    restart(ost, 0);
    file = open_again(bench, ino);
    assert_int_equal(on_file(bench, SHOAL_FSYNC, file), -EIO);
    assert_int_equal(on_file(bench, SHOAL_FSYNC, file), 0);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
}

/* The first fsync of a handle asks wherever the file may be: another client may have written. One
 * that is under way takes nothing from the next. */
static void test_fsync_of_others_writes(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file = make(bench, "shared", RW);
    uint64_t ino = ino_of(bench, file);
    struct toy_server *ost = home_of(bench, file);
    struct asked syncs[2];

    assert_int_equal(on_file(bench, SHOAL_FSYNC, file), 0);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    uint32_t seen = ost->seen[OP_SYNC];

    file = open_again(bench, ino);
    assert_int_equal(on_file(bench, SHOAL_FSYNC, file), 0);
    assert_int_equal(ost->seen[OP_SYNC], seen + 1);
    assert_int_equal(on_file(bench, SHOAL_FSYNC, file), 0);
    assert_int_equal(ost->seen[OP_SYNC], seen + 1);

    assert_int_equal(put(bench, file, 0, "twice", 5), 5);
    ost->hold = true;
    for (int i = 0; i < 2; i++) {
        start(bench, &syncs[i], (struct shoal_request){.operation = SHOAL_FSYNC, .file = file});
    }
    assert_false(syncs[0].done || syncs[1].done);
    ost->hold = false;
    toy_release(ost, UINT32_MAX);
    assert_true(syncs[0].done && syncs[1].done);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
}

static void test_lost_metadata(void **state) {
    struct bench *bench = *state;
    struct toy_server *mdt = &bench->cluster.mdt;
    struct shoal_request sync = {.operation = SHOAL_SYNC};
    struct shoal_file *old = make(bench, "old", RW);
    struct shoal_request root = {
        .operation = SHOAL_OPEN, .ino = SHOAL_INO_ROOT, .flags = SHOAL_OPEN_DIRECTORY | 1};

    assert_int_equal(run(bench, &root), 0);
    assert_int_equal(on_file(bench, SHOAL_FSYNC, old), 0);
    assert_int_equal(run(bench, &sync), 0);
    uint64_t synced = mdt->position;
    struct shoal_file *file = make(bench, "young", RW);

    assert_int_equal(put(bench, file, 0, "inline", 6), 6);
    restart(mdt, synced);
    assert_int_equal(on_file(bench, SHOAL_FSYNC, file), -EIO);
    assert_int_equal(on_file(bench, SHOAL_FSYNC, file), 0);
    assert_int_equal(on_file(bench, SHOAL_FSYNC, old), 0);
    /* Of everything: once for whoever syncs, and once for each handle of the root. */
    assert_int_equal(run(bench, &sync), -EIO);
    assert_int_equal(run(bench, &sync), 0);
    assert_int_equal(on_file(bench, SHOAL_FSYNC, root.file), -EIO);
    assert_int_equal(on_file(bench, SHOAL_FSYNC, root.file), 0);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, root.file), 0);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, old), 0);
}

/* A conversion's chunk is lost before it is synced: the inode's bytes must not go for it. */
static void test_conversion_writes_again_after_a_loss(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file = make(bench, "convert", RW);
    uint8_t *data = pattern(10000, 3);
    uint8_t back[10000];
    uint32_t writes = toy_osts_seen(&bench->cluster, OP_CHUNK_WRITE);
    struct shoal_request everywhere = {.operation = SHOAL_STATFS};

    assert_int_equal(run(bench, &everywhere), 0); /* All are attached. */
    bench->cluster.inline_synced = true;
    assert_int_equal(put(bench, file, 0, data, 3000), 3000);
    for (int i = 0; i < TOY_OSTS; i++) {
        struct toy_server *ost = &bench->cluster.osts[i];

        ost->term++;
        ost->survived = 0;
        ost->fail_opcode = OP_SYNC;
        ost->fail_result = -ERR_STALE_TERM;
        ost->fail_count = 1;
    }
    assert_int_equal(put(bench, file, 3000, data + 3000, 7000), 7000);
    /* Twice what the inode held, then what was asked for. */
    assert_int_equal(toy_osts_seen(&bench->cluster, OP_CHUNK_WRITE), writes + 3);
    assert_int_equal(get(bench, file, 0, back, 10000), 10000);
    assert_memory_equal(back, data, 10000);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    free(data);
}

/* An fsync whose question to the metadata target is still on its way promises the inode's bytes,
 * which may be a chunk's by then: so that is on disk first. */
static void test_conversion_beside_an_fsync(void **state) {
    struct bench *bench = *state;
    struct toy_server *mdt = &bench->cluster.mdt;
    struct shoal_file *file = make(bench, "beside", RW);
    uint8_t *data = pattern(10000, 4);
    uint32_t syncs = toy_osts_seen(&bench->cluster, OP_SYNC);
    struct asked fsync;

    assert_int_equal(put(bench, file, 0, data, 3000), 3000);
    mdt->hold = true;
    start(bench, &fsync, (struct shoal_request){.operation = SHOAL_FSYNC, .file = file});
    assert_int_equal(mdt->held_count, 1);
    mdt->hold = false;
    assert_int_equal(put(bench, file, 3000, data + 3000, 7000), 7000);
    assert_int_equal(toy_osts_seen(&bench->cluster, OP_SYNC), syncs + 1);
    toy_release(mdt, UINT32_MAX);
    while (worker_run_one(&bench->cluster.worker)) {
    }
    assert_true(fsync.done);
    assert_int_equal(fsync.request.result, 0);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    free(data);
}

/* A metadata target that has been asked lets no more bytes go to chunks that are not on disk; what
 * went before is in chunks when storage targets are asked. */
static void test_sync_asks_metadata_first(void **state) {
    struct bench *bench = *state;
    struct toy_server *mdt = &bench->cluster.mdt;
    uint32_t syncs = toy_osts_seen(&bench->cluster, OP_SYNC);
    struct asked sync;

    mdt->hold = true;
    start(bench, &sync, (struct shoal_request){.operation = SHOAL_SYNC});
    assert_int_equal(mdt->held_count, 1);
    assert_int_equal(toy_osts_seen(&bench->cluster, OP_SYNC), syncs);
    mdt->hold = false;
    toy_release(mdt, UINT32_MAX);
    while (worker_run_one(&bench->cluster.worker)) {
    }
    assert_true(sync.done);
    assert_int_equal(sync.request.result, 0);
    assert_int_equal(toy_osts_seen(&bench->cluster, OP_SYNC), syncs + TOY_OSTS);
}

/* A file whose creation was lost is gone, for all that is open of it. */
static void test_a_lost_file_is_stale(void **state) {
    struct bench *bench = *state;
    struct toy_server *mdt = &bench->cluster.mdt;
    struct shoal_file *file = make(bench, "gone", RW);
    uint8_t byte;

    home_of(bench, file);
    restart(mdt, 0);
    mdt->fail_opcode = OP_REOPEN;
    mdt->fail_result = -ERR_STALE;
    mdt->fail_count = 1;
    (void)size_by_lookup(bench, "gone");
    assert_int_equal(put(bench, file, 0, "x", 1), -ESTALE);
    assert_int_equal(get(bench, file, 0, &byte, 1), -ESTALE);
    assert_int_equal(on_file(bench, SHOAL_FSYNC, file), -ESTALE);
    uint32_t settles = mdt->seen[OP_SETTLE];

    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), -ESTALE);
    assert_int_equal(mdt->seen[OP_SETTLE], settles);
}

/* An open that was answered before the server died, but heard of after our opens were shown to its
 * successor, is not open there. */
static void test_late_answers_of_opens(void **state) {
    struct bench *bench = *state;
    struct toy_server *mdt = &bench->cluster.mdt;
    struct shoal_file *file = make(bench, "late", RW);
    uint64_t ino = ino_of(bench, file);
    struct toy_file *toy = toy_file_find(&bench->cluster, ino);
    struct asked opened;
    struct asked closed;

    mdt->hold_answers = true;
    start(bench, &opened, (struct shoal_request){.operation = SHOAL_OPEN, .ino = ino, .flags = RW});
    assert_int_equal(toy->write_opens, 2);
    mdt->hold_answers = false;
    restart(mdt, mdt->position);
    (void)size_by_lookup(bench, "late");
    assert_int_equal(toy->write_opens, 1); /* as it was shown */
    toy_release(mdt, UINT32_MAX);
    assert_true(opened.done);
    assert_int_equal(opened.request.result, 0);
    assert_int_equal(toy->write_opens, 2);

    mdt->hold_answers = true;
    start(bench, &closed,
          (struct shoal_request){.operation = SHOAL_RELEASE, .file = opened.request.file});
    assert_int_equal(toy->write_opens, 1);
    mdt->hold_answers = false;
    restart(mdt, mdt->position);
    (void)size_by_lookup(bench, "late");
    assert_int_equal(toy->write_opens, 2);
    toy_release(mdt, UINT32_MAX);
    assert_true(closed.done);
    assert_int_equal(toy->write_opens, 1);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    assert_int_equal(toy->write_opens, 0);
}

/* A creation that the server has lost before its answer came: nobody was told of it, so the file is
 * made anew. */
static void test_creation_that_was_lost_is_made_anew(void **state) {
    struct bench *bench = *state;
    struct toy_server *mdt = &bench->cluster.mdt;
    struct shoal_file *other = make(bench, "other", RW);
    struct toy_file *lost = toy_file_find(&bench->cluster, ino_of(bench, other) + 1);
    uint64_t survived = mdt->position;
    struct asked made;

    assert_null(lost);
    mdt->hold_answers = true;
    start(bench, &made,
          (struct shoal_request){.operation = SHOAL_CREATE,
                                 .ino = SHOAL_INO_ROOT,
                                 .name = "lost",
                                 .name_bytes = 4,
                                 .mode = 0644,
                                 .flags = RW | SHOAL_OPEN_EXCLUSIVE});
    mdt->hold_answers = false;
    lost = toy_file_find(&bench->cluster, ino_of(bench, other) + 1);
    assert_non_null(lost);
    *lost = (struct toy_file){0};
    restart(mdt, survived);
    (void)size_by_lookup(bench, "other");
    mdt->fail_opcode = OP_OPEN;
    mdt->fail_result = -ERR_STALE;
    mdt->fail_count = 1;
    toy_release(mdt, UINT32_MAX);
    assert_true(made.done);
    assert_int_equal(mdt->fail_count, 0);
    assert_int_equal(made.request.result, 0);
    assert_int_equal(size_by_lookup(bench, "lost"), 0);
    assert_int_equal(put(bench, made.request.file, 0, "new", 3), 3);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, made.request.file), 0);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, other), 0);
}

/* An open's answer that the server's successor gives again shows the file as it was then, and says
 * nothing of what was written since. */
static void test_answer_given_again_is_no_news(void **state) {
    struct bench *bench = *state;
    struct toy_server *mdt = &bench->cluster.mdt;
    struct shoal_file *file = make(bench, "twice", RW);
    uint64_t ino = ino_of(bench, file);
    struct toy_file *toy = toy_file_find(&bench->cluster, ino);
    uint8_t *data = pattern(90000, 4);
    struct attributes before = toy->attributes;
    struct shoal_request open = {.operation = SHOAL_OPEN, .ino = ino, .flags = SHOAL_OPEN_READ};
    struct shoal_request look = {.operation = SHOAL_GETATTR, .ino = ino, .file = file};

    assert_int_equal(put(bench, file, 0, data, 90000), 90000);
    restart(mdt, mdt->position);
    (void)size_by_lookup(bench, "twice");
    struct attributes after = toy->attributes;
    toy->attributes = before;
    assert_int_equal(run(bench, &open), 0);
    toy->attributes = after;
    assert_int_equal(open.attributes.size, 90000);
    assert_int_equal(run(bench, &look), 0);
    assert_int_equal(look.attributes.size, 90000);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, open.file), 0);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    free(data);
}

/* The file goes back to what it was, and another client has put these bytes into its inode. */
static void take_back(struct bench *bench, struct toy_file *toy, const struct attributes *was,
                      const void *bytes, size_t size) {
    struct toy_cluster *cluster = &bench->cluster;

    toy->attributes = *was;
    memcpy(toy->data, bytes, size);
    toy->attributes.data_state = DATA_INLINE;
    toy->attributes.size = size;
    toy->attributes.epoch = was->epoch + 1; /* below what the lost answers say */
    restart(&cluster->mdt, 0);
}

/* The way out of the inode was answered, and lost, before the answer came; the bytes that another
 * one has put there since go along when it is gone once more. */
static void test_late_answers_of_conversions(void **state) {
    struct bench *bench = *state;
    struct toy_server *mdt = &bench->cluster.mdt;
    struct shoal_file *file = make(bench, "late", RW);
    struct toy_file *toy = toy_file_find(&bench->cluster, ino_of(bench, file));
    struct attributes was = toy->attributes;
    uint8_t *data = pattern(9000, 5);
    uint8_t back[9000];
    struct asked wrote;

    mdt->hold_answers = true;
    start(bench, &wrote, write_of(file, 4000, data + 4000, 5000));
    assert_int_equal(toy->attributes.data_state, DATA_CHUNKED);
    mdt->hold_answers = false;
    take_back(bench, toy, &was, data, 1877);
    (void)size_by_lookup(bench, "late");
    toy_release(mdt, UINT32_MAX);
    while (worker_run_one(&bench->cluster.worker)) {
    }
    assert_true(wrote.done);
    assert_int_equal(wrote.request.result, 5000);
    assert_int_equal(toy->attributes.data_state, DATA_CHUNKED);
    memset(data + 1877, 0, 4000 - 1877);
    assert_int_equal(get(bench, file, 0, back, 9000), 9000);
    assert_memory_equal(back, data, 9000);
    toy_chunks_read(&bench->cluster, toy->attributes.ino.value, 0, back, 9000);
    assert_memory_equal(back, data, 9000);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    assert_int_equal(toy->attributes.size, 9000);
    free(data);
}

/* A change of attributes was answered, and lost, before the answer came: the file here is what the
 * server has. */
static void test_late_answers_of_attributes(void **state) {
    static const uint32_t sets[] = {SHOAL_SET_MODE, SHOAL_SET_SIZE};
    struct bench *bench = *state;
    struct toy_server *mdt = &bench->cluster.mdt;
    struct shoal_file *file = make(bench, "attributes", RW);
    struct toy_file *toy = toy_file_find(&bench->cluster, ino_of(bench, file));
    uint8_t *data = pattern(10000, 6);

    assert_int_equal(put(bench, file, 0, data, 10000), 10000);
    assert_int_equal(on_file(bench, SHOAL_FSYNC, file), 0);
    for (size_t i = 0; i < ARRAY_SIZE(sets); i++) {
        struct shoal_request look = {.operation = SHOAL_GETATTR, .file = file};
        struct toy_file was = *toy;
        struct asked set;

        mdt->hold_answers = true;
        start(bench, &set,
              (struct shoal_request){.operation = SHOAL_SETATTR,
                                     .file = file,
                                     .set = sets[i],
                                     .attributes = {.mode = 0600, .size = 0}});
        assert_int_equal(mdt->held_count, 1);
        assert_int_not_equal(toy->attributes.epoch, was.attributes.epoch);
        mdt->hold_answers = false;
        *toy = was;
        restart(mdt, 0);
        (void)size_by_lookup(bench, "attributes");
        toy_release(mdt, UINT32_MAX);
        while (worker_run_one(&bench->cluster.worker)) {
        }
        assert_true(set.done);
        assert_int_equal(set.request.result, 0);
        assert_int_equal(run(bench, &look), 0);
        assert_int_equal(look.attributes.mode & 07777, 0644);
        assert_int_equal(look.attributes.size, 10000);
    }
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    free(data);
}

/* A size that was told to a term that is over is told anew. */
static void test_late_answers_of_sizes(void **state) {
    struct bench *bench = *state;
    struct toy_server *mdt = &bench->cluster.mdt;
    struct shoal_file *file = make(bench, "size", RW);
    struct toy_file *toy = toy_file_find(&bench->cluster, ino_of(bench, file));
    uint8_t *data = pattern(10000, 6);
    struct attributes was;
    struct asked synced;

    assert_int_equal(put(bench, file, 0, data, 10000), 10000);
    was = toy->attributes;
    mdt->hold_answers = true;
    start(bench, &synced, (struct shoal_request){.operation = SHOAL_FSYNC, .file = file});
    assert_int_equal(toy->attributes.size, 10000);
    mdt->hold_answers = false;
    toy->attributes = was;
    assert_int_equal(was.size, 0);
    restart(mdt, 0);
    (void)size_by_lookup(bench, "size");
    toy_release(mdt, UINT32_MAX);
    while (worker_run_one(&bench->cluster.worker)) {
    }
    assert_true(synced.done);
    assert_int_equal(toy->attributes.size, 10000);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    free(data);
}

/* A start that takes a file back to its inode while a write is half sent: what follows has no
 * chunks to go to before the file has new ones. */
static void test_a_write_whose_chunks_are_taken_back(void **state) {
    struct bench *bench = *state;
    struct toy_server *mdt = &bench->cluster.mdt;
    struct shoal_file *file = make(bench, "half", RW);
    struct toy_file *toy = toy_file_find(&bench->cluster, ino_of(bench, file));
    struct attributes was = toy->attributes;
    size_t size = (size_t)200 * TOY_CHUNK_BYTES;
    uint8_t *data = pattern(size, 7);
    uint8_t *back = calloc(1, size);
    struct asked wrote;

    assert_non_null(back);
    for (int i = 0; i < TOY_OSTS; i++) {
        bench->cluster.osts[i].hold = true;
    }
    start(bench, &wrote, write_of(file, 0, data, size));
    assert_false(wrote.done);
    assert_int_equal(toy->attributes.data_state, DATA_CHUNKED);
    take_back(bench, toy, &was, "other", 5);
    (void)size_by_lookup(bench, "half");
    uint32_t begun = mdt->seen[OP_INLINE_CONVERT];
    for (int i = 0; i < TOY_OSTS; i++) {
        bench->cluster.osts[i].hold = false;
        toy_release(&bench->cluster.osts[i], UINT32_MAX);
    }
    while (worker_run_one(&bench->cluster.worker)) {
    }
    assert_true(wrote.done);
    assert_int_equal(wrote.request.result, (int64_t)size);
    assert_true(mdt->seen[OP_INLINE_CONVERT] > begun);
    assert_int_equal(toy->attributes.data_state, DATA_CHUNKED);
    assert_int_equal(get(bench, file, 0, back, size), (int64_t)size);
    assert_memory_equal(back, data, size);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    free(data);
    free(back);
}

/* A start after which the file has other chunks than those that were written: the size that was to
 * be told is of bytes that are lost. */
static void test_a_size_of_other_chunks_is_not_told(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file = make(bench, "other", RW);
    struct toy_file *toy = toy_file_find(&bench->cluster, ino_of(bench, file));
    uint8_t *data = pattern(9000, 5);

    assert_int_equal(put(bench, file, 0, data, 9000), 9000);
    assert_int_equal(toy->attributes.size, 0);
    toy->other_chunks++;
    restart(&bench->cluster.mdt, 0);
    (void)size_by_lookup(bench, "other");
    (void)on_file(bench, SHOAL_FLUSH, file);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    assert_int_equal(toy->attributes.size, 0);
    free(data);
}

/* Of what is written behind such a start all is told, also where it was more before. */
static void test_a_size_behind_a_start_with_other_chunks_is_told(void **state) {
    static const size_t before[] = {9000, 100}; /* in chunks; with the inode */
    struct bench *bench = *state;

    (void)make(bench, "else", RW);
    for (size_t i = 0; i < 2; i++) {
        struct shoal_file *file = make(bench, i ? "small" : "large", RW);
        struct toy_file *toy = toy_file_find(&bench->cluster, ino_of(bench, file));
        uint8_t *data = pattern(before[i], 5);

        assert_int_equal(put(bench, file, 0, data, before[i]), before[i]);
        toy->other_chunks += i == 0;
        toy->attributes.data_state = DATA_CHUNKED;
        toy->attributes.size = 0;
        restart(&bench->cluster.mdt, 0);
        (void)size_by_lookup(bench, "else");
        assert_int_equal(put(bench, file, 0, data, 10), 10);
        (void)on_file(bench, SHOAL_FLUSH, file);
        assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
        assert_int_equal(toy->attributes.size, 10);
        free(data);
    }
}

static int64_t set_stripe(struct bench *bench, uint64_t ino, int32_t stripe_count) {
    struct shoal_request set = {
        .operation = SHOAL_LAYOUT_SET,
        .ino = ino,
        .layout = {.chunk_bytes = TOY_CHUNK_BYTES, .stripe_count = stripe_count}};

    return run(bench, &set);
}

/* Each chunk lies where the server's layout has it. */
static void assert_places(struct bench *bench, const struct toy_file *toy, uint32_t count) {
    struct pool_version pool;
    uint32_t found = 0;

    assert_true(cluster_map_pool(&bench->cluster.map, 0, &pool));
    for (int i = 0; i < TOY_CHUNKS; i++) {
        const struct toy_chunk *chunk = &bench->cluster.chunks[i];

        if (chunk->ino.value == toy->attributes.ino.value) {
            assert_int_equal(chunk->target.value, layout_chain(&toy->layout, &pool, chunk->chunk));
            found++;
        }
    }
    assert_int_equal(found, count);
}

/* The layout that was set here is lost with the power of the metadata target: chunks go by the one
 * that the file has then, from EMPTY and from INLINE. A server of a version before tells none with
 * generations: then they go by the one that is known. */
static void test_a_layout_that_is_lost(void **state) {
    struct bench *bench = *state;
    size_t size = (size_t)5 * TOY_CHUNK_BYTES;
    uint8_t *data = pattern(size, 8);

    for (size_t small = 0; small <= 1000; small += 1000) {
        struct shoal_file *file = make(bench, small ? "small" : "empty", RW);
        struct toy_file *toy = toy_file_find(&bench->cluster, ino_of(bench, file));
        struct layout was = toy->layout;

        assert_int_equal(put(bench, file, 0, data, small), small);
        assert_int_equal(set_stripe(bench, ino_of(bench, file), 1), 0);
        assert_int_equal(toy->layout.stripe_count, 1);
        toy->layout = was;
        restart(&bench->cluster.mdt, 0);
        assert_int_equal(put(bench, file, 0, data, size), size);
        assert_places(bench, toy, 5);
        assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    }
    bench->cluster.no_layouts = true;
    struct shoal_file *file = make(bench, "older", RW);
    struct toy_file *toy = toy_file_find(&bench->cluster, ino_of(bench, file));
    assert_int_equal(set_stripe(bench, ino_of(bench, file), 1), 0);
    assert_int_equal(put(bench, file, 0, data, size), size);
    assert_int_equal(toy->layout.stripe_count, 1);
    assert_places(bench, toy, 5);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    free(data);
}

/* An open and the way to chunks are under way while somebody else sets the layout, and the answer
 * to the open, which was before that, comes last. */
static void test_answers_about_layouts_that_cross(void **state) {
    struct bench *bench = *state;
    struct toy_server *mdt = &bench->cluster.mdt;
    size_t size = (size_t)5 * TOY_CHUNK_BYTES;
    uint8_t *data = pattern(size, 9);
    uint8_t *back = calloc(1, size);
    struct asked opened;
    struct asked wrote;

    assert_non_null(back);
    for (size_t small = 0; small <= 1000; small += 1000) {
        struct shoal_file *file = make(bench, small ? "small" : "empty", RW);
        struct toy_file *toy = toy_file_find(&bench->cluster, ino_of(bench, file));

        assert_int_equal(put(bench, file, 0, data, small), small);
        bench->cluster.inline_synced = true;
        mdt->hold_answers = true;
        start(bench, &opened,
              (struct shoal_request){
                  .operation = SHOAL_OPEN, .ino = toy->attributes.ino.value, .flags = RW});
        assert_int_equal(mdt->held_count, 1);
        toy->layout.stripe_count = 1;
        start(bench, &wrote, write_of(file, 0, data, size));
        mdt->hold_answers = false;
        assert_int_equal(mdt->held_count, 2);
        struct call *first = mdt->held[0];
        mdt->held[0] = mdt->held[1];
        mdt->held[1] = first;
        for (int i = 0; i < TOY_OSTS; i++) {
            bench->cluster.osts[i].hold = true;
        }
        toy_release(mdt, 2);
        for (int i = 0; i < TOY_OSTS; i++) {
            bench->cluster.osts[i].hold = false;
            toy_release(&bench->cluster.osts[i], UINT32_MAX);
        }
        while (worker_run_one(&bench->cluster.worker)) {
        }
        assert_true(opened.done && opened.request.result == 0);
        assert_true(wrote.done);
        assert_int_equal(wrote.request.result, size);
        assert_places(bench, toy, 5);
        assert_int_equal(get(bench, file, 0, back, size), size);
        assert_memory_equal(back, data, size);
        assert_int_equal(on_file(bench, SHOAL_RELEASE, opened.request.file), 0);
        assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    }
    free(data);
    free(back);
}

/* Answers that come after their term was judged. */
static void test_ledger_judges_late_answers(void **state) {
    _Atomic uint64_t losses = 0;
    struct ledger ledger;
    struct ino ino = {77};
    struct ino other = {78};

    (void)state;
    assert_int_equal(ledger_init(&ledger, &losses), 0);
    ledger_restart(&ledger, 1, UINT64_MAX);
    ledger_note(&ledger, ino, 1, 10);
    assert_int_equal(ledger_unsynced(&ledger, ino), 10);
    ledger_note_synced(&ledger, 1, 10);
    assert_int_equal(ledger_unsynced(&ledger, ino), 0);
    ledger_restart(&ledger, 2, 10);
    assert_int_equal(losses, 0);
    ledger_note(&ledger, ino, 1, 9);
    assert_int_equal(losses, 0);
    ledger_note(&ledger, ino, 1, 11);
    assert_int_equal(losses, 1);
    assert_int_equal(ledger_loss(&ledger, ino, 0, 0), 1);
    assert_int_equal(ledger_loss(&ledger, other, 0, 0), 0);
    /* Whoever opened later hears of it as long as nobody was told. */
    assert_int_equal(ledger_loss(&ledger, ino, 0, 1), 1);
    ledger_tell(&ledger, ino, 1);
    assert_int_equal(ledger_loss(&ledger, ino, 0, 1), 0);
    assert_int_equal(ledger_loss(&ledger, ino, 0, 0), 1);
    assert_int_equal(ledger_loss(&ledger, ino, 1, 0), 0);
    /* A sync that was answered in a term that is over says nothing of what came after. */
    ledger_note(&ledger, other, 2, 15);
    ledger_note_synced(&ledger, 1, 100);
    assert_int_equal(ledger_unsynced(&ledger, other), 15);
    /* Two starts on: nobody knows. */
    ledger_restart(&ledger, 4, 15);
    assert_int_equal(ledger_loss(&ledger, other, 0, 0), 0);
    ledger_note(&ledger, other, 2, 1);
    assert_true(ledger_loss(&ledger, other, 0, 0) > 0);
    ledger_deinit(&ledger);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_kill_loses_nothing),
        TEST(each_handle_is_told_once),
        TEST(a_target_is_lost),
        TEST(a_closed_file_is_not_forgotten),
        TEST(fsync_of_others_writes),
        TEST(lost_metadata),
        TEST(conversion_writes_again_after_a_loss),
        TEST(conversion_beside_an_fsync),
        TEST(sync_asks_metadata_first),
        TEST(a_lost_file_is_stale),
        TEST(late_answers_of_opens),
        TEST(late_answers_of_conversions),
        TEST(late_answers_of_attributes),
        TEST(late_answers_of_sizes),
        TEST(a_write_whose_chunks_are_taken_back),
        TEST(a_size_of_other_chunks_is_not_told),
        TEST(a_size_behind_a_start_with_other_chunks_is_told),
        TEST(a_layout_that_is_lost),
        TEST(answers_about_layouts_that_cross),
        TEST(creation_that_was_lost_is_made_anew),
        TEST(answer_given_again_is_no_news),
        cmocka_unit_test(test_ledger_judges_late_answers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
