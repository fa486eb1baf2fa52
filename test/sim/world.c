/* Nodes: putting a role and what it needs together, and taking it apart. */
#include "world.h"
#include "kv/kv_mem.h"
#include "rpc/worker.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FAST_TICK_MS = 10, SLOW_TICK_MS = 50, BULK_BYTES_MAX = 1024 * 1024 };

/* One incarnation of a node. */
struct life {
    struct node *node;
    struct env *env;
    struct worker worker;
    struct transport_sim *transport;
    struct rpc *rpc;
    struct transport_sim_server *server;
    struct manager *manager;
    struct group *group;
    struct ost *ost;
    struct shoal_client *client;
    struct env_tick tick;
    bool ready;
    bool failed;
    bool stopping;
    bool *stopped;
};

static void *allocate(size_t size_bytes) {
    void *memory = calloc(1, size_bytes);

    if (!memory) {
        abort();
    }
    return memory;
}

void world_draw(uint64_t seed, struct world_options *ret_options) {
    static const uint32_t chunk_sizes[] = {64, 64, 128, 256};
    struct prng prng;

    prng_init(&prng, seed ^ UINT64_C(0x776f726c64));
    *ret_options = (struct world_options){
        .seed = seed,
        .ost_count = 1 + (uint32_t)prng_below(&prng, WORLD_OSTS_MAX),
        .client_count = 3 + (uint32_t)prng_below(&prng, 2),
        .smallest = prng_chance(&prng, 1, 3),
        .cold_per_mille = (uint32_t)prng_below(&prng, 4) * 50,
        .sync_interval_ns = prng_between(&prng, 20, 500) * NS_PER_MS,
        .data_bytes_max = prng_between(&prng, 16, 64) * MIB,
        .chunk_bytes = chunk_sizes[prng_below(&prng, ARRAY_SIZE(chunk_sizes))] * KIB,
        .session_timeout_ns = prng_between(&prng, 2, 6) * NS_PER_S,
        .request_timeout_ns = 20 * NS_PER_S,
        .schedule_ns_max = prng_between(&prng, 1, 20) * NS_PER_US,
    };
}

static void node_init(struct world *world, struct node *node, enum node_role role, uint32_t index) {
    static const char *const names[] = {"manager", "mdt", "ost", "client"};
    const struct kv_mem_options store = {sim_prng(world->sim), world->options.cold_per_mille, 1000};
    char name[32];

    snprintf(name, sizeof name, "%s%u", names[role], index);
    *node = (struct node){.world = world, .role = role, .index = index};
    if (role == NODE_MANAGER) {
        node->target_id = MANAGER_TARGET;
    } else if (role == NODE_MDT) {
        node->target_id = MDT_TARGET;
    } else if (role == NODE_OST) {
        node->target_id = OST_TARGET_FIRST + index;
    }
    node->process = sim_process_new(world->sim, name);
    sim_kill(node->process);
    if (role != NODE_CLIENT && kv_mem_store_new(&store, &node->store) < 0) {
        abort();
    }
}

static void world_nodes(struct world *world) {
    struct node *next = world->nodes;

    world->manager = next++;
    world->mdt = next++;
    world->osts = next;
    world->clients = next + world->options.ost_count;
    world->node_count = 2 + world->options.ost_count + world->options.client_count;
    node_init(world, world->manager, NODE_MANAGER, 0);
    node_init(world, world->mdt, NODE_MDT, 0);
    for (uint32_t i = 0; i < world->options.ost_count; i++) {
        node_init(world, &world->osts[i], NODE_OST, i);
    }
    for (uint32_t i = 0; i < world->options.client_count; i++) {
        node_init(world, &world->clients[i], NODE_CLIENT, i);
    }
}

struct world *world_new(const struct world_options *options) {
    struct world *world = allocate(sizeof *world);
    struct target_id osts[WORLD_OSTS_MAX];

    world->options = *options;
    world->sim = sim_new(options->seed);
    world->net = sim_net_new(world->sim);
    for (uint32_t i = 0; i < options->ost_count; i++) {
        osts[i].value = OST_TARGET_FIRST + i;
    }
    cluster_map_single(&world->map, (struct target_id){MDT_TARGET}, osts, options->ost_count);
    world->map.name_hash_key[0] = options->seed;
    world->map.cluster_id[0] = 1;
    world_nodes(world);
    return world;
}

static void kv_add(struct world *world, struct kv *kv) {
    struct kv_counters now;
    struct kv_counters *sum = &world->kv_sum;

    kv_counters_get(kv, &now);
    sum->records += now.records;
    sum->sync_points += now.sync_points;
    sum->checkpoints += now.checkpoints;
    sum->pending_reads += now.pending_reads;
    sum->replayed_records += now.replayed_records;
    sum->replayed_ring_records += now.replayed_ring_records;
    sum->duplicates_refused += now.duplicates_refused;
    sum->stalls += now.stalls;
}

