/* One simulated cluster: a manager, MDTs, OSTs and clients, each a process of its own.
 *
 *     node = process (env, disk, rings) + base store (kv_mem)          survives what befalls it
 *       `-- life = worker, carrier, rpc, and the role                 one incarnation of it
 *
 * Everything that runs is the libraries of src/; here they are only put together, as a daemon
 * would. Each actor that has something to do becomes an event with a small random delay, so the
 * order of all steps follows from the seed.
 *
 * Thread: the world's. Memory: the heap. */
#pragma once
#include "cuts.h"
#include "client/client.h"
#include "env/env_sim.h"
#include "layout/cluster_map.h"
#include "manager/manager.h"
#include "meta/group.h"
#include "rpc/sim_net.h"
#include "store/ost.h"
#include "world_options.h"
#include <stdio.h>

enum node_role { NODE_MANAGER, NODE_MDT, NODE_OST, NODE_CLIENT };

struct world;

struct life;

/* What lanes and gates have counted. */
struct world_links {
    uint64_t connected, broken, silent, given_up, again;               /* as in lane_stats */
    uint64_t busy, late, replaced, old_lanes, answers_dropped, let_go; /* as in gate_stats */
};

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
    uint8_t key_file;      /* which of the rotation's; rotation.c */
    uint64_t lost_ns;      /* when its power failed last; 0: never */
    uint64_t full_ns;      /* since when it can't keep a map (roles.c); 0: it always could */
    bool is_stopped;       /* nothing happens in it, and nothing may be called in it */
    uint16_t map_opcode;   /* by which it has asked for a map last */
    uint64_t laps;         /* the most that its rings have come round in a life (laps.h) */
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
    bool rotates;                 /* its members' key changes: rotation.c has these five */
    struct prng rotation_prng;    /* of its own, so that it changes nothing else of a seed */
    uint64_t rotated_ns;          /* since when all sign by the newer key; 0: they don't yet */
    uint64_t rotations;           /* 1: they came to do so */
    uint64_t keys_gone;           /* nodes that have the newer key alone */
    uint64_t checkpoints_cut;     /* ended by a crash between beginning and end */
    uint64_t replays;             /* starts with a log that was not empty */
    uint64_t replays_cut;         /* ended by a crash before what they found was durable */
    uint64_t late_writes;         /* at an OST that has joined */
    uint64_t full_pairs;          /* of limits, full at a time; by bits (fulls.h) */
    uint64_t fulls, fulls_killed; /* times that any were; of kills in such a moment */
    uint64_t laps, data_laps, laps_of_others; /* of OSTs' rings, of others' (laps.h) */
    uint64_t maps, maps_unkept; /* newer ones that MDTs used; that one could not keep for a while */
    const struct rebuilt *rebuilt; /* what the manager's next start is made of; NULL: its log */
    struct absences *absences;     /* for their oracle; NULL: nobody looks */
    struct stragglers *stragglers; /* or NULL */
    struct pools *pools;           /* for their oracle; NULL: nothing yet */
    struct pushes *pushes;         /* likewise */
    struct renewals *renewals;     /* or NULL */
    struct accords *accords;
    struct group_totals group_sum;      /* as to evictions, transactions across logs */
    struct cuts cuts;                   /* of these, by crashes */
    struct manager_hearing hearing_sum; /* evictions for silence, and those held back */
    uint64_t joins_gathered;            /* of managers that are gone; by world_sum of all */
    struct world_links link_sum;
    /* For stories, or NULL: each request as it leaves; how much later its packet comes. */
    uint64_t (*sent)(void *context, const struct call *call);
    void *sent_context;
};

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
/* Of one that is up: nothing happens in it until it goes on, or is killed. */
void node_stop(struct node *node);
void node_go_on(struct node *node);
/* What `from` sends reaches `to` no more; until world_heal, which ends all cuts. */
void world_cut(struct world *world, const struct node *from, const struct node *to);
void world_heal(struct world *world);
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
