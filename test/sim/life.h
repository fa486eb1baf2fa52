/* One incarnation of a node, shared by world.c and roles.c. */
#pragma once
#include "carrier.h"
#include "member/member.h"
#include "rpc/worker.h"
#include "world.h"

/* One incarnation of a node. */
struct life {
    struct node *node;
    struct env *env;
    struct worker worker;
    struct carrier *carrier;
    struct rpc *rpc;
    struct manager *manager;
    struct group *group;
    struct member *member;   /* of an MDT: it learns of newer maps */
    struct cluster_map *map; /* that its group has started with */
    struct ost *ost;
    struct shoal_client *client;
    struct env_tick tick;
    uint64_t recovered;                 /* the log's position when it was opened */
    uint64_t ring_head, ring_data_head; /* likewise, the ring's */
    bool ready;
    bool failed;
    bool stopping;
    bool *stopped;
};

/* roles.c: what a node of a role runs, with the sizes that the world has drawn. */
MUST_CHECK int life_open_role(struct life *life, char problem[256]);
/* Of one that is down: what it has on disk and in shared memory is gone. */
void node_wipe(struct node *node);
/* How many storage targets the cluster is made with. */
uint32_t world_first_osts(const struct world_options *options);
/* A metadata target whose lives the manager hears of. */
bool node_tells_lives(const struct node *node);
/* Of a node with a log. */
struct kv_options node_kv_options(const struct node *node);
/* The log of the role; NULL: it has none, or is not open. */
struct kv *life_kv(const struct life *life);
