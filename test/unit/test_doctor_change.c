/* Settings of a machine that is a folder: what is changed and taken back, and what is refused. */
#include "doctor_machine.h"

static int fix(const struct place *place, bool persists, struct doctor_changes *changes,
               char *problem) {
    struct doctor_table *table = table_of(place);
    int r = doctor_fix(place->root, table, persists, changes, problem);

    doctor_table_free(table);
    return r;
}

static int undo(const struct place *place, struct doctor_changes *changes, char *problem) {
    struct doctor_table *table = table_of(place);
    int r = doctor_undo(place->root, table, changes, problem);

    doctor_table_free(table);
    return r;
}

static void expect_first_values(const struct place *place) {
    FILE_IS(place, HALT_POLL, "0\n");
    FILE_IS(place, HALT_POLL_START, "50000\n");
    FILE_IS(place, READ_AHEAD, "128\n");
}

static void expect_mended(const struct place *place) {
    FILE_IS(place, HALT_POLL, "200000\n");
    FILE_IS(place, HALT_POLL_START, "200000\n");
    FILE_IS(place, READ_AHEAD, "1024\n");
}

#define ALL_KEPT                                                                                   \
    "shoal-doctor 1\nguest_halt_poll_ns 0 200000\n"                                                \
    "guest_halt_poll_grow_start 50000 200000\nread_ahead_kb 128 1024 /mnt/a\\040b\nend\n"
#define CONF_HEAD "# Written by `shoal doctor --fix --persist`; `shoal doctor --undo` removes it.\n"

static void test_fix_and_undo(void **state) {
    struct doctor_changes changes;
    struct place *place = *state;
    char problem[DOCTOR_PROBLEM_BYTES];

    machine_make(place);
    assert_int_equal(fix(place, false, &changes, problem), 0);
    assert_int_equal(changes.count, 3);
    for (size_t i = 0; i < changes.count; i++) {
        assert_int_equal(changes.rows[i].outcome, DOCTOR_CHANGED);
    }
    assert_false(changes.is_conf_changed);
    expect_mended(place);
    FILE_IS(place, KEPT, ALL_KEPT);
    FILE_IS(place, CONF, "");
    FILE_IS(place, URING, "N\n");
    FILE_IS(place, HUGE_PAGES, "always madvise [never]\n");
    FILE_IS(place, "/sys/block/vda/queue/write_cache", "write through\n");

    /* Once more there is nothing to do, and nothing is forgotten. */
    assert_int_equal(fix(place, false, &changes, problem), 0);
    assert_int_equal(changes.count, 0);
    FILE_IS(place, KEPT, ALL_KEPT);

    assert_int_equal(undo(place, &changes, problem), 0);
    assert_int_equal(changes.count, 3);
    assert_true(changes.is_kept);
    expect_first_values(place);
    FILE_IS(place, KEPT, "");
    assert_int_equal(undo(place, &changes, problem), 0);
    assert_int_equal(changes.count, 0);
    assert_false(changes.is_kept);
}

/* What somebody has set in between is theirs. */
static void test_undo_leaves_what_others_set(void **state) {
    struct doctor_changes changes;
    struct place *place = *state;
    char problem[DOCTOR_PROBLEM_BYTES];

    machine_make(place);
    assert_int_equal(fix(place, false, &changes, problem), 0);
    file_put(place, HALT_POLL, "300000\n");
    file_put(place, HALT_POLL_START, "50000\n");
    file_put(place, "/proc/self/mountinfo", "");
    assert_int_equal(undo(place, &changes, problem), 0);
    assert_int_equal(changes.count, 3);
    assert_int_equal(changes.rows[0].outcome, DOCTOR_FOREIGN);
    assert_int_equal(changes.rows[1].outcome, DOCTOR_SAME);
    assert_int_equal(changes.rows[2].outcome, DOCTOR_GONE);
    FILE_IS(place, HALT_POLL, "300000\n");
    FILE_IS(place, READ_AHEAD, "1024\n");
    FILE_IS(place, KEPT, "");
}

