/* Moves of directories that lose against others again and again get a turn. */
#include "unit.h"
#include "base/endian.h"
#include "meta/group_internal.h"
#include "meta/half_format.h"
#include "meta/look.h"
#include "meta/turns.h"
#include "half_of_make.h"
#include "meta_bench.h"

enum { SLOTS = 32768, LOST_MANY = 200, TERM = 1, COMMITS_MAX = 2 };
#define WHILE_NS (300 * NS_PER_MS)

static struct ino directory_make(struct meta_bench *bench, struct ino parent, const char *name) {
    struct call call;

    bench_prepare(bench, 0, OP_MKDIR, &call);
    call.request.mkdir.parent = parent;
    call.request.mkdir.name = (struct bytes){(const uint8_t *)name, 1};
    call.request.mkdir.mode = 0755;
    assert_int_equal(bench_run(bench, &call), 0);
    return call.reply.mkdir.attributes.ino;
}

static void rename_post(struct meta_bench *bench, struct ino from, struct ino to,
                        struct call *call) {
    bench_prepare(bench, 0, OP_RENAME, call);
    call->request.rename.parent = from;
    call->request.rename.name = (struct bytes){(const uint8_t *)"x", 1};
    call->request.rename.new_parent = to;
    call->request.rename.new_name = (struct bytes){(const uint8_t *)"x", 1};
    bench_post(bench, call);
}

static struct group_totals totals_of(struct meta_bench *bench) {
    struct group_stats stats;

    bench_stats(bench, &stats);
    return stats.totals;
}

/* The group that has slot 0: its own moves, and other coordinators, which the storage targets' logs
 * stand for. */
struct here {
    struct meta_bench *bench;
    struct ino from, to; /* of its own next move */
    uint64_t number;     /* of the last transaction */
    struct call commits[COMMITS_MAX];
    uint32_t commit_count;
};

static uint64_t log_of(const struct here *here, uint32_t coordinator) {
    return cluster_map_first_log(here->bench->map, here->bench->osts[coordinator].id).value;
}

static void here_begin(struct here *here) {
    const struct bench_options options = {.seed = 51, .slot_count = SLOTS};

    *here = (struct here){.bench = bench_new(&options)};
    here->from = directory_make(here->bench, INO_ROOT, "a");
    here->to = directory_make(here->bench, INO_ROOT, "b");
    (void)directory_make(here->bench, here->from, "x");
}

static void own_move_post(struct here *here, struct call *call) {
    struct ino to = here->to;

    rename_post(here->bench, here->from, here->to, call);
    here->to = here->from;
    here->from = to;
}

static void own_move(struct here *here) {
    struct call call;

    own_move_post(here, &call);
    assert_int_equal(bench_finish(here->bench, &call), 0);
}

/* The count of moves; *ret_left_ns: how long it has to wait. */
static uint64_t look(struct here *here, uint32_t coordinator, uint64_t turn,
                     uint64_t *ret_left_ns) {
    struct call call;
    struct look_answer answer;

    bench_prepare(here->bench, 0, OP_CROSS_LOOK, &call);
    call.request.cross_look = (struct cross_look_request){.ino = INO_ROOT,
                                                          .what = LOOK_COUNT,
                                                          .coordinator = log_of(here, coordinator),
                                                          .term = TERM,
                                                          .turn = turn};
    assert_int_equal(bench_run(here->bench, &call), 0);
    *ret_left_ns = call.reply.cross_look.turn_left_ns;
    memcpy(&answer, here->bench->bulk, sizeof answer);
    return answer.count;
}

static uint64_t left_of(struct here *here, uint32_t coordinator, uint64_t turn) {
    uint64_t left_ns;

    (void)look(here, coordinator, turn, &left_ns);
    return left_ns;
}

