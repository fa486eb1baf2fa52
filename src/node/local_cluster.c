/* Putting a cluster together in one process, and taking it apart. */
#include "node/local_cluster.h"
#include "env/env_fault.h"
#include "host/folder.h"
#include "node/links.h"
#include "node/local_directory.h"
#include "node/local_internal.h"
#include "node/local_limits.h"
#include "node/local_lives.h"
#include "node/local_member.h"
#include "node/local_rebuild.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TICK_MS = 10, SLOW_TICKS = 10, LANE_TICKS = 5 };
/* Those that others open (connections_max), and its own to other nodes. */
enum { STREAMS_MAX = 65536 + 16384 };
/* Of the logs that a cluster's map may name, and the manager's. */
enum { LOGS_MAX = MAP_TARGETS_MAX + MAP_GROUPS_MAX + 1 };

static struct kv *target_kv(struct local_cluster *cluster, uint32_t index) {
    return index == TARGET_MANAGER    ? manager_kv(cluster->manager)
           : index < TARGET_OST_FIRST ? group_kv(cluster->groups[index - TARGET_GROUP_FIRST])
                                      : ost_kv(cluster->osts[index - TARGET_OST_FIRST]);
}

int local_cluster_failure(struct local_cluster *cluster, uint32_t index) {
    return kv_failure(target_kv(cluster, index));
}

static int service_init(void *context) {
    local_service_thread_enter(context);
    return 0;
}

static void targets_tick(struct local_cluster *cluster, bool slow) {
    for (uint32_t i = 0; i < cluster->ost_count; i++) {
        ost_tick(cluster->osts[i]);
    }
    for (uint32_t i = 0; slow && i < cluster->config.mdt_count; i++) {
        group_tick(cluster->groups[i]);
    }
}

static void tick_fire(struct env_tick *tick) {
    struct local_cluster *cluster = CONTAINER_OF(tick, struct local_cluster, tick);
    bool slow = ++cluster->ticks % SLOW_TICKS == 0;

    local_gate_tick(&cluster->gate);
    local_service_lanes_tick(cluster);
    if (atomic_load(&cluster->serves)) {
        targets_tick(cluster, slow);
    }
    client_tick(cluster->client);
    rpc_tick(cluster->rpcs[RPC_ASKER]);
    if (cluster->lanes && cluster->ticks % LANE_TICKS == 0) {
        lanes_tick(cluster->lanes);
    }
    if (slow && cluster->member) {
        member_tick(cluster->member);
    }
    if (slow && cluster->manager) {
        manager_tick(cluster->manager);
    }
}

static int make_rpc(struct local_cluster *cluster, size_t index) {
    struct rpc_options options = {
        .transport = &transport_inproc_ops,
        .transport_context = cluster->logs,
        .env = cluster->env,
        .resend_ns = NS_PER_S,
        .logs_max = CONFIG_MDTS_MAX + CONFIG_OSTS_MAX + 4,
    };

    if (cluster->lanes) {
        options.transport = &lanes_ops;
        options.transport_context = cluster->lanes;
        options.logs_max = index == RPC_ASKER ? LOGS_MAX + MAP_NODES_MAX : LOGS_MAX;
    }
    return rpc_new(&options, &cluster->rpcs[index]);
}

static int open_targets(struct local_cluster *cluster, const struct local_cluster_options *options,
                        char problem[256]) {
    int r = log_table_new(CONFIG_MDTS_MAX + CONFIG_OSTS_MAX + 6, &cluster->logs);

    if (r == 0) {
        r = local_member_links(cluster);
    }
    if (r == 0) {
        r = local_member_map(cluster, problem);
    }
    if (r == 0 && options->rebuild_manager) {
        r = local_rebuild_ask(cluster, options, problem);
    }
    for (size_t i = 0; r == 0 && i < LOCAL_RPC_COUNT; i++) {
        r = make_rpc(cluster, i);
    }
    if (r == 0) {
        r = local_member_open(cluster);
    }
    if (r == 0) {
        r = local_targets_open(cluster, problem);
    }
    if (r == 0) {
        local_member_lose(cluster);
    }
    return r < 0 ? r : local_targets_note(cluster->env, &cluster->config);
}