/* A second fix keeps the value before the first, unless somebody has set another one since. */
static void test_second_fix(void **state) {
    struct doctor_changes changes;
    struct place *place = *state;
    char problem[DOCTOR_PROBLEM_BYTES];

    machine_make(place);
    assert_int_equal(fix(place, false, &changes, problem), 0);
    file_put(place, HALT_POLL, "7\n");
    file_put(place, HALT_POLL_START, "50000\n");
    file_put(place, "/proc/self/mountinfo", "");
    assert_int_equal(fix(place, false, &changes, problem), 0);
    assert_int_equal(changes.count, 2);
    FILE_IS(place, KEPT,
            "shoal-doctor 1\nguest_halt_poll_ns 7 200000\n"
            "guest_halt_poll_grow_start 50000 200000\nend\n");
}

/* A version that set less: its value is ours, too. */
static void test_fix_after_an_older_one(void **state) {
    struct doctor_changes changes;
    struct place *place = *state;
    char problem[DOCTOR_PROBLEM_BYTES];

    machine_make(place);
    file_put(place, HALT_POLL, "100000\n");
    file_put(place, KEPT, "shoal-doctor 1\nguest_halt_poll_ns 0 100000\nend\n");
    assert_int_equal(fix(place, false, &changes, problem), 0);
    expect_mended(place);
    assert_int_equal(undo(place, &changes, problem), 0);
    expect_first_values(place);
}

static void test_persist(void **state) {
    struct doctor_changes changes;
    struct place *place = *state;
    char problem[DOCTOR_PROBLEM_BYTES];

    machine_make(place);
    file_put(place, HALT_POLL_START, "400000\n");
    assert_int_equal(fix(place, true, &changes, problem), 0);
    assert_true(changes.is_conf_changed);
    FILE_IS(place, CONF,
            CONF_HEAD "w " HALT_POLL " - - - - 200000\n"
                      "w " HALT_POLL_START " - - - - 400000\n");
    assert_int_equal(undo(place, &changes, problem), 0);
    assert_true(changes.is_conf_changed);
    FILE_IS(place, CONF, "");
    FILE_IS(place, HALT_POLL, "0\n");

    /* Also where all is well already, so that it stays so. */
    assert_int_equal(fix(place, false, &changes, problem), 0);
    assert_int_equal(fix(place, true, &changes, problem), 0);
    assert_int_equal(changes.count, 0);
    assert_true(changes.is_conf_changed);
    assert_int_equal(undo(place, &changes, problem), 0);
    FILE_IS(place, CONF, "");
    FILE_IS(place, HALT_POLL, "0\n");
}

/* What is refused has changed nothing. */
static void test_refusals(void **state) {
    struct doctor_changes changes;
    struct place *place = *state;
    char problem[DOCTOR_PROBLEM_BYTES];

    machine_make(place);
    file_put(place, CONF, "# mine\n");
    assert_int_equal(fix(place, true, &changes, problem), -ERR_NOT_OURS);
    assert_non_null(strstr(problem, "was not written by doctor"));
    expect_first_values(place);
    FILE_IS(place, KEPT, "");
    assert_int_equal(fix(place, false, &changes, problem), 0);
    assert_int_equal(undo(place, &changes, problem), -ERR_NOT_OURS);
    expect_mended(place);
    FILE_IS(place, KEPT, ALL_KEPT);
    FILE_IS(place, CONF, "# mine\n");

    /* Without a place for it nothing is kept, either. */
    file_drop(place, CONF);
    assert_int_equal(undo(place, &changes, problem), 0);
    assert_int_equal(folder_tree_remove(place->env, &DOCTOR_CONF_FOLDER[1]), 0);
    assert_int_equal(fix(place, true, &changes, problem), -ERR_NOT_FOUND);
    assert_non_null(strstr(problem, "as --persist asks"));
    expect_first_values(place);
    FILE_IS(place, KEPT, "");

    /* What was kept before stays as it was. */
    assert_int_equal(fix(place, false, &changes, problem), 0);
    file_put(place, HALT_POLL, "7\n");
    assert_int_equal(fix(place, true, &changes, problem), -ERR_NOT_FOUND);
    FILE_IS(place, HALT_POLL, "7\n");
    FILE_IS(place, KEPT, ALL_KEPT);
}

