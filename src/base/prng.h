/* A seeded generator for simulation and jitter, never for secrets: xoshiro256** of Blackman and
 * Vigna (2018), seeded through splitmix64. Not safe across threads: one per owner. */
#pragma once
#include "base/types.h"

struct prng {
    uint64_t state[4];
};

void prng_init(struct prng *prng, uint64_t seed);
uint64_t prng_next(struct prng *prng);
/* Uniform in [0, bound); bound > 0. */
uint64_t prng_below(struct prng *prng, uint64_t bound);
/* Uniform in [low, high]. */
uint64_t prng_between(struct prng *prng, uint64_t low, uint64_t high);
/* True with probability numerator / denominator. */
bool prng_chance(struct prng *prng, uint64_t numerator, uint64_t denominator);
