/* /dev/fuse as the source of requests: who reads, who is parked. The picture is in
 * channel_thread.h. */
#include "front/fuse/channel_thread_internal.h"
#include "front/fuse/ops.h"

enum {
    POLL_NS = 10000,      /* looked for the next request before sleeping, at least */
    POLL_MOST_NS = 60000, /* likewise, at most */
    POLL_PAUSES = 8,      /* between two looks */
    LOOK_WORTH = 2,       /* one that finds something makes up for so many that don't */
    LOOKS_MAX = 16,       /* so many more of these, and it is not done, */
    LOOKS_AGAIN = 32,     /* but once in so many times */
    SHARE_NS = 250000,    /* without an empty read, then another is to help */
    READS_MAX = 16,       /* between two that are begun, where requests wait */
    MOVES = 16,           /* READs and WRITEs on end, then all may serve */
    LARGE_NS = 10000000,  /* for so long a large READ or WRITE keeps all active */
    NAP_NS = 4000000,     /* behind a FORGET, where requests come by io_uring */
};

/* Sleeps until another request is put back, unless there is one by now. */
static void thread_wait_request(struct channel_thread *thread) {
    struct request_pool *pool = &thread->all->front->requests;

    atomic_fetch_add(&pool->waiting_count, 1);
    thread->request = request_pool_take(pool);
    if (!thread->request)
        (void)env_loop_wait(thread->all->options->env, -1, UINT64_MAX);
    atomic_fetch_sub(&pool->waiting_count, 1);
}

