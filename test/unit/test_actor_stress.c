/* Actors under several threads, made for ThreadSanitizer.
 *
 * Three threads post to shared actors from pools of their own; a step sends some messages on to
 * another actor and the rest home. A fourth thread only sleeps, and steals when it is woken. Every
 * message must arrive exactly once, those of one poster in order, and no step run beside another
 * of its actor. What is checked depends on no timing; how much is stolen does. */
#include "base/prng.h"
#include "rpc/pool.h"
#include "rpc/worker.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

enum {
    THREADS = 3,
    WORKERS = THREADS + 1,
    ACTORS = 8,
    SENDERS = THREADS + ACTORS,
    MESSAGES = 60000, /* of each thread */
    HOPS_MAX = 3,
    POOL_OBJECTS = 200,
    SEED = 1
};

struct parcel {
    struct pool_item item;
    struct message message;
    uint32_t sender; /* a thread, or THREADS + an actor */
    uint32_t sequence;
    uint32_t hops_left;
};

/* Nothing here is atomic: the hand-off must order it. */
struct station {
    struct actor actor;
    uint32_t index;
    uint32_t busy;
    uint32_t awaited[SENDERS];
    uint32_t sent[ACTORS];
    uint64_t handled;
    struct prng prng;
};

struct poster {
    pthread_t thread;
    struct worker worker;
    struct pool pool;
    uint32_t index;
    uint32_t sent[ACTORS];
};

static struct {
    struct station stations[ACTORS];
    struct poster posters[THREADS];
    struct worker sleeper;
    struct worker *workers[WORKERS];
    struct worker_group group;
    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t condition;
    bool woken;
    bool finished;
    _Atomic uint64_t home_count; /* messages whose way has ended */
    atomic_uint stolen_count;
    atomic_uint woken_count;
    atomic_int errors;
} it = {.mutex = PTHREAD_MUTEX_INITIALIZER, .condition = PTHREAD_COND_INITIALIZER};

