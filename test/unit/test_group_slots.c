/* In which slots a group makes directories, and what it remembers of that. */
#include "unit.h"
#include "meta/group_internal.h"
#include "meta_bench.h"
#include "other_rows.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 20, MANY = (SLOTS_OPEN_MIN + 2) * SLOT_DIRECTORIES };

static struct slots_row row_of(enum slots_state state, uint32_t count, uint32_t opened) {
    return (struct slots_row){.format = 1,
                              .state = (uint8_t)state,
                              .count = count,
                              .opened = opened,
                              .given_to = state == SLOTS_GIVEN ? 7 : 0};
}

static struct ino make_directory(struct meta_bench *bench, uint32_t number) {
    char name[16];
    struct call call;

    snprintf(name, sizeof name, "d%u", number);
    bench_prepare(bench, 0, OP_MKDIR, &call);
    call.request.mkdir.parent = INO_ROOT;
    call.request.mkdir.name = (struct bytes){(const uint8_t *)name, strlen(name)};
    call.request.mkdir.mode = 0755;
    assert_int_equal(bench_run(bench, &call), 0);
    return call.reply.mkdir.attributes.ino;
}

static void remove_directory(struct meta_bench *bench, uint32_t number) {
    char name[16];
    struct call call;

    snprintf(name, sizeof name, "d%u", number);
    bench_prepare(bench, 0, OP_RMDIR, &call);
    call.request.rmdir.parent = INO_ROOT;
    call.request.rmdir.name = (struct bytes){(const uint8_t *)name, strlen(name)};
    assert_int_equal(bench_run(bench, &call), 0);
}

/* Ranges that are mine, given, and mine again: what is drawn, refused and opened next. */
static void test_ranges(void **state) {
    struct slots slots = {0};
    struct slots_row row = row_of(SLOTS_MINE, 10, 3);
    uint32_t drawn[6] = {0};

    (void)state;
    assert_int_equal(slots_load(&slots, 0, &row), 0);
    row = row_of(SLOTS_GIVEN, 20, 0);
    assert_int_equal(slots_load(&slots, 10, &row), 0);
    row = row_of(SLOTS_MINE, 4, 2);
    assert_int_equal(slots_load(&slots, 9, &row), -ERR_CORRUPT);
    assert_int_equal(slots_load(&slots, 65533, &row), -ERR_CORRUPT);
    assert_int_equal(slots_load(&slots, UINT32_MAX, &row), -ERR_CORRUPT);
    assert_int_equal(slots_load(&slots, (UINT64_C(1) << 32) + 40, &row), -ERR_CORRUPT);
    assert_int_equal(slots_load(&slots, 40, &row), 0);
    for (uint32_t i = 0; i < 100; i++) {
        uint16_t slot = slots_draw(&slots, i).value;

        assert_true(slot < 3 || slot == 40 || slot == 41);
        assert_true(slots_is_opened(&slots, (struct slot){slot}));
        drawn[slot < 3 ? slot : slot - 37]++;
    }
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(drawn[i], 20);
    }
    assert_int_equal(slots_check(&slots, (struct slot){9}), 0);
    assert_false(slots_is_opened(&slots, (struct slot){3}));
    assert_int_equal(slots_check(&slots, (struct slot){10}), -ERR_STALE_MAP);
    assert_int_equal(slots_check(&slots, (struct slot){29}), -ERR_STALE_MAP);
    assert_int_equal(slots_check(&slots, (struct slot){30}), -ERR_STALE_MAP);
    assert_int_equal(slots_check(&slots, (struct slot){43}), 0);
    assert_int_equal(slots_check(&slots, (struct slot){UINT16_MAX}), -ERR_STALE_MAP);
}

/* Nearly all slots stay never used: 18,432 directories lie in 16 to 18 of them, evenly; a slot is
 * used only once the row that opens it is on disk, and no start forgets one. */
