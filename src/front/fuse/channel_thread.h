/* The threads of a mount: each reads requests, runs them and what they leave to run.
 *
 *     active   reads; with nothing there it looks again for as long as a wake-up costs, as who was
 *       |  ^   answered asks again soon; unless that is mostly in vain
 *       v  |
 *     parked   sleeps in env_loop_wait for its own completions, until an active one has been busy
 *              for long, or large data is to be copied
 *
 * (So over /dev/fuse. Over io_uring each serves the queue of a CPU, and one more reads the device:
 * channel_uring.h.) The last active one does not park. It sleeps in read of its own descriptor;
 * with I/O or jobs in flight in env_loop_wait, for those and for requests; without a free request
 * object until one is put back. So one program that calls one thing after another is served by one
 * thread that it need not wake, and no request wakes two.
 *
 * They end when the mount is gone and all requests have ended. */
#pragma once
#include "front/fuse/channel_dev.h"

struct channel_threads;
struct channel_uring;

/* What threads that have started do next. */
enum channel_mode { CHANNEL_UNDECIDED, CHANNEL_DEV, CHANNEL_URING, CHANNEL_NONE };

struct channel_threads_options {
    struct front *front;
    struct channel_dev *dev;
    struct channel_uring *uring;     /* NULL: not wanted */
    const struct fuse_options *fuse; /* env, hooks, thread_count */
};

/* NULL when memory is missing. Nothing runs yet. */
struct channel_threads *channel_threads_new(const struct channel_threads_options *options);
/* Answers when all are ready, with -ERR_NO_DEVICE, -ERR_NO_MEMORY, -ERR_BUSY, or what
 * env_thread_enter answered. They serve once channel_threads_go has said what. */
MUST_CHECK int channel_threads_start(struct channel_threads *threads);
/* Behind it: 0, or by which error one that is to serve a queue of io_uring can't. */
MUST_CHECK int channel_threads_uring_result(struct channel_threads *threads);
/* Once, when INIT has been answered. */
void channel_threads_go(struct channel_threads *threads, enum channel_mode mode);
/* Fills in what the threads have counted of standing aside. Any thread. */
void channel_threads_count_aside(const struct channel_threads *threads,
                                 struct fuse_counters *ret_counters);
/* Ends the waits of threads that lack a request, or wait for the last to end. */
void channel_threads_wake(struct channel_threads *threads);
/* Wakes one that has nothing to do, if there is one, and is not of this index: it looks for a
 * listing that is wanted. */
void channel_threads_ahead(struct channel_threads *threads, unsigned thread_index);
/* Returns when no thread serves any more. */
void channel_threads_wait(struct channel_threads *threads);
/* Waits for the threads and closes their descriptors. The mount must be gone. Takes NULL. */
void channel_threads_free(struct channel_threads *threads);
/* One per CPU that this process may use, at least 2: while one computes, another can read. */
unsigned channel_threads_default(void);
