/* The threads of a mount. */
#include "front/fuse/channel_thread_internal.h"
#include "env/env_command.h"
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

unsigned channel_threads_default(void) {
    cpu_set_t cpus;

    if (sched_getaffinity(0, sizeof(cpus), &cpus) < 0)
        return 2;
    return MAX((unsigned)CPU_COUNT(&cpus), 2u);
}

/* Runs what has completed, and what that has left to run, until nothing is left. */
void channel_thread_run_idle(struct channel_thread *thread) {
    const struct fuse_options *options = thread->all->options;

    do {
        if (env_loop_pending(options->env) > 0)
            (void)env_loop_poll(options->env);
    } while (options->thread_idle && options->thread_idle(options->context));
}

void channel_thread_wake(struct channel_thread *thread) {
    struct channel_threads *all = thread->all;

    pthread_mutex_lock(&all->mutex);
    if (thread->loop)
        env_loop_wake(thread->loop);
    pthread_mutex_unlock(&all->mutex);
}

bool channel_thread_put_turn(struct channel_thread *thread, struct fuse_request *request,
                             size_t in_bytes, bool at_once) {
    struct front *front = thread->all->front;

    request->thread_index = thread->index;
    if (!fair_wanted(&front->fair, request, in_bytes, at_once))
        return false;
    request->started_ns = env_now_ns(front->env);
    interrupts_meet(request, request_header(request)->unique);
    fair_put(&front->fair, request, in_bytes);
    return true;
}

/* One that had to wait, wherever it came; false: none that may be begun. */
static bool thread_begin_turn(struct channel_thread *thread) {
    struct front *front = thread->all->front;
    struct fuse_request *request = fair_take(&front->fair);

    if (!request)
        return false;
    request->thread_index = thread->index;
    if (fuse_request_run(request, request->in_bytes)) {
        if (request->entry)
            channel_uring_ended(request);
        else
            fuse_request_put(front, request);
    }
    return true;
}

/* The thread whose entry it came by must not end meanwhile: that waits for what is detached, behind
 * the close of the readers. */
static bool thread_take_turn(struct channel_thread *thread) {
    struct channel_threads *all = thread->all;
    struct request_pool *pool = &all->front->requests;
    bool took;

    atomic_fetch_add(&pool->detached_count, 1);
    took = !readers_are_closed(&all->readers) && thread_begin_turn(thread);
    atomic_fetch_sub(&pool->detached_count, 1);
    if (readers_are_closed(&all->readers))
        channel_threads_wake(all);
    return took;
}

void channel_thread_serve_turn(struct channel_thread *thread, int descriptor) {
    struct request_pool *pool = &thread->all->front->requests;

    if (thread_take_turn(thread))
        return;
    atomic_fetch_add(&pool->waiting_count, 1);
    if (!thread_take_turn(thread))
        (void)env_loop_wait(thread->all->options->env, descriptor, FAIR_STUCK_NS);
    atomic_fetch_sub(&pool->waiting_count, 1);
}

/* What is in flight may need this thread, wherever it was read. */
static void thread_drain(struct channel_thread *thread) {
    struct request_pool *pool = &thread->all->front->requests;

    atomic_fetch_add(&pool->waiting_count, 1);
    channel_thread_run_idle(thread);
    while (atomic_load(&pool->detached_count) != 0) {
        (void)env_loop_wait(thread->all->options->env, -1, UINT64_MAX);
        channel_thread_run_idle(thread);
    }
    atomic_fetch_sub(&pool->waiting_count, 1);
}

/* Tells the starter how it went. */
static void thread_report(struct channel_thread *thread, int result, int uring_result) {
    struct channel_threads *all = thread->all;

    pthread_mutex_lock(&all->mutex);
    all->started_count++;
    if (all->uring_result == 0)
        all->uring_result = uring_result;
    if (result < 0)
        all->start_result = result;
    else
        thread->loop = env_thread_loop(all->options->env);
    pthread_cond_broadcast(&all->changed);
    pthread_mutex_unlock(&all->mutex);
}

static void thread_end(struct channel_thread *thread) {
    struct channel_threads *all = thread->all;

    pthread_mutex_lock(&all->mutex);
    thread->loop = NULL;
    all->running_count--;
    pthread_cond_broadcast(&all->changed);
    pthread_mutex_unlock(&all->mutex);
}

