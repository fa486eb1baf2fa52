/* Who runs an owned actor, and when; the picture is in worker.h. */
#include "rpc/worker.h"
#include "rpc/pool.h"
#include <assert.h>

static _Thread_local struct worker *bound_worker;

void worker_init(struct worker *worker) {
    *worker = (struct worker){.woken_for = UINT64_MAX};
    run_queue_init(&worker->run_queue);
}

void worker_bind(struct worker *worker) {
    assert(!bound_worker || !bound_worker->in_step);
    bound_worker = worker;
}

struct worker *worker_current(void) {
    return bound_worker;
}

void worker_group_init(struct worker_group *group, struct worker **workers, uint32_t worker_count,
                       void (*wake)(struct worker_group *group, struct worker *worker)) {
    *group = (struct worker_group){.workers = workers, .worker_count = worker_count, .wake = wake};
    for (uint32_t i = 0; i < worker_count; i++) {
        workers[i]->group = group;
        workers[i]->group_index = i;
    }
}

static uint64_t worker_now_ns(struct worker *worker) {
    return worker->now_ns ? worker->now_ns(worker) : 0;
}

static void chain_push(struct worker *worker, struct actor *actor) {
    actor->next_run = NULL;
    if (worker->chain_first) {
        worker->chain_last->next_run = actor;
    } else {
        worker->chain_first = actor;
    }
    worker->chain_last = actor;
}

static struct actor *chain_pop(struct worker *worker) {
    struct actor *actor = worker->chain_first;

    worker->chain_first = actor->next_run;
    return actor;
}

/* Whether another thread was asleep and is awake now. */
static bool worker_wake(struct worker *worker) {
    if (!atomic_load_explicit(&worker->asleep, memory_order_relaxed) ||
        !atomic_exchange_explicit(&worker->asleep, false, memory_order_acq_rel)) {
        return false;
    }
    atomic_fetch_sub_explicit(&worker->group->sleeping_count, 1, memory_order_relaxed);
    return true;
}

/* Wakes a thread when the oldest actor of the queue has waited too long, once for each. */
static void group_call_help(struct worker *worker) {
    struct worker_group *group = worker->group;
    uint64_t ticket;
    uint64_t queued_ns;

    if (atomic_load_explicit(&group->sleeping_count, memory_order_relaxed) == 0 ||
        !worker->now_ns || !run_queue_oldest(&worker->run_queue, &ticket, &queued_ns) ||
        ticket == worker->woken_for || worker->now_ns(worker) - queued_ns < ACTOR_WAIT_NS_MAX) {
        return;
    }
    for (uint32_t i = 1; i < group->worker_count; i++) {
        struct worker *other = group->workers[(worker->group_index + i) % group->worker_count];

        if (worker_wake(other)) {
            worker->woken_for = ticket;
            group->wake(group, other);
            return;
        }
    }
}

/* One step, and where its actor goes when there is more. */
static void worker_step(struct worker *worker, struct actor *actor) {
    bool more;

    worker->in_step = true;
    more = actor_turn(actor);
    worker->in_step = false;
    if (!more) {
        return;
    }
    if (actor->slice_count < ACTOR_BATCH_MAX) {
        chain_push(worker, actor);
    } else {
        run_queue_push(&worker->run_queue, actor, worker_now_ns(worker));
    }
}

static void chain_spill(struct worker *worker, uint64_t now_ns) {
    while (worker->chain_first) {
        run_queue_push(&worker->run_queue, chain_pop(worker), now_ns);
    }
}

/* Runs an actor and what its steps make owned, until all is done or the slice is over. The clock
 * is read only when a second step follows, so the usual lone step pays nothing for it. */
static void worker_run_chain(struct worker *worker, struct actor *actor) {
    uint64_t start_ns = 0;

    worker_step(worker, actor);
    for (uint32_t steps = 1; worker->chain_first; steps++) {
        uint64_t now_ns = worker_now_ns(worker);

        if (steps == 1) {
            start_ns = now_ns;
        } else if (now_ns - start_ns >= ACTOR_SLICE_NS || steps >= WORKER_CHAIN_MAX) {
            chain_spill(worker, now_ns);
            break;
        }
        worker_step(worker, chain_pop(worker));
    }
}

static void worker_run(struct worker *worker, struct actor *actor) {
    actor->slice_count = 0;
    worker_run_chain(worker, actor);
    if (worker->return_count > 0) {
        worker_return_all(worker);
    }
    if (worker->group && !run_queue_is_empty(&worker->run_queue)) {
        group_call_help(worker);
    }
}

void worker_own(struct actor *actor) {
    struct worker *worker = bound_worker;

    assert(worker);
    if (worker->schedule) {
        worker->schedule(worker, actor);
    } else if (worker->in_step) {
        actor->slice_count = 0;
        chain_push(worker, actor);
    } else {
        worker_run(worker, actor);
    }
}

void actor_run(struct worker *worker, struct actor *actor) {
    bool more;

    assert(worker->schedule && !worker->in_step);
    actor->slice_count = 0;
    worker->in_step = true;
    more = actor_turn(actor);
    worker->in_step = false;
    if (worker->return_count > 0) {
        worker_return_all(worker);
    }
    if (more) {
        worker->schedule(worker, actor);
    }
}

bool worker_run_one(struct worker *worker) {
    struct actor *actor;

    assert(worker == bound_worker && !worker->in_step);
    if (run_queue_is_all_empty(&worker->run_queue)) {
        return false;
    }
    actor = run_queue_pop(&worker->run_queue,
                          worker->run_queue.overflow_first ? worker_now_ns(worker) : 0);
    if (!actor) {
        return false;
    }
    worker_run(worker, actor);
    return true;
}

bool worker_steal_one(struct worker *worker) {
    struct worker_group *group = worker->group;

    assert(worker == bound_worker && !worker->in_step);
    for (uint32_t i = 1; group && i < group->worker_count; i++) {
        struct worker *other = group->workers[(worker->group_index + i) % group->worker_count];
        struct actor *actor = run_queue_steal(&other->run_queue);

        if (actor) {
            worker_run(worker, actor);
            return true;
        }
    }
    return false;
}

static bool group_has_work(const struct worker_group *group) {
    for (uint32_t i = 0; i < group->worker_count; i++) {
        if (!run_queue_is_empty(&group->workers[i]->run_queue)) {
            return true;
        }
    }
    return false;
}

bool worker_sleep_begin(struct worker *worker) {
    assert(worker == bound_worker && !worker->in_step);
    if (!run_queue_is_all_empty(&worker->run_queue)) {
        return false;
    }
    if (worker->group) {
        /* First seen asleep, then one more look: what is queued after it finds us asleep. */
        atomic_fetch_add(&worker->group->sleeping_count, 1);
        atomic_store(&worker->asleep, true);
        if (group_has_work(worker->group)) {
            worker_sleep_end(worker);
            return false;
        }
    }
    return true;
}

void worker_sleep_end(struct worker *worker) {
    if (worker->group) {
        (void)worker_wake(worker);
    }
}
