/* The loop of a thread: its ring, what waits to enter it, and what other threads hand back.
 *
 * I/O is queued by submit and enters the ring in batches. At most ring_limit are in the ring, so
 * its completion queue always has room; the rest waits in `queued`, and nothing is ever refused.
 *
 * Sleeping: the thread stores ASLEEP, looks once more at what others may have left, and sleeps;
 * who leaves something stores WOKEN and writes the eventfd only when it found ASLEEP. */
#include "env/env_command.h"
#include "env/env_linux_internal.h"
#include "env/errno_map.h"
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { QUEUED_MAX = 32, REAP_BATCH = 32, IO_CALL_BYTES_MAX = 1 << 30 };
enum { UNARMED_MS = 1 }; /* then the kernel may take what it would not */

/* What user_data says of a completion that is no env_io's; pointers are never odd. */
enum { TAG_WAKE = 1, TAG_CANCEL = 3, TAG_POLL = 5, TAG_POLL_GENERATION_SHIFT = 4 };

static _Thread_local struct env_loop *thread_loops;

struct env_loop *env_thread_loop(struct env *env) {
    struct env_loop *loop = thread_loops;

    while (loop && loop->env != env_linux_of(env)) {
        loop = loop->next_of_thread;
    }
    return loop;
}

static struct env_loop *loop_here(struct env *env) {
    struct env_loop *loop = env_thread_loop(env);

    assert(loop);
    return loop;
}

int env_thread_enter(struct env *env) {
    assert(!env_thread_loop(env));
    struct env_loop *loop = calloc(1, sizeof *loop);

    if (!loop) {
        return -ERR_NO_MEMORY;
    }
    loop->env = env_linux_of(env);
    /* Blocking, so that the ring's read of it waits; plain_sleep reads only what is there. */
    loop->wake_fd = eventfd(0, EFD_CLOEXEC);
    if (loop->wake_fd < 0) {
        int r = err_from_errno(errno);

        free(loop);
        return r;
    }
    loop->poll_fd = -1;
    watches_init(&loop->watches);
    pthread_mutex_init(&loop->returned_mutex, NULL);
    loop->next_of_thread = thread_loops;
    thread_loops = loop;
    return 0;
}

/* The kernel gives the addresses of a ring that is gone to one that another thread makes next. That
 * order goes through the kernel only: counting says it to what looks for data races, too. */
static atomic_uint rings_gone;

/* The ring is made by the thread that uses it, as SINGLE_ISSUER asks. */
bool loop_has_ring(struct env_loop *loop) {
    if (loop->ring_state != RING_NONE) {
        return loop->ring_state == RING_READY;
    }
    struct io_uring_params fast = {.flags = IORING_SETUP_SINGLE_ISSUER |
                                            IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG |
                                            IORING_SETUP_CLAMP};
    struct io_uring_params plain = {.flags = IORING_SETUP_CLAMP};
    struct io_uring_params wide = {.flags = fast.flags | IORING_SETUP_SQE128 | IORING_SETUP_CQSIZE,
                                   .cq_entries = 2 * loop->env->ring_entries + ENV_COMMANDS_MAX};
    unsigned entries = loop->env->ring_entries;

    loop->ring_state = RING_REFUSED;
    loop->wide_errno = loop->wide && loop->env->uring
                           ? io_uring_queue_init_params(entries, &loop->ring, &wide)
                           : -ENOSYS;
    loop->wide = loop->wide_errno == 0;
    if (loop->wide ||
        (loop->env->uring && (io_uring_queue_init_params(entries, &loop->ring, &fast) == 0 ||
                              io_uring_queue_init_params(entries, &loop->ring, &plain) == 0))) {
        (void)atomic_load_explicit(&rings_gone, memory_order_acquire);
        /* Room stays for the wake-up, the poll and their cancellations; and for commands. */
        unsigned cq_entries = *loop->ring.cq.kring_entries;
        unsigned others = 8 + (loop->wide ? (unsigned)ENV_COMMANDS_MAX : 0);

        assert(cq_entries > others);
        loop->ring_limit = cq_entries - others;
        loop->ring_state = RING_READY;
    }
    return loop->ring_state == RING_READY;
}

static void io_work_run(struct env_work *work) {
    struct env_io *io = CONTAINER_OF(work, struct env_io, work);

    work->result = linux_io_run(&io->file->env->env, io);
}

static void io_work_finish(struct env_work *work) {
    struct env_io *io = CONTAINER_OF(work, struct env_io, work);

    io->done(io, work->result);
}

