/* Transactions across logs of which one is lost for good, and names of what it had. */
#include "unit.h"
#include "base/endian.h"
#include "meta/group_internal.h"
#include "meta/half_format.h"
#include "meta/look.h"
#include "meta_bench.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SLOTS = 32768,
    TERM = 1,
    HELD_MAX = 64,
    NAMES_MANY = 32,
    OTHER_TARGET = 20,
    TEXT_BYTES = 24,
};
#define THIRD_LOG ((struct log_id){77})
#define FOURTH_LOG ((struct log_id){78})
#define WHILE_NS (5 * NS_PER_S)

/* The other groups: one has half of the slots, coordinates or takes part, and gets lost; the third
 * one takes part besides, and the fourth one where a test has it. */
struct others {
    struct meta_bench *bench;
    struct cluster_map *map;
    struct actor other;
    struct actor third;
    struct actor fourth;
    bool has_fourth;
    uint8_t fate;    /* what the third one says: CROSS_ */
    uint32_t asked;  /* so often, */
    uint32_t losses; /* and last by a map with so many lost targets */
    bool holds_prepares;
    bool holds_asks;
    bool holds_looks;
    struct call *held[HELD_MAX]; /* that the other one, or the fourth one, does not answer yet */
    uint32_t held_count;
    uint64_t made;
    uint64_t name; /* of the last directory */
};

static void third_step(struct actor *actor, struct message *first) {
    struct others *it = CONTAINER_OF(actor, struct others, third);

    while (first) {
        struct call *call = CONTAINER_OF(first, struct call, message);

        first = first->next;
        assert_int_equal(call->header.opcode, OP_CROSS_FATE);
        assert_int_equal(call->request.cross_fate.coordinator, BENCH_OTHER_LOG.value);
        it->asked++;
        it->losses = call->request.cross_fate.losses;
        call->reply.cross_fate.state = it->fate;
        call_reply(call, 0);
    }
}

static void call_keep(struct others *it, struct call *call) {
    assert_true(it->held_count < HELD_MAX);
    it->held[it->held_count++] = call;
}

static void fourth_step(struct actor *actor, struct message *first) {
    struct others *it = CONTAINER_OF(actor, struct others, fourth);

    while (first) {
        struct call *call = CONTAINER_OF(first, struct call, message);

        first = first->next;
        assert_int_equal(call->header.opcode, OP_CROSS_FATE);
        call_keep(it, call);
    }
}

/* Each inode that it has is a file. */
static void look_answer(struct call *call) {
    const struct look_answer answer = {
        .format = META_FORMAT,
        .has_inode = 1,
        .inode = {.format = META_FORMAT, .mode = 0100644, .nlink = 1, .size = 70}};

    assert_int_equal(call->request.cross_look.what, LOOK_INODE);
    memcpy(call->bulk_in.data, &answer, sizeof answer);
    call->bulk_in.size = sizeof answer;
    call_reply(call, 0);
}

static bool is_held(const struct others *it, uint16_t opcode) {
    return opcode == OP_CROSS_COMMIT || (opcode == OP_CROSS_PREPARE && it->holds_prepares) ||
           (opcode == OP_CROSS_ASK && it->holds_asks) ||
           (opcode == OP_CROSS_LOOK && it->holds_looks);
}

static void other_answer(struct others *it, struct call *call) {
    bool is_prepare = call->header.opcode == OP_CROSS_PREPARE;
    bool is_ask = call->header.opcode == OP_CROSS_ASK;

    memset(&call->reply, 0, sizeof call->reply);
    if (is_held(it, call->header.opcode)) {
        call_keep(it, call);
        return;
    }
    if (call->header.opcode == OP_CROSS_LOOK) {
        look_answer(call);
        return;
    }
    if (is_prepare) {
        call->reply.cross_prepare.made = ino_make((struct slot){SLOTS}, ++it->made);
    } else if (is_ask) {
        call->reply.cross_ask.state = CROSS_UNDECIDED;
    } else {
        assert_int_equal(call->header.opcode, OP_CROSS_ABORT);
    }
    call_reply(call, 0);
}

