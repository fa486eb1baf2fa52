/* Transactions with other groups, which the script below plays. */
#include "unit.h"
#include "base/endian.h"
#include "meta/crossing.h"
#include "meta/group_internal.h"
#include "meta/half_format.h"
#include "meta/look.h"
#include "meta/meta_format.h"
#include "meta/promise.h"
#include "half_of_make.h"
#include "meta_bench.h"
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 32768, THIRD_SLOTS = 49152, LOOKS_MAX = 64, HELD = 8, PLACES = 8, DIRECTORIES = 16 };
enum { WAY_FIRST = 1000 };
#define THIRD_LOG ((struct log_id){9})

/* It has one file, and promises whatever is asked for. */
struct there {
    struct actor actor; /* first */
    struct ino ino;
    struct inode_row row;
    uint32_t looks;
    bool any_size[LOOKS_MAX]; /* of these */
    uint32_t prepares;
    int prepare_result;
    uint16_t holds; /* this opcode is not answered until there_release; 0: all are */
    struct call *held[HELD];
    uint32_t held_count;
    /* Directories whose way to the root leads to and fro between this one and another group. */
    const struct there *beside;
    uint32_t stretches;
};

/* The first of them, with no names, and those above it by their numbers. */
static void way_answer(const struct there *there, struct call *call) {
    const struct cross_look_request *request = &call->request.cross_look;
    struct look_answer answer = {.format = META_FORMAT, .has_inode = 1, .has_partition = 1};
    uint64_t number = request->ino.value - ino_make(ino_slot(request->ino), 0).value;

    answer.inode = (struct inode_row){.format = META_FORMAT, .mode = 040777, .nlink = 2};
    answer.partition =
        (struct partition_row){.format = META_FORMAT, .state = PARTITION_LIVE, .mode = 040777};
    answer.next = number < WAY_FIRST + there->stretches - 1
                      ? ino_make(ino_slot(there->beside->ino), number + 1).value
                      : INO_ROOT.value;
    memcpy(call->bulk_in.data, &answer, sizeof answer);
    call->bulk_in.size = sizeof answer;
}

static void look_answer(struct there *there, struct call *call) {
    const struct cross_look_request *request = &call->request.cross_look;
    const struct look_answer answer = {.format = META_FORMAT, .has_inode = 1, .inode = there->row};

    if (there->beside) {
        way_answer(there, call);
        return;
    }
    assert_int_equal(request->what, LOOK_INODE);
    assert_int_equal(request->ino.value, there->ino.value);
    assert_true(there->looks < LOOKS_MAX);
    there->any_size[there->looks++] = request->any_size != 0;
    memcpy(call->bulk_in.data, &answer, sizeof answer);
    call->bulk_in.size = sizeof answer;
}

static void there_answer(struct there *there, struct call *call) {
    memset(&call->reply, 0, sizeof call->reply);
    switch (call->header.opcode) {
    case OP_CROSS_LOOK:
        look_answer(there, call);
        break;
    case OP_CROSS_PREPARE:
        there->prepares++;
        call_reply(call, there->prepare_result);
        return;
    case OP_CROSS_ABORT:
    case OP_CROSS_COMMIT:
        break;
    default:
        fail_msg("the other group got %s", wire_name(call->header.opcode));
    }
    call_reply(call, 0);
}

static void there_step(struct actor *actor, struct message *first) {
    struct there *there = CONTAINER_OF(actor, struct there, actor);

    while (first) {
        struct call *call = CONTAINER_OF(first, struct call, message);

        first = first->next;
        if (call->header.opcode == there->holds) {
            assert_true(there->held_count < HELD);
            there->held[there->held_count++] = call;
        } else {
            there_answer(there, call);
        }
    }
}

static void there_release(struct there *there) {
    there->holds = 0;
    while (there->held_count > 0) {
        there_answer(there, there->held[--there->held_count]);
    }
}

static void there_begin(struct there *there, struct meta_bench *bench, struct log_id log,
                        uint16_t slot) {
    *there = (struct there){.ino = ino_make((struct slot){slot}, 5)};
    there->row = (struct inode_row){.format = META_FORMAT, .mode = 0100644, .nlink = 1, .size = 70};
    actor_init(&there->actor, "other group", there_step);
    assert_int_equal(log_table_add(bench->logs, log, &there->actor), 0);
}

