/* The contract is in newcomers.h. */
#include "renewals.h"
#include "rotation.h"
#include "newcomers.h"
#include "life.h"
#include "rpc/call_origin.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* With one target each, in the end. */
enum { OST_NEWCOMER = 1, MDT_NEWCOMER = 4 };
enum {
    NEWCOMERS = 5,
    TARGETS_MOST = 3,
    PAUSE_MS = 400,
    PATIENCE_S = 5,
    ADDRESS_BYTES = 32,
    KEYS_STEP = 100
};

struct newcomer {
    struct newcomers *all;
    uint64_t key;
    uint32_t target_count;
    uint32_t mdt_count;
    char address[ADDRESS_BYTES];
    struct node *serves; /* that it becomes, once it has numbers; NULL: it serves nothing */
    uint32_t node;       /* 0: not known yet */
    uint32_t first_target;
    bool is_asking;
    uint64_t life;        /* of the process that asks */
    uint64_t map_version; /* highest that was answered to anybody when it asked */
    bool last, done;
    bool is_gone;
    bool is_formatted;  /* its target can be called, or has been */
    bool is_told;       /* the manager knows of its targets */
    bool is_registered; /* and has said so, or knows its address */
    struct call call;
};

struct newcomers {
    struct world *world;
    struct prng prng;
    struct actor origin;
    struct newcomer nodes[NEWCOMERS];
    uint64_t life;        /* of the process that has asked last */
    uint64_t map_version; /* highest that was answered */
    uint64_t joins;
    char failure[200];
};

static bool overlap(const struct newcomer *a, const struct newcomer *b) {
    return a->first_target < b->first_target + b->target_count &&
           b->first_target < a->first_target + a->target_count;
}

static void numbers_check(struct newcomer *node, const struct node_join_reply *reply) {
    struct newcomers *all = node->all;
    bool known = node->node != 0;

    if ((known && (reply->node != node->node || reply->first_target != node->first_target)) ||
        reply->node <= 1 || reply->map_version < node->map_version) {
        snprintf(all->failure, sizeof all->failure,
                 "newcomer %" PRIu64 " was node %" PRIu32 " from target %" PRIu32
                 " on and is node %" PRIu32 " from %" PRIu32 " on, map %" PRIu64 " behind %" PRIu64,
                 node->key, node->node, node->first_target, reply->node, reply->first_target,
                 reply->map_version, node->map_version);
    }
    node->node = reply->node;
    node->first_target = reply->first_target;
    if (node->serves) {
        node->serves->target_id = reply->first_target; /* As its directory says from now on. */
    }
    all->map_version = MAX(all->map_version, reply->map_version);
    for (int i = 0; i < NEWCOMERS; i++) {
        const struct newcomer *other = &all->nodes[i];

        if (other != node && other->node != 0 &&
            (other->node == node->node || overlap(node, other))) {
            snprintf(all->failure, sizeof all->failure,
                     "newcomers %" PRIu64 " and %" PRIu64 " have numbers in common", node->key,
                     other->key);
        }
    }
}

static bool is_reached(const struct node_join_request *request) {
    return request->ready && (request->target_count > 0 || request->address.size > 0);
}

static void answered(struct call *call) {
    struct newcomer *node = call->context;

    node->is_asking = false;
    if (call->request.node_join.key_high != node->key) {
        return; /* Of a directory that is removed. */
    }
    if (call->result == 0) {
        numbers_check(node, &call->reply.node_join);
        node->all->joins++;
        node->done = node->done || (node->last && (!node->serves || node->is_told));
        node->is_told = node->is_told || (node->serves && call->request.node_join.ready);
        node->is_registered = node->is_registered || is_reached(&call->request.node_join);
    } else if (call->result != -ERR_TIMED_OUT && call->result != -ERR_CLOSED &&
               call->result != -ERR_IO && call->result != -ERR_NO_SPACE) {
        snprintf(node->all->failure, sizeof node->all->failure, "newcomer %" PRIu64 ": %s",
                 node->key, err_name(call->result));
    }
}

static bool node_is_open(struct node *node) {
    return node_ost(node) != NULL || node_group(node) != NULL;
}

/* Without targets there is nothing to be ready for but an address; with them they are formatted. */
static bool is_ready(const struct newcomer *node) {
    const struct node *serves = node->serves;

    return node->node != 0 &&
           (serves ? node->is_formatted || node_is_open(node->serves) : node->target_count == 0);
}

static void ask(struct newcomer *node) {
    struct newcomers *all = node->all;
    uint64_t names[2];
    struct node *asker = all->world->mdts;
    bool ready = is_ready(node);

    node->is_formatted = node->serves && ready;
    if (ready && !node->serves && !node->done && prng_chance(&all->prng, 1, 3)) {
        snprintf(node->address, sizeof node->address, "10.0.0.%u:7400",
                 (unsigned)prng_between(&all->prng, 1, 250));
    }
    const struct node *has_keys = node->serves ? node->serves : all->world->manager;
    rotation_node_names(has_keys, names);
    if (node->serves) {
        renewals_hear(node->serves);
    }
    node->call = (struct call){
        .header = {.opcode = OP_NODE_JOIN, .log = LOG_MANAGER},
        .request.node_join = {.key_high = node->key,
                              .key_low = 77,
                              .target_count = node->target_count,
                              .members_key = names[0],
                              .members_key_older = names[1],
                              .mdt_count = node->mdt_count,
                              .ready = ready,
                              .capability_number =
                                  has_keys->keys ? key_ring_number(has_keys->keys) : 0,
                              .address = {(const uint8_t *)node->address,
                                          ready ? strlen(node->address) : 0}},
        .origin = &all->origin,
        .done = answered,
        .context = node,
        .deadline_ns = env_now_ns(asker->life->env) + PATIENCE_S * NS_PER_S};
    node->is_asking = true;
    node->map_version = all->map_version;
    node->life = asker->incarnation;
    node_enter(asker);
    call_start(node_rpc(asker), &node->call);
    node_leave(asker);
}

