/* A storage target that is away, in most of the seeds that have another one, once faults have
 * ended; and the oracle of that: what does not need it does not wait for it.
 *
 *     killed --> all files are removed --> nothing of them is left on the others --> it starts
 *
 * in seeds that remove all files; in the others
 *
 *     killed --> all clients die --> what they had open is closed, where no part of it is there
 *            --> it starts
 *
 * What needs it ends when it is back, which the oracle of space sees to.
 *
 * Thread: the world's. */
#pragma once
#include "base/prng.h"
#include "world.h"

struct losses;

struct aways {
    struct world *world;
    const struct losses *losses;
    struct prng prng; /* of its own, so that it changes nothing of other seeds */
    struct node *gone;
    uint64_t count;
};

void aways_init(struct aways *aways, struct world *world, const struct losses *losses);
/* The target that is to be killed, and does not start before aways_end. NULL: none in this seed. */
struct node *aways_begin(struct aways *aways);
bool aways_has(const struct aways *aways, const struct node *node);
void aways_end(struct aways *aways);