static void link_prepare(struct meta_bench *bench, uint32_t session, const struct there *there,
                         const char *name, struct call *call) {
    bench_prepare(bench, session, OP_LINK, call);
    call->request.link.ino = there->ino;
    call->request.link.parent = INO_ROOT;
    call->request.link.name = (struct bytes){(const uint8_t *)name, 1};
}

static struct group_totals totals_of(struct meta_bench *bench) {
    struct group_stats stats;

    bench_stats(bench, &stats);
    return stats.totals;
}

/* A link tells how long the file is; who takes a name away does not, and so waits for no storage
 * target of the file. */
static void test_only_a_link_asks_for_the_size(void **state) {
    const struct bench_options options = {.seed = 61, .slot_count = SLOTS};
    struct meta_bench *bench = bench_new(&options);
    struct there there;
    struct call call;

    (void)state;
    there_begin(&there, bench, BENCH_OTHER_LOG, SLOTS);
    link_prepare(bench, 0, &there, "x", &call);
    assert_int_equal(bench_run(bench, &call), 0);
    assert_int_equal(call.reply.link.attributes.size, 70);
    assert_int_equal(there.looks, 1);
    assert_false(there.any_size[0]);
    bench_prepare(bench, 0, OP_UNLINK, &call);
    call.request.unlink.parent = INO_ROOT;
    call.request.unlink.name = (struct bytes){(const uint8_t *)"x", 1};
    assert_int_equal(bench_run(bench, &call), 0);
    assert_int_equal(there.looks, 2);
    assert_true(there.any_size[1]);
    bench_free(bench);
}

static void directory_make(struct meta_bench *bench, char name) {
    struct call call;

    bench_prepare(bench, 1, OP_MKDIR, &call);
    call.request.mkdir.parent = INO_ROOT;
    call.request.mkdir.name = (struct bytes){(const uint8_t *)&name, 1};
    call.request.mkdir.mode = 0755;
    assert_int_equal(bench_run(bench, &call), 0);
    assert_true(ino_slot(call.reply.mkdir.attributes.ino).value < SLOTS);
}

static struct meta_bench *bench_of_three(struct there *other, struct there *third) {
    const struct bench_options options = {.seed = 62, .slot_count = SLOTS, .crossings_max = PLACES};
    struct meta_bench *bench = bench_new(&options);

    there_begin(other, bench, BENCH_OTHER_LOG, SLOTS);
    there_begin(third, bench, THIRD_LOG, THIRD_SLOTS);
    bench->map->groups[2] = (struct map_group){.id = {3}, .log = THIRD_LOG};
    bench->map->group_count = 3;
    for (uint32_t i = THIRD_SLOTS; i < SLOT_COUNT; i++) {
        bench->map->slot_groups[i] = 2;
    }
    return bench;
}

/* Of eight places two are the most for those that wait for one group, wherever they wait: one more
 * is told to ask again, what needs another group goes on, and new directories come elsewhere. */
static void who_waits_leaves_room(uint16_t opcode) {
    struct there other, third;
    struct meta_bench *bench = bench_of_three(&other, &third);
    struct call waiting[2], call;

    other.holds = opcode;
    for (int i = 0; i < 2; i++) {
        link_prepare(bench, 0, &other, i ? "b" : "a", &waiting[i]);
        bench_post(bench, &waiting[i]);
    }
    while (other.held_count < 2) {
        bench_turn(bench);
    }
    link_prepare(bench, 0, &other, "c", &call);
    assert_int_equal(bench_run(bench, &call), -ERR_BUSY);
    assert_int_equal(totals_of(bench).crossings_busy, 1);
    uint32_t prepares = other.prepares;
    for (int i = 0; i < DIRECTORIES; i++) {
        directory_make(bench, (char)('A' + i));
    }
    assert_int_equal(other.prepares, prepares);
    struct call to_third;
    link_prepare(bench, 1, &third, "d", &to_third);
    assert_int_equal(bench_run(bench, &to_third), 0);
    there_release(&other);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(bench_finish(bench, &waiting[i]), 0);
    }
    bench_advance(bench, NS_PER_S);
    assert_int_equal(bench_run(bench, &call), 0); /* the same request */
    assert_int_equal(totals_of(bench).crossings_busy, 1);
    assert_int_equal(totals_of(bench).crossings_full, 0);
    bench_free(bench);
}