static void test_slots_are_opened_late(void **state) {
    const struct bench_options options = {.seed = 1};
    struct meta_bench *bench = bench_new(&options);
    uint32_t counts[SLOT_COUNT] = {0};
    uint32_t highest = 0;

    (void)state;
    for (uint32_t i = 1; i < MANY; i++) {
        uint16_t slot = ino_slot(make_directory(bench, i)).value;

        counts[slot]++;
        highest = MAX(highest, (uint32_t)slot);
        /* The root is a directory, too. */
        assert_true(highest < SLOTS_OPEN_MIN || i >= highest * SLOT_DIRECTORIES);
        if (i % 4096 == 0) {
            bench_advance(bench, 2 * NS_PER_S);
            bench_restart(bench, i % 8192 == 0);
            for (uint32_t session = 0; session < BENCH_SESSIONS; session++) {
                bench_attach(bench, session);
            }
        }
    }
    assert_int_equal(highest, SLOTS_OPEN_MIN + 1);
    for (uint32_t i = 0; i < SLOTS_OPEN_MIN; i++) {
        assert_in_range(counts[i], SLOT_DIRECTORIES * 3 / 4, SLOT_DIRECTORIES * 5 / 4);
    }
    bench_free(bench);
}

/* What is removed counts no longer, also after starts of all kinds. */
static void test_removed_directories_count_no_longer(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        const struct bench_options options = {.seed = seed, .cold_per_mille = seed % 2 ? 0 : 200};
        struct meta_bench *bench = bench_new(&options);

        for (uint32_t i = 0; i < 200; i++) {
            uint16_t slot = ino_slot(make_directory(bench, i)).value;

            assert_true(slot < SLOTS_OPEN_MIN);
            if (i % 50 == 49) {
                bench_advance(bench, 2 * NS_PER_S);
                bench_restart(bench, prng_chance(&bench->prng, 1, 2));
                for (uint32_t session = 0; session < BENCH_SESSIONS; session++) {
                    bench_attach(bench, session);
                }
            }
            remove_directory(bench, i);
        }
        bench_free(bench);
    }
}

/* A request about a slot that is not the group's is told so, and leaves no outcome: asked again
 * under its number it is run. A group with fewer slots than are opened at first has all of them. */
static void test_a_slot_of_another(void **state) {
    const struct bench_options options = {.seed = 3, .slot_count = SLOTS_OPEN_MIN / 2};
    struct meta_bench *bench = bench_new(&options);
    struct group_stats stats;
    struct call call;

    (void)state;
    bench_prepare(bench, 0, OP_GETATTR, &call);
    call.request.getattr.ino = ino_make((struct slot){SLOTS_OPEN_MIN / 2}, 5);
    assert_int_equal(bench_run(bench, &call), -ERR_STALE_MAP);
    call.request.getattr.ino = ino_make((struct slot){SLOTS_OPEN_MIN / 2 - 1}, 5);
    assert_int_equal(bench_run(bench, &call), -ERR_STALE);
    bench_prepare(bench, 0, OP_MKDIR, &call);
    call.request.mkdir.parent = ino_make((struct slot){UINT16_MAX}, 5);
    call.request.mkdir.name = (struct bytes){(const uint8_t *)"a", 1};
    call.request.mkdir.mode = 0755;
    assert_int_equal(bench_run(bench, &call), -ERR_STALE_MAP);
    call.request.mkdir.parent = INO_ROOT;
    assert_int_equal(bench_run(bench, &call), 0);
    bench_stats(bench, &stats);
    assert_int_equal(stats.totals.old_maps, 2);
    for (uint32_t i = 0; i < 200; i++) {
        assert_in_range(ino_slot(make_directory(bench, i)).value, 0, SLOTS_OPEN_MIN / 2 - 1);
    }
    bench_free(bench);
}

static uint32_t give(struct meta_bench *bench, uint64_t handover, uint32_t count,
                     struct wire_slots ret_given[SLOTS_MOVED_MAX]) {
    struct call call;

    bench_prepare(bench, 0, OP_SLOTS_GIVE, &call);
    call.request.slots_give =
        (struct slots_give_request){.handover = handover, .to = 77, .count = count};
    call.bulk_in = (struct buffer){(uint8_t *)ret_given, 0, SLOTS_MOVED_MAX * sizeof *ret_given};
    assert_int_equal(bench_run(bench, &call), 0);
    assert_int_equal(call.bulk_in.size % sizeof *ret_given, 0);
    assert_int_equal(call.reply.slots_give.row_bytes, sizeof *ret_given);
    return (uint32_t)(call.bulk_in.size / sizeof *ret_given);
}