static void life_sum(struct life *life) {
    struct world *world = life->node->world;

    if (life->ost) {
        struct ost_counters now;

        kv_add(world, ost_kv(life->ost));
        ost_counters_get(life->ost, &now);
        world->ost_sum.corrupt_blocks += now.corrupt_blocks;
        world->ost_sum.small_writes += now.small_writes;
        world->ost_sum.writes += now.writes;
        world->ost_sum.cuts += now.cuts;
        world->ost_sum.deletes += now.deletes;
    }
    if (life->client) {
        struct client_counters now;

        client_counters_get(life->client, &now);
        world->client_sum.retries += now.retries;
        world->client_sum.reattachments += now.reattachments;
        world->client_sum.reopened += now.reopened;
        world->client_sum.conversions += now.conversions;
    }
}

void world_sum(struct world *world) {
    for (uint32_t i = 0; i < world->node_count; i++) {
        if (world->nodes[i].life) {
            life_sum(world->nodes[i].life);
        }
    }
}

static void life_free(struct life *life) {
    if (!life) {
        return;
    }
    worker_bind(&life->worker);
    /* It forgets calls that lie in the memory of those below. */
    rpc_free(life->rpc);
    transport_sim_free(life->transport);
    client_free(life->client);
    ost_close(life->ost);
    group_close(life->group);
    manager_close(life->manager);
    transport_sim_server_free(life->server);
    worker_bind(NULL);
    free(life);
}

static void node_down(struct node *node) {
    life_free(TAKE_PTR(node->life));
}

void node_kill(struct node *node) {
    life_sum(node->life);
    sim_kill(node->process);
    node_down(node);
}

void node_power(struct node *node) {
    if (node->life) {
        life_sum(node->life);
    }
    sim_power(node->process);
    node_down(node);
    node->lost_ns = sim_now_ns(node->world->sim);
}

void world_free(struct world *world) {
    for (uint32_t i = 0; i < world->node_count; i++) {
        if (world->nodes[i].life) {
            sim_kill(world->nodes[i].process);
            node_down(&world->nodes[i]);
        }
    }
    for (uint32_t i = 0; i < world->node_count; i++) {
        kv_mem_store_free(world->nodes[i].store);
    }
    /* Packets under way free themselves with the world's events, but need the network till then. */
    struct sim_net *net = world->net;
    sim_free(world->sim);
    sim_net_free(net);
    free(world);
}

void node_enter(struct node *node) {
    worker_bind(&node->life->worker);
}

void node_leave(struct node *node) {
    (void)node;
    worker_bind(NULL);
}

static void hook_enter(void *context) {
    worker_bind(&((struct life *)context)->worker);
}

static void hook_leave(void *context) {
    (void)context;
    worker_bind(NULL);
}

struct turn {
    struct worker *worker;
    struct actor *actor;
};

static void turn_run(void *context) {
    struct turn turn = *(struct turn *)context;

    free(context);
    actor_run(turn.worker, turn.actor);
}

static void life_schedule(struct worker *worker, struct actor *actor) {
    struct life *life = worker->context;
    struct world *world = life->node->world;
    struct turn *turn = allocate(sizeof *turn);

    *turn = (struct turn){worker, actor};
    sim_schedule_event(world->sim, &(struct sim_event){
                                       .process = life->node->process,
                                       .delay_ns = prng_below(sim_prng(world->sim),
                                                              world->options.schedule_ns_max),
                                       .kind = "step",
                                       .run = turn_run,
                                       .drop = free,
                                       .context = turn,
                                   });
}

static void life_tick(struct env_tick *tick) {
    struct life *life = CONTAINER_OF(tick, struct life, tick);

    if (life->manager) {
        manager_tick(life->manager);
    }
    if (life->group) {
        group_tick(life->group);
    }
    if (life->ost) {
        ost_tick(life->ost);
    }
    if (life->client) {
        client_tick(life->client);
    }
}

static struct kv_options kv_options_of(const struct node *node) {
    const struct world_options *world = &node->world->options;
    bool smallest = world->smallest;
    bool ost = node->role == NODE_OST;
    struct kv_options options = {
        .directory = "kv",
        .shared_name = "ring",
        .base = &kv_mem_ops,
        .base_store = node->store,
        .ring_bytes = ost        ? 448 * KIB
                      : smallest ? 64 * KIB
                                 : 512 * KIB,
        .ring_data_bytes = ost ? (smallest ? 256 * KIB : 1 * MIB) : 0,
        .disk_log_bytes = smallest && !ost ? 512 * KIB : 4 * MIB,
        .changes_bytes_max = smallest ? 256 * KIB : 1 * MIB,
        .base_memory_bytes = 64 * MIB,
        .sync_interval_ns = world->sync_interval_ns,
        .outcomes_max = 4096,
    };

