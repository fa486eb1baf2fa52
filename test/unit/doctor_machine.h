/* A folder that stands for a machine, for tests of doctor. */
#pragma once
#include "env_place.h"
#include "host/doctor.h"
#include "host/doctor_files.h"
#include "host/plain_file.h"

#define URING "/sys/module/fuse/parameters/enable_uring"
#define HALT_POLL "/sys/module/haltpoll/parameters/guest_halt_poll_ns"
#define HALT_POLL_START "/sys/module/haltpoll/parameters/guest_halt_poll_grow_start"
#define IDLE_DRIVER "/sys/devices/system/cpu/cpuidle/current_driver"
#define IDLE_GOVERNOR "/sys/devices/system/cpu/cpuidle/current_governor_ro"
#define READ_AHEAD "/sys/class/bdi/0:45/read_ahead_kb"
#define HUGE_PAGES "/sys/kernel/mm/transparent_hugepage/enabled"
#define SLEEP "/sys/devices/system/cpu/cpu0/cpuidle/"
#define KEPT DOCTOR_KEPT_FOLDER "/" DOCTOR_KEPT_NAME
#define CONF DOCTOR_CONF_FOLDER "/" DOCTOR_CONF_NAME

static inline void file_put(const struct place *place, const char *path, const char *text) {
    char whole[DOCTOR_FILE_BYTES];
    char *slash;

    assert_int_equal(doctor_path(place->root, path, whole), 0);
    slash = strrchr(whole, '/');
    *slash = '\0';
    assert_int_equal(plain_file_make_directories(whole), 0);
    *slash = '/';
    FILE *file = fopen(whole, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static inline void file_drop(const struct place *place, const char *path) {
    char whole[DOCTOR_FILE_BYTES];

    assert_int_equal(doctor_path(place->root, path, whole), 0);
    assert_int_equal(plain_file_unlink(whole), 0);
}

/* All of it; empty where there is none. */
static inline const char *file_text(const struct place *place, const char *path) {
    static char text[4096];
    char *found;
    size_t size;

    text[0] = '\0';
    if (folder_file_read(place->env, path + 1, sizeof text - 1, &found, &size) == 0) {
        memcpy(text, found, size + 1);
        free(found);
    }
    return text;
}

#define FILE_IS(place, path, text) assert_string_equal(file_text(place, path), text)

#define MOUNTS(sys)                                                                                \
    "21 30 0:20 / /sys " sys ",nosuid - sysfs sysfs rw\n"                                          \
    "22 30 0:21 / /dev/shm rw - tmpfs tmpfs rw,size=65536k\n"                                      \
    "23 30 0:45 / /mnt/a\\040b rw,noatime shared:7 - fuse.shoal /var/lib/shoal rw,user_id=0\n"     \
    "24 30 0:45 / /elsewhere rw - fuse.shoal /var/lib/shoal rw\n"                                  \
    "25 30 0:46 / /other rw - fuse.sshfs sshfs rw\n"                                               \
    "not a line\n"

#define LIMITS(files, memory)                                                                      \
    "Limit                     Soft Limit           Hard Limit           Units     \n"             \
    "Max open files            1024                 " files "                files     \n"         \
    "Max locked memory         65536                " memory "                bytes     \n"

/* A machine with all that is wrong. */
static inline void machine_make(const struct place *place) {
    file_put(place, URING, "N\n");
    file_put(place, HALT_POLL, "0\n");
    file_put(place, HALT_POLL_START, "50000\n");
    file_put(place, READ_AHEAD, "128\n");
    file_put(place, HUGE_PAGES, "always madvise [never]\n");
    file_put(place, SLEEP "state0/name", "POLL\n");
    file_put(place, SLEEP "state0/latency", "0\n");
    file_put(place, SLEEP "state0/disable", "0\n");
    file_put(place, SLEEP "state1/name", "C6\n");
    file_put(place, SLEEP "state1/latency", "133\n");
    file_put(place, SLEEP "state1/disable", "0\n");
    file_put(place, "/sys/block/vda/device/uevent", "");
    file_put(place, "/sys/block/vda/cache_type", "write back\n");
    file_put(place, "/sys/block/vda/queue/write_cache", "write through\n");
    file_put(place, "/sys/block/loop0/queue/write_cache", "write through\n");
    file_put(place, "/proc/self/mountinfo", MOUNTS("rw"));
    file_put(place, "/proc/self/limits", LIMITS("1024", "65536"));
    file_put(place, "/proc/meminfo", "MemTotal:        1048576 kB\nMemFree: 1 kB\n");
    file_put(place, DOCTOR_CONF_FOLDER "/other.conf", "");
}

static inline struct doctor_table *table_of(const struct place *place) {
    struct doctor_table *table;

    assert_int_equal(doctor_table_new(place->root, &table), 0);
    return table;
}

/* The only row about it. */
static inline const struct doctor_row *row_of(const struct doctor_table *table,
                                              enum doctor_setting setting) {
    const struct doctor_row *found = NULL;

    for (size_t i = 0; i < table->count; i++) {
        if (table->rows[i].setting == setting) {
            assert_null(found);
            found = &table->rows[i];
        }
    }
    assert_non_null(found);
    return found;
}