static int prepare(struct here *here, uint32_t coordinator, uint64_t moves, uint64_t turn) {
    const struct half half = {.format = META_FORMAT, .kind = HALF_COUNT, .from = moves};
    uint8_t participant[8];
    struct call call;

    store_le64(participant, cluster_map_first_log(here->bench->map, BENCH_MDT).value);
    bench_prepare(here->bench, 0, OP_CROSS_PREPARE, &call);
    here->bench->unended = ++here->number; /* That is what its coordinator is asked about. */
    call.request.cross_prepare =
        (struct cross_prepare_request){.coordinator = log_of(here, coordinator),
                                       .term = TERM,
                                       .number = here->number,
                                       .below_term = TERM,
                                       .below_number = here->number,
                                       .participants = {participant, sizeof participant},
                                       .halves = {(const uint8_t *)&half, sizeof half},
                                       .turn = turn};
    return bench_run(here->bench, &call);
}

/* Done, not yet answered: that comes with the next sync point. */
static void commit(struct here *here, uint32_t coordinator) {
    struct call *call = &here->commits[here->commit_count++];

    assert_true(here->commit_count <= COMMITS_MAX);
    bench_prepare(here->bench, 0, OP_CROSS_COMMIT, call);
    call->request.cross_commit =
        (struct cross_commit_request){.coordinator = log_of(here, coordinator),
                                      .term = TERM,
                                      .number = here->number,
                                      .below_term = TERM,
                                      .below_number = here->number};
    bench_post(here->bench, call);
    while (totals_of(here->bench).promises_kept < here->commit_count) {
        bench_turn(here->bench);
    }
}

static void here_end(struct here *here) {
    for (uint32_t i = 0; i < here->commit_count; i++) {
        assert_int_equal(bench_finish(here->bench, &here->commits[i]), 0);
    }
    bench_free(here->bench);
}

static void give_back(struct here *here, uint32_t coordinator, uint64_t turn) {
    struct call call;

    bench_prepare(here->bench, 0, OP_CROSS_ABORT, &call);
    call.request.cross_abort = (struct cross_abort_request){
        .coordinator = log_of(here, coordinator), .term = TERM, .turn = turn};
    assert_int_equal(bench_run(here->bench, &call), 0);
}

/* Who needs longer than others between two moves loses each time, and with a turn does not. */
static void test_who_always_loses_gets_a_turn(void **state) {
    struct here here;
    struct call call;
    uint64_t left_ns;

    (void)state;
    here_begin(&here);
    for (int i = 0; i < LOST_MANY; i++) {
        uint64_t moves = look(&here, 0, 0, &left_ns);

        assert_int_equal(left_ns, 0);
        own_move(&here);
        assert_int_equal(prepare(&here, 0, moves, 0), -ERR_CHANGED);
    }
    uint64_t moves = look(&here, 0, 1, &left_ns);
    assert_int_equal(left_ns, 0);
    own_move_post(&here, &call);
    bench_advance(here.bench, WHILE_NS);
    assert_false(bench_is_answered(&call));
    assert_in_range(left_of(&here, 1, 0), 1, TURN_NS - WHILE_NS);
    assert_in_range(left_of(&here, 1, 1), 1, TURN_NS - WHILE_NS);
    assert_int_equal(prepare(&here, 1, moves, 1), -ERR_CHANGED);
    assert_int_equal(prepare(&here, 1, moves, 0), -ERR_CHANGED);
    assert_int_equal(prepare(&here, 0, moves, 0), -ERR_CHANGED); /* another move of its */
    assert_int_equal(prepare(&here, 0, moves, 1), 0);
    commit(&here, 0);
    assert_int_equal(bench_finish(here.bench, &call), 0);
    assert_int_equal(look(&here, 1, 0, &left_ns), moves + 2);
    assert_int_equal(left_ns, 0);
    assert_int_equal(totals_of(here.bench).turns_asked, 2);
    assert_int_equal(totals_of(here.bench).turns_given, 1);
    assert_int_equal(totals_of(here.bench).turns_run_out, 0);
    here_end(&here);
}

