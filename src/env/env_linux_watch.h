/* Descriptors that a loop watches: the sockets of streams and listeners.
 *
 *     want -> changes -> poll in the ring, or epoll -> seen -> ready -> fire
 *
 * What is wanted is said to the kernel in one go with the loop's next submission or wait. All that
 * one turn of the loop has found is collected first and told then, so that a reset is known before
 * anybody reads what came ahead of it.
 *
 * With a ring, what comes in is one poll for the life of a descriptor (multishot), armed anew where
 * the kernel has ended it; room to send, and a listener, are polls that end with their first
 * answer. Without, both are edges of an epoll of the loop's, but listeners.
 *
 * Memory: the owner's, who gets it back in `end`: until then the kernel may name it.
 * Thread: the loop's. */
#pragma once
#include "base/list.h"
#include "base/types.h"

struct env_loop;

enum watch_side { WATCH_IN, WATCH_OUT, WATCH_SIDE_COUNT };

/* Beside the bits of poll(2). */
enum { WATCH_DUE = 1 << 24, WATCH_NUDGED = 1 << 25 };

struct watch {
    struct env_loop *loop; /* 16-aligned, as the low bits say what a completion is about */
    int fd;                /* -1: none yet */
    bool listens;          /* shared with other loops: one of them is woken, in turns */
    bool released;
    bool wanted[WATCH_SIDE_COUNT];
    bool armed[WATCH_SIDE_COUNT]; /* the kernel has it */
    bool cancelled[WATCH_SIDE_COUNT];
    unsigned seen;
    uint64_t due_ns;
    struct list_node change;
    struct list_node ready;
    struct list_node timer;
    struct list_node await;
    /* Bits of poll(2) and WATCH_ bits. From the loop's poll and wait only. */
    void (*fire)(struct watch *watch, unsigned seen);
    /* After watch_release: the kernel has let go, the descriptor may be closed. It must not call
     * what tells anybody anything, but may use the watch anew. */
    void (*end)(struct watch *watch);
};

/* A loop's. */
struct watches {
    struct list changes;
    struct list ready;
    struct list timers;
    struct list awaiting; /* room for a stream */
    uint64_t due_ns;      /* no timer is due before */
    uint64_t poll_ns;     /* when the turn began that fires now */
    size_t count;         /* in use */
    size_t open_count;
    int epoll_fd; /* -1: not used */
};

void watches_init(struct watches *watches);
void watches_deinit(struct watches *watches);
/* Tells the kernel what has changed, as far as it takes it; false when nothing had. */
bool watches_apply(struct env_loop *loop);
/* Looks, without waiting, at what the ring does not tell. */
void watches_poll(struct env_loop *loop);
/* Fires what is ready or due; answers how many. */
unsigned watches_fire(struct env_loop *loop);
/* Cut to the next timer, and to the next try where the kernel did not take all. */
uint64_t watches_timeout(struct env_loop *loop, uint64_t timeout_ns);
bool watches_have_news(const struct env_loop *loop);

/* Completions of the ring that are a watch's. */
bool watch_owns(uint64_t user_data);
void watch_complete(uint64_t user_data, int answer, unsigned flags);

/* Puts a watch without a descriptor to use, for the calling thread's loop: -ERR_NO_MEMORY,
 * -ERR_TOO_MANY_OPEN. */
MUST_CHECK int watch_start(struct watch *watch, struct env_loop *loop);
void watch_want(struct watch *watch, enum watch_side side, bool wanted);
/* Fires in the next turn. */
void watch_nudge(struct watch *watch);
/* Fires once the process may have another stream. Who makes room wakes the loop. */
void watch_await_room(struct watch *watch);
/* One timer a watch; UINT64_MAX: none. */
void watch_set_due(struct watch *watch, uint64_t due_ns);
/* Nothing fires any more; end follows, never from inside. */
void watch_release(struct watch *watch);
