/* The threads of a mount. */
#include "front/fuse/channel_thread.h"
#include "env/env_linux.h"
#include "front/fuse/readers.h"
#include "front/fuse/request.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#ifndef PR_SET_IO_FLUSHER
#define PR_SET_IO_FLUSHER 57 /* Linux 5.6 */
#endif

enum {
    POLL_NS = 10000,     /* looked for the next request before sleeping */
    POLL_PAUSES = 8,     /* between two looks */
    SHARE_NS = 250000,   /* without an empty read, then another is to help */
    LARGE_NS = 10000000, /* for so long a large READ or WRITE keeps all active */
};

struct channel_thread {
    struct channel_threads *all;
    unsigned index;
    pthread_t thread;
    int descriptor;               /* reads sleep */
    int poll_descriptor;          /* reads don't */
    struct env_loop *loop;        /* while it may be woken; guarded by mutex */
    struct fuse_request *request; /* that the next read fills; NULL: to be had */
    uint64_t busy_since_ns;       /* no read came back empty since; 0: the last one did */
    struct reader reader;
};

struct channel_threads {
    struct front *front;
    struct channel_dev *dev;
    const struct fuse_options *options;
    unsigned wanted_count;
    struct readers readers;    /* closed: the mount is gone */
    _Atomic uint64_t large_ns; /* when large data was asked for last */
    pthread_mutex_t mutex;     /* guards what follows */
    pthread_cond_t changed;
    unsigned count;         /* that could be started */
    unsigned started_count; /* that serve, or failed to */
    unsigned running_count;
    int start_result;
    struct channel_thread threads[];
};

unsigned channel_threads_default(void) {
    cpu_set_t cpus;

    if (sched_getaffinity(0, sizeof(cpus), &cpus) < 0)
        return 2;
    return MAX((unsigned)CPU_COUNT(&cpus), 2u);
}

/* Runs what has completed, and what that has left to run, until nothing is left. */
static void thread_run_idle(struct channel_thread *thread) {
    const struct fuse_options *options = thread->all->options;

    do {
        if (env_loop_pending(options->env) > 0)
            (void)env_loop_poll(options->env);
    } while (options->thread_idle && options->thread_idle(options->context));
}

/* Sleeps until another request is put back, unless there is one by now. */
static void thread_wait_request(struct channel_thread *thread) {
    struct request_pool *pool = &thread->all->front->requests;

    atomic_fetch_add(&pool->waiting_count, 1);
    thread->request = request_pool_take(pool);
    if (!thread->request)
        (void)env_loop_wait(thread->all->options->env, -1, UINT64_MAX);
    atomic_fetch_sub(&pool->waiting_count, 1);
}

static void thread_wake(struct channel_thread *thread) {
    struct channel_threads *all = thread->all;

    pthread_mutex_lock(&all->mutex);
    if (thread->loop)
        env_loop_wake(thread->loop);
    pthread_mutex_unlock(&all->mutex);
}

static inline void cpu_relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* Makes one of the parked threads active, if there is one. */
static void thread_activate_one(struct channel_threads *threads) {
    for (unsigned i = 0; i < threads->wanted_count; i++) {
        if (reader_activate(&threads->readers, &threads->threads[i].reader)) {
            thread_wake(&threads->threads[i]);
            return;
        }
    }
}

/* Leaves the requests to the other active threads until one of them has too many; completions of
 * this thread go on. False at once when there is no other. */
static bool thread_park(struct channel_thread *thread) {
    struct channel_threads *all = thread->all;
    uint64_t large_ns = atomic_load_explicit(&all->large_ns, memory_order_relaxed);

    if (atomic_load_explicit(&all->readers.active_count, memory_order_relaxed) <= 1 ||
        env_now_ns(all->options->env) - large_ns < LARGE_NS)
        return false;
    if (!reader_park(&all->readers, &thread->reader))
        return false;
    while (reader_is_parked(&all->readers, &thread->reader)) {
        (void)env_loop_wait(all->options->env, -1, UINT64_MAX);
        thread_run_idle(thread);
    }
    return true;
}

/* While requests are short, half of the CPUs are left to those who send them. Copying large data
 * keeps a thread from reading what waits, so then all read. */
static void thread_found(struct channel_thread *thread, bool at_once, size_t bytes) {
    struct channel_threads *all = thread->all;
    bool large = fuse_request_is_large(thread->request, bytes);
    unsigned limit = large ? all->wanted_count : MAX(all->wanted_count / 2, 1u);
    unsigned active =
        (unsigned)atomic_load_explicit(&all->readers.active_count, memory_order_relaxed);
    uint64_t now_ns;

    if (!large && (!at_once || active >= limit))
        return;
    now_ns = env_now_ns(all->options->env);
    if (large)
        atomic_store_explicit(&all->large_ns, now_ns, memory_order_relaxed);
    if (thread->busy_since_ns == 0)
        thread->busy_since_ns = now_ns;
    if (active < limit && (large || now_ns - thread->busy_since_ns >= SHARE_NS)) {
        thread_activate_one(all);
        thread->busy_since_ns = now_ns;
    }
}

