/* Opening the targets of a cluster, side by side: each replays a log of its own, and two of them
 * share nothing but the env. There are as many threads as targets, up to one a processor or
 * OPENERS_MIN, as some of them wait for a disk; each takes the next target that nobody has taken.
 *
 * A target that reads a cold base has I/O under way when it is open. That belongs to the thread
 * that opened it, which stays until it has ended, but looks at it only once all targets can be
 * called: its completion runs the target's step. */
#include "env/env_crew.h"
#include "host/machine.h"
#include "kv/kv_lmdb.h"
#include "node/local_internal.h"
#include "node/local_lives.h"
#include "node/local_rebuild.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPENERS_MIN = 8 };
#define GIVE_UP_NS (2 * NS_PER_S)

static void line_say(const struct local_cluster *cluster, const char *line) {
    if (cluster->log) {
        cluster->log(line);
    }
}

/* Until all are open only the thread that opens a target says something of it. */
static void target_log(void *context, const char *line) {
    struct local_target *target = context;
    size_t size = strlen(line) + 1;
    char *lines = target->says_at_once ? NULL : realloc(target->lines, target->lines_bytes + size);

    if (!lines) {
        line_say(target->cluster, line);
        return;
    }
    memcpy(lines + target->lines_bytes, line, size);
    target->lines = lines;
    target->lines_bytes += size;
}

static void lines_say(struct local_target *target) {
    for (size_t at = 0; at < target->lines_bytes; at += strlen(target->lines + at) + 1) {
        line_say(target->cluster, target->lines + at);
    }
    free(target->lines);
    target->lines = NULL;
    target->lines_bytes = 0;
    target->says_at_once = true;
}

/* One that is not in the map yet gets its first log. */
static struct log_id log_of(const struct local_cluster *cluster, struct target_id id) {
    struct log_id log = cluster_map_log_of(cluster->map, id);

    return log.value != 0 ? log : cluster_map_first_log(cluster->map, id);
}

static struct kv_options kv_options_of(struct local_target *target, uint32_t id) {
    struct local_cluster *cluster = target->cluster;
    const struct config *config = &cluster->config;
    struct kv_options options = {
        .env = cluster->env,
        .directory = target->name,
        .shared_name = target->ring_name,
        .ring_expected = cluster->mark.rings_left,
        .accept_loss = cluster->accept_loss,
        .base = &kv_lmdb_ops,
        .root = cluster->root,
        .disk_log_bytes = config->disk_log_bytes,
        .base_memory_bytes = config->base_memory_bytes,
        .base_check_bytes = config->base_check_bytes,
        .sync_interval_ns = NS_PER_S,
        .log = target_log,
        .log_context = target,
    };

    local_target_owner(config, id, options.owner_id);
    if (id != LOCAL_MANAGER_ID) {
        options.log_id = log_of(cluster, (struct target_id){id});
    }
    local_target_ring(config, target->name, target->ring_name);
    return options;
}

static int open_manager(struct local_target *target) {
    struct local_cluster *cluster = target->cluster;
    struct manager_options options = {
        .env = cluster->env,
        .kv = kv_options_of(target, LOCAL_MANAGER_ID),
        .rpc = cluster->rpcs[RPC_MANAGER],
        .map = cluster->map,
        .rebuilt = local_rebuild_result(cluster),
        .target = {LOCAL_MANAGER_ID},
        .place = local_lives_place(cluster->env),
        .session_timeout_ns = cluster->config.session_timeout_ms * NS_PER_MS,
        .sessions_max = (uint32_t)cluster->config.sessions_max,
        .keys = cluster->network.ring,
        .log = target_log,
        .log_context = target,
    };

    options.kv.ring_bytes = LOCAL_MANAGER_RING_BYTES;
    options.kv.disk_log_bytes = LOCAL_MANAGER_LOG_BYTES;
    options.kv.changes_bytes_max = LOCAL_MANAGER_CHANGES_BYTES;
    options.kv.ring_expected = options.kv.ring_expected && !options.rebuilt;
    return manager_open(&options, &cluster->manager, target->problem);
}

static int open_group(struct local_target *target, uint32_t index) {
    struct local_cluster *cluster = target->cluster;
    struct target_id id = {local_target_id(&cluster->config, TARGET_GROUP_FIRST + index)};
    struct group_options options = {
        .env = cluster->env,
        .kv = kv_options_of(target, id.value),
        .map = cluster->map,
        .target = id,
        .rpc = cluster->rpcs[RPC_GROUP],
        .root_mode = 0755,
        .sessions_max = (uint32_t)cluster->config.sessions_max,
        /* Those of a killed predecessor besides, until its session has ended. */
        .opens_max = 2 * (uint32_t)cluster->config.open_files_max,
        .default_layout = {.chunk_bytes = CHUNK_BYTES_DEFAULT, .stripe_count = STRIPE_ALL},
        .slow_request_ns = cluster->config.slow_request_ms * NS_PER_MS,
        .keys = cluster->network.ring,
    };

    options.kv.ring_bytes = cluster->config.mdt_ring_bytes;
    options.kv.ring_bytes_name = "mdt_ring_bytes";
    options.kv.sessions_max = (uint32_t)cluster->config.sessions_max;
    options.kv.changes_bytes_max = cluster->config.mdt_changes_bytes;
    return group_open(&options, &cluster->groups[index], target->problem);
}