/* Who has stopped to ask is not in the line any more, also where nobody else asks. */
static void test_the_line_forgets_who_is_silent(void **state) {
    struct here here;
    uint64_t left_ns;

    (void)state;
    here_begin(&here);
    const struct turns *turns = &here.bench->group->turns;
    (void)look(&here, 0, 1, &left_ns);
    assert_int_equal(left_ns, 0);
    assert_in_range(left_of(&here, 1, 1), 1, TURN_NS);
    assert_int_equal(turns->line_count, 1);
    bench_advance(here.bench, TURN_ASKS_NS / 2);
    assert_int_equal(turns->line_count, 1);
    bench_advance(here.bench, TURN_ASKS_NS);
    assert_int_equal(turns->line_count, 0);
    assert_int_equal(turns->holder.number, 0);
    here_end(&here);
}

/* With its coordinator gone it ends by the clock, and with its group at once. */
static void test_a_turn_ends(void **state) {
    struct here here;
    struct call call;
    uint64_t left_ns;

    (void)state;
    here_begin(&here);
    assert_int_equal(left_of(&here, 0, 1), 0);
    own_move_post(&here, &call);
    bench_advance(here.bench, TURN_NS + WHILE_NS);
    assert_true(bench_is_answered(&call));
    assert_int_equal(call.result, 0);
    assert_int_equal(totals_of(here.bench).turns_run_out, 1);
    assert_int_equal(left_of(&here, 0, 1), 0); /* It may have another one. */
    give_back(&here, 0, 1);
    assert_int_equal(totals_of(here.bench).turns_run_out, 1);
    own_move(&here);
    assert_int_equal(left_of(&here, 0, 2), 0);
    bench_restart(here.bench, false);
    bench_attach(here.bench, 0);
    uint64_t moves = look(&here, 1, 0, &left_ns);
    assert_int_equal(left_ns, 0);
    assert_int_equal(prepare(&here, 1, moves, 0), 0);
    commit(&here, 1);
    assert_int_equal(prepare(&here, 0, moves + 1, 2), 0); /* of a turn that is forgotten */
    commit(&here, 0);
    here_end(&here);
}

/* Turns follow one another in the order in which they were asked for, but for who does not come. */
static void test_turns_have_an_order(void **state) {
    struct here here;
    uint64_t left_ns;

    (void)state;
    here_begin(&here);
    uint64_t moves = look(&here, 0, 1, &left_ns);
    for (uint64_t turn = 2; turn <= 4; turn++) {
        assert_true(left_of(&here, 0, turn) > 0);
    }
    assert_int_equal(prepare(&here, 0, moves, 1), 0);
    commit(&here, 0);
    assert_true(left_of(&here, 0, 4) > 0);
    assert_int_equal(left_of(&here, 0, 0), 0);
    assert_int_equal(left_of(&here, 0, 2), 0);
    give_back(&here, 0, 2);
    give_back(&here, 0, 3); /* It waits no more. */
    assert_int_equal(left_of(&here, 0, 4), 0);
    assert_true(left_of(&here, 0, 5) > 0);
    assert_true(left_of(&here, 0, 6) > 0);
    give_back(&here, 0, 4);
    for (uint64_t waited_ns = 0; left_of(&here, 0, 6) > 0; waited_ns += WHILE_NS) {
        assert_true(waited_ns <= TURN_ASKS_NS);
        bench_advance(here.bench, WHILE_NS);
    }
    here_end(&here);
}

