/* Short measurements of what settings decide. Each has a number of turns, and a time after which it
 * goes by those that it has, once they are TURNS_MIN. */
#include "host/doctor_measure.h"
#include "host/machine.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { TURNS_MAX = 1000, TURNS_MIN = 10 };
enum { WAKE_TURNS = 200, ASLEEP_TURNS = 50, FLUSH_TURNS = 50, TOUCH_TURNS = 20 };
#define BUDGET_NS (500 * NS_PER_MS)
#define IDLE_NS (100 * NS_PER_US)
#define ASLEEP_NS (5 * NS_PER_MS)
/* Longer than any wake-up: whoever waits for that gives up the measurement. */
#define LOST_NS (2 * NS_PER_S)
#define TOUCH_BYTES (8 * MIB)
#define HUGE_BYTES (2 * MIB)

struct time_samples {
    size_t count;
    uint64_t end_ns;
    uint64_t ns[TURNS_MAX];
};

static void samples_begin(struct time_samples *samples) {
    samples->count = 0;
    samples->end_ns = machine_clock_ns() + BUDGET_NS;
}

static bool samples_add(struct time_samples *samples, uint64_t ns) {
    samples->ns[samples->count++] = ns;
    return samples->count < TURNS_MIN ||
           (samples->count < TURNS_MAX && machine_clock_ns() < samples->end_ns);
}

static int by_size(const void *a, const void *b) {
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;

    return (left > right) - (left < right);
}

static uint64_t samples_median(struct time_samples *samples) {
    if (samples->count < TURNS_MIN) {
        return 0;
    }
    qsort(samples->ns, samples->count, sizeof samples->ns[0], by_size);
    return MAX(samples->ns[samples->count / 2], (uint64_t)1);
}

/* Two CPUs that this process may use, as far apart as their numbers are; false: there is one. */
static bool cpus_choose(unsigned ret_cpus[2]) {
    cpu_set_t allowed;
    bool is_first = true;

    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
        return false;
    }
    for (unsigned i = 0; i < CPU_SETSIZE; i++) {
        if (CPU_ISSET(i, &allowed)) {
            ret_cpus[is_first ? 0 : 1] = i;
            ret_cpus[1] = i;
            is_first = false;
        }
    }
    return !is_first && ret_cpus[0] != ret_cpus[1];
}

/* The two threads: one here, on a CPU of its own, and a sleeper. */
struct wake_pair {
    int ask; /* an event counter */
    atomic_bool ends;
    atomic_bool is_kept_awake; /* by a thread that may run at the lowest class */
    _Atomic uint64_t woken_ns;
    struct time_samples *samples;
};

static bool event_put(int fd) {
    uint64_t one = 1;

    return write(fd, &one, sizeof one) == sizeof one;
}

static bool event_take(int fd) {
    uint64_t count;
    ssize_t got;

    do {
        got = read(fd, &count, sizeof count);
    } while (got < 0 && errno == EINTR);
    return got == sizeof count;
}

static void *sleeper_main(void *context) {
    struct wake_pair *pair = context;

    while (event_take(pair->ask) && !atomic_load(&pair->ends)) {
        atomic_store(&pair->woken_ns, machine_clock_ns());
    }
    return NULL;
}

static void *spinner_main(void *context) {
    struct wake_pair *pair = context;
    const struct sched_param none = {.sched_priority = 0};

    /* Of an ordinary class it would be in the way of the one that is woken. */
    if (sched_setscheduler(0, SCHED_IDLE, &none) == 0) {
        atomic_store(&pair->is_kept_awake, true);
        while (!atomic_load(&pair->ends)) {
        }
    }
    return NULL;
}

static bool thread_start_on(unsigned cpu, void *(*run)(void *), struct wake_pair *pair,
                            pthread_t *ret_thread) {
    pthread_attr_t attributes;
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (pthread_attr_init(&attributes) != 0) {
        return false;
    }
    bool is_started = pthread_attr_setaffinity_np(&attributes, sizeof set, &set) == 0 &&
                      pthread_create(ret_thread, &attributes, run, pair) == 0;
    pthread_attr_destroy(&attributes);
    return is_started;
}

/* Awake for so long, so that only the other CPU is idle. */
static void spin(uint64_t ns) {
    uint64_t end_ns = machine_clock_ns() + ns;

    while (machine_clock_ns() < end_ns) {
    }
}

static bool wake_once(struct wake_pair *pair, uint64_t idle_ns) {
    uint64_t woken_ns;

    atomic_store(&pair->woken_ns, 0);
    spin(idle_ns);
    uint64_t begin_ns = machine_clock_ns();
    if (!event_put(pair->ask)) {
        return false;
    }
    while ((woken_ns = atomic_load(&pair->woken_ns)) == 0) {
        if (machine_clock_ns() - begin_ns > LOST_NS) {
            return false;
        }
    }
    return samples_add(pair->samples, woken_ns > begin_ns ? woken_ns - begin_ns : 0);
}

struct wake_case {
    unsigned turns;
    unsigned cpu;     /* of the sleeper */
    uint64_t idle_ns; /* before each */
    bool is_awake;    /* the sleeper's CPU does not halt */
};

