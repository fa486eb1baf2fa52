/* What each setting is and should be. Nothing here changes anything, or waits. */
#include "host/doctor.h"
#include "host/doctor_files.h"
#include "host/process.h"
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* How long an idle CPU should poll: about what two wake-ups of one that halts cost. */
enum { HALT_POLL_NS = 200000 };
/* A request of the mount is as large at most. */
enum { READ_AHEAD_KIB = 1024 };
/* Waking up from deeper sleep costs more than a small request does. */
enum { SLEEP_US_MAX = 20 };
/* connections_max and as many again for files, threads and mounts. */
enum { OPEN_FILES = 8192 };
/* io_uring's rings of all threads, which kernels before 5.12 count. */
#define LOCKED_BYTES (8 * MIB)
/* The rings of a node with the defaults, 192 MiB, and some room. */
#define SHARED_BYTES (256 * MIB)
enum { SLEEP_STATES_MAX = 16 };

static const char *const names[DOCTOR_SETTING_COUNT] = {
    [DOCTOR_URING] = "enable_uring",
    [DOCTOR_HALT_POLL] = "guest_halt_poll_ns",
    [DOCTOR_HALT_POLL_START] = "guest_halt_poll_grow_start",
    [DOCTOR_SLEEP] = "idle_sleep_us",
    [DOCTOR_READ_AHEAD] = "read_ahead_kb",
    [DOCTOR_OPEN_FILES] = "open_files",
    [DOCTOR_LOCKED_MEMORY] = "locked_memory",
    [DOCTOR_HUGE_PAGES] = "huge_pages",
    [DOCTOR_WRITE_CACHE] = "write_cache",
    [DOCTOR_SHARED_MEMORY] = "shared_memory",
};

const char *doctor_setting_name(enum doctor_setting setting) {
    return names[setting];
}

const char *doctor_root(void) {
    const char *root = process_variable("SHOAL_MACHINE_ROOT");

    return root ? root : "";
}

struct doctor_look {
    const char *root;
    struct doctor_table *table;
    bool is_sys_read_only;
    bool has_shared_memory;
    char shared_options[256]; /* of /dev/shm */
    size_t mount_count;
    size_t disk_count;
};

static struct doctor_row *row_add(struct doctor_look *look, enum doctor_setting setting) {
    struct doctor_row *row = &look->table->rows[look->table->count++];

    row->setting = setting;
    return row;
}

static void row_set_error(struct doctor_row *row, int error) {
    row->error = error;
    row->state =
        error == -ERR_NOT_FOUND || error == -ERR_NOT_DIRECTORY ? DOCTOR_ABSENT : DOCTOR_UNREADABLE;
}

/* False where it is not a number. */
static bool number_parse(const char *text, uint64_t *ret_number) {
    size_t size = strlen(text);

    if (size == 0 || size > 19 || strspn(text, "0123456789") != size) {
        return false;
    }
    *ret_number = strtoull(text, NULL, 10);
    return true;
}

static void bytes_print(uint64_t bytes, char ret_text[DOCTOR_VALUE_BYTES]) {
    if (bytes >= GIB) {
        snprintf(ret_text, DOCTOR_VALUE_BYTES, "%.1f GiB", (double)bytes / (double)GIB);
    } else if (bytes >= MIB) {
        snprintf(ret_text, DOCTOR_VALUE_BYTES, "%" PRIu64 " MiB", bytes / MIB);
    } else {
        snprintf(ret_text, DOCTOR_VALUE_BYTES, "%" PRIu64 " KiB", bytes / KIB);
    }
}

/* What doctor_fix may change is looked at for that as well. */
static void row_ask_denied(struct doctor_look *look, struct doctor_row *row) {
    row->is_changed_by_fix = true;
    if (row->state != DOCTOR_ABSENT) {
        row->denied =
            look->is_sys_read_only ? -ERR_READ_ONLY : doctor_value_denied(look->root, row->path);
    }
}

/* Whether mounts are offered io_uring. None of its values costs anything: a mount that may sets it
 * by itself, and /dev/fuse is as good for some loads. */
