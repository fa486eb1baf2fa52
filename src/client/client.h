/* The client core behind include/shoal/shoal.h: one session with a cluster.
 *
 *     shoal_submit -+-> names: straight to the group's actor; answered on the spot
 *                   +-> open files: shard (by ino) -> group's or storage target's actor -> shard
 *     client_tick ----> session: renewals, attachments, the map, what waits to be tried again
 *
 * Thread: every call needs a worker bound to the calling thread, except shoal_submit and shoal_run,
 * which bind one for their time where there is none. Memory: taken by client_new from the limits;
 * a request's own state lies in the request. */
#pragma once
#include "base/err.h"
#include "env/env.h"
#include "rpc/call.h"
#include <shoal/shoal.h>

struct cluster_map;

struct client_options {
    struct env *env;
    struct rpc *rpc; /* this client's alone; outlives it */
    struct node_id node;
    uint64_t incarnation;     /* of this process; differs from that of its predecessors */
    const char *origin;       /* with node, names the predecessor to evict; of any length; copied */
    uint64_t place;           /* of the node's directory (folder_place): that of its; 0: unknown */
    uint32_t open_files_max;  /* handles as well; 0: 65,536 */
    uint32_t chunk_calls_max; /* in flight, beyond the one that each request has; 0: 1,024 */
    uint32_t call_bytes_max;  /* data of one call; whole segments, at most 4 MiB; 0: 4 MiB */
    uint32_t readdir_buffers_max; /* of READDIR_BYTES; 0: 128 */
    uint32_t inline_bytes_max;    /* files up to here are kept with their inode; 0: 4,096 */
    uint64_t request_timeout_ns;  /* the patience; 0: 60 s */
    /* A newer map, before anything is asked by it; in a step. NULL: nobody wants to know. */
    void (*map_came)(void *context, const struct cluster_map *map);
    void *map_context;
    /* The session was evicted, and a new one is there: in a step, with map_context. NULL: no new
     * one is begun, and all fails from then on. */
    void (*began_again)(void *context);
    /* Where the manager is, is not known: the first map is asked of whoever can be reached. */
    bool finds_manager;
    uint64_t renew_ns; /* 0: 2 s */
};

enum { CLIENT_SHARDS = 64, READDIR_BYTES = 32768 };

/* -ERR_INVALID, -ERR_NO_MEMORY. */
MUST_CHECK int client_new(const struct client_options *options, struct shoal_client **ret_client);
/* Begins the session, gets the map and attaches to every group; done once, from a step. Requests
 * may come after it succeeded; after it failed, it may be started again. */
void client_start(struct shoal_client *client, void (*done)(void *context, int result),
                  void *context);
/* Renewals, resends, deadlines. Call every 10 to 100 ms until client_stop is done. */
void client_tick(struct shoal_client *client);
/* Ends the session: what is still open is closed by its end. No request may be in flight, and none
 * may follow. done also when the cluster could not be reached. */
void client_stop(struct shoal_client *client, void (*done)(void *context, int result),
                 void *context);
/* Frees memory; the actors must be idle. Takes NULL. */
void client_free(struct shoal_client *client);

/* The session's number; 0 before it began. */
struct session_id client_session(const struct shoal_client *client);
/* Whether the session was evicted, and no new one has begun: requests answer -ESTALE, or -EIO where
 * one will begin and they are of what is open. */
bool client_is_fenced(const struct shoal_client *client);
/* The newest map; valid while a request is in flight or the caller is the one that ticks. */
const struct cluster_map *client_map(const struct shoal_client *client);

/* Who of the users of what is above the client met his share there last, + 1; 0: nobody. The
 * manager is told by the next renewal, so that verbs show it. Any thread. */
void client_tell_met(struct shoal_client *client, uint64_t files_user, uint64_t requests_user);

/* What the request has ended with, as a code of err.def, or 0: in its done. */
int client_failure(const struct shoal_request *request);

/* What stats and the simulator's totals show. */
struct client_counters {
    uint64_t requests, failures, retries, reattachments, reopened, conversions, piece_waits;
    uint64_t late_closes;  /* ever, for want of room; late.h */
    uint64_t late_away;    /* likewise, as the server was away */
    uint64_t late_opens;   /* opens and creates that may have taken effect, likewise */
    uint64_t returns;      /* of the reattachments, when idle; starts.c */
    uint64_t window_waits; /* rpc/sequence.h */
};
/* Closes that a target has not taken yet, and opens of which it has not told whether it has. */
uint32_t client_late_closes(const struct shoal_client *client);
void client_counters_get(const struct shoal_client *client, struct client_counters *ret_counters);