static void test_looks_leave_room(void **state) {
    (void)state;
    who_waits_leaves_room(OP_CROSS_LOOK);
}

static void test_prepares_leave_room(void **state) {
    (void)state;
    who_waits_leaves_room(OP_CROSS_PREPARE);
}

static void test_commits_leave_room(void **state) {
    (void)state;
    who_waits_leaves_room(OP_CROSS_COMMIT);
}

/* Those that a start finds have their share as before. */
static void test_commits_leave_room_behind_a_start(void **state) {
    (void)state;
    for (int power = 0; power < 2; power++) {
        struct there other, third;
        struct meta_bench *bench = bench_of_three(&other, &third);
        struct call waiting[2], call;

        other.holds = OP_CROSS_COMMIT;
        for (int i = 0; i < 2; i++) {
            link_prepare(bench, 0, &other, i ? "b" : "a", &waiting[i]);
            bench_post(bench, &waiting[i]);
        }
        while (other.held_count < 2) {
            bench_turn(bench);
        }
        bench_restart(bench, power);
        other.held_count = 0;
        bench_attach(bench, 0);
        bench_attach(bench, 1);
        while (other.held_count < 2) {
            bench_turn(bench);
        }
        link_prepare(bench, 0, &other, "c", &call);
        assert_int_equal(bench_run(bench, &call), -ERR_BUSY);
        assert_int_equal(totals_of(bench).crossings_busy, 1);
        struct call to_third;
        link_prepare(bench, 1, &third, "d", &to_third);
        assert_int_equal(bench_run(bench, &to_third), 0);
        there_release(&other);
        bench_advance(bench, NS_PER_S);
        assert_int_equal(bench_run(bench, &call), 0); /* the same request */
        bench_free(bench);
    }
}

/* A directory is moved to where so many stretches of two other groups lie above. */
static int move_below(uint32_t stretches) {
    struct there other, third;
    struct meta_bench *bench = bench_of_three(&other, &third);
    struct call call;

    other.beside = &third;
    third.beside = &other;
    other.stretches = third.stretches = stretches;
    directory_make(bench, 'a');
    bench_prepare(bench, 1, OP_RENAME, &call);
    call.request.rename.parent = INO_ROOT;
    call.request.rename.name = (struct bytes){(const uint8_t *)"a", 1};
    call.request.rename.new_parent = ino_make((struct slot){SLOTS}, WAY_FIRST);
    call.request.rename.new_name = (struct bytes){(const uint8_t *)"b", 1};
    int r = bench_run(bench, &call);
    assert_int_equal(bench->other_line_count, 0);
    bench_free(bench);
    return r;
}

/* All but two looks, which are for both ends, are for the way: one stretch more is refused, and
 * taken for no damage. */
static void test_stretches_of_a_way(void **state) {
    (void)state;
    assert_int_equal(move_below(1), 0);
    assert_int_equal(move_below(CROSSING_LOOKS_MAX - 2), 0);
    assert_int_equal(move_below(CROSSING_LOOKS_MAX - 1), -ERR_NAME_TOO_LONG);
    assert_int_equal(move_below(UINT32_MAX / 2), -ERR_NAME_TOO_LONG);
}

/* Groups beside this one: as many as take all places, two each, and one more. */
enum { GROUPS = PLACES / 2, STEP_SLOTS = 4096, TAKEN = 2 * GROUPS };

static struct meta_bench *bench_of_many(struct there others[GROUPS + 1], uint64_t seed) {
    const struct bench_options options = {
        .seed = seed, .slot_count = SLOTS, .crossings_max = PLACES};
    struct meta_bench *bench = bench_new(&options);

