/* The client core when something is wrong: servers that have started anew, old maps, capabilities
 * that are of no use, damaged data, full disks, requests that make no sense. */
#include "client_bench.h"
#include "other_rows.h"

/* Somebody changes the file between the two stages: the second is refused, all begins anew. */
static void test_conversion_starts_again_after_a_conflict(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file = make(bench, "conflict", RW);
    uint8_t *data = pattern(5000, 2);
    uint8_t back[5000];

    assert_int_equal(put(bench, file, 0, "old", 3), 3);
    bench->cluster.mdt.fail_opcode = OP_INLINE_CONVERT;
    bench->cluster.mdt.fail_result = -ERR_CONFLICT;
    bench->cluster.mdt.fail_count = 2;
    assert_int_equal(put(bench, file, 0, data, 5000), 5000);
    assert_int_equal(get(bench, file, 0, back, 5000), 5000);
    assert_memory_equal(back, data, 5000);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    free(data);
}

/* A storage target that has started anew does not know us. */
static void test_storage_target_is_attached_again(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file = make(bench, "again", RW);
    uint8_t *data = pattern(300000, 10);
    uint8_t *back = malloc(300000);
    struct shoal_request everywhere = {.operation = SHOAL_STATFS};

    assert_int_equal(run(bench, &everywhere), 0);
    for (int i = 0; i < TOY_OSTS; i++) {
        bench->cluster.osts[i].attached = false;
    }
    assert_int_equal(put(bench, file, 0, data, 300000), 300000);
    assert_int_equal(toy_osts_seen(&bench->cluster, OP_SESSION_ATTACH), 2 * TOY_OSTS);
    assert_int_equal(get(bench, file, 0, back, 300000), 300000);
    assert_memory_equal(back, data, 300000);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    free(data);
    free(back);
}

/* While one target is away the members' key is replaced, and the older one taken away: the session
 * gets its new ticket all the same, and attaches there with that. */
static void test_a_ticket_is_replaced_beside_a_target_that_is_away(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file = make(bench, "ticket", RW);
    struct toy_server *ost = &bench->cluster.osts[0];
    uint8_t *data = pattern(300000, 10);
    struct asked asked;

    bench->cluster.ticket_key = 1;
    for (int i = 0; i < 3; i++) {
        tick(bench, NS_PER_S);
    }
    ost->hold = true;
    start(bench, &asked, write_of(file, 0, data, 300000));
    assert_false(asked.done);
    bench->cluster.ticket_key = 2;
    for (int i = 0; i < 3; i++) {
        tick(bench, NS_PER_S);
    }
    ost->hold = false;
    ost->ticket_least = 2;
    toy_release(ost, UINT32_MAX);
    while (worker_run_one(&bench->cluster.worker)) {
    }
    assert_true(asked.done);
    assert_int_equal(asked.request.result, 300000);
    assert_int_equal(ost->seen[OP_SESSION_ATTACH], 2);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    free(data);
}

/* The key of its ticket is gone from the manager's file before it had a new one. */
static void test_a_session_whose_ticket_is_good_for_nothing_is_over(void **state) {
    struct bench *bench = *state;

    bench->cluster.manager.fail_opcode = OP_SESSION_RENEW;
    bench->cluster.manager.fail_count = 1;
    bench->cluster.manager.fail_result = -ERR_BAD_TICKET;
    tick(bench, 3 * NS_PER_S);
    assert_true(client_is_fenced(bench->client));
}

/* A machine that was cloned, or put back from a backup, has a log that another one serves: the same
 * term with another life, or an older term. It is not believed, and what needs it fails; the one
 * that we knew, and a later start, are. */
static void test_a_copy_of_a_log_is_refused(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file = make(bench, "copy", RW);
    uint8_t *data = pattern(300000, 10);
    struct toy_server *ost = &bench->cluster.osts[1];

    for (int i = 0; i < TOY_OSTS; i++) {
        bench->cluster.osts[i].term = 5;
        bench->cluster.osts[i].attached = false;
    }
    assert_int_equal(put(bench, file, 0, data, 300000), 300000);
    ost->attached = false;
    ost->life = 9;
    assert_int_equal(put(bench, file, 0, data, 300000), -EIO);
    ost->attached = false;
    ost->term = 4;
    ost->life = 0;
    assert_int_equal(put(bench, file, 0, data, 300000), -EIO);
    ost->attached = false;
    ost->term = 5;
    assert_int_equal(put(bench, file, 0, data, 300000), 300000);
    ost->attached = false;
    ost->term = 6;
    ost->life = 11;
    assert_int_equal(put(bench, file, 0, data, 300000), 300000);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    free(data);
}

/* A metadata target that has started anew is shown every open file before it is attached again;
 * then what it refused is sent again as the same mutation. */
static void test_metadata_target_is_shown_opens_again(void **state) {
    struct bench *bench = *state;
    struct shoal_file *files[20];
    struct toy_server *mdt = &bench->cluster.mdt;
    char name[16];

    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "open%d", i);
        files[i] = make(bench, name, i % 2 ? RW : SHOAL_OPEN_READ);
    }
    uint64_t sequence = mdt->sequences[OP_CREATE];
    for (int kind = 0; kind < 2; kind++) {
        uint32_t reopened = mdt->seen[OP_REOPEN];

        mdt->attached = false;
        mdt->term++;
        mdt->detached_result = kind ? -ERR_UNKNOWN_SESSION : -ERR_STALE_TERM;
        snprintf(name, sizeof name, "new%d", kind);
        assert_int_equal(on_file(bench, SHOAL_RELEASE, make(bench, name, RW)), 0);
        assert_int_equal(mdt->seen[OP_REOPEN] - reopened, 20);
        /* The refused create and the answered one are one mutation; the close is the next. */
        assert_int_equal(mdt->sequences[OP_CREATE], sequence + 1);
        sequence = mdt->sequences[OP_SETTLE];
    }
    for (int i = 0; i < 20; i++) {
        assert_int_equal(on_file(bench, SHOAL_RELEASE, files[i]), 0);
    }
}

