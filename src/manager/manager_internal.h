/* Inside of the manager. */
#pragma once
#include "keys/ticket.h"
#include "manager/manager.h"
#include "manager/manager_format.h"
#include "rpc/actor.h"
#include <assert.h>

enum manager_message { MANAGER_TICK = 1, MANAGER_WAKE, MANAGER_STOP };

enum session_stage {
    STAGE_FREE,
    STAGE_BEGINNING, /* its record is being flushed; begin_call waits */
    STAGE_LIVE,
    STAGE_MARKING,    /* the record that says EVICTING is being flushed */
    STAGE_TELLING,    /* targets are told, one after another */
    STAGE_FORGETTING, /* the record that drops it is being flushed */
};

/* Of the logs of a map, rounded up. */
enum { MANAGER_PLACES_MAX = MAP_TARGETS_MAX + MAP_GROUPS_MAX };
static_assert(MANAGER_PLACES_MAX % 64 == 0, "whole words");

struct manager_session {
    struct manager *manager;
    struct session_id id;
    uint64_t incarnation;
    uint32_t node;
    enum session_stage stage;
    uint64_t heard_ns;
    uint32_t place;                         /* of the map, whose log is told, or is next to be */
    uint64_t told[MANAGER_PLACES_MAX / 64]; /* places whose logs know of the eviction */
    bool telling;                           /* tell_call is in flight */
    bool resting; /* the target could not be told: again with the next tick */
    struct call tell_call;
    struct call *begin_call; /* waits for the flush */
    struct list end_calls;   /* wait until it is gone */
    struct kv_waiter waiter;
    bool waiting;
    uint16_t origin_bytes;
    uint8_t origin[MANAGER_ORIGIN_BYTES_MAX];
};

struct manager {
    struct manager_options options;
    struct env *env;
    struct kv *kv;
    struct actor actor;
    struct message tick;
    atomic_bool tick_posted;
    struct message wake;
    atomic_bool wake_posted;
    struct message stop;
    struct cluster_map *map;
    struct cluster_map *next_map; /* NULL: nothing of the map is about to change */
    struct list join_calls;       /* wait for their turn */
    struct list joining_calls;    /* answered when next_map is the map */
    struct kv_waiter map_waiter;
    bool map_waiting;
    struct signer signer; /* of tickets */
    struct manager_session *sessions;
    uint32_t sessions_max;
    uint64_t ticked_ns;            /* 0: not yet */
    _Atomic uint32_t ending_count; /* that are being evicted, as of the last step */
    uint64_t next_session;
    struct list begin_calls; /* wait for a predecessor's end, or for room in the log */
    struct list early_calls; /* came before it was loaded */
    bool rows_loaded;
    bool loaded; /* and what they say is on disk */
    struct kv_waiter load_waiter;
    bool load_waiting;
    int failure; /* of the load or of the log: what every call gets from then on */
    bool stopping;
    bool stop_started;
    void (*stop_done)(void *context, int result);
    void *stop_context;
};

/* sessions.c */
void manager_begin(struct manager *manager, struct call *call);
void manager_renew(struct manager *manager, struct call *call);
void manager_end(struct manager *manager, struct call *call);
/* Moves every session that can move; begins those that wait. */
void manager_sessions_step(struct manager *manager);
/* A tick: tells again where that failed, evicts who has been silent for too long. */
void manager_expire(struct manager *manager);
/* Answers all that waits, as nothing moves any more. */
void manager_refuse(struct manager *manager, int result);
/* A target holds a call of ours. */
bool manager_is_telling(const struct manager *manager);
/* Both: -ERR_PENDING when a row is on its way; call again. */
MUST_CHECK int manager_sessions_load(struct manager *manager);

/* give_up.c, each tick */
void manager_give_up(struct manager *manager);

/* manager_map.c */
MUST_CHECK int manager_map_load(struct manager *manager);
void manager_map_get(struct manager *manager, struct call *call);
/* Writes a map's rows and lets the waiter wait for them to be durable: -ERR_NO_SPACE: larger than
 * the ring takes. */
MUST_CHECK int manager_map_store(struct manager *manager, const struct cluster_map *map,
                                 struct kv_waiter *waiter);

/* nodes.c */
void manager_join(struct manager *manager, struct call *call);
void manager_nodes_step(struct manager *manager);
