/* Threads of a cluster's process. Those that make requests of a mount, and the service thread, have
 * lanes to other nodes of their own; what others call goes by the service thread's. */
#include "node/local_internal.h"
#include <stdlib.h>

enum { GO_ON_MS = 1 };

/* What each thread has; the worker finds it. */
struct local_thread {
    struct worker worker; /* first */
    struct lane_thread *lanes;
};

static uint64_t worker_now(struct worker *worker) {
    return env_now_ns(worker->context);
}

static void loop_wake(void *context) {
    env_loop_wake(context);
}

static void loop_expect(void *context, bool expects) {
    env_loop_expect(context, expects);
}

static struct local_thread *thread_here(void) {
    return (struct local_thread *)(void *)worker_current();
}

void local_cluster_thread_enter(void *context) {
    struct local_cluster *cluster = context;
    struct local_thread *thread = calloc(1, sizeof *thread);

    if (!thread) {
        abort();
    }
    worker_init(&thread->worker);
    thread->worker.now_ns = worker_now;
    thread->worker.context = cluster->env;
    worker_bind(&thread->worker);
}

/* Where there are too many it calls as threads without lanes do. */
void local_cluster_mount_thread_enter(void *context) {
    struct local_cluster *cluster = context;
    const struct lane_waker waker = {
        .wake = loop_wake, .expect = loop_expect, .context = env_thread_loop(cluster->env)};

    local_cluster_thread_enter(cluster);
    if (cluster->lanes && lane_thread_new(cluster->lanes, &waker, &thread_here()->lanes) == 0) {
        lane_thread_bind(thread_here()->lanes);
    }
}

void local_service_thread_enter(struct local_cluster *cluster) {
    local_cluster_mount_thread_enter(cluster);
    if (thread_here()->lanes) {
        lanes_set_home(cluster->lanes, thread_here()->lanes);
    }
}

void local_service_lanes_end(struct local_cluster *cluster) {
    if (cluster->lanes) {
        cluster->lanes_ended = (struct waiting){.loop = env_thread_loop(cluster->env)};
        atomic_store(&cluster->lanes_end, true);
        (void)waiting_end(&cluster->lanes_ended, cluster->env);
    }
}

void local_service_lanes_tick(struct local_cluster *cluster) {
    if (atomic_exchange(&cluster->lanes_end, false)) {
        lane_thread_free(TAKE_PTR(thread_here()->lanes));
        waiting_done(&cluster->lanes_ended, 0);
    }
}

bool local_cluster_thread_go_on(void *context) {
    struct local_cluster *cluster = context;

    (void)local_cluster_thread_idle(cluster);
    if (env_loop_pending(cluster->env) == 0) {
        return false;
    }
    (void)env_loop_wait(cluster->env, -1, GO_ON_MS * NS_PER_MS);
    return true;
}

/* Actors that ran here have I/O under way for anyone's requests: it ends here, too. */
void local_cluster_thread_leave(void *context) {
    struct local_thread *thread = thread_here();

    while (worker_run_one(&thread->worker)) {
    }
    lane_thread_free(TAKE_PTR(thread->lanes));
    while (local_cluster_thread_go_on(context)) {
    }
    worker_bind(NULL);
    free(thread);
}

bool local_cluster_thread_needed(void *context) {
    (void)context;
    return thread_here()->lanes && lane_thread_is_needed(thread_here()->lanes);
}

bool local_cluster_thread_idle(void *context) {
    struct local_thread *thread = thread_here();
    bool ran = false;

    (void)context;
    while (worker_run_one(&thread->worker)) {
        ran = true;
    }
    return (thread->lanes && lane_thread_turn(thread->lanes)) || ran;
}
