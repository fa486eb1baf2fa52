/* A whole cluster in one process on a simulated outside: manager, one group, storage targets, any
 * number of clients, over kv_mem and the in-process transport. Everything runs on the calling
 * thread; reads of rows have to wait at random. */
#pragma once
#include "client/client.h"
#include "env/env_sim.h"
#include "kv/kv_mem.h"
#include "manager/manager.h"
#include "meta/group.h"
#include "rpc/transport_inproc.h"
#include "rpc/worker.h"
#include "store/ost.h"

enum { CLUSTER_MANAGER = 1, CLUSTER_MDT = 2, CLUSTER_OST = 10, CLUSTER_OSTS = 3 };

struct cluster_options {
    uint64_t seed;
    uint32_t cold_percent;       /* of reads of rows that wait */
    uint32_t chunk_bytes;        /* of new files */
    uint64_t session_timeout_ns; /* 0: the manager's default */
    struct key_ring *keys;       /* NULL: none; the caller's */
};

struct cluster {
    struct prng prng;
    struct sim *sim;
    struct env *env;
    struct worker worker;
    struct cluster_options options;
    struct log_table *logs;
    struct cluster_map map;
    struct kv_mem_store *stores[2 + CLUSTER_OSTS];
    struct rpc *manager_rpc;
    struct rpc *group_rpc;
    struct manager *manager;
    struct group *group;
    struct ost *osts[CLUSTER_OSTS];
    struct rpc *rpcs[16]; /* of clients, ever */
    uint32_t rpc_count;
    struct shoal_client *clients[4]; /* that are ticked; NULL: none */
    struct env_tick tick;
};

void cluster_open(struct cluster *cluster, const struct cluster_options *options);
/* Stops and closes everything; clients are gone by then. */
void cluster_close(struct cluster *cluster);
/* Stops the servers cleanly and starts them anew on what they left; clients notice. */
void cluster_restart(struct cluster *cluster);
/* Runs what is to be run until *flag is set. */
void cluster_wait(struct cluster *cluster, const bool *flag);
void cluster_pass(struct cluster *cluster, uint64_t ns);

/* A client that has started. */
struct shoal_client *cluster_client(struct cluster *cluster, uint32_t number, uint64_t incarnation);
void cluster_client_stop(struct cluster *cluster, uint32_t number);
/* Gone without a word, as after kill -9. Its rpc goes with cluster_close. */
void cluster_client_kill(struct cluster *cluster, uint32_t number);
/* Submits and waits. */
int64_t cluster_run(struct cluster *cluster, struct shoal_client *client,
                    struct shoal_request *request);
