/* What the files of a cluster in one process share. */
#pragma once
#include "node/local_cluster.h"
#include "node/local_gate.h"
#include "node/local_mark.h"
#include "node/local_network.h"
#include "node/local_wait.h"
#include <stdatomic.h>

struct env_crew;

/* A target from before its open to the end; its names are used as long as it is open. */
struct local_target {
    struct local_cluster *cluster;
    char name[LOCAL_TARGET_NAME_BYTES];
    char data_path[32]; /* of a storage target */
    char ring_name[LOCAL_RING_NAME_BYTES];
    int result; /* of its open, with problem */
    char problem[256];
    bool says_at_once; /* all are open; until then lines are gathered, each with a NUL behind it */
    char *lines;
    size_t lines_bytes;
};

/* One that calls others has an rpc of its own, so that sequences are its own. */
enum { RPC_MANAGER, RPC_GROUP, RPC_CLIENT, RPC_ASKER, LOCAL_RPC_COUNT };

struct local_cluster {
    struct config config;
    struct env *env;
    struct folder_lock *lock;
    struct cluster_map *map;
    struct log_table *logs;
    struct rpc *rpcs[LOCAL_RPC_COUNT];
    struct actor asker; /* origin of local_cluster_ask */
    struct manager *manager;
    struct group *group;
    struct ost *osts[CONFIG_OSTS_MAX];
    uint32_t ost_count;
    struct local_target targets[LOCAL_TARGETS_MAX]; /* manager, metadata target, storage targets */
    atomic_uint next_target;                        /* to be opened by whoever comes next */
    struct env_crew *openers;
    struct shoal_client *client;
    struct local_gate gate;
    struct local_network network;
    struct env_tick tick;
    uint32_t ticks;
    bool ticking;
    bool accept_loss;
    bool serving;
    bool stopped; /* each of its parts has ended by itself */
    bool entered; /* the opener's thread */
    struct local_mark mark;
    bool died;                                 /* the daemon before */
    struct waiting session_begin, session_end; /* may outlast their waits */
    char *root;
    void (*log)(const char *line);
};

/* Opens all targets side by side and lets each be called. What is said, and in which order, follows
 * from what the targets are, and not from who was first: lines and the first error, with its words
 * in problem, come by target. All are tried, whatever becomes of one. */
MUST_CHECK int local_targets_open(struct local_cluster *cluster, char problem[256]);
/* Waits for what the threads that opened have left under way, on which requests may wait. */
void local_targets_opened(struct local_cluster *cluster);
/* Closes what is open of them, the threads being gone. */
void local_targets_close(struct local_cluster *cluster);