/* The next request, looked for without sleeping for POLL_NS; -ERR_PENDING: there is none.
 * *ret_bytes is 0 when something of this thread is to be run first. */
static int thread_poll(struct channel_thread *thread, size_t *ret_bytes) {
    struct env *env = thread->all->options->env;
    uint64_t end_ns = 0;

    thread->request->descriptor = thread->poll_descriptor;
    for (;;) {
        int r = channel_dev_read(thread->poll_descriptor, thread->request, ret_bytes);
        uint64_t now_ns;

        if (r != -ERR_PENDING) {
            if (r == 0)
                thread_found(thread, end_ns == 0, *ret_bytes);
            return r;
        }
        thread->busy_since_ns = 0;
        now_ns = env_now_ns(env);
        if (end_ns == 0)
            end_ns = now_ns + POLL_NS;
        if (now_ns >= end_ns)
            return -ERR_PENDING;
        if (env_loop_pending(env) > 0 && env_loop_poll(env) > 0) {
            *ret_bytes = 0;
            return 0;
        }
        for (unsigned i = 0; i < POLL_PAUSES; i++)
            cpu_relax();
    }
}

/* -ERR_CLOSED when the mount is gone; *ret_bytes is 0 when something else is to be done first. */
static int thread_read(struct channel_thread *thread, size_t *ret_bytes) {
    struct env *env = thread->all->options->env;
    int r = thread_poll(thread, ret_bytes);

    if (r != -ERR_PENDING)
        return r;
    *ret_bytes = 0;
    if (thread_park(thread))
        return readers_are_closed(&thread->all->readers) ? -ERR_CLOSED : 0;
    if (env_loop_pending(env) > 0) {
        (void)env_loop_wait(env, thread->poll_descriptor, UINT64_MAX);
        return 0;
    }
    thread->request->descriptor = thread->descriptor;
    return channel_dev_read(thread->descriptor, thread->request, ret_bytes);
}

static void thread_serve(struct channel_thread *thread) {
    struct request_pool *pool = &thread->all->front->requests;
    size_t bytes = 0;

    for (;;) {
        thread_run_idle(thread);
        if (!thread->request)
            thread->request = request_pool_take(pool);
        if (!thread->request) {
            thread_wait_request(thread);
            continue;
        }
        if (thread_read(thread, &bytes) < 0)
            break;
        thread->request->thread_index = thread->index;
        if (bytes > 0 && !fuse_request_run(thread->request, bytes))
            thread->request = NULL;
    }
    readers_close(&thread->all->readers);
    channel_threads_wake(thread->all);
}

/* What is in flight may need this thread, wherever it was read. */
static void thread_drain(struct channel_thread *thread) {
    struct request_pool *pool = &thread->all->front->requests;

    atomic_fetch_add(&pool->waiting_count, 1);
    thread_run_idle(thread);
    while (atomic_load(&pool->detached_count) != 0) {
        (void)env_loop_wait(thread->all->options->env, -1, UINT64_MAX);
        thread_run_idle(thread);
    }
    atomic_fetch_sub(&pool->waiting_count, 1);
}

/* Tells the starter how it went. */
static void thread_report(struct channel_thread *thread, int result) {
    struct channel_threads *all = thread->all;

    pthread_mutex_lock(&all->mutex);
    all->started_count++;
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

static void thread_work(struct channel_thread *thread) {
    const struct fuse_options *options = thread->all->options;

    if (options->thread_enter)
        options->thread_enter(options->context);
    readers_enter(&thread->all->readers);
    thread_report(thread, 0);
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
    /* Memory that we ask for must not be had by writing to ourselves. Refused without privilege. */
    (void)prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0);
    r = env_thread_enter(env);
    if (r < 0)
        thread_report(thread, r);
    else
        thread_work(thread);
    thread_end(thread);
    if (r == 0)
        env_thread_leave(env);
    return NULL;
}

struct channel_threads *channel_threads_new(const struct channel_threads_options *options) {
    unsigned count = options->fuse->thread_count;
    struct channel_threads *threads =
        calloc(1, sizeof(*threads) + count * sizeof(threads->threads[0]));

    if (!threads)
        return NULL;
    threads->front = options->front;
    threads->dev = options->dev;
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

void channel_threads_wake(struct channel_threads *threads) {
    pthread_mutex_lock(&threads->mutex);
    for (unsigned i = 0; i < threads->wanted_count; i++)
        if (threads->threads[i].loop)
            env_loop_wake(threads->threads[i].loop);
    pthread_mutex_unlock(&threads->mutex);
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
    for (unsigned i = 0; i < threads->count; i++)
        pthread_join(threads->threads[i].thread, NULL);
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