static void other_step(struct actor *actor, struct message *first) {
    struct others *it = CONTAINER_OF(actor, struct others, other);

    while (first) {
        struct call *call = CONTAINER_OF(first, struct call, message);

        first = first->next;
        other_answer(it, call);
    }
}

/* What its caller has given up ends. */
static void held_end(struct others *it) {
    uint64_t now_ns = env_now_ns(memory_env_env(it->bench->world));

    for (uint32_t i = 0; i < it->held_count;) {
        int r = call_given_up(it->held[i], now_ns);
        struct call *call = it->held[i];

        if (r < 0) {
            it->held[i] = it->held[--it->held_count];
            call_reply(call, r);
        } else {
            i++;
        }
    }
}

/* What is held stays so. */
static void map_tell(struct others *it) {
    it->map->version++;
    assert_int_equal(group_map_set(it->bench->group, it->map), 0);
    bench_advance(it->bench, NS_PER_S);
}

static void map_give(struct others *it) {
    map_tell(it);
    held_end(it);
}

static void target_add(struct others *it, uint32_t group, struct log_id log) {
    struct target_id id = {OTHER_TARGET + group};

    it->map->targets[it->map->target_count++] = (struct map_target){
        .id = id, .node = it->map->nodes[0].id, .kind = TARGET_MDT, .state = TARGET_UP};
    it->map->groups[group] =
        (struct map_group){.id = {group + 1}, .log = log, .member_count = 1, .members = {id}};
    it->map->group_count = group + 1;
}

static void target_lose(struct others *it, struct target_id id) {
    for (uint32_t i = 0; i < it->map->target_count; i++) {
        struct map_target *target = &it->map->targets[i];

        target->state = target->id.value == id.value ? TARGET_LOST : target->state;
    }
}

static void lose(struct others *it, uint32_t group) {
    target_lose(it, (struct target_id){OTHER_TARGET + group});
}

/* The process knows, and the group's map does not say so: it cannot be kept, say. */
static void lose_unkept(struct others *it, struct log_id log) {
    rpc_log_lose(it->bench->rpc, log);
    bench_advance(it->bench, NS_PER_S);
    held_end(it);
}

static void others_begin(struct others *it) {
    const struct bench_options options = {.seed = 61, .slot_count = SLOTS};

    *it = (struct others){.bench = bench_new(&options), .map = malloc(sizeof *it->map)};
    assert_non_null(it->map);
    *it->map = *it->bench->map;
    actor_init(&it->other, "other group", other_step);
    actor_init(&it->third, "third group", third_step);
    actor_init(&it->fourth, "fourth group", fourth_step);
    assert_int_equal(log_table_add(it->bench->logs, BENCH_OTHER_LOG, &it->other), 0);
    assert_int_equal(log_table_add(it->bench->logs, THIRD_LOG, &it->third), 0);
    assert_int_equal(log_table_add(it->bench->logs, FOURTH_LOG, &it->fourth), 0);
    target_add(it, 1, BENCH_OTHER_LOG);
    target_add(it, 2, THIRD_LOG);
    target_add(it, 3, FOURTH_LOG);
    map_give(it);
}

static void others_end(struct others *it) {
    free(it->map);
    bench_free(it->bench);
}

static struct group_totals totals_of(struct others *it) {
    struct group_stats stats;

    bench_stats(it->bench, &stats);
    return stats.totals;
}

static int prepare(struct others *it, uint64_t number) {
    const struct half half = {.format = META_FORMAT, .kind = HALF_COUNT};
    uint8_t participants[24];
    struct call call;

    store_le64(participants, cluster_map_first_log(it->map, BENCH_MDT).value);
    store_le64(participants + 8, THIRD_LOG.value);
    store_le64(participants + 16, FOURTH_LOG.value);
    bench_prepare(it->bench, 0, OP_CROSS_PREPARE, &call);
    call.request.cross_prepare =
        (struct cross_prepare_request){.coordinator = BENCH_OTHER_LOG.value,
                                       .term = TERM,
                                       .number = number,
                                       .below_term = TERM,
                                       .below_number = 1,
                                       .participants = {participants, it->has_fourth ? 24 : 16},
                                       .halves = {(const uint8_t *)&half, sizeof half}};
    return bench_run(it->bench, &call);
}