static void client_map_came(void *context, const struct cluster_map *map) {
    struct local_cluster *cluster = context;

    (void)!links_follow(cluster->links, map); /* The member's hook says what is wrong with it. */
}

static void client_began_again(void *context) {
    const struct local_cluster *cluster = context;

    if (cluster->log) {
        cluster->log("the daemon's session was evicted, as nothing was heard of it: a new one has "
                     "begun, and what was open here answers EIO until it is closed");
    }
}

static int open_client(struct local_cluster *cluster, const char *origin) {
    struct client_options options = {
        .env = cluster->env,
        .rpc = cluster->rpcs[RPC_CLIENT],
        .node = {cluster->config.node},
        .map_came = cluster->links ? client_map_came : NULL,
        .map_context = cluster,
        .began_again = client_began_again,
        .origin = origin,
        .place = local_lives_place(cluster->env),
        .open_files_max = (uint32_t)cluster->config.open_files_max,
        .request_timeout_ns = cluster->config.request_timeout_ms * NS_PER_MS,
    };

    cluster->env->ops->random(cluster->env, &options.incarnation, sizeof options.incarnation);
    return client_new(&options, &cluster->client);
}

static bool service_idle(void *context) {
    struct local_cluster *cluster = context;
    bool ran = local_cluster_thread_idle(cluster);

    return local_gate_turn(&cluster->gate) || ran;
}

static void service_exit(void *context) {
    struct local_cluster *cluster = context;

    local_gate_leave(&cluster->gate);
    local_cluster_thread_leave(cluster);
}

static int start_serving(struct local_cluster *cluster) {
    const struct env_service_hooks hooks = {
        .init = service_init, .exit = service_exit, .idle = service_idle, .context = cluster};
    int r = env_service_start(cluster->env, &hooks);

    if (r < 0) {
        return r;
    }
    cluster->serving = true;
    cluster->tick = (struct env_tick){.period_ns = TICK_MS * NS_PER_MS, .fire = tick_fire};
    cluster->env->ops->tick_start(cluster->env, &cluster->tick);
    cluster->ticking = true;
    return 0;
}

static void gate_log(void *context, const char *line) {
    struct local_cluster *cluster = context;

    if (cluster->log) {
        cluster->log(line);
    }
}

void local_cluster_connections(const struct local_cluster *cluster,
                               struct local_connections *ret_connections) {
    const struct local_gate *gate = &cluster->gate;

    *ret_connections = (struct local_connections){
        .open_count = atomic_load_explicit(&gate->open_count, memory_order_relaxed),
        .connections_max = (uint32_t)cluster->config.connections_max,
        .granted = atomic_load_explicit(&gate->lanes_granted, memory_order_relaxed)};
}

/* From here on clients of other processes may come. */
static int open_gate(struct local_cluster *cluster, char detail[256]) {
    struct gate_options options = {.env = cluster->env,
                                   .self = {.node = {cluster->config.node}},
                                   .logs = cluster->logs,
                                   .connections_max = (uint32_t)cluster->config.connections_max,
                                   .waits_max = cluster->manager ? MANAGER_MAP_WAITS_DEFAULT : 0,
                                   .tls = cluster->network.serving,
                                   .keys = cluster->network.ring,
                                   .encryption =
                                       (enum link_encryption)cluster->config.link_encryption,
                                   .log = gate_log,
                                   .context = cluster};

    memcpy(options.self.cluster_id, cluster->config.cluster_id, 16);
    memcpy(options.self.life, cluster->life, sizeof options.self.life);
    return local_gate_begin(&cluster->gate, &options, cluster->config.listen, detail);
}

static void failure_say(const struct local_cluster *cluster, const char *directory, int result,
                        char detail[256], char problem[512]) {
    if (result == -ERR_NO_MEMORY && cluster->config.format != 0) {
        local_targets_memory(&cluster->config, detail);
    }
    snprintf(problem, 512, "%s cannot be started: %s", directory,
             detail[0] ? detail : local_limits_text(result));
}

