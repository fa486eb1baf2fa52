/* Calls to other processes: each thread has a connection of its own, a lane, to each process that
 * it calls.
 *
 *     call_start -> the thread's lane to who serves the log -> connection ... gate.h
 *     origin's step <- rpc_answered <- awaited, by number <- connection <----+
 *
 *     IDLE --a call--> JOINING --welcome--> OPEN --60 s unused--> IDLE
 *       ^                |  ^                 |
 *       | nothing waits  |  | after a pause   | broken, silent for 10 s, a mutation given up
 *       +--- RESTING <---+--+<----------------+
 *
 * A lane is known to the other side by its process (name, life), the number of its thread, and the
 * number of its connection, which rises. Calls are numbered over all connections of a lane, so an
 * answer may come by a newer one than the request went by. What is awaited when a connection breaks
 * is sent again by the next one. Who gives up a mutation replaces the connection by a reset: no
 * copy of it may be read later than what the caller does next. Silence is only measured while
 * answers are awaited.
 *
 * A peer is away from when a lane of it broke, fell silent or could not be joined, until one gets
 * through or hears of it; one lane tries on meanwhile, also while nobody waits. A call with a
 * patience that is over by then ends with -ERR_AWAY, at a tick, or when it comes. What it has
 * changed before, if anything, its caller is not told.
 *
 * Reliable in the sense of transport.h: each call is answered once, with -ERR_TIMED_OUT or
 * -ERR_INTERRUPTED at a tick where nothing else comes (the latter also to who does not want it any
 * more, when the peer is away, also where this lane seems to be open; a PING is then waited for
 * silent_ns / 5 only, a welcome for connect_ns / 5 longer than connect_ns); a log that nobody is
 * known to serve answers -ERR_STALE_MAP.
 *
 * Thread: a lane_thread is used by the thread that it is bound to; tick, route and peers by any one
 * thread at a time beside them. Memory: a connection's, while it is open. */
#pragma once
#include "base/address.h"
#include "rpc/transport.h"

struct env;
struct lane_thread;
struct lanes;
struct tls_context;

enum {
    LANE_PEERS_MAX = 1088,
    LANE_THREADS_MAX = 256,
    LANE_NAME_BYTES = 256,
    LANE_ADDRESSES_MAX = 9
};

/* Who a process is, in HELLO and its answer. */
struct lane_identity {
    uint8_t cluster_id[16]; /* zeros: any, as one that has not seen a map yet */
    struct node_id node;    /* 0: no member */
    uint64_t life[2];       /* drawn at its start */
};

/* Whether the link stays in TLS once both have proven themselves: unless it does not leave the
 * machine; nowhere; everywhere. The two ends must agree. */
enum link_encryption { LINK_ENCRYPTED, LINK_PLAIN, LINK_ENCRYPTED_ALWAYS };

struct lanes_options {
    struct env *env;
    struct lane_identity self;
    struct tls_context *tls; /* for all but Unix sockets; NULL: only these can be called */
    enum link_encryption encryption;
    uint64_t connect_ns;    /* one attempt, and as long for its welcome; 0: 5 s */
    uint64_t silent_ns;     /* until it is asked whether it lives, and then given up; 0: 5 s */
    uint64_t idle_ns;       /* 0: 60 s */
    uint64_t rest_ns;       /* between attempts, doubled up to 16 times that; 0: 20 ms */
    uint64_t clock_max_ns;  /* that a peer's clock may differ, else -ERR_CLOCK; 0: any */
    struct log_table *logs; /* served in this process: calls to them do not leave it; or NULL */
    bool keeps; /* threads without lanes call by those of the home; it gets what they await */
    /* A line of what a person should know: who can't be reached, who refuses. */
    void (*log)(void *context, const char *line);
    void *context;
};

extern const struct transport_ops lanes_ops; /* their context in rpc_options: the struct lanes */

