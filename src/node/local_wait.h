/* A thread of the process waits for what a step answers.
 *
 * Thread: the one that waits, whose loop it is; waiting_done any, in a step. Memory: the caller's,
 * until waiting_is_over has said so: the answer may come late. */
#pragma once
#include "env/env_linux.h"
#include <stdatomic.h>

/* GONE is stored last: the thread may then leave, and its stack and its loop with it. */
enum waiting_state { WAITING, WAITING_DONE, WAITING_GONE };

struct waiting {
    struct env_loop *loop; /* of the thread that waits */
    atomic_uint state;     /* enum waiting_state */
    int result;
};

/* For `done` of what is begun; context is the waiting. */
void waiting_done(void *context, int result);
/* Runs what the thread has to run and waits a moment; true when the answer is there. */
bool waiting_is_over(struct waiting *waiting, struct env *env);
/* Waits for the answer. */
int waiting_end(struct waiting *waiting, struct env *env);
