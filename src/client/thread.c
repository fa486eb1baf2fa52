/* Threads that come from outside, and waiting for a request. */
#include "client/thread.h"
#include "client/client_internal.h"
#include "env/env_linux.h"
#include "env/errno_map.h"
#include <assert.h>
#include <shoal/path.h>
#include <stdlib.h>

static uint64_t thread_now_ns(struct worker *worker) {
    return env_now_ns(worker->context);
}

int client_thread_enter(struct client_thread *thread, struct env *env) {
    thread->env = env;
    thread->bound = false;
    thread->entered = false;
    if (worker_current()) {
        return 0;
    }
    if (!env_thread_loop(env)) {
        int r = env_thread_enter(env);

        if (r) {
            return r;
        }
        thread->entered = true;
    }
    worker_init(&thread->worker);
    thread->worker.now_ns = thread_now_ns;
    thread->worker.context = env;
    worker_bind(&thread->worker);
    thread->bound = true;
    return 0;
}

/* Nobody else is told of what this thread has queued or submitted, so it ends that first. */
void client_thread_leave(struct client_thread *thread) {
    if (!thread->bound) {
        return;
    }
    for (;;) {
        while (worker_run_one(&thread->worker)) {
        }
        if (env_loop_pending(thread->env) == 0) {
            break;
        }
        (void)env_loop_wait(thread->env, -1, UINT64_MAX);
    }
    worker_bind(NULL);
    if (thread->entered) {
        env_thread_leave(thread->env);
    }
}

int shoal_thread_enter(struct shoal_client *client) {
    struct client_thread *thread;
    int r;

    if (worker_current()) {
        return -err_to_errno(-ERR_IN_USE);
    }
    thread = calloc(1, sizeof *thread);
    if (!thread) {
        return -err_to_errno(-ERR_NO_MEMORY);
    }
    r = client_thread_enter(thread, client->options.env);
    if (r) {
        free(thread);
    }
    return -err_to_errno(r);
}

void shoal_thread_leave(struct shoal_client *client) {
    struct worker *worker = worker_current();

    (void)client;
    if (worker) {
        struct client_thread *thread = CONTAINER_OF(worker, struct client_thread, worker);

        client_thread_leave(thread);
        free(thread);
    }
}

/* Somebody waits for a request. GONE is stored last: the waiting thread may then leave, and its
 * stack and its loop with it. */
enum waiter_state { WAITER_WAITS, WAITER_DONE, WAITER_GONE };

struct waiter {
    struct env_loop *loop;
    void (*done)(struct shoal_request *request);
    void *context;
    atomic_uint state; /* enum waiter_state */
};

enum { GONE_WAIT_NS = 10000 };

static void waiter_done(struct shoal_request *request) {
    struct waiter *waiter = request->context;

    atomic_store(&waiter->state, WAITER_DONE);
    env_loop_wake(waiter->loop);
    atomic_store(&waiter->state, WAITER_GONE);
}

bool client_thread_awaits(const struct shoal_request *request) {
    return request->done == waiter_done;
}

static void thread_sleep(struct env *env, struct worker *worker, uint64_t timeout_ns) {
    while (worker_run_one(worker)) {
    }
    if (worker_sleep_begin(worker)) {
        (void)env_loop_wait(env, -1, timeout_ns);
        worker_sleep_end(worker);
    } else if (!worker_run_one(worker)) {
        (void)worker_steal_one(worker);
    }
}

int64_t shoal_run(struct shoal_client *client, struct shoal_request *request) {
    struct env *env = client->options.env;
    struct client_thread thread;
    struct waiter waiter = {.done = request->done, .context = request->context};
    int r = client_thread_enter(&thread, env);

    if (r) {
        request->result = -err_to_errno(r);
        return request->result;
    }
    waiter.loop = env_thread_loop(env);
    assert(waiter.loop && !worker_current()->in_step);
    request->done = waiter_done;
    request->context = &waiter;
    shoal_submit(client, request);
    while (atomic_load(&waiter.state) == WAITER_WAITS) {
        thread_sleep(env, worker_current(), UINT64_MAX);
    }
    while (atomic_load(&waiter.state) != WAITER_GONE) {
        thread_sleep(env, worker_current(), GONE_WAIT_NS);
    }
    request->done = waiter.done;
    request->context = waiter.context;
    client_thread_leave(&thread);
    return request->result;
}
