/* Targets that are away hold up what needs them, and nothing else. */
#include "unit.h"
#include "base/endian.h"
#include "meta/group_internal.h"
#include "meta/half_format.h"
#include "meta/meta_format.h"
#include "meta/queue.h"
#include "meta/settle.h"
#include "meta_bench.h"

enum { FILES = 100, PARTS = 40, SESSION = 1, OTHER = 2, DEAD = 1, ALIVE = 0 };
#define SOON_NS (10 * NS_PER_S)

struct made {
    struct ino ino;
    struct layout layout;
};

static void sync_all(struct meta_bench *bench) {
    struct call call;

    bench_prepare(bench, 0, OP_SYNC, &call);
    assert_int_equal(bench_run(bench, &call), 0);
}

/* New files have one part, on any one of the OSTs. */
static void stripes_one(struct meta_bench *bench) {
    struct call call;

    bench_prepare(bench, 0, OP_LAYOUT_SET, &call);
    call.request.layout_set.ino = INO_ROOT;
    call.request.layout_set.layout =
        (struct layout){.chunk_bytes = CHUNK_BYTES_DEFAULT, .stripe_count = 1};
    assert_int_equal(bench_run(bench, &call), 0);
}

static void name_of(uint32_t number, uint8_t name[2]) {
    name[0] = (uint8_t)('A' + number / 60);
    name[1] = (uint8_t)('A' + number % 60);
}

/* A file in chunks, which the session has open. */
static struct made file_make(struct meta_bench *bench, uint32_t session, uint32_t number) {
    uint8_t name[2];
    struct call call;
    struct made made;

    name_of(number, name);
    bench_prepare(bench, session, OP_CREATE, &call);
    call.request.create.parent = INO_ROOT;
    call.request.create.name = (struct bytes){name, sizeof name};
    call.request.create.mode = 0644;
    call.request.create.open_flags = OPEN_WRITE;
    assert_int_equal(bench_run(bench, &call), 0);
    made = (struct made){call.reply.create.attributes.ino, call.reply.create.layout};
    bench_prepare(bench, session, OP_INLINE_CONVERT, &call);
    call.request.inline_convert =
        (struct inline_convert_request){.ino = made.ino, .stage = INLINE_CONVERT_BEGIN};
    assert_int_equal(bench_run(bench, &call), 0);
    bench_chunk_write(bench, &call.reply.inline_convert.capability, 5000);
    return made;
}

static void file_close(struct meta_bench *bench, uint32_t session, struct ino ino) {
    struct call call;

    bench_prepare(bench, session, OP_SETTLE, &call);
    call.request.settle = (struct settle_request){
        .ino = ino, .size = 5000, .wrote = 1, .close = 1, .open_flags = OPEN_WRITE};
    assert_int_equal(bench_run(bench, &call), 0);
}

static void file_remove(struct meta_bench *bench, uint32_t number) {
    uint8_t name[2];
    struct call call;

    name_of(number, name);
    bench_prepare(bench, 0, OP_UNLINK, &call);
    call.request.unlink.parent = INO_ROOT;
    call.request.unlink.name = (struct bytes){name, sizeof name};
    assert_int_equal(bench_run(bench, &call), 0);
}

static bool is_on(struct meta_bench *bench, const struct layout *layout, uint32_t ost) {
    struct pool_version pool;

    assert_true(cluster_map_pool(bench->map, layout->pool_version, &pool));
    for (uint32_t i = 0; i < layout_width(layout, &pool); i++) {
        const struct map_chain *chain =
            cluster_map_chain(bench->map, layout_chain_at(layout, &pool, i));

        if (chain->members[0].value == bench->osts[ost].id.value) {
            return true;
        }
    }
    return false;
}

static struct group_totals totals_of(struct meta_bench *bench) {
    struct group_stats stats;

    bench_stats(bench, &stats);
    return stats.totals;
}

static void all_is_done(struct meta_bench *bench, uint64_t orders) {
    for (int i = 0; totals_of(bench).orders_done < orders; i++) {
        assert_true(i < 100);
        bench_advance(bench, NS_PER_S);
    }
    assert_int_equal(totals_of(bench).orders_done, orders);
    for (uint32_t i = 0; i < BENCH_OSTS; i++) {
        assert_int_equal(bench->osts[i].synced, bench->osts[i].position);
    }
}

/* More removals than the queue has places, all with a part on an OST that is dead: their other
 * parts go, and so does a file that has none there; all else when it is back. */