static int check_of(struct meta_bench *bench, uint32_t slot) {
    struct call call;

    bench_prepare(bench, 0, OP_GETATTR, &call);
    call.request.getattr.ino = ino_make((struct slot){(uint16_t)slot}, 5);
    return bench_run(bench, &call);
}

/* What was never opened is given, on disk before it is answered: also behind a kill or a loss of
 * power, asked again under the number, it is the same; a lower number gives nothing. */
static void test_slots_are_given(void **state) {
    struct bench_options options = {.seed = 4};
    struct wire_slots given[SLOTS_MOVED_MAX];

    (void)state;
    for (options.cold_per_mille = 0; options.cold_per_mille <= 300; options.cold_per_mille += 150) {
        struct meta_bench *bench = bench_new(&options);

        assert_int_equal(give(bench, 5, 30000, given), 1);
        for (uint32_t round = 0; round < 3; round++) {
            assert_true(given[0].first == SLOT_COUNT - 30000 && given[0].count == 30000 &&
                        given[0].handover == 5);
            assert_int_equal(check_of(bench, SLOT_COUNT - 30000), -ERR_STALE_MAP);
            assert_int_equal(check_of(bench, SLOT_COUNT - 30001), -ERR_STALE);
            bench_restart(bench, round == 1);
            bench_attach(bench, 0);
            assert_int_equal(give(bench, 5, 1, given), 1);
        }
        assert_int_equal(give(bench, 4, 100, given), 0);
        assert_int_equal(give(bench, 6, SLOT_COUNT, given), 1);
        assert_true(given[0].first == SLOTS_OPEN_MIN);
        assert_int_equal(given[0].count, SLOT_COUNT - 30000 - SLOTS_OPEN_MIN);
        assert_int_equal(give(bench, 7, SLOT_COUNT, given), 0);
        for (uint32_t i = 0; i < 100; i++) {
            assert_in_range(ino_slot(make_directory(bench, i)).value, 0, SLOTS_OPEN_MIN - 1);
        }
        bench_free(bench);
    }
}

static int tell(struct meta_bench *bench, const struct wire_slots *told, uint32_t count,
                struct group_tell_reply *ret_reply) {
    struct call call;

    bench_prepare(bench, 0, OP_GROUP_TELL, &call);
    call.request.group_tell.slots = count;
    call.bulk_out[0] = (struct bytes){(const uint8_t *)told, count * sizeof *told};
    call.bulk_out_count = 1;
    int r = bench_run(bench, &call);
    *ret_reply = call.reply.group_tell;
    return r;
}

/* What the map gives it by a higher number it has as soon as it is told, and on disk; what it has
 * opened stays opened; and what it has given it does not take back by an old map. */
static void test_slots_are_taken(void **state) {
    const struct bench_options options = {.seed = 5, .slot_count = 1000};
    struct wire_slots told[] = {{0, 1000, 0}, {2000, 10, 9}, {4000, 100, 9}};
    struct meta_bench *bench = bench_new(&options);
    struct wire_slots given[SLOTS_MOVED_MAX];
    struct group_tell_reply reply;

    (void)state;
    bench->map->slot_groups[2000] = bench->map->slot_groups[2001] = 0;
    assert_int_equal(check_of(bench, 2000), -ERR_BUSY);
    assert_int_equal(check_of(bench, 2002), -ERR_STALE_MAP);
    assert_int_equal(tell(bench, told, 3, &reply), 0);
    assert_int_equal(reply.unopened, 1000 - SLOTS_OPEN_MIN + 110);
    assert_false(reply.more);
    for (uint32_t round = 0; round < 3; round++) {
        assert_int_equal(check_of(bench, 2009), -ERR_STALE);
        assert_int_equal(check_of(bench, 4099), -ERR_STALE);
        assert_int_equal(check_of(bench, 2010), -ERR_STALE_MAP);
        bench_restart(bench, round == 1);
        bench_attach(bench, 0);
    }
    assert_int_equal(give(bench, 10, 105, given), 2);
    assert_true(given[0].first == 4000 && given[0].count == 100);
    assert_true(given[1].first == 2005 && given[1].count == 5);
    assert_int_equal(tell(bench, told, 3, &reply), 0);
    assert_int_equal(check_of(bench, 4000), -ERR_STALE_MAP);
    told[2] = (struct wire_slots){4010, 20, 11};
    assert_int_equal(tell(bench, told, 3, &reply), 0);
    assert_int_equal(check_of(bench, 4009), -ERR_STALE_MAP);
    assert_int_equal(check_of(bench, 4010), -ERR_STALE);
    assert_int_equal(check_of(bench, 4029), -ERR_STALE);
    assert_int_equal(check_of(bench, 4030), -ERR_STALE_MAP);
    told[1].first = SLOT_COUNT - 5;
    assert_int_equal(tell(bench, told, 3, &reply), -ERR_MALFORMED);
    told[1].first = UINT32_MAX - 5;
    assert_int_equal(tell(bench, told, 3, &reply), -ERR_MALFORMED);
    bench_free(bench);
}

