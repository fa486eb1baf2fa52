/* Nodes: putting a role and what it needs together, and taking it apart. */
#include "rotation.h"
#include "accords.h"
#include "laps.h"
#include "life.h"
#include "losses.h"
#include "absences.h"
#include "pools.h"
#include "pushes.h"
#include "renewals.h"
#include "env/sim_stream.h"
#include "kv/kv_mem.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FAST_TICK_MS = 10, SLOW_TICK_MS = 50 };

static void *allocate(size_t size_bytes) {
    void *memory = calloc(1, size_bytes);

    if (!memory) {
        abort();
    }
    return memory;
}

/* Of a generator of its own, so that it changes nothing else of a seed. */
static void draw_patience(uint64_t seed, struct world_options *options) {
    struct prng prng;

    prng_init(&prng, seed ^ UINT64_C(0x70617469656e63));
    if (!options->streams && prng_chance(&prng, 1, 2)) {
        options->request_timeout_ns = prng_between(&prng, 2000, 6000) * NS_PER_MS;
    }
}

void world_draw(uint64_t seed, struct world_options *ret_options) {
    static const uint32_t chunk_sizes[] = {64, 64, 128, 256};
    struct prng prng;

    prng_init(&prng, seed ^ UINT64_C(0x776f726c64));
    *ret_options = (struct world_options){
        .seed = seed,
        .ost_count = 1 + (uint32_t)prng_below(&prng, WORLD_OSTS_MAX),
        .client_count = 3 + (uint32_t)prng_below(&prng, 2),
        .smallest = seed % 3 == 0,
        .cold_per_mille = (uint32_t)prng_below(&prng, 4) * 50 + (seed % 16 == 5 ? 1000 : 0),
        .sync_interval_ns = prng_between(&prng, 20, 500) * NS_PER_MS,
        .checkpoint_ns = prng_between(&prng, 10, 500) * NS_PER_MS,
        .ring_bytes = seed % 3 == 0 ? 64 * KIB : (uint32_t)prng_between(&prng, 16, 64) * 8 * KIB,
        .log_rings = seed % 3 == 0 ? 8 : (uint32_t)prng_between(&prng, 8, 16),
        .data_bytes_max = prng_between(&prng, 16, 64) * MIB,
        .chunk_bytes = chunk_sizes[prng_below(&prng, ARRAY_SIZE(chunk_sizes))] * KIB,
        .session_timeout_ns = prng_between(&prng, 2, 6) * NS_PER_S,
        .request_timeout_ns = 20 * NS_PER_S,
        .schedule_ns_max = prng_between(&prng, 1, 20) * NS_PER_US,
    };
    ret_options->keys = prng_chance(&prng, 1, 2);
    ret_options->late_ost = prng_chance(&prng, 1, 2);
    ret_options->mdt_count = prng_chance(&prng, 1, 2) ? 1 : 2 + (uint32_t)prng_below(&prng, 3);
    ret_options->late_mdt = prng_chance(&prng, 1, 2);
    ret_options->streams = prng_chance(&prng, 1, 2);
    if (ret_options->streams && prng_chance(&prng, 1, 2)) {
        ret_options->request_timeout_ns = prng_between(&prng, 2000, 6000) * NS_PER_MS;
    }
    ret_options->lane_connect_ns = prng_between(&prng, 100, 3000) * NS_PER_MS;
    ret_options->lane_silent_ns = prng_between(&prng, 100, 2000) * NS_PER_MS;
    ret_options->lane_idle_ns = prng_between(&prng, 100, 20000) * NS_PER_MS;
    draw_patience(seed, ret_options);
}

uint32_t world_first_osts(const struct world_options *options) {
    return options->ost_count - (options->late_ost && options->ost_count > 1 ? 1 : 0);
}

static uint32_t first_mdts(const struct world_options *options) {
    return options->mdt_count - (options->late_mdt && options->mdt_count > 1 ? 1 : 0);
}

static void store_new(struct node *node) {
    struct world *world = node->world;
    const struct kv_mem_options store = {sim_prng(world->sim),
                                         MIN(world->options.cold_per_mille, 1000U), 1000};

    if (kv_mem_store_new(&store, &node->store) < 0) {
        abort();
    }
}