static void look_at_uring(struct doctor_look *look) {
    struct doctor_row *row = row_add(look, DOCTOR_URING);
    char disabled[DOCTOR_VALUE_BYTES];

    snprintf(row->path, sizeof row->path, "/sys/module/fuse/parameters/enable_uring");
    snprintf(row->wanted, sizeof row->wanted, "Y");
    int r = doctor_value_read(look->root, row->path, row->value);
    if (r == 0 && strcmp(row->value, "Y") != 0 && strcmp(row->value, "N") != 0) {
        r = -ERR_MALFORMED;
    }
    if (r < 0) {
        row_set_error(row, r);
        return;
    }
    row->state = DOCTOR_GOOD;
    if (doctor_value_read(look->root, "/proc/sys/kernel/io_uring_disabled", disabled) == 0 &&
        strcmp(disabled, "2") == 0) {
        snprintf(row->value, sizeof row->value, DOCTOR_URING_DISABLED);
    }
}

/* A file with a number that should be at least so large. */
static void look_at_number(struct doctor_look *look, struct doctor_row *row, uint64_t wanted) {
    uint64_t number = 0;

    snprintf(row->wanted, sizeof row->wanted, "%" PRIu64, wanted);
    int r = doctor_value_read(look->root, row->path, row->value);
    if (r == 0 && !number_parse(row->value, &number)) {
        r = -ERR_MALFORMED;
    }
    if (r < 0) {
        row_set_error(row, r);
    } else {
        row->state = number >= wanted ? DOCTOR_GOOD : DOCTOR_COSTS;
    }
    row_ask_denied(look, row);
}

/* Idle CPUs do as these settings say where the governor that has them decides, for a driver that
 * asks it. A kernel that tells neither is taken for one. */
static bool halt_poll_is_used(struct doctor_look *look) {
    char driver[DOCTOR_VALUE_BYTES];
    char governor[DOCTOR_VALUE_BYTES];

    if (doctor_value_read(look->root, "/sys/devices/system/cpu/cpuidle/current_driver", driver) <
            0 ||
        doctor_value_read(look->root, "/sys/devices/system/cpu/cpuidle/current_governor_ro",
                          governor) < 0) {
        return true;
    }
    return strcmp(driver, "none") != 0 && strcmp(governor, "haltpoll") == 0;
}

static void look_at_halt_poll(struct doctor_look *look) {
    bool is_used = halt_poll_is_used(look);

    for (enum doctor_setting i = DOCTOR_HALT_POLL; i <= DOCTOR_HALT_POLL_START; i++) {
        struct doctor_row *row = row_add(look, i);

        snprintf(row->path, sizeof row->path, "/sys/module/haltpoll/parameters/%s", names[i]);
        look_at_number(look, row, HALT_POLL_NS);
        if (!is_used && (row->state == DOCTOR_GOOD || row->state == DOCTOR_COSTS)) {
            row->state = DOCTOR_UNUSED;
        }
    }
}

/* One sleep of the first CPU, which stands for all. True: it is allowed, and takes latency_us to
 * wake up from. */
static bool sleep_read(struct doctor_look *look, unsigned index, char name[DOCTOR_VALUE_BYTES],
                       uint64_t *ret_latency_us) {
    static const char *const files[] = {"disable", "latency", "name"};
    char values[ARRAY_SIZE(files)][DOCTOR_VALUE_BYTES];
    char path[DOCTOR_PATH_BYTES];
    uint64_t is_disabled;

    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cpuidle/state%u/%s", index,
                 files[i]);
        if (doctor_value_read(look->root, path, values[i]) < 0) {
            return false;
        }
    }
    memcpy(name, values[2], DOCTOR_VALUE_BYTES);
    return number_parse(values[0], &is_disabled) && is_disabled == 0 &&
           number_parse(values[1], ret_latency_us);
}

static void look_at_sleep(struct doctor_look *look) {
    struct doctor_row *row = row_add(look, DOCTOR_SLEEP);
    char name[DOCTOR_VALUE_BYTES];
    uint64_t deepest_us = 0;
    uint64_t latency_us;

    row->state = DOCTOR_ABSENT;
    snprintf(row->wanted, sizeof row->wanted, "up to %d us", (int)SLEEP_US_MAX);
    for (unsigned i = 0; i < SLEEP_STATES_MAX; i++) {
        if (sleep_read(look, i, name, &latency_us) &&
            (row->state == DOCTOR_ABSENT || latency_us >= deepest_us)) {
            deepest_us = latency_us;
            row->state = latency_us > SLEEP_US_MAX ? DOCTOR_COSTS : DOCTOR_GOOD;
            snprintf(row->value, sizeof row->value, "%.32s, %" PRIu64 " us", name, latency_us);
        }
    }
}

