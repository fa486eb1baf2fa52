/* Actors: units of state whose step is run by one thread at a time, without locks.
 *
 * Posting pushes a message and adds 1 to the actor's pending count; whoever raised the count from
 * 0 owns the actor and runs its step on its own thread: at once, or, from inside a step, right
 * after that step (never nested). The owner hands the step at most the messages that are counted
 * (and at most ACTOR_BATCH_MAX), subtracts what it drained, and at 0 owns the actor no more.
 * After ACTOR_BATCH_MAX messages or ACTOR_SLICE_NS the actor, still owned, goes to the end of the
 * thread's run queue. docs/internals/execution.md has the picture; test/model/actor.pml the proof.
 *
 * Thread: actor_post from any thread that has a worker. Messages of one poster arrive in order.
 * Memory: none of its own; a message belongs to the actor from post until its step gets it, then
 * to the step. */
#pragma once
#include "base/list.h"
#include "base/types.h"
#include <stdatomic.h>

enum { ACTOR_BATCH_MAX = 32, ACTOR_SLICE_NS = 50000 };

/* DESIGN: control > release > request > background. */
enum message_class {
    MESSAGE_CONTROL,
    MESSAGE_RELEASE,
    MESSAGE_REQUEST,
    MESSAGE_BACKGROUND,
    MESSAGE_CLASS_COUNT
};

/* kind is the receiving actor's own enumeration. */
struct message {
    struct message *next;
    uint16_t kind;
    uint8_t message_class; /* enum message_class */
};

struct actor;
struct worker;

/* Handles the messages of the list, in order; they are linked by next and no longer the actor's. */
typedef void actor_step_fn(struct actor *actor, struct message *first);

struct actor {
    actor_step_fn *step;
    const char *name;                  /* for traces; static or as long as the actor */
    _Atomic(struct message *) arrived; /* newest first */
    atomic_long pending_count;
    struct message *inbox;  /* oldest first; the owner's */
    struct actor *next_run; /* the owner's worker's */
};

void actor_init(struct actor *actor, const char *name, actor_step_fn *step);
void actor_post(struct actor *actor, struct message *message);

/* One per thread that runs actors. schedule, when set, takes over every actor that became owned
 * (the simulator orders them by its seed); it must see to it that actor_run is called later. */
struct worker {
    struct actor *run_first;
    struct actor *run_last;
    bool in_step;
    uint64_t (*now_ns)(struct worker *worker); /* NULL: slices are by count only */
    void (*schedule)(struct worker *worker, struct actor *actor);
    void *context;
};

void worker_init(struct worker *worker);
/* Binds the worker to the calling thread; NULL unbinds. actor_post uses the bound one. */
void worker_bind(struct worker *worker);
struct worker *worker_current(void);
/* Runs one actor of the run queue for one slice; false when the queue was empty. */
bool worker_run_one(struct worker *worker);
/* Runs one slice of an owned actor that schedule was given; re-schedules it when more is left. */
void actor_run(struct worker *worker, struct actor *actor);