static int tell_rows(struct meta_bench *bench, const struct group_tell_request *request,
                     struct bytes bulk) {
    struct call call;

    bench_prepare(bench, 0, OP_GROUP_TELL, &call);
    call.request.group_tell = *request;
    call.bulk_out[0] = bulk;
    call.bulk_out_count = 1;
    return bench_run(bench, &call);
}

/* What a version to come adds to slots or to loads is skipped, be it to one of them only; of a
 * length that no version has, or where both don't fill the bulk, nothing is taken. */
static void test_rows_of_other_versions(void **state) {
    const struct bench_options options = {.seed = 7, .slot_count = 1000};
    const struct wire_slots slots[] = {{0, 1000, 0}, {2000, 10, 9}};
    enum { SLOTS_BYTES = sizeof *slots, LOAD_BYTES = sizeof(struct wire_load) };
    struct meta_bench *bench = bench_new(&options);
    struct wire_load load = {.log = bench->map->groups[0].log.value};
    uint8_t bulk[ARRAY_SIZE(slots) * (SLOTS_BYTES + ROW_MORE) + LOAD_BYTES + ROW_MORE];

    (void)state;
    for (uint32_t longer = 0; longer < 4; longer++) {
        uint32_t slots_bytes = SLOTS_BYTES + (longer & 1 ? ROW_MORE : 0);
        uint32_t load_bytes = LOAD_BYTES + (longer & 2 ? ROW_MORE : 0);
        size_t size = (size_t)2 * slots_bytes + load_bytes;
        struct group_tell_request request = {.slots = 2,
                                             .loads = 1,
                                             .slots_row_bytes = (uint16_t)slots_bytes,
                                             .loads_row_bytes = (uint16_t)load_bytes};

        load.inode_count = 70 + longer;
        memset(bulk, 0xee, sizeof bulk);
        memcpy(bulk, &slots[0], sizeof *slots);
        memcpy(bulk + slots_bytes, &slots[1], sizeof *slots);
        memcpy(bulk + (size_t)2 * slots_bytes, &load, sizeof load);
        assert_int_equal(tell_rows(bench, &request, (struct bytes){bulk, size}), 0);
        assert_int_equal(bench->group->inode_counts[0], load.inode_count);
        assert_int_equal(check_of(bench, 2009), -ERR_STALE);
        assert_int_equal(check_of(bench, 2010), -ERR_STALE_MAP);
        assert_int_equal(tell_rows(bench, &request, (struct bytes){bulk, size - 1}),
                         -ERR_MALFORMED);
        for (uint32_t i = 0; (request.slots_row_bytes = rows_wrong(i, SLOTS_BYTES)); i++) {
            assert_int_equal(tell_rows(bench, &request, (struct bytes){bulk, size}),
                             -ERR_MALFORMED);
        }
        request.slots_row_bytes = (uint16_t)slots_bytes;
        for (uint32_t i = 0; (request.loads_row_bytes = rows_wrong(i, LOAD_BYTES)); i++) {
            assert_int_equal(tell_rows(bench, &request, (struct bytes){bulk, size}),
                             -ERR_MALFORMED);
        }
        request.loads_row_bytes = (uint16_t)load_bytes;
        request.slots = UINT32_MAX;
        assert_int_equal(tell_rows(bench, &request, (struct bytes){bulk, size}), -ERR_MALFORMED);
    }
    bench_free(bench);
}