/* What soft and hard limit a process has, by a line of /proc/self/limits; the hard one counts, as
 * a daemon raises the soft one. */
static int limit_read(struct doctor_look *look, const char *title,
                      char ret_value[DOCTOR_VALUE_BYTES]) {
    char line[256];
    char hard[32];
    FILE *file;
    int r = doctor_file_open(look->root, "/proc/self/limits", &file);

    if (r < 0) {
        return r;
    }
    r = -ERR_NOT_FOUND;
    while (r == -ERR_NOT_FOUND && fgets(line, sizeof line, file)) {
        if (strncmp(line, title, strlen(title)) == 0) {
            r = sscanf(line + strlen(title), "%*31s %31s", hard) == 1 ? 0 : -ERR_MALFORMED;
        }
    }
    fclose(file);
    if (r == 0) {
        snprintf(ret_value, DOCTOR_VALUE_BYTES, "%s", hard);
    }
    return r;
}

static void look_at_limit(struct doctor_look *look, enum doctor_setting setting, const char *title,
                          uint64_t wanted) {
    struct doctor_row *row = row_add(look, setting);
    uint64_t number = UINT64_MAX;
    bool in_bytes = setting == DOCTOR_LOCKED_MEMORY;
    int r = limit_read(look, title, row->value);

    if (r == 0 && strcmp(row->value, "unlimited") != 0 && !number_parse(row->value, &number)) {
        r = -ERR_MALFORMED;
    }
    if (in_bytes) {
        bytes_print(wanted, row->wanted);
    } else {
        snprintf(row->wanted, sizeof row->wanted, "%" PRIu64, wanted);
    }
    if (r < 0) {
        row_set_error(row, r);
        return;
    }
    if (in_bytes && number != UINT64_MAX) {
        bytes_print(number, row->value);
    }
    row->state = number >= wanted ? DOCTOR_GOOD : DOCTOR_UNSAFE;
}

/* always [madvise] never: the word in brackets. */
static void look_at_huge_pages(struct doctor_look *look) {
    struct doctor_row *row = row_add(look, DOCTOR_HUGE_PAGES);
    char words[DOCTOR_VALUE_BYTES];

    snprintf(row->path, sizeof row->path, "/sys/kernel/mm/transparent_hugepage/enabled");
    snprintf(row->wanted, sizeof row->wanted, "madvise or always");
    int r = doctor_value_read(look->root, row->path, words);
    const char *begin = r == 0 ? strchr(words, '[') : NULL;
    const char *end = begin ? strchr(begin, ']') : NULL;
    if (r == 0 && !end) {
        r = -ERR_MALFORMED;
    }
    if (r < 0) {
        row_set_error(row, r);
        return;
    }
    snprintf(row->value, sizeof row->value, "%.*s", (int)(end - begin - 1), begin + 1);
    row->state = strcmp(row->value, "never") == 0 ? DOCTOR_COSTS : DOCTOR_GOOD;
}

struct disk_look {
    const char *root;
    const char *disk;
    char type[DOCTOR_VALUE_BYTES];
};

static bool look_at_scsi(void *context, const char *name) {
    struct disk_look *look = context;
    char path[DOCTOR_PATH_BYTES];

    snprintf(path, sizeof path, "/sys/block/%.32s/device/scsi_disk/%.32s/cache_type", look->disk,
             name);
    return doctor_value_read(look->root, path, look->type) < 0;
}

/* What a disk says of itself, which "queue/write_cache" may belie: of virtio beside its queue, of
 * SCSI at its device. Empty: it says nothing. */
static void disk_type_read(struct disk_look *look) {
    char path[DOCTOR_PATH_BYTES];

    snprintf(path, sizeof path, "/sys/block/%.32s/cache_type", look->disk);
    if (doctor_value_read(look->root, path, look->type) < 0) {
        snprintf(path, sizeof path, "/sys/block/%.32s/device/scsi_disk", look->disk);
        doctor_folder_walk(look->root, path, look_at_scsi, look);
    }
}

