/* The threads themselves, and the watcher. */
#include "front/fuse/channel_aside.h"
#include "front/fuse/channel_thread_internal.h"
#include "front/fuse/channel_wakeup.h"
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TASKS "/proc/self/task"

enum {
    STREAK = 8,
    OTHERS_EACH = 4, /* what another program's request counts, of which one of its own takes one */
    OTHERS_MAX = 16, /* then it is not the only one */
    MISSES_MAX = 2,  /* then the program may be elsewhere */
    MOVES_MAX = 8,   /* in so many requests: it does not stay where it is */
    MOVES_EVERY = 256,
    ALONE_EVERY = 32,  /* requests: whether it still is */
    HEIRS_EVERY = 256, /* looks */
    REST_LOOKS = 3,
    REST_NS = 100000000,
    TASKS_BYTES = 4096,
    LOOK_NS = 4000000,
    BACKOFF_LEAST_NS = 10000000,
    BACKOFF_MOST_NS = 320000000,
    LONG_NS = 50000000, /* who stood aside so long did so for good reason */
    MEASURE_S = 10,
    MEASURE_CHEAP_S = 1, /* another program may have kept the CPU awake */
    STAT_BYTES = 512,
    STAT_STATE = 0, /* fields behind the name, in parentheses: proc(5) */
    STAT_CPU = 36,
};

struct aside {
    struct env *env;
    pthread_t watcher;
    bool may_enter;   /* threads may stand aside */
    cpu_set_t cpus;   /* of the process */
    uint64_t dear_ns; /* as aside_open's */
    uint64_t many_ns;
    _Atomic uint64_t wakeup_ns;   /* what waking another CPU takes; 0: not known */
    _Atomic uint64_t measured_ns; /* when that was measured; 0: it is wanted */
    pthread_mutex_t mutex;        /* guards what follows */
    pthread_cond_t changed;
    bool is_over;
    bool sleeps;        /* nobody stands aside, or wants to */
    nlink_t tasks_seen; /* the watcher's, as what follows */
    unsigned looks;
    _Atomic unsigned count; /* changes with the mutex */
    unsigned count_max;
    struct aside_thread *threads[];
};

static int policy_set(int thread_id, int policy) {
    const struct sched_param none = {0};

    return sched_setscheduler(thread_id, policy, &none);
}

char aside_stat_field(const char *text, unsigned field, int *ret_number) {
    const char *at = strrchr(text, ')');

    for (unsigned i = 0; at && i <= field; i++) {
        at = strchr(at + 1, ' ');
    }
    if (!at) {
        return 0;
    }
    *ret_number = (int)strtol(at + 1, NULL, 10);
    return at[1];
}

/* Likewise of /proc/ID/stat; 0: not to be had. */
static char stat_field(uint32_t id, unsigned field, int *ret_number) {
    char path[32];
    char text[STAT_BYTES];

    (void)snprintf(path, sizeof path, "/proc/%u/stat", id);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    ssize_t size = read(fd, text, sizeof text - 1);
    close(fd);
    text[MAX(size, 0)] = '\0';
    return aside_stat_field(text, field, ret_number);
}

static int cpu_of(uint32_t program) {
    int cpu = -1;

    return stat_field(program, STAT_CPU, &cpu) && cpu < CPU_SETSIZE ? cpu : -1;
}

static bool wants_cpu(int thread_id) {
    int number;

    return stat_field((uint32_t)thread_id, STAT_STATE, &number) == 'R';
}

/* Watching. */

static void cpus_restore(const struct aside *aside, int thread_id) {
    cpu_set_t any;

    if (sched_setaffinity(thread_id, sizeof aside->cpus, &aside->cpus) < 0) {
        /* None of these is the process's any more. */
        memset(&any, 0xff, sizeof any);
        (void)sched_setaffinity(thread_id, sizeof any, &any);
    }
}

static void thread_restore(const struct aside_thread *thread) {
    (void)policy_set(thread->thread_id, SCHED_OTHER);
    if (thread->follows) {
        cpus_restore(thread->all, thread->thread_id);
    }
}