static int commit(struct others *it, uint64_t number) {
    struct call call;

    bench_prepare(it->bench, 0, OP_CROSS_COMMIT, &call);
    call.request.cross_commit = (struct cross_commit_request){.coordinator = BENCH_OTHER_LOG.value,
                                                              .term = TERM,
                                                              .number = number,
                                                              .below_term = TERM,
                                                              .below_number = 1};
    return bench_run(it->bench, &call);
}

static int abort_it(struct others *it, uint64_t number) {
    struct call call;

    bench_prepare(it->bench, 0, OP_CROSS_ABORT, &call);
    call.request.cross_abort = (struct cross_abort_request){
        .coordinator = BENCH_OTHER_LOG.value, .term = TERM, .number = number};
    return bench_run(it->bench, &call);
}

/* What the group says of it to another participant, whose map names so many lost. */
static int fate_by(struct others *it, uint64_t number, uint32_t losses, uint8_t *ret_fate) {
    struct call call;

    bench_prepare(it->bench, 0, OP_CROSS_FATE, &call);
    call.request.cross_fate =
        (struct cross_fate_request){BENCH_OTHER_LOG.value, TERM, number, losses};
    int r = bench_run(it->bench, &call);
    *ret_fate = call.reply.cross_fate.state;
    return r;
}

static int fate_of(struct others *it, uint64_t number, uint8_t *ret_fate) {
    return fate_by(it, number, 1, ret_fate);
}

static uint64_t moves_of(struct others *it) {
    struct look_answer answer;
    struct call call;

    bench_prepare(it->bench, 0, OP_CROSS_LOOK, &call);
    call.request.cross_look = (struct cross_look_request){.ino = INO_ROOT, .what = LOOK_COUNT};
    assert_int_equal(bench_run(it->bench, &call), 0);
    memcpy(&answer, it->bench->bulk, sizeof answer);
    return answer.count;
}

/* Its row is on disk, so that is so behind a power loss, too. */
static void test_what_another_one_has_done_is_done(void **state) {
    struct others it;

    (void)state;
    for (int power = 0; power < 2; power++) {
        others_begin(&it);
        assert_int_equal(prepare(&it, 1), 0);
        it.fate = CROSS_COMMITTED;
        lose(&it, 1);
        if (power) {
            *it.bench->map = *it.map;
            bench_restart(it.bench, true);
            bench_attach(it.bench, 0);
        } else {
            map_give(&it);
        }
        bench_advance(it.bench, WHILE_NS);
        assert_int_equal(moves_of(&it), 1);
        assert_int_equal(totals_of(&it).promises_lost_kept, 1);
        assert_int_equal(totals_of(&it).promises_lost_gone, 0);
        uint32_t asked = it.asked;
        bench_advance(it.bench, WHILE_NS);
        assert_int_equal(it.asked, asked); /* The mark has gone. */
        others_end(&it);
    }
}

static void test_what_none_has_done_is_given_up(void **state) {
    struct others it;
    uint8_t fate;

    (void)state;
    others_begin(&it);
    assert_int_equal(prepare(&it, 1), 0);
    it.fate = CROSS_UNDECIDED;
    lose(&it, 1);
    map_give(&it);
    bench_advance(it.bench, WHILE_NS);
    assert_true(it.asked > 0);
    assert_int_equal(moves_of(&it), 0);
    assert_int_equal(totals_of(&it).promises_lost_gone, 1);
    assert_int_equal(totals_of(&it).promises_lost_kept, 0);
    assert_int_equal(fate_of(&it, 1, &fate), 0);
    assert_int_equal(fate, CROSS_ABORTED);
    assert_int_equal(commit(&it, 1), -ERR_TARGET_LOST); /* late */
    assert_int_equal(prepare(&it, 2), -ERR_TARGET_LOST);
    assert_int_equal(abort_it(&it, 2), -ERR_TARGET_LOST);
    assert_int_equal(moves_of(&it), 0);
    others_end(&it);
}