/* What the kernel and this side have agreed on. */
static enum channel_mode thread_mode(struct channel_thread *thread) {
    struct channel_threads *all = thread->all;
    enum channel_mode mode;

    pthread_mutex_lock(&all->mutex);
    while (all->mode == CHANNEL_UNDECIDED)
        pthread_cond_wait(&all->changed, &all->mutex);
    mode = all->mode;
    pthread_mutex_unlock(&all->mutex);
    return mode;
}

static void thread_serve(struct channel_thread *thread) {
    struct channel_threads *all = thread->all;
    enum channel_mode mode = thread_mode(thread);

    if (mode == CHANNEL_URING && thread->index < channel_uring_threads(all->uring)) {
        aside_join(all->aside, &thread->aside, false);
        channel_uring_serve(all->uring, thread);
    } else if (mode == CHANNEL_DEV && thread->index < all->reader_count) {
        aside_join(all->aside, &thread->aside, true);
        channel_read_serve(thread, true);
    } else if (mode == CHANNEL_URING) {
        channel_read_serve(thread, false);
    }
    aside_part(&thread->aside);
    if (mode != CHANNEL_NONE && (mode != CHANNEL_DEV || thread->index < all->reader_count)) {
        /* Nobody would serve what the kernel still has: programs would wait for ever. */
        if (channel_dev_connected(all->dev))
            all->dev->abort(all->dev->context);
        atomic_store(&all->front->is_over, true);
        readers_close(&all->readers);
        channel_threads_wake(all);
    }
}

static void thread_work(struct channel_thread *thread, int uring_result) {
    const struct fuse_options *options = thread->all->options;

    if (options->thread_enter)
        options->thread_enter(options->context);
    thread_report(thread, 0, uring_result);
    thread_serve(thread);
    thread_drain(thread);
    env_loop_disarm(options->env);
    if (options->thread_leave)
        options->thread_leave(options->context);
}

static void *thread_main(void *context) {
    struct channel_thread *thread = context;
    struct env *env = thread->all->options->env;
    char name[16];
    int r;

    (void)snprintf(name, sizeof(name), "fuse-%u", thread->index);
    (void)pthread_setname_np(pthread_self(), name);
    channel_thread_flushes();
    r = env_thread_enter(env);
    if (r < 0)
        thread_report(thread, r, r);
    else
        thread_work(thread, thread->all->uring ? env_commands_enable(env) : 0);
    thread_end(thread);
    if (r == 0)
        env_thread_leave(env);
    return NULL;
}

struct channel_threads *channel_threads_new(const struct channel_threads_options *options) {
    unsigned count = MAX(options->fuse->thread_count,
                         options->uring ? channel_uring_threads(options->uring) + 1 : 0);
    struct channel_threads *threads =
        calloc(1, sizeof(*threads) + count * sizeof(threads->threads[0]));

    if (!threads)
        return NULL;
    threads->front = options->front;
    threads->dev = options->dev;
    threads->uring = options->uring;
    threads->reader_count = options->fuse->thread_count;
    threads->options = options->fuse;
    threads->wanted_count = count;
    pthread_mutex_init(&threads->mutex, NULL);
    pthread_cond_init(&threads->changed, NULL);
    for (unsigned i = 0; i < count; i++)
        threads->threads[i] = (struct channel_thread){
            .all = threads, .index = i, .descriptor = -1, .poll_descriptor = -1};
    return threads;
}

static int thread_start(struct channel_thread *thread) {
    struct channel_dev *dev = thread->all->dev;
    int r = channel_dev_clone(dev, false, &thread->descriptor);

    if (r == 0)
        r = channel_dev_clone(dev, true, &thread->poll_descriptor);
    if (r < 0)
        return r;
    thread->request = request_pool_take(&thread->all->front->requests);
    if (!thread->request)
        return -ERR_NO_MEMORY;
    return pthread_create(&thread->thread, NULL, thread_main, thread) == 0 ? 0 : -ERR_BUSY;
}