static void backoff_set(struct aside_thread *thread, uint64_t now_ns, bool wanted_cpu) {
    if (!wanted_cpu || now_ns - thread->since_ns > LONG_NS) {
        thread->backoff_ns = 0;
    } else {
        thread->backoff_ns =
            MIN(MAX(2 * thread->backoff_ns, (uint64_t)BACKOFF_LEAST_NS), (uint64_t)BACKOFF_MOST_NS);
    }
    thread->not_before_ns = now_ns + thread->backoff_ns;
}

/* False: it does not stand aside. */
static bool thread_watch(struct aside *aside, struct aside_thread *thread) {
    int state = atomic_load(&thread->state);
    uint64_t begun = atomic_load_explicit(&thread->begun, memory_order_relaxed);

    if (state == ASIDE_NONE) {
        return false;
    }
    if (begun != thread->seen) {
        thread->seen = begun;
        return true;
    }
    if (state == ASIDE_ENTERING) {
        /* Its policy may be on its way: as it is not known to have come, once more each time. */
        (void)policy_set(thread->thread_id, SCHED_OTHER);
        return true;
    }
    bool wanted_cpu = wants_cpu(thread->thread_id);
    if (atomic_compare_exchange_strong(&thread->state, &state, ASIDE_ENDING)) {
        backoff_set(thread, env_now_ns(aside->env), wanted_cpu);
        thread_restore(thread);
        atomic_store(&thread->state, ASIDE_NONE);
    }
    return false;
}

/* Threads that the kernel makes for the I/O of one that stands aside have its policy and its CPU
 * from it, and keep them. */
static void heir_free(struct aside *aside, int thread_id) {
    for (unsigned i = 0; i < aside->count; i++) {
        if (aside->threads[i]->thread_id == thread_id) {
            return;
        }
    }
    if (sched_getscheduler(thread_id) == SCHED_IDLE) {
        (void)policy_set(thread_id, SCHED_OTHER);
        cpus_restore(aside, thread_id);
    }
}

/* Nothing here waits for memory: who has that to give may be one that gets no CPU. */
static void tasks_read(struct aside *aside, int tasks) {
    uint64_t entries[TASKS_BYTES / sizeof(uint64_t)];
    const char *names = (const char *)entries;
    long size;

    while ((size = syscall(SYS_getdents64, tasks, entries, sizeof entries)) > 0) {
        for (long at = 0; at < size;) {
            const struct dirent64 *found = (const void *)(names + at);
            int thread_id = (int)strtol(found->d_name, NULL, 10);

            if (thread_id > 0) {
                heir_free(aside, thread_id);
            }
            at += found->d_reclen;
        }
    }
}

