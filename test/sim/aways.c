/* The contract is in aways.h. */
#include "aways.h"
#include "losses.h"

enum { CHANCE = 3, CHANCE_OF = 4 };

void aways_init(struct aways *aways, struct world *world, const struct losses *losses) {
    *aways = (struct aways){.world = world, .losses = losses};
    prng_init(&aways->prng, world->options.seed ^ UINT64_C(0x61776179));
}

struct node *aways_begin(struct aways *aways) {
    struct world *world = aways->world;
    struct node *usable[WORLD_NODES_MAX];
    uint32_t count = 0;

    for (uint32_t i = 0; i < world->options.ost_count; i++) {
        struct node *ost = &world->osts[i];

        if (node_is_up(ost) && !losses_has(aways->losses, ost)) {
            usable[count++] = ost;
        }
    }
    if (count < 2 || !prng_chance(&aways->prng, CHANCE, CHANCE_OF)) {
        return NULL;
    }
    aways->gone = usable[prng_below(&aways->prng, count)];
    aways->count++;
    return aways->gone;
}

bool aways_has(const struct aways *aways, const struct node *node) {
    return aways->gone == node;
}

void aways_end(struct aways *aways) {
    aways->gone = NULL;
}
