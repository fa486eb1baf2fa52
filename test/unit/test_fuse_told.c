/* What the kernel may have of attributes: an open must notice whatever others have changed, and
 * what a read through an older handle made the kernel believe. */
#include "unit.h"
#include "front/fuse/told.h"

enum { INO = 7, OTHER = 8 };

static int set_up(void **state) {
    static struct told_table table;

    *state = &table;
    return told_table_init(&table);
}

static int tear_down(void **state) {
    told_table_deinit(*state);
    return 0;
}

static void test_any_change_differs(void **state) {
    const struct shoal_attributes was = {.ino = INO, .size = 10, .mtime_ns = 20, .ctime_ns = 30};
    struct shoal_attributes changed[] = {was, was, was};

    changed[0].size++;
    changed[1].mtime_ns++;
    changed[2].ctime_ns++;
    for (size_t i = 0; i < ARRAY_SIZE(changed); i++) {
        told_note(*state, &was);
        assert_false(told_differs(*state, &was));
        assert_true(told_differs(*state, &changed[i]));
        assert_false(told_differs(*state, &changed[i]));
    }
}

/* The kernel has nothing that could be old. */
static void test_what_was_never_told_is_new(void **state) {
    const struct shoal_attributes first = {.ino = INO, .size = 10};

    assert_false(told_differs(*state, &first));
    assert_false(told_differs(*state, &first));
}

static void test_an_end_that_was_not_told(void **state) {
    const struct shoal_attributes told = {.ino = INO, .size = 10};

    told_note(*state, &told);
    told_end(*state, INO, 10);
    told_end(*state, OTHER, 3);
    assert_false(told_differs(*state, &told));
    told_end(*state, INO, 3);
    assert_true(told_differs(*state, &told));
    assert_false(told_differs(*state, &told));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_any_change_differs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_was_never_told_is_new, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_an_end_that_was_not_told, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
