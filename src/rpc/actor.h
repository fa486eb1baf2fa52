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
 * to the step. An actor may go when nobody can post to it any more and actor_is_idle; so never in
 * its own step. */
#pragma once
#include "base/types.h"
#include <stdatomic.h>

enum { ACTOR_BATCH_MAX = 32, ACTOR_SLICE_NS = 50000 };

/* Least first to wait: control > release > request > background. */
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

/* Handles the messages of the list, in order; they are linked by next and no longer the actor's. */
typedef void actor_step_fn(struct actor *actor, struct message *first);

/* All but step and name is the owner's, or shared by posters and owner. */
struct actor {
    actor_step_fn *step;
    const char *name;                  /* for traces; static or as long as the actor */
    _Atomic(struct message *) arrived; /* newest first */
    atomic_long pending_count;
    struct message *inbox;  /* oldest first; older than all that arrived */
    struct actor *next_run; /* in a list of the owner's worker */
    uint32_t slice_count;   /* messages handled since it last waited its turn */
};

void actor_init(struct actor *actor, const char *name, actor_step_fn *step);
void actor_post(struct actor *actor, struct message *message);
/* No message is there and nobody owns the actor; what its steps did is seen by the caller. */
bool actor_is_idle(const struct actor *actor);

/* The owner's, for workers: hands the step one batch. True when more is there and the actor still
 * owned; otherwise it is no longer ours to touch. */
MUST_CHECK bool actor_turn(struct actor *actor);
