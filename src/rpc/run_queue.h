/* A worker's queue of owned actors that wait for their next slice, oldest first.
 *
 * One thread pushes; it and thieves take the oldest. A ring of slots: the owner writes a slot and
 * then raises tail, whoever raises head from h to h + 1 has the actor of slot h. A slot is written
 * anew only when head has passed it, so who read an old actor there fails to raise head. (The local
 * queue of Go's scheduler works so.) What does not fit waits in a list of the owner's, which
 * thieves can't see, and moves up as slots get free. No locks, nothing waits.
 *
 * Thread: steal and is_empty from any, all else from the owner. Memory: the struct. */
#pragma once
#include "base/types.h"
#include <stdatomic.h>

enum { RUN_QUEUE_SLOTS = 64 };

struct actor;

struct run_queue {
    _Alignas(64) _Atomic uint64_t head;
    _Atomic uint64_t tail; /* written by the owner */
    _Atomic(struct actor *) slots[RUN_QUEUE_SLOTS];
    uint64_t queued_ns[RUN_QUEUE_SLOTS]; /* the owner's, as all below */
    struct actor *overflow_first;
    struct actor *overflow_last;
};

void run_queue_init(struct run_queue *queue);
void run_queue_push(struct run_queue *queue, struct actor *actor, uint64_t now_ns);
/* Both answer NULL when there is none (a pop then leaves none in the overflow either). */
struct actor *run_queue_pop(struct run_queue *queue, uint64_t now_ns);
struct actor *run_queue_steal(struct run_queue *queue);
/* Nothing can be stolen. */
bool run_queue_is_empty(const struct run_queue *queue);
/* The owner's question: nothing is left for it either. */
bool run_queue_is_all_empty(const struct run_queue *queue);
/* The ticket of the oldest, a number that no other actor's stay in this queue has, and when it
 * came; false when there is none. */
bool run_queue_oldest(const struct run_queue *queue, uint64_t *ret_ticket, uint64_t *ret_queued_ns);