static void test_bad_kept_files(void **state) {
    static const char *const bad[] = {
        "",
        "\n",
        "shoal-doctor",
        "shoal-doctor 1",
        "shoal-doctor x\nend\n",
        "shoal-doctor 11111111111111111111111111\nend\n",
        "shoal-doctor 1\n",
        "shoal-doctor 1\nend",
        "shoal-doctor 1\nend\nguest_halt_poll_ns 0 1\n",
        "shoal-doctor 1\nend\nend\n",
        "shoal-doctor 1\nguest_halt_poll_ns 0 1\n",
        "shoal-doctor 1\nguest_halt_poll_ns 0\nend\n",
        "shoal-doctor 1\nguest_halt_poll_ns  0 1\nend\n",
        "shoal-doctor 1\nguest_halt_poll_ns 0 1 /mnt\nend\n",
        "shoal-doctor 1\nguest_halt_poll_ns 0 1 x\nend\n",
        "shoal-doctor 1\nguest_halt_poll_ns 0 1 x y\nend\n",
        "shoal-doctor 1\nenable_uring N Y\nend\n",
        "shoal-doctor 1\nguest_halt_poll_ns 0 1\nguest_halt_poll_ns 0 1\nend\n",
        "shoal-doctor 1\nguest_halt_poll_ns -1 200000\nend\n",
        "shoal-doctor 1\nguest_halt_poll_ns 0 200000000000000000000\nend\n",
        "shoal-doctor 1\nguest_halt_poll_ns 0 1;reboot\nend\n",
        "shoal-doctor 1\nread_ahead_kb 128 1024\nend\n",
        "shoal-doctor 1\nread_ahead_kb 128 1024 mnt\nend\n",
        "shoal-doctor 1\nhuge_pages never always\nend\n",
        "shoal-doctor 1\nsysrq 0 1\nend\n",
        "shoal-doctor 1\n\nend\n",
        "shoal-doctor 1\n\x07\nend\n",
    };
    struct doctor_changes changes;
    struct place *place = *state;
    char problem[DOCTOR_PROBLEM_BYTES];

    machine_make(place);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        file_put(place, KEPT, bad[i]);
        assert_int_equal(undo(place, &changes, problem), -ERR_MALFORMED);
        assert_non_null(strstr(problem, "holds what no doctor has written"));
        assert_int_equal(fix(place, true, &changes, problem), -ERR_MALFORMED);
        FILE_IS(place, KEPT, bad[i]);
        FILE_IS(place, HALT_POLL, "0\n");
        FILE_IS(place, CONF, "");
    }
    file_put(place, KEPT, "shoal-doctor 2\nend\n");
    assert_int_equal(undo(place, &changes, problem), -ERR_NEWER_FORMAT);
    assert_non_null(strstr(problem, "newer version"));
}

/* Of any length, and with a NUL in it. */
static void test_kept_sizes(void **state) {
    static const char with_nul[] = "shoal-doctor 1\nend\n\0end\n";
    struct doctor_kept *kept = calloc(1, sizeof *kept);
    struct doctor_kept *again = calloc(1, sizeof *again);
    char *text = malloc(DOCTOR_KEPT_BYTES_MAX);

    (void)state;
    assert_int_equal(doctor_kept_parse(with_nul, sizeof with_nul - 1, kept), -ERR_MALFORMED);
    for (size_t i = 0; i < DOCTOR_CHANGES_MAX; i++) {
        struct doctor_kept_row *row = &kept->rows[kept->count++];

        row->setting = DOCTOR_READ_AHEAD;
        snprintf(row->before, sizeof row->before, "9999999999999999999");
        snprintf(row->after, sizeof row->after, "1");
        memset(row->of, 'x', sizeof row->of - 1);
        snprintf(row->of, 8, "/%06zu", i);
        row->of[7] = 'x';
    }
    size_t size = doctor_kept_print(kept, text);
    assert_true(size < DOCTOR_KEPT_BYTES_MAX);
    assert_int_equal(doctor_kept_parse(text, size, again), 0);
    assert_memory_equal(kept, again, sizeof *kept);
    for (size_t cut = 0; cut < size; cut += 1 + cut / 64) {
        char last = text[cut];

        text[cut] = '\0';
        assert_int_equal(doctor_kept_parse(text, cut, again), -ERR_MALFORMED);
        text[cut] = last;
    }
    free(kept);
    free(again);
    free(text);
}

