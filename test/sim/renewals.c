/* The contract is in renewals.h. */
#include "renewals.h"
#include "layout/map_lost.h"
#include "life.h"
#include "losses.h"
#include "rpc/call_origin.h"
#include <inttypes.h>
#include <stdlib.h>

enum {
    ASK_CHANCE = 120, /* one in so many turns, some milliseconds apart */
    TWICE_CHANCE = 3, /* and at once again */
    HEAR_CHANCE = 8,
    PATIENCE_S = 2,
    OVER_S = 5, /* more than the patience, and what the last copy waits at the manager */
};

struct renewals {
    struct world *world;
    struct actor origin;
    struct call call;
    struct node *asker;
    uint64_t life; /* of the asker, when it has asked */
    uint64_t asked_ns;
    uint32_t before; /* the highest number that anybody had when it was asked */
    bool is_asking;
    bool is_answered; /* with a number: another may be asked for at once */
    uint64_t refused;
    struct cluster_map *heard[WORLD_OSTS_MAX]; /* by storage targets, or NULL */
    const struct node *lost; /* for good, as the manager has told before others knew; NULL: none */
    char failure[200];
};

struct renewals *renewals_new(struct world *world) {
    struct renewals *renewals = calloc(1, sizeof *renewals);

    if (!renewals) {
        abort();
    }
    renewals->world = world;
    return renewals;
}

void renewals_free(struct renewals *renewals) {
    for (int i = 0; renewals && i < WORLD_OSTS_MAX; i++) {
        free(renewals->heard[i]);
    }
    free(renewals);
}

/* One that is lost does not start again. */
static bool signs(const struct node *node) {
    const struct renewals *renewals = node->world->renewals;
    bool is_lost = node_is_lost(node) || (renewals && node == renewals->lost);

    return node->role == NODE_MDT && node->keys && !is_lost &&
           cluster_map_target(&node->world->map, (struct target_id){node->target_id});
}

/* Between each that signs and each that checks. */
static void numbers_check(struct world *world) {
    struct renewals *renewals = world->renewals;

    if (!renewals) {
        return;
    }
    for (uint32_t i = 0; i < world->node_count; i++) {
        for (uint32_t j = 0; j < world->node_count; j++) {
            const struct node *signer = &world->nodes[i];
            const struct node *checker = &world->nodes[j];

            if (signs(signer) && checker->role == NODE_OST && checker->keys &&
                key_ring_number(checker->keys) > key_ring_number(signer->keys) + 1) {
                snprintf(renewals->failure, sizeof renewals->failure,
                         "%s signs by number %" PRIu32 ", and %s is at %" PRIu32,
                         sim_process_name(signer->process), key_ring_number(signer->keys),
                         sim_process_name(checker->process), key_ring_number(checker->keys));
            }
        }
    }
}

void renewals_map(struct node *node) {
    struct world *world = node->world;

    if (node->keys) {
        key_ring_number_set(node->keys, node->map->capability_number);
        key_ring_number_set(world->manager->keys, node->map->capability_number);
    }
    numbers_check(world);
}

static void lost_note(struct world *world, const struct cluster_map *map) {
    for (uint32_t i = 0; world->renewals && i < world->options.mdt_count; i++) {
        if (cluster_map_is_lost(map, (struct target_id){world->mdts[i].target_id})) {
            world->renewals->lost = &world->mdts[i];
        }
    }
}

/* On its node's disk, as that goes by it. */
static void heard_keep(const struct node *ost, const struct cluster_map *map) {
    struct renewals *renewals = ost->world->renewals;
    struct cluster_map **heard = renewals ? &renewals->heard[ost->index] : NULL;

    if (heard && !*heard) {
        *heard = calloc(1, sizeof **heard);
        if (!*heard) {
            abort();
        }
    }
    if (heard && (*heard)->version < map->version) {
        cluster_map_copy(*heard, map);
    }
}

const struct cluster_map *renewals_heard(const struct node *ost) {
    const struct renewals *renewals = ost->world->renewals;

    return renewals && ost->role == NODE_OST ? renewals->heard[ost->index] : NULL;
}

void renewals_rebuilt(struct world *world, const struct cluster_map *map) {
    if (world->renewals) {
        world->renewals->before = map->capability_number;
    }
}