static void ticks(struct bench *bench, uint32_t seconds) {
    for (uint32_t i = 0; i < seconds; i++) {
        tick(bench, NS_PER_S);
    }
}

/* Nobody needs anything of it, but what is removed there is kept until all are back. The manager
 * says so; one that could not be reached is tried again. */
static void test_an_idle_client_comes_back(void **state) {
    struct bench *bench = *state;
    struct toy_server *mdt = &bench->cluster.mdt;
    struct shoal_file *file = make(bench, "idle", RW);
    struct client_counters counters;

    ticks(bench, 10); /* The floors of what it has done are told. */
    for (uint32_t i = 1; i <= 2; i++) {
        uint32_t attached = mdt->seen[OP_SESSION_ATTACH];
        uint32_t asked = mdt->seen[OP_SESSION_FLOOR];

        mdt->attached = false;
        mdt->term++;
        mdt->detached_result = -ERR_STALE_TERM;
        ticks(bench, 10);
        assert_int_equal(mdt->seen[OP_SESSION_FLOOR], asked);
        bench->cluster.starts++;
        mdt->fail_opcode = OP_SESSION_ATTACH;
        mdt->fail_result = -ERR_AWAY;
        mdt->fail_count = i == 1 ? 0 : 3;
        ticks(bench, 10);
        assert_int_equal(mdt->seen[OP_SESSION_ATTACH], attached + (i == 1 ? 1 : 4));
        assert_true(mdt->attached);
        assert_int_equal(mdt->seen[OP_REOPEN] >= i, true);
        client_counters_get(bench->client, &counters);
        assert_int_equal(counters.returns, i);
    }
    /* One that is known in its term is not asked. */
    uint32_t asked = mdt->seen[OP_SESSION_FLOOR];
    bench->cluster.starts++;
    ticks(bench, 10);
    assert_int_equal(mdt->seen[OP_SESSION_FLOOR], asked);
    /* A manager of the version before has taken over, which knows of no starts. */
    asked = bench->cluster.manager.seen[OP_LOG_STARTS];
    bench->cluster.starts = 0;
    ticks(bench, 10);
    assert_int_equal(bench->cluster.manager.seen[OP_LOG_STARTS], asked);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
}

/* What a version to come adds to a start is skipped; of a length that no version has nothing is
 * taken, and the manager is asked again. */
static void test_starts_of_other_versions(void **state) {
    struct bench *bench = *state;
    struct toy_server *manager = &bench->cluster.manager;
    struct toy_server *mdt = &bench->cluster.mdt;
    struct shoal_file *file = make(bench, "idle", RW);

    ticks(bench, 10); /* The floors of what it has done are told. */
    uint32_t attached = mdt->seen[OP_SESSION_ATTACH];
    mdt->attached = false;
    mdt->term++;
    mdt->detached_result = -ERR_STALE_TERM;
    bench->cluster.starts++;
    for (uint32_t i = 0;
         (bench->cluster.starts_row_bytes = rows_wrong(i, sizeof(struct wire_start))); i++) {
        uint32_t asked = manager->seen[OP_LOG_STARTS];

        ticks(bench, 10);
        assert_true(manager->seen[OP_LOG_STARTS] > asked);
        assert_int_equal(mdt->seen[OP_SESSION_ATTACH], attached);
    }
    bench->cluster.starts_row_bytes = sizeof(struct wire_start) + ROW_MORE;
    bench->cluster.starts_more_bytes = ROW_MORE;
    ticks(bench, 10);
    assert_int_equal(mdt->seen[OP_SESSION_ATTACH], attached + 1);
    uint32_t asked = manager->seen[OP_LOG_STARTS];
    ticks(bench, 10);
    assert_int_equal(manager->seen[OP_LOG_STARTS], asked);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
}

/* A start tells how new the file is there; what the client has of it is no newer for that, so an
 * answer from between is not too old for it. */
static void test_a_start_makes_nothing_newer(void **state) {
    struct bench *bench = *state;
    struct toy_server *mdt = &bench->cluster.mdt;
    struct shoal_file *file = make(bench, "linked", RW);
    struct toy_file *toy = toy_file_find(&bench->cluster, ino_of(bench, file));
    struct shoal_request lookup = {
        .operation = SHOAL_LOOKUP, .ino = SHOAL_INO_ROOT, .name = "linked", .name_bytes = 6};
    uint64_t epoch = toy->attributes.epoch;

    assert_int_equal(run(bench, &lookup), 0);
    assert_int_equal(lookup.attributes.nlink, 1);
    toy->attributes.epoch = epoch + 100;
    mdt->attached = false;
    mdt->term++;
    mdt->detached_result = -ERR_STALE_TERM;
    bench->cluster.starts++;
    ticks(bench, 10);
    assert_int_equal(mdt->seen[OP_REOPEN], 1);
    toy->attributes.epoch = epoch + 50;
    toy->attributes.nlink = 2;
    assert_int_equal(run(bench, &lookup), 0);
    assert_int_equal(lookup.attributes.nlink, 2);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
}

