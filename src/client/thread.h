/* A thread of somebody else's program inside the library: it gets a worker and a loop for its time
 * where it has none, and runs what comes its way meanwhile. */
#pragma once
#include "client/client.h"
#include "rpc/worker.h"

struct client_thread {
    struct env *env;
    bool bound;
    bool entered;
    struct worker worker;
};

/* -ERR_NO_MEMORY, -ERR_TOO_MANY_OPEN. */
MUST_CHECK int client_thread_enter(struct client_thread *thread, struct env *env);
void client_thread_leave(struct client_thread *thread);
/* Whether its caller sleeps in shoal_run until it has ended. */
bool client_thread_awaits(const struct shoal_request *request);