static void work_append(struct env_work **first, struct env_work **last, struct env_work *work) {
    work->next = NULL;
    if (*last) {
        (*last)->next = work;
    } else {
        *first = work;
    }
    *last = work;
}

static void loop_return_locked(struct env_loop *loop, struct env_work *work) {
    work_append(&loop->returned, &loop->returned_last, work);
    atomic_store_explicit(&loop->has_returned, true, memory_order_release);
}

/* Wakes inside the lock: once the loop's thread has taken the work it may free the loop. */
void loop_return(struct env_loop *loop, struct env_work *work) {
    pthread_mutex_lock(&loop->returned_mutex);
    loop_return_locked(loop, work);
    env_loop_wake(loop);
    pthread_mutex_unlock(&loop->returned_mutex);
}

static void loop_queue(struct env_loop *loop, struct env_work *work) {
    work_append(&loop->queued, &loop->queued_last, work);
    loop->queued_count++;
}

struct io_uring_sqe *loop_sqe(struct env_loop *loop) {
    struct io_uring_sqe *sqe = io_uring_get_sqe(&loop->ring);

    if (!sqe) {
        io_uring_submit(&loop->ring);
        sqe = io_uring_get_sqe(&loop->ring);
    }
    return sqe;
}

static void io_prepare(struct env_io *io, struct io_uring_sqe *sqe) {
    size_t progress = io->work.progress_bytes;
    void *data = progress > 0 ? (uint8_t *)io->buffer + progress : io->buffer;
    unsigned size = (unsigned)MIN(io->size - progress, (size_t)IO_CALL_BYTES_MAX);
    uint64_t offset = io->offset + progress;

    switch (io->kind) {
    case ENV_IO_READ:
        io_uring_prep_read(sqe, io->file->fd, data, size, offset);
        break;
    case ENV_IO_WRITE:
        io_uring_prep_write(sqe, io->file->fd, data, size, offset);
        break;
    case ENV_IO_SYNC:
    case ENV_IO_ALLOCATE:
        io_uring_prep_fsync(sqe, io->file->fd, IORING_FSYNC_DATASYNC);
        break;
    }
    io_uring_sqe_set_data(sqe, io);
}

/* Moves what is queued into the submission queue as far as there is room. */
static void loop_fill(struct env_loop *loop) {
    commands_fill(loop);
    while (loop->queued && loop->ring_count < loop->ring_limit) {
        struct io_uring_sqe *sqe = loop_sqe(loop);
        struct env_work *work = loop->queued;

        /* The kernel takes nothing now; the next poll tries again. */
        if (!sqe) {
            return;
        }
        loop->queued = work->next;
        if (!loop->queued) {
            loop->queued_last = NULL;
        }
        loop->queued_count--;
        loop->ring_count++;
        io_prepare(CONTAINER_OF(work, struct env_io, work), sqe);
    }
}

static void loop_flush(struct env_loop *loop) {
    loop_fill(loop);
    watches_apply(loop);
    if (loop->ring_state == RING_READY && io_uring_sq_ready(&loop->ring) > 0) {
        io_uring_submit(&loop->ring);
    }
}

/* Where there is no medium the kernel would give the copy to a thread of its own, as such file
 * systems can't say whether it would wait, and waking that costs more than the copy. Writes go on
 * beside what their thread does next. */
static bool io_is_copy(const struct env_io *io) {
    return io->file->in_memory && (io->kind == ENV_IO_READ || io->kind == ENV_IO_SYNC);
}

void linux_io_submit(struct env *env, struct env_io *io) {
    struct env_loop *loop = loop_here(env);
    struct env_work *work = &io->work;
    bool is_done = false;

    work->run = io_work_run;
    work->finish = io_work_finish;
    work->owner = loop;
    work->progress_bytes = 0;
    work->result = io_check(io);
    io->ret_size = 0;
    loop->pending_count++;
    if (work->result == 0 && io_is_copy(io)) {
        (void)linux_io_run(env, io);
        is_done = true;
    }
    if (work->result || is_done) {
        pthread_mutex_lock(&loop->returned_mutex);
        loop_return_locked(loop, work);
        pthread_mutex_unlock(&loop->returned_mutex);
    } else if (io->kind == ENV_IO_ALLOCATE || !loop_has_ring(loop)) {
        lane_push(&loop->env->lanes[LANE_FILE], work);
    } else {
        loop_queue(loop, work);
        if (loop->queued_count >= QUEUED_MAX && loop->ring_count < loop->ring_limit) {
            loop_flush(loop);
        }
    }
}

