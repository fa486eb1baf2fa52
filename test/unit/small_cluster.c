/* The small cluster; the contract is in small_cluster.h. */
#include "small_cluster.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TARGETS_MAX = 64 };

static void tick_fire(struct env_tick *tick) {
    struct cluster *cluster = CONTAINER_OF(tick, struct cluster, tick);

    manager_tick(cluster->manager);
    group_tick(cluster->group);
    for (int i = 0; i < CLUSTER_OSTS; i++) {
        ost_tick(cluster->osts[i]);
    }
    for (int i = 0; i < 4; i++) {
        if (cluster->clients[i]) {
            client_tick(cluster->clients[i]);
        }
    }
}

static struct kv_options kv_options_of(struct cluster *cluster, uint32_t index,
                                       const char *directory) {
    struct kv_mem_options store = {
        .prng = cluster->options.cold_percent ? &cluster->prng : NULL,
        .cold_numerator = cluster->options.cold_percent,
        .cold_denominator = 100,
    };

    if (!cluster->stores[index]) {
        int r = kv_mem_store_new(&store, &cluster->stores[index]);
        assert(r == 0);
        r = cluster->env->ops->directory_make(cluster->env, directory);
        assert(r == 0);
    }
    return (struct kv_options){
        .env = cluster->env,
        .directory = directory,
        .shared_name = directory,
        .base = &kv_mem_ops,
        .base_store = cluster->stores[index],
        .owner_id = {(uint8_t)(index + 1)},
        .ring_bytes = MIB,
        .ring_data_bytes = index >= 2 ? MIB : 0,
        .disk_log_bytes = 8 * MIB,
        .changes_bytes_max = 16 * MIB,
        .base_memory_bytes = 64 * MIB,
        .sync_interval_ns = NS_PER_S,
        .outcomes_max = 4096,
    };
}

static void check(int r, const char *problem) {
    if (r) {
        fprintf(stderr, "%s: %s\n", err_name(r), problem);
        abort();
    }
}

static struct rpc *rpc_make(struct cluster *cluster) {
    struct rpc_options options = {
        .transport = &transport_inproc_ops,
        .transport_context = cluster->logs,
        .env = cluster->env,
        .resend_ns = 10 * NS_PER_MS,
        .logs_max = TARGETS_MAX,
    };
    struct rpc *rpc = NULL;

    check(rpc_new(&options, &rpc), "rpc");
    return rpc;
}

static struct log_id log_of(const struct cluster *cluster, uint32_t target) {
    return target == CLUSTER_MANAGER
               ? LOG_MANAGER
               : cluster_map_log_of(&cluster->map, (struct target_id){target});
}

static void serve(struct cluster *cluster, uint32_t target, struct actor *actor) {
    check(log_table_add(cluster->logs, log_of(cluster, target), actor), "transport");
}

static void manager_start(struct cluster *cluster) {
    struct manager_options options = {
        .env = cluster->env,
        .kv = kv_options_of(cluster, 0, "manager"),
        .rpc = cluster->manager_rpc,
        .map = &cluster->map,
        .target = {CLUSTER_MANAGER},
        .keys = cluster->options.keys,
        .session_timeout_ns = cluster->options.session_timeout_ns,
    };
    char problem[256];

    check(manager_open(&options, &cluster->manager, problem), problem);
    serve(cluster, CLUSTER_MANAGER, manager_actor(cluster->manager));
}

static void group_start(struct cluster *cluster) {
    struct group_options options = {
        .env = cluster->env,
        .kv = kv_options_of(cluster, 1, "group"),
        .map = &cluster->map,
        .target = {CLUSTER_MDT},
        .rpc = cluster->group_rpc,
        .keys = cluster->options.keys,
        .root_mode = 0755,
        .default_layout = {.chunk_bytes = cluster->options.chunk_bytes, .stripe_count = STRIPE_ALL},
    };
    char problem[256];

    options.kv.log_id = log_of(cluster, CLUSTER_MDT);
    check(group_open(&options, &cluster->group, problem), problem);
    serve(cluster, CLUSTER_MDT, group_actor(cluster->group));
}