static uint64_t meet(const struct wake_case *meeting, struct time_samples *samples) {
    struct wake_pair pair = {.ask = eventfd(0, EFD_CLOEXEC), .samples = samples};
    pthread_t sleeper;
    pthread_t spinner;
    bool has_spinner = false;
    bool goes_on = pair.ask >= 0 && thread_start_on(meeting->cpu, sleeper_main, &pair, &sleeper);
    bool has_sleeper = goes_on;

    samples_begin(samples);
    if (goes_on && meeting->is_awake) {
        has_spinner = thread_start_on(meeting->cpu, spinner_main, &pair, &spinner);
        goes_on = has_spinner;
    }
    for (unsigned i = 0; goes_on && i < meeting->turns; i++) {
        goes_on = wake_once(&pair, meeting->idle_ns);
    }
    atomic_store(&pair.ends, true);
    if (has_sleeper) {
        (void)!event_put(pair.ask);
        pthread_join(sleeper, NULL);
    }
    if (has_spinner) {
        pthread_join(spinner, NULL);
    }
    (void)close(pair.ask);
    return meeting->is_awake && !atomic_load(&pair.is_kept_awake) ? 0 : samples_median(samples);
}

/* This thread goes by itself to one of the CPUs, and back to where it may be. */
static void measure_threads(struct time_samples *samples, struct doctor_measures *measures) {
    unsigned cpus[2];
    cpu_set_t before;
    cpu_set_t own;

    if (!cpus_choose(cpus) || sched_getaffinity(0, sizeof before, &before) != 0) {
        return;
    }
    CPU_ZERO(&own);
    CPU_SET(cpus[0], &own);
    if (sched_setaffinity(0, sizeof own, &own) != 0) {
        return;
    }
    const struct wake_case idle = {.turns = WAKE_TURNS, .cpu = cpus[1], .idle_ns = IDLE_NS};
    const struct wake_case asleep = {.turns = ASLEEP_TURNS, .cpu = cpus[1], .idle_ns = ASLEEP_NS};
    const struct wake_case awake = {
        .turns = WAKE_TURNS, .cpu = cpus[1], .idle_ns = IDLE_NS, .is_awake = true};
    measures->wake_idle_ns = meet(&idle, samples);
    measures->wake_asleep_ns = meet(&asleep, samples);
    measures->wake_awake_ns = meet(&awake, samples);
    (void)!sched_setaffinity(0, sizeof before, &before);
}

/* For 1 MiB of it. 0: no memory. */
static uint64_t touch_once(int advice) {
    size_t size = TOUCH_BYTES + HUGE_BYTES;
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED) {
        return 0;
    }
    char *begin = memory + (HUGE_BYTES - (uintptr_t)memory % HUGE_BYTES) % HUGE_BYTES;
    /* A kernel without huge pages knows neither word. */
    bool is_taken = madvise(begin, TOUCH_BYTES, advice) == 0 || advice == MADV_NOHUGEPAGE;
    uint64_t begin_ns = machine_clock_ns();
    for (size_t i = 0; i < TOUCH_BYTES; i += BLOCK_BYTES) {
        *(volatile char *)(begin + i) = 1;
    }
    uint64_t spent_ns = machine_clock_ns() - begin_ns;
    munmap(memory, size);
    return is_taken ? MAX(spent_ns / (TOUCH_BYTES / MIB), (uint64_t)1) : 0;
}

static uint64_t measure_touch(struct time_samples *samples, int advice) {
    samples_begin(samples);
    for (unsigned i = 0; i < TOUCH_TURNS; i++) {
        uint64_t ns = touch_once(advice);

        if (ns == 0 || !samples_add(samples, ns)) {
            break;
        }
    }
    return samples_median(samples);
}

/* As a disk log is written: over bytes that lie on the disk already. */
static uint64_t measure_flush(struct time_samples *samples, const char *directory) {
    static const char block[SEGMENT_BYTES];
    int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd < 0) {
        return 0;
    }
    samples_begin(samples);
    bool goes_on = pwrite(fd, block, sizeof block, 0) == sizeof block && fdatasync(fd) == 0;
    for (unsigned i = 0; goes_on && i < FLUSH_TURNS; i++) {
        uint64_t begin_ns = machine_clock_ns();

        goes_on = pwrite(fd, block, BLOCK_BYTES, 0) == BLOCK_BYTES && fdatasync(fd) == 0 &&
                  samples_add(samples, machine_clock_ns() - begin_ns);
    }
    (void)close(fd);
    return samples_median(samples);
}

/* As /sys/block has it: a partition's folder lies in that of its disk. */
static void disk_find(const char *directory, char ret_disk[32]) {
    char device[64];
    char part[80];
    struct stat status;

    if (stat(directory, &status) != 0) {
        return;
    }
    snprintf(device, sizeof device, "/sys/dev/block/%u:%u", major(status.st_dev),
             minor(status.st_dev));
    snprintf(part, sizeof part, "%s/partition", device);
    char *path = realpath(device, NULL);
    char *name = path ? strrchr(path, '/') : NULL;
    if (name && access(part, F_OK) == 0) {
        *name = '\0';
        name = strrchr(path, '/');
    }
    if (name && strlen(name + 1) < 32) {
        snprintf(ret_disk, 32, "%s", name + 1);
    }
    free(path);
}

void doctor_measure(const char *directory, struct doctor_measures *ret_measures) {
    struct time_samples *samples = malloc(sizeof *samples);

    *ret_measures = (struct doctor_measures){.flush_ns = 0};
    if (!samples) {
        return;
    }
    measure_threads(samples, ret_measures);
    ret_measures->touch_small_ns = measure_touch(samples, MADV_NOHUGEPAGE);
    ret_measures->touch_huge_ns = measure_touch(samples, MADV_HUGEPAGE);
    if (directory) {
        ret_measures->flush_ns = measure_flush(samples, directory);
        disk_find(directory, ret_measures->flush_disk);
    }
    free(samples);
}