/* One that is lost as well is not waited for. */
static void test_nobody_else_is_left(void **state) {
    struct others it;

    (void)state;
    others_begin(&it);
    assert_int_equal(prepare(&it, 1), 0);
    lose(&it, 1);
    lose(&it, 2);
    map_give(&it);
    bench_advance(it.bench, WHILE_NS);
    assert_int_equal(it.asked, 0);
    assert_int_equal(moves_of(&it), 0);
    assert_int_equal(totals_of(&it).promises_lost_gone, 1);
    others_end(&it);
}

/* Who is asked knows of the loss before he answers; and his mark stays while another one needs it.
 */
static void test_who_is_asked(void **state) {
    struct others it;
    uint8_t fate;

    (void)state;
    others_begin(&it);
    it.fate = CROSS_UNDECIDED;
    assert_int_equal(prepare(&it, 1), 0);
    assert_int_equal(commit(&it, 1), 0);
    assert_int_equal(fate_of(&it, 1, &fate), -ERR_BUSY);
    lose(&it, 1);
    map_give(&it);
    assert_int_equal(fate_by(&it, 1, 2, &fate), -ERR_BUSY);
    for (int i = 0; i < 2; i++) {
        bench_advance(it.bench, WHILE_NS);
        assert_true(it.asked > 0);
        assert_int_equal(fate_of(&it, 1, &fate), 0);
        assert_int_equal(fate, CROSS_COMMITTED);
        *it.bench->map = *it.map;
        bench_restart(it.bench, i == 1);
        bench_attach(it.bench, 0);
        it.asked = 0;
    }
    it.fate = CROSS_COMMITTED;
    bench_advance(it.bench, WHILE_NS);
    assert_int_equal(fate_of(&it, 1, &fate), 0);
    assert_int_equal(fate, CROSS_ABORTED);
    assert_int_equal(moves_of(&it), 1);
    others_end(&it);
}

/* That its mark is gone is on disk before it is told: else who asks would forget what it has done,
 * and power would bring back here what was promised. */
static void test_a_mark_that_is_told_gone_is_gone(void **state) {
    struct others it;
    uint8_t fate;

    (void)state;
    others_begin(&it);
    it.fate = CROSS_UNDECIDED;
    assert_int_equal(prepare(&it, 1), 0);
    assert_int_equal(commit(&it, 1), 0);
    lose(&it, 1);
    map_give(&it);
    bench_advance(it.bench, WHILE_NS);
    it.fate = CROSS_COMMITTED;
    for (uint32_t asked = it.asked; it.asked == asked;) {
        bench_turn(it.bench);
    }
    do {
        assert_int_equal(fate_of(&it, 1, &fate), 0);
    } while (fate == CROSS_COMMITTED);
    assert_int_equal(fate, CROSS_ABORTED);
    *it.bench->map = *it.map;
    bench_restart(it.bench, true);
    bench_attach(it.bench, 0);
    assert_int_equal(fate_of(&it, 1, &fate), 0);
    assert_int_equal(fate, CROSS_ABORTED);
    assert_int_equal(moves_of(&it), 1);
    others_end(&it);
}

/* With a fourth participant; the coordinator is lost, and of those asked nobody has done it. */
static void four_begin(struct others *it) {
    others_begin(it);
    it->has_fourth = true;
    it->fate = CROSS_UNDECIDED;
    assert_int_equal(prepare(it, 1), 0);
    lose(it, 1);
    map_give(it);
}

/* The third one has said that it has not done it; then it hears from the fourth one, which has, and
 * gets lost before it is asked here: the third one is asked again, by the newer map. */
static void test_another_one_is_lost_meanwhile(void **state) {
    struct others it;

    (void)state;
    four_begin(&it);
    bench_advance(it.bench, WHILE_NS);
    assert_int_equal(it.asked, 1);
    assert_int_equal(it.losses, 1);
    assert_int_equal(it.held_count, 1);
    it.fate = CROSS_COMMITTED;
    lose(&it, 3);
    map_give(&it);
    bench_advance(it.bench, WHILE_NS);
    assert_true(it.asked > 1);
    assert_int_equal(it.losses, 2);
    assert_int_equal(totals_of(&it).promises_lost_kept, 1);
    assert_int_equal(totals_of(&it).promises_lost_gone, 0);
    assert_int_equal(moves_of(&it), 1);
    others_end(&it);
}