/* A disk with a cache that the kernel takes for one without gets no flush. */
static bool look_at_disk(void *context, const char *disk) {
    struct doctor_look *look = context;
    struct disk_look own = {.root = look->root, .disk = disk};
    char path[DOCTOR_PATH_BYTES];

    snprintf(path, sizeof path, "/sys/block/%.32s/device", disk);
    if (strlen(disk) > 32 || !doctor_file_exists(look->root, path)) {
        return true; /* A loop device, and what is made of other disks. */
    }
    if (look->disk_count++ == DOCTOR_DISKS_MAX) {
        return false;
    }
    struct doctor_row *row = row_add(look, DOCTOR_WRITE_CACHE);
    snprintf(row->of, sizeof row->of, "%s", disk);
    snprintf(row->path, sizeof row->path, "/sys/block/%.32s/queue/write_cache", disk);
    disk_type_read(&own);
    snprintf(row->wanted, sizeof row->wanted, "%s", own.type[0] ? own.type : "as the disk says");
    int r = doctor_value_read(look->root, row->path, row->value);
    if (r < 0) {
        row_set_error(row, r);
    } else {
        row->state = strcmp(row->value, "write through") == 0 && strcmp(own.type, "write back") == 0
                         ? DOCTOR_UNSAFE
                         : DOCTOR_GOOD;
    }
    return true;
}

static void look_at_disks(struct doctor_look *look) {
    size_t before = look->table->count;

    doctor_folder_walk(look->root, "/sys/block", look_at_disk, look);
    if (look->table->count == before) {
        row_add(look, DOCTOR_WRITE_CACHE)->state = DOCTOR_ABSENT;
    }
}

static int memory_read(struct doctor_look *look, uint64_t *ret_bytes) {
    unsigned long long kib = 0;
    char line[256];
    FILE *file;
    int r = doctor_file_open(look->root, "/proc/meminfo", &file);

    if (r < 0) {
        return r;
    }
    while (kib == 0 && fgets(line, sizeof line, file)) {
        (void)!sscanf(line, "MemTotal: %llu kB", &kib);
    }
    fclose(file);
    if (kib == 0) {
        return -ERR_MALFORMED;
    }
    *ret_bytes = (uint64_t)kib * KIB;
    return 0;
}

/* Its options tell a size other than half of the memory; 0 is none. */
static int shared_size(struct doctor_look *look, uint64_t *ret_bytes) {
    const char *size = strstr(look->shared_options, "size=");
    unsigned long long kib;
    char unit;

    if (!look->has_shared_memory) {
        return -ERR_NOT_FOUND;
    }
    if (!size) {
        uint64_t memory_bytes;
        int r = memory_read(look, &memory_bytes);

        if (r == 0) {
            *ret_bytes = memory_bytes / 2;
        }
        return r;
    }
    if (sscanf(size, "size=%llu%c", &kib, &unit) != 2 || unit != 'k') {
        return -ERR_MALFORMED;
    }
    *ret_bytes = kib > 0 ? (uint64_t)kib * KIB : UINT64_MAX;
    return 0;
}

static void look_at_shared_memory(struct doctor_look *look) {
    struct doctor_row *row = row_add(look, DOCTOR_SHARED_MEMORY);
    uint64_t bytes = 0;
    int r = shared_size(look, &bytes);

    snprintf(row->of, sizeof row->of, "/dev/shm");
    bytes_print(SHARED_BYTES, row->wanted);
    if (r < 0) {
        row_set_error(row, r);
        return;
    }
    if (bytes == UINT64_MAX) {
        snprintf(row->value, sizeof row->value, "unlimited");
    } else {
        bytes_print(bytes, row->value);
    }
    row->state = bytes >= SHARED_BYTES ? DOCTOR_GOOD : DOCTOR_UNSAFE;
}

/* Of a mount that is at two places once. */
static bool is_read_ahead_looked_at(struct doctor_look *look, const char *path) {
    for (size_t i = 0; i < look->table->count; i++) {
        if (strcmp(look->table->rows[i].path, path) == 0) {
            return true;
        }
    }
    return false;
}

static bool has_control(const char *text) {
    while (*text && !iscntrl((unsigned char)*text)) {
        text++;
    }
    return *text != '\0';
}

