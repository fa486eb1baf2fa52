/* The contract is in local_wait.h. */
#include "node/local_wait.h"
#include "base/types.h"
#include "rpc/worker.h"

enum { WAIT_MS = 100, GONE_NS = 10000 };

void waiting_done(void *context, int result) {
    struct waiting *waiting = context;
    struct env_loop *loop = waiting->loop;

    waiting->result = result;
    atomic_store(&waiting->state, WAITING_DONE);
    env_loop_wake(loop);
    atomic_store(&waiting->state, WAITING_GONE);
}

bool waiting_is_over(struct waiting *waiting, struct env *env) {
    unsigned state = atomic_load(&waiting->state);

    if (state != WAITING_GONE) {
        while (worker_run_one(worker_current())) {
        }
        if (atomic_load(&waiting->state) != WAITING_GONE) {
            (void)env_loop_wait(env, -1, state == WAITING ? WAIT_MS * NS_PER_MS : GONE_NS);
        }
    }
    return atomic_load(&waiting->state) == WAITING_GONE;
}

int waiting_end(struct waiting *waiting, struct env *env) {
    while (!waiting_is_over(waiting, env)) {
    }
    return waiting->result;
}
