/* xoshiro256** (Blackman and Vigna, "Scrambled linear pseudorandom number generators", 2018). */
#include "base/prng.h"
#include <assert.h>

static uint64_t splitmix64(uint64_t *state) {
    *state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = *state;

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t rotate_left(uint64_t value, unsigned count) {
    return (value << count) | (value >> (64 - count));
}

void prng_init(struct prng *prng, uint64_t seed) {
    for (size_t i = 0; i < ARRAY_SIZE(prng->state); i++) {
        prng->state[i] = splitmix64(&seed);
    }
}

uint64_t prng_next(struct prng *prng) {
    uint64_t *s = prng->state;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t shifted = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate_left(s[3], 45);
    return result;
}

uint64_t prng_below(struct prng *prng, uint64_t bound) {
    assert(bound > 0);
    /* Values below the threshold would favour small results (the classic rejection step). */
    uint64_t threshold = (0 - bound) % bound;
    uint64_t value;

    do {
        value = prng_next(prng);
    } while (value < threshold);
    return value % bound;
}

uint64_t prng_between(struct prng *prng, uint64_t low, uint64_t high) {
    assert(low <= high);
    if (low == 0 && high == UINT64_MAX) {
        return prng_next(prng);
    }
    return low + prng_below(prng, high - low + 1);
}

bool prng_chance(struct prng *prng, uint64_t numerator, uint64_t denominator) {
    return prng_below(prng, denominator) < numerator;
}
