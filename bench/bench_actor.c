/* What a hop through an actor costs on one thread; prints one line of JSON.
 *
 * post_run: a message to an idle actor, until its step is done.  chained: the same from inside
 * another actor's step.  batched: one of 32 messages that wait together.  pool: a get and a put at
 * home.  Each is the best of several rounds, as the machine has other things to do too. */
#include "rpc/pool.h"
#include "rpc/worker.h"
#include <assert.h>
#include <stdio.h>
#include <time.h>

enum { ROUNDS = 7, OPERATIONS = 2000000, BATCH = 32 };

struct counter {
    struct actor actor;
    uint64_t handled;
    struct counter *forward; /* gets each message too, when set */
    struct message forwarded[BATCH];
};

static uint64_t clock_ns(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static uint64_t worker_clock_ns(struct worker *worker) {
    (void)worker;
    return clock_ns();
}

static void count_step(struct actor *actor, struct message *first) {
    struct counter *counter = CONTAINER_OF(actor, struct counter, actor);
    uint32_t i = 0;

    for (struct message *message = first; message; message = message->next) {
        counter->handled++;
        if (counter->forward) {
            actor_post(&counter->forward->actor, &counter->forwarded[i++]);
        }
    }
}

static void run_posts(void) {
    static struct counter counter;
    struct message message = {0};

    actor_init(&counter.actor, "counter", count_step);
    for (uint32_t i = 0; i < OPERATIONS; i++) {
        actor_post(&counter.actor, &message);
    }
    assert(counter.handled == OPERATIONS);
    counter.handled = 0;
}

static void run_chained(void) {
    static struct counter first;
    static struct counter second;
    struct message message = {0};

    actor_init(&first.actor, "first", count_step);
    actor_init(&second.actor, "second", count_step);
    first.forward = &second;
    for (uint32_t i = 0; i < OPERATIONS / 2; i++) {
        actor_post(&first.actor, &message);
    }
    assert(first.handled == second.handled);
}

/* Posts a full batch to another actor from inside a step, so that it waits together. */
static void batch_step(struct actor *actor, struct message *first) {
    struct counter *counter = CONTAINER_OF(actor, struct counter, actor);

    (void)first;
    for (uint32_t i = 0; i < BATCH; i++) {
        actor_post(&counter->forward->actor, &counter->forwarded[i]);
    }
}

static void run_batched(void) {
    static struct counter first;
    static struct counter second;
    struct message message = {0};

    actor_init(&first.actor, "first", batch_step);
    actor_init(&second.actor, "second", count_step);
    first.forward = &second;
    for (uint32_t i = 0; i < OPERATIONS / BATCH; i++) {
        actor_post(&first.actor, &message);
        while (worker_run_one(worker_current())) {
        }
    }
    assert(second.handled > 0);
}

static void run_pool(void) {
    static struct pool pool;
    int r = pool_init(&pool, &(struct pool_options){.name = "bench",
                                                    .object_bytes = 256,
                                                    .object_count = 64,
                                                    .worker = worker_current()});

    assert(r == 0);
    for (uint32_t i = 0; i < OPERATIONS; i++) {
        pool_put(pool_get(&pool, MESSAGE_REQUEST));
    }
    pool_deinit(&pool);
}

static double best_ns(void (*run)(void)) {
    uint64_t best = UINT64_MAX;

    for (int i = 0; i < ROUNDS; i++) {
        uint64_t start_ns = clock_ns();

        run();
        best = MIN(best, clock_ns() - start_ns);
    }
    return (double)best / OPERATIONS;
}

int main(void) {
    static struct worker worker;

    worker_init(&worker);
    worker.now_ns = worker_clock_ns;
    worker_bind(&worker);
    printf("{\"name\": \"actor\", \"post_run_ns\": %.1f, ", best_ns(run_posts));
    printf("\"chained_ns\": %.1f, ", best_ns(run_chained));
    printf("\"batched_ns\": %.1f, ", best_ns(run_batched));
    printf("\"pool_get_put_ns\": %.1f}\n", best_ns(run_pool));
    worker_bind(NULL);
    return 0;
}