static void test_removals(void **state) {
    const struct bench_options options = {.seed = 41};
    struct meta_bench *bench = bench_new(&options);
    uint64_t elsewhere = 0;

    (void)state;
    for (uint32_t i = 0; i < FILES; i++) {
        file_close(bench, 0, file_make(bench, 0, i).ino);
    }
    stripes_one(bench);
    for (uint32_t i = FILES; i < FILES + PARTS; i++) {
        struct made made = file_make(bench, 0, i);

        elsewhere += is_on(bench, &made.layout, ALIVE);
        file_close(bench, 0, made.ino);
    }
    assert_true(elsewhere > 0 && elsewhere < PARTS);
    bench->osts[DEAD].is_dead = true;
    for (uint32_t i = 0; i < FILES + PARTS; i++) {
        file_remove(bench, i);
    }
    sync_all(bench);
    bench_advance(bench, SOON_NS);
    assert_true(bench->osts[ALIVE].deleted_count >= FILES + elsewhere);
    assert_int_equal(totals_of(bench).orders_done, elsewhere);
    assert_true(totals_of(bench).orders_put_aside > 0);
    uint64_t told = bench->osts[ALIVE].deleted_count;
    bench_advance(bench, SOON_NS);
    assert_int_equal(bench->osts[ALIVE].deleted_count, told);
    bench_ost_returns(&bench->osts[DEAD]);
    all_is_done(bench, FILES + PARTS);
    bench_free(bench);
}

/* An OST that dies between an order and its sync holds its own orders only, also when these have
 * taken all places. */
static void test_a_sync_that_does_not_end(void **state) {
    const struct bench_options options = {.seed = 42};
    struct meta_bench *bench = bench_new(&options);
    uint64_t elsewhere = 0;

    (void)state;
    stripes_one(bench);
    for (uint32_t i = 0; i < 2 * FILES; i++) {
        struct made made = file_make(bench, 0, i);

        elsewhere += is_on(bench, &made.layout, ALIVE);
        file_close(bench, 0, made.ino);
    }
    bench->osts[DEAD].holds_syncs = true;
    for (uint32_t i = 0; i < 2 * FILES; i++) {
        file_remove(bench, i);
    }
    sync_all(bench);
    bench_advance(bench, SOON_NS);
    assert_int_equal(totals_of(bench).orders_done, elsewhere);
    bench->osts[DEAD].holds_syncs = false;
    assert_true(bench_sync_answer(&bench->osts[DEAD]));
    all_is_done(bench, 2 * FILES);
    bench_free(bench);
}

/* Files of an evicted session with parts on a dead OST, more than there are settle jobs, hold no
 * file that has none there, of that session or another one. */
static void test_evictions(void **state) {
    const struct bench_options options = {.seed = 43};
    struct meta_bench *bench = bench_new(&options);
    uint64_t elsewhere = 0;
    struct group_stats stats;

    (void)state;
    stripes_one(bench);
    for (uint32_t i = 0; i < 3 * PARTS; i++) {
        struct made made = file_make(bench, i < 2 * PARTS ? SESSION : OTHER, i);

        elsewhere += is_on(bench, &made.layout, ALIVE);
    }
    bench->osts[DEAD].is_dead = true;
    assert_int_equal(bench_ended(bench, bench->sessions[SESSION].id), 0);
    assert_int_equal(bench_ended(bench, bench->sessions[OTHER].id), 0);
    bench_advance(bench, SOON_NS);
    bench_stats(bench, &stats);
    assert_int_equal(stats.totals.settled, elsewhere);
    assert_int_equal(stats.open_count, 3 * PARTS - elsewhere);
    assert_true(stats.totals.settles_put_off > 0);
    bench_ost_returns(&bench->osts[DEAD]);
    while (bench_is_known(bench, bench->sessions[SESSION].id) ||
           bench_is_known(bench, bench->sessions[OTHER].id)) {
        bench_turn(bench);
    }
    assert_int_equal(totals_of(bench).settled, 3 * PARTS);
    bench_free(bench);
}

enum { MESSAGES = 200 };

/* So many messages that are about something else, and no tick: looks at what evictions close. */
static uint64_t looks_by_messages(struct meta_bench *bench) {
    uint64_t looks = bench->group->sessions.evicting_looks;

    for (int i = 0; i < MESSAGES; i++) {
        struct call call;

        bench_prepare(bench, 0, OP_GETATTR, &call);
        call.request.getattr.ino = INO_ROOT;
        bench_post(bench, &call);
        while (worker_run_one(&bench->worker)) {
        }
        assert_true(bench_is_answered(&call));
    }
    return bench->group->sessions.evicting_looks - looks;
}

/* Evictions that wait for a dead OST cost the group's other messages nothing: each open is looked
 * at once behind the last that has happened to a settle job. */