static inline void cpu_relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* Makes one of the parked threads active, if there is one. */
static void thread_activate_one(struct channel_threads *threads) {
    for (unsigned i = 0; i < threads->reader_count; i++) {
        if (reader_activate(&threads->readers, &threads->threads[i].reader)) {
            channel_thread_wake(&threads->threads[i]);
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
    /* All who are left may wait for one. */
    fuse_request_put(all->front, TAKE_PTR(thread->request));
    while (reader_is_parked(&all->readers, &thread->reader)) {
        (void)env_loop_wait(all->options->env, -1, UINT64_MAX);
        channel_thread_run_idle(thread);
        if (atomic_exchange(&thread->lists_ahead, false))
            while (reader_is_parked(&all->readers, &thread->reader) &&
                   ahead_run(all->front, thread->index))
                channel_thread_run_idle(thread);
    }
    return true;
}

/* Whether programs have done nothing else for a while but read and write what they have open. */
static bool thread_moves(struct channel_thread *thread) {
    uint32_t opcode = request_header(thread->request)->opcode;

    if (opcode != OPCODE_READ && opcode != OPCODE_WRITE)
        thread->moves = 0;
    else if (thread->moves < MOVES)
        thread->moves++;
    return thread->moves == MOVES;
}

/* While requests are short, half of the CPUs are left to those who send them. Copying large data
 * keeps a thread from reading what waits, so then all read. So may all where programs only read
 * and write: many that wait for one thread leave CPUs idle, and no lock of a directory is between
 * those that serve them. */
static void thread_found(struct channel_thread *thread, bool at_once, size_t bytes) {
    struct channel_threads *all = thread->all;
    bool of_one = aside_serves_one(&thread->aside) && fuse_request_is_short(thread->request, bytes);
    bool large = fuse_request_is_large(thread->request, bytes) && !of_one;
    bool moves = thread_moves(thread) && !of_one;
    unsigned limit = large || moves ? all->reader_count : MAX(all->reader_count / 2, 1u);
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

/* Whether to look again, as what comes next comes soon. Where programs compute beside each other it
 * doesn't, and looking takes their CPU from them. */
static bool thread_looks_again(struct channel_thread *thread) {
    return thread->looks_missed < LOOKS_MAX || thread->dry_count++ % LOOKS_AGAIN == 0;
}

static void thread_looked(struct channel_thread *thread, bool found) {
    if (!found)
        thread->looks_missed += thread->looks_missed < LOOKS_MAX;
    else
        thread->looks_missed -= MIN(thread->looks_missed, (unsigned)LOOK_WORTH);
}

/* Whether it has to wait for its loop, too: also where a connection that was closed there is not
 * yet let go, as its socket stays until then. */
static bool thread_has_loop(const struct channel_thread *thread) {
    const struct fuse_options *options = thread->all->options;

    return env_loop_pending(options->env) > 0 || env_loop_closing(options->env) > 0 ||
           (options->thread_needed && options->thread_needed(options->context));
}

/* How long to look. The program that was answered is woken, works, and asks again, which would wake
 * this thread: twice as long as waking both takes. Not where its loop is to be waited for, too: it
 * is behind the look, and threads that work for this one want a CPU. */
static uint64_t thread_poll_ns(const struct channel_thread *thread) {
    uint64_t look_ns = thread_has_loop(thread) ? 0 : 2 * aside_wakeup_ns(thread->all->aside);

    return MIN(MAX(look_ns, (uint64_t)POLL_NS), (uint64_t)POLL_MOST_NS);
}

/* The next request, looked for without sleeping for a while; -ERR_PENDING: there is none.
 * *ret_bytes is 0 when something of this thread is to be run first. */
static int thread_poll(struct channel_thread *thread, size_t *ret_bytes) {
    struct env *env = thread->all->options->env;
    uint64_t end_ns = 0;

    thread->request->descriptor = thread->poll_descriptor;
    for (;;) {
        int r = channel_dev_read(thread->poll_descriptor, thread->request, ret_bytes);
        uint64_t now_ns;

        if (r != -ERR_PENDING) {
            thread->at_once = end_ns == 0;
            if (end_ns != 0)
                thread_looked(thread, true);
            if (r == 0)
                thread_found(thread, end_ns == 0, *ret_bytes);
            return r;
        }
        thread->busy_since_ns = 0;
        if (aside_is(&thread->aside)) {
            aside_missed(&thread->aside);
            return -ERR_PENDING;
        }
        if (end_ns == 0 && !thread_looks_again(thread))
            return -ERR_PENDING;
        now_ns = env_now_ns(env);
        if (end_ns == 0)
            end_ns = now_ns + thread_poll_ns(thread);
        if (now_ns >= end_ns) {
            thread_looked(thread, false);
            return -ERR_PENDING;
        }
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
    thread->at_once = false;
    *ret_bytes = 0;
    if (thread_park(thread))
        return readers_are_closed(&thread->all->readers) ? -ERR_CLOSED : 0;
    if (thread_has_loop(thread)) {
        (void)env_loop_wait(env, thread->poll_descriptor, UINT64_MAX);
        return 0;
    }
    thread->request->descriptor = thread->descriptor;
    return channel_dev_read(thread->descriptor, thread->request, ret_bytes);
}

static void thread_took(struct channel_thread *thread, size_t bytes) {
    int active = atomic_load_explicit(&thread->all->readers.active_count, memory_order_relaxed);

    aside_took(&thread->aside, request_header(thread->request)->pid,
               active == 1 && fuse_request_is_short(thread->request, bytes), thread->at_once);
}

/* One that was read; where another user may wait, it waits for its turn. */
static void thread_begin(struct channel_thread *thread, size_t bytes) {
    struct fuse_request *request = thread->request;

    if (channel_thread_put_turn(thread, request, bytes, thread->at_once) ||
        !fuse_request_run(request, bytes))
        thread->request = NULL;
}

/* While requests wait: reads what the kernel has, READS_MAX of them at most, and begins one. */
static int thread_serve_turns(struct channel_thread *thread) {
    struct request_pool *pool = &thread->all->front->requests;

    if (readers_are_closed(&thread->all->readers))
        return -ERR_CLOSED; /* What waits for its turn, maybe with all buffers, waits for ever. */
    thread->at_once = true;
    for (unsigned i = 0; i < READS_MAX; i++) {
        size_t bytes = 0;
        int r;

        if (!thread->request)
            thread->request = request_pool_take(pool);
        if (!thread->request)
            break;
        thread->request->descriptor = thread->poll_descriptor;
        r = channel_dev_read(thread->poll_descriptor, thread->request, &bytes);
        if (r == -ERR_PENDING)
            break;
        if (r < 0)
            return r;
        thread_found(thread, true, bytes);
        if (bytes > 0)
            thread_begin(thread, bytes);
    }
    channel_thread_serve_turn(thread, thread->request ? thread->poll_descriptor : -1);
    return 0;
}

/* Of each file that is removed the kernel says so, and what sleeps in read is woken for it, on a
 * CPU that may be halted or have work: behind one it takes what has come meanwhile at once. An
 * INTERRUPT waits as long. */
static void thread_nap(struct channel_thread *thread) {
    struct env *env = thread->all->options->env;
    uint64_t now_ns = env_now_ns(env);
    uint64_t end_ns = now_ns + NAP_NS;

    for (; now_ns < end_ns && !readers_are_closed(&thread->all->readers);
         now_ns = env_now_ns(env)) {
        (void)env_loop_wait(env, -1, end_ns - now_ns);
        channel_thread_run_idle(thread);
    }
}

static bool is_forget(const struct fuse_request *request) {
    uint32_t opcode = request_header(request)->opcode;

    return opcode == OPCODE_FORGET || opcode == OPCODE_BATCH_FORGET;
}

void channel_read_serve(struct channel_thread *thread, bool has_requests) {
    struct request_pool *pool = &thread->all->front->requests;
    size_t bytes = 0;

    for (;;) {
        channel_thread_run_idle(thread);
        if (fair_wait(&thread->all->front->fair)) {
            aside_leave(&thread->aside);
            if (thread_serve_turns(thread) < 0)
                break;
            continue;
        }
        if (!thread->request)
            thread->request = request_pool_take(pool);
        if (!thread->request) {
            thread_wait_request(thread);
            continue;
        }
        if (thread_read(thread, &bytes) < 0)
            break;
        if (bytes > 0) {
            bool naps = !has_requests && is_forget(thread->request);

            thread_took(thread, bytes);
            thread_begin(thread, bytes);
            if (naps)
                thread_nap(thread);
        }
    }
}
