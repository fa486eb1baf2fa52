/* The contract is in silence.h. */
#include "silence.h"
#include <inttypes.h>
#include <stdio.h>

enum {
    CHANCE = 4,
    LEAST_NODES = 2, /* besides the manager's: then it hears one of three at most */
    PERIOD_PART = 3, /* of a session's timeout: so long a node counts as heard */
    SLACK_MS = 300,  /* packets under way, ticks, and the time between two looks */
};

static uint64_t timeout_of(const struct silence *silence) {
    return silence->world->options.session_timeout_ns;
}

/* Behind a cut or a start, the manager knows by then that it hears nobody. */
static uint64_t deaf_ns(const struct silence *silence) {
    return timeout_of(silence) / PERIOD_PART + SLACK_MS * NS_PER_MS;
}

void silence_init(struct silence *silence, struct world *world, const struct newcomers *newcomers,
                  uint64_t operations) {
    *silence = (struct silence){.world = world, .newcomers = newcomers};
    prng_init(&silence->prng, world->options.seed ^ UINT64_C(0x73696c656e6365));
    silence->is_due = prng_chance(&silence->prng, 1, CHANCE);
    silence->begins_at = prng_between(&silence->prng, operations / 8, operations / 2);
    silence->kind = prng_chance(&silence->prng, 1, 2)
                        ? SILENCE_BOTH
                        : (enum silence_kind)prng_below(&silence->prng, SILENCE_KINDS);
}

uint64_t silence_begin(struct silence *silence, uint64_t submitted) {
    struct world *world = silence->world;
    struct node *manager = world->manager;

    if (!silence->is_due || submitted < silence->begins_at || !node_is_up(manager) ||
        newcomers_registered(silence->newcomers) < LEAST_NODES) {
        return 0;
    }
    for (uint32_t i = 0; i < world->node_count; i++) {
        const struct node *other = &world->nodes[i];

        if (other != manager && silence->kind != SILENCE_OUTWARD) {
            world_cut(world, other, manager);
        }
        if (other != manager && silence->kind != SILENCE_INWARD) {
            world_cut(world, manager, other);
        }
    }
    silence->is_due = false;
    silence->cuts[silence->kind]++;
    silence->cut_ns = sim_now_ns(world->sim);
    silence->heal_ns = silence->cut_ns + timeout_of(silence) * 12 / 10 +
                       prng_below(&silence->prng, timeout_of(silence) * 8 / 10);
    return silence->heal_ns;
}

/* One that has started too late to know of the cut gives everybody a timeout from then on. */
static uint64_t until_ns(const struct silence *silence) {
    bool knows = silence->started_ns + deaf_ns(silence) < silence->heal_ns;

    return (knows ? silence->heal_ns : silence->started_ns) + timeout_of(silence) -
           SLACK_MS * NS_PER_MS;
}

/* One that was stopped until so late has not listened for long enough to know of the cut. */
static bool was_stopped(const struct silence *silence) {
    return silence->stopped_ns > silence->cut_ns &&
           silence->stopped_ns + deaf_ns(silence) >= silence->heal_ns;
}

/* Power may have taken from it a node that it had not written down: of two it hears half. */
static bool knows_few(const struct silence *silence) {
    struct node *manager = silence->world->manager;

    return node_is_up(manager) && manager_map(node_manager(manager)) &&
           newcomers_registered(silence->newcomers) < LEAST_NODES;
}

static bool may_evict(const struct silence *silence, uint64_t now_ns) {
    return silence->cut_ns == 0 || silence->kind == SILENCE_OUTWARD || was_stopped(silence) ||
           silence->knew_few || now_ns < silence->stopped_ns + deaf_ns(silence) ||
           now_ns < silence->cut_ns + deaf_ns(silence) || now_ns >= until_ns(silence);
}

bool silence_look(struct silence *silence, char failure[600]) {
    const struct world *world = silence->world;
    uint64_t evictions = world_evictions(world);
    uint64_t now_ns = sim_now_ns(world->sim);

    if (silence->incarnation != world->manager->incarnation) {
        silence->incarnation = world->manager->incarnation;
        silence->started_ns = now_ns;
    }
    if (world->manager->is_stopped && now_ns < silence->heal_ns) {
        silence->stopped_ns = now_ns;
    }
    if (silence->cut_ns > 0 && now_ns < silence->heal_ns && knows_few(silence)) {
        silence->knew_few = true;
    }
    if (evictions > silence->evictions && !may_evict(silence, now_ns)) {
        (void)snprintf(failure, 600,
                       "%" PRIu64 " sessions are evicted for their silence %.3f s behind a cut of "
                       "the manager from all others, which ends %.3f s behind it",
                       evictions - silence->evictions, (double)(now_ns - silence->cut_ns) / 1e9,
                       (double)(silence->heal_ns - silence->cut_ns) / 1e9);
        return false;
    }
    silence->evictions = evictions;
    return true;
}

bool silence_is_over(const struct silence *silence) {
    return silence->cut_ns == 0 || sim_now_ns(silence->world->sim) >= until_ns(silence);
}