static void test_evictions_that_wait_are_not_searched(void **state) {
    const struct bench_options options = {.seed = 56};
    struct meta_bench *bench = bench_new(&options);

    (void)state;
    for (uint32_t i = 0; i < 2 * PARTS; i++) {
        (void)file_make(bench, i < PARTS ? SESSION : OTHER, i);
    }
    bench->osts[DEAD].is_dead = true;
    assert_int_equal(bench_ended(bench, bench->sessions[SESSION].id), 0);
    assert_int_equal(bench_ended(bench, bench->sessions[OTHER].id), 0);
    bench_advance(bench, SOON_NS);
    assert_true(totals_of(bench).settles_put_off >= 2 * PARTS);
    assert_true(looks_by_messages(bench) <= 2 * PARTS);
    bench_ost_returns(&bench->osts[DEAD]);
    while (bench_is_known(bench, bench->sessions[SESSION].id) ||
           bench_is_known(bench, bench->sessions[OTHER].id)) {
        bench_turn(bench);
    }
    assert_int_equal(totals_of(bench).settled, 2 * PARTS);
    bench_free(bench);
}

enum end { BY_STOP, BY_KILL, BY_POWER, END_COUNT };

static void start_anew(struct meta_bench *bench, enum end end) {
    if (end == BY_STOP) {
        bench_stop_and_start(bench);
    } else {
        bench_restart(bench, end == BY_POWER);
    }
    bench_attach(bench, 0);
}

/* More orders than there are places wait for an OST that is dead, on disk: behind a start they do
 * still, and hold nobody up; none is lost, and all are done when it is back. */
static void test_removals_through_a_start(void **state) {
    (void)state;
    for (enum end end = BY_STOP; end < END_COUNT; end++) {
        const struct bench_options options = {.seed = 45 + end};
        struct meta_bench *bench = bench_new(&options);
        struct group_stats stats;

        for (uint32_t i = 0; i < FILES; i++) {
            file_close(bench, 0, file_make(bench, 0, i).ino);
        }
        bench->osts[DEAD].is_dead = true;
        for (uint32_t i = 0; i < FILES; i++) {
            file_remove(bench, i);
        }
        sync_all(bench);
        for (int times = 0; times < 2; times++) {
            start_anew(bench, end);
            bench_stats(bench, &stats);
            assert_int_equal(stats.order_count, ORDER_JOBS);
            bench_advance(bench, SOON_NS);
            assert_int_equal(totals_of(bench).orders_done, 0);
            assert_true(totals_of(bench).orders_put_aside >= FILES);
            assert_true(bench->osts[ALIVE].deleted_count >= FILES);
            file_close(bench, 0, file_make(bench, 0, FILES + (uint32_t)times).ino);
        }
        assert_int_equal(bench->osts[DEAD].deleted_count, 0);
        bench_ost_returns(&bench->osts[DEAD]);
        all_is_done(bench, FILES);
        assert_true(bench->osts[DEAD].deleted_count >= FILES);
        bench_free(bench);
    }
}

static uint64_t size_of(struct meta_bench *bench, struct ino ino) {
    struct call call;

    bench_prepare(bench, 0, OP_GETATTR, &call);
    call.request.getattr.ino = ino;
    assert_int_equal(bench_run(bench, &call), 0);
    return call.reply.getattr.attributes.size;
}

/* So do sizes that nobody but a dead OST can tell, of more files than there are jobs: the session
 * stays known through each start until it has. */
static void test_evictions_through_a_start(void **state) {
    (void)state;
    for (enum end end = BY_STOP; end < END_COUNT; end++) {
        const struct bench_options options = {.seed = 48 + end};
        struct meta_bench *bench = bench_new(&options);
        struct made made[PARTS];
        struct group_stats stats;

        for (uint32_t i = 0; i < PARTS; i++) {
            made[i] = file_make(bench, SESSION, i);
        }
        sync_all(bench);
        bench->osts[DEAD].is_dead = true;
        assert_int_equal(bench_ended(bench, bench->sessions[SESSION].id), 0);
        for (int times = 0; times < 2; times++) {
            bench_advance(bench, SOON_NS);
            assert_true(bench_is_known(bench, bench->sessions[SESSION].id));
            start_anew(bench, end);
            bench_stats(bench, &stats);
            assert_int_equal(stats.open_count, PARTS);
            file_close(bench, 0, file_make(bench, 0, PARTS + (uint32_t)times).ino);
        }
        bench_ost_returns(&bench->osts[DEAD]);
        while (bench_is_known(bench, bench->sessions[SESSION].id)) {
            bench_turn(bench);
        }
        bench_stats(bench, &stats);
        assert_int_equal(stats.open_count, 0);
        for (uint32_t i = 0; i < PARTS; i++) {
            assert_int_equal(size_of(bench, made[i].ino), 5000);
        }
        bench_free(bench);
    }
}

