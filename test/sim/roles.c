/* What runs on a node, with which sizes. A third of the seeds has the smallest that each part
 * allows, so that what is full, waits and goes round happens all the time. */
#include "accords.h"
#include "renewals.h"
#include "rotation.h"
#include "kv/kv_mem.h"
#include "laps.h"
#include "life.h"
#include "layout/map_lost.h"
#include "losses.h"
#include "pushes.h"
#include "wire/wire_lives.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BULK_BYTES_MAX = 2 * 1024 * 1024, ASK_MS = 100, POOL_MS = 200, JOIN_MS = 80 };
enum { FULL_MS = 4000 };
/* The smallest ring of records of a storage target that frees so little at a time. */
enum { WRAPS_BYTES = 72 * KIB, WRAPS_SEGMENTS = 4 };

/* One more than there are clients, so that who begins anew meets his predecessor. */
static uint32_t sessions_max(const struct world_options *world) {
    return world->full ? world->client_count + 1 : 64;
}

struct kv_options node_kv_options(const struct node *node) {
    const struct world_options *world = &node->world->options;
    bool smallest = world->smallest;
    bool ost = node->role == NODE_OST;
    /* Of an OST that answers requests of WORLD_CALL_BYTES, the smallest. */
    uint32_t ring_bytes = !ost ? world->ring_bytes : world->wraps ? WRAPS_BYTES : 448 * KIB;
    struct kv_options options = {
        .directory = "kv",
        .shared_name = "ring",
        .base = &kv_mem_ops,
        .base_store = node->store,
        .warm_sets = world->cold_per_mille >= 1000 ? 8 : 0,
        .ring_bytes = ring_bytes,
        .ring_data_bytes = ost ? (smallest || world->wraps ? 256 * KIB : 512 * KIB) : 0,
        .disk_log_bytes = (uint64_t)ring_bytes * world->log_rings,
        .changes_bytes_max = smallest || world->full ? 256 * KIB : 512 * KIB,
        .base_memory_bytes = 64 * MIB,
        .sync_interval_ns = world->sync_interval_ns,
        .checkpoint_ns = world->checkpoint_ns,
        .sessions_max = sessions_max(world),
        .outcomes_max = world->full ? 8 * sessions_max(world)
                                    : 8 * 64 + (smallest ? 0U : 1024U << world->seed % 4),
    };

    options.owner_id[0] = (uint8_t)node->target_id;
    options.owner_id[1] = 0x5a;
    if (node->role != NODE_MANAGER) {
        options.log_id = node_log(node);
    }
    return options;
}

static int open_manager(struct life *life, char problem[256]) {
    struct node *node = life->node;
    bool gathers = node->world->options.seed % 2 == 1;
    const struct manager_options options = {
        .env = life->env,
        .kv = node_kv_options(node),
        .rpc = life->rpc,
        .map = &node->world->map,
        .rebuilt = node->world->rebuilt,
        .target = {node->target_id},
        .keys = node->keys,
        .session_timeout_ns = node->world->options.session_timeout_ns,
        .sessions_max = sessions_max(&node->world->options),
        .map_waits_max = pushes_waits_max(node->world),
        .map_wait_ns = PUSHES_WAIT_S * NS_PER_S,
        .join_pause_ns = gathers ? JOIN_MS * NS_PER_MS : 0,
        .joins_at_once = gathers,
        .pool_interval_ns = POOL_MS * NS_PER_MS,
        .renew_wait_ns = RENEWALS_WAIT_MS * NS_PER_MS,
        .life_stands_ns = WORLD_LIFE_STANDS_MS * NS_PER_MS,
    };

    return manager_open(&options, &life->manager, problem);
}

/* As a daemon does: what is lost is so in memory at once. */
static void map_takes(void *context, const struct cluster_map *map) {
    struct life *life = context;

    for (uint32_t i = 0; i < map->target_count; i++) {
        rpc_log_lose(life->rpc, cluster_map_lost_log(map, i));
    }
}

/* In half of the seeds in which a metadata target gets lost, one that is left can't keep for a
 * while the map that says so; it may start anew meanwhile. */