/* What the fourth one says after it is lost is not taken: the third one would not hear it. */
static void test_who_is_lost_says_nothing(void **state) {
    struct others it;

    (void)state;
    four_begin(&it);
    bench_advance(it.bench, WHILE_NS);
    assert_int_equal(it.held_count, 1);
    lose(&it, 3);
    map_tell(&it);
    it.held[0]->reply.cross_fate.state = CROSS_COMMITTED;
    call_reply(it.held[--it.held_count], 0);
    bench_advance(it.bench, WHILE_NS);
    assert_int_equal(it.asked, 2);
    assert_int_equal(totals_of(&it).promises_lost_kept, 0);
    assert_int_equal(totals_of(&it).promises_lost_gone, 1);
    assert_int_equal(moves_of(&it), 0);
    others_end(&it);
}

/* Nor is what only a newer version knows how to say: it is asked again. */
static void test_an_answer_that_is_not_known_is_none(void **state) {
    static const uint8_t fates[] = {0, CROSS_ABORTED + 1, UINT8_MAX};
    struct others it;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(fates); i++) {
        others_begin(&it);
        assert_int_equal(prepare(&it, 1), 0);
        it.fate = fates[i];
        lose(&it, 1);
        map_give(&it);
        bench_advance(it.bench, WHILE_NS);
        assert_in_range(it.asked, 2, WHILE_NS / NS_PER_S + 2); /* once a second */
        assert_int_equal(totals_of(&it).promises_lost_gone, 0);
        it.fate = CROSS_COMMITTED;
        bench_advance(it.bench, WHILE_NS);
        assert_int_equal(totals_of(&it).promises_lost_kept, 1);
        assert_int_equal(moves_of(&it), 1);
        others_end(&it);
    }
}

/* Likewise of the coordinator: it may know nothing of it by now because it was put back from a
 * copy. */
static void test_a_lost_coordinator_says_nothing(void **state) {
    struct others it;

    (void)state;
    others_begin(&it);
    it.holds_asks = true;
    assert_int_equal(prepare(&it, 1), 0);
    bench_advance(it.bench, 2 * WHILE_NS);
    assert_int_equal(it.held_count, 1);
    it.fate = CROSS_COMMITTED;
    lose(&it, 1);
    map_tell(&it);
    it.held[0]->reply.cross_ask.state = CROSS_ABORTED;
    call_reply(it.held[--it.held_count], 0);
    bench_advance(it.bench, WHILE_NS);
    assert_int_equal(totals_of(&it).promises_lost_kept, 1);
    assert_int_equal(moves_of(&it), 1);
    others_end(&it);
}

/* It has heard that it is done elsewhere, and has no room yet: it would do it behind its answer. */
static void test_who_is_about_to_do_it_says_nothing(void **state) {
    const struct cross_id id = {BENCH_OTHER_LOG.value, TERM, 1};
    struct others it;
    uint8_t fate;

    (void)state;
    four_begin(&it);
    while (it.held_count == 0) {
        bench_turn(it.bench);
    }
    struct promise *promise = promise_find(&it.bench->group->promises, &id);
    assert_non_null(promise);
    assert_int_equal(fate_of(&it, 1, &fate), 0);
    assert_int_equal(fate, CROSS_UNDECIDED);
    promise->to_be_kept = true;
    assert_int_equal(fate_of(&it, 1, &fate), -ERR_BUSY);
    promise->to_be_kept = false;
    it.held[0]->reply.cross_fate.state = CROSS_ABORTED;
    call_reply(it.held[--it.held_count], 0);
    bench_advance(it.bench, WHILE_NS);
    assert_int_equal(totals_of(&it).promises_lost_gone, 1);
    others_end(&it);
}

static void mkdir_post(struct others *it, char name[TEXT_BYTES], struct call *call) {
    (void)snprintf(name, TEXT_BYTES, "d%" PRIu64, ++it->name);
    bench_prepare(it->bench, 0, OP_MKDIR, call);
    call->request.mkdir.parent = INO_ROOT;
    call->request.mkdir.name = (struct bytes){(const uint8_t *)name, strlen(name)};
    call->request.mkdir.mode = 0755;
    bench_post(it->bench, call);
}