/* -ERR_NO_MEMORY. */
MUST_CHECK int lanes_new(const struct lanes_options *options, struct lanes **ret_lanes);
/* All threads must have left. Takes NULL. */
void lanes_free(struct lanes *lanes);
/* A process that may be called, at the first of these addresses where one answers; each attempt
 * takes the next, but the first one after a connection, which goes where that one was. name is what
 * lines call it, cut to LANE_NAME_BYTES. -ERR_INVALID for more than LANE_ADDRESSES_MAX;
 * -ERR_TOO_MANY_OPEN; -ERR_NO_MEMORY; -ERR_ACCESS where it takes a key, and there is none. Without
 * an address it can't be reached until it moves. */
MUST_CHECK int lanes_peer_add(struct lanes *lanes, const struct address *addresses,
                              uint32_t address_count, const char *name, uint32_t *ret_peer);
/* The next attempts go to these addresses; the same errors, and nothing has changed. */
MUST_CHECK int lanes_peer_move(struct lanes *lanes, uint32_t peer, const struct address *addresses,
                               uint32_t address_count);
/* Only this node is taken for the peer from now on: another one that has got one of its addresses
 * refuses, and the next address is tried. 0, as at first: whoever is there. */
void lanes_peer_is(struct lanes *lanes, uint32_t peer, struct node_id node);
/* The log is asked for there from now on. -ERR_TOO_MANY_OPEN. */
MUST_CHECK int lanes_route(struct lanes *lanes, struct log_id log, uint32_t peer);
/* Logs without a route are asked for there; without it, they answer -ERR_STALE_MAP. */
void lanes_set_default(struct lanes *lanes, uint32_t peer);

/* wake: the thread's loop, from any other, also more often than needed. expect: by the thread, that
 * calls are on their way, or none any more; may be NULL. */
struct lane_waker {
    void (*_Atomic wake)(void *context);
    void (*expect)(void *context, bool expects);
    void *context;
};
/* A thread that calls; it is bound until free, which ends its lanes: what is still awaited then
 * answers -ERR_CLOSED, and so does what an unbound thread calls. -ERR_NO_MEMORY, also for one more
 * than LANE_THREADS_MAX. */
MUST_CHECK int lane_thread_new(struct lanes *lanes, const struct lane_waker *waker,
                               struct lane_thread **ret_thread);
void lane_thread_bind(struct lane_thread *thread);
void lane_thread_free(struct lane_thread *thread);
/* With `keeps`: the bound thread, from now to its end, sends what threads without lanes call, and
 * takes over what others leave behind; after it such calls answer -ERR_CLOSED. Once. */
void lanes_set_home(struct lanes *lanes, struct lane_thread *thread);
/* At the end of each turn of the loop: what it has gathered leaves, what a tick has asked for is
 * done. True: something was. */
bool lane_thread_turn(struct lane_thread *thread);
/* By the thread: others call by a lane of it, or may. It sleeps where `wake` ends that. */
bool lane_thread_is_needed(const struct lane_thread *thread);
/* Deadlines, silence, rests: every 10 to 100 ms, from any one thread. Threads that sleep are woken
 * only where something of theirs is due. */
void lanes_tick(struct lanes *lanes);
/* Any thread. */
bool lanes_anybody_away(const struct lanes *lanes);

/* Why the peer has refused us, as a code of err.def, at each address and with each key; 0: it has
 * not, or something else was in the way. Trying again goes on. */
int lanes_peer_refusal(struct lanes *lanes, uint32_t peer);

/* The peer whose clock differs most from this machine's, as it was when it welcomed us last: how
 * far it is ahead, less than 0: behind. */
struct lane_clock {
    int64_t ahead_ns;
    char name[LANE_NAME_BYTES]; /* empty: there is no peer yet */
};
void lanes_clock(struct lanes *lanes, struct lane_clock *ret_clock);

/* What status shows. */
struct lane_stats {
    uint32_t open_count; /* connections */
    uint64_t awaited_count;
    uint64_t connected_count; /* ever */
    uint64_t broken_count;    /* ended while something was awaited */
    uint64_t silent_count;    /* of these, as nothing was heard */
    uint64_t replaced_count;  /* reset for a mutation that was given up */
    uint64_t again_count;     /* requests that were sent once more */
};
void lanes_stats(struct lanes *lanes, struct lane_stats *ret_stats);