/* Where there are more or fewer threads than before; or in any case, as they may be others. */
static void heirs_free(struct aside *aside, bool in_any_case) {
    struct stat status;
    int tasks;

    if (stat(TASKS, &status) != 0 || (status.st_nlink == aside->tasks_seen && !in_any_case &&
                                      ++aside->looks % HEIRS_EVERY != 0)) {
        return;
    }
    aside->tasks_seen = status.st_nlink;
    tasks = open(TASKS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (tasks >= 0) {
        tasks_read(aside, tasks);
        close(tasks);
    }
}

/* While nobody stands aside, and without the mutex: it takes longer where others compute. */
static void wakeup_measure(struct aside *aside) {
    pthread_mutex_unlock(&aside->mutex);
    (void)pthread_setaffinity_np(pthread_self(), sizeof aside->cpus, &aside->cpus);
    uint64_t wakeup_ns = wakeup_measure_ns(aside->env);
    if (wakeup_ns != 0) {
        atomic_store(&aside->wakeup_ns, wakeup_ns);
    }
    atomic_store(&aside->measured_ns, env_now_ns(aside->env));
    pthread_mutex_lock(&aside->mutex);
}

/* With the mutex, which it leaves meanwhile; ended by watcher_wake, too. */
static void watcher_wait(struct aside *aside, uint64_t wait_ns) {
    struct timespec until;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    uint64_t until_ns = (uint64_t)until.tv_nsec + wait_ns;
    until.tv_sec += (time_t)(until_ns / NS_PER_S);
    until.tv_nsec = (long)(until_ns % NS_PER_S);
    (void)pthread_cond_timedwait(&aside->changed, &aside->mutex, &until);
}

/* Nobody stands aside. What was made for the last one may have come late. */
static void watcher_rest(struct aside *aside, unsigned looks) {
    heirs_free(aside, true);
    aside->sleeps = true;
    if (looks < REST_LOOKS) {
        watcher_wait(aside, REST_NS);
    } else {
        pthread_cond_wait(&aside->changed, &aside->mutex);
    }
}

static void *watch(void *context) {
    struct aside *aside = context;
    unsigned rest_looks = 0;

    (void)pthread_setname_np(pthread_self(), "fuse-aside");
    channel_thread_flushes(); /* As those that wait for it. */
    pthread_mutex_lock(&aside->mutex);
    if (!aside->may_enter) {
        wakeup_measure(aside);
    }
    while (aside->may_enter && !aside->is_over) {
        bool any = false;

        for (unsigned i = 0; i < aside->count; i++) {
            any = thread_watch(aside, aside->threads[i]) || any;
        }
        aside->sleeps = false;
        rest_looks = any ? 0 : rest_looks + 1;
        if (any) {
            heirs_free(aside, false);
            watcher_wait(aside, LOOK_NS);
        } else if (atomic_load(&aside->measured_ns) == 0) {
            wakeup_measure(aside);
        } else {
            watcher_rest(aside, rest_looks);
        }
    }
    pthread_mutex_unlock(&aside->mutex);
    return NULL;
}

/* Whether a thread gets its policy back, tried by one that nobody needs. */
static void *try_policy(void *context) {
    bool *works = context;

    *works = sched_getscheduler(0) == SCHED_OTHER && policy_set(0, SCHED_IDLE) == 0 &&
             policy_set(0, SCHED_OTHER) == 0;
    return NULL;
}

static bool policy_returns(void) {
    pthread_t thread;
    bool works = false;

    if (pthread_create(&thread, NULL, try_policy, &works) != 0) {
        return false;
    }
    pthread_join(thread, NULL);
    return works;
}

/* Numbers in /proc are those by which this process knows its threads and programs. */
static bool proc_is_ours(void) {
    char text[16];
    ssize_t size = readlink("/proc/self", text, sizeof text - 1);

    text[MAX(size, 0)] = '\0';
    return size > 0 && strtol(text, NULL, 10) == getpid();
}

struct aside *aside_open(struct env *env, unsigned count, uint64_t dear_ns, uint64_t many_ns) {
    struct aside *aside = calloc(1, sizeof *aside + count * sizeof aside->threads[0]);
    pthread_condattr_t by_monotonic;

    if (!aside) {
        return NULL;
    }
    aside->env = env;
    aside->may_enter = proc_is_ours() && policy_returns();
    (void)sched_getaffinity(0, sizeof aside->cpus, &aside->cpus);
    aside->dear_ns = dear_ns;
    aside->many_ns = many_ns;
    aside->count_max = count;
    pthread_mutex_init(&aside->mutex, NULL);
    pthread_condattr_init(&by_monotonic);
    pthread_condattr_setclock(&by_monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&aside->changed, &by_monotonic);
    pthread_condattr_destroy(&by_monotonic);
    if (pthread_create(&aside->watcher, NULL, watch, aside) != 0) {
        pthread_cond_destroy(&aside->changed);
        pthread_mutex_destroy(&aside->mutex);
        free(aside);
        return NULL;
    }
    return aside;
}

void aside_close(struct aside *aside) {
    if (!aside) {
        return;
    }
    pthread_mutex_lock(&aside->mutex);
    aside->is_over = true;
    pthread_cond_signal(&aside->changed);
    pthread_mutex_unlock(&aside->mutex);
    pthread_join(aside->watcher, NULL);
    pthread_cond_destroy(&aside->changed);
    pthread_mutex_destroy(&aside->mutex);
    free(aside);
}

bool aside_may(const struct aside *aside) {
    return aside && aside->may_enter;
}

uint64_t aside_wakeup_ns(const struct aside *aside) {
    return aside ? atomic_load(&aside->wakeup_ns) : 0;
}

/* The thread's own. */

void aside_join(struct aside *aside, struct aside_thread *thread, bool follows) {
    if (!aside_may(aside)) {
        return;
    }
    thread->thread_id = gettid();
    thread->follows = follows;
    pthread_mutex_lock(&aside->mutex);
    unsigned count = atomic_load(&aside->count);
    if (count < aside->count_max) {
        aside->threads[count] = thread;
        thread->all = aside;
        atomic_store(&aside->count, count + 1);
    }
    pthread_mutex_unlock(&aside->mutex);
}

/* A CPU on which the watcher looks around is not idle, so the program would be woken elsewhere. */
static void watcher_avoid(const struct aside_thread *thread) {
    cpu_set_t others = thread->all->cpus;

    CPU_CLR((size_t)thread->cpu, &others);
    (void)pthread_setaffinity_np(thread->all->watcher, sizeof others, &others);
}

static uint32_t program_of(const struct aside_thread *thread) {
    return atomic_load_explicit(&thread->program, memory_order_relaxed);
}

static bool thread_go(struct aside_thread *thread) {
    cpu_set_t one;

    thread->cpu = cpu_of(program_of(thread));
    if (thread->cpu < 0 || !CPU_ISSET((size_t)thread->cpu, &thread->all->cpus)) {
        return false; /* Not to be seen, or where this process may not go. */
    }
    CPU_ZERO(&one);
    CPU_SET((size_t)thread->cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one) < 0) {
        return false;
    }
    watcher_avoid(thread);
    return true;
}