static bool is_full(struct node *node, const struct cluster_map *map) {
    const struct world_options *options = &node->world->options;
    bool may = options->late_mdt && options->mdt_count > 2 && options->seed / 16 % 2 == 0 &&
               node->index == options->seed % (options->mdt_count - 1);
    uint64_t now_ns = sim_now_ns(node->world->sim);

    if (!may || !losses_add_mdt(node->map, map)) {
        return false;
    }
    if (node->full_ns == 0) {
        node->full_ns = now_ns;
        node->world->maps_unkept++;
    }
    return now_ns - node->full_ns < FULL_MS * NS_PER_MS;
}

/* On disk before it is used. */
static int map_came(void *context, const struct cluster_map *map) {
    struct life *life = context;
    struct node *node = life->node;

    if (is_full(node, map)) {
        return -ERR_NO_SPACE;
    }
    cluster_map_copy(node->map, map);
    pushes_came(node, map);
    rotation_map(node);
    node->world->maps++;
    if (map->version > node->world->map.version) {
        cluster_map_copy(&node->world->map, map);
    }
    renewals_map(node);
    return group_map_set(life->group, map);
}

/* Of those that are up, as if they were in its process. */
static size_t spaces(void *context, uint8_t *ret_spaces) {
    struct life *life = context;
    struct world *world = life->node->world;
    size_t bytes = 0;

    for (uint32_t i = 0; i < world_first_osts(&world->options); i++) {
        struct ost *ost = node_ost(&world->osts[i]);
        struct ost_space space;

        if (ost && ost_space_get(ost, &space)) {
            const struct wire_space told = {.target = world->osts[i].target_id,
                                            .used_bytes = space.used_bytes,
                                            .available_bytes = space.available_bytes};

            memcpy(ret_spaces + bytes, &told, sizeof told);
            bytes += sizeof told;
        }
    }
    return bytes;
}

static void keys(void *context, uint64_t ret_names[2]) {
    const struct life *life = context;

    rotation_names(life->node->world, ret_names);
}

bool node_tells_lives(const struct node *node) {
    const struct cluster_map *map = node->map;
    const struct map_target *target = cluster_map_target(map, (struct target_id){node->target_id});

    return target && target->node.value == map->nodes[0].id.value;
}

/* Of its own log: each metadata target says who it is as the first node. */
static size_t lives(void *context, uint8_t *ret_lives) {
    const struct life *life = context;
    const struct kv *kv = group_kv(life->group);
    const struct wire_life told = {.log = kv_log_id(kv).value,
                                   .term = kv_term(kv),
                                   .life_high = kv_life(kv).high,
                                   .life_low = kv_life(kv).low};

    if (!node_tells_lives(life->node)) {
        return 0; /* Of one that has joined another node tells. */
    }
    memcpy(ret_lives, &told, sizeof told);
    return sizeof told;
}

static uint32_t key_number(void *context) {
    const struct life *life = context;

    return life->node->keys ? renewals_told(life->node->world) : 0;
}

static int open_member(struct life *life) {
    const struct cluster_map *map = life->node->map;
    const struct member_options options = {.env = life->env,
                                           .rpc = life->rpc,
                                           .key = {map->nodes[0].key[0], map->nodes[0].key[1]},
                                           .target_count = map->nodes[0].target_count,
                                           .mdt_count = map->nodes[0].mdt_count,
                                           .address = "",
                                           .map = map,
                                           .who = life->node->target_id | life->node->incarnation
                                                                              << 32,
                                           .ask_ns = ASK_MS * NS_PER_MS,
                                           .hooks = {.map = map_came,
                                                     .map_takes = map_takes,
                                                     .spaces = spaces,
                                                     .lives = lives,
                                                     .keys = keys,
                                                     .key_number = key_number,
                                                     .context = life}};
    int r = member_new(&options, &life->member);

    if (r == 0) {
        member_ready(life->member);
    }
    return r;
}

static void promise_ended(void *context, const struct cross_id *id, enum promise_end end) {
    accords_note(context, id, end);
}