static void ost_start(struct cluster *cluster, uint32_t index) {
    static const char *const directories[] = {"ost0", "ost1", "ost2"};
    static const char *const data[] = {"ost0/data", "ost1/data", "ost2/data"};
    struct ost_options options = {
        .env = cluster->env,
        .kv = kv_options_of(cluster, 2 + index, directories[index]),
        .data_path = data[index],
        .target = {CLUSTER_OST + index},
        .data_bytes_max = 256 * MIB,
        .grow_bytes = 16 * MIB,
        .cache_bytes = MIB,
        .sessions_max = 256,
        .keys = cluster->options.keys,
        .unsigned_allowed = true,
    };
    char problem[256];

    options.kv.log_id = log_of(cluster, CLUSTER_OST + index);
    check(ost_open(&options, &cluster->osts[index], problem), problem);
    serve(cluster, CLUSTER_OST + index, ost_actor(cluster->osts[index]));
}

static void servers_start(struct cluster *cluster) {
    manager_start(cluster);
    group_start(cluster);
    for (uint32_t i = 0; i < CLUSTER_OSTS; i++) {
        ost_start(cluster, i);
    }
    cluster->tick = (struct env_tick){.period_ns = 10 * NS_PER_MS, .fire = tick_fire};
    cluster->env->ops->tick_start(cluster->env, &cluster->tick);
}

void cluster_open(struct cluster *cluster, const struct cluster_options *options) {
    struct target_id osts[CLUSTER_OSTS];

    memset(cluster, 0, sizeof *cluster);
    cluster->options = *options;
    prng_init(&cluster->prng, options->seed);
    cluster->sim = sim_new(options->seed);
    struct sim_process *process = sim_process_new(cluster->sim, "cluster");
    cluster->env = sim_process_env(process);
    struct sim_faults *faults = sim_process_faults(process);
    faults->read_ns = 50 * NS_PER_US;
    faults->write_ns = 50 * NS_PER_US;
    faults->sync_ns = 100 * NS_PER_US;
    faults->job_ns = 100 * NS_PER_US;
    worker_init(&cluster->worker);
    worker_bind(&cluster->worker);
    check(log_table_new(TARGETS_MAX, &cluster->logs), "transport");
    for (uint32_t i = 0; i < CLUSTER_OSTS; i++) {
        osts[i].value = CLUSTER_OST + i;
    }
    cluster_map_single(&cluster->map, (struct target_id){CLUSTER_MDT}, osts, CLUSTER_OSTS);
    cluster->map.name_hash_key[0] = options->seed;
    cluster->manager_rpc = rpc_make(cluster);
    cluster->group_rpc = rpc_make(cluster);
    servers_start(cluster);
}

static void run_all(struct cluster *cluster) {
    while (worker_run_one(&cluster->worker)) {
    }
}

void cluster_wait(struct cluster *cluster, const bool *flag) {
    uint64_t until_ns = sim_now_ns(cluster->sim) + 300 * NS_PER_S;

    run_all(cluster);
    while (!*flag) {
        bool stepped = sim_step(cluster->sim);

        assert(stepped && sim_now_ns(cluster->sim) < until_ns);
        (void)stepped;
        run_all(cluster);
    }
}

static void set_flag(void *context) {
    *(bool *)context = true;
}

void cluster_pass(struct cluster *cluster, uint64_t ns) {
    bool passed = false;

    sim_schedule(cluster->sim, NULL, ns, set_flag, &passed);
    cluster_wait(cluster, &passed);
}

struct stopping {
    bool done;
    int result;
};

static void note_stopped(void *context, int result) {
    *(struct stopping *)context = (struct stopping){true, result};
}