static void watcher_wake(struct aside *aside) {
    pthread_mutex_lock(&aside->mutex);
    if (aside->sleeps) {
        aside->sleeps = false;
        pthread_cond_signal(&aside->changed);
    }
    pthread_mutex_unlock(&aside->mutex);
}

/* Whether no other thread has begun a request of another program since this one looked last. One
 * whose program has become another one, or this one's, is told wrongly once. */
static bool asks_alone(struct aside_thread *thread) {
    struct aside *aside = thread->all;
    unsigned count = atomic_load(&aside->count);
    uint64_t asked = 0;

    for (unsigned i = 0; i < count; i++) {
        const struct aside_thread *other = aside->threads[i];
        bool counts = other != thread && program_of(other) != program_of(thread);

        asked += counts ? atomic_load_explicit(&other->asked, memory_order_relaxed) : 0;
    }
    bool alone = asked == thread->others_asked;
    thread->others_asked = asked;
    return alone;
}

/* Over the device only one thread stands aside. */
static bool may_beside_others(struct aside_thread *thread) {
    const struct aside *aside = thread->all;

    return thread->follows || atomic_load(&aside->wakeup_ns) >= aside->many_ns ||
           asks_alone(thread);
}

/* By what was measured last, which is asked for anew when it is old. */
static bool is_worth_it(const struct aside_thread *thread, uint64_t now_ns) {
    struct aside *aside = thread->all;
    uint64_t measured_ns = atomic_load(&aside->measured_ns);
    bool is_dear = atomic_load(&aside->wakeup_ns) >= aside->dear_ns;
    uint64_t seconds = is_dear ? MEASURE_S : MEASURE_CHEAP_S;

    if (measured_ns != 0 && now_ns > measured_ns + seconds * NS_PER_S) {
        atomic_store(&aside->measured_ns, 0);
        watcher_wake(aside);
    }
    return is_dear;
}

static void thread_enter(struct aside_thread *thread, uint64_t now_ns) {
    thread->since_ns = now_ns;
    thread->others = 0;
    thread->misses = 0;
    thread->moves = 0;
    atomic_store(&thread->state, ASIDE_ENTERING);
    watcher_wake(thread->all);
    bool good = (!thread->follows || thread_go(thread)) && policy_set(0, SCHED_IDLE) == 0;
    atomic_store(&thread->state, ASIDE_YES);
    thread->was_aside = true;
    atomic_fetch_add_explicit(&thread->entered_count, good, memory_order_relaxed);
    if (!good) {
        aside_leave(thread);
        thread->not_before_ns = now_ns + BACKOFF_MOST_NS;
    }
}