/* An open for which the server has no room fails who asks, and is shown again before anything else;
 * one whose inode is damaged there holds up nothing. */
static void test_opens_that_are_not_taken(void **state) {
    struct bench *bench = *state;
    struct toy_server *mdt = &bench->cluster.mdt;
    struct shoal_file *file = make(bench, "shown", RW);
    struct toy_file *toy = toy_file_find(&bench->cluster, ino_of(bench, file));
    struct shoal_request look = {
        .operation = SHOAL_LOOKUP, .ino = SHOAL_INO_ROOT, .name = "shown", .name_bytes = 5};

    mdt->detached_result = -ERR_STALE_TERM;
    for (int kind = 0; kind < 2; kind++) {
        mdt->attached = false;
        mdt->term++;
        toy->write_opens = 0;
        mdt->fail_opcode = OP_REOPEN;
        mdt->fail_result = kind ? -ERR_CORRUPT : -ERR_TOO_MANY_OPEN;
        mdt->fail_count = 1;
        assert_int_equal(run(bench, &look), kind ? 0 : -ENFILE);
        assert_int_equal(mdt->fail_count, 0);
        assert_int_equal(mdt->attached, kind);
        assert_int_equal(run(bench, &look), 0);
        assert_true(mdt->attached);
        assert_int_equal(toy->write_opens, 1 - kind);
    }
    toy->write_opens = 1;
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
}

/* One that has started anew and then is away does not hold another one that has started anew. */
static void test_opens_are_shown_side_by_side(void **state) {
    struct bench *bench = *state;
    struct toy_server *mdt = &bench->cluster.mdt;
    struct toy_server *away = &bench->cluster.second_mdt;
    struct shoal_file *here = make(bench, "here", RW);
    struct asked look;

    toy_second_mdt_add(&bench->cluster);
    while (client_map(bench->client)->version < bench->cluster.map.version) {
        tick(bench, NS_PER_S);
    }
    struct shoal_file *there = make(bench, "there", RW);
    (void)ino_of(bench, there);
    uint32_t shown = away->seen[OP_REOPEN];
    mdt->attached = away->attached = false;
    mdt->term++;
    away->term++;
    mdt->detached_result = away->detached_result = -ERR_STALE_TERM;
    away->hold = true;
    start(bench, &look, (struct shoal_request){.operation = SHOAL_GETATTR, .file = there});
    toy_release(away, 1);
    while (worker_run_one(&bench->cluster.worker)) {
    }
    assert_int_equal(away->held_count, 1); /* it is to be shown its open */
    assert_int_equal(size_by_lookup(bench, "here"), 0);
    assert_int_equal(mdt->seen[OP_REOPEN], 1);
    assert_true(mdt->attached && !away->attached && !look.done);
    away->hold = false;
    toy_release(away, UINT32_MAX);
    while (worker_run_one(&bench->cluster.worker)) {
    }
    assert_true(look.done && away->attached);
    assert_int_equal(look.request.result, 0);
    assert_int_equal(away->seen[OP_REOPEN], shown + 1);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, here), 0);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, there), 0);
}

static void test_old_map_is_replaced(void **state) {
    struct bench *bench = *state;
    struct toy_server *mdt = &bench->cluster.mdt;
    struct asked look;

    on_file(bench, SHOAL_RELEASE, make(bench, "map", RW));
    mdt->fail_opcode = OP_LOOKUP;
    mdt->fail_result = -ERR_STALE_MAP;
    mdt->fail_count = 1;
    start(bench, &look,
          (struct shoal_request){
              .operation = SHOAL_LOOKUP, .ino = SHOAL_INO_ROOT, .name = "map", .name_bytes = 3});
    assert_false(look.done); /* The manager has no newer one yet. */
    tick(bench, NS_PER_S);
    assert_false(look.done);
    bench->cluster.map.version = 2;
    tick(bench, NS_PER_S);
    assert_true(look.done);
    assert_int_equal(look.request.result, 0);
    assert_int_equal(client_map(bench->client)->version, 2);
    /* Many maps, one after the other: the old ones go. */
    for (uint64_t version = 3; version < 60; version++) {
        bench->cluster.map.version = version;
        tick(bench, 3 * NS_PER_S);
        assert_int_equal(client_map(bench->client)->version, version);
    }
}

/* Which takes what it does not know for a member's, where a mount asks. */
static void test_a_manager_of_the_version_before_gives_whole_maps(void **state) {
    static const int answers[] = {-ERR_NOT_SUPPORTED, -ERR_NOT_PERMITTED};
    struct bench *bench = *state;
    struct toy_server *manager = &bench->cluster.manager;

    on_file(bench, SHOAL_RELEASE, make(bench, "map", RW));
    manager->fail_opcode = OP_MAP_CHANGES;
    manager->fail_count = 1000;
    for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
        uint32_t wholes = manager->seen[OP_MAP_GET];

        manager->fail_result = answers[i];
        bench->cluster.map.version++;
        tick(bench, 3 * NS_PER_S);
        assert_int_equal(client_map(bench->client)->version, bench->cluster.map.version);
        assert_int_equal(manager->seen[OP_MAP_GET], wholes + 1);
    }
}

