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
    _Atomic uint32_t open_count;                          /* lanes that are OPEN */
    _Atomic uint64_t open_threads[LANE_THREADS_MAX / 64]; /* a bit for each of their threads */
    _Atomic uint32_t granted;            /* lanes, as its last welcome told; 0: not known */
    _Atomic uint64_t granted_ns;         /* when that came */
    _Atomic uint64_t away_since_ns;      /* no lane has heard anything since; 0: it answers */
    _Atomic uint64_t said_since_ns;      /* for which time away a line told who waits */
    _Atomic uint32_t wait_count;         /* calls of that time, as lanes counted them last */
    _Atomic(const struct lane *) prober; /* that tries on while nobody waits; NULL: none */
    _Atomic int64_t clock_ahead_ns;      /* as its last welcome told */
};

struct lane {
    struct lane_thread *thread;
    struct lane_peer *peer;
    enum lane_state state;
    bool in_dirty, pinged;
    bool holds;                    /* committed requests that may wait: the next flush has them */
    const char *refusal;           /* while it is told that a proof has failed */
    struct connection *connection; /* JOINING, OPEN */
    const struct address *address; /* that it goes to, or went to last */
    uint64_t number;               /* of the connection; the last one's in other states */
    uint64_t attempts;             /* to connect, ever */
    struct awaited awaited;
    uint32_t told_count;    /* of wait_count, */
    uint64_t told_since_ns; /* if the time away is still the one that began then */
    struct list unsent;     /* calls, by rpc_node: not on this connection yet */
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
    atomic_bool is_taken;    /* by a thread; its memory stays for the next one */
    atomic_bool is_bound;    /* that thread can be woken */
    _Atomic uint32_t wakers; /* that may be about to wake it */
    atomic_bool tick_due;
    _Atomic uint64_t call_count;   /* in its lanes */
    _Atomic uint32_t probe_count;  /* of its lanes */
    _Atomic uint32_t open_count;   /* connections */
    _Atomic(struct call *) handed; /* by other threads, for its lanes; newest first, likewise */
    struct list used;              /* lanes */
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

bool lane_is_used(const struct lane *lane); /* it has calls */
/* Lists that any thread adds to, linked by transport_context; take: oldest first. */
void calls_push(_Atomic(struct call *) *calls, struct call *call);
struct call *calls_take(_Atomic(struct call *) *calls);
/* Any thread: the call goes by its lanes, or, where it has ended, by another's. */
void lane_thread_hand(struct lane_thread *thread, struct call *call);
/* Hands a call of another thread on, from one that ends. */
void lanes_hand_on(const struct lane_thread *from, struct call *call);
void lane_thread_unbind(struct lane_thread *thread);
bool lane_thread_take_handed(struct lane_thread *thread);
/* lanes.c: by the thread. */
void lane_thread_send(struct lane_thread *thread, struct call *call);
/* Any thread. */
void lane_thread_wake(struct lane_thread *thread);

/* lane_peer.c. */
uint64_t lane_now(const struct lane *lane);
void lane_note_open(struct lane *lane, bool is_open);
void lane_say(const struct lane *lane, const char *what, int reason);
/* Once an absence. True: it was said. */
bool lane_say_away(struct lane *lane, const char *what, int reason);
bool lane_peer_is_away(const struct lane *lane); /* and no lane has heard of it since */
/* The lane did not get through: patience counts from there, unless another lane is open. */
void lane_note_away(struct lane *lane, uint64_t since_ns);
void lane_note_welcome(struct lane *lane);
/* At its ticks: how many of its calls wait for a peer that is away. */
void lane_note_calls(struct lane *lane);
void lane_note_heard(struct lane *lane);
/* Whether it goes on trying while nobody waits. */
bool lane_probes(struct lane *lane);
void lane_probe_end(struct lane *lane);
/* Whether its patience is over: nobody has got through to the peer for that long. */
bool call_has_waited(const struct lane_peer *peer, const struct call *call, uint64_t now_ns);
/* Whoever asked before the peer went away waits as long from then on: at its first absence. A peer
 * that goes again and again, by what it is asked maybe, is not waited for without end. */
void call_extend(const struct lane *lane, struct call *call);

void lane_begin(struct lane *lane, struct lane_thread *thread, struct lane_peer *peer);
/* Ends and frees it: each call answers -ERR_CLOSED, or goes to the home's lanes. */
void lane_finish(struct lane *lane);
/* Any thread. */
void lanes_take_homeless(struct lanes *lanes, struct call *call);
/* Takes the call. */
void lane_send(struct lane *lane, struct call *call);
void lane_flush(struct lane *lane);
void lane_tick(struct lane *lane, uint64_t now_ns);