static void job_work_run(struct env_work *work) {
    struct env_job *job = CONTAINER_OF(work, struct env_job, work);

    job->run(job);
}

static void job_work_finish(struct env_work *work) {
    struct env_job *job = CONTAINER_OF(work, struct env_job, work);

    job->done(job);
}

void linux_job_submit(struct env *env, struct env_job *job) {
    struct env_loop *loop = loop_here(env);

    assert(job->lane < ENV_LANE_COUNT);
    job->work.run = job_work_run;
    job->work.finish = job_work_finish;
    job->work.owner = loop;
    loop->pending_count++;
    lane_push(&loop->env->lanes[job->lane], &job->work);
}

/* Answers 1 when an env_io was finished. */
static unsigned completion_handle(struct env_loop *loop, uint64_t user_data, int answer,
                                  unsigned flags) {
    if (watch_owns(user_data)) {
        watch_complete(user_data, answer, flags);
        return 0;
    }
    if (user_data % 16 == TAG_COMMAND) {
        return command_complete(loop, user_data, answer);
    }
    if (user_data == TAG_WAKE) {
        loop->wake_armed = false;
        return 0;
    }
    if (user_data == TAG_CANCEL) {
        return 0;
    }
    if (user_data % 16 == TAG_POLL) {
        if (user_data >> TAG_POLL_GENERATION_SHIFT == loop->poll_generation) {
            loop->poll_armed = false;
            loop->poll_ready = answer != -ECANCELED;
        }
        return 0;
    }
    struct env_io *io = (struct env_io *)(uintptr_t)user_data;

    loop->ring_count--;
    if (answer == -ECANCELED) {
        /* Nobody cancels it: the kernel got no thread for it, as a signal came each time that it
         * tried (a SIGSTOP does), or as there may be no more. A thread of ours does it. */
        lane_push(&loop->env->lanes[LANE_FILE], &io->work);
        return 0;
    }
    if (!io_advance(io, answer)) {
        loop_queue(loop, &io->work);
        return 0;
    }
    loop->pending_count--;
    io->done(io, io->work.result);
    return 1;
}

static unsigned ring_reap(struct env_loop *loop) {
    struct io_uring_cqe *entries[REAP_BATCH];
    struct {
        uint64_t user_data;
        int answer;
        unsigned flags;
    } taken[REAP_BATCH];
    unsigned finished = 0;

    if (loop->ring_state != RING_READY) {
        return 0;
    }
    for (;;) {
        unsigned count = io_uring_peek_batch_cqe(&loop->ring, entries, REAP_BATCH);

        /* Copied out first: done() may submit, and the entries must be free by then. */
        for (unsigned i = 0; i < count; i++) {
            taken[i].user_data = entries[i]->user_data;
            taken[i].answer = entries[i]->res;
            taken[i].flags = entries[i]->flags;
        }
        io_uring_cq_advance(&loop->ring, count);
        for (unsigned i = 0; i < count; i++) {
            finished +=
                completion_handle(loop, taken[i].user_data, taken[i].answer, taken[i].flags);
        }
        if (count < REAP_BATCH) {
            return finished;
        }
    }
}

static unsigned returned_reap(struct env_loop *loop) {
    unsigned finished = 0;

    if (!atomic_load_explicit(&loop->has_returned, memory_order_acquire)) {
        return 0;
    }
    pthread_mutex_lock(&loop->returned_mutex);
    struct env_work *work = loop->returned;
    loop->returned = NULL;
    loop->returned_last = NULL;
    atomic_store_explicit(&loop->has_returned, false, memory_order_relaxed);
    pthread_mutex_unlock(&loop->returned_mutex);
    while (work) {
        struct env_work *next = work->next;

        loop->pending_count--;
        work->finish(work);
        finished++;
        work = next;
    }
    return finished;
}

static unsigned loop_poll(struct env_loop *loop) {
    unsigned finished;

    if (loop->queued || loop->watches.count > 0 || loop->ring_state == RING_READY) {
        loop_flush(loop);
    }
    finished = returned_reap(loop) + ring_reap(loop);
    watches_poll(loop);
    return finished + watches_fire(loop);
}

unsigned env_loop_poll(struct env *env) {
    return loop_poll(loop_here(env));
}

void env_loop_flush(struct env *env) {
    loop_flush(loop_here(env));
}

size_t env_loop_pending(struct env *env) {
    const struct env_loop *loop = loop_here(env);

    return loop->pending_count + loop->expects;
}

size_t env_loop_closing(struct env *env) {
    const struct env_loop *loop = loop_here(env);

    return loop->watches.count - loop->watches.open_count;
}