/* Many ranges come in several messages; where there is no place for more, that is said, and
 * slots stay where they are; also behind a start. */
static void test_many_ranges(void **state) {
    const struct bench_options options = {.seed = 6, .slot_count = 1000};
    struct wire_slots *told = calloc(SLOT_RANGES_MAX, sizeof *told);
    struct meta_bench *bench = bench_new(&options);
    struct group_tell_reply reply;
    uint32_t messages = 0;

    (void)state;
    for (uint32_t i = 0; i < SLOT_RANGES_MAX; i++) {
        told[i] = (struct wire_slots){2000 + 2 * i, 1, 3};
    }
    do {
        assert_int_equal(tell(bench, told, 100, &reply), 0);
        messages++;
    } while (reply.more);
    assert_int_equal(messages, (100 + SLOTS_MOVED_MAX - 1) / SLOTS_MOVED_MAX);
    assert_int_equal(reply.unopened, 1000 - SLOTS_OPEN_MIN + 100);
    int r;
    while ((r = tell(bench, told, SLOT_RANGES_MAX, &reply)) == 0 && reply.more) {
    }
    assert_int_equal(r, -ERR_NO_SPACE);
    for (int start = 0; start < 3; start++) {
        assert_int_equal(check_of(bench, 2000), -ERR_STALE);
        assert_int_equal(tell(bench, told, SLOT_RANGES_MAX, &reply), -ERR_NO_SPACE);
        if (start == 0) {
            bench_stop_and_start(bench);
        } else {
            bench_restart(bench, start == 2);
        }
        bench_attach(bench, 0);
    }
    free(told);
    bench_free(bench);
}

static uint32_t count_of(const struct call *calls, uint32_t count, int result) {
    uint32_t found = 0;

    for (uint32_t i = 0; i < count; i++) {
        found += bench_is_answered(&calls[i]) && calls[i].result == result;
    }
    return found;
}

/* Who attaches waits until the ends of his predecessors are known here. That is told by a message
 * like his, so only some may wait at a time: all others come again. */
static void test_attaches_leave_room_for_the_list(void **state) {
    enum { ATTACHES = 20, WAIT_MOST = 8 };
    const struct bench_options options = {.seed = 3};
    struct meta_bench *bench = bench_new(&options);
    const struct bench_session who = bench->sessions[1];
    struct call calls[ATTACHES];

    (void)state;
    assert_int_equal(bench_ended(bench, who.id), 0);
    const uint64_t number = bench->list_number + 1;
    for (uint32_t i = 0; i < ATTACHES; i++) {
        bench_prepare(bench, 0, OP_SESSION_ATTACH, &calls[i]);
        calls[i].request.session_attach =
            (struct session_attach_request){.session = 900 + i, .incarnation = 7, .ended = number};
        bench_post(bench, &calls[i]);
    }
    bench_advance(bench, NS_PER_S);
    assert_int_equal(count_of(calls, ATTACHES, -ERR_BUSY), ATTACHES - WAIT_MOST);
    assert_int_equal(count_of(calls, ATTACHES, 0), 0);
    assert_int_equal(bench_ended(bench, 0), 0);
    for (uint32_t i = 0; i < ATTACHES; i++) {
        (void)bench_finish(bench, &calls[i]);
    }
    /* There is room for one. */
    assert_int_equal(count_of(calls, ATTACHES, 0), 1);
    assert_int_equal(count_of(calls, ATTACHES, -ERR_BUSY), ATTACHES - 1);
    bench_free(bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_slots_are_opened_late),
        cmocka_unit_test(test_removed_directories_count_no_longer),
        cmocka_unit_test(test_a_slot_of_another),
        cmocka_unit_test(test_slots_are_given),
        cmocka_unit_test(test_slots_are_taken),
        cmocka_unit_test(test_rows_of_other_versions),
        cmocka_unit_test(test_many_ranges),
        cmocka_unit_test(test_attaches_leave_room_for_the_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
