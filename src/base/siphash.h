/* SipHash-2-4 (Aumasson and Bernstein, 2012): a keyed hash that cannot be flooded without the key.
 * Orders names in a directory and spreads them over partitions. Pure, any thread. */
#pragma once
#include "base/types.h"

struct siphash_key {
    uint64_t words[2];
};

uint64_t siphash(const struct siphash_key *key, const void *data, size_t size_bytes);