/* A move that is on its way is waited for, with a place in the line. */
static void test_a_turn_waits_for_what_is_promised(void **state) {
    struct here here;
    struct call call;
    uint64_t left_ns;

    (void)state;
    here_begin(&here);
    uint64_t moves = look(&here, 0, 0, &left_ns);
    assert_int_equal(prepare(&here, 0, moves, 0), 0);
    bench_prepare(here.bench, 0, OP_CROSS_LOOK, &call);
    call.request.cross_look = (struct cross_look_request){.ino = INO_ROOT,
                                                          .what = LOOK_COUNT,
                                                          .coordinator = log_of(&here, 1),
                                                          .term = TERM,
                                                          .turn = 1};
    assert_int_equal(bench_run(here.bench, &call), -ERR_CHANGED);
    assert_int_equal(totals_of(here.bench).turns_given, 0);
    commit(&here, 0);
    assert_true(left_of(&here, 0, 1) > 0); /* behind the other one */
    assert_int_equal(look(&here, 1, 1, &left_ns), moves + 1);
    assert_int_equal(left_ns, 0);
    here_end(&here);
}

/* A group without slot 0: who has it is the script below. */
struct there {
    struct actor actor; /* first */
    struct meta_bench *bench;
    struct ino from, to;
    uint64_t moves;
    uint64_t told;     /* looks that ask are told to wait so often */
    uint64_t away_at;  /* the prepare that is answered as if nobody were there; 0: none */
    uint64_t prepares; /* that came without a turn; they lose */
    uint64_t asks;     /* looks with a turn */
    uint64_t turn;     /* that was asked for last */
    uint64_t given_back;
    bool committed;
};

static int prepare_answer(struct there *there, const struct cross_prepare_request *request) {
    if (request->halves.size >= sizeof(struct half) &&
        ((const struct half *)(const void *)request->halves.data)->kind == HALF_MAKE) {
        return -ERR_CHANGED; /* Directories are made by hand. */
    }
    if (request->turn != 0) {
        assert_int_equal(request->turn, there->turn);
        return there->told == 0 ? 0 : -ERR_CHANGED;
    }
    assert_int_equal(there->asks, 0);
    there->prepares++;
    return there->prepares == there->away_at ? -ERR_TIMED_OUT : -ERR_CHANGED;
}

static void look_answer(struct there *there, struct call *call) {
    const struct look_answer answer = {.format = META_FORMAT, .count = ++there->moves};

    assert_int_equal(call->request.cross_look.what, LOOK_COUNT);
    if (call->request.cross_look.turn != 0) {
        there->asks++;
        there->turn = call->request.cross_look.turn;
        call->reply.cross_look.turn_left_ns = there->told > 0 ? TURN_NS / 2 : 0;
        there->told -= there->told > 0;
    }
    memcpy(call->bulk_in.data, &answer, sizeof answer);
    call->bulk_in.size = sizeof answer;
}

static int there_answer(struct there *there, struct call *call) {
    switch (call->header.opcode) {
    case OP_CROSS_LOOK:
        look_answer(there, call);
        return 0;
    case OP_CROSS_PREPARE:
        return prepare_answer(there, &call->request.cross_prepare);
    case OP_CROSS_ABORT:
        there->given_back += call->request.cross_abort.turn != 0;
        return 0;
    case OP_CROSS_COMMIT:
        there->committed = true;
        return 0;
    default:
        fail_msg("the other group got %s", wire_name(call->header.opcode));
        return 0;
    }
}

static void there_step(struct actor *actor, struct message *first) {
    struct there *there = CONTAINER_OF(actor, struct there, actor);

    while (first) {
        struct call *call = CONTAINER_OF(first, struct call, message);

        first = first->next;
        memset(&call->reply, 0, sizeof call->reply);
        call_reply(call, there_answer(there, call));
    }
}

/* A child of the root, which the group makes as others ask it to. */
static struct ino child_make(struct there *there, uint64_t number) {
    const struct half half = half_of_make(number);
    struct meta_bench *bench = there->bench;
    uint8_t participant[8];
    struct call call;