int channel_threads_start(struct channel_threads *threads) {
    sigset_t all_signals;
    sigset_t before;
    unsigned started = 0;
    int r = 0;

    threads->running_count = threads->wanted_count;
    sigfillset(&all_signals);
    sigdelset(&all_signals, SIGBUS); /* A thread's own: blocked, it would pass by a handler. */
    pthread_sigmask(SIG_SETMASK, &all_signals, &before);
    threads->aside =
        aside_open(threads->options->env, threads->wanted_count, ASIDE_DEAR_NS, ASIDE_DEAR_MANY_NS);
    while (started < threads->wanted_count && r == 0) {
        r = thread_start(&threads->threads[started]);
        if (r == 0)
            started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);

    pthread_mutex_lock(&threads->mutex);
    threads->count = started;
    threads->running_count -= threads->wanted_count - started;
    while (threads->started_count < threads->count)
        pthread_cond_wait(&threads->changed, &threads->mutex);
    if (r == 0)
        r = threads->start_result;
    pthread_mutex_unlock(&threads->mutex);
    return r;
}

int channel_threads_uring_result(struct channel_threads *threads) {
    int r;

    pthread_mutex_lock(&threads->mutex);
    r = threads->uring_result;
    pthread_mutex_unlock(&threads->mutex);
    return r;
}

void channel_threads_go(struct channel_threads *threads, enum channel_mode mode) {
    pthread_mutex_lock(&threads->mutex);
    /* Before any of them reads, as the last one that does never parks. */
    for (unsigned i = 0; i < (mode == CHANNEL_DEV ? threads->reader_count : 1); i++)
        readers_enter(&threads->readers);
    threads->mode = mode;
    pthread_cond_broadcast(&threads->changed);
    pthread_mutex_unlock(&threads->mutex);
}

void channel_threads_wake(struct channel_threads *threads) {
    pthread_mutex_lock(&threads->mutex);
    for (unsigned i = 0; i < threads->wanted_count; i++)
        if (threads->threads[i].loop)
            env_loop_wake(threads->threads[i].loop);
    pthread_mutex_unlock(&threads->mutex);
}

/* Over /dev/fuse one that is parked; over io_uring the next queue's, as each has a CPU. */
void channel_threads_ahead(struct channel_threads *threads, unsigned thread_index) {
    unsigned queues = threads->mode == CHANNEL_URING ? channel_uring_threads(threads->uring) : 0;
    unsigned count = queues > 0 ? queues : threads->reader_count;

    for (unsigned i = 1; i < count; i++) {
        struct channel_thread *thread = &threads->threads[(thread_index + i) % count];

        if (queues > 0 || reader_is_parked(&threads->readers, &thread->reader)) {
            atomic_store(&thread->lists_ahead, true);
            channel_thread_wake(thread);
            return;
        }
    }
}

void channel_threads_count_aside(const struct channel_threads *threads,
                                 struct fuse_counters *ret_counters) {
    ret_counters->may_stand_aside = aside_may(threads->aside);
    for (unsigned i = 0; i < threads->wanted_count; i++) {
        const struct aside_thread *thread = &threads->threads[i].aside;

        ret_counters->stood_aside += atomic_load(&thread->entered_count);
        ret_counters->served_aside += atomic_load(&thread->served_count);
    }
}

void channel_threads_wait(struct channel_threads *threads) {
    pthread_mutex_lock(&threads->mutex);
    while (threads->running_count > 0)
        pthread_cond_wait(&threads->changed, &threads->mutex);
    pthread_mutex_unlock(&threads->mutex);
}

static void descriptor_close(int descriptor) {
    if (descriptor >= 0)
        (void)close(descriptor);
}

void channel_threads_free(struct channel_threads *threads) {
    if (!threads)
        return;
    if (threads->mode == CHANNEL_UNDECIDED)
        channel_threads_go(threads, CHANNEL_NONE);
    for (unsigned i = 0; i < threads->count; i++)
        pthread_join(threads->threads[i].thread, NULL);
    aside_close(threads->aside);
    /* Whoever ended the last request on a thread that isn't ours is done in an instant. */
    while (atomic_load(&threads->front->requests.leaving_count) > 0)
        (void)sched_yield();
    for (unsigned i = 0; i < threads->wanted_count; i++) {
        descriptor_close(threads->threads[i].descriptor);
        descriptor_close(threads->threads[i].poll_descriptor);
    }
    pthread_cond_destroy(&threads->changed);
    pthread_mutex_destroy(&threads->mutex);
    free(threads);
}
