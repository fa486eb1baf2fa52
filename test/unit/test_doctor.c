/* Settings of a machine that is a folder: what is found there. This machine is only timed. */
#include "doctor_machine.h"
#include "host/doctor_measure.h"
#include <fcntl.h>
#include <sched.h>

static void test_all_that_is_wrong(void **state) {
    static const struct {
        enum doctor_setting setting;
        enum doctor_state state;
        bool is_fixable;
        const char *value;
        const char *wanted;
        const char *of;
    } rows[] = {
        {DOCTOR_URING, DOCTOR_GOOD, false, "N", "Y", ""},
        {DOCTOR_HALT_POLL, DOCTOR_COSTS, true, "0", "200000", ""},
        {DOCTOR_HALT_POLL_START, DOCTOR_COSTS, true, "50000", "200000", ""},
        {DOCTOR_SLEEP, DOCTOR_COSTS, false, "C6, 133 us", "up to 20 us", ""},
        {DOCTOR_READ_AHEAD, DOCTOR_COSTS, true, "128", "1024", "/mnt/a\\040b"},
        {DOCTOR_OPEN_FILES, DOCTOR_UNSAFE, false, "1024", "8192", ""},
        {DOCTOR_LOCKED_MEMORY, DOCTOR_UNSAFE, false, "64 KiB", "8 MiB", ""},
        {DOCTOR_HUGE_PAGES, DOCTOR_COSTS, false, "never", "madvise or always", ""},
        {DOCTOR_WRITE_CACHE, DOCTOR_UNSAFE, false, "write through", "write back", "vda"},
        {DOCTOR_SHARED_MEMORY, DOCTOR_UNSAFE, false, "64 MiB", "256 MiB", "/dev/shm"},
    };
    struct place *place = *state;

    machine_make(place);
    struct doctor_table *table = table_of(place);
    assert_int_equal(table->count, ARRAY_SIZE(rows));
    assert_false(table->in_container);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const struct doctor_row *row = &table->rows[i];

        assert_int_equal(row->setting, rows[i].setting);
        assert_int_equal(row->state, rows[i].state);
        assert_int_equal(doctor_row_is_fixable(row), rows[i].is_fixable);
        assert_string_equal(row->value, rows[i].value);
        assert_string_equal(row->wanted, rows[i].wanted);
        assert_string_equal(row->of, rows[i].of);
        assert_int_equal(row->denied, 0);
    }
    doctor_table_free(table);
}

/* A machine whose idle CPUs ask another governor, or none, needs not set what moves nothing. */
static void test_halt_polls_that_nobody_asks_for(void **state) {
    static const struct {
        const char *driver; /* NULL: the kernel does not tell */
        const char *governor;
        enum doctor_state state;
    } rows[] = {
        {NULL, "menu\n", DOCTOR_COSTS},
        {"haltpoll\n", NULL, DOCTOR_COSTS},
        {"haltpoll\n", "haltpoll\n", DOCTOR_COSTS},
        {"acpi_idle\n", "haltpoll\n", DOCTOR_COSTS},
        {"intel_idle\n", "menu\n", DOCTOR_UNUSED},
        {"none\n", "haltpoll\n", DOCTOR_UNUSED},
        {"none\n", "menu\n", DOCTOR_UNUSED},
    };
    struct place *place = *state;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        machine_make(place);
        if (rows[i].driver) {
            file_put(place, IDLE_DRIVER, rows[i].driver);
        }
        if (rows[i].governor) {
            file_put(place, IDLE_GOVERNOR, rows[i].governor);
        }
        struct doctor_table *table = table_of(place);
        for (size_t j = 1; j <= 2; j++) {
            assert_int_equal(table->rows[j].state, rows[i].state);
            assert_int_equal(doctor_row_is_fixable(&table->rows[j]), rows[i].state == DOCTOR_COSTS);
        }
        assert_string_equal(table->rows[1].value, "0");
        assert_int_equal(doctor_brings_much(table), rows[i].state == DOCTOR_COSTS);
        doctor_table_free(table);
        if (rows[i].driver) {
            file_drop(place, IDLE_DRIVER);
        }
        if (rows[i].governor) {
            file_drop(place, IDLE_GOVERNOR);
        }
    }
}