    for (uint32_t i = 0; i <= GROUPS; i++) {
        struct log_id log = i == 0 ? BENCH_OTHER_LOG : (struct log_id){8 + i};
        uint32_t first = SLOTS + i * STEP_SLOTS;

        there_begin(&others[i], bench, log, (uint16_t)first);
        bench->map->groups[1 + i] = (struct map_group){.id = {2 + i}, .log = log};
        for (uint32_t slot = first; slot < SLOT_COUNT; slot++) {
            bench->map->slot_groups[slot] = (uint16_t)(1 + i);
        }
    }
    bench->map->group_count = 2 + GROUPS;
    return bench;
}

/* Each has been asked for two, which it does not answer. */
static void all_hold_two(struct meta_bench *bench, const struct there others[GROUPS]) {
    for (uint32_t i = 0; i < GROUPS; i++) {
        for (int turn = 0; others[i].held_count < 2; turn++) {
            assert_true(turn < 100000);
            bench_turn(bench);
        }
    }
}

/* One more transaction, with whichever group, waits for a place, and is counted once. */
static void one_more_waits(struct meta_bench *bench, const struct there *fifth, const char *name,
                           struct call *call) {
    link_prepare(bench, 1, fifth, name, call);
    bench_post(bench, call);
    bench_advance(bench, NS_PER_S);
    assert_false(bench_is_answered(call));
    assert_int_equal(totals_of(bench).crossings_full, 1);
    assert_int_equal(totals_of(bench).crossings_busy, 0);
}

/* All places are taken by transactions whose groups don't answer: what comes waits until one ends.
 * Behind a start those that were decided are found, take their places and end. */
static void test_all_places_are_taken(void **state) {
    static const char *const names[TAKEN] = {"a", "b", "c", "d", "e", "f", "g", "h"};

    (void)state;
    for (int end = 0; end < 3; end++) {
        struct there others[GROUPS + 1];
        struct meta_bench *bench = bench_of_many(others, 64 + (uint64_t)end);
        const struct there *fifth = &others[GROUPS];
        struct call calls[TAKEN], more;

        for (uint32_t i = 0; i < TAKEN; i++) {
            others[i / 2].holds = OP_CROSS_COMMIT;
            link_prepare(bench, 0, &others[i / 2], names[i], &calls[i]);
            bench_post(bench, &calls[i]);
        }
        all_hold_two(bench, others);
        one_more_waits(bench, fifth, "i", &more);
        if (end > 0) {
            bench_restart(bench, end == 2);
            for (uint32_t i = 0; i < GROUPS; i++) {
                others[i].held_count = 0;
            }
            bench_attach(bench, 0);
            bench_attach(bench, 1);
            all_hold_two(bench, others);
            one_more_waits(bench, fifth, "i", &more);
        }
        there_release(&others[0]);
        assert_int_equal(bench_finish(bench, &more), 0);
        for (uint32_t i = 1; i < GROUPS; i++) {
            there_release(&others[i]);
        }
        bench_advance(bench, NS_PER_S);
        for (uint32_t i = 0; i < TAKEN; i++) {
            assert_true(end > 0 || bench_finish(bench, &calls[i]) == 0);
            link_prepare(bench, 1, fifth, names[i], &more);
            assert_int_equal(bench_run(bench, &more), -ERR_EXISTS);
        }
        bench_free(bench);
    }
}

/* A half for the group whose log is the OST's. */
static int half_prepare_until(struct meta_bench *bench, uint32_t ost, uint64_t number,
                              const struct half *half, uint64_t deadline_ns) {
    uint8_t participant[8];
    struct call call;

    store_le64(participant, cluster_map_first_log(bench->map, BENCH_MDT).value);
    bench_prepare(bench, 0, OP_CROSS_PREPARE, &call);
    call.deadline_ns = deadline_ns ? deadline_ns : call.deadline_ns;
    call.request.cross_prepare = (struct cross_prepare_request){
        .coordinator = cluster_map_first_log(bench->map, bench->osts[ost].id).value,
        .term = 1,
        .number = number,
        .below_term = 1,
        .below_number = 1,
        .participants = {participant, sizeof participant},
        .halves = {(const uint8_t *)half, sizeof *half + half->name_bytes}};
    return bench_run(bench, &call);
}

static int half_prepare(struct meta_bench *bench, uint32_t ost, uint64_t number,
                        const struct half *half) {
    return half_prepare_until(bench, ost, number, half, 0);
}

