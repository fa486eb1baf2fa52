/* The real outside: files through io_uring, shared memory, threads for blocking work and ticks.
 *
 *     a thread that entered: its loop          job lanes          service thread: its loop
 *       io_submit -> queue -> io_uring      WRITE 1, READ n         ticks, then hooks.idle
 *       job_submit ----------------------->  FILE (own work)
 *       poll/wait: done() <-- completions <--- returned work
 *
 * A thread that submits or waits enters first and leaves at its end. Where io_uring is refused
 * (seccomp, sysctl), file I/O blocks on the FILE lane's threads instead.
 * Threads start with env_linux_new: a program that goes into the background does so before. */
#pragma once
#include "env/env.h"

struct env_loop; /* of one thread and one env */

struct env_linux_options {
    const char *root;      /* directory that paths are relative to; must exist */
    unsigned ring_entries; /* of each thread's submission ring; 0 for 128 */
    unsigned read_threads; /* of the READ lane; 0 for 2 */
    uint64_t spin_ns;      /* a wait looks this long before it sleeps; 5 us in daemons */
    unsigned stream_limit; /* streams beyond which connections wait to be accepted; 0 for 8,192 */
    bool refuse_uring;     /* act as where io_uring is refused */
    bool refuse_fallocate; /* act as where the file system has none */
};

/* -ERR_NOT_FOUND or -ERR_NOT_DIRECTORY for the root, -ERR_NO_MEMORY, -ERR_BUSY for threads. */
MUST_CHECK int env_linux_new(const struct env_linux_options *options, struct env **ret_env);
/* Stops the service and the lanes. All threads must have left, all files be closed. Takes NULL. */
void env_linux_free(struct env *env);
bool env_linux_has_uring(struct env *env);

/* Gives the calling thread a loop. */
MUST_CHECK int env_thread_enter(struct env *env);
/* Waits for what is in flight, calling done(), then takes the loop away. The thread has closed its
 * streams and listeners; a name that is still being looked up for one is waited for. */
void env_thread_leave(struct env *env);
/* NULL when the calling thread has not entered. */
struct env_loop *env_thread_loop(struct env *env);

enum env_loop_event {
    ENV_LOOP_COMPLETED = 1, /* done() or a stream's event was called at least once */
    ENV_LOOP_WOKEN = 2,     /* env_loop_wake since the last wait */
    ENV_LOOP_READABLE = 4,  /* poll_fd was found readable, or at its end */
};

/* I/O and jobs of the calling thread whose done() has not been called, and 1 while something else
 * is expected: it is to wait for its loop, then, and for nothing else. */
size_t env_loop_pending(struct env *env);
/* Streams of the calling thread that were closed, whose descriptors its loop has not let go of yet:
 * it is to turn until there are none, before the thread goes on to something else. */
size_t env_loop_closing(struct env *env);
/* By the loop's thread: what streams or wake-ups bring is expected, or no more. */
void env_loop_expect(struct env_loop *loop, bool expects);
/* Gives queued I/O to the kernel now; poll and wait do so first, submit with 32 queued. */
void env_loop_flush(struct env *env);
/* Calls done() for what has completed, and the events of streams (env_stream.h), without sleeping.
 * Answers how many. */
unsigned env_loop_poll(struct env *env);
/* Polls; when nothing had completed, sleeps until something has, a stream has an event, another
 * thread calls
 * env_loop_wake, poll_fd (-1 for none) is readable, or timeout_ns has passed (UINT64_MAX: never).
 * Answers a set of env_loop_event; empty after a timeout or a stray wake-up.
 * READABLE may be stale when several threads wait on one descriptor: read without blocking. */
unsigned env_loop_wait(struct env *env, int poll_fd, uint64_t timeout_ns);
/* From any thread: ends the loop's wait, or its next one at once. Costs a system call only when
 * the loop sleeps. The loop's thread must not leave meanwhile. */
void env_loop_wake(struct env_loop *loop);
/* Lets go the poll_fd of an earlier wait; before it is closed. */
void env_loop_disarm(struct env *env);

/* What the level above does on the service thread. Each may be NULL. */
struct env_service_hooks {
    int (*init)(void *context); /* once, first; an error ends the start */
    void (*exit)(void *context);
    /* After every batch of completions and ticks. True: there is more to run, don't sleep. */
    bool (*idle)(void *context);
    void *context;
};

/* Starts the thread that runs ticks; answers init's result when init has returned. */
MUST_CHECK int env_service_start(struct env *env, const struct env_service_hooks *hooks);
/* Waits for its I/O, calls exit and joins it. Nothing happens when it doesn't run. */
void env_service_stop(struct env *env);
/* For env_loop_wake; NULL when it doesn't run. */
struct env_loop *env_service_loop(struct env *env);

/* What host/ needs to reach the same files by other system calls. */
int env_linux_root(struct env *env); /* the root's descriptor, which stays the env's */
/* Whether path may be opened as a file, if it is there: opening a FIFO, say, would never end. A
 * block device may. -ERR_NOT_FILE, -ERR_IS_DIRECTORY. */
MUST_CHECK int env_path_check(int root_fd, const char *path);
/* Makes the entry that path has in its directory durable. */
MUST_CHECK int env_path_sync(int root_fd, const char *path);
/* What new regions of shared memory may take (UINT64_MAX: no limit), and the directory that they
 * lie in, cut to the size; for messages. */
MUST_CHECK int env_shared_space(struct env *env, uint64_t *ret_free_bytes, size_t size_bytes,
                                char *ret_place);
/* What lies where a region belongs; -ERR_NOT_FOUND. */
struct env_shared_owner {
    uint32_t uid;
    bool is_theirs; /* another user's than the caller's */
    bool is_file;
    bool is_open_to_others; /* to write to */
};
MUST_CHECK int env_shared_owner(struct env *env, const char *name,
                                struct env_shared_owner *ret_owner);