static int open_ost(struct local_target *target, uint32_t index) {
    struct local_cluster *cluster = target->cluster;
    struct target_id id = {local_target_id(&cluster->config, TARGET_OST_FIRST + index)};
    struct ost_options options = {
        .env = cluster->env,
        .kv = kv_options_of(target, id.value),
        .data_path = target->data_path,
        .target = id,
        .data_bytes_max = cluster->config.data_bytes_max,
        .keep_free_bytes = cluster->config.keep_free_bytes,
        .file_system_shares = cluster->config.ost_count,
        .cache_bytes = cluster->config.cache_bytes,
        .unsigned_allowed = !cluster->network.ring,
        .keys = cluster->network.ring,
        .slow_request_ns = cluster->config.slow_request_ms * NS_PER_MS,
        .log = target_log,
        .log_context = target,
    };

    options.kv.ring_bytes = cluster->config.ost_ring_bytes;
    options.kv.ring_data_bytes = cluster->config.ost_ring_data_bytes;
    options.kv.ring_bytes_name = "ost_ring_bytes";
    options.kv.sessions_max = OST_SESSIONS_DEFAULT;
    options.kv.ring_data_bytes_name = "ost_ring_data_bytes";
    options.kv.changes_bytes_max = cluster->config.ost_changes_bytes;
    snprintf(target->data_path, sizeof target->data_path, "ost%u/data", index);
    int r = cluster->env->ops->directory_make(cluster->env, target->name);
    return r < 0 ? r : ost_open(&options, &cluster->osts[index], target->problem);
}

static void open_target(struct local_cluster *cluster, uint32_t index) {
    struct local_target *target = &cluster->targets[index];

    if (index == TARGET_MANAGER) {
        target->result = open_manager(target);
    } else if (index < TARGET_OST_FIRST) {
        target->result = open_group(target, index - TARGET_GROUP_FIRST);
    } else {
        target->result = open_ost(target, index - TARGET_OST_FIRST);
    }
}

static void open_taken(struct local_cluster *cluster) {
    uint32_t index;

    while ((index = atomic_fetch_add(&cluster->next_target, 1)) <
           local_target_end(&cluster->config)) {
        if (local_target_is_ours(&cluster->config, index)) {
            open_target(cluster, index);
        }
    }
}

/* Without a loop it leaves the work to the others. */
static void opener_work(void *context) {
    struct local_cluster *cluster = context;

    if (env_thread_enter(cluster->env) == 0) {
        local_cluster_thread_enter(cluster);
        open_taken(cluster);
    }
}

static void opener_leave(void *context) {
    struct local_cluster *cluster = context;

    if (worker_current()) {
        local_cluster_thread_leave(cluster);
        env_thread_leave(cluster->env);
    }
}

static void names_make(struct local_cluster *cluster) {
    for (uint32_t i = local_target_first(&cluster->config); i < local_target_end(&cluster->config);
         i = local_target_next(&cluster->config, i)) {
        struct local_target *target = &cluster->targets[i];

        target->cluster = cluster;
        local_target_name(i, target->name);
    }
}

static struct actor *target_actor(const struct local_cluster *cluster, uint32_t index) {
    return index == TARGET_MANAGER    ? manager_actor(cluster->manager)
           : index < TARGET_OST_FIRST ? group_actor(cluster->groups[index - TARGET_GROUP_FIRST])
                                      : ost_actor(cluster->osts[index - TARGET_OST_FIRST]);
}

static int target_add(struct local_cluster *cluster, uint32_t index) {
    struct target_id id = {local_target_id(&cluster->config, index)};
    struct log_id log = index == TARGET_MANAGER ? LOG_MANAGER : log_of(cluster, id);

    return log_table_add(cluster->logs, log, target_actor(cluster, index));
}

/* What it has said, whether it can be called, and its error with its words. */
static int target_gather(struct local_cluster *cluster, uint32_t index, char problem[256]) {
    struct local_target *target = &cluster->targets[index];

    lines_say(target);
    int r = target->result < 0 ? target->result : target_add(cluster, index);
    if (r < 0) {
        snprintf(problem, 256, "%s", target->problem);
    }
    return r;
}

