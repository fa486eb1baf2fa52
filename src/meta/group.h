/* A metadata group: slots that share one log and one state, served by one actor.
 *
 *     calls --> actor: sort by class --> session? outcome known? room in the log?
 *                        |                     |  kv_begin .. operation .. kv_commit
 *                        |  PENDING: park <----+  (run from its beginning when the row is there)
 *                        +--> kv_seal --> replies leave --> sync points, queue, settle jobs
 *
 * Thread: group_tick, group_map_set, group_stats_start and group_stop_start from any thread with a
 * worker; open and close while nobody else has the group.  Memory: taken at open, from the options;
 * maps when they are set. */
#pragma once
#include "keys/key_ring.h"
#include "kv/kv.h"
#include "layout/cluster_map.h"
#include "meta/counters.h"
#include "rpc/session_counters.h"

struct group;
struct cross_id;

/* What became of a promise to another group: FORGOTTEN: it was kept, and has ended everywhere. */
enum promise_end { PROMISE_KEPT, PROMISE_GIVEN_UP, PROMISE_FORGOTTEN };

struct group_options {
    struct env *env;
    struct kv_options kv;          /* without env and hooks: those are the group's */
    const struct cluster_map *map; /* borrowed; unchanged until a newer one is set, or the end */
    struct target_id target;       /* the MDT; its group, with the same number, has it first */
    struct rpc *rpc; /* to OSTs, ticked by the group; NULL: orders to OSTs stay queued */
    /* By which capabilities are signed and tickets checked; borrowed as long as the group is open.
     * NULL: neither is, within one process. */
    const struct key_ring *keys;
    uint32_t root_uid; /* of an empty group's root directory */
    uint32_t root_gid;
    uint32_t root_mode;           /* permission bits, 0755 for most */
    struct layout default_layout; /* of the root; pool_version 0 = the newest */
    uint32_t sessions_max;        /* 0 in these two: the default */
    uint32_t opens_max;
    uint64_t slow_request_ns;   /* a call that takes longer gets a line in kv.log; 0: none does */
    uint8_t name_hash_bits;     /* 0: NAME_HASH_BITS; fewer to test collisions; fixed at format */
    uint32_t move_refusals;     /* until a move asks for a turn; 0: MOVE_REFUSALS_MAX */
    uint32_t crossings_max;     /* transactions with other groups; 0: CROSSINGS_MAX */
    uint32_t settles_later_max; /* 0: SETTLES_LATER_MAX */
    uint32_t listing_step;      /* of a listing until others run; 0: LISTING_STEP; op_readdir.c */
    /* Called in the group's step, for who compares what participants have done. Or NULL. */
    void (*promise_ended)(void *context, const struct cross_id *id, enum promise_end end);
    void *promise_context;
};

enum { SESSIONS_DEFAULT = 1024, OPENS_DEFAULT = 65536 };
/* About 50 us on one thread: that others wait for a listing which has all it needs in memory. */
enum { LISTING_STEP = 128 };

/* Opens the state and formats an empty one with its root directory (ino 1). (start)
 * -ERR_CORRUPT, -ERR_NEWER_FORMAT, -ERR_NOT_OURS (another cluster's or group's) with a line in
 * ret_problem; -ERR_NO_MEMORY. Of a target that the map does not have yet the group has no slots,
 * and is told of some. */
MUST_CHECK int group_open(const struct group_options *options, struct group **ret_group,
                          char ret_problem[256]);
/* Takes calls of kind CALL_MESSAGE_KIND. */
struct actor *group_actor(struct group *group);
/* The session was here before the start, and has not come back. While no step runs. */
bool group_awaits(const struct group *group, struct session_id id);
/* For its counters and positions, when the actor is idle. */
struct kv *group_kv(struct group *group);
/* As of its last step, when the actor is idle. */
const struct group_totals *group_totals(const struct group *group);
/* Every 100 ms. */
void group_tick(struct group *group);
/* From one of its next steps on it goes by a copy of this map, unless its own is newer: new files
 * are of its newest pool version, and what waited for a pool version goes on. -ERR_NO_MEMORY. */
MUST_CHECK int group_map_set(struct group *group, const struct cluster_map *map);
/* Takes a sync point and a checkpoint and removes the ring; calls that come from now on get
 * -ERR_CLOSED. done runs in the group's step. */
void group_stop_start(struct group *group, void (*done)(void *context, int result), void *context);
/* Once it has stopped. Takes NULL. */
void group_close(struct group *group);
/* Of a process that dies, or that could not start: whatever is in flight. Takes NULL. */
void group_abandon(struct group *group);

/* A copy of the group's numbers, made in its step. The caller owns it until done. */
struct group_stats {
    struct message message; /* ours */
    void (*done)(struct group_stats *stats);
    void *context;
    struct kv_counters kv;
    uint64_t inode_count;
    uint64_t directory_count; /* of these */
    uint32_t slot_count;
    uint32_t slots_opened; /* of these */
    uint64_t position;
    uint64_t synced_position;
    uint64_t term;
    uint32_t session_count;
    uint32_t away_count; /* of these, have not come back since the start */
    uint32_t open_count;
    uint64_t opens_met;   /* who met his share of what may be open last, user + 1; 0: nobody */
    uint64_t order_count; /* orders to OSTs that are being carried out */
    uint64_t parked_count;
    uint64_t waiting_count;                /* those, and calls that wait for room in the log */
    struct operation_counters *operations; /* OPCODE_COUNT of them, the caller's; or NULL */
    struct group_totals totals;
    struct session_counters_list clients; /* rows are the caller's; added to */
};
void group_stats_start(struct group *group, struct group_stats *stats);
