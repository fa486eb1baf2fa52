/* Readers under many threads, made for ThreadSanitizer: parking, activating, the end.
 *
 * Threads serve a queue as those of a mount serve the kernel's; senders ask one request after
 * another and wait for each answer. Whether a thread that found nothing parks or sleeps at the
 * queue, whom it activates and who is woken for nothing is drawn. All that sleeps does so under one
 * mutex, the readers' own steps outside of it, so whoever falls asleep last sees what nobody would
 * ever end: a lost wake-up is an assertion that fails here, no test that hangs. */
#include "unit.h"
#include "base/prng.h"
#include "front/fuse/readers.h"
#include <assert.h>
#include <pthread.h>
#include <sched.h>

enum {
    THREADS = 6,
    SENDERS = 4,
    REQUESTS = 4000, /* of each sender */
    ROUNDS = 8,
    LOOKS_MAX = 4,
    STIRRERS = 4,
    STIRS = 200000,
    SEED = 1,
};

/* One that serves. */
struct server {
    struct desk *desk;
    pthread_t thread;
    struct reader reader;
    struct prng prng;
    pthread_cond_t wakened; /* with the desk's mutex, as what follows */
    bool woken;             /* since it slept last */
    bool asleep;            /* and not woken */
};

struct sender {
    struct desk *desk;
    pthread_t thread;
    struct prng prng;
    uint32_t gone_after; /* requests, upon which the queue goes */
    bool answered;       /* with the desk's mutex */
    pthread_cond_t got;
};

struct desk {
    struct readers readers;
    struct server servers[THREADS];
    struct sender senders[SENDERS];
    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t arrived;
    pthread_cond_t quieted;
    struct sender *queue[SENDERS]; /* whose requests nobody has read */
    uint32_t queued_count;
    uint32_t live_count;                      /* servers that have not ended */
    uint32_t asleep_count;                    /* parked, and nobody has woken them */
    uint32_t reading_count;                   /* asleep at the queue */
    uint32_t quiet_count;                     /* how often nothing moved */
    uint32_t activated_count, returned_count; /* parked ones that have come back */
    bool gone;
};

static bool desk_is_quiet(const struct desk *desk) {
    return desk->asleep_count + desk->reading_count == desk->live_count &&
           desk->queued_count == 0 && !desk->gone;
}

/* Whenever something falls asleep or ends. */
static void desk_look(struct desk *desk) {
    /* Somebody reads, or will. */
    assert(desk->asleep_count < desk->live_count || desk->live_count == 0);
    if (desk_is_quiet(desk)) {
        /* Nobody is between two steps, so what the readers say is what is. */
        assert(desk->reading_count == (uint32_t)atomic_load(&desk->readers.active_count));
        for (uint32_t i = 0; i < THREADS; i++) {
            assert(desk->servers[i].asleep ==
                   reader_is_parked(&desk->readers, &desk->servers[i].reader));
        }
        desk->quiet_count++;
        pthread_cond_signal(&desk->quieted);
    }
}

static void server_wake(struct server *server) {
    struct desk *desk = server->desk;

    pthread_mutex_lock(&desk->mutex);
    server->woken = true;
    desk->asleep_count -= server->asleep;
    server->asleep = false;
    pthread_cond_signal(&server->wakened);
    pthread_mutex_unlock(&desk->mutex);
}

/* As env_loop_wait: a wake-up since the last one ends it at once. */
static void server_sleep(struct server *server) {
    struct desk *desk = server->desk;

    pthread_mutex_lock(&desk->mutex);
    if (!server->woken) {
        server->asleep = true;
        desk->asleep_count++;
        desk_look(desk);
        while (!server->woken) {
            pthread_cond_wait(&server->wakened, &desk->mutex);
        }
    }
    server->woken = false;
    pthread_mutex_unlock(&desk->mutex);
}

/* A request's sender, or NULL: nothing there, or nothing ever again. */
static struct sender *queue_take(struct desk *desk, bool sleeps, bool *ret_gone) {
    struct sender *sender = NULL;