/* What it would find where it asks for a map; one that is being rebuilt answers nobody. */
void renewals_hear(struct node *node) {
    const struct manager *manager = node_manager(node->world->manager);

    if (manager && node->keys && node->role == NODE_OST && !node->world->rebuilt) {
        heard_keep(node, manager_map(manager));
        lost_note(node->world, manager_map(manager));
        key_ring_number_set(node->keys, manager_map(manager)->capability_number);
        numbers_check(node->world);
    }
}

uint32_t renewals_told(const struct world *world) {
    uint32_t number = key_ring_number(world->manager->keys);

    for (uint32_t i = 0; i < world->node_count; i++) {
        if (signs(&world->nodes[i])) {
            number = MIN(number, key_ring_number(world->nodes[i].keys));
        }
    }
    return number;
}

static void answered(struct call *call) {
    struct renewals *renewals = call->context;
    const struct key_renew_reply *reply = &call->reply.key_renew;

    renewals->is_asking = false;
    renewals->refused += call->result == -ERR_NOT_TOLD;
    renewals->is_answered = call->result == 0;
    if (call->result == 0 && reply->number <= renewals->before) {
        snprintf(renewals->failure, sizeof renewals->failure,
                 "renewed to number %" PRIu32 ", when %" PRIu32 " was there before", reply->number,
                 renewals->before);
    }
    if (call->result == -ERR_NOT_TOLD && reply->node == 0) {
        snprintf(renewals->failure, sizeof renewals->failure,
                 "nothing is renewed, and no node is named");
    }
}

static void ask(struct renewals *renewals, struct node *asker) {
    struct world *world = renewals->world;
    const struct manager *manager = node_manager(world->manager);
    uint32_t there = manager ? manager_map(manager)->capability_number : 0;

    actor_init(&renewals->origin, "renewals", call_origin_step);
    renewals->before = MAX(renewals->before, MAX(there, world->map.capability_number));
    renewals->call =
        (struct call){.header = {.opcode = OP_KEY_RENEW, .log = LOG_MANAGER},
                      .origin = &renewals->origin,
                      .done = answered,
                      .context = renewals,
                      .deadline_ns = env_now_ns(asker->life->env) + PATIENCE_S * NS_PER_S};
    renewals->asker = asker;
    renewals->life = asker->incarnation;
    renewals->asked_ns = sim_now_ns(world->sim);
    renewals->is_asking = true;
    renewals->is_answered = false;
    node_enter(asker);
    call_start(node_rpc(asker), &renewals->call);
    node_leave(asker);
}

/* What a process asked that is gone is answered to nobody; nor are steps that it owed run. */
static bool is_asking(const struct renewals *renewals) {
    return renewals->is_asking && node_is_up(renewals->asker) &&
           renewals->asker->incarnation == renewals->life;
}

void renewals_turn(struct renewals *renewals, struct prng *prng) {
    struct world *world = renewals->world;

    if (!world->options.keys) {
        return;
    }
    if (prng_chance(prng, 1, HEAR_CHANCE)) {
        renewals_hear(&world->osts[prng_below(prng, world->options.ost_count)]);
    }
    struct node *asker = world_any_mdt(world, prng);
    bool is_due = prng_chance(prng, 1, renewals->is_answered ? TWICE_CHANCE : ASK_CHANCE);
    renewals->is_answered = false;
    if (is_due && !is_asking(renewals) && node_is_up(asker) && !asker->is_stopped) {
        ask(renewals, asker);
    }
}

bool renewals_are_over(const struct world *world) {
    const struct renewals *renewals = world->renewals;

    return !renewals || renewals->asked_ns == 0 ||
           sim_now_ns(world->sim) - renewals->asked_ns > OVER_S * NS_PER_S;
}

const char *renewals_failure(const struct world *world) {
    return world->renewals && world->renewals->failure[0] ? world->renewals->failure : NULL;
}

uint64_t renewals_made(const struct world *world) {
    return world->map.capability_number > 0 ? world->map.capability_number - 1 : 0;
}

uint64_t renewals_refused(const struct world *world) {
    return world->renewals ? world->renewals->refused : 0;
}