static void node_init(struct world *world, struct node *node, enum node_role role, uint32_t index) {
    static const char *const names[] = {"manager", "mdt", "ost", "client"};
    char name[32];

    snprintf(name, sizeof name, "%s%u", names[role], index);
    *node = (struct node){.world = world, .role = role, .index = index};
    if (role == NODE_MANAGER) {
        node->target_id = MANAGER_TARGET;
    } else if (role == NODE_MDT) {
        if (index < first_mdts(&world->options)) {
            node->target_id = index == 0 ? MDT_TARGET : MDT_TARGET_NEXT + index - 1;
        }
        node->map = allocate(sizeof *node->map);
        *node->map = world->map;
    } else if (role == NODE_OST && index < world_first_osts(&world->options)) {
        node->target_id = OST_TARGET_FIRST + index;
    }
    if (world->options.keys && role != NODE_CLIENT) {
        rotation_ring(node);
    }
    node->process = sim_process_new(world->sim, name);
    sim_kill(node->process);
    if (role != NODE_CLIENT) {
        store_new(node);
    }
}

static void world_nodes(struct world *world) {
    struct node *next = world->nodes;

    world->manager = next++;
    world->mdts = next;
    world->osts = next + world->options.mdt_count;
    world->clients = world->osts + world->options.ost_count;
    world->node_count =
        1 + world->options.mdt_count + world->options.ost_count + world->options.client_count;
    node_init(world, world->manager, NODE_MANAGER, 0);
    for (uint32_t i = 0; i < world->options.mdt_count; i++) {
        node_init(world, &world->mdts[i], NODE_MDT, i);
    }
    for (uint32_t i = 0; i < world->options.ost_count; i++) {
        node_init(world, &world->osts[i], NODE_OST, i);
    }
    for (uint32_t i = 0; i < world->options.client_count; i++) {
        node_init(world, &world->clients[i], NODE_CLIENT, i);
    }
}