/* A directory is to be made. */
static int make_prepare(struct meta_bench *bench, uint32_t ost, uint64_t number) {
    const struct half half = half_of_make(number);

    return half_prepare(bench, ost, number, &half);
}

static void half_abort(struct meta_bench *bench, uint32_t ost, uint64_t number) {
    struct call call;

    bench_prepare(bench, 0, OP_CROSS_ABORT, &call);
    call.request.cross_abort = (struct cross_abort_request){
        .coordinator = cluster_map_first_log(bench->map, bench->osts[ost].id).value,
        .term = 1,
        .number = number,
        .below_term = 1,
        .below_number = 1};
    assert_int_equal(bench_run(bench, &call), 0);
}

/* Its abort may have passed it, where it has waited for room: nothing would end it. */
static void test_a_prepare_that_was_given_up_promises_nothing(void **state) {
    const struct bench_options options = {.seed = 66};
    struct meta_bench *bench = bench_new(&options);
    const struct half half = half_of_make(1);

    (void)state;
    assert_int_equal(half_prepare_until(bench, 0, 1, &half, 1), -ERR_TIMED_OUT);
    assert_int_equal(bench->group->promises.count, 0);
    assert_int_equal(make_prepare(bench, 0, 2), 0);
    assert_int_equal(bench->group->promises.count, 1);
    bench_free(bench);
}

/* A create from before a start, which memory has lost, meets a promise about its file: it goes on
 * with the end of that, and needs no row for it. */
static void test_an_open_from_before_a_start_waits_for_a_promise(void **state) {
    const struct bench_options options = {.seed = 64};
    struct meta_bench *bench = bench_new(&options);
    struct call made, again;

    (void)state;
    for (uint32_t i = 0; i < BENCH_OSTS; i++) {
        bench->osts[i].is_dead = true; /* Nobody tells how the promise has ended. */
    }
    bench_prepare(bench, 0, OP_CREATE, &made);
    made.request.create = (struct create_request){.parent = INO_ROOT,
                                                  .name = {(const uint8_t *)"file", 4},
                                                  .mode = 0644,
                                                  .open_flags = OPEN_WRITE};
    again = made;
    assert_int_equal(bench_run(bench, &made), 0);
    const struct attributes *file = &made.reply.create.attributes;
    const struct half half = {.format = META_FORMAT,
                              .kind = HALF_UNLINK,
                              .mode = file->mode,
                              .ino = file->ino.value,
                              .from = 1};
    assert_int_equal(half_prepare(bench, 0, 1, &half), 0);
    bench_restart(bench, false);
    bench_attach(bench, 0);
    again.header.term = bench->sessions[0].term;
    bench_post(bench, &again);
    bench_advance(bench, 2 * NS_PER_S);
    assert_false(bench_is_answered(&again));
    uint64_t restarts = totals_of(bench).restarts;
    bench_advance(bench, 2 * NS_PER_S);
    assert_int_equal(totals_of(bench).restarts, restarts); /* Nothing that comes helps it. */
    half_abort(bench, 0, 1);
    bench_turn(bench);
    assert_true(bench_is_answered(&again));
    assert_int_equal(again.result, 0);
    uint64_t stop_ns = env_now_ns(memory_env_env(bench->world));
    assert_int_equal(bench_stop(bench), 0); /* The question how it has ended, still out, goes. */
    assert_true(env_now_ns(memory_env_env(bench->world)) - stop_ns < NS_PER_S / 2);
    bench_free(bench);
}

/* A coordinator that is away does not end what it has begun: it has a quarter of the places, and
 * others have theirs; so it is behind a start. */
static void test_promises_of_one_leave_room(void **state) {
    const struct bench_options options = {.seed = 63};
    struct meta_bench *bench = bench_new(&options);

    (void)state;
    for (uint32_t i = 0; i < BENCH_OSTS; i++) {
        bench->osts[i].is_dead = true; /* Nobody is told that all is aborted. */
    }
    for (uint64_t number = 1; number <= PROMISES_OF_ONE_MAX; number++) {
        assert_int_equal(make_prepare(bench, 0, number), 0);
    }
    for (int start = 0; start < 2; start++) {
        assert_int_equal(make_prepare(bench, 0, PROMISES_OF_ONE_MAX + 1), -ERR_CHANGED);
        assert_int_equal(totals_of(bench).promises_refused, 1);
        assert_int_equal(make_prepare(bench, 1, 1 + (uint64_t)start), 0);
        assert_int_equal(totals_of(bench).promises_refused, 1);
        bench_restart(bench, true);
    }
    bench_free(bench);
}

