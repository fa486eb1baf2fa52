/* Inside of the manager. */
#pragma once
#include "keys/ticket.h"
#include "manager/manager.h"
#include "manager/manager_format.h"
#include "manager/room.h"
#include "manager/session_table.h"
#include "rpc/actor.h"
#include <assert.h>

enum manager_message { MANAGER_TICK = 1, MANAGER_WAKE, MANAGER_QUIET, MANAGER_STOP, MANAGER_MET };
enum { MANAGER_RECENT = 1024 };

/* The newest ends, by their numbers. */
struct manager_ended {
    struct session_id session;
    uint64_t position; /* of its record */
};

/* What a target has of the list of the ended; see ended.c. */
struct manager_teller {
    struct manager *manager;
    struct log_id log;
    uint64_t number;       /* that it has, on disk */
    uint64_t sent_number;  /* that the list had when it was told last, */
    uint64_t tried_number; /* and when it answered with an error, or not */
    bool is_known;         /* it has said so */
    bool telling;          /* the call is in flight */
    uint64_t told_ns;      /* when it was sent; 0: never */
    uint64_t piece;        /* of the whole list: where the next message begins; 0: none */
    uint64_t whole_number; /* of that list */
    uint32_t fence_count;  /* of a group: for which it waits until all OSTs have a number, */
    uint64_t everywhere;   /* and the one that it knows of, as they all have it */
    struct call call;
    uint8_t names[WIRE_ENDED_BYTES_MAX];
};

/* When joins make a version; see gather.c. */
struct manager_gather {
    uint32_t taken;         /* tokens, */
    uint64_t back_ns;       /* and when one of them came back last, or the first was taken */
    bool is_urgent;         /* one of those that wait may not */
    bool is_closed;         /* nor may any */
    _Atomic uint64_t joins; /* that it has made wait */
};

struct manager_map_changes;
struct manager_map_waits;
struct manager_slots;
struct manager_heard;
struct manager_lives;
struct manager_signing;
struct manager_renewals;
struct manager_spaces;

struct manager {
    struct manager_options options;
    struct env *env;
    struct kv *kv;
    struct actor actor;
    struct message tick;
    atomic_bool tick_posted;
    struct message wake;
    atomic_bool wake_posted;
    struct message quiet, stop;
    struct cluster_map *map;
    uint32_t map_pieces;                      /* rows that its bytes take */
    struct cluster_map *next_map;             /* NULL: nothing of the map is about to change */
    struct list life_calls, living_calls;     /* joins: to be registered, and being flushed */
    struct list join_calls;                   /* wait for their turn */
    struct list joining_calls;                /* answered when next_map is the map */
    struct list revoke_calls, lose_calls;     /* wait for their turn */
    struct list revoking_calls, losing_calls; /* as joining_calls */
    struct list renew_calls, renewing_calls;  /* wait for what nodes tell; as joining_calls */
    struct manager_gather gather;
    struct manager_room_told room; /* as of the last tick */
    struct kv_waiter map_waiter;
    bool map_waiting;
    struct manager_map_changes *map_changes;
    struct manager_map_waits *map_waits;
    _Atomic uint32_t maps_waiting; /* calls that wait for a newer map */
    struct manager_slots *slots;
    struct manager_heard *heard;
    struct manager_lives *lives;
    struct manager_signing *signing;
    struct manager_renewals *renewals;
    struct manager_spaces *spaces;
    struct signer signer; /* of tickets */
    struct session_table sessions;
    uint32_t ended_count;            /* of these, in marking and telling */
    uint64_t ticked_ns;              /* 0: not yet */
    uint64_t unheard_ns;             /* in all: the time that it was not listening */
    _Atomic uint32_t ending_count;   /* that are being evicted, as of the last step */
    _Atomic uint32_t nameless_count; /* likewise: whose origins are not known */
    uint64_t next_session;
    uint64_t ended_number; /* of the list of the ended: with what is being flushed, */
    uint64_t told_number;  /* and without */
    uint64_t recent_first; /* from the end after this number on they are in recent */
    struct manager_ended recent[MANAGER_RECENT];
    struct manager_teller *tellers; /* MAP_PLACES_MAX, by the places of the map's logs */
    struct list begin_calls;        /* wait for a predecessor's end, or for room in the log */
    struct list early_calls;        /* came before it was loaded */
    uint32_t rebuilt_written;       /* records of options.rebuilt */
    bool rows_loaded;
    bool loaded; /* and what they say is on disk */
    struct kv_waiter load_waiter;
    bool load_waiting;
    int failure; /* of load or log: what every call gets from then on */
    bool is_quiet, stopping, stop_started;
    void (*stop_done)(void *context, int result);
    void *stop_context;
};

/* sessions.c */
void manager_begin(struct manager *manager, struct call *call);
void manager_renew(struct manager *manager, struct call *call);
void manager_end(struct manager *manager, struct call *call);
/* Moves every session that can move; begins those that wait. */
void manager_sessions_step(struct manager *manager);
/* The time that it was listening. A gap is taken off at the tick behind it: who was heard just
 * before that counts as heard a little later than he was. */
uint64_t manager_listening_ns(const struct manager *manager);
/* A tick: evicts who has been silent for too long. */
void manager_expire(struct manager *manager);
/* Answers all that waits, as nothing moves any more. */
void manager_refuse(struct manager *manager, int result);
/* Both: -ERR_PENDING when a row is on its way; call again. */
MUST_CHECK int manager_sessions_load(struct manager *manager);

/* give_up.c, each tick */
void manager_give_up(struct manager *manager);

/* manager_map.c */
MUST_CHECK int manager_map_load(struct manager *manager);
/* -ERR_OLD_COPY where somebody has a newer map than this manager, which then does nothing more:
 * what it would give out has been given. who: says so, for the line; a few hundred bytes. */
MUST_CHECK int manager_map_is_old(struct manager *manager, uint64_t version, const char *who);
void manager_map_get(struct manager *manager, struct call *call);
/* Writes a map's rows, and that of the hand-over that it has, and lets the waiter wait for them to
 * be durable: -ERR_NO_SPACE: longer than a record may be. */
MUST_CHECK int manager_map_store(struct manager *manager, const struct cluster_map *map,
                                 struct kv_waiter *waiter);

/* nodes.c */
void manager_join(struct manager *manager, struct call *call);
void manager_nodes_step(struct manager *manager);
/* The address is the one that the map has. */
bool manager_address_is_told(const struct map_node *node, const struct node_join_request *request);
/* It has been formatted, as far as the map says. */
bool manager_node_has_targets(const struct cluster_map *map, const struct map_node *node);