static void test_waiting_for_a_map_ends(void **state) {
    struct bench *bench = *state;
    struct toy_server *mdt = &bench->cluster.mdt;
    struct asked look;

    mdt->fail_opcode = OP_LOOKUP;
    mdt->fail_result = -ERR_STALE_MAP;
    mdt->fail_count = 1000;
    start(bench, &look,
          (struct shoal_request){
              .operation = SHOAL_LOOKUP, .ino = SHOAL_INO_ROOT, .name = "map", .name_bytes = 3});
    for (int i = 0; i < 20; i++) {
        tick(bench, NS_PER_S);
    }
    assert_true(look.done);
    assert_int_equal(look.request.result, -EIO);
}

/* Another client has truncated: our capability is refused, a new one is asked for. */
static void test_stale_capability_is_renewed(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file = make(bench, "stale", RW);
    struct toy_file *toy = toy_file_find(&bench->cluster, ino_of(bench, file));
    uint8_t *data = pattern(300000, 11);
    uint8_t *back = malloc(300000);

    assert_int_equal(put(bench, file, 0, data, 300000), 300000);
    assert_int_equal(on_file(bench, SHOAL_FLUSH, file), 0);
    toy->truncate_seq++;
    toy->truncate_size = 1000;
    toy->attributes.size = 1000;
    toy->attributes.truncate_seq = toy->truncate_seq;
    toy->attributes.epoch = ++bench->cluster.epoch;
    assert_int_equal(get(bench, file, 0, back, 300000), 1000);
    assert_memory_equal(back, data, 1000);
    assert_int_equal(bench->cluster.mdt.seen[OP_REOPEN], 1);
    toy->truncate_seq++;
    toy->truncate_size = 0;
    toy->attributes.size = 0;
    toy->attributes.truncate_seq = toy->truncate_seq;
    toy->attributes.epoch = ++bench->cluster.epoch;
    assert_int_equal(put(bench, file, 100000, data, 100000), 100000);
    assert_int_equal(get(bench, file, 0, back, 300000), 200000);
    for (size_t i = 0; i < 100000; i++) {
        assert_int_equal(back[i], 0);
    }
    assert_memory_equal(back + 100000, data, 100000);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    free(data);
    free(back);
}

static int setup_few(void **state) {
    *state = malloc(sizeof(struct bench));
    bench_open(*state, (struct client_options){.open_files_max = 640, .chunk_calls_max = 1});
    return 0;
}

/* Another mount truncates when a part of a write was taken, and a read renews the capability before
 * the next one leaves: it goes anew as a whole. */
static void test_a_write_goes_under_one_truncation(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file = make(bench, "parts", RW);
    struct toy_file *toy = toy_file_find(&bench->cluster, ino_of(bench, file));
    uint8_t *data = pattern(300000, 11);
    uint8_t *back = calloc(1, 300000);
    uint32_t held = 0;
    struct asked wrote;

    assert_non_null(back);
    assert_int_equal(put(bench, file, 0, data, 300000), 300000);
    assert_int_equal(on_file(bench, SHOAL_FLUSH, file), 0);
    for (int i = 0; i < TOY_OSTS; i++) {
        bench->cluster.osts[i].hold_answers = true;
    }
    start(bench, &wrote, write_of(file, 0, data, 300000));
    for (int i = 0; i < TOY_OSTS; i++) {
        bench->cluster.osts[i].hold_answers = false;
        held += bench->cluster.osts[i].held_count;
    }
    assert_int_equal(held, 1);
    toy->truncate_seq++;
    toy->truncate_size = 0;
    toy->attributes.size = 0;
    toy->attributes.truncate_seq = toy->truncate_seq;
    toy->attributes.epoch = ++bench->cluster.epoch;
    assert_int_equal(get(bench, file, TOY_CHUNK_BYTES, back, 1000), 0);
    for (int i = 0; i < TOY_OSTS; i++) {
        toy_release(&bench->cluster.osts[i], UINT32_MAX);
    }
    while (worker_run_one(&bench->cluster.worker)) {
    }
    assert_true(wrote.done);
    assert_int_equal(wrote.request.result, 300000);
    assert_int_equal(get(bench, file, 0, back, 300000), 300000);
    assert_memory_equal(back, data, 300000);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    assert_int_equal(toy->attributes.size, 300000);
    free(data);
    free(back);
}

static void fail_osts(struct bench *bench, uint16_t opcode, int result, uint32_t count) {
    for (int i = 0; i < TOY_OSTS; i++) {
        bench->cluster.osts[i].fail_opcode = opcode;
        bench->cluster.osts[i].fail_result = result;
        bench->cluster.osts[i].fail_count = count;
    }
}

/* However often keys turn while a capability is on its way; the same one is not tried for ever. */
static void test_capabilities_that_are_new_are_tried_on(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file = make(bench, "turns", RW);
    const uint32_t *reopens = &bench->cluster.mdt.seen[OP_REOPEN];
    uint8_t *data = pattern(50000, 12);
    uint8_t *back = malloc(50000);

    assert_int_equal(put(bench, file, 0, data, 50000), 50000);
    assert_int_equal(*reopens, 0);
    bench->cluster.key_turns = 20;
    assert_int_equal(get(bench, file, 0, back, 50000), 50000);
    assert_memory_equal(back, data, 50000);
    assert_int_equal(*reopens, 20);
    bench->cluster.key_turns = 20;
    assert_int_equal(put(bench, file, 0, data, 50000), 50000);
    assert_int_equal(*reopens, 40);
    fail_osts(bench, OP_CHUNK_READ, -ERR_BAD_CAPABILITY, UINT32_MAX);
    assert_int_equal(get(bench, file, 0, back, 50000), -EACCES);
    assert_int_equal(*reopens, 48);
    fail_osts(bench, 0, 0, 0);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    free(data);
    free(back);
}