/* By target, from this one on; of errors the first. */
static int targets_gather(struct local_cluster *cluster, uint32_t first, char problem[256]) {
    char ignored[256];
    int result = 0;

    for (uint32_t i = first; i < local_target_end(&cluster->config);
         i = local_target_next(&cluster->config, i)) {
        int r = target_gather(cluster, i, result == 0 ? problem : ignored);

        result = result == 0 ? r : result;
    }
    return result;
}

/* Behind all others, of which it is made. */
static int manager_rebuild(struct local_cluster *cluster, char problem[256]) {
    int r = local_rebuild_own(cluster, problem);

    if (r < 0) {
        return r;
    }
    open_target(cluster, TARGET_MANAGER);
    r = target_gather(cluster, TARGET_MANAGER, problem);
    return r < 0 ? r : local_rebuild_end(cluster, problem);
}

/* Alone, a node has no member: whoever asks for its map gets it of the manager. */
static int member_add(struct local_cluster *cluster) {
    struct actor *actor =
        cluster->member ? member_actor(cluster->member) : manager_actor(cluster->manager);

    int r = log_table_add(cluster->logs, LOG_MEMBER, actor);
    return r < 0 || !cluster->member
               ? r
               : log_table_add(cluster->logs, log_of_node((struct node_id){cluster->config.node}),
                               actor);
}

int local_targets_open(struct local_cluster *cluster, char problem[256]) {
    uint32_t first = cluster->rebuilding ? local_target_first_data(&cluster->config)
                                         : local_target_first(&cluster->config);
    unsigned threads = MAX(machine_processors(), (unsigned)OPENERS_MIN);
    const struct env_crew_options options = {
        .thread_count = MIN(threads, local_target_end(&cluster->config) - first) - 1,
        .work = opener_work,
        .leave = opener_leave,
        .context = cluster};

    names_make(cluster);
    atomic_store(&cluster->next_target, first);
    cluster->ost_count = cluster->config.ost_count;
    int r = env_crew_new(&options, &cluster->openers);
    if (r < 0) {
        return r;
    }
    open_taken(cluster);
    env_crew_wait(cluster->openers);
    r = targets_gather(cluster, first, problem);
    if (r == 0 && !cluster->rebuilding) {
        r = member_add(cluster);
    }
    env_crew_release(cluster->openers);
    if (r == 0 && cluster->rebuilding) {
        r = manager_rebuild(cluster, problem);
        r = r < 0 ? r : member_add(cluster);
    }
    return r;
}

void local_targets_opened(struct local_cluster *cluster) {
    env_crew_free(cluster->openers);
    cluster->openers = NULL;
}

static void target_stop(struct local_cluster *cluster, uint32_t index) {
    struct waiting *waiting = &cluster->targets[index].stopped;

    waiting->loop = env_thread_loop(cluster->env);
    if (index == TARGET_MANAGER) {
        manager_stop_start(cluster->manager, waiting_done, waiting);
    } else if (index < TARGET_OST_FIRST) {
        group_stop_start(cluster->groups[index - TARGET_GROUP_FIRST], waiting_done, waiting);
    } else {
        ost_stop_start(cluster->osts[index - TARGET_OST_FIRST], waiting_done, waiting);
    }
}

static void target_await(struct local_cluster *cluster, uint32_t index, uint64_t end_ns) {
    while (!waiting_is_over(&cluster->targets[index].stopped, cluster->env) &&
           env_now_ns(cluster->env) < end_ns) {
    }
}

void local_targets_give_up(struct local_cluster *cluster) {
    uint64_t end_ns = env_now_ns(cluster->env) + GIVE_UP_NS;

    for (uint32_t i = local_target_first_data(&cluster->config);
         i < local_target_end(&cluster->config); i = local_target_next(&cluster->config, i)) {
        target_stop(cluster, i);
    }
    atomic_store(&cluster->serves, true); /* Ticks let them end. */
    for (uint32_t i = local_target_first_data(&cluster->config);
         i < local_target_end(&cluster->config); i = local_target_next(&cluster->config, i)) {
        target_await(cluster, i, end_ns);
    }
    if (cluster->manager) {
        manager_quiet(cluster->manager);
        target_stop(cluster, TARGET_MANAGER);
        target_await(cluster, TARGET_MANAGER, end_ns);
    }
}

void local_targets_close(struct local_cluster *cluster) {
    for (uint32_t i = 0; i < cluster->ost_count; i++) {
        (cluster->stopped ? ost_close : ost_abandon)(cluster->osts[i]);
    }
    for (uint32_t i = 0; i < cluster->config.mdt_count; i++) {
        (cluster->stopped ? group_close : group_abandon)(cluster->groups[i]);
    }
    (cluster->stopped ? manager_close : manager_abandon)(cluster->manager);
}
