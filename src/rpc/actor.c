/* Posting, and the owner's side of it; who runs an owned actor when is in worker.c.
 *
 * Why a count beside the stack: a poster has pushed but not counted yet when another drains. The
 * owner takes as many messages as are counted, whichever they are, so the count never sinks below
 * 0 and the late poster finds either 0, and owns the actor, or an owner that will see its 1. */
#include "rpc/actor.h"
#include "rpc/worker.h"
#include <assert.h>

void actor_init(struct actor *actor, const char *name, actor_step_fn *step) {
    *actor = (struct actor){.step = step, .name = name};
}

void actor_post(struct actor *actor, struct message *message) {
    struct message *newest = atomic_load_explicit(&actor->arrived, memory_order_relaxed);

    do {
        message->next = newest;
    } while (!atomic_compare_exchange_weak_explicit(&actor->arrived, &newest, message,
                                                    memory_order_release, memory_order_relaxed));
    /* Release: whoever sees the count sees the push. Acquire: the new owner sees what the last one
     * left in the actor. */
    if (atomic_fetch_add_explicit(&actor->pending_count, 1, memory_order_acq_rel) == 0) {
        worker_own(actor);
    }
}

bool actor_is_idle(const struct actor *actor) {
    return atomic_load_explicit(&actor->pending_count, memory_order_acquire) == 0;
}

static struct message *list_reverse(struct message *newest) {
    struct message *oldest = NULL;

    while (newest) {
        struct message *next = newest->next;

        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    return oldest;
}

/* Cuts at most count_max messages off the inbox; they stay linked. */
static uint32_t inbox_take(struct actor *actor, uint32_t count_max, struct message **ret_first) {
    struct message *last;
    uint32_t count = 1;

    if (!actor->inbox) {
        actor->inbox =
            list_reverse(atomic_exchange_explicit(&actor->arrived, NULL, memory_order_acquire));
    }
    last = actor->inbox;
    assert(last);
    *ret_first = last;
    while (count < count_max && last->next) {
        last = last->next;
        count++;
    }
    actor->inbox = last->next;
    last->next = NULL;
    return count;
}

bool actor_turn(struct actor *actor) {
    long counted = atomic_load_explicit(&actor->pending_count, memory_order_acquire);
    uint32_t left = ACTOR_BATCH_MAX - actor->slice_count;
    struct message *first;
    uint32_t taken;

    assert(counted > 0 && actor->slice_count < ACTOR_BATCH_MAX);
    taken = inbox_take(actor, (uint32_t)MIN(counted, (long)left), &first);
    actor->step(actor, first);
    actor->slice_count += taken;
    /* Release: the next owner sees what this step did. */
    return atomic_fetch_sub_explicit(&actor->pending_count, (long)taken, memory_order_acq_rel) !=
           (long)taken;
}