/* A part was refused for its capability, and no other one is to be had: the rest is taken back. */
static void test_a_promise_that_cannot_begin_anew_is_taken_back(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file = make(bench, "promised", RW);
    struct shoal_request allocate = {.operation = SHOAL_ALLOCATE,
                                     .file = file,
                                     .flags = SHOAL_KEEP_SIZE,
                                     .size = (size_t)6 * TOY_CHUNK_BYTES};

    assert_int_equal(put(bench, file, 0, "abc", 3), 3);
    bench->cluster.promised_bytes = (uint64_t)1 << 30;
    bench->cluster.mdt.fail_opcode = OP_REOPEN;
    bench->cluster.mdt.fail_result = -ERR_IO;
    bench->cluster.mdt.fail_count = 1;
    bench->cluster.osts[1].fail_opcode = OP_CHUNK_SPACE;
    bench->cluster.osts[1].fail_result = -ERR_BAD_CAPABILITY;
    bench->cluster.osts[1].fail_count = 1;
    assert_int_equal(run(bench, &allocate), -EIO);
    assert_int_equal(bench->cluster.mdt.fail_count, 0);
    /* The stand-in doesn't know that of the part that was refused nothing was added. */
    assert_int_equal(bench->cluster.promised_bytes, ((uint64_t)1 << 30) - TOY_CHUNK_BYTES);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
}

/* The part that did get through must not show up when the file grows over it later. */
static void test_failed_write_leaves_nothing_behind_the_end(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file = make(bench, "failed", RW);
    uint8_t *data = pattern(300000, 13);
    uint8_t *back = malloc(300000);

    assert_int_equal(put(bench, file, 0, data, 20000), 20000);
    bench->cluster.osts[1].fail_opcode = OP_CHUNK_WRITE;
    bench->cluster.osts[1].fail_result = -ERR_NO_SPACE;
    bench->cluster.osts[1].fail_count = 100;
    assert_int_equal(put(bench, file, 20000, data, 280000), -ENOSPC);
    bench->cluster.osts[1].fail_count = 0;
    assert_int_equal(size_by_lookup(bench, "failed"), 20000);
    assert_int_equal(cut(bench, file, 300000), 0);
    assert_int_equal(get(bench, file, 0, back, 300000), 300000);
    assert_memory_equal(back, data, 20000);
    for (size_t i = 20000; i < 300000; i++) {
        assert_int_equal(back[i], 0);
    }
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    free(data);
    free(back);
}

/* Nor where a target was away for so long that the write's time is up. */
static void test_a_write_that_ends_late_leaves_nothing_behind_the_end(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file = make(bench, "late", RW);
    struct toy_server *away = &bench->cluster.osts[1];
    uint8_t *data = pattern(300000, 13);
    uint8_t *back = malloc(300000);
    struct asked wrote;

    assert_int_equal(put(bench, file, 0, data, 20000), 20000);
    assert_int_equal(on_file(bench, SHOAL_FLUSH, file), 0);
    away->hold = true;
    start(bench, &wrote, write_of(file, 20000, data, 280000));
    assert_true(away->held_count > 0);
    toy_cluster_pass(&bench->cluster, 11 * NS_PER_S);
    away->hold = false;
    away->fail_opcode = OP_CHUNK_WRITE;
    away->fail_result = -ERR_AWAY;
    away->fail_count = away->held_count;
    toy_release(away, UINT32_MAX);
    while (worker_run_one(&bench->cluster.worker)) {
    }
    assert_true(wrote.done);
    assert_int_equal(wrote.request.result, -EIO);
    assert_int_equal(cut(bench, file, 300000), 0);
    assert_int_equal(get(bench, file, 0, back, 300000), 300000);
    assert_memory_equal(back, data, 20000);
    for (size_t i = 20000; i < 300000; i++) {
        assert_int_equal(back[i], 0);
    }
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    free(data);
    free(back);
}

static uint64_t version_by_open(struct bench *bench, struct shoal_file *file) {
    struct shoal_request open = {
        .operation = SHOAL_OPEN, .ino = ino_of(bench, file), .flags = SHOAL_OPEN_READ};

    assert_int_equal(run(bench, &open), 0);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, open.file), 0);
    return open.attributes.version;
}

/* What a write or a punch has changed before it failed is told like any change, so that nobody
 * takes what he has of the file for all that there is. */
static void test_what_failed_in_part_is_told(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file = make(bench, "part", RW);
    struct shoal_file *other = NULL;
    struct shoal_request open = {
        .operation = SHOAL_OPEN, .ino = ino_of(bench, file), .flags = SHOAL_OPEN_READ};
    struct shoal_request punch = {
        .operation = SHOAL_ALLOCATE, .flags = SHOAL_PUNCH_HOLE | SHOAL_KEEP_SIZE, .size = 300000};
    uint8_t *data = pattern(300000, 13);
    uint64_t version, told;

    assert_int_equal(put(bench, file, 0, data, 300000), 300000);
    assert_int_equal(on_file(bench, SHOAL_FLUSH, file), 0);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    assert_int_equal(run(bench, &open), 0);
    other = open.file;
    version = version_by_open(bench, other);
    assert_int_equal(version_by_open(bench, other), version);
    for (unsigned i = 0; i < 2; i++) {
        open.flags = RW;
        assert_int_equal(run(bench, &open), 0);
        punch.file = file = open.file;
        bench->cluster.osts[1].fail_opcode = i == 0 ? OP_CHUNK_WRITE : OP_CHUNK_SPACE;
        bench->cluster.osts[1].fail_result = -ERR_IO;
        bench->cluster.osts[1].fail_count = 100;
        assert_int_equal(i == 0 ? put(bench, file, 0, data + 1, 299999) : run(bench, &punch), -EIO);
        bench->cluster.osts[1].fail_count = 0;
        assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
        told = version_by_open(bench, other);
        assert_int_not_equal(told, version);
        version = told;
    }
    assert_int_equal(on_file(bench, SHOAL_RELEASE, other), 0);
    free(data);
}