static void servers_stop(struct cluster *cluster) {
    struct stopping stopping = {false, 0};

    manager_stop_start(cluster->manager, note_stopped, &stopping);
    cluster_wait(cluster, &stopping.done);
    check(stopping.result, "stop of the manager");
    stopping.done = false;
    group_stop_start(cluster->group, note_stopped, &stopping);
    cluster_wait(cluster, &stopping.done);
    check(stopping.result, "stop of the group");
    for (int i = 0; i < CLUSTER_OSTS; i++) {
        stopping.done = false;
        ost_stop_start(cluster->osts[i], note_stopped, &stopping);
        cluster_wait(cluster, &stopping.done);
        check(stopping.result, "stop of a storage target");
    }
    cluster->env->ops->tick_stop(cluster->env, &cluster->tick);
    cluster_pass(cluster, NS_PER_S);
    log_table_remove(cluster->logs, log_of(cluster, CLUSTER_MANAGER));
    log_table_remove(cluster->logs, log_of(cluster, CLUSTER_MDT));
    manager_abandon(cluster->manager);
    group_abandon(cluster->group);
    for (uint32_t i = 0; i < CLUSTER_OSTS; i++) {
        log_table_remove(cluster->logs, log_of(cluster, CLUSTER_OST + i));
        ost_abandon(cluster->osts[i]);
    }
}

void cluster_restart(struct cluster *cluster) {
    servers_stop(cluster);
    servers_start(cluster);
}

void cluster_close(struct cluster *cluster) {
    servers_stop(cluster);
    rpc_free(cluster->manager_rpc);
    rpc_free(cluster->group_rpc);
    for (size_t i = 0; i < ARRAY_SIZE(cluster->rpcs); i++) {
        rpc_free(cluster->rpcs[i]);
    }
    log_table_free(cluster->logs);
    worker_bind(NULL);
    sim_free(cluster->sim);
    for (size_t i = 0; i < ARRAY_SIZE(cluster->stores); i++) {
        kv_mem_store_free(cluster->stores[i]);
    }
}

struct shoal_client *cluster_client(struct cluster *cluster, uint32_t number,
                                    uint64_t incarnation) {
    struct client_options options = {
        .env = cluster->env,
        .node = {number + 1},
        .incarnation = incarnation,
        .origin = "/mnt",
        .open_files_max = 4096,
        .chunk_calls_max = 256,
    };
    struct stopping started = {false, 0};
    struct shoal_client *client;

    assert(!cluster->clients[number] && cluster->rpc_count < ARRAY_SIZE(cluster->rpcs));
    options.rpc = rpc_make(cluster);
    cluster->rpcs[cluster->rpc_count++] = options.rpc;
    check(client_new(&options, &client), "client");
    cluster->clients[number] = client;
    client_start(client, note_stopped, &started);
    cluster_wait(cluster, &started.done);
    check(started.result, "start of a client");
    return client;
}

void cluster_client_stop(struct cluster *cluster, uint32_t number) {
    struct stopping stopped = {false, 0};

    client_stop(cluster->clients[number], note_stopped, &stopped);
    cluster_wait(cluster, &stopped.done);
    check(stopped.result, "end of a client");
    client_free(cluster->clients[number]);
    cluster->clients[number] = NULL;
}

void cluster_client_kill(struct cluster *cluster, uint32_t number) {
    client_free(cluster->clients[number]);
    cluster->clients[number] = NULL;
}

struct running {
    struct shoal_request request;
    bool done;
};

static void note_done(struct shoal_request *request) {
    ((struct running *)request)->done = true;
}

int64_t cluster_run(struct cluster *cluster, struct shoal_client *client,
                    struct shoal_request *request) {
    struct running running = {.request = *request};

    running.request.done = note_done;
    shoal_submit(client, &running.request);
    cluster_wait(cluster, &running.done);
    *request = running.request;
    return request->result;
}
