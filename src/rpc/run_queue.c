/* The contract and the idea are in run_queue.h; test/model/run_queue.pml proves it. */
#include "rpc/run_queue.h"
#include "rpc/actor.h"

void run_queue_init(struct run_queue *queue) {
    *queue = (struct run_queue){0};
}

static bool slot_fill(struct run_queue *queue, struct actor *actor, uint64_t now_ns) {
    uint64_t tail = atomic_load_explicit(&queue->tail, memory_order_relaxed);

    /* Acquire: a thief read its slot before it raised head, and we write that slot after. */
    if (tail - atomic_load_explicit(&queue->head, memory_order_acquire) == RUN_QUEUE_SLOTS) {
        return false;
    }
    queue->queued_ns[tail % RUN_QUEUE_SLOTS] = now_ns;
    atomic_store_explicit(&queue->slots[tail % RUN_QUEUE_SLOTS], actor, memory_order_relaxed);
    atomic_store_explicit(&queue->tail, tail + 1, memory_order_release);
    return true;
}

/* Time in the overflow is not counted: by then older ones have waited long enough to be noticed. */
static void overflow_move(struct run_queue *queue, uint64_t now_ns) {
    while (queue->overflow_first) {
        struct actor *actor = queue->overflow_first;
        struct actor *next = actor->next_run;

        if (!slot_fill(queue, actor, now_ns)) {
            return;
        }
        queue->overflow_first = next;
    }
    queue->overflow_last = NULL;
}

void run_queue_push(struct run_queue *queue, struct actor *actor, uint64_t now_ns) {
    overflow_move(queue, now_ns);
    if (!queue->overflow_first && slot_fill(queue, actor, now_ns)) {
        return;
    }
    actor->next_run = NULL;
    if (queue->overflow_first) {
        queue->overflow_last->next_run = actor;
    } else {
        queue->overflow_first = actor;
    }
    queue->overflow_last = actor;
}

struct actor *run_queue_steal(struct run_queue *queue) {
    uint64_t head = atomic_load_explicit(&queue->head, memory_order_relaxed);

    while (head < atomic_load_explicit(&queue->tail, memory_order_acquire)) {
        struct actor *actor =
            atomic_load_explicit(&queue->slots[head % RUN_QUEUE_SLOTS], memory_order_relaxed);

        if (atomic_compare_exchange_weak_explicit(&queue->head, &head, head + 1,
                                                  memory_order_acq_rel, memory_order_relaxed)) {
            return actor;
        }
    }
    return NULL;
}

struct actor *run_queue_pop(struct run_queue *queue, uint64_t now_ns) {
    struct actor *actor;

    /* Again when thieves took all that was moved up: the overflow is ours alone to run. */
    do {
        actor = run_queue_steal(queue);
        if (queue->overflow_first) {
            overflow_move(queue, now_ns);
        }
    } while (!actor && !run_queue_is_empty(queue));
    return actor;
}

bool run_queue_is_empty(const struct run_queue *queue) {
    /* head first: a pair that never stood together must not look empty while an actor waits. */
    uint64_t head = atomic_load_explicit(&queue->head, memory_order_acquire);

    return head >= atomic_load_explicit(&queue->tail, memory_order_acquire);
}

bool run_queue_is_all_empty(const struct run_queue *queue) {
    return run_queue_is_empty(queue) && !queue->overflow_first;
}

bool run_queue_oldest(const struct run_queue *queue, uint64_t *ret_ticket,
                      uint64_t *ret_queued_ns) {
    uint64_t head = atomic_load_explicit(&queue->head, memory_order_relaxed);

    if (head >= atomic_load_explicit(&queue->tail, memory_order_relaxed)) {
        return false;
    }
    *ret_ticket = head;
    *ret_queued_ns = queue->queued_ns[head % RUN_QUEUE_SLOTS];
    return true;
}