static int open_all(struct local_cluster *cluster, const struct local_cluster_options *options,
                    char problem[512]) {
    const struct env_linux_options env_options = {.root = options->directory,
                                                  .stream_limit = STREAMS_MAX};
    char detail[256] = "";
    int r = local_directory_check(options, problem);

    if (r < 0) {
        return r;
    }
    r = env_linux_new(&env_options, &cluster->env);
    if (r == 0) {
        r = env_thread_enter(cluster->env);
        cluster->entered = r == 0;
    }
    if (r == 0) {
        r = local_directory_take(cluster->env, options, &cluster->lock, &cluster->config, problem);
    }
    if (r < 0) {
        return r;
    }
    local_cluster_thread_enter(cluster);
    r = local_mark_read(cluster->env, &cluster->mark);
    cluster->died = cluster->mark.was_served;
    if (r < 0) {
        snprintf(detail, sizeof detail, "%s cannot be read: %s", LOCAL_MARK_NAME, err_text(r));
    }
    if (r == 0) {
        r = local_network_open(&cluster->config, &cluster->network, problem);
    }
    if (r == 0) {
        r = open_targets(cluster, options, detail);
    }
    if (r == 0) {
        r = open_client(cluster, options->origin);
    }
    if (r == 0) {
        local_lives_begin(cluster);
        r = start_serving(cluster);
    }
    if (r == 0) {
        r = local_lives_wait(cluster, detail);
    }
    /* The manager of a first node is here; another's may be away. */
    if (r == 0 && config_is_first(&cluster->config)) {
        r = local_client_begin(cluster);
    }
    if (r == 0) {
        r = local_mark_serving(cluster->env, &cluster->mark);
        snprintf(detail, sizeof detail, "%s cannot be written: %s", LOCAL_MARK_NAME, err_text(r));
    }
    if (r == 0) {
        r = open_gate(cluster, detail);
    }
    if (r == 0) {
        local_member_serve(cluster);
    }
    if (r < 0 && cluster->serving) {
        local_targets_give_up(cluster);
    }
    /* The caller goes on to wait for signals: nobody's I/O may be left to its loop. */
    while (r == 0 && local_cluster_thread_go_on(cluster)) {
    }
    if (r < 0 && !problem[0]) {
        failure_say(cluster, options->directory, r, detail, problem);
    }
    return r;
}

int local_cluster_open(const struct local_cluster_options *options,
                       struct local_cluster **ret_cluster, char problem[512]) {
    struct local_cluster *cluster = calloc(1, sizeof *cluster);

    problem[0] = '\0';
    if (!cluster) {
        return -ERR_NO_MEMORY;
    }
    env_fault_watch();
    cluster->log = options->log;
    cluster->accept_loss = options->accept_loss;
    actor_init(&cluster->asker, "asker", local_asker_step);
    cluster->root = strdup(options->directory);
    int r = cluster->root ? open_all(cluster, options, problem) : -ERR_NO_MEMORY;
    if (r < 0) {
        local_cluster_close(cluster);
        return r;
    }
    *ret_cluster = cluster;
    return 0;
}

typedef void stop_fn(void *what, void (*done)(void *context, int result), void *context);

static void stop_group(void *what, void (*done)(void *context, int result), void *context) {
    group_stop_start(what, done, context);
}

static void stop_ost(void *what, void (*done)(void *context, int result), void *context) {
    ost_stop_start(what, done, context);
}

static void stop_manager(void *what, void (*done)(void *context, int result), void *context) {
    manager_stop_start(what, done, context);
}

static void stop_one(struct local_cluster *cluster, stop_fn *stop, void *what, int *result) {
    struct waiting waiting = {.loop = env_thread_loop(cluster->env)};

    stop(what, waiting_done, &waiting);
    int r = waiting_end(&waiting, cluster->env);
    *result = *result < 0 ? *result : r;
}

int local_cluster_stop(struct local_cluster *cluster) {
    local_mark_stopping(cluster->env);
    /* The manager tells our own targets of the end, if it is elsewhere by the gate. */
    int result = config_is_first(&cluster->config) ? 0 : local_client_stop(cluster);
    if (cluster->manager) {
        manager_quiet(cluster->manager);
    }
    local_gate_end(&cluster->gate);
    result = config_is_first(&cluster->config) ? local_client_stop(cluster) : result;
    local_member_stop(cluster);
    for (uint32_t i = 0; i < cluster->config.mdt_count; i++) {
        stop_one(cluster, stop_group, cluster->groups[i], &result);
    }
    for (uint32_t i = 0; i < cluster->ost_count; i++) {
        stop_one(cluster, stop_ost, cluster->osts[i], &result);
    }
    if (cluster->manager) {
        stop_one(cluster, stop_manager, cluster->manager, &result);
    }
    cluster->stopped = true;
    if (result == 0) {
        local_mark_end(cluster->env, &cluster->mark);
    }
    return result;
}