void env_loop_expect(struct env_loop *loop, bool expects) {
    loop->expects = expects;
}

void env_loop_wake(struct env_loop *loop) {
    uint64_t one = 1;

    if (atomic_exchange(&loop->state, LOOP_WOKEN) == LOOP_ASLEEP) {
        ssize_t wrote = write(loop->wake_fd, &one, sizeof one);

        assert(wrote == sizeof one);
    }
}

/* Lets the poll of an earlier descriptor go; its completion, when it still comes, is of an older
 * generation. */
static void poll_disarm(struct env_loop *loop) {
    struct io_uring_sqe *sqe = loop->poll_armed ? loop_sqe(loop) : NULL;

    if (sqe) {
        uint64_t tag = loop->poll_generation << TAG_POLL_GENERATION_SHIFT | TAG_POLL;

        io_uring_prep_poll_remove(sqe, tag);
        sqe->user_data = TAG_CANCEL;
    }
    loop->poll_generation++;
    loop->poll_armed = false;
    loop->poll_ready = false;
    loop->poll_fd = -1;
}

void env_loop_disarm(struct env *env) {
    struct env_loop *loop = loop_here(env);

    poll_disarm(loop);
    loop_flush(loop);
}

/* False: the kernel takes no more for now, and a sleep would miss what is not armed. */
static bool ring_arm(struct env_loop *loop, int poll_fd) {
    struct io_uring_sqe *sqe;

    if (!loop->wake_armed && (sqe = loop_sqe(loop)) != NULL) {
        io_uring_prep_read(sqe, loop->wake_fd, &loop->wake_value, sizeof loop->wake_value, 0);
        sqe->user_data = TAG_WAKE;
        loop->wake_armed = true;
    }
    if (poll_fd >= 0 && !loop->poll_armed && (sqe = loop_sqe(loop)) != NULL) {
        io_uring_prep_poll_add(sqe, poll_fd, POLLIN);
        sqe->user_data = loop->poll_generation << TAG_POLL_GENERATION_SHIFT | TAG_POLL;
        loop->poll_fd = poll_fd;
        loop->poll_armed = true;
    }
    return loop->wake_armed && (poll_fd < 0 || loop->poll_armed);
}

static void ring_sleep(struct env_loop *loop, int poll_fd, uint64_t timeout_ns) {
    struct io_uring_cqe *entry;
    struct __kernel_timespec timeout = {
        .tv_sec = (int64_t)(timeout_ns / NS_PER_S),
        .tv_nsec = (long long)(timeout_ns % NS_PER_S),
    };
    struct __kernel_timespec *limit = timeout_ns == UINT64_MAX ? NULL : &timeout;

    loop_fill(loop);
    if (!ring_arm(loop, poll_fd)) {
        struct pollfd also[] = {{.fd = loop->wake_fd, .events = POLLIN},
                                {.fd = poll_fd, .events = POLLIN}};

        (void)poll(also, poll_fd < 0 ? 1 : 2, UNARMED_MS);
        return;
    }
    /* Its answer says nothing that reaping doesn't: a timeout, a signal, or that the kernel wants
     * completions reaped before it takes more. */
    (void)io_uring_submit_and_wait_timeout(&loop->ring, &entry, 1, limit, NULL);
}

static void plain_sleep(struct env_loop *loop, int poll_fd, uint64_t timeout_ns) {
    struct pollfd waits[] = {{.fd = loop->wake_fd, .events = POLLIN},
                             {.fd = poll_fd, .events = POLLIN},
                             {.fd = loop->watches.epoll_fd, .events = POLLIN}};
    struct timespec timeout = {
        .tv_sec = (time_t)(timeout_ns / NS_PER_S),
        .tv_nsec = (long)(timeout_ns % NS_PER_S),
    };
    int ready = ppoll(waits, ARRAY_SIZE(waits), timeout_ns == UINT64_MAX ? NULL : &timeout, NULL);

    if (ready > 0 && waits[0].revents) {
        ssize_t got = read(loop->wake_fd, &loop->wake_value, sizeof loop->wake_value);

        assert(got == sizeof loop->wake_value);
    }
    if (ready > 0 && waits[1].revents) {
        loop->poll_fd = poll_fd;
        loop->poll_ready = true;
    }
}

