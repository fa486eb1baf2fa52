/* In which slots a group makes directories, and what it remembers of that. */
#include "unit.h"
#include "meta/slots.h"
#include "meta_bench.h"
#include <stdio.h>
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
    for (uint32_t i = 0; i < 200; i++) {
        assert_in_range(ino_slot(make_directory(bench, i)).value, 0, SLOTS_OPEN_MIN / 2 - 1);
    }
    bench_free(bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_slots_are_opened_late),
        cmocka_unit_test(test_removed_directories_count_no_longer),
        cmocka_unit_test(test_a_slot_of_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
