/* The manager: which sessions there are, and the cluster map. An actor over a small kv.
 *
 *     session_begin   predecessor of the same node and origin? evict it first -> row, flushed -> id
 *     session_renew   remembers the time; tells the map's version
 *     session_end     evicts whoever asks: everything of the session goes at every target
 *     map_get         the map's bytes, when the caller has an older one
 *     (silence)       a session that has not renewed for session_timeout_ns is evicted
 *
 * Everybody's I/O goes on while it is away; only beginnings, ends and the map wait for it.
 *
 * Thread: open and close while nobody else has it; tick and stop_start from any thread with a
 * worker; all else happens in its step. Memory: taken at open. */
#pragma once
#include "kv/kv.h"
#include "layout/cluster_map.h"
#include "rpc/call.h"

struct manager;

struct manager_options {
    struct env *env;
    struct kv_options kv;          /* without env and hooks; a ring of 1 MiB is plenty */
    struct rpc *rpc;               /* its own, to the targets; ticked by the manager */
    const struct cluster_map *map; /* what an empty manager starts with; copied */
    uint64_t session_timeout_ns;   /* 0: 30 s */
    uint32_t sessions_max;         /* 0: 4,096 */
};

/* Opens the state, or formats an empty one. (start) With a line in ret_problem: what kv says;
 * -ERR_INVALID for an empty state without a map, or a map that is none; -ERR_CORRUPT;
 * -ERR_NEWER_FORMAT; -ERR_NOT_OURS when the map given is of another cluster. */
MUST_CHECK int manager_open(const struct manager_options *options, struct manager **ret_manager,
                            char ret_problem[256]);
/* Takes calls of kind CALL_MESSAGE_KIND. */
struct actor *manager_actor(struct manager *manager);
/* Every 100 ms. */
void manager_tick(struct manager *manager);
/* The map as it is now: unchanged as long as the manager is open. */
const struct cluster_map *manager_map(const struct manager *manager);
/* Takes a sync point and a checkpoint and removes the ring; later calls get -ERR_CLOSED. done runs
 * in the step. */
void manager_stop_start(struct manager *manager, void (*done)(void *context, int result),
                        void *context);
/* Frees memory, stopped or not; takes NULL. What waits in it is not answered. */
void manager_close(struct manager *manager);

/* To be read in the step, or when the actor is idle. */
struct manager_counters {
    uint64_t begins, ends, renewals, evictions, timeouts;
    uint32_t session_count;
};
void manager_counters_get(const struct manager *manager, struct manager_counters *ret_counters);