    pthread_mutex_lock(&desk->mutex);
    while (sleeps && desk->queued_count == 0 && !desk->gone) {
        desk->reading_count++;
        desk_look(desk);
        pthread_cond_wait(&desk->arrived, &desk->mutex);
        desk->reading_count--;
    }
    *ret_gone = desk->gone;
    if (desk->queued_count > 0 && !desk->gone) {
        sender = desk->queue[--desk->queued_count];
    }
    pthread_mutex_unlock(&desk->mutex);
    return sender;
}

/* thread_read of channel_thread.c, with chance in place of its clock. */
static struct sender *server_read(struct server *server, bool *ret_gone) {
    struct desk *desk = server->desk;
    uint64_t looks = prng_between(&server->prng, 1, LOOKS_MAX);
    struct sender *sender = NULL;

    for (uint64_t i = 0; i < looks && !sender; i++) {
        sender = queue_take(desk, false, ret_gone);
        if (*ret_gone) {
            return NULL;
        }
    }
    if (sender) {
        return sender;
    }
    if (prng_chance(&server->prng, 1, 8) || !reader_park(&desk->readers, &server->reader)) {
        return queue_take(desk, true, ret_gone);
    }
    while (reader_is_parked(&desk->readers, &server->reader)) {
        server_sleep(server);
    }
    pthread_mutex_lock(&desk->mutex);
    desk->returned_count++;
    pthread_mutex_unlock(&desk->mutex);
    *ret_gone = readers_are_closed(&desk->readers);
    return NULL;
}

static void server_activate(struct server *server) {
    struct desk *desk = server->desk;
    struct server *other = &desk->servers[prng_below(&server->prng, THREADS)];

    server_wake(other);
    if (reader_activate(&desk->readers, &other->reader)) {
        server_wake(other);
        pthread_mutex_lock(&desk->mutex);
        desk->activated_count++;
        pthread_mutex_unlock(&desk->mutex);
    }
}

static void sender_answer(struct desk *desk, struct sender *sender) {
    pthread_mutex_lock(&desk->mutex);
    sender->answered = true;
    pthread_cond_signal(&sender->got);
    pthread_mutex_unlock(&desk->mutex);
}

static void server_end(struct server *server) {
    struct desk *desk = server->desk;

    readers_close(&desk->readers);
    for (uint32_t i = 0; i < THREADS; i++) {
        server_wake(&desk->servers[i]);
    }
    pthread_mutex_lock(&desk->mutex);
    desk->live_count--;
    desk_look(desk);
    pthread_mutex_unlock(&desk->mutex);
}

static void *server_run(void *argument) {
    struct server *server = argument;
    struct desk *desk = server->desk;
    bool gone = false;

    readers_enter(&desk->readers);
    while (!gone) {
        struct sender *sender = server_read(server, &gone);

        /* Its loop is also polled for other things, which takes a wake-up with it. */
        if (prng_chance(&server->prng, 1, 4)) {
            pthread_mutex_lock(&desk->mutex);
            server->woken = false;
            pthread_mutex_unlock(&desk->mutex);
        }
        if (sender && prng_chance(&server->prng, 1, 4)) {
            server_activate(server);
        }
        if (sender) {
            sender_answer(desk, sender);
        }
    }
    server_end(server);
    return NULL;
}

static void desk_close(struct desk *desk) {
    pthread_mutex_lock(&desk->mutex);
    desk->gone = true;
    pthread_cond_broadcast(&desk->arrived);
    for (uint32_t i = 0; i < SENDERS; i++) {
        pthread_cond_signal(&desk->senders[i].got);
    }
    pthread_mutex_unlock(&desk->mutex);
}

/* False when the queue is gone. */
static bool sender_ask(struct sender *sender) {
    struct desk *desk = sender->desk;

    pthread_mutex_lock(&desk->mutex);
    sender->answered = false;
    desk->queue[desk->queued_count++] = sender;
    pthread_cond_signal(&desk->arrived);
    while (!sender->answered && !desk->gone) {
        pthread_cond_wait(&sender->got, &desk->mutex);
    }
    bool gone = desk->gone;
    pthread_mutex_unlock(&desk->mutex);
    return !gone;
}