/* What waits without a system call being needed to see it. */
static bool loop_has_news(struct env_loop *loop) {
    if (atomic_load_explicit(&loop->has_returned, memory_order_acquire) ||
        atomic_load_explicit(&loop->state, memory_order_relaxed) == LOOP_WOKEN ||
        watches_have_news(loop)) {
        return true;
    }
    return loop->ring_state == RING_READY &&
           (io_uring_cq_ready(&loop->ring) > 0 ||
            IO_URING_READ_ONCE(*loop->ring.sq.kflags) & IORING_SQ_TASKRUN);
}

static void loop_spin(struct env_loop *loop, uint64_t spin_ns) {
    struct env *env = &loop->env->env;
    uint64_t until_ns = spin_ns ? env_now_ns(env) + spin_ns : 0;

    while (spin_ns && !loop_has_news(loop) && env_now_ns(env) < until_ns) {
    }
}

static void loop_sleep(struct env_loop *loop, int poll_fd, uint64_t timeout_ns) {
    unsigned awake = LOOP_AWAKE;

    /* Fails when woken since the last wait: then there is no sleep. */
    if (!atomic_compare_exchange_strong(&loop->state, &awake, LOOP_ASLEEP)) {
        return;
    }
    if (!atomic_load(&loop->has_returned)) {
        if (loop->ring_state == RING_READY) {
            ring_sleep(loop, poll_fd, timeout_ns);
        } else {
            plain_sleep(loop, poll_fd, timeout_ns);
        }
    }
}

static unsigned loop_take_readable(struct env_loop *loop, int poll_fd) {
    if (poll_fd < 0 || !loop->poll_ready) {
        return 0;
    }
    loop->poll_ready = false;
    return ENV_LOOP_READABLE;
}

unsigned env_loop_wait(struct env *env, int poll_fd, uint64_t timeout_ns) {
    struct env_loop *loop = loop_here(env);

    if (poll_fd >= 0 && loop->poll_fd >= 0 && loop->poll_fd != poll_fd) {
        poll_disarm(loop);
    }
    unsigned events = loop_take_readable(loop, poll_fd);
    /* Always, as the sleep takes no changes with it. */
    bool submits = watches_apply(loop);

    submits = submits || loop->queued || loop->commands.first;
    timeout_ns = watches_timeout(loop, timeout_ns);
    bool sleeps = !events && timeout_ns > 0 && !loop_has_news(loop);
    if (sleeps) {
        /* What is queued goes to the kernel with the sleep, in one call; it takes so long that
         * looking for its end first would be a waste. */
        if (!submits) {
            loop_spin(loop, MIN(loop->env->spin_ns, timeout_ns));
        }
        loop_sleep(loop, poll_fd, timeout_ns);
    }
    events |= loop_poll(loop) ? ENV_LOOP_COMPLETED : 0;
    events |= loop_take_readable(loop, poll_fd);
    if (atomic_exchange(&loop->state, LOOP_AWAKE) == LOOP_WOKEN) {
        events |= ENV_LOOP_WOKEN;
    }
    return events;
}

/* Takes the read of the eventfd and the poll out of the ring before their memory goes. */
static void ring_exit(struct env_loop *loop) {
    poll_disarm(loop);
    loop_flush(loop);
    while (loop->wake_armed) {
        struct io_uring_sqe *sqe = loop_sqe(loop);
        struct io_uring_cqe *entry;

        if (sqe) {
            io_uring_prep_cancel64(sqe, TAG_WAKE, 0);
            sqe->user_data = TAG_CANCEL;
        }
        (void)io_uring_submit_and_wait_timeout(&loop->ring, &entry, 1, NULL, NULL);
        ring_reap(loop);
    }
    atomic_fetch_add_explicit(&rings_gone, 1, memory_order_release);
    io_uring_queue_exit(&loop->ring);
}

void env_thread_leave(struct env *env) {
    struct env_loop *loop = loop_here(env);
    struct env_loop **link = &thread_loops;

    for (;;) {
        watches_apply(loop);
        if (loop->pending_count == 0 && loop->watches.count == 0) {
            break;
        }
        assert(loop->pending_count > 0 || loop->watches.open_count == 0);
        env_loop_wait(env, -1, UINT64_MAX);
    }
    watches_deinit(&loop->watches);
    if (loop->ring_state == RING_READY) {
        ring_exit(loop);
    }
    while (*link != loop) {
        link = &(*link)->next_of_thread;
    }
    *link = loop->next_of_thread;
    /* The lane's thread that gave the last work back may still hold the lock. */
    pthread_mutex_lock(&loop->returned_mutex);
    pthread_mutex_unlock(&loop->returned_mutex);
    pthread_mutex_destroy(&loop->returned_mutex);
    close(loop->wake_fd);
    free(loop);
}
