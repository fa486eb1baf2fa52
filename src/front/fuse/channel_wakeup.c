/* Two threads on two CPUs, each of which sleeps while the other one is awake. */
#include "front/fuse/channel_wakeup.h"
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { ROUNDS = 24, ROUND_MS = 2 };

struct wakeup {
    cpu_set_t cpus; /* of the other thread */
    int there;      /* eventfds */
    int back;
    atomic_bool is_over; /* it takes too long */
};

static bool turn_pass(int to, int from) {
    uint64_t one = 1;

    return (to < 0 || write(to, &one, sizeof one) == sizeof one) &&
           (from < 0 || read(from, &one, sizeof one) == sizeof one);
}

static void *other_run(void *context) {
    struct wakeup *wakeup = context;
    bool good = pthread_setaffinity_np(pthread_self(), sizeof wakeup->cpus, &wakeup->cpus) == 0;

    good = turn_pass(-1, wakeup->there) && good;
    for (unsigned i = 0; i < ROUNDS && !atomic_load(&wakeup->is_over); i++) {
        (void)turn_pass(wakeup->back, wakeup->there);
    }
    return good ? context : NULL;
}

/* The first two of the CPUs, each alone in a set. */
static bool cpus_choose(const cpu_set_t *cpus, cpu_set_t *ret_mine, cpu_set_t *ret_other) {
    unsigned found = 0;

    CPU_ZERO(ret_mine);
    CPU_ZERO(ret_other);
    for (size_t i = 0; i < CPU_SETSIZE && found < 2; i++) {
        if (CPU_ISSET(i, cpus)) {
            CPU_SET(i, found == 0 ? ret_mine : ret_other);
            found++;
        }
    }
    return found == 2;
}

static int compare(const void *a, const void *b) {
    const uint64_t *left = a;
    const uint64_t *right = b;

    return *left < *right ? -1 : *left > *right;
}

static uint64_t rounds_run(struct env *env, struct wakeup *wakeup) {
    uint64_t rounds_ns[ROUNDS];
    struct pollfd back = {.fd = wakeup->back, .events = POLLIN};
    pthread_t thread;
    void *good;

    if (pthread_create(&thread, NULL, other_run, wakeup) != 0) {
        return 0;
    }
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint64_t begun_ns = env_now_ns(env);

        if (!turn_pass(wakeup->there, -1) || poll(&back, 1, ROUND_MS) != 1) {
            atomic_store(&wakeup->is_over, true);
            break;
        }
        (void)turn_pass(-1, wakeup->back);
        rounds_ns[i] = env_now_ns(env) - begun_ns;
    }
    (void)turn_pass(wakeup->there, -1);
    pthread_join(thread, &good);
    if (atomic_load(&wakeup->is_over)) {
        return 0;
    }
    qsort(rounds_ns, ROUNDS, sizeof rounds_ns[0], compare);
    return good ? rounds_ns[ROUNDS / 2] : 0;
}

uint64_t wakeup_measure_ns(struct env *env) {
    struct wakeup wakeup = {.there = eventfd(0, EFD_CLOEXEC), .back = eventfd(0, EFD_CLOEXEC)};
    cpu_set_t before;
    cpu_set_t mine;
    uint64_t ns = 0;

    if (wakeup.there >= 0 && wakeup.back >= 0 &&
        sched_getaffinity(0, sizeof before, &before) == 0 &&
        cpus_choose(&before, &mine, &wakeup.cpus) &&
        sched_setaffinity(0, sizeof mine, &mine) == 0) {
        ns = rounds_run(env, &wakeup);
        (void)sched_setaffinity(0, sizeof before, &before);
    }
    if (wakeup.there >= 0) {
        close(wakeup.there);
    }
    if (wakeup.back >= 0) {
        close(wakeup.back);
    }
    return ns;
}