    options.owner_id[0] = (uint8_t)node->target_id;
    options.owner_id[1] = 0x5a;
    return options;
}

static int open_manager(struct life *life, char problem[256]) {
    struct node *node = life->node;
    const struct manager_options options = {
        .env = life->env,
        .kv = kv_options_of(node),
        .rpc = life->rpc,
        .map = &node->world->map,
        .target = {node->target_id},
        .session_timeout_ns = node->world->options.session_timeout_ns,
        .sessions_max = 64,
    };

    return manager_open(&options, &life->manager, problem);
}

static int open_group(struct life *life, char problem[256]) {
    struct node *node = life->node;
    const struct world_options *world = &node->world->options;
    const struct group_options options = {
        .env = life->env,
        .kv = kv_options_of(node),
        .map = &node->world->map,
        .target = {node->target_id},
        .rpc = life->rpc,
        .root_mode = 0755,
        .default_layout = {.chunk_bytes = world->chunk_bytes, .stripe_count = STRIPE_ALL},
        .sessions_max = world->smallest ? 16 : 64,
        .opens_max = world->smallest ? 192 : 1024,
        .gone_sessions_max = 64,
        .name_hash_bits = world->seed % 4 == 0 ? 3 : 0,
    };

    return group_open(&options, &life->group, problem);
}

static void log_line(void *context, const char *line) {
    struct node *node = context;

    snprintf(node->world->last_line, sizeof node->world->last_line, "%s", line);
    sim_count(node->world->sim, "lines logged by OSTs", 1);
}

static int open_ost(struct life *life, char problem[256]) {
    struct node *node = life->node;
    const struct world_options *world = &node->world->options;
    bool smallest = world->smallest;
    const struct ost_options options = {
        .env = life->env,
        .kv = kv_options_of(node),
        .data_path = "data",
        .target = {node->target_id},
        .data_bytes_max = world->data_bytes_max,
        .grow_bytes = 1 * MIB,
        .reserve_bytes = 512 * KIB,
        .sync_bytes = smallest ? 512 * KIB : 4 * MIB,
        .cache_bytes = smallest ? 8 * BLOCK_BYTES : 256 * KIB,
        .requests_max = smallest ? 6 : 32,
        .io_max = smallest ? 36 : 64,
        .bounce_max = smallest ? 2 : 8,
        .request_bytes_max = WORLD_CALL_BYTES,
        .sessions_max = 64,
        .verify_on_arrival = true,
        .unsigned_allowed = true,
        .log = log_line,
        .log_context = node,
    };

    return ost_open(&options, &life->ost, problem);
}

static int open_client(struct life *life) {
    struct node *node = life->node;
    const struct world_options *world = &node->world->options;
    char origin[32];
    const struct client_options options = {
        .env = life->env,
        .rpc = life->rpc,
        .manager = {MANAGER_TARGET},
        .node = {CLIENT_NODE_FIRST + node->index},
        .incarnation = node->incarnation,
        .origin = origin,
        .open_files_max = 512,
        .chunk_calls_max = world->smallest ? 1 : 256,
        .call_bytes_max = WORLD_CALL_BYTES,
        .readdir_buffers_max = 1,
        .request_timeout_ns = world->request_timeout_ns,
        .renew_ns = world->session_timeout_ns / 4,
    };

    snprintf(origin, sizeof origin, "/mnt/%u", node->index);
    return client_new(&options, &life->client);
}

static struct actor *life_actor(struct life *life) {
    return life->manager ? manager_actor(life->manager)
           : life->group ? group_actor(life->group)
                         : ost_actor(life->ost);
}

static int life_serve(struct life *life) {
    struct node *node = life->node;
    uint32_t calls_max = node->world->options.smallest ? 16 : 128;
    const struct transport_sim_server_options options = {
        .net = node->world->net,
        .process = node->process,
        .target = {node->target_id},
        .actor = life_actor(life),
        .calls_max = calls_max,
        .reserve_count = {[MESSAGE_CONTROL] = 2,
                          [MESSAGE_RELEASE] = 4,
                          [MESSAGE_REQUEST] = 4,
                          [MESSAGE_BACKGROUND] = 1},
        .bulk_bytes_max = BULK_BYTES_MAX,
    };

    return transport_sim_serve(&options, &life->server);
}