static bool is_here(struct ino ino) {
    return ino_slot(ino).value < SLOTS;
}

static int name_call(struct others *it, uint16_t opcode, const char *name) {
    struct bytes bytes = {(const uint8_t *)name, strlen(name)};
    struct call call;

    bench_prepare(it->bench, 0, opcode, &call);
    switch (opcode) {
    case OP_LOOKUP:
        call.request.lookup = (struct lookup_request){.parent = INO_ROOT, .name = bytes};
        break;
    case OP_UNLINK:
        call.request.unlink = (struct unlink_request){.parent = INO_ROOT, .name = bytes};
        break;
    case OP_RMDIR:
        call.request.rmdir = (struct rmdir_request){.parent = INO_ROOT, .name = bytes};
        break;
    default:
        call.request.rename = (struct rename_request){.parent = INO_ROOT,
                                                      .name = bytes,
                                                      .new_parent = INO_ROOT,
                                                      .new_name = {(const uint8_t *)"new", 3}};
    }
    return bench_run(it->bench, &call);
}

/* A directory that the other group has; its commit is not answered. */
static void made_elsewhere(struct others *it, char name[TEXT_BYTES]) {
    struct call call;

    do {
        mkdir_post(it, name, &call);
        assert_int_equal(bench_finish(it->bench, &call), 0);
    } while (is_here(call.reply.mkdir.attributes.ino));
    while (it->held_count == 0) {
        bench_turn(it->bench);
    }
}

/* It counts as one that knows the decision, and no directory goes there any more, nor one that was
 * on its way. */
static void test_a_participant_is_lost(void **state) {
    struct others it;
    char name[TEXT_BYTES];
    struct call call;

    (void)state;
    others_begin(&it);
    made_elsewhere(&it, name);
    assert_int_equal(totals_of(&it).shares_lost, 0);
    it.holds_prepares = true;
    for (uint32_t held = it.held_count; it.held_count == held;) {
        mkdir_post(&it, name, &call);
        while (!bench_is_answered(&call) && it.held_count == held) {
            bench_turn(it.bench);
        }
    }
    lose(&it, 1);
    map_give(&it);
    assert_int_equal(bench_finish(it.bench, &call), 0);
    assert_true(is_here(call.reply.mkdir.attributes.ino));
    assert_int_equal(it.held_count, 0);
    bench_advance(it.bench, WHILE_NS);
    assert_int_equal(totals_of(&it).shares_lost, 1);
    for (int i = 0; i < NAMES_MANY; i++) {
        mkdir_post(&it, name, &call);
        assert_int_equal(bench_finish(it.bench, &call), 0);
        assert_true(is_here(call.reply.mkdir.attributes.ino));
    }
    bench_restart(it.bench, true);
    bench_advance(it.bench, WHILE_NS);
    assert_int_equal(totals_of(&it).decisions_found, 0);
    others_end(&it);
}

static void mkdir_is_here(struct others *it) {
    char name[TEXT_BYTES];
    struct call call;

    mkdir_post(it, name, &call);
    assert_int_equal(bench_finish(it->bench, &call), 0);
    assert_true(is_here(call.reply.mkdir.attributes.ino));
}

/* Likewise where the group has no map that says so. A name there goes only by the map: what an
 * older one says is the lost target's may be another's by now. */
static void test_a_participant_is_lost_by_no_map(void **state) {
    struct others it;
    char name[TEXT_BYTES];
    char other[TEXT_BYTES];
    struct call call;

    (void)state;
    others_begin(&it);
    made_elsewhere(&it, name);
    it.holds_prepares = true;
    for (uint32_t held = it.held_count; it.held_count == held;) {
        mkdir_post(&it, other, &call);
        while (!bench_is_answered(&call) && it.held_count == held) {
            bench_turn(it.bench);
        }
    }
    lose_unkept(&it, BENCH_OTHER_LOG);
    assert_int_equal(bench_finish(it.bench, &call), 0);
    assert_true(is_here(call.reply.mkdir.attributes.ino));
    bench_advance(it.bench, WHILE_NS);
    assert_int_equal(totals_of(&it).shares_lost, 1);
    assert_int_equal(it.bench->group->crossings.count, 0);
    for (int i = 0; i < NAMES_MANY; i++) {
        mkdir_is_here(&it);
    }
    assert_int_equal(name_call(&it, OP_RMDIR, name), -ERR_TARGET_LOST);
    lose(&it, 1);
    map_give(&it);
    assert_int_equal(name_call(&it, OP_RMDIR, name), 0);
    assert_int_equal(totals_of(&it).shares_lost, 1);
    others_end(&it);
}

