/* Lanes: queues of blocking work, each with threads of its own. */
#include "env/env_linux_internal.h"
#include "env/errno_map.h"
#include <assert.h>
#include <signal.h>

int thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *context) {
    sigset_t all;
    sigset_t before;

    sigfillset(&all);
    sigdelset(&all, SIGBUS); /* A thread's own: blocked, it would pass by env_fault's handler. */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failure = pthread_create(thread, NULL, run, context);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failure) {
        return err_from_errno(failure);
    }
    pthread_setname_np(*thread, name);
    return 0;
}

static struct env_work *lane_pop(struct lane *lane) {
    struct env_work *work;

    pthread_mutex_lock(&lane->mutex);
    while (!lane->first && !lane->stopping) {
        pthread_cond_wait(&lane->filled, &lane->mutex);
    }
    work = lane->first;
    if (work) {
        lane->first = work->next;
        if (!lane->first) {
            lane->last = NULL;
        }
    }
    pthread_mutex_unlock(&lane->mutex);
    return work;
}

static void *lane_main(void *context) {
    struct lane *lane = context;

    for (struct env_work *work = lane_pop(lane); work; work = lane_pop(lane)) {
        struct env_loop *loop = work->owner;

        work->run(work);
        loop_return(loop, work);
    }
    return NULL;
}

int lane_init(struct lane *lane, struct env_linux *env, unsigned thread_count, const char *name) {
    lane->env = env;
    pthread_mutex_init(&lane->mutex, NULL);
    pthread_cond_init(&lane->filled, NULL);
    while (lane->thread_count < thread_count) {
        int r = thread_start(&lane->threads[lane->thread_count], name, lane_main, lane);

        if (r) {
            return r;
        }
        lane->thread_count++;
    }
    return 0;
}

void lane_deinit(struct lane *lane) {
    if (!lane->env) {
        return;
    }
    pthread_mutex_lock(&lane->mutex);
    lane->stopping = true;
    pthread_cond_broadcast(&lane->filled);
    pthread_mutex_unlock(&lane->mutex);
    for (unsigned i = 0; i < lane->thread_count; i++) {
        pthread_join(lane->threads[i], NULL);
    }
    assert(!lane->first);
    pthread_cond_destroy(&lane->filled);
    pthread_mutex_destroy(&lane->mutex);
    lane->env = NULL;
}

void lane_push(struct lane *lane, struct env_work *work) {
    work->next = NULL;
    pthread_mutex_lock(&lane->mutex);
    if (lane->last) {
        lane->last->next = work;
    } else {
        lane->first = work;
    }
    lane->last = work;
    pthread_cond_signal(&lane->filled);
    pthread_mutex_unlock(&lane->mutex);
}