/* The transport, which is told of each call as it leaves. */
static void told_send(void *context, struct call *call) {
    struct life *life = context;
    struct world *world = life->node->world;

    if (world->options.tell) {
        char text[256];

        wire_print_request(call->header.opcode, &call->request, text, sizeof text);
        fprintf(world->options.tell,
                "%12.6f ms %-10s -> target %u #%" PRIu64 " term %" PRIu64 " session %" PRIu64
                " attempt %u: %s\n",
                (double)sim_now_ns(world->sim) / 1e6, sim_process_name(life->node->process),
                call->header.target.value, call->header.sequence, call->header.term,
                call->header.session.value, call->attempts, text);
    }
    transport_sim_ops.send(life->transport, call);
}

static void told_forget(void *context, struct call *call) {
    transport_sim_ops.forget(((struct life *)context)->transport, call);
}

static const struct transport_ops told_ops = {.send = told_send, .forget = told_forget};

static int life_rpc(struct life *life) {
    const struct rpc_options options = {
        .transport = &told_ops,
        .transport_context = life,
        .env = life->env,
        .resend_ns = 20 * NS_PER_MS,
        .targets_max = 8,
    };

    return rpc_new(&options, &life->rpc);
}

static int life_open(struct life *life, char problem[256]) {
    struct node *node = life->node;
    int r = transport_sim_new(node->world->net, node->process, &life->transport);

    life->rpc = NULL;
    r = r < 0 ? r : life_rpc(life);
    if (r < 0) {
        return r;
    }
    switch (node->role) {
    case NODE_MANAGER:
        r = open_manager(life, problem);
        break;
    case NODE_MDT:
        r = open_group(life, problem);
        break;
    case NODE_OST:
        r = open_ost(life, problem);
        break;
    case NODE_CLIENT:
        return open_client(life);
    }
    return r < 0 ? r : life_serve(life);
}

static void client_started(void *context, int result) {
    struct life *life = context;

    life->ready = result == 0;
    life->failed = result < 0;
}

static struct life *life_new(struct node *node) {
    struct life *life = aligned_alloc(64, (sizeof *life + 63) / 64 * 64);

    if (!life) {
        abort();
    }
    memset(life, 0, sizeof *life);
    life->node = node;
    life->env = sim_restart(node->process);
    worker_init(&life->worker);
    life->worker.schedule = life_schedule;
    life->worker.context = life;
    sim_process_set_hooks(node->process, &(struct sim_hooks){hook_enter, hook_leave, life});
    return life;
}

bool node_start(struct node *node, uint64_t crash_after) {
    struct life *life = life_new(node);
    char problem[256] = "";

    node->life = life;
    node->incarnation++;
    sim_crash_after(node->process, crash_after);
    worker_bind(&life->worker);
    int r = life_open(life, problem);
    if (r == 0) {
        bool slow = node->role == NODE_MANAGER || node->role == NODE_MDT;

        life->tick = (struct env_tick){
            .period_ns = (slow ? SLOW_TICK_MS : FAST_TICK_MS) * NS_PER_MS, .fire = life_tick};
        life->env->ops->tick_start(life->env, &life->tick);
        if (life->client) {
            client_start(life->client, client_started, life);
        }
    }
    worker_bind(NULL);
    if (r < 0 && sim_crashed(node->world->sim) == node->process) {
        node->world->opens_cut++;
        return true;
    }
    if (r < 0) {
        snprintf(node->world->failure, sizeof node->world->failure, "%s cannot start: %s: %s",
                 sim_process_name(node->process), err_name(r), problem);
    }
    return r == 0;
}

struct shoal_client *node_client(struct node *node) {
    struct life *life = node->life;

    return life && life->ready && !life->stopping ? life->client : NULL;
}

bool node_client_failed(const struct node *node) {
    return node->life && node->life->failed;
}

struct manager *node_manager(struct node *node) {
    return node->life ? node->life->manager : NULL;
}

struct group *node_group(struct node *node) {
    return node->life ? node->life->group : NULL;
}

struct ost *node_ost(struct node *node) {
    return node->life ? node->life->ost : NULL;
}

struct rpc *node_rpc(struct node *node) {
    return node->life ? node->life->rpc : NULL;
}

static void client_stopped(void *context, int result) {
    struct life *life = context;

    (void)result;
    *life->stopped = true;
}

void node_client_stop(struct node *node, bool *done) {
    struct life *life = node->life;

    life->stopping = true;
    life->stopped = done;
    node_enter(node);
    client_stop(life->client, client_stopped, life);
    node_leave(node);
}
