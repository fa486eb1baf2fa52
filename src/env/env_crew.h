/* Threads that share one piece of work with the thread that calls them up. Their second part begins
 * when that thread says so: by then all that they have made together is there.
 *
 *     caller   new ---- its own share ---- wait ---- what takes all ---- release ........ free
 *     others    '--- work ---------------- .'                              '--- leave ---- '
 *
 * For a program's start, with the real outside. Signals are for other threads than these. */
#pragma once
#include "base/err.h"
#include "base/types.h"

struct env_crew;

struct env_crew_options {
    unsigned thread_count; /* beside the caller's */
    void (*work)(
        void *context); /* on each of them; they divide up among themselves what is to do */
    void (*leave)(void *context); /* likewise, after release */
    void *context;
};

/* -ERR_NO_MEMORY. There are fewer threads, or none, where the system gives no more. */
MUST_CHECK int env_crew_new(const struct env_crew_options *options, struct env_crew **ret_crew);
/* Until all of them have come back from work; what they did is seen by the caller. */
void env_crew_wait(struct env_crew *crew);
/* Lets them go on with leave. Once, after wait; what the caller did is seen by them. */
void env_crew_release(struct env_crew *crew);
/* After release: waits for their ends, and frees. Takes NULL. */
void env_crew_free(struct env_crew *crew);