/* One of the groups has no room for what it is to promise: so the caller is told, and all that the
 * others have promised is given up. */
static void test_participant_is_full(void **state) {
    struct there other, third;
    struct meta_bench *bench = bench_of_three(&other, &third);
    struct call call;

    (void)state;
    other.prepare_result = -ERR_NO_SPACE;
    link_prepare(bench, 0, &other, "x", &call);
    assert_int_equal(bench_run(bench, &call), -ERR_NO_SPACE);
    assert_int_equal(other.prepares, 1);
    other.prepare_result = 0;
    link_prepare(bench, 0, &other, "x", &call);
    assert_int_equal(bench_run(bench, &call), 0); /* Nothing of it was left. */
    bench_free(bench);
}

enum { STALLED = 2000, FILE_NUMBER = 1, OTHER_NUMBER = 2 };

static struct ino file_make(struct meta_bench *bench) {
    struct call call;

    bench_prepare(bench, 0, OP_CREATE, &call);
    call.request.create = (struct create_request){.parent = INO_ROOT,
                                                  .name = {(const uint8_t *)"file", 4},
                                                  .mode = 0644,
                                                  .open_flags = OPEN_WRITE};
    assert_int_equal(bench_run(bench, &call), 0);
    return call.reply.create.attributes.ino;
}

/* It is promised that the file's name goes. */
static void unlink_prepare(struct meta_bench *bench, struct ino ino, uint64_t number) {
    const struct half half = {
        .format = META_FORMAT, .kind = HALF_UNLINK, .mode = 0100644, .ino = ino.value, .from = 1};

    assert_int_equal(half_prepare(bench, 0, number, &half), 0);
}

/* All sessions change the file, which waits. */
static struct call *changes_stall(struct meta_bench *bench, struct ino ino) {
    struct call *calls = calloc(STALLED, sizeof *calls);

    assert_non_null(calls);
    for (uint32_t i = 0; i < STALLED; i++) {
        bench_prepare(bench, i % BENCH_SESSIONS, OP_SETATTR, &calls[i]);
        calls[i].header.floor = 1;
        calls[i].request.setattr.ino = ino;
        calls[i].request.setattr.valid = SETATTR_MODE;
        calls[i].request.setattr.mode = 0600;
        bench_post(bench, &calls[i]);
        bench_turn(bench);
    }
    assert_int_equal(bench->group->parking.count, STALLED);
    return calls;
}

/* Each of very many mutations that wait runs again when anything of the group's own ends; neither
 * that, nor one that comes, looks through the others for a copy of it. A copy that does come goes
 * on instead of the first one. */
static void test_many_that_wait_are_not_searched(void **state) {
    const struct bench_options options = {.seed = 65};
    struct meta_bench *bench = bench_new(&options);
    struct group *group = bench->group;
    struct ino ino = file_make(bench);
    struct call copy;

    (void)state;
    for (uint32_t i = 0; i < BENCH_OSTS; i++) {
        bench->osts[i].is_dead = true; /* Nobody tells how a promise has ended. */
    }
    unlink_prepare(bench, ino, FILE_NUMBER);
    assert_int_equal(make_prepare(bench, 0, OTHER_NUMBER), 0);
    struct call *calls = changes_stall(bench, ino);
    assert_true(group->parking.looks <= 2 * STALLED);

    uint64_t restarts = group->counters.totals.restarts;
    half_abort(bench, 0, OTHER_NUMBER);
    assert_true(group->counters.totals.restarts >= restarts + STALLED);
    assert_true(group->parking.looks <= 4 * STALLED);

    copy = calls[STALLED / 2];
    bench_post(bench, &copy);
    bench_turn(bench);
    assert_true(bench_is_answered(&calls[STALLED / 2]));
    assert_int_equal(calls[STALLED / 2].result, CALL_DISCARDED);
    assert_false(bench_is_answered(&copy));
    assert_int_equal(group->parking.count, STALLED);

    half_abort(bench, 0, FILE_NUMBER);
    assert_int_equal(bench_finish(bench, &calls[0]), 0);
    for (uint32_t i = 0; i < STALLED; i++) { /* Of some the answer is that there is no window. */
        (void)bench_finish(bench, i == STALLED / 2 ? &copy : &calls[i]);
    }
    assert_int_equal(group->parking.count, 0);
    free(calls);
    bench_free(bench);
}