/* A time that was set stays, behind a punch and behind a write that failed. */
static void test_a_time_that_is_set_stays(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file = make(bench, "timed", RW);
    struct shoal_request punch = {.operation = SHOAL_ALLOCATE,
                                  .file = file,
                                  .flags = SHOAL_PUNCH_HOLE | SHOAL_KEEP_SIZE,
                                  .size = 300000};
    struct shoal_request times = {
        .operation = SHOAL_SETATTR, .set = SHOAL_SET_MTIME, .ino = ino_of(bench, file)};
    struct shoal_request look = {.operation = SHOAL_GETATTR, .ino = times.ino};
    uint8_t *data = pattern(300000, 13);

    assert_int_equal(put(bench, file, 0, data, 300000), 300000);
    for (unsigned i = 0; i < 2; i++) {
        bench->cluster.osts[1].fail_opcode = OP_CHUNK_WRITE;
        bench->cluster.osts[1].fail_result = -ERR_IO;
        bench->cluster.osts[1].fail_count = i * 100;
        assert_int_equal(i == 0 ? run(bench, &punch) : put(bench, file, 0, data, 300000),
                         i == 0 ? 0 : -EIO);
        times.attributes.mtime_ns = 5 + i;
        assert_int_equal(run(bench, &times), 0);
        assert_int_equal(on_file(bench, SHOAL_FLUSH, file), 0);
    }
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    assert_int_equal(run(bench, &look), 0);
    assert_int_equal(look.attributes.mtime_ns, 6);
    free(data);
}

/* A time that was set tells of what was written before, and of nothing that was written while its
 * answer was on the way. */
static void test_a_write_beside_a_time_is_told(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file = make(bench, "timed", RW);
    struct asked times = {.request = {.operation = SHOAL_SETATTR,
                                      .set = SHOAL_SET_MTIME,
                                      .ino = ino_of(bench, file)}};
    uint8_t *data = pattern(300000, 13);
    uint64_t version;

    assert_int_equal(put(bench, file, 0, data, 300000), 300000);
    assert_int_equal(on_file(bench, SHOAL_FLUSH, file), 0);
    bench->cluster.mdt.hold = true;
    start(bench, &times, times.request);
    assert_int_equal(put(bench, file, 0, data + 1, 200000), 200000);
    bench->cluster.mdt.hold = false;
    toy_release(&bench->cluster.mdt, UINT32_MAX);
    while (worker_run_one(&bench->cluster.worker)) {
    }
    assert_true(times.done);
    version = version_by_open(bench, file);
    assert_int_equal(on_file(bench, SHOAL_FLUSH, file), 0);
    assert_int_not_equal(version_by_open(bench, file), version);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    free(data);
}

static void test_damaged_data_is_asked_for_twice(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file = make(bench, "damaged", RW);
    uint8_t *data = pattern(200000, 14);
    uint8_t *back = malloc(200000);
    static const size_t sizes[] = {10, 5000, 200000};

    assert_int_equal(put(bench, file, 0, data, 200000), 200000);
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        bench->cluster.damage = 1;
        assert_int_equal(get(bench, file, 0, back, sizes[i]), sizes[i]);
        assert_memory_equal(back, data, sizes[i]);
        bench->cluster.damage = 100;
        assert_int_equal(get(bench, file, 0, back, sizes[i]), -EIO);
        bench->cluster.damage = 0;
    }
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    free(data);
    free(back);
}

/* A target that cannot be reached ends the start; what is under way elsewhere ends first. */
static void test_start_fails_whole(void **state) {
    struct bench *bench = *state;
    struct shoal_client *other;
    struct client_options options = {.env = bench->cluster.env,
                                     .incarnation = 10,
                                     .origin = "/other",
                                     .request_timeout_ns = 2 * NS_PER_S};
    struct rpc_options rpc = {.transport = &transport_inproc_ops,
                              .transport_context = bench->cluster.logs,
                              .env = bench->cluster.env,
                              .resend_ns = NS_PER_S,
                              .logs_max = 16};
    int result = 1;
    int stopped = 1;

    assert_int_equal(rpc_new(&rpc, &options.rpc), 0);
    assert_int_equal(client_new(&options, &other), 0);
    bench->cluster.mdt.fail_opcode = OP_SESSION_ATTACH;
    bench->cluster.mdt.fail_result = -ERR_IO;
    bench->cluster.mdt.fail_count = 1;
    client_start(other, note_result, &result);
    while (worker_run_one(&bench->cluster.worker)) {
    }
    assert_int_equal(result, -ERR_IO);
    /* Another try, which the stop finds under way. */
    bench->cluster.mdt.hold = true;
    client_start(other, note_result, &result);
    while (worker_run_one(&bench->cluster.worker)) {
    }
    client_stop(other, note_result, &stopped);
    assert_int_equal(stopped, 1);
    bench->cluster.mdt.hold = false;
    toy_release(&bench->cluster.mdt, UINT32_MAX);
    assert_int_equal(stopped, 0);
    client_free(other);
    rpc_free(options.rpc);
}

