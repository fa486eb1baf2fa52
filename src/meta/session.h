/* Sessions of a group: who may call, what they have open, and the answers to mutations that failed
 * (those that succeeded are outcomes in the log).
 *
 *     attach --> LIVE --named as ended--> EVICTING --sizes settled, opens dropped, orphans freed-->
 *
 * After a restart a session is known from its row but not attached: until it has presented its
 * opens (reopen) and attached again, all else is refused with -ERR_STALE_TERM.
 *
 * Thread: the group's.  Memory: as many as there are, taken when one is added, some at a time. */
#pragma once
#include "base/list.h"
#include "kv/kv.h"
#include "kv/windows.h"
#include "meta/group_format.h"
#include "rpc/call_sender.h"
#include "rpc/session_counters.h"

struct call;
struct group;

/* A sequence that failed is remembered while it may still arrive a second time. */
enum { SESSION_FAILURES = 64 };

struct session_failure {
    uint64_t sequence;
    int result;
};

struct session {
    struct session *next; /* of the bucket, or of the free ones */
    struct list_node node;
    struct list_node evicting; /* in the sessions', while it is EVICTING */
    struct session_id id;
    uint64_t incarnation;
    uint32_t node_id;
    uint8_t state;   /* enum session_state, LIVE or EVICTING */
    uint16_t window; /* mutations that it may have under way, until its end */
    bool attached;   /* in this term, by the sender */
    bool is_unsure;  /* it may have had more open than is known, before a loss of the log's end */
    bool is_fenced;  /* it ended as such (fences.h) */
    struct call_sender sender;
    struct list opens;
    struct list shut;        /* of these, opens.h */
    uint64_t floor;          /* lowest sequence still awaited, as last heard */
    uint64_t answered_below; /* of the mutations that it asked before it attached; 0: not known */
    struct session_failure failures[SESSION_FAILURES];
    uint64_t evict_position; /* of the row that says EVICTING; 0: a start has found it */
    bool evict_began;        /* to close opens, */
    size_t evict_count;      /* of which so many are left, */
    size_t evict_unseen;     /* and it has not looked at so many yet */
    size_t evict_waits;      /* of those looked at last, so many in a row wait for settle jobs, */
    uint64_t evict_settles;  /* since so many had ended */
    struct session_counters counters;
};

struct session_slab;

struct sessions {
    struct session_slab *slabs;
    struct session **buckets;
    struct session *free;
    struct list known;
    struct list evicting; /* in the order in which they were named as ended */
    struct windows windows;
    uint32_t bucket_mask;
    uint32_t max; /* that may attach; a start may find more */
    uint32_t count;
    uint32_t unattached_count; /* known from before the restart */
    uint32_t evicting_count;
    uint64_t evicting_looks; /* at opens that are to be closed */
    uint32_t unsure_count;   /* that live */
    uint16_t losses;         /* of the log, as of the start */
};

MUST_CHECK int sessions_init(struct sessions *sessions, uint32_t sessions_max);
void sessions_deinit(struct sessions *sessions);
struct session *sessions_find(const struct sessions *sessions, struct session_id id);
/* Whether another one may be added, for which there is memory then. */
bool sessions_have_room(struct sessions *sessions);
/* NULL: no memory, which there is behind sessions_have_room. */
struct session *sessions_add(struct sessions *sessions, struct session_id id,
                             const struct session_row *row);
/* It is LIVE, and has been named as ended: it is EVICTING. */
void sessions_evict(struct sessions *sessions, struct session *session);
/* Its opens are gone. */
void sessions_drop(struct sessions *sessions, struct session *session);
void session_attached(struct sessions *sessions, struct session *session);
/* What it had open is known, or it lives no more. */
void sessions_sure(struct sessions *sessions, struct session *session);
/* Adds what was counted of each. */
void sessions_counters_get(const struct sessions *sessions, struct session_counters_list *list);

/* Whether the session of the call may ask this at all: 0, -ERR_UNKNOWN_SESSION, also where another
 * process has attached it, -ERR_FENCED, -ERR_STALE_TERM. reopening: an unattached session may. */
MUST_CHECK int session_check(const struct session *session, const struct call *call,
                             bool reopening);

/* 0 when the sequence is not known to have failed. */
int session_failure_find(const struct session *session, uint64_t sequence);
/* False when it cannot be kept here: its place is taken by one that may still arrive again. */
bool session_failure_keep(struct session *session, uint64_t sequence, int result);