/* In a container /sys is read-only: said of each, and nothing is done. */
static void test_container(void **state) {
    struct doctor_changes changes;
    struct place *place = *state;
    char problem[DOCTOR_PROBLEM_BYTES];

    machine_make(place);
    file_put(place, "/.dockerenv", "");
    file_put(place, "/proc/self/mountinfo", MOUNTS("ro"));
    struct doctor_table *table = table_of(place);
    assert_true(table->in_container);
    assert_int_equal(row_of(table, DOCTOR_HALT_POLL)->denied, -ERR_READ_ONLY);
    assert_int_equal(row_of(table, DOCTOR_READ_AHEAD)->denied, -ERR_READ_ONLY);
    doctor_table_free(table);
    assert_int_equal(fix(place, true, &changes, problem), 0);
    assert_int_equal(changes.count, 3);
    for (size_t i = 0; i < changes.count; i++) {
        assert_int_equal(changes.rows[i].outcome, DOCTOR_FAILED);
        assert_int_equal(changes.rows[i].error, -ERR_READ_ONLY);
    }
    assert_false(changes.is_conf_changed);
    expect_first_values(place);
    FILE_IS(place, KEPT, "");
    FILE_IS(place, CONF, "");

    /* What was changed before can't be set back, and is not forgotten. */
    file_put(place, "/proc/self/mountinfo", MOUNTS("rw"));
    assert_int_equal(fix(place, true, &changes, problem), 0);
    file_put(place, "/proc/self/mountinfo", MOUNTS("ro"));
    assert_int_equal(undo(place, &changes, problem), -ERR_READ_ONLY);
    assert_non_null(strstr(problem, "may not be set back here"));
    expect_mended(place);
    FILE_IS(place, KEPT, ALL_KEPT);
    assert_string_not_equal(file_text(place, CONF), "");
}

/* A file of the kernel's that takes anything and stays as it is. */
static void test_value_that_is_not_taken(void **state) {
    struct doctor_changes changes;
    struct place *place = *state;
    char problem[DOCTOR_PROBLEM_BYTES];
    char path[DOCTOR_FILE_BYTES];

    machine_make(place);
    assert_int_equal(doctor_path(place->root, HALT_POLL, path), 0);
    assert_int_equal(fix(place, false, &changes, problem), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/dev/null", path), 0);
    assert_int_equal(doctor_value_write(place->root, HALT_POLL, "1"), -ERR_MALFORMED);
    /* Unreadable: it is kept for another try, while the others are set back. */
    assert_int_equal(undo(place, &changes, problem), 0);
    assert_int_equal(changes.rows[0].outcome, DOCTOR_FAILED);
    FILE_IS(place, HALT_POLL_START, "50000\n");
    FILE_IS(place, KEPT, ALL_KEPT);
    assert_int_equal(unlink(path), 0);
    file_put(place, HALT_POLL, "200000\n");
    assert_int_equal(undo(place, &changes, problem), 0);
    assert_int_equal(changes.rows[1].outcome, DOCTOR_SAME);
    expect_first_values(place);
    FILE_IS(place, KEPT, "");
}

static void test_one_at_a_time(void **state) {
    struct doctor_changes changes;
    struct folder_lock *lock;
    struct place *place = *state;
    char problem[DOCTOR_PROBLEM_BYTES];

    machine_make(place);
    file_put(place, DOCTOR_KEPT_FOLDER "/lock", "");
    assert_int_equal(folder_lock_open(place->env, &DOCTOR_KEPT_FOLDER "/lock"[1], &lock), 0);
    assert_int_equal(fix(place, true, &changes, problem), -ERR_IN_USE);
    assert_non_null(strstr(problem, "another"));
    expect_first_values(place);
    folder_lock_close(lock);
    assert_int_equal(fix(place, true, &changes, problem), 0);
    expect_mended(place);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_fix_and_undo, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_undo_leaves_what_others_set, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_second_fix, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_fix_after_an_older_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_persist, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refusals, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bad_kept_files, set_up, tear_down),
        cmocka_unit_test(test_kept_sizes),
        cmocka_unit_test_setup_teardown(test_container, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_value_that_is_not_taken, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_one_at_a_time, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
