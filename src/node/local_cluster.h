/* A node of a cluster in this process, on the real outside. The first one, which makes the cluster,
 * has manager, metadata targets and storage targets, and may be all there is; one that joins has
 * metadata targets, storage targets or both. Each has a session of libshoal.
 *
 *     directory/shoal.conf  targets  lock  in-use  control.sock  shoal.log
 *               manager/  mdt0/  ost0/ ...  map
 *
 * Thread: open, start and stop on one thread, which waits. Memory: what the configuration names. */
#pragma once
#include "client/client.h"
#include "env/env_linux.h"
#include "layout/cluster_map.h"
#include "manager/manager.h"
#include "meta/group.h"
#include "member/member.h"
#include "node/config.h"
#include "node/local_targets.h"
#include "rpc/transport_inproc.h"
#include "rpc/worker.h"
#include "store/ost.h"

struct lane_clock;
struct folder_lock;
struct local_cluster;
struct local_cluster_options {
    const char *directory;         /* absolute, exists */
    uint32_t roles;                /* enum config_role, for an empty directory; 0: the default */
    uint32_t ost_count, mdt_count; /* likewise */
    uint64_t data_bytes_max;       /* likewise, of each OST; 0: half of what is free, shared */
    const char *listen;    /* ADDRESS:PORT; NULL: as the configuration says. A new one's is kept */
    const char *key_path;  /* of the members' key, absolute; likewise */
    const char *advertise; /* ADDRESS:PORT where others reach it; likewise */
    const char *join;      /* of nodes of a cluster, commas between: a new one joins it; likewise */
    bool accept_loss;      /* go on without what a damaged ring, or log's end, held */
    bool rebuild_manager;  /* its log is lost: from what the others know */
    const char *without;   /* then: nodes that are gone, as `up` has them; NULL: none */
    const char *origin;    /* of the session: names the predecessor to evict */
    void (*log)(const char *line);
};

/* Formats an empty directory, refuses one that is not ours or in use, recovers all targets, begins
 * the session. On failure nothing was changed in a directory that was refused, and problem has one
 * line that says what was wrong, with what, and what to do. From then on a
 * page of a target's file that cannot be read ends the process with a line. */
MUST_CHECK int local_cluster_open(const struct local_cluster_options *options,
                                  struct local_cluster **ret_cluster, char problem[512]);
/* Ends the session, takes a last sync point and checkpoint of all targets. No request may be in
 * flight. The first error of those, after having tried all. Where a target has failed the session
 * is left for the next start to end, as its end is to be told to each. */
MUST_CHECK int local_cluster_stop(struct local_cluster *cluster);
/* 0, or what stopped the log of the target with this index (local_targets.h): it answers nothing
 * more. Any thread. */
int local_cluster_failure(struct local_cluster *cluster, uint32_t index);
/* An earlier life ended without a stop, and what that may have left was not looked for since: a
 * stop then leaves the mark of it, until somebody says that it has been. */
bool local_cluster_is_unclean(const struct local_cluster *cluster);
void local_cluster_scrubbed(struct local_cluster *cluster);
/* What the last start found of a daemon that had died. */
struct local_recovery {
    bool died;
    uint64_t records;      /* of all logs, that were played again */
    uint64_t ring_records; /* of these, that only memory had */
};
struct local_recovery local_cluster_recovery(struct local_cluster *cluster);
/* Frees; takes NULL. Without stop before, the next start recovers as after a kill. */
void local_cluster_close(struct local_cluster *cluster);

/* NULL before its session has begun: that of a first node begins with it where there is a place for
 * one, and room for its record, else as another's, when local_cluster_client_begin is asked for it:
 * 0 at once when it has, -ERR_TIMED_OUT when the manager has not answered by then, or its refusal,
 * which it tells at once but where there are as many sessions as there may be: then one that ends
 * makes room. Any thread that has entered. */