static int open_group(struct life *life, char problem[256]) {
    struct node *node = life->node;
    const struct world_options *world = &node->world->options;

    life->map = malloc(sizeof *life->map);
    if (!life->map) {
        return -ERR_NO_MEMORY;
    }
    cluster_map_copy(life->map, node->map);
    const struct group_options options = {
        .env = life->env,
        .kv = node_kv_options(node),
        .map = life->map,
        .target = {node->target_id},
        .rpc = life->rpc,
        .keys = node->keys,
        .root_mode = 0755,
        .default_layout = {.chunk_bytes = world->chunk_bytes, .stripe_count = STRIPE_ALL},
        .sessions_max = world->full       ? sessions_max(world)
                        : world->smallest ? 16
                                          : 64,
        .opens_max = world->smallest ? 192 : 1024,
        .name_hash_bits = world->seed % 4 == 0 ? 3 : 0,
        .move_refusals = world->move_refusals,
        /* Of these two for one log: who is over that asks again. */
        .crossings_max = world->full                                         ? 8
                         : world->seed % 4 == 1 && world->move_refusals == 0 ? 8
                                                                             : 0,
        .listing_step = world->seed % 3 == 0 ? 5 : 0,
        .promise_ended = promise_ended,
        .promise_context = node,
    };

    int r = group_open(&options, &life->group, problem);
    return r < 0 ? r : open_member(life);
}

static void log_line(void *context, const char *line) {
    struct node *node = context;

    snprintf(node->world->last_line, sizeof node->world->last_line, "%s", line);
    sim_count(node->world->sim, "lines logged by OSTs", 1);
}

static int open_ost(struct life *life, char problem[256]) {
    struct node *node = life->node;
    const struct world_options *world = &node->world->options;
    bool smallest = world->smallest || world->full;
    const struct ost_options options = {
        .env = life->env,
        .kv = node_kv_options(node),
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
        .freed_max = 1, /* as few as it needs */
        .step_segments = world->wraps ? WRAPS_SEGMENTS : 0,
        .verify_on_arrival = true,
        .keys = node->keys,
        .unsigned_allowed = true,
        .log = log_line,
        .log_context = node,
    };

    return ost_open(&options, &life->ost, problem);
}

static void client_map_came(void *context, const struct cluster_map *map) {
    pushes_came(context, map);
}

static int open_client(struct life *life) {
    struct node *node = life->node;
    const struct world_options *world = &node->world->options;
    char origin[32];
    const struct client_options options = {
        .env = life->env,
        .rpc = life->rpc,
        .node = {CLIENT_NODE_FIRST + node->index},
        .incarnation = node->incarnation,
        .origin = origin,
        /* Also behind a loss of power: oracles take what a client had under way for over when it
         * is there again, which at another place the manager may not know. */
        .place = CLIENT_NODE_FIRST + node->index,
        .map_came = client_map_came,
        .map_context = node,
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

struct log_id node_log(const struct node *node) {
    const struct cluster_map *map = &node->world->map;
    const struct target_id target = {node->target_id};
    struct log_id log = cluster_map_log_of(map, target);

    return node->role == NODE_MANAGER ? LOG_MANAGER
           : log.value != 0           ? log
                                      : cluster_map_first_log(map, target);
}

static int life_serve(struct life *life) {
    struct node *node = life->node;
    uint32_t calls_max = node->world->options.smallest ? 16 : 64;
    const struct carrier_limits limits = {
        .calls_max = calls_max,
        .reserve_count = {[MESSAGE_CONTROL] = 2,
                          [MESSAGE_RELEASE] = 4,
                          [MESSAGE_REQUEST] = 4,
                          [MESSAGE_BACKGROUND] = 1},
        .bulk_bytes_max = BULK_BYTES_MAX,
    };

    return carrier_serve(life->carrier, node_log(node), life_actor(life), &limits);
}

int life_open_role(struct life *life, char problem[256]) {
    int r = 0;

    switch (life->node->role) {
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
    if (r == 0) {
        life->recovered = kv_position(life_kv(life));
        laps_begin(life);
    }
    return r < 0 ? r : life_serve(life);
}

struct kv *life_kv(const struct life *life) {
    return life->manager ? manager_kv(life->manager)
           : life->group ? group_kv(life->group)
           : life->ost   ? ost_kv(life->ost)
                         : NULL;
}