static void test_all_that_is_well(void **state) {
    struct place *place = *state;

    machine_make(place);
    file_put(place, URING, "Y\n");
    file_put(place, HALT_POLL, "400000\n");
    file_put(place, HALT_POLL_START, "200000\n");
    file_put(place, READ_AHEAD, "1024\n");
    file_put(place, HUGE_PAGES, "always [madvise] never\n");
    file_put(place, SLEEP "state1/disable", "1\n");
    file_put(place, "/sys/block/vda/queue/write_cache", "write back\n");
    file_put(place, "/proc/self/limits", LIMITS("20000", "unlimited"));
    file_put(place, "/proc/self/mountinfo",
             "22 30 0:21 / /dev/shm rw - tmpfs tmpfs rw\n"
             "23 30 0:45 / /mnt rw - fuse.shoal x rw\n");
    struct doctor_table *table = table_of(place);
    for (size_t i = 0; i < table->count; i++) {
        assert_int_equal(table->rows[i].state, DOCTOR_GOOD);
        assert_false(doctor_row_is_fixable(&table->rows[i]));
    }
    assert_string_equal(row_of(table, DOCTOR_SHARED_MEMORY)->value, "512 MiB");
    assert_string_equal(row_of(table, DOCTOR_SLEEP)->value, "POLL, 0 us");
    assert_string_equal(row_of(table, DOCTOR_URING)->value, "Y");
    assert_false(doctor_brings_much(table));
    doctor_table_free(table);

    file_put(place, "/proc/sys/kernel/io_uring_disabled", "2\n");
    table = table_of(place);
    assert_string_equal(row_of(table, DOCTOR_URING)->value, DOCTOR_URING_DISABLED);
    assert_int_equal(row_of(table, DOCTOR_URING)->state, DOCTOR_GOOD);
    doctor_table_free(table);
}

/* A machine without any of it has nothing to be mended; nor does one whose files say nonsense, and
 * that is told. */
static void test_absent_and_unreadable(void **state) {
    struct place *place = *state;
    struct doctor_table *table = table_of(place);

    assert_int_equal(table->count, DOCTOR_SETTING_COUNT);
    for (size_t i = 0; i < table->count; i++) {
        assert_int_equal(table->rows[i].state, DOCTOR_ABSENT);
    }
    assert_false(doctor_brings_much(table));
    doctor_table_free(table);

    machine_make(place);
    file_put(place, URING, "perhaps\n");
    file_put(place, HALT_POLL, "-1\n");
    file_put(place, HALT_POLL_START, "99999999999999999999\n");
    file_put(place, READ_AHEAD, "\n");
    file_put(place, HUGE_PAGES, "\x01\n");
    file_put(place, "/proc/self/limits", "Max open files  1\nMax locked memory  1 many bytes\n");
    file_put(place, "/proc/self/mountinfo",
             "22 30 0:21 / /dev/shm rw - tmpfs tmpfs rw,size=50%\n"
             "23 30 0:45 / /mnt rw - fuse.shoal x rw\n");
    table = table_of(place);
    for (size_t i = 0; i < table->count; i++) {
        const struct doctor_row *row = &table->rows[i];

        if (row->setting != DOCTOR_SLEEP && row->setting != DOCTOR_WRITE_CACHE) {
            assert_int_equal(row->state, DOCTOR_UNREADABLE);
            assert_int_equal(row->error, -ERR_MALFORMED);
        }
        assert_false(doctor_row_is_fixable(row));
    }
    doctor_table_free(table);
}

/* A disk that says it has a cache, and that the kernel takes for one without, loses what was
 * synced; one that says nothing is taken by its word to the kernel. */
static void test_disks(void **state) {
    static const struct {
        const char *disk;
        const char *says; /* NULL: nothing */
        const char *is;   /* NULL: there is no such file */
        enum doctor_state state;
        const char *wanted;
    } rows[] = {
        {"nvme0n1", NULL, "write through\n", DOCTOR_GOOD, "as the disk says"},
        {"sda", "write back\n", "write through\n", DOCTOR_UNSAFE, "write back"},
        {"sdb", "write through\n", "write through\n", DOCTOR_GOOD, "write through"},
        {"sdc", "write back\n", "write back\n", DOCTOR_GOOD, "write back"},
        {"sdd", "write back\n", NULL, DOCTOR_ABSENT, "write back"},
    };
    struct place *place = *state;
    char path[128];

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        snprintf(path, sizeof path, "/sys/block/%s/device/model", rows[i].disk);
        file_put(place, path, "");
        snprintf(path, sizeof path, "/sys/block/%s/device/scsi_disk/0:0:0:0/cache_type",
                 rows[i].disk);
        if (rows[i].says) {
            file_put(place, path, rows[i].says);
        }
        snprintf(path, sizeof path, "/sys/block/%s/queue/write_cache", rows[i].disk);
        if (rows[i].is) {
            file_put(place, path, rows[i].is);
        }
    }
    struct doctor_table *table = table_of(place);
    size_t at = 0;
    for (size_t i = 0; i < table->count; i++) {
        if (table->rows[i].setting == DOCTOR_WRITE_CACHE) {
            assert_string_equal(table->rows[i].of, rows[at].disk);
            assert_int_equal(table->rows[i].state, rows[at].state);
            assert_string_equal(table->rows[i].wanted, rows[at].wanted);
            at++;
        }
    }
    assert_int_equal(at, ARRAY_SIZE(rows));
    doctor_table_free(table);
}