/* It takes nothing of the coordinator any more and does as the others do, but answers them only by
 * a map that it has kept: a start forgets what it knows without. */
static void test_a_coordinator_is_lost_by_no_map(void **state) {
    struct others it;
    uint8_t fate;

    (void)state;
    for (int done = 0; done < 2; done++) {
        others_begin(&it);
        assert_int_equal(prepare(&it, 1), 0);
        it.fate = done ? CROSS_COMMITTED : CROSS_UNDECIDED;
        lose_unkept(&it, BENCH_OTHER_LOG);
        assert_int_equal(commit(&it, 1), -ERR_TARGET_LOST);
        assert_int_equal(prepare(&it, 2), -ERR_TARGET_LOST);
        bench_advance(it.bench, WHILE_NS);
        assert_true(it.asked > 0);
        assert_int_equal(it.losses, 1);
        assert_int_equal(moves_of(&it), done);
        assert_int_equal(totals_of(&it).promises_lost_kept, done);
        assert_int_equal(totals_of(&it).promises_lost_gone, !done);
        assert_int_equal(it.bench->group->promises.count, 0);
        assert_int_equal(fate_of(&it, 1, &fate), -ERR_BUSY);
        lose(&it, 1);
        map_give(&it);
        assert_int_equal(fate_of(&it, 1, &fate), 0);
        assert_int_equal(fate, CROSS_ABORTED);
        others_end(&it);
    }
}

/* A second loss of which no map says anything makes a round begin anew, too. */
static void test_another_one_is_lost_by_no_map(void **state) {
    struct others it;

    (void)state;
    four_begin(&it);
    bench_advance(it.bench, WHILE_NS);
    assert_int_equal(it.asked, 1);
    assert_int_equal(it.held_count, 1);
    it.fate = CROSS_COMMITTED;
    lose_unkept(&it, FOURTH_LOG);
    bench_advance(it.bench, WHILE_NS);
    assert_true(it.asked > 1);
    assert_int_equal(it.losses, 2);
    assert_int_equal(totals_of(&it).promises_lost_kept, 1);
    assert_int_equal(moves_of(&it), 1);
    others_end(&it);
}

/* A group that is lost itself asks and tells nothing, nor counts who knows. */
static void test_this_one_is_lost_by_no_map(void **state) {
    struct others it;
    char name[TEXT_BYTES];

    (void)state;
    others_begin(&it);
    made_elsewhere(&it, name);
    rpc_log_lose(it.bench->rpc, cluster_map_first_log(it.map, BENCH_MDT));
    call_reply(it.held[--it.held_count], -ERR_CLOSED);
    lose_unkept(&it, BENCH_OTHER_LOG);
    bench_advance(it.bench, WHILE_NS);
    assert_int_equal(it.held_count, 0);
    assert_int_equal(totals_of(&it).shares_lost, 0);
    others_end(&it);
}

/* A participant by whose map this group is lost takes nothing of it: that is no loss of the
 * participant's, which has not done it. Nor does a group count who knows once it is lost itself. */
static void test_a_participant_that_refuses(void **state) {
    struct others it;
    char name[TEXT_BYTES];

    (void)state;
    others_begin(&it);
    made_elsewhere(&it, name);
    for (int i = 0; i < 3; i++) {
        call_reply(it.held[--it.held_count], -ERR_TARGET_LOST);
        bench_advance(it.bench, NS_PER_S);
        assert_int_equal(totals_of(&it).shares_lost, 0);
        assert_int_equal(it.held_count, 1); /* It is told again. */
    }
    target_lose(&it, BENCH_MDT);
    lose(&it, 1);
    map_give(&it);
    bench_advance(it.bench, WHILE_NS);
    assert_int_equal(totals_of(&it).shares_lost, 0);
    others_end(&it);
}