enum { WITHIN = 1000, USES = 100 };

/* A name in the root, of an inode elsewhere, is promised. */
static void name_prepare(struct meta_bench *bench, uint16_t number) {
    uint8_t bytes[sizeof(struct half) + sizeof number];
    struct half *half = (void *)bytes;
    struct bytes name = {half->name, sizeof number};

    *half = (struct half){.format = META_FORMAT,
                          .kind = HALF_NAME,
                          .type = 0100644 >> 12,
                          .mode = 040755,
                          .name_bytes = sizeof number,
                          .ino = INO_ROOT.value,
                          .to = ino_make((struct slot){SLOTS}, number).value};
    half->name[0] = (uint8_t)(1 + number % 46);
    half->name[1] = (uint8_t)(128 + number / 46);
    half->from_index = name_index(&bench->group->hash, name);
    assert_int_equal(half_prepare(bench, 0, number, half), 0);
}

/* Names that are promised in a directory cost nothing to who uses the directory. */
static void test_names_within_are_not_searched(void **state) {
    const struct bench_options options = {.seed = 66};
    struct meta_bench *bench = bench_new(&options);
    uint64_t looks;

    (void)state;
    for (uint32_t i = 0; i < BENCH_OSTS; i++) {
        bench->osts[i].is_dead = true;
    }
    for (uint16_t number = 1; number <= WITHIN; number++) {
        name_prepare(bench, number);
    }
    assert_int_equal(bench->group->stakes.count, 2 * WITHIN);
    looks = bench->group->stakes.looks;
    for (uint32_t i = 0; i < USES; i++) {
        struct call call;

        bench_prepare(bench, 1, OP_GETATTR, &call);
        call.request.getattr.ino = INO_ROOT;
        assert_int_equal(bench_run(bench, &call), 0);
    }
    assert_true(bench->group->stakes.looks - looks < WITHIN);
    bench_free(bench);
}

/* A transaction that finds no memory for itself goes on when there is some, though none ends that
 * could tell it. That there was none is made by a table without places, which then has them. */
static void test_no_memory_for_a_transaction(void **state) {
    const struct bench_options options = {.seed = 67, .slot_count = SLOTS, .crossings_max = PLACES};
    struct meta_bench *bench = bench_new(&options);
    struct group *group = bench->group;
    struct there there;
    struct call call;

    (void)state;
    there_begin(&there, bench, BENCH_OTHER_LOG, SLOTS);
    group->options.crossings_max = 0;
    link_prepare(bench, 0, &there, "x", &call);
    bench_post(bench, &call);
    bench_advance(bench, NS_PER_S);
    assert_false(bench_is_answered(&call));
    assert_true(group->crossings.short_of);
    group->options.crossings_max = PLACES;
    assert_int_equal(bench_finish(bench, &call), 0);
    bench_free(bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_participant_is_full),
        cmocka_unit_test(test_only_a_link_asks_for_the_size),
        cmocka_unit_test(test_looks_leave_room),
        cmocka_unit_test(test_a_prepare_that_was_given_up_promises_nothing),
        cmocka_unit_test(test_prepares_leave_room),
        cmocka_unit_test(test_commits_leave_room),
        cmocka_unit_test(test_commits_leave_room_behind_a_start),
        cmocka_unit_test(test_stretches_of_a_way),
        cmocka_unit_test(test_all_places_are_taken),
        cmocka_unit_test(test_promises_of_one_leave_room),
        cmocka_unit_test(test_an_open_from_before_a_start_waits_for_a_promise),
        cmocka_unit_test(test_many_that_wait_are_not_searched),
        cmocka_unit_test(test_names_within_are_not_searched),
        cmocka_unit_test(test_no_memory_for_a_transaction),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