static void *sender_run(void *argument) {
    struct sender *sender = argument;
    struct desk *desk = sender->desk;

    for (uint32_t i = 0; i < REQUESTS && sender_ask(sender); i++) {
        int active = atomic_load(&desk->readers.active_count);

        assert(active >= 1 && active <= THREADS);
        if (prng_chance(&sender->prng, 1, 16)) {
            server_wake(&desk->servers[prng_below(&sender->prng, THREADS)]);
        }
        if (i == sender->gone_after) {
            desk_close(desk);
        }
    }
    return NULL;
}

static void desk_wait_quiet(struct desk *desk) {
    pthread_mutex_lock(&desk->mutex);
    while (!desk_is_quiet(desk)) {
        pthread_cond_wait(&desk->quieted, &desk->mutex);
    }
    pthread_mutex_unlock(&desk->mutex);
}

static void desk_start(struct desk *desk, uint64_t seed) {
    *desk = (struct desk){.live_count = THREADS};
    pthread_mutex_init(&desk->mutex, NULL);
    pthread_cond_init(&desk->arrived, NULL);
    pthread_cond_init(&desk->quieted, NULL);
    for (uint32_t i = 0; i < THREADS; i++) {
        desk->servers[i].desk = desk;
        prng_init(&desk->servers[i].prng, seed + i);
        pthread_cond_init(&desk->servers[i].wakened, NULL);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        struct server *server = &desk->servers[i];

        assert_int_equal(pthread_create(&server->thread, NULL, server_run, server), 0);
    }
}

/* gone_after: requests of the first sender; UINT32_MAX: it goes when all is quiet. */
static void desk_serve(struct desk *desk, uint64_t seed, uint32_t gone_after) {
    for (uint32_t i = 0; i < SENDERS; i++) {
        struct sender *sender = &desk->senders[i];

        sender->desk = desk;
        sender->gone_after = i == 0 ? gone_after : UINT32_MAX;
        prng_init(&sender->prng, seed + THREADS + i);
        pthread_cond_init(&sender->got, NULL);
    }
    for (uint32_t i = 0; i < SENDERS; i++) {
        struct sender *sender = &desk->senders[i];

        assert_int_equal(pthread_create(&sender->thread, NULL, sender_run, sender), 0);
    }
    for (uint32_t i = 0; i < SENDERS; i++) {
        assert_int_equal(pthread_join(desk->senders[i].thread, NULL), 0);
    }
}

static void desk_end(struct desk *desk) {
    for (uint32_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(desk->servers[i].thread, NULL), 0);
    }
    /* Each wakes all in its end. */
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_cond_destroy(&desk->servers[i].wakened);
    }
    for (uint32_t i = 0; i < SENDERS; i++) {
        pthread_cond_destroy(&desk->senders[i].got);
    }
    pthread_cond_destroy(&desk->arrived);
    pthread_cond_destroy(&desk->quieted);
    pthread_mutex_destroy(&desk->mutex);
    assert_int_equal(desk->live_count, 0);
}

static void round_run(uint64_t seed, bool in_the_middle) {
    static struct desk desk;
    uint32_t gone_after = UINT32_MAX;
    struct prng prng;

    prng_init(&prng, seed);
    desk_start(&desk, seed);
    desk_wait_quiet(&desk);
    if (in_the_middle) {
        gone_after = (uint32_t)prng_below(&prng, REQUESTS);
    }
    desk_serve(&desk, seed, gone_after);
    if (!in_the_middle) {
        desk_wait_quiet(&desk);
        assert_true(desk.activated_count > 0);
        assert_int_equal(desk.returned_count, desk.activated_count);
        desk_close(&desk);
    }
    desk_end(&desk);
    print_message("%u activated, quiet %u times\n", desk.activated_count, desk.quiet_count);
}

static void one_always_reads(void **state) {
    (void)state;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        uint64_t seed = SEED + i * 100;

        print_message("seed %d\n", (int)seed);
        round_run(seed, false);
    }
}

