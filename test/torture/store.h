/* The real storage target as an owner, with one caller whose bytes are known.
 *
 * Thread: one.  Memory: the heap. */
#pragma once
#include "owner.h"

struct store_plan {
    unsigned index; /* of the machine's owners */
    bool smallest;
    bool fills; /* its log shall be full before its memory is */
};
struct owner *store_new(struct machine *machine, struct prng *prng, const struct store_plan *plan);