enum { LATER = 40, BEYOND = 10, THIRD = 3 };

/* A file of one part, on the OST that lives. */
static struct made file_make_alive(struct meta_bench *bench, uint32_t session, uint32_t *number) {
    for (;;) {
        struct made made = file_make(bench, session, (*number)++);

        if (is_on(bench, &made.layout, ALIVE)) {
            return made;
        }
        file_close(bench, session, made.ino);
    }
}

/* The session opens one, and ends. */
static struct made another_ends(struct meta_bench *bench, uint32_t *number) {
    if (!bench_is_known(bench, bench->sessions[OTHER].id)) {
        bench->sessions[OTHER] = (struct bench_session){++bench->next_session_id, 7, 0, 0};
        bench_attach(bench, OTHER);
    }
    struct made made = file_make_alive(bench, OTHER, number);
    assert_int_equal(bench_ended(bench, bench->sessions[OTHER].id), 0);
    bench_advance(bench, SOON_NS);
    return made;
}

static bool any_is_known(struct meta_bench *bench) {
    return bench_is_known(bench, bench->sessions[SESSION].id) ||
           bench_is_known(bench, bench->sessions[OTHER].id) ||
           bench_is_known(bench, bench->sessions[THIRD].id);
}

/* As many files of a dead OST as are put off at a time hold nobody up. */
static uint32_t settles_fill(struct meta_bench *bench, struct made *made) {
    uint32_t number = LATER + SETTLE_JOBS + BEYOND;

    for (uint32_t i = 0; i < number; i++) {
        made[i] = file_make(bench, i < LATER ? SESSION : THIRD, i);
    }
    stripes_one(bench);
    sync_all(bench);
    bench->osts[DEAD].is_dead = true;
    assert_int_equal(bench_ended(bench, bench->sessions[SESSION].id), 0);
    bench_advance(bench, SOON_NS);
    assert_true(totals_of(bench).settles_put_off >= LATER);
    struct made one = another_ends(bench, &number);
    assert_false(bench_is_known(bench, bench->sessions[OTHER].id));
    assert_int_equal(size_of(bench, one.ino), 5000);
    return number;
}

/* Those beyond keep all jobs, so the size of another file waits; all else goes on. Answers a file
 * that was closed meanwhile. */
static struct ino settles_are_full(struct meta_bench *bench, uint32_t *number) {
    uint64_t put_off;
    struct call call;

    struct made waits = another_ends(bench, number);
    assert_true(bench_is_known(bench, bench->sessions[OTHER].id));
    put_off = totals_of(bench).settles_put_off;
    bench_prepare(bench, 0, OP_GETATTR, &call);
    call.request.getattr.ino = waits.ino;
    bench_post(bench, &call);
    bench_advance(bench, SOON_NS);
    assert_false(bench_is_answered(&call));
    assert_int_equal(totals_of(bench).settles_put_off, put_off);
    struct ino closed = file_make_alive(bench, 0, number).ino;
    file_close(bench, 0, closed);
    bench_ost_returns(&bench->osts[DEAD]);
    assert_int_equal(bench_finish(bench, &call), 0);
    assert_int_equal(call.reply.getattr.attributes.size, 5000);
    return closed;
}

static void all_are_settled(struct meta_bench *bench, const struct made *made) {
    struct group_stats stats;

    while (any_is_known(bench)) {
        bench_turn(bench);
    }
    bench_stats(bench, &stats);
    assert_int_equal(stats.open_count, 0);
    for (uint32_t i = 0; i < LATER + SETTLE_JOBS + BEYOND; i++) {
        assert_int_equal(size_of(bench, made[i].ino), 5000);
    }
}

/* A count for which there is no room stays unsure until the file was open for writing again. */
static void test_more_settles_than_are_put_off(void **state) {
    const struct bench_options options = {.seed = 52, .settles_later_max = LATER};
    struct meta_bench *bench = bench_new(&options);
    struct made made[LATER + SETTLE_JOBS + BEYOND];
    uint32_t number = settles_fill(bench, made);
    struct call call;

    (void)state;
    assert_int_equal(bench_ended(bench, bench->sessions[THIRD].id), 0);
    bench_advance(bench, SOON_NS);
    uint64_t counted = totals_of(bench).counted;
    struct ino closed = settles_are_full(bench, &number);
    all_are_settled(bench, made);
    bench_advance(bench, SOON_NS);
    assert_int_equal(totals_of(bench).counted, counted);
    bench_prepare(bench, 0, OP_OPEN, &call);
    call.request.open = (struct open_request){.ino = closed, .open_flags = OPEN_WRITE};
    assert_int_equal(bench_run(bench, &call), 0);
    file_close(bench, 0, closed);
    bench_advance(bench, SOON_NS);
    assert_int_equal(totals_of(bench).counted, counted + 1);
    bench_free(bench);
}

