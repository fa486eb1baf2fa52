/* Workers: one per thread that runs actors; a group of them shares what waits too long.
 *
 *     actor_post --> owned --> chain: right after the present step, this worker only
 *                                |  32 messages, 50 us, or too long a chain
 *                                v
 *                           run queue: oldest first, behind the polling of I/O, can be stolen from
 *
 * A loop polls its I/O, calls worker_run_one until false (looking at its I/O between), then
 * worker_steal_one, and only then worker_sleep_begin and its blocking wait. A thread that leaves
 * runs its queue empty first: nobody else is told of it.
 *
 * Thread: a worker is used by the thread it is bound to. Others touch only run_queue and asleep.
 * Memory: none beyond the structs. */
#pragma once
#include "rpc/actor.h"
#include "rpc/run_queue.h"

enum { ACTOR_WAIT_NS_MAX = 100000, WORKER_CHAIN_MAX = 64, WORKER_RETURNS_MAX = 8 };

struct worker;

/* A fixed set of workers that steal from each other. wake makes the thread of a worker return from
 * its wait; it is called at most once per worker_sleep_begin, on any worker's thread, outside
 * steps. A wake-up that comes too late or twice must do no harm. */
struct worker_group {
    struct worker **workers;
    uint32_t worker_count;
    _Atomic uint32_t sleeping_count;
    void (*wake)(struct worker_group *group, struct worker *worker);
    void *context;
};

/* The workers must be initialised and not bound yet; the array stays the caller's. */
void worker_group_init(struct worker_group *group, struct worker **workers, uint32_t worker_count,
                       void (*wake)(struct worker_group *group, struct worker *worker));

struct pool;
struct pool_item;

/* Items on their way home to a pool of another thread (pool.h). */
struct pool_batch {
    struct pool *pool;
    struct pool_item *first;
    struct pool_item *last;
    uint32_t count;
};

/* Set now_ns, schedule and context after worker_init, before the first post. */
struct worker {
    uint64_t (*now_ns)(struct worker *worker); /* NULL: slices are by count only, nobody is woken */
    /* When set, takes over every actor that became owned or has more to do (the simulator orders
     * them by its seed); it must see to it that actor_run is called later, outside any step. */
    void (*schedule)(struct worker *worker, struct actor *actor);
    void *context;

    struct worker_group *group; /* from here on the worker's own; NULL: alone */
    uint32_t group_index;
    bool in_step;
    struct actor *chain_first;
    struct actor *chain_last;
    uint64_t woken_for; /* the run queue's ticket of the actor that woke a thread last */
    uint32_t return_count;
    struct pool_batch returns[WORKER_RETURNS_MAX];
    atomic_bool asleep;
    struct run_queue run_queue;
};

void worker_init(struct worker *worker);
/* Binds the worker to the calling thread; NULL unbinds. actor_post uses the bound one. */
void worker_bind(struct worker *worker);
struct worker *worker_current(void);

/* For actor_post: the calling thread has come to own the actor. */
void worker_own(struct actor *actor);

/* Runs the oldest actor of the run queue, and what becomes owned by it, for one slice; false when
 * the queue was empty. */
bool worker_run_one(struct worker *worker);
/* The same with the oldest actor of another worker's queue; false when none waits. */
bool worker_steal_one(struct worker *worker);
/* Runs one step of an owned actor that schedule was given; schedules it when more is left. */
void actor_run(struct worker *worker, struct actor *actor);

/* Says that the thread is about to wait. False, and awake again, when an actor waits somewhere:
 * run or steal it first. After a true one, call worker_sleep_end when the wait is over. */
MUST_CHECK bool worker_sleep_begin(struct worker *worker);
void worker_sleep_end(struct worker *worker);
