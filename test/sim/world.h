/* One simulated cluster: a manager, MDTs, OSTs and clients, each a process of its own.
 *
 *     node = process (env, disk, rings) + base store (kv_mem)          survives what befalls it
 *       `-- life = worker, transport, rpc, and the role               one incarnation of it
 *
 * Everything that runs is the libraries of src/; here they are only put together, as a daemon
 * would. Each actor that has something to do becomes an event with a small random delay, so the
 * order of all steps follows from the seed.
 *
 * Thread: the world's. Memory: the heap. */
#pragma once
#include "client/client.h"
#include "env/env_sim.h"
#include "layout/cluster_map.h"
#include "manager/manager.h"
#include "meta/group.h"
#include "rpc/transport_sim.h"
#include "store/ost.h"
#include <stdio.h>

enum {
    WORLD_OSTS_MAX = 4,
    WORLD_CLIENTS_MAX = 4,
    WORLD_MDTS_MAX = 4,
    WORLD_NODES_MAX = 1 + WORLD_MDTS_MAX + WORLD_OSTS_MAX + WORLD_CLIENTS_MAX,
    MANAGER_TARGET = 1,
    MDT_TARGET = 2,
    OST_TARGET_FIRST = 3,
    MDT_TARGET_NEXT = OST_TARGET_FIRST + WORLD_OSTS_MAX, /* of the second metadata target */
    CLIENT_NODE_FIRST = 100,
    WORLD_CALL_BYTES = 65536 /* of one read or write at an OST */
};

enum node_role { NODE_MANAGER, NODE_MDT, NODE_OST, NODE_CLIENT };

struct world;

/* How big things are; drawn by world_draw. */
struct world_options {
    uint64_t seed;
    uint32_t mdt_count, ost_count;
    bool late_ost, late_mdt; /* the last one, if there are two, is to join yet */
    uint32_t client_count;
    bool smallest;           /* pools, rings, logs, caches */
    uint32_t cold_per_mille; /* from 1,000 on: always, and little is kept of what was read */
    uint64_t sync_interval_ns, checkpoint_ns;
    uint32_t ring_bytes; /* of manager and MDT; the log is 8 to 16 times as long */
    uint32_t log_rings;
    uint64_t data_bytes_max; /* of each OST */
    uint32_t chunk_bytes;
    uint64_t session_timeout_ns, request_timeout_ns;
    bool keys;                /* capabilities are signed, and by newer keys as time goes */
    uint64_t schedule_ns_max; /* an actor's step comes so much later at most */
    FILE *tell;               /* each call; or NULL */
};

struct life;

struct node {
    struct world *world;
    enum node_role role;
    uint32_t index;          /* among its kind */
    uint32_t target_id;      /* 0: a client, or one that has not joined: it can't be started */
    struct cluster_map *map; /* of an MDT: the newest that it has on disk; else NULL */
    struct sim_process *process;
    struct kv_mem_store *store;
    struct life *life; /* NULL: down */
    uint64_t incarnation;
    struct key_ring *keys; /* NULL: none; outlives its lives, as the map would */
    uint64_t lost_ns;      /* when its power failed last; 0: never */
};

struct world {
    struct world_options options;
    struct sim *sim;
    struct sim_net *net;
    struct cluster_map map; /* the newest that an MDT has used */
    struct node nodes[WORLD_NODES_MAX];
    uint32_t node_count;
    struct node *manager;
    struct node *mdts;           /* options.mdt_count; the first has the root */
    struct node *osts, *clients; /* options.ost_count, options.client_count */
    uint64_t own_kills;          /* of the making of nodes and of tries, in the world's counter */
    char failure[512];           /* what a node could not do */
    char last_line[256];         /* that an OST has logged */
    struct kv_counters kv_sum;   /* of lives that are over */
    struct client_counters client_sum;
    struct ost_counters ost_sum;
    uint64_t key_numbers;               /* that all nodes have heard of, after the first */
    uint64_t checkpoints_cut;           /* ended by a crash between beginning and end */
    uint64_t replays;                   /* starts with a log that was not empty */
    uint64_t replays_cut;               /* ended by a crash before what they found was durable */
    uint64_t late_writes;               /* at an OST that has joined */
    uint64_t maps;                      /* newer ones that MDTs have used */
    struct pools *pools;                /* for their oracle; NULL: nothing yet */
    struct group_totals group_sum;      /* as to evictions, transactions across logs */
    struct manager_hearing hearing_sum; /* evictions for silence, and those held back */
};

/* Draws sizes from a generator of its own, so that they do not depend on what follows. Every third
 * seed has the smallest. */
void world_draw(uint64_t seed, struct world_options *ret_options);
/* All nodes are down. */
struct world *world_new(const struct world_options *options);
void world_free(struct world *world);

/* Starts a node that is down. A crash countdown that was set by crash_after (UINT64_MAX: none) may
 * cut it off in the middle: then it is down again, or up and about to crash. False: it could not
 * start, and failure says why. */
bool node_start(struct node *node, uint64_t crash_after);
/* Of a node that is down: whether a start is refused, and why. It goes as far as the first change
 * of disk or shared memory would be and changes nothing. 0: it is not refused. */
int node_try(struct node *node, char problem[256]);
void node_kill(struct node *node);
/* Also of a node that is down. */
void node_power(struct node *node);
/* It is no client and has no numbers. */
static inline bool node_is_absent(const struct node *node) {
    return node->role != NODE_CLIENT && node->target_id == 0;
}
/* Of a storage or metadata target: as the map has it, or will have it. */
struct log_id node_log(const struct node *node);
static inline bool node_is_up(const struct node *node) {
    return node->life != NULL;
}
/* NULL while it is down, or has no session yet, or not any more. */
struct shoal_client *node_client(struct node *node);
/* The client of the node has failed to begin a session: it must be started anew. */
bool node_client_failed(const struct node *node);
struct manager *node_manager(struct node *node);
struct group *node_group(struct node *node);
struct ost *node_ost(struct node *node);
struct rpc *node_rpc(struct node *node);
/* Ends the session; node_client is NULL from now on, and done is set when it is over. */
void node_client_stop(struct node *node, bool *done);
/* One of the nodes hears of the next number of keys; which the others do before there is another.
 */
void world_key_number_raise(struct world *world, struct prng *prng);
/* Around calls into the node's actors that are made outside of its events. */
void node_enter(struct node *node);
void node_leave(struct node *node);
/* When a metadata target lost its power last; 0: never. */
uint64_t world_names_lost_ns(const struct world *world);
struct node *world_any_mdt(struct world *world, struct prng *prng);
/* That serves the slot of the ino. */
struct node *world_mdt_of(struct world *world, uint64_t ino);
/* For silence, by all lives of the manager. */
uint64_t world_evictions(const struct world *world);
/* Adds what the living have counted to the sums. */
void world_sum(struct world *world);