    store_le64(participant, cluster_map_first_log(bench->map, BENCH_MDT).value);
    bench_prepare(bench, 0, OP_CROSS_PREPARE, &call);
    bench->unended = number;
    call.request.cross_prepare =
        (struct cross_prepare_request){.coordinator = BENCH_OTHER_LOG.value,
                                       .term = TERM,
                                       .number = number,
                                       .below_term = TERM,
                                       .below_number = number,
                                       .participants = {participant, sizeof participant},
                                       .halves = {(const uint8_t *)&half, sizeof half}};
    assert_int_equal(bench_run(bench, &call), 0);
    struct ino made = call.reply.cross_prepare.made;
    bench_prepare(bench, 0, OP_CROSS_COMMIT, &call);
    call.request.cross_commit = (struct cross_commit_request){.coordinator = BENCH_OTHER_LOG.value,
                                                              .term = TERM,
                                                              .number = number,
                                                              .below_term = TERM,
                                                              .below_number = number};
    assert_int_equal(bench_run(bench, &call), 0);
    return made;
}

static void there_begin(struct there *there) {
    const struct bench_options options = {.seed = 52, .slot_first = SLOTS};

    *there = (struct there){.bench = bench_new(&options)};
    actor_init(&there->actor, "other group", there_step);
    assert_int_equal(log_table_add(there->bench->logs, BENCH_OTHER_LOG, &there->actor), 0);
    there->from = child_make(there, 1);
    there->to = child_make(there, 2);
    (void)directory_make(there->bench, there->from, "x");
}

/* It asks once it was refused often enough, waits while it is told to, and keeps its turn over
 * what else refuses it. */
static void test_a_move_asks(void **state) {
    struct there there;
    struct call call;

    (void)state;
    there_begin(&there);
    there.told = 3;
    rename_post(there.bench, there.from, there.to, &call);
    assert_int_equal(bench_finish(there.bench, &call), 0);
    assert_int_equal(there.prepares, MOVE_REFUSALS_MAX);
    assert_int_equal(there.asks, 4);
    assert_int_equal(there.given_back, 0);
    while (!there.committed) {
        bench_turn(there.bench);
    }
    bench_free(there.bench);
}

/* Somebody who does not answer is no reason for a turn. */
static void test_silence_counts_anew(void **state) {
    struct there there;
    struct call call;

    (void)state;
    there_begin(&there);
    there.away_at = 5;
    rename_post(there.bench, there.from, there.to, &call);
    assert_int_equal(bench_finish(there.bench, &call), 0);
    assert_int_equal(there.prepares, 5 + MOVE_REFUSALS_MAX);
    bench_free(there.bench);
}

/* A move that fails while it waits gives back what it has, or its place. */
static void test_a_failed_move_gives_its_turn_back(void **state) {
    struct there there;
    struct call move;
    struct call call;

    (void)state;
    there_begin(&there);
    there.told = UINT64_MAX;
    rename_post(there.bench, there.from, there.to, &move);
    while (there.asks < 3) {
        bench_turn(there.bench);
    }
    bench_prepare(there.bench, 1, OP_RMDIR, &call);
    call.request.rmdir.parent = there.from;
    call.request.rmdir.name = (struct bytes){(const uint8_t *)"x", 1};
    assert_int_equal(bench_run(there.bench, &call), 0);
    assert_int_equal(bench_finish(there.bench, &move), -ERR_NOT_FOUND);
    for (int i = 0; there.given_back == 0; i++) {
        assert_true(i < 1000);
        bench_turn(there.bench);
    }
    assert_int_equal(there.given_back, 1);
    bench_free(there.bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_always_loses_gets_a_turn),
        cmocka_unit_test(test_the_line_forgets_who_is_silent),
        cmocka_unit_test(test_a_turn_ends),
        cmocka_unit_test(test_turns_have_an_order),
        cmocka_unit_test(test_a_turn_waits_for_what_is_promised),
        cmocka_unit_test(test_a_move_asks),
        cmocka_unit_test(test_silence_counts_anew),
        cmocka_unit_test(test_a_failed_move_gives_its_turn_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