static int no_entry(void *context, const struct shoal_entry *entry) {
    (void)context;
    (void)entry;
    return 0;
}

static void test_errors_are_told(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file = make(bench, "errors", RW);
    struct shoal_file *reader = make(bench, "errors", SHOAL_OPEN_READ);
    struct shoal_file *writer = make(bench, "errors", SHOAL_OPEN_WRITE);
    uint8_t *data = pattern(100000, 15);
    char long_name[300];

    memset(long_name, 'n', sizeof long_name);
    const struct {
        struct shoal_request request;
        int64_t result;
    } rows[] = {
        {{.operation = (enum shoal_operation)0}, -EOPNOTSUPP},
        {{.operation = (enum shoal_operation)99}, -EOPNOTSUPP},
        {{.operation = SHOAL_READ}, -EBADF},
        {{.operation = SHOAL_READ, .file = writer, .data = data, .size = 9}, -EBADF},
        {{.operation = SHOAL_WRITE, .file = reader, .data = data, .size = 9}, -EBADF},
        {{.operation = SHOAL_WRITE, .file = file, .data = data, .size = 9, .offset = UINT64_MAX},
         -EFBIG},
        {{.operation = SHOAL_WRITE,
          .file = file,
          .data = data,
          .size = 9,
          .offset = FILE_BYTES_MAX - 8},
         -EFBIG},
        {{.operation = SHOAL_WRITE, .file = file, .data = data, .size = 0, .offset = 5}, 0},
        {{.operation = SHOAL_READ, .file = file, .data = data, .size = 9, .offset = UINT64_MAX}, 0},
        {{.operation = SHOAL_READDIR, .file = file, .entry = no_entry}, -EBADF},
        {{.operation = SHOAL_ALLOCATE, .file = reader, .size = 9}, -EBADF},
        {{.operation = SHOAL_ALLOCATE, .file = file, .size = 0}, -EINVAL},
        {{.operation = SHOAL_ALLOCATE, .file = file, .offset = UINT64_MAX, .size = 2}, -EFBIG},
        {{.operation = SHOAL_LOOKUP, .ino = 1, .name = long_name, .name_bytes = 300},
         -ENAMETOOLONG},
        {{.operation = SHOAL_LOOKUP, .ino = 1, .name = "none", .name_bytes = 4}, -ENOENT},
        {{.operation = SHOAL_SYMLINK,
          .ino = 1,
          .name = "link",
          .name_bytes = 4,
          .data = data,
          .size = 5000},
         -ENAMETOOLONG},
        {{.operation = SHOAL_GETATTR, .ino = 987654}, -ENOENT},
        {{.operation = SHOAL_OPEN, .ino = 987654, .flags = RW}, -ENOENT},
        {{.operation = SHOAL_SETATTR, .ino = 1, .set = 1U << 20}, -EINVAL},
        {{.operation = SHOAL_SETATTR,
          .file = file,
          .set = SHOAL_SET_SIZE,
          .attributes = {.size = UINT64_MAX}},
         -EFBIG},
        {{.operation = SHOAL_LAYOUT_SET, .ino = 1, .layout = {.chunk_bytes = 1}}, -EINVAL},
        {{.operation = SHOAL_LOOKUP, .ino = 1, .identity = {.group_count = 2000}}, -EINVAL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct shoal_request request = rows[i].request;

        if (run(bench, &request) != rows[i].result) {
            fail_msg("row %zu: %lld instead of %lld", i, (long long)request.result,
                     (long long)rows[i].result);
        }
    }
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, reader), 0);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, writer), 0);
    free(data);
}

static void test_errors_of_storage_targets_are_told(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file = make(bench, "io", RW);
    uint8_t *data = pattern(100000, 17);

    fail_osts(bench, OP_CHUNK_WRITE, -ERR_IO, 100);
    assert_int_equal(put(bench, file, 0, data, 100000), -EIO);
    fail_osts(bench, 0, 0, 0);
    assert_int_equal(put(bench, file, 0, data, 100000), 100000);
    fail_osts(bench, OP_CHUNK_READ, -ERR_IO, 100);
    assert_int_equal(get(bench, file, 0, data, 100000), -EIO);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), 0);
    free(data);
}

/* Evicted: nothing that is open works any more, but handles go back. */
static void test_evicted_client_says_so(void **state) {
    struct bench *bench = *state;
    struct shoal_file *file = make(bench, "evicted", RW);
    char byte;

    bench->cluster.manager.fail_opcode = OP_SESSION_RENEW;
    bench->cluster.manager.fail_result = -ERR_FENCED;
    bench->cluster.manager.fail_count = 1;
    tick(bench, 3 * NS_PER_S);
    assert_true(client_is_fenced(bench->client));
    assert_int_equal(get(bench, file, 0, &byte, 1), -ESTALE);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, file), -ESTALE);
    assert_int_equal(bench->cluster.mdt.seen[OP_SETTLE], 0);
}

static uint32_t begun_again;

static void note_again(void *context) {
    (void)context;
    begun_again++;
}

static int setup_again(void **state) {
    *state = malloc(sizeof(struct bench));
    begun_again = 0;
    bench_open(*state, (struct client_options){.open_files_max = 640, .began_again = note_again});
    return 0;
}