bool local_cluster_is_unclean(const struct local_cluster *cluster) {
    return cluster->mark.unclean;
}

struct local_recovery local_cluster_recovery(struct local_cluster *cluster) {
    struct local_recovery recovery = {.died = cluster->died};

    for (uint32_t i = local_target_first(&cluster->config); i < local_target_end(&cluster->config);
         i = local_target_next(&cluster->config, i)) {
        struct kv_counters counters;

        kv_counters_get(target_kv(cluster, i), &counters);
        recovery.records += counters.replayed_records;
        recovery.ring_records += counters.replayed_ring_records;
    }
    return recovery;
}

void local_cluster_scrubbed(struct local_cluster *cluster) {
    cluster->mark.unclean = false;
}

void local_cluster_close(struct local_cluster *cluster) {
    if (!cluster) {
        return;
    }
    if (cluster->ticking) {
        local_service_lanes_end(cluster);
        cluster->env->ops->tick_stop(cluster->env, &cluster->tick);
    }
    if (cluster->serving) {
        env_service_stop(cluster->env);
    }
    local_targets_opened(cluster);
    if (cluster->entered) {
        if (worker_current()) {
            local_cluster_thread_leave(cluster);
        }
        env_thread_leave(cluster->env);
    }
    client_free(cluster->client);
    local_targets_close(cluster);
    local_rebuild_free(cluster);
    for (size_t i = LOCAL_RPC_COUNT; i-- > 0;) {
        rpc_free(cluster->rpcs[i]);
    }
    local_member_close(cluster);
    local_network_close(&cluster->network);
    log_table_free(cluster->logs);
    free(cluster->map);
    folder_lock_close(cluster->lock);
    env_linux_free(cluster->env);
    free(cluster->root);
    free(cluster);
}

struct env *local_cluster_env(struct local_cluster *cluster) {
    return cluster->env;
}

const struct config *local_cluster_config(const struct local_cluster *cluster) {
    return &cluster->config;
}

uint32_t local_cluster_mdts(const struct local_cluster *cluster) {
    return cluster->config.mdt_count;
}

struct ost *local_cluster_ost(struct local_cluster *cluster, uint32_t index) {
    return cluster->osts[index];
}

static void group_stats_done(struct group_stats *stats) {
    waiting_done(stats->context, 0);
}

void local_cluster_group_stats(struct local_cluster *cluster, uint32_t index,
                               struct group_stats *ret_stats) {
    struct waiting waiting = {.loop = env_thread_loop(cluster->env)};

    ret_stats->done = group_stats_done;
    ret_stats->context = &waiting;
    group_stats_start(cluster->groups[index], ret_stats);
    (void)waiting_end(&waiting, cluster->env);
}

static void met_done(struct manager_met *met) {
    waiting_done(met->context, 0);
}

bool local_cluster_met(struct local_cluster *cluster, struct manager_met *ret_met) {
    struct waiting waiting = {.loop = env_thread_loop(cluster->env)};

    if (!cluster->manager) {
        return false;
    }
    ret_met->done = met_done;
    ret_met->context = &waiting;
    manager_met_start(cluster->manager, ret_met);
    (void)waiting_end(&waiting, cluster->env);
    return true;
}

static void ost_stats_done(struct ost_stats *stats) {
    waiting_done(stats->context, 0);
}

void local_cluster_ost_stats(struct local_cluster *cluster, uint32_t index,
                             struct ost_stats *ret_stats) {
    struct waiting waiting = {.loop = env_thread_loop(cluster->env)};

    ret_stats->done = ost_stats_done;
    ret_stats->context = &waiting;
    ost_stats_start(cluster->osts[index], ret_stats);
    (void)waiting_end(&waiting, cluster->env);
}