static void the_end_reaches_all(void **state) {
    (void)state;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        uint64_t seed = SEED + (ROUNDS + i) * 100;

        print_message("seed %d\n", (int)seed);
        round_run(seed, true);
    }
}

/* Threads that only park and activate each other, without a queue or a mutex between them. */
struct stirrer {
    struct readers *readers;
    struct stirrer *all;
    pthread_t thread;
    struct reader reader;
    struct prng prng;
    int64_t parked_count, activated_count;
    /* Counted before another is activated and after this one has parked: not 0 before all are. */
    atomic_int *moving_count;
};

static void stir_activate(struct stirrer *stirrer) {
    atomic_fetch_add(stirrer->moving_count, 1);
    for (uint32_t i = 0; i < STIRRERS; i++) {
        if (reader_activate(stirrer->readers, &stirrer->all[i].reader)) {
            stirrer->activated_count++;
            return;
        }
    }
    atomic_fetch_sub(stirrer->moving_count, 1);
}

static void *stirrer_run(void *argument) {
    struct stirrer *stirrer = argument;
    struct readers *readers = stirrer->readers;

    for (uint32_t i = 0; i < STIRS && !readers_are_closed(readers); i++) {
        stir_activate(stirrer);
        if (prng_chance(&stirrer->prng, 1, 2) && reader_park(readers, &stirrer->reader)) {
            int moving_count = atomic_fetch_sub(stirrer->moving_count, 1);

            assert(moving_count > 1);
            stirrer->parked_count++;
            while (reader_is_parked(readers, &stirrer->reader)) {
                sched_yield();
            }
        }
    }
    readers_close(readers);
    return NULL;
}

static void each_parking_ends_once(void **state) {
    static struct stirrer stirrers[STIRRERS];
    struct readers readers = {0};
    atomic_int moving_count = STIRRERS;
    int64_t left_count = 0;
    int64_t parked_count = 0;

    (void)state;
    for (uint32_t i = 0; i < STIRRERS; i++) {
        stirrers[i] =
            (struct stirrer){.readers = &readers, .all = stirrers, .moving_count = &moving_count};
        prng_init(&stirrers[i].prng, SEED + i);
        readers_enter(&readers);
    }
    for (uint32_t i = 0; i < STIRRERS; i++) {
        struct stirrer *stirrer = &stirrers[i];

        assert_int_equal(pthread_create(&stirrer->thread, NULL, stirrer_run, stirrer), 0);
    }
    for (uint32_t i = 0; i < STIRRERS; i++) {
        assert_int_equal(pthread_join(stirrers[i].thread, NULL), 0);
        left_count += stirrers[i].parked_count - stirrers[i].activated_count;
    }
    for (uint32_t i = 0; i < STIRRERS; i++) {
        parked_count += atomic_load(&stirrers[i].reader.parked);
    }
    print_message("seed %d\n", SEED);
    assert_int_equal(left_count, parked_count);
    assert_int_equal(readers.active_count, STIRRERS - parked_count);
}

/* The steps one by one. */
static void the_last_does_not_park(void **state) {
    struct readers readers = {0};
    struct reader first = {0};
    struct reader second = {0};

    (void)state;
    readers_enter(&readers);
    assert_false(reader_park(&readers, &first));
    readers_enter(&readers);
    assert_false(reader_activate(&readers, &second));
    assert_true(reader_park(&readers, &second));
    assert_true(reader_is_parked(&readers, &second));
    assert_false(reader_park(&readers, &first));
    assert_false(reader_is_parked(&readers, &first));
    assert_true(reader_activate(&readers, &second));
    assert_false(reader_activate(&readers, &second));
    assert_false(reader_is_parked(&readers, &second));
    assert_true(reader_park(&readers, &first));
    assert_false(reader_park(&readers, &second));
    readers_close(&readers);
    assert_false(reader_is_parked(&readers, &first));
    assert_true(readers_are_closed(&readers));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_does_not_park),
        cmocka_unit_test(each_parking_ends_once),
        cmocka_unit_test(one_always_reads),
        cmocka_unit_test(the_end_reaches_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