void aside_leave(struct aside_thread *thread) {
    int aside = ASIDE_YES;

    thread->streak = 0;
    if (thread->all && atomic_load(&thread->state) == ASIDE_YES) {
        thread_restore(thread); /* While it is watched: it may get no CPU until then. */
        (void)atomic_compare_exchange_strong(&thread->state, &aside, ASIDE_NONE);
    }
}

void aside_part(struct aside_thread *thread) {
    aside_leave(thread);
    while (aside_is(thread)) {
        (void)sched_yield(); /* The watcher ends it right now. */
    }
    if (thread->all) {
        pthread_mutex_lock(&thread->all->mutex); /* It looks at none meanwhile. */
        pthread_mutex_unlock(&thread->all->mutex);
    }
    thread->all = NULL;
}

bool aside_serves_one(const struct aside_thread *thread) {
    return thread->streak >= STREAK;
}

static void program_note(struct aside_thread *thread, uint32_t program) {
    if (program == 0) {
        return;
    }
    uint64_t asked = atomic_load_explicit(&thread->asked, memory_order_relaxed) + 1;
    atomic_store_explicit(&thread->asked, asked, memory_order_relaxed);
    if (program == program_of(thread)) {
        thread->streak += thread->streak < STREAK;
        thread->others -= thread->others > 0;
        return;
    }
    thread->others += OTHERS_EACH;
    if (!aside_is(thread) || thread->others > OTHERS_MAX) {
        atomic_store_explicit(&thread->program, program, memory_order_relaxed);
        thread->streak = 0;
        thread->others = 0;
    }
}

void aside_took(struct aside_thread *thread, uint32_t program, bool alone, bool at_once) {
    if (!thread->all) {
        return;
    }
    uint64_t begun = atomic_load_explicit(&thread->begun, memory_order_relaxed) + 1;
    atomic_store_explicit(&thread->begun, begun, memory_order_relaxed);
    bool is_aside = atomic_load(&thread->state) == ASIDE_YES;
    if (thread->was_aside && !is_aside) {
        thread->streak = 0; /* The watcher has ended it, as the program asked no more. */
    }
    thread->was_aside = is_aside;
    program_note(thread, program);
    if (at_once) {
        thread->misses = 0;
    }
    if (is_aside) {
        uint64_t served = atomic_load_explicit(&thread->served_count, memory_order_relaxed);

        atomic_store_explicit(&thread->served_count, served + 1, memory_order_relaxed);
        if (!alone || !aside_serves_one(thread)) {
            aside_leave(thread);
        } else if (begun % ALONE_EVERY == 0 && !may_beside_others(thread)) {
            aside_leave(thread);
            thread->not_before_ns = env_now_ns(thread->all->env) + BACKOFF_LEAST_NS;
        } else if (begun % MOVES_EVERY == 0) {
            thread->moves = 0;
        }
        return;
    }
    if (alone && program != 0 && aside_serves_one(thread) && !aside_is(thread)) {
        uint64_t now_ns = env_now_ns(thread->all->env);

        if (now_ns < thread->not_before_ns || !is_worth_it(thread, now_ns)) {
            return;
        }
        if (may_beside_others(thread)) {
            thread_enter(thread, now_ns);
        } else {
            thread->not_before_ns = now_ns + BACKOFF_LEAST_NS;
        }
    }
}

void aside_missed(struct aside_thread *thread) {
    if (!aside_is(thread) || !thread->follows || ++thread->misses < MISSES_MAX) {
        return;
    }
    thread->misses = 0;
    int before = thread->cpu;
    int cpu = cpu_of(program_of(thread));
    if (cpu == before) {
        return;
    }
    if (cpu < 0 || ++thread->moves > MOVES_MAX || !thread_go(thread)) {
        aside_leave(thread);
        thread->not_before_ns = env_now_ns(thread->all->env) + BACKOFF_LEAST_NS;
    } else if (atomic_load(&thread->state) != ASIDE_YES) {
        cpus_restore(thread->all, thread->thread_id); /* The watcher has, before that. */
    }
}
