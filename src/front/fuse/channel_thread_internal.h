/* What the sources of a mount's requests share with the threads that they run on. */
#pragma once
#include "env/env_linux.h"
#include "front/fuse/channel_aside.h"
#include "front/fuse/channel_thread.h"
#include "front/fuse/channel_uring.h"
#include "front/fuse/readers.h"
#include "front/fuse/request.h"
#include <pthread.h>
#include <sys/prctl.h>

#ifndef PR_SET_IO_FLUSHER
#define PR_SET_IO_FLUSHER 57 /* Linux 5.6 */
#endif

/* Of the calling thread, which requests wait for: memory that it asks for must not be had by
 * writing to ourselves. Refused without privilege. */
static inline void channel_thread_flushes(void) {
    (void)prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0);
}

struct channel_thread {
    struct channel_threads *all;
    unsigned index;
    pthread_t thread;
    int descriptor;               /* reads sleep */
    int poll_descriptor;          /* reads don't */
    struct env_loop *loop;        /* while it may be woken; guarded by mutex */
    _Atomic bool lists_ahead;     /* it was asked to, when it has nothing else to do */
    struct fuse_request *request; /* that the next read fills; NULL: to be had */
    bool at_once;                 /* what was read last was there at the first look */
    uint64_t busy_since_ns;       /* no read came back empty since; 0: the last one did */
    unsigned moves;               /* READs and WRITEs on end, so far as they count */
    unsigned looks_missed;        /* channel_read.c */
    unsigned dry_count;
    struct reader reader;
    struct aside_thread aside;
};

struct channel_threads {
    struct front *front;
    struct channel_dev *dev;
    struct channel_uring *uring; /* NULL: none is wanted */
    const struct fuse_options *options;
    struct aside *aside; /* or NULL */
    unsigned wanted_count;
    unsigned reader_count;     /* of them, that read the device where it is the source */
    struct readers readers;    /* closed: the mount is gone */
    _Atomic uint64_t large_ns; /* when large data was asked for last */
    pthread_mutex_t mutex;     /* guards what follows */
    pthread_cond_t changed;
    enum channel_mode mode;
    unsigned count;         /* that could be started */
    unsigned started_count; /* that are ready, or failed to be */
    unsigned running_count;
    int start_result;
    int uring_result; /* 0, or by which error one of them gets no io_uring */
    struct channel_thread threads[];
};

/* channel_thread.c: runs what has completed, and what that has left to run, until nothing is left.
 */
void channel_thread_run_idle(struct channel_thread *thread);
/* Ends its wait, from any thread. */
void channel_thread_wake(struct channel_thread *thread);
/* A request that has come, and is to be run on this thread: true where it waits for its turn
 * instead, as others may; at_once: it was there when the thread looked. It is not the caller's any
 * more then. */
bool channel_thread_put_turn(struct channel_thread *thread, struct fuse_request *request,
                             size_t in_bytes, bool at_once);
/* While requests wait for their turns: begins one. Where all are of users who have their share at
 * work it sleeps until a request ends or comes, the descriptor (-1: none) has something, or one has
 * been at work for long. */
void channel_thread_serve_turn(struct channel_thread *thread, int descriptor);
/* channel_read.c: serves what the device has until the mount is gone. has_requests: these come by
 * it, and not only what io_uring doesn't bring. */
void channel_read_serve(struct channel_thread *thread, bool has_requests);