static void newcomer_run(void *context) {
    struct newcomer *node = context;
    struct newcomers *all = node->all;
    struct node *asker = all->world->mdts;

    /* What a process asked that is gone is answered to nobody; nor are steps that it owed run. */
    if (node->is_asking && (!node_is_up(asker) || asker->incarnation != node->life)) {
        node->is_asking = false;
    }
    if (node_is_up(asker) && asker->incarnation != all->life) {
        all->life = asker->incarnation;
        actor_init(&all->origin, "newcomers", call_origin_step);
    }
    if (!node->is_asking && node_is_up(asker) && !asker->is_stopped && !node->is_gone) {
        ask(node);
    }
    sim_schedule(all->world->sim, NULL, prng_between(&all->prng, 1, PAUSE_MS) * NS_PER_MS,
                 newcomer_run, node);
}

/* NULL: all are part of the cluster from its beginning. */
static struct node *late(struct node *last) {
    return node_is_absent(last) ? last : NULL;
}

struct newcomers *newcomers_new(struct world *world, uint64_t seed) {
    struct newcomers *all = calloc(1, sizeof *all);

    if (!all) {
        abort();
    }
    all->world = world;
    prng_init(&all->prng, seed ^ UINT64_C(0x6e6577636f6d6572));
    actor_init(&all->origin, "newcomers", call_origin_step);
    for (uint32_t i = 0; i < NEWCOMERS; i++) {
        all->nodes[i] =
            (struct newcomer){.all = all, .key = i + 1, .target_count = i % (TARGETS_MOST + 1)};
        if (i == OST_NEWCOMER) {
            all->nodes[i].serves = late(&world->osts[world->options.ost_count - 1]);
        } else if (i == MDT_NEWCOMER) {
            all->nodes[i].serves = late(&world->mdts[world->options.mdt_count - 1]);
            all->nodes[i].mdt_count = all->nodes[i].target_count = all->nodes[i].serves ? 1 : 0;
        }
        newcomer_run(&all->nodes[i]);
    }
    return all;
}

void newcomers_free(struct newcomers *newcomers) {
    free(newcomers);
}

void newcomers_end(struct newcomers *newcomers) {
    for (int i = 0; i < NEWCOMERS; i++) {
        newcomers->nodes[i].last = true;
    }
}

void newcomers_gone(struct newcomers *newcomers, const struct node *node) {
    for (int i = 0; i < NEWCOMERS; i++) {
        newcomers->nodes[i].is_gone |= newcomers->nodes[i].serves == node;
    }
}

static const struct map_node *map_find(const struct newcomer *node, const struct cluster_map *map) {
    const struct map_node *there = cluster_map_node(map, (struct node_id){node->node});

    return there && there->key[0] == node->key ? there : NULL;
}

static void join_anew(struct newcomer *node, const struct cluster_map *map) {
    struct node *serves = node->serves;

    node->key += KEYS_STEP;
    node->node = node->first_target = 0;
    node->is_formatted = false;
    if (serves && serves->target_id != 0) {
        if (node_is_up(serves)) {
            node_kill(serves);
        }
        node_wipe(serves);
        serves->target_id = 0;
    }
    if (serves && serves->map) {
        cluster_map_copy(serves->map, map);
    }
}

uint32_t newcomers_rebuilt(struct newcomers *newcomers, const struct cluster_map *map) {
    uint32_t count = 0;

    for (int i = 0; i < NEWCOMERS; i++) {
        struct newcomer *node = &newcomers->nodes[i];
        bool is_known = node->node != 0 && map_find(node, map);

        if (node->is_gone) {
            continue;
        }
        if (!is_known && (node->node != 0 || node->is_asking)) {
            count += node->node != 0;
            join_anew(node, map);
        }
        node->is_registered = false;
        node->is_told = is_known && node->serves &&
                        cluster_map_target(map, (struct target_id){node->first_target});
    }
    return count;
}

bool newcomers_are_done(const struct newcomers *newcomers) {
    for (int i = 0; i < NEWCOMERS; i++) {
        if (!newcomers->nodes[i].done && !newcomers->nodes[i].is_gone) {
            return false;
        }
    }
    return true;
}

bool newcomers_are_numbered(const struct newcomers *newcomers) {
    for (int i = 0; i < NEWCOMERS; i++) {
        if (newcomers->nodes[i].node == 0) {
            return false;
        }
    }
    return true;
}

/* One whose key is behind the map's number is answered, and stands in no map yet. */
static bool is_in_map(const struct newcomer *node) {
    struct node *manager = node->all->world->manager;
    const struct cluster_map *map = node_is_up(manager) ? manager_map(node_manager(manager)) : NULL;
    const struct map_node *there = map ? cluster_map_node(map, (struct node_id){node->node}) : NULL;

    return there && (there->target_count == 0
                         ? there->address[0] != '\0'
                         : cluster_map_target(map, (struct target_id){node->first_target}) != NULL);
}

uint32_t newcomers_registered(const struct newcomers *newcomers) {
    uint32_t count = 0;

    for (int i = 0; i < NEWCOMERS; i++) {
        const struct newcomer *node = &newcomers->nodes[i];

        count += node->is_registered && !node->is_gone && is_in_map(node);
    }
    return count;
}

const char *newcomers_failure(const struct newcomers *newcomers) {
    return newcomers->failure[0] ? newcomers->failure : NULL;
}

uint64_t newcomers_joins(const struct newcomers *newcomers) {
    return newcomers->joins;
}
