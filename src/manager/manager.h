/* The manager of one machine: the cluster map and the sessions, in a log of its own.
 *
 *     session_begin --> (predecessor of the same node and origin: end it) --> LIVE, flushed
 *     LIVE --renew--> LIVE      LIVE --silent, replaced, or ended--> row gone, and the number of
 *                               its end, flushed --> groups have that number: reply of end
 *
 * A session id is never given twice: its record is flushed before the reply that names it.
 * Targets are told of ends by a numbered list (ended.c). While it hears few of its nodes nobody is
 * silent for too long (heard.c).
 *
 * Thread: an actor.  Memory: sessions_max sessions, touched when used first. */
#pragma once
#include "keys/key_ring.h"
#include "kv/kv.h"
#include "layout/cluster_map.h"
#include "rpc/call.h"

struct manager;
struct rebuilt;

struct manager_options {
    struct env *env;
    struct kv_options kv;          /* without env and hooks */
    struct rpc *rpc;               /* to targets, ticked by the manager */
    const struct cluster_map *map; /* kept when the store has none yet; borrowed until open ends */
    /* What it is made of, where its log was lost: its store is empty. Borrowed until a call is
     * answered. NULL: it was not. */
    const struct rebuilt *rebuilt;
    struct target_id target;     /* its own address */
    uint64_t place;              /* of its node's directory (folder_place); 0: unknown */
    const struct key_ring *keys; /* for tickets; borrowed. NULL: none, within one process */
    uint64_t session_timeout_ns; /* 0: 30 s */
    uint32_t sessions_max;       /* 0: 1,024 */
    uint32_t map_waits_max;      /* calls that may wait for a newer map; 0: 2,048 */
    uint64_t map_wait_ns;        /* that one may; 0: 30 s */
    uint64_t join_pause_ns;      /* between versions that joins make, for each node; 0: 20 ms */
    uint32_t joins_at_once;      /* versions that joins make without a pause; 0: 8 */
    uint64_t pool_interval_ns;   /* between two pool versions by what targets have; 0: 10 s */
    uint64_t renew_wait_ns;  /* that a renewal of keys waits until all nodes have told; 0: 5 s */
    uint64_t life_stands_ns; /* that a life that has spoken is taken for one that runs; 0: 5 s */
    void (*log)(void *context, const char *line); /* of what a person should know; or NULL */
    void *log_context;
};

enum {
    MANAGER_SESSIONS_DEFAULT = 1024,
    MANAGER_TIMEOUT_DEFAULT_S = 30,
    MANAGER_MAP_WAITS_DEFAULT = 2048,
    MANAGER_RENEW_WAIT_DEFAULT_S = 5
};

/* (start) The errors of kv_open, and -ERR_CORRUPT for rows that are none, with a line in
 * ret_problem. Where the store knows more sessions than sessions_max none begins until some end. */
MUST_CHECK int manager_open(const struct manager_options *options, struct manager **ret_manager,
                            char ret_problem[256]);
/* Takes calls of kind CALL_MESSAGE_KIND. */
struct actor *manager_actor(struct manager *manager);
/* For its counters and positions, when the actor is idle. */
struct kv *manager_kv(struct manager *manager);
/* Every 100 ms. */
void manager_tick(struct manager *manager);
/* Nobody is kept waiting for a newer map, or for sessions of before, from now on; once, before a
 * stop. */
void manager_quiet(struct manager *manager);
/* Takes a sync point and a checkpoint; calls that come from now on get -ERR_CLOSED. */
void manager_stop_start(struct manager *manager, void (*done)(void *context, int result),
                        void *context);
/* Frees memory, stopped or not; takes NULL. */
void manager_close(struct manager *manager);
/* Of a process that dies, or that could not start: whatever is in flight. Takes NULL. */
void manager_abandon(struct manager *manager);
/* As it was at open. */
const struct cluster_map *manager_map(const struct manager *manager);
/* Sessions that are live or being evicted; for the actor's step, or when it is idle. */
uint32_t manager_session_count(const struct manager *manager);
/* Sessions that not every group has been told of the end of, and storage targets that do not have
 * the newest list, a moment ago; any thread. */
uint32_t manager_ending_count(const struct manager *manager);

/* Sessions of a manager that was rebuilt, now or before, whose origins are not known: who begins
 * may have to wait until those of his node are heard, or have ended. A moment ago; any thread. */
uint32_t manager_nameless_count(const struct manager *manager);

/* Calls that wait for a newer map; any thread. */
uint32_t manager_map_waits(const struct manager *manager);

/* Joins that waited to make a version with others, since it was opened; any thread. */
uint64_t manager_joins_gathered(const struct manager *manager);

/* Whom it hears, as of its last tick, and what came of that since it was opened. */
struct manager_hearing {
    uint32_t nodes;          /* whose targets are in the map, with its own */
    uint32_t nodes_heard;    /* of these, a moment ago */
    bool holds;              /* these are fewer than half, or were: nobody is evicted for silence */
    uint64_t silent_evicted; /* sessions, for their silence */
    uint64_t silent_held;    /* sessions that were silent for too long while it held them back */
};
/* Mounts that tell of a user who has met his share there, the newest first. */
enum { MANAGER_MET_MAX = 16 };
struct manager_met_row {
    struct session_id session;
    uint64_t files_user;    /* of the open files, + 1; 0: nobody */
    uint64_t requests_user; /* of the requests at work */
    char origin[256];       /* of the session; cut, where it is longer */
};
/* Made in the manager's step. The caller owns it until done. */
struct manager_met {
    struct message message; /* ours */
    void (*done)(struct manager_met *met);
    void *context;
    uint32_t count; /* rows; there may be more mounts than have one */
    struct manager_met_row rows[MANAGER_MET_MAX];
};
/* Any thread with a worker. */
void manager_met_start(struct manager *manager, struct manager_met *met);

/* Any thread. */
void manager_hearing_get(const struct manager *manager, struct manager_hearing *ret_hearing);

/* How full its log is, as of its last tick. */
struct manager_room {
    struct kv_levels levels;
    uint32_t waiting_count; /* calls that wait for room, for a sync point, or for others */
};
/* Any thread. */
void manager_room_get(const struct manager *manager, struct manager_room *ret_room);