static void test_lines_of_mounts(void **state) {
    static const char *const bad[] = {"",
                                      "\n",
                                      "1 2 0:1 / /mnt rw",
                                      "1 2 0:1 / /mnt rw -",
                                      "1 2 0:1 / /mnt rw - fuse.shoal x",
                                      "1 2 x / /m rw - t s o",
                                      "1 2 0:1x / /m rw - t s o",
                                      "1 2 0: / /m rw - t s o"};
    struct doctor_mount mount;
    char line[128];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        snprintf(line, sizeof line, "%s", bad[i]);
        assert_false(doctor_mount_parse(line, &mount));
    }
    snprintf(line, sizeof line, "1 2 0:45 / /m ro,x shared:1 master:2 - t s rw,size=1k\n");
    assert_true(doctor_mount_parse(line, &mount));
    assert_int_equal(mount.minor, 45);
    assert_string_equal(mount.place, "/m");
    assert_string_equal(mount.kind, "t");
    assert_true(doctor_option_is(mount.options, "ro"));
    assert_true(doctor_option_is(mount.options, "x"));
    assert_false(doctor_option_is(mount.options, "o"));
    assert_false(doctor_option_is(mount.options, "rox"));
    assert_string_equal(mount.super_options, "rw,size=1k");
}

/* What `up` says rests on these two, and on nothing where they may not be changed. */
static void test_what_brings_much(void **state) {
    struct place *place = *state;
    struct doctor_table *table;

    machine_make(place);
    table = table_of(place);
    assert_true(doctor_brings_much(table));
    doctor_table_free(table);

    file_put(place, HALT_POLL, "1\n");
    table = table_of(place);
    assert_false(doctor_brings_much(table));
    doctor_table_free(table);

    file_put(place, HALT_POLL, "0\n");
    file_put(place, "/proc/self/mountinfo", MOUNTS("ro"));
    table = table_of(place);
    assert_false(doctor_brings_much(table));
    doctor_table_free(table);
}

/* A mount more than are looked at, and one whose path is too long for a row. */
static void test_many_mounts(void **state) {
    enum { EACH = 700 };
    struct place *place = *state;
    size_t size = (size_t)EACH * (DOCTOR_MOUNTS_MAX + 2);
    char *text = malloc(size);
    char path[64];
    size_t used = 0;

    used += (size_t)snprintf(text + used, size - used, "1 1 9:9 / /%0*d rw - fuse.shoal x rw\n",
                             DOCTOR_OF_BYTES, 1);
    for (unsigned i = 0; i <= DOCTOR_MOUNTS_MAX; i++) {
        used += (size_t)snprintf(text + used, size - used, "1 1 0:%u / /m%u rw - fuse.shoal x rw\n",
                                 i, i);
        snprintf(path, sizeof path, "/sys/class/bdi/0:%u/read_ahead_kb", i);
        file_put(place, path, "128\n");
    }
    file_put(place, "/proc/self/mountinfo", text);
    struct doctor_table *table = table_of(place);
    size_t count = 0;
    for (size_t i = 0; i < table->count; i++) {
        count += table->rows[i].setting == DOCTOR_READ_AHEAD;
    }
    assert_int_equal(count, DOCTOR_MOUNTS_MAX);
    doctor_table_free(table);
    free(text);
}

/* More than are looked at by one, which is told of when another one is gone. */
static void test_many_disks(void **state) {
    struct place *place = *state;
    char path[128];

    for (unsigned i = 0; i <= DOCTOR_DISKS_MAX; i++) {
        snprintf(path, sizeof path, "/sys/block/sd%u/device/model", i);
        file_put(place, path, "");
        snprintf(path, sizeof path, "/sys/block/sd%u/queue/write_cache", i);
        file_put(place, path, "write back\n");
    }
    for (int times = 0; times < 2; times++) {
        struct doctor_table *table = table_of(place);
        size_t count = 0;

        for (size_t i = 0; i < table->count; i++) {
            count += table->rows[i].setting == DOCTOR_WRITE_CACHE;
        }
        assert_int_equal(count, DOCTOR_DISKS_MAX);
        doctor_table_free(table);
        snprintf(path, sizeof path, "%s/sys/block/sd7/device/model", place->root);
        assert_int_equal(unlink(path), times == 0 ? 0 : -1);
        path[strlen(path) - strlen("/model")] = '\0';
        assert_int_equal(rmdir(path), times == 0 ? 0 : -1);
    }
}

/* Only that there are times, and that a disk is timed where it is asked for. */
static void test_measures(void **state) {
    struct place *place = *state;
    struct doctor_measures measures;

    doctor_measure(NULL, &measures);
    assert_int_equal(measures.flush_ns, 0);
    assert_true(measures.touch_small_ns > 0);
    doctor_measure("/nowhere", &measures);
    assert_int_equal(measures.flush_ns, 0);
    doctor_measure(place->root, &measures);
    /* Where /tmp takes no file without a name there is no time. */
    int fd = open(place->root, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    assert_int_equal(measures.flush_ns > 0, fd >= 0);
    assert_int_equal(fd >= 0 ? close(fd) : 0, 0);
    cpu_set_t allowed;
    assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    bool has_two = CPU_COUNT(&allowed) > 1;
    assert_int_equal(measures.wake_idle_ns > 0, has_two);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_all_that_is_wrong, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_halt_polls_that_nobody_asks_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_all_that_is_well, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_absent_and_unreadable, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_disks, set_up, tear_down),
        cmocka_unit_test(test_lines_of_mounts),
        cmocka_unit_test_setup_teardown(test_what_brings_much, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_many_mounts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_many_disks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_measures, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