/* Besides the first. */
static void world_mdts(struct world *world) {
    struct target_id mdts[WORLD_MDTS_MAX];

    uint32_t count = first_mdts(&world->options);

    for (uint32_t i = 1; i < count; i++) {
        mdts[i - 1].value = MDT_TARGET_NEXT + i - 1;
    }
    if (count > 1 && cluster_map_add_mdts(&world->map, mdts, count - 1) < 0) {
        abort();
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
    world->map.name_hash_key[0] = options->seed;
    world->map.cluster_id[0] = 1;
    cluster_map_single(&world->map, (struct target_id){MDT_TARGET}, osts,
                       world_first_osts(options));
    world_mdts(world);
    rotation_begin(world);
    world_nodes(world);
    world->accords = accords_new();
    world->own_kills = sim_counter(world->sim, "kills");
    return world;
}

static void kv_add(struct life *life, struct kv *kv, bool cut) {
    struct world *world = life->node->world;
    struct kv_counters now;
    struct kv_counters *sum = &world->kv_sum;

    kv_counters_get(kv, &now);
    world->checkpoints_cut += cut && now.checkpoints_begun > now.checkpoints;
    world->replays += now.replayed_records > 0;
    world->replays_cut +=
        cut && now.replayed_records > 0 && kv_synced_position(kv) < life->recovered;
    sum->records += now.records;
    sum->sync_points += now.sync_points;
    sum->checkpoints += now.checkpoints;
    sum->pending_reads += now.pending_reads;
    sum->replayed_records += now.replayed_records;
    sum->replayed_ring_records += now.replayed_ring_records;
    sum->duplicates_refused += now.duplicates_refused;
    sum->stalls += now.stalls;
    sum->outcomes_refused += now.outcomes_refused;
}

static void group_add(struct world *world, const struct group *group, bool cut) {
    const struct group_totals *totals = group_totals(group);
    struct group_totals *sum = &world->group_sum;

    sum->evictions += totals->evictions;
    sum->old_maps += totals->old_maps;
    sum->fences += totals->fences;
    sum->fencing_settles += totals->fencing_settles;
    sum->losses_over += totals->losses_over;
    sum->ends_over += totals->ends_over;
    sum->orders_put_aside += totals->orders_put_aside;
    sum->pauses += totals->pauses;
    sum->writers_left += totals->writers_left;
    sum->chunks_given_back += totals->chunks_given_back;
    sum->chunks_kept += totals->chunks_kept;
    sum->settles_put_off += totals->settles_put_off;
    sum->counted += totals->counted;
    sum->crossings += totals->crossings;
    sum->crossings_again += totals->crossings_again;
    sum->crossings_busy += totals->crossings_busy;
    sum->promises_kept += totals->promises_kept;
    sum->promises_gone += totals->promises_gone;
    sum->promises_found += totals->promises_found;
    sum->decisions_found += totals->decisions_found;
    sum->promises_lost_kept += totals->promises_lost_kept;
    sum->promises_lost_gone += totals->promises_lost_gone;
    sum->shares_lost += totals->shares_lost;
    sum->turns_asked += totals->turns_asked;
    sum->turns_given += totals->turns_given;
    sum->turns_run_out += totals->turns_run_out;
    if (cut) {
        cuts_add(&world->cuts, group);
    }
}

/* cut: it ends in the middle of what it was doing. */
static void life_sum(struct life *life, bool cut) {
    struct world *world = life->node->world;

    carrier_sum(life->carrier);
    if (life_kv(life)) {
        kv_add(life, life_kv(life), cut);
        laps_end(life);
    } else if (cut && !life->client && life->node->incarnation > 1) {
        world->replays++;
        world->replays_cut++;
    }
    if (life->ost) {
        struct ost_counters now;

        ost_counters_get(life->ost, &now);
        world->ost_sum.corrupt_blocks += now.corrupt_blocks;
        world->ost_sum.capabilities_checked += now.capabilities_checked;
        world->ost_sum.capabilities_refused += now.capabilities_refused;
        world->ost_sum.cuts_through_damage += now.cuts_through_damage;
        world->ost_sum.small_writes += now.small_writes;
        world->ost_sum.copies += now.copies;
        world->ost_sum.punches += now.punches;
        world->ost_sum.promises += now.promises;
        world->ost_sum.writes += now.writes;
        if (life->node->index >= world_first_osts(&world->options)) {
            world->late_writes += now.writes + now.small_writes;
        }
        world->ost_sum.cuts += now.cuts;
        world->ost_sum.deletes += now.deletes;
    }
    if (life->manager) {
        struct manager_hearing now;

        manager_hearing_get(life->manager, &now);
        world->hearing_sum.silent_evicted += now.silent_evicted;
        world->hearing_sum.silent_held += now.silent_held;
        world->joins_gathered += manager_joins_gathered(life->manager);
    }
    if (life->group) {
        group_add(world, life->group, cut);
    }
    if (life->client) {
        struct client_counters now;

        client_counters_get(life->client, &now);
        world->client_sum.retries += now.retries;
        world->client_sum.reattachments += now.reattachments;
        world->client_sum.reopened += now.reopened;
        world->client_sum.conversions += now.conversions;
        world->client_sum.late_closes += now.late_closes;
        world->client_sum.late_away += now.late_away;
        world->client_sum.late_opens += now.late_opens;
        world->client_sum.returns += now.returns;
        world->client_sum.window_waits += now.window_waits;
    }
}

uint64_t world_evictions(const struct world *world) {
    struct manager_hearing now = {.silent_evicted = 0};

    if (node_manager(world->manager)) {
        manager_hearing_get(world->manager->life->manager, &now);
    }
    return world->hearing_sum.silent_evicted + now.silent_evicted;
}

void world_sum(struct world *world) {
    for (uint32_t i = 0; i < world->node_count; i++) {
        if (world->nodes[i].life) {
            life_sum(world->nodes[i].life, false);
        }
    }
}

static void life_enter(void *context) {
    struct life *life = context;

    worker_bind(&life->worker);
    carrier_enter(life->carrier);
}

static void life_leave(void *context) {
    struct life *life = context;

    carrier_leave(life->carrier);
    worker_bind(NULL);
}

static void life_free(struct life *life) {
    if (!life) {
        return;
    }
    life_enter(life);
    carrier_end(life->carrier);
    /* It forgets calls that lie in the memory of those below. */
    rpc_free(life->rpc);
    client_free(life->client);
    ost_abandon(life->ost);
    group_abandon(life->group);
    member_free(life->member);
    free(life->map);
    manager_abandon(life->manager);
    carrier_free(life->carrier);
    worker_bind(NULL);
    free(life);
}

static void node_down(struct node *node) {
    node->is_stopped = false;
    life_free(TAKE_PTR(node->life));
}

void node_kill(struct node *node) {
    life_sum(node->life, true);
    sim_kill(node->process);
    node_down(node);
}

void node_power(struct node *node) {
    if (node->life) {
        life_sum(node->life, true);
    }
    sim_power(node->process);
    node_down(node);
    accords_power(node);
    node->lost_ns = sim_now_ns(node->world->sim);
}

void node_stop(struct node *node) {
    sim_stop(node->process);
    node->is_stopped = true;
}

void node_go_on(struct node *node) {
    if (node->is_stopped) {
        sim_continue(node->process);
        node->is_stopped = false;
    }
}

void world_cut(struct world *world, const struct node *from, const struct node *to) {
    if (world->options.streams) {
        sim_stream_cut(from->process, to->process, true);
    } else {
        sim_net_cut(world->net, from->process, to->process, true);
    }
}

void world_heal(struct world *world) {
    if (world->options.streams) {
        sim_stream_heal(world->sim);
    } else {
        sim_net_heal(world->net);
    }
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
        free(world->nodes[i].map);
        key_ring_free(world->nodes[i].keys);
    }
    /* Packets under way free themselves with the world's events, but need the network till then. */
    struct sim_net *net = world->net;
    absences_free(world->absences);
    pools_free(world->pools);
    pushes_free(world->pushes);
    renewals_free(world->renewals);
    accords_free(world->accords);
    sim_free(world->sim);
    sim_net_free(net);
    free(world);
}

