/* What the files of a cluster in one process share. */
#pragma once
#include "node/local_cluster.h"
#include "node/local_gate.h"
#include "node/local_mark.h"
#include "node/local_network.h"
#include "node/local_wait.h"
#include "rpc/lane.h"
#include <stdatomic.h>

struct env_crew;
struct local_rebuilding;

/* A target from before its open to the end; its names are used as long as it is open. */
struct local_target {
    struct local_cluster *cluster;
    char name[LOCAL_TARGET_NAME_BYTES];
    char data_path[32]; /* of a storage target */
    char ring_name[LOCAL_RING_NAME_BYTES];
    struct waiting stopped; /* of a start that is given up */
    int result;             /* of its open, with problem */
    char problem[256];
    bool says_at_once; /* all are open; until then lines are gathered, each with a NUL behind it */
    char *lines;
    size_t lines_bytes;
};

/* One that calls others has an rpc of its own, so that sequences are its own. */
enum { RPC_MANAGER, RPC_GROUP, RPC_CLIENT, RPC_ASKER, RPC_MEMBER, LOCAL_RPC_COUNT };

/* Of the session of the process itself. */
enum local_client_stage { CLIENT_NONE, CLIENT_BEGINNING, CLIENT_READY };

struct local_cluster {
    struct config config;
    struct env *env;
    struct folder_lock *lock;
    uint64_t life[2];        /* of the process */
    struct cluster_map *map; /* that it has started with */
    int map_failure;         /* why a newer one is not used; 0: it is; the member's step */
    struct log_table *logs;
    struct lanes *lanes; /* NULL in these three: nobody else is served */
    struct links *links;
    struct member *member;
    local_cluster_tell_fn *_Atomic tell; /* of verbs that other nodes ask; NULL: nobody answers */
    void *tell_context;
    struct rpc *rpcs[LOCAL_RPC_COUNT];
    struct actor asker; /* origin of local_cluster_ask */
    struct manager *manager;
    struct group *groups[CONFIG_MDTS_MAX];
    struct ost *osts[CONFIG_OSTS_MAX];
    uint32_t ost_count;
    atomic_bool mdt_lost[CONFIG_MDTS_MAX];          /* by the newest map: it is not served */
    atomic_bool ost_lost[CONFIG_OSTS_MAX];          /* likewise */
    struct local_target targets[LOCAL_TARGETS_MAX]; /* by index */
    atomic_uint next_target;                        /* to be opened by whoever comes next */
    struct env_crew *openers;
    struct shoal_client *client;
    atomic_bool lanes_end; /* asked of the service thread */
    struct waiting lanes_ended;
    atomic_uint client_stage; /* enum local_client_stage */
    _Atomic int begin_result; /* of its last beginning */
    struct local_gate gate;
    struct local_network network;
    struct waiting registering; /* of the lives of its logs; local_lives.c */
    bool registered;            /* it has ended well; the member's step */
    atomic_bool serves;         /* likewise: its targets are ticked */
    char refusal[256];          /* it has not */
    struct env_tick tick;
    uint32_t ticks;
    bool ticking;
    bool accept_loss;
    struct local_rebuilding *rebuilding; /* NULL: the manager has its own log */
    bool serving;
    bool stopped; /* each of its parts has ended by itself */
    bool entered; /* the opener's thread */
    struct local_mark mark;
    bool died;                                 /* the daemon before */
    struct waiting session_begin, session_end; /* may outlast their waits */
    char *root;
    void (*log)(const char *line);
};

/* local_thread.c: the one that polls for all: what threads without lanes call goes by its own. */
void local_service_thread_enter(struct local_cluster *cluster);
/* Ends what its lanes await, and waits for that; done at one of its ticks. */
void local_service_lanes_end(struct local_cluster *cluster);
void local_service_lanes_tick(struct local_cluster *cluster);

/* local_client.c: begins the session of a first node; ends one, if there is any. */
MUST_CHECK int local_client_begin(struct local_cluster *cluster);
MUST_CHECK int local_client_stop(struct local_cluster *cluster);
void local_asker_step(struct actor *actor, struct message *first);

/* Opens all targets side by side and lets each be called. What is said, and in which order, follows
 * from what the targets are, and not from who was first: lines and the first error, with its words
 * in problem, come by target. All are tried, whatever becomes of one. */
MUST_CHECK int local_targets_open(struct local_cluster *cluster, char problem[256]);
/* Waits for what the threads that opened have left under way, on which requests may wait. */
void local_targets_opened(struct local_cluster *cluster);
/* Of a start that is given up, its threads running: takes what rings hold to disk, and the rings
 * away, as whatever is put in DIR's place would meet them. What does not end within 2 s stays. */
void local_targets_give_up(struct local_cluster *cluster);
/* Closes what is open of them, the threads being gone. */
void local_targets_close(struct local_cluster *cluster);
