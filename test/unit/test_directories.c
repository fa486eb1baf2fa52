/* What a client knows of directories that it has changed: what is told is found while it is young,
 * and nothing older than an acknowledged change is ever found again. */
#include "client/directories.h"
#include "unit.h"
#include <stdlib.h>

enum { AGE_NS = 1000 };

static const struct ino ONE = {5};

static int setup(void **state) {
    *state = calloc(1, sizeof(struct directories));
    return *state ? 0 : -1;
}

static int teardown(void **state) {
    free(*state);
    return 0;
}

static struct directory_ticket ask(struct directories *directories, struct ino ino,
                                   uint64_t now_ns) {
    return directories_ticket(directories, ino, now_ns);
}

static void see(struct directories *directories, struct ino ino, struct directory_ticket ticket,
                uint64_t epoch) {
    const struct attributes attributes = {.ino = ino, .epoch = epoch, .nlink = 2};

    directories_see(directories, ino, &ticket, &attributes);
}

/* The epoch of what is found; 0: nothing. */
static uint64_t found(struct directories *directories, struct ino ino, uint64_t now_ns) {
    struct attributes attributes;
    int64_t age_ns = directories_find(directories, ino, now_ns, AGE_NS, &attributes);

    if (age_ns < 0) {
        return 0;
    }
    assert_int_equal(attributes.ino.value, ino.value);
    assert_int_equal(attributes.nlink, 2);
    assert_true(age_ns < AGE_NS);
    return attributes.epoch;
}

static void test_what_is_told_is_found_while_it_is_young(void **state) {
    struct directories *directories = *state;
    struct attributes attributes;

    assert_int_equal(found(directories, ONE, 100), 0);
    see(directories, ONE, ask(directories, ONE, 100), 7);
    assert_int_equal(found(directories, ONE, 100), 7);
    assert_int_equal(found(directories, ONE, 100 + AGE_NS - 1), 7);
    assert_int_equal(found(directories, ONE, 100 + AGE_NS), 0);
    assert_int_equal(directories_find(directories, ONE, 100, 0, &attributes), -1);
    assert_int_equal(directories_find(directories, ONE, 130, AGE_NS, &attributes), 30);
}

static void test_a_change_that_nobody_tells_of_is_asked_for(void **state) {
    struct directories *directories = *state;
    const struct attributes untold = {.ino = {0}};

    see(directories, ONE, ask(directories, ONE, 100), 7);
    directories_changed(directories, ONE);
    assert_int_equal(found(directories, ONE, 101), 0);
    see(directories, ONE, ask(directories, ONE, 102), 8);
    assert_int_equal(found(directories, ONE, 102), 8);
    struct directory_ticket ticket = ask(directories, ONE, 103);
    directories_see(directories, ONE, &ticket, &untold);
    assert_int_equal(found(directories, ONE, 103), 0);
}

static void test_the_later_of_two_answers_counts_in_either_order(void **state) {
    struct directories *directories = *state;
    struct directory_ticket first = ask(directories, ONE, 100);
    struct directory_ticket second = ask(directories, ONE, 101);

    see(directories, ONE, second, 9);
    see(directories, ONE, first, 8);
    assert_int_equal(found(directories, ONE, 102), 9);
    see(directories, ONE, first, 10);
    assert_int_equal(found(directories, ONE, 103), 10);
}

static void test_an_answer_from_before_a_change_is_not_taken(void **state) {
    struct directories *directories = *state;
    struct directory_ticket before = ask(directories, ONE, 100);

    directories_changed(directories, ONE);
    see(directories, ONE, before, 7);
    assert_int_equal(found(directories, ONE, 100), 0);
    /* But where a later one is there already, a still later one holds that change, too. */
    see(directories, ONE, ask(directories, ONE, 101), 8);
    see(directories, ONE, before, 9);
    assert_int_equal(found(directories, ONE, 101), 9);
}

/* A was asked before a change that nobody told of, B behind it, and the server took B first: what A
 * told is not known to hold that change, and B is older than A, which was acknowledged. */
static void test_what_is_not_taken_keeps_older_answers_out(void **state) {
    struct directories *directories = *state;

    for (uint64_t epoch = 10; epoch <= 20; epoch += 10) { /* the slot as new, and used */
        struct directory_ticket a = ask(directories, ONE, 100);
        directories_changed(directories, ONE);
        struct directory_ticket b = ask(directories, ONE, 101);

        see(directories, ONE, a, epoch + 2);
        assert_int_equal(found(directories, ONE, 102), 0);
        see(directories, ONE, b, epoch + 1);
        assert_int_equal(found(directories, ONE, 102), 0);
        see(directories, ONE, b, epoch + 3);
        assert_int_equal(found(directories, ONE, 102), epoch + 3);
    }
}

/* Any directory that takes the place of the first one in its slot. */
static struct ino other_in_slot(struct directories *directories) {
    struct ino other = ONE;

    do {
        other.value++;
        see(directories, ONE, ask(directories, ONE, 100), 7);
        see(directories, other, ask(directories, other, 100), 3);
    } while (found(directories, ONE, 100) != 0);
    return other;
}

static void test_a_slot_has_one_directory_and_forgets_nothing(void **state) {
    struct directories *directories = *state;
    struct ino other = other_in_slot(directories);

    assert_int_equal(found(directories, other, 100), 3);
    struct directory_ticket before = ask(directories, ONE, 101);
    see(directories, ONE, before, 20);
    assert_int_equal(found(directories, ONE, 101), 20);
    see(directories, other, ask(directories, other, 102), 4);
    assert_int_equal(found(directories, other, 102), 4);
    /* It was asked before what was told of the first one made way. */
    struct directory_ticket late = ask(directories, ONE, 103);
    see(directories, ONE, before, 22);
    assert_int_equal(found(directories, ONE, 103), 0);
    see(directories, ONE, late, 21);
    assert_int_equal(found(directories, ONE, 103), 0);
    see(directories, other, ask(directories, other, 104), 5);
    assert_int_equal(found(directories, other, 104), 5);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_is_told_is_found_while_it_is_young),
        TEST(a_change_that_nobody_tells_of_is_asked_for),
        TEST(the_later_of_two_answers_counts_in_either_order),
        TEST(an_answer_from_before_a_change_is_not_taken),
        TEST(what_is_not_taken_keeps_older_answers_out),
        TEST(a_slot_has_one_directory_and_forgets_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