uint64_t world_names_lost_ns(const struct world *world) {
    uint64_t lost_ns = 0;

    for (uint32_t i = 0; i < world->options.mdt_count; i++) {
        lost_ns = MAX(lost_ns, world->mdts[i].lost_ns);
    }
    return lost_ns;
}

struct node *world_any_mdt(struct world *world, struct prng *prng) {
    uint32_t count = world->options.mdt_count;

    struct node *mdt = &world->mdts[count > 1 ? prng_below(prng, count) : 0];

    return node_is_lost(mdt) ? world->mdts : mdt;
}

struct node *world_mdt_of(struct world *world, uint64_t ino) {
    return &world->mdts[world->map.slot_groups[ino_slot((struct ino){ino}).value]];
}

void node_enter(struct node *node) {
    life_enter(node->life);
}

void node_leave(struct node *node) {
    life_leave(node->life);
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

    carrier_tick(life->carrier);
    if (life->manager) {
        manager_tick(life->manager);
    }
    if (life->group) {
        group_tick(life->group);
        member_tick(life->member);
    }
    if (life->ost) {
        ost_tick(life->ost);
    }
    if (life->client) {
        client_tick(life->client);
    }
}

static uint32_t target_of(const struct world *world, struct log_id log) {
    for (uint32_t i = 0; i < world->node_count; i++) {
        const struct node *node = &world->nodes[i];

        if (node->target_id > MANAGER_TARGET && node_log(node).value == log.value) {
            return node->target_id;
        }
    }
    return MANAGER_TARGET;
}

static void life_send(struct life *life, struct call *call) {
    struct world *world = life->node->world;
    struct sim_net_faults *faults = sim_net_faults(world->net);
    const struct sim_net_faults kept = *faults;
    uint64_t later_ns = world->sent ? world->sent(world->sent_context, call) : 0;

    if (later_ns > 0) {
        faults->delay_ns_min = faults->delay_ns_max = later_ns;
    }
    carrier_ops(world)->send(life->carrier, call);
    *faults = kept;
}

