/* A hash of a word, for tables that remember something of inodes. */
#pragma once
#include <stdint.h>

static inline uint64_t mix(uint64_t word) {
    word ^= word >> 32;
    word *= UINT64_C(0x9e3779b97f4a7c15);
    return word ^ word >> 29;
}
