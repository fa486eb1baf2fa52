/* What the files of lanes share. */
#pragma once
#include "base/list.h"
#include "rpc/awaited.h"
#include "rpc/connection.h"
#include "rpc/lane.h"
#include <stdatomic.h>

enum { LANE_ROUTES = 4096 }; /* three times as many as there may be */

enum lane_state { LANE_IDLE, LANE_JOINING, LANE_OPEN, LANE_RESTING };

/* Addresses of a peer, of which each attempt takes the next. Never changed, and kept to the end, as
 * lanes of any thread may be looking at one that was replaced. */
struct lane_addresses {
    struct lane_addresses *before;
    uint32_t count;
    struct address addresses[LANE_ADDRESSES_MAX];
};

struct lane_peer {
    _Atomic(struct lane_addresses *) addresses; /* the newest; `before` leads to older ones */
    char name[LANE_NAME_BYTES];                 /* for lines */
    _Atomic uint32_t node;                      /* that it must be; 0: any */
    atomic_bool said;                           /* that it can't be reached; until it can */
    _Atomic uint32_t refusals;                  /* in a row, for the reason `refusal` */
    _Atomic int refusal;
    _Atomic uint64_t away_since_ns; /* 0: it answers */
    _Atomic int64_t clock_ahead_ns; /* as its last welcome told */
};

struct lane {
    struct lane_thread *thread;
    struct lane_peer *peer;
    enum lane_state state;
    bool in_dirty, pinged;
    const char *refusal;           /* while it is told that a proof has failed */
    struct connection *connection; /* JOINING, OPEN */
    const struct address *address; /* that it goes to, or went to last */
    uint64_t number;               /* of the connection; the last one's in other states */
    uint64_t attempts;             /* to connect, ever */
    struct awaited awaited;
    struct list unsent; /* calls, by rpc_node: not on this connection yet */
    struct list sent;
    struct call *receiving; /* whose memory the connection reads into */
    uint64_t since_ns;      /* of the state; in OPEN: last used */
    uint64_t heard_ns;
    uint64_t rest_ns;
    struct list_node dirty;
    struct list_node used; /* in its thread's lanes */
};

struct lane_thread {
    struct lanes *lanes;
    uint32_t index;
    struct lane_waker waker;
    struct list dirty;       /* lanes with something to flush */
    atomic_bool is_bound;    /* to a thread; its memory stays for the next one */
    _Atomic uint32_t wakers; /* that may be about to wake it */
    atomic_bool tick_due;
    _Atomic uint64_t call_count; /* in its lanes */
    _Atomic uint32_t open_count; /* connections */
    struct list used;            /* lanes */
    struct lane *lanes_to[LANE_PEERS_MAX];
};

/* Where a log is served. Routes are added and changed, and never go. */
struct lane_route {
    _Atomic uint64_t log; /* 0: free */
    _Atomic uint32_t peer;
};

/* Of calls that no thread's lane has. */
enum lane_home { HOME_AWAITED, HOME_THERE, HOME_GONE };

struct lanes {
    struct lanes_options options;
    _Atomic uint32_t peer_count;
    _Atomic uint32_t default_peer;
    _Atomic uint64_t numbers; /* of connections */
    struct lane_route routes[LANE_ROUTES];
    _Atomic enum lane_home home_state;
    _Atomic(struct lane_thread *) home;
    _Atomic(struct call *) homeless; /* newest first, by transport_context */
    struct lane_peer peers[LANE_PEERS_MAX];
    _Atomic(struct lane_thread *) threads[LANE_THREADS_MAX]; /* never removed */
    uint64_t looked_ns;                                      /* at idle lanes */
    _Atomic uint64_t connected_count, broken_count, silent_count, replaced_count, again_count;
    _Atomic uint32_t away_count; /* peers of which `said` is true */
};

void lane_begin(struct lane *lane, struct lane_thread *thread, struct lane_peer *peer);
/* Ends and frees it: each call answers -ERR_CLOSED, or goes to the home's lanes. */
void lane_finish(struct lane *lane);
/* Any thread. */
void lanes_take_homeless(struct lanes *lanes, struct call *call);
/* Takes the call. */
void lane_send(struct lane *lane, struct call *call);
void lane_flush(struct lane *lane);
void lane_tick(struct lane *lane, uint64_t now_ns);