struct shoal_client *local_cluster_client(struct local_cluster *cluster);
MUST_CHECK int local_cluster_client_begin(struct local_cluster *cluster, uint64_t patience_ns);
struct env *local_cluster_env(struct local_cluster *cluster);
const struct config *local_cluster_config(const struct local_cluster *cluster);
/* Its metadata targets. */
uint32_t local_cluster_mdts(const struct local_cluster *cluster);
struct ost *local_cluster_ost(struct local_cluster *cluster, uint32_t index);
/* It was declared lost: nobody is served by it. Any thread. */
bool local_cluster_mdt_is_lost(const struct local_cluster *cluster, uint32_t index);
bool local_cluster_ost_is_lost(const struct local_cluster *cluster, uint32_t index);
/* What it knows as a node, and its newest map: a copy, where map is not NULL. */
void local_cluster_member(struct local_cluster *cluster, struct cluster_map *map,
                          struct member_state *ret_state);
/* Waits until it uses a map of that version or a newer one: 0; -ERR_TIMED_OUT when it does not by
 * then, or why that map can't be used. Any thread that has entered. */
MUST_CHECK int local_cluster_follow(struct local_cluster *cluster, uint64_t version,
                                    uint64_t end_ns);

/* Whom the manager hears; false: it is on another node. Any thread. */
bool local_cluster_hearing(const struct local_cluster *cluster,
                           struct manager_hearing *ret_hearing);
/* How full its manager's log is; likewise. */
bool local_cluster_manager_room(const struct local_cluster *cluster, struct manager_room *ret_room);
/* Mounts whose users have met their shares, as the manager was told; false: it is on another node.
 * Any thread that has entered. */
bool local_cluster_met(struct local_cluster *cluster, struct manager_met *ret_met);
/* Calls that wait at its manager for a newer map; 0 where it has none. Any thread. */
uint32_t local_cluster_map_waits(const struct local_cluster *cluster);
/* Joins that waited there to make a version with others; likewise. */
uint64_t local_cluster_joins_gathered(const struct local_cluster *cluster);
/* Keys of mounts that this node takes for revoked; of a node that serves nobody else 0. */
uint32_t local_cluster_revoked_count(const struct local_cluster *cluster);

/* Connections of others to this node, and how many each process may have now. */
struct local_connections {
    uint32_t open_count, connections_max, granted;
};
void local_cluster_connections(const struct local_cluster *cluster,
                               struct local_connections *ret_connections);

/* The members' keys of this node's file, the newest first, and which of them signs now. */
struct local_keys {
    uint32_t count; /* 0: it has no file */
    struct key_name names[KEY_FILE_KEYS_MAX];
    struct key_name signing;
    uint32_t number; /* of the key, derived from that, by which it signs capabilities */
};
void local_cluster_keys(const struct local_cluster *cluster, struct local_keys *ret_keys);
/* Numbers of a metadata target, or of a storage target; operations: OPCODE_COUNT of them, or
 * NULL. For a thread that has entered. */
void local_cluster_group_stats(struct local_cluster *cluster, uint32_t index,
                               struct group_stats *ret_stats);
void local_cluster_ost_stats(struct local_cluster *cluster, uint32_t index,
                             struct ost_stats *ret_stats);

/* Asks a target and waits for its answer; for a thread that has entered. The caller has filled
 * opcode, target, request and bulk. The call's result. */
MUST_CHECK int local_cluster_ask(struct local_cluster *cluster, struct call *call);
/* The same of several, all at once: each has its result when it returns. */
void local_cluster_ask_all(struct local_cluster *cluster, struct call *calls, uint32_t count);
/* Who answers node_tell from now on, from any thread, as member_hooks have it. fn NULL: nobody. */
typedef void local_cluster_tell_fn(void *context, struct call *call);
void local_cluster_on_tell(struct local_cluster *cluster, local_cluster_tell_fn *fn, void *context);
/* Lets the others go on for a tenth of a second at most. Likewise. */
void local_cluster_rest(struct local_cluster *cluster);

/* For threads that run actors, as hooks with the cluster as context; those of a mount enter by the
 * second one, and have lanes of their own to other nodes. */
void local_cluster_thread_enter(void *cluster);
void local_cluster_mount_thread_enter(void *cluster);
void local_cluster_thread_leave(void *cluster);
bool local_cluster_thread_idle(void *cluster);
bool local_cluster_thread_needed(void *cluster);
/* For threads that wait for something else than their loop: runs what is due, waits a millisecond
 * at most; false when nothing is under way here. */
bool local_cluster_thread_go_on(void *cluster);