/* The transport, which is told of each call as it leaves. */
static void told_send(void *context, struct call *call) {
    struct life *life = context;
    struct world *world = life->node->world;

    /* They ask all the time whether there is anything new. */
    if (world->options.tell && call->header.opcode != OP_NODE_JOIN &&
        call->header.opcode != OP_MAP_WAIT) {
        char text[256];

        wire_print_request(call->header.opcode, &call->request, text, sizeof text);
        fprintf(world->options.tell,
                "%12.6f ms %-10s -> target %u #%" PRIu64 " term %" PRIu64 " session %" PRIu64
                " attempt %u: %s\n",
                (double)sim_now_ns(world->sim) / 1e6, sim_process_name(life->node->process),
                target_of(world, call->header.log), call->header.sequence, call->header.term,
                call->header.session.value, call->attempts, text);
    }
    if (call->header.opcode == OP_MAP_CHANGES || call->header.opcode == OP_MAP_GET) {
        life->node->map_opcode = call->header.opcode;
    }
    if (world->absences) {
        absences_sent(world->absences, life->node, call);
    }
    life_send(life, call);
}

static void told_forget(void *context, struct call *call) {
    const struct life *life = context;

    carrier_ops(life->node->world)->forget(life->carrier, call);
}

static bool told_is_away(void *context, struct log_id log) {
    const struct life *life = context;

    return carrier_ops(life->node->world)->is_away(life->carrier, log);
}

static bool told_has_waited(void *context, const struct call *call) {
    const struct life *life = context;

    return carrier_ops(life->node->world)->has_waited(life->carrier, call);
}

static const struct transport_ops told_packets = {.send = told_send,
                                                  .forget = told_forget,
                                                  .is_away = told_is_away,
                                                  .has_waited = told_has_waited};
static const struct transport_ops told_streams = {
    .send = told_send, .is_away = told_is_away, .has_waited = told_has_waited, .reliable = true};

static int life_rpc(struct life *life) {
    const struct rpc_options options = {
        .transport = life->node->world->options.streams ? &told_streams : &told_packets,
        .transport_context = life,
        .env = life->env,
        .resend_ns = 20 * NS_PER_MS,
        .logs_max = WORLD_NODES_MAX,
    };

    return rpc_new(&options, &life->rpc);
}

static int life_open(struct life *life, char problem[256]) {
    struct node *node = life->node;
    int r = carrier_new(node, life->env, &life->carrier);

    life->rpc = NULL;
    r = r < 0 ? r : life_rpc(life);
    if (r < 0) {
        return r;
    }
    return life_open_role(life, problem);
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
    sim_process_set_hooks(node->process, &(struct sim_hooks){life_enter, life_leave, life});
    return life;
}

bool node_start(struct node *node, uint64_t crash_after) {
    rotation_start(node);
    struct life *life = life_new(node);
    char problem[256] = "";

    node->life = life;
    node->incarnation++;
    sim_crash_after(node->process, crash_after);
    life_enter(life);
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
    life_leave(life);
    if (r < 0 && sim_process_is_crashed(node->process)) {
        return true;
    }
    if (r < 0) {
        snprintf(node->world->failure, sizeof node->world->failure, "%s cannot start: %s: %s",
                 sim_process_name(node->process), err_name(r), problem);
    }
    return r == 0;
}

/* The directory is made, or is there; the next change is the first that would matter. */
int node_try(struct node *node, char problem[256]) {
    struct life *life = life_new(node);

    problem[0] = '\0';
    node->life = life;
    sim_crash_after(node->process, 1);
    life_enter(life);
    int r = life_open(life, problem);
    life_leave(life);
    bool crashed = sim_process_is_crashed(node->process);
    sim_kill(node->process);
    node_down(node);
    node->world->own_kills++;
    return crashed ? 0 : r;
}

void node_wipe(struct node *node) {
    static const char *const files[] = {"kv/log", "data"};

    sim_crash_after(node->process, UINT64_MAX);
    struct env *env = sim_restart(node->process);
    int r = env->ops->shared_remove(env, "ring");
    for (size_t i = 0; i < ARRAY_SIZE(files) && (r == 0 || r == -ERR_NOT_FOUND); i++) {
        r = env->ops->file_remove(env, files[i]);
    }
    if (r < 0 && r != -ERR_NOT_FOUND) {
        abort();
    }
    sim_kill(node->process);
    node->world->own_kills++;
    kv_mem_store_free(node->store);
    store_new(node);
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