static uint64_t clock_ns(struct worker *worker) {
    struct timespec now;

    (void)worker;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static void expect(bool fact) {
    if (!fact) {
        atomic_fetch_add(&it.errors, 1);
    }
}

static void send(struct parcel *parcel, uint32_t sender, uint32_t *sent, uint32_t target) {
    parcel->sender = sender;
    parcel->sequence = sent[target]++;
    actor_post(&it.stations[target].actor, &parcel->message);
}

static void station_step(struct actor *actor, struct message *first) {
    struct station *station = CONTAINER_OF(actor, struct station, actor);
    uint32_t count = 0;

    expect(station->busy++ == 0);
    while (first) {
        struct parcel *parcel = CONTAINER_OF(first, struct parcel, message);

        first = first->next;
        count++;
        station->handled++;
        expect(parcel->sequence == station->awaited[parcel->sender]++);
        if (parcel->hops_left > 0) {
            parcel->hops_left--;
            send(parcel, THREADS + station->index, station->sent,
                 (uint32_t)prng_below(&station->prng, ACTORS));
        } else {
            pool_put(parcel);
            atomic_fetch_add_explicit(&it.home_count, 1, memory_order_relaxed);
        }
    }
    expect(count <= ACTOR_BATCH_MAX);
    expect(--station->busy == 0);
}

static bool steal(struct worker *worker) {
    bool stolen = worker_steal_one(worker);

    atomic_fetch_add_explicit(&it.stolen_count, stolen, memory_order_relaxed);
    return stolen;
}

/* A thread's loop; in place of I/O it polls its pool. */
static void *poster_run(void *argument) {
    struct poster *poster = argument;
    struct prng prng;

    prng_init(&prng, SEED + poster->index);
    worker_bind(&poster->worker);
    for (uint32_t i = 0; i < MESSAGES;) {
        struct parcel *parcel = pool_get(&poster->pool, MESSAGE_REQUEST);

        if (parcel) {
            parcel->hops_left = (uint32_t)prng_below(&prng, HOPS_MAX + 1);
            send(parcel, poster->index, poster->sent, (uint32_t)prng_below(&prng, ACTORS));
            i++;
        }
        if ((!parcel || i % 64 == 0) && !worker_run_one(&poster->worker) && !parcel &&
            !steal(&poster->worker)) {
            sched_yield();
        }
    }
    while (atomic_load(&it.home_count) < (uint64_t)THREADS * MESSAGES) {
        if (!worker_run_one(&poster->worker) && !steal(&poster->worker)) {
            sched_yield();
        }
    }
    expect(!worker_run_one(&poster->worker));
    worker_bind(NULL);
    return NULL;
}

static void wake_sleeper(struct worker_group *group, struct worker *worker) {
    (void)group;
    expect(worker == &it.sleeper);
    atomic_fetch_add(&it.woken_count, 1);
    pthread_mutex_lock(&it.mutex);
    it.woken = true;
    pthread_cond_signal(&it.condition);
    pthread_mutex_unlock(&it.mutex);
}

static void *sleeper_run(void *argument) {
    bool finished = false;

    (void)argument;
    worker_bind(&it.sleeper);
    while (!finished) {
        while (worker_run_one(&it.sleeper) || steal(&it.sleeper)) {
        }
        if (!worker_sleep_begin(&it.sleeper)) {
            continue;
        }
        pthread_mutex_lock(&it.mutex);
        while (!it.woken && !it.finished) {
            pthread_cond_wait(&it.condition, &it.mutex);
        }
        it.woken = false;
        finished = it.finished;
        pthread_mutex_unlock(&it.mutex);
        worker_sleep_end(&it.sleeper);
    }
    worker_bind(NULL);
    return NULL;
}

static void start(pthread_t *sleeper) {
    for (uint32_t i = 0; i < ACTORS; i++) {
        it.stations[i].index = i;
        prng_init(&it.stations[i].prng, SEED + 100 + i);
        actor_init(&it.stations[i].actor, "station", station_step);
    }
    for (uint32_t i = 0; i < WORKERS; i++) {
        it.workers[i] = i < THREADS ? &it.posters[i].worker : &it.sleeper;
        worker_init(it.workers[i]);
        it.workers[i]->now_ns = clock_ns;
    }
    worker_group_init(&it.group, it.workers, WORKERS, wake_sleeper);
    assert_int_equal(pthread_create(sleeper, NULL, sleeper_run, NULL), 0);
    for (uint32_t i = 0; i < THREADS; i++) {
        struct poster *poster = &it.posters[i];

        poster->index = i;
        assert_int_equal(
            pool_init(&poster->pool, &(struct pool_options){.name = "parcels",
                                                            .object_bytes = sizeof(struct parcel),
                                                            .object_count = POOL_OBJECTS,
                                                            .worker = &poster->worker}),
            0);
        assert_int_equal(pthread_create(&poster->thread, NULL, poster_run, poster), 0);
    }
}

static void finish(pthread_t sleeper) {
    for (uint32_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(it.posters[i].thread, NULL), 0);
    }
    pthread_mutex_lock(&it.mutex);
    it.finished = true;
    pthread_cond_signal(&it.condition);
    pthread_mutex_unlock(&it.mutex);
    assert_int_equal(pthread_join(sleeper, NULL), 0);
}

static void every_message_once_and_in_order(void **state) {
    uint64_t sent = 0;
    uint64_t handled = 0;
    pthread_t sleeper;

    (void)state;
    print_message("seed %d\n", SEED);
    start(&sleeper);
    finish(sleeper);
    print_message("%u slices stolen, %u wake-ups\n", it.stolen_count, it.woken_count);
    assert_int_equal(it.errors, 0);
    for (uint32_t i = 0; i < ACTORS; i++) {
        assert_true(actor_is_idle(&it.stations[i].actor));
        handled += it.stations[i].handled;
        for (uint32_t j = 0; j < SENDERS; j++) {
            const uint32_t *sent_by =
                j < THREADS ? it.posters[j].sent : it.stations[j - THREADS].sent;

            sent += sent_by[i];
            assert_int_equal(it.stations[i].awaited[j], sent_by[i]);
        }
    }
    assert_int_equal(handled, sent);
    assert_int_equal(it.group.sleeping_count, 0);
    /* Nothing may be left in a worker's batch: deinit asserts that all objects are back. */
    for (uint32_t i = 0; i < THREADS; i++) {
        pool_deinit(&it.posters[i].pool);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_message_once_and_in_order)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