/* They are put off anew behind a start, as many. */
static void test_more_settles_through_a_start(void **state) {
    (void)state;
    for (enum end end = BY_STOP; end < END_COUNT; end++) {
        const struct bench_options options = {.seed = 53 + end, .settles_later_max = LATER};
        struct meta_bench *bench = bench_new(&options);
        struct made made[LATER + SETTLE_JOBS + BEYOND];
        uint32_t number = settles_fill(bench, made);

        assert_int_equal(bench_ended(bench, bench->sessions[THIRD].id), 0);
        for (int times = 0; times < 2; times++) {
            bench_advance(bench, SOON_NS);
            start_anew(bench, end);
            bench_advance(bench, SOON_NS);
            assert_true(bench_is_known(bench, bench->sessions[THIRD].id));
            assert_true(totals_of(bench).settles_put_off >= LATER);
        }
        (void)settles_are_full(bench, &number);
        all_are_settled(bench, made);
        bench_free(bench);
    }
}

enum { COORDINATOR_TERM = 1, TRANSACTIONS = 9000 };

static int prepare(struct meta_bench *bench, const struct half *half, uint64_t number) {
    uint8_t participant[8];
    struct call call;

    store_le64(participant, cluster_map_first_log(bench->map, BENCH_MDT).value);
    bench_prepare(bench, 0, OP_CROSS_PREPARE, &call);
    call.request.cross_prepare = (struct cross_prepare_request){
        .coordinator = cluster_map_first_log(bench->map, bench->osts[0].id).value,
        .term = COORDINATOR_TERM,
        .number = number,
        .below_term = COORDINATOR_TERM,
        .below_number = bench->unended,
        .participants = {participant, sizeof participant},
        .halves = {(const uint8_t *)half, sizeof *half}};
    return bench_run(bench, &call);
}

static void commit_post(struct meta_bench *bench, struct call *call, uint64_t number) {
    bench_prepare(bench, 0, OP_CROSS_COMMIT, call);
    call->request.cross_commit = (struct cross_commit_request){
        .coordinator = cluster_map_first_log(bench->map, bench->osts[0].id).value,
        .term = COORDINATOR_TERM,
        .number = number,
        .below_term = COORDINATOR_TERM,
        .below_number = bench->unended};
    bench_post(bench, call);
}

/* A transaction that does not end, as a participant of it is away, does not hold those of the same
 * coordinator that come later; and what tells a late copy of theirs stays. */
static void test_marks(void **state) {
    const struct bench_options options = {.seed = 44};
    struct meta_bench *bench = bench_new(&options);
    struct made made = file_make(bench, 0, 0);
    struct call commits[2];
    struct half half = {
        .format = META_FORMAT, .kind = HALF_LINK, .mode = 0100644, .ino = made.ino.value};

    (void)state;
    bench->unended = 1;
    for (uint64_t number = 1; number <= TRANSACTIONS; number++) {
        half.from = number;
        int r = prepare(bench, &half, number);
        if (r < 0) {
            fail_msg("transaction %llu: %s", (unsigned long long)number, err_name(r));
        }
        assert_true(number == 1 || bench_finish(bench, &commits[(number - 1) % 2]) == 0);
        commit_post(bench, &commits[number % 2], number);
    }
    assert_int_equal(bench_finish(bench, &commits[TRANSACTIONS % 2]), 0);
    half.from = TRANSACTIONS + 1;
    assert_int_equal(prepare(bench, &half, 5), -ERR_CHANGED);
    assert_int_equal(prepare(bench, &half, 1), -ERR_CHANGED);
    assert_int_equal(prepare(bench, &half, TRANSACTIONS + 1), 0);
    bench_free(bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_removals),
        cmocka_unit_test(test_a_sync_that_does_not_end),
        cmocka_unit_test(test_evictions),
        cmocka_unit_test(test_evictions_that_wait_are_not_searched),
        cmocka_unit_test(test_removals_through_a_start),
        cmocka_unit_test(test_evictions_through_a_start),
        cmocka_unit_test(test_more_settles_than_are_put_off),
        cmocka_unit_test(test_more_settles_through_a_start),
        cmocka_unit_test(test_marks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
