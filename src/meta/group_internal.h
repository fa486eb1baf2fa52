/* The group's state, shared by the files of meta/ and by nobody else. */
#pragma once
#include "keys/ticket.h"
#include "meta/counters.h"
#include "meta/crossing.h"
#include "meta/ended.h"
#include "meta/fences.h"
#include "meta/group.h"
#include "meta/names.h"
#include "meta/numbers.h"
#include "meta/slots.h"
#include "meta/opens.h"
#include "meta/ost_peers.h"
#include "meta/parking.h"
#include "meta/promise.h"
#include "meta/queue.h"
#include "meta/room.h"
#include "meta/session.h"
#include "meta/settle.h"
#include "meta/transaction.h"
#include "rpc/slow_log.h"

/* The actor's own kinds of messages, besides CALL_MESSAGE_KIND and CALL_DONE_KIND. */
enum group_message { GROUP_TICK = 1, GROUP_WAKE, GROUP_GO_ON, GROUP_MAP, GROUP_STATS, GROUP_STOP };

/* FAILED: the log stopped; everything is answered with the error. */
enum group_stage { GROUP_LOADING, GROUP_SERVING, GROUP_STOPPING, GROUP_FAILED };

/* What a start reads before the first call is served. */
enum load_stage {
    LOAD_IDENTITY,
    LOAD_SLOTS,
    LOAD_SESSIONS,
    LOAD_OVER,
    LOAD_FENCES,
    LOAD_WRITERS,
    LOAD_MOVES,
    LOAD_PROMISES,
    LOAD_DECISIONS,
    LOAD_SYNC,
    LOAD_DONE
};

/* Freeing orphans after a start: once all sessions have attached anew or ended. */
enum sweep_stage { SWEEP_WAITING, SWEEP_RUNNING, SWEEP_DONE };

/* A message of which one at most is on its way. */
struct signal {
    struct message message;
    atomic_bool posted;
};

struct group {
    struct actor actor;
    struct group_options options;
    struct env *env;
    struct kv *kv;
    const struct cluster_map *map;           /* the options' one, or own_map */
    struct cluster_map *own_map;             /* NULL: none was set */
    _Atomic(struct cluster_map *) given_map; /* that is to be taken */
    struct rpc *rpc;
    uint32_t map_group; /* index in map->groups; MAP_GROUPS_MAX: not in this one yet */
    bool group_has_slots[MAP_GROUPS_MAX];  /* by that index, by the map */
    bool group_is_lost[MAP_GROUPS_MAX];    /* likewise: its target is, which a start knows, too */
    uint64_t inode_counts[MAP_GROUPS_MAX]; /* likewise, as the manager has told last */
    struct room room;
    struct name_hash hash;
    struct signer signer;        /* of capabilities */
    struct signer ticket_signer; /* likewise */
    uint64_t term;
    enum group_stage stage;
    int failure; /* of stage FAILED */

    enum load_stage load_stage;
    struct kv_cursor load_cursor;
    enum sweep_stage sweep_stage;
    struct kv_cursor sweep_cursor;

    uint64_t now_ns;  /* of this step */
    uint64_t wall_ns; /* likewise, never behind that of an earlier step */

    /* Calls: waiting for room in the log; arrived since; met PENDING; answered in this step;
     * answered when their record is on disk. */
    struct list full[MESSAGE_CLASS_COUNT], arrived[MESSAGE_CLASS_COUNT];
    struct list answered;
    struct list answered_after_sync;
    struct list answered_at_sync; /* likewise, without asking for a sync point */
    struct list awaiting_sync;
    struct list yielded; /* in this step, to run in the next one; empty between steps */
    struct parking parking;
    bool woken; /* by the engine: rows that parked calls wait for may be there */
    bool moved; /* something of the group's own that they may wait for has ended */

    uint64_t sync_wanted; /* somebody waits for this position */
    struct kv_waiter sync_waiter;
    bool sync_waiting;
    bool synced_moved;
    uint64_t promised_epoch; /* files made since are nobody's but their makers' (op_inline.c) */

    struct numbers numbers;
    struct slots slots;
    struct sessions sessions;
    struct ended ended;
    struct fences fences;
    struct opens opens;
    struct ost_peers ost_peers;
    struct order_queue orders;
    struct settle settle;
    struct stakes stakes;
    struct crossings crossings;
    struct promises promises;
    struct turns turns;
    struct counters counters;
    struct slow_log slow;
    uint64_t damage_quiet_ns; /* until then no line tells of rows that contradict one another */
    uint64_t epoch_quiet_ns;  /* likewise, of a clock that is far ahead */

    struct signal tick, wake, go_on, map_given;
    struct message stop;
    void (*stop_asked)(void *context, int result);
    void (*stop_done)(void *context, int result); /* once the step has heard of it */
    void *stop_context;
    bool stop_started;
};

/* group.c: asks for a sync point that covers the position. */
void group_sync_want(struct group *group, uint64_t position);
/* Puts the call's answer among those that leave after this step's record is sealed. */
void group_answer(struct group *group, struct call *call, int result);
/* What the group goes by of its map, which is another one. */
void group_map_read(struct group *group);
/* The process knows that it is lost for good: maybe by a newer map that can't be kept (maps.md). */
bool group_knows_lost(const struct group *group, struct log_id log);
/* By the group's own map alone, which is on disk; and by that or what the process knows. */
bool group_map_says_lost(const struct group *group, uint64_t log);
bool group_log_is_lost(const struct group *group, uint64_t log);
/* It knows that of this group: nobody takes anything of it any more. */
bool group_is_lost_itself(const struct group *group);
/* Closes the open record, numbers included. */
void group_seal(struct group *group);
/* A job of the group has more to do: another step, after others had their turn. */
void group_again(struct group *group);

/* start.c: formats an empty state, checks whose it is, reads what needs no waiting. (start) */
MUST_CHECK int start_read(struct group *group, char ret_problem[256]);
/* A stretch of what a start has to read besides; 0 when serving may begin. */
MUST_CHECK int load_step(struct group *group, char problem[256]);
/* After a start: frees what nobody has open, some at a time. */
void sweep_step(struct group *group);
void sweep_again(struct group *group);