static void name_post(struct others *it, uint16_t opcode, struct call *call) {
    static const struct bytes name = {(const uint8_t *)"f", 1};

    bench_prepare(it->bench, 0, opcode, call);
    if (opcode == OP_LINK) {
        call->request.link = (struct link_request){
            .ino = ino_make((struct slot){SLOTS}, 5), .parent = INO_ROOT, .name = name};
    } else {
        call->request.unlink = (struct unlink_request){.parent = INO_ROOT, .name = name};
    }
    bench_post(it->bench, call);
}

/* An unlink that has looked at the file, or has asked for a promise, when its target is declared
 * lost takes the name away as any later one does; and none of them keeps a place of that group. */
static void test_an_unlink_goes_on_without_what_is_lost(void **state) {
    struct others it;
    struct call call;

    (void)state;
    for (int prepares = 0; prepares < 2; prepares++) {
        others_begin(&it);
        name_post(&it, OP_LINK, &call);
        assert_int_equal(bench_finish(it.bench, &call), 0);
        while (it.held_count == 0) {
            bench_turn(it.bench);
        }
        call_reply(it.held[--it.held_count], 0); /* the commit */
        it.holds_looks = !prepares;
        it.holds_prepares = prepares;
        name_post(&it, OP_UNLINK, &call);
        while (it.held_count == 0) {
            bench_turn(it.bench);
        }
        lose(&it, 1);
        map_tell(&it);
        if (prepares) {
            held_end(&it);
        } else {
            look_answer(it.held[--it.held_count]);
        }
        assert_int_equal(bench_finish(it.bench, &call), 0);
        assert_int_equal(name_call(&it, OP_LOOKUP, "f"), -ERR_NOT_FOUND);
        assert_int_equal(it.bench->group->crossings.places[1], 0);
        others_end(&it);
    }
}

/* It can be found and removed, and nothing else. */
static void test_a_name_of_what_is_lost(void **state) {
    struct others it;
    char name[TEXT_BYTES];

    (void)state;
    others_begin(&it);
    made_elsewhere(&it, name);
    lose(&it, 1);
    map_give(&it);
    assert_int_equal(name_call(&it, OP_LOOKUP, name), 0);
    assert_int_equal(name_call(&it, OP_RENAME, name), -ERR_TARGET_LOST);
    assert_int_equal(name_call(&it, OP_UNLINK, name), -ERR_IS_DIRECTORY);
    assert_int_equal(name_call(&it, OP_RMDIR, name), 0);
    assert_int_equal(name_call(&it, OP_LOOKUP, name), -ERR_NOT_FOUND);
    others_end(&it);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_another_one_has_done_is_done),
        cmocka_unit_test(test_what_none_has_done_is_given_up),
        cmocka_unit_test(test_nobody_else_is_left),
        cmocka_unit_test(test_who_is_asked),
        cmocka_unit_test(test_a_mark_that_is_told_gone_is_gone),
        cmocka_unit_test(test_another_one_is_lost_meanwhile),
        cmocka_unit_test(test_who_is_lost_says_nothing),
        cmocka_unit_test(test_an_answer_that_is_not_known_is_none),
        cmocka_unit_test(test_a_lost_coordinator_says_nothing),
        cmocka_unit_test(test_who_is_about_to_do_it_says_nothing),
        cmocka_unit_test(test_a_participant_is_lost),
        cmocka_unit_test(test_a_participant_is_lost_by_no_map),
        cmocka_unit_test(test_a_coordinator_is_lost_by_no_map),
        cmocka_unit_test(test_another_one_is_lost_by_no_map),
        cmocka_unit_test(test_this_one_is_lost_by_no_map),
        cmocka_unit_test(test_a_participant_that_refuses),
        cmocka_unit_test(test_an_unlink_goes_on_without_what_is_lost),
        cmocka_unit_test(test_a_name_of_what_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