static void look_at_read_ahead(struct doctor_look *look, const struct doctor_mount *mount) {
    char path[DOCTOR_PATH_BYTES];

    snprintf(path, sizeof path, "/sys/class/bdi/%u:%u/read_ahead_kb", mount->major, mount->minor);
    if (strlen(mount->place) >= DOCTOR_OF_BYTES || has_control(mount->place) ||
        is_read_ahead_looked_at(look, path) || look->mount_count == DOCTOR_MOUNTS_MAX) {
        return;
    }
    look->mount_count++;
    struct doctor_row *row = row_add(look, DOCTOR_READ_AHEAD);
    snprintf(row->path, sizeof row->path, "%s", path);
    snprintf(row->of, sizeof row->of, "%s", mount->place);
    look_at_number(look, row, READ_AHEAD_KIB);
}

/* What one line of the mounts says of the whole machine. */
static void look_at_mount(struct doctor_look *look, const struct doctor_mount *mount) {
    if (strcmp(mount->place, "/sys") == 0) {
        look->is_sys_read_only =
            doctor_option_is(mount->options, "ro") || doctor_option_is(mount->super_options, "ro");
    }
    if (strcmp(mount->place, "/dev/shm") == 0) {
        look->has_shared_memory = strcmp(mount->kind, "tmpfs") == 0;
        snprintf(look->shared_options, sizeof look->shared_options, "%s", mount->super_options);
    }
}

/* Shoal's own, or all others. */
static int look_at_mounts(struct doctor_look *look, bool is_ours) {
    struct doctor_mount mount;
    char *line = NULL;
    size_t capacity = 0;
    FILE *file;
    int r = doctor_file_open(look->root, "/proc/self/mountinfo", &file);

    if (r < 0) {
        return r;
    }
    while (getline(&line, &capacity, file) > 0) {
        if (!doctor_mount_parse(line, &mount)) {
            continue;
        }
        bool is_shoal = strcmp(mount.kind, "fuse.shoal") == 0;
        if (is_shoal && is_ours) {
            look_at_read_ahead(look, &mount);
        } else if (!is_shoal && !is_ours) {
            look_at_mount(look, &mount);
        }
    }
    free(line);
    fclose(file);
    return 0;
}

/* What those who make containers leave in them. */
static bool is_container(const char *root) {
    static const char *const marks[] = {"/.dockerenv", "/run/.containerenv",
                                        "/run/systemd/container"};

    for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
        if (doctor_file_exists(root, marks[i])) {
            return true;
        }
    }
    return false;
}

int doctor_table_new(const char *root, struct doctor_table **ret_table) {
    struct doctor_table *table = calloc(1, sizeof *table);
    struct doctor_look look = {.root = root, .table = table};

    if (!table) {
        return -ERR_NO_MEMORY;
    }
    int r = look_at_mounts(&look, false);
    look_at_uring(&look);
    look_at_halt_poll(&look);
    look_at_sleep(&look);
    if (r == 0) {
        r = look_at_mounts(&look, true);
    }
    if (look.mount_count == 0) {
        struct doctor_row *row = row_add(&look, DOCTOR_READ_AHEAD);

        row->is_changed_by_fix = true;
        row_set_error(row, r < 0 ? r : -ERR_NOT_FOUND);
    }
    look_at_limit(&look, DOCTOR_OPEN_FILES, "Max open files", OPEN_FILES);
    look_at_limit(&look, DOCTOR_LOCKED_MEMORY, "Max locked memory", LOCKED_BYTES);
    look_at_huge_pages(&look);
    look_at_disks(&look);
    look_at_shared_memory(&look);
    table->in_container = is_container(root);
    *ret_table = table;
    return 0;
}

void doctor_table_free(struct doctor_table *table) {
    free(table);
}

bool doctor_row_is_fixable(const struct doctor_row *row) {
    return row->is_changed_by_fix && row->state == DOCTOR_COSTS;
}

bool doctor_brings_much(const struct doctor_table *table) {
    for (size_t i = 0; i < table->count; i++) {
        const struct doctor_row *row = &table->rows[i];

        if (row->setting == DOCTOR_HALT_POLL && strcmp(row->value, "0") == 0 &&
            doctor_row_is_fixable(row) && row->denied == 0) {
            return true;
        }
    }
    return false;
}