static struct shoal_file *open_name(struct bench *bench, const char *name) {
    struct shoal_request look = {
        .operation = SHOAL_LOOKUP, .ino = 1, .name = name, .name_bytes = strlen(name)};

    assert_int_equal(run(bench, &look), 0);
    struct shoal_request open = {
        .operation = SHOAL_OPEN, .ino = look.attributes.ino, .flags = SHOAL_OPEN_READ};
    assert_int_equal(run(bench, &open), 0);
    return open.file;
}

/* What was open answers EIO until it is closed, and takes no part in what is opened anew; the new
 * session waits for what is at work, and is asked for until it is given. */
static void test_an_evicted_client_begins_again(void **state) {
    struct bench *bench = *state;
    struct toy_server *mdt = &bench->cluster.mdt;
    struct shoal_file *old = make(bench, "evicted", RW);
    struct session_id before = client_session(bench->client);
    struct asked held;
    char byte = 'x';

    assert_int_equal(put(bench, old, 0, &byte, 1), 1);
    mdt->hold = true;
    start(bench, &held, (struct shoal_request){.operation = SHOAL_GETATTR, .ino = 1});
    bench->cluster.manager.fail_opcode = OP_SESSION_RENEW;
    bench->cluster.manager.fail_result = -ERR_FENCED;
    bench->cluster.manager.fail_count = 1;
    ticks(bench, 5);
    assert_true(client_is_fenced(bench->client));
    assert_false(held.done);
    assert_int_equal(get(bench, old, 0, &byte, 1), -EIO);
    bench->cluster.manager.fail_opcode = OP_SESSION_BEGIN;
    bench->cluster.manager.fail_result = -ERR_TOO_MANY_OPEN;
    bench->cluster.manager.fail_count = 2;
    mdt->hold = false;
    toy_release(mdt, 1);
    ticks(bench, 6);
    assert_true(held.done);
    assert_int_equal(begun_again, 1);
    assert_false(client_is_fenced(bench->client));
    assert_int_not_equal(client_session(bench->client).value, before.value);
    assert_int_equal(mdt->seen[OP_REOPEN], 0);
    struct shoal_file *again = open_name(bench, "evicted");
    assert_int_equal(get(bench, again, 0, &byte, 1), 1);
    assert_int_equal(get(bench, old, 0, &byte, 1), -EIO);
    assert_int_equal(put(bench, old, 0, &byte, 1), -EIO);
    assert_int_equal(on_file(bench, SHOAL_FSYNC, old), -EIO);
    uint32_t settles = mdt->seen[OP_SETTLE];
    assert_int_equal(on_file(bench, SHOAL_RELEASE, old), -ESTALE);
    assert_int_equal(mdt->seen[OP_SETTLE], settles);
    assert_int_equal(get(bench, again, 0, &byte, 1), 1);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, again), 0);
    assert_int_equal(begun_again, 1);
}

static void test_open_files_have_a_limit(void **state) {
    struct bench *bench = *state;
    static struct shoal_file *files[5000];
    int count = 0;
    struct shoal_request open = {.operation = SHOAL_OPEN, .ino = 1, .flags = SHOAL_OPEN_READ};

    while (run(bench, &open) == 0) {
        assert_true(count < 5000);
        files[count++] = open.file;
    }
    assert_int_equal(open.result, -ENFILE);
    /* All of them may be of one file. */
    assert_int_equal(count, 640);
    for (int i = 0; i < count; i++) {
        assert_int_equal(on_file(bench, SHOAL_RELEASE, files[i]), 0);
    }
    assert_int_equal(bench->cluster.files[0].read_opens, 0);
    assert_int_equal(run(bench, &open), 0);
    assert_int_equal(on_file(bench, SHOAL_RELEASE, open.file), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(conversion_starts_again_after_a_conflict),
        TEST(storage_target_is_attached_again),
        TEST(a_ticket_is_replaced_beside_a_target_that_is_away),
        TEST(a_session_whose_ticket_is_good_for_nothing_is_over),
        TEST(a_copy_of_a_log_is_refused),
        TEST(metadata_target_is_shown_opens_again),
        TEST(opens_that_are_not_taken),
        TEST(opens_are_shown_side_by_side),
        TEST(old_map_is_replaced),
        TEST(a_manager_of_the_version_before_gives_whole_maps),
        TEST(waiting_for_a_map_ends),
        TEST(an_idle_client_comes_back),
        TEST(a_start_makes_nothing_newer),
        TEST(starts_of_other_versions),
        TEST(stale_capability_is_renewed),
        cmocka_unit_test_setup_teardown(test_a_write_goes_under_one_truncation, setup_few,
                                        teardown),
        TEST(capabilities_that_are_new_are_tried_on),
        TEST(a_promise_that_cannot_begin_anew_is_taken_back),
        TEST(failed_write_leaves_nothing_behind_the_end),
        TEST(what_failed_in_part_is_told),
        TEST(a_time_that_is_set_stays),
        TEST(a_write_beside_a_time_is_told),
        TEST(a_write_that_ends_late_leaves_nothing_behind_the_end),
        TEST(damaged_data_is_asked_for_twice),
        TEST(start_fails_whole),
        TEST(errors_are_told),
        TEST(errors_of_storage_targets_are_told),
        TEST(evicted_client_says_so),
        cmocka_unit_test_setup_teardown(test_an_evicted_client_begins_again, setup_again, teardown),
        TEST(open_files_have_a_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
