/* The contract is in fulls.h. */
#include "fulls.h"
#include "base/prng.h"
#include "life.h"

/* Of a thousand. A quarter is kept for others than requests (kv_admit.c), and the most that a
 * request may take is set aside before it begins. */
enum { FULL_LEVEL = 700 };
enum { FULL_KILLS = 2 /* at every such moment it is to be killed */ };

const char *const full_names[FULL_KINDS] = {
    "ring",   "data ring", "memory",       "log",      "outcomes", "sessions",
    "orders", "settles",   "transactions", "requests", "blocks",
};

bool fulls_draw(uint64_t seed) {
    struct prng prng;

    prng_init(&prng, seed ^ UINT64_C(0x66756c6c73));
    return prng_chance(&prng, 1, 10);
}

static uint32_t bit(bool is, enum full full) {
    return is ? UINT32_C(1) << full : 0;
}

static uint32_t fulls_of(const struct life *life) {
    struct kv_counters now;

    kv_counters_get(life_kv(life), &now);
    return bit(now.levels.ring >= FULL_LEVEL, FULL_RING) |
           bit(now.levels.data >= FULL_LEVEL, FULL_DATA_RING) |
           bit(now.levels.memory >= FULL_LEVEL, FULL_MEMORY) |
           bit(now.levels.log >= FULL_LEVEL, FULL_LOG) |
           bit(now.levels.outcomes >= FULL_LEVEL, FULL_OUTCOMES) |
           (life->group ? fulls_of_group(life->group)
            : life->ost ? fulls_of_ost(life->ost)
                        : 0);
}

void full_pair(uint32_t pair, enum full *ret_first, enum full *ret_second) {
    uint32_t first = 0;

    for (; pair >= FULL_KINDS - 1 - first; first++) {
        pair -= FULL_KINDS - 1 - first;
    }
    *ret_first = (enum full)first;
    *ret_second = (enum full)(first + 1 + pair);
}

static uint64_t pairs_of(uint32_t fulls) {
    uint64_t pairs = 0;

    for (uint32_t pair = 0; pair < FULL_PAIRS; pair++) {
        enum full first;
        enum full second;

        full_pair(pair, &first, &second);
        pairs |= (uint64_t)(fulls >> first & fulls >> second & 1) << pair;
    }
    return pairs;
}

static bool node_look(struct world *world, const struct node *node, bool crash) {
    bool is_open = node->life && node->role != NODE_CLIENT && life_kv(node->life);
    uint64_t pairs = is_open ? pairs_of(fulls_of(node->life)) : 0;

    world->full_pairs |= pairs;
    world->fulls += pairs != 0 && !crash;
    world->fulls_killed += pairs != 0 && crash;
    return pairs != 0;
}

struct node *fulls_look(struct world *world) {
    struct node *full = NULL;

    for (uint32_t i = 0; world->options.full && i < world->node_count; i++) {
        full = node_look(world, &world->nodes[i], false) ? &world->nodes[i] : full;
    }
    return full && world->fulls % FULL_KILLS == 0 ? full : NULL;
}

void fulls_killed(struct world *world, const struct node *node) {
    if (world->options.full) {
        (void)node_look(world, node, true);
    }
}
