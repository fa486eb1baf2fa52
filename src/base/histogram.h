/* A log-linear histogram of 64-bit numbers: each power of two is cut into HISTOGRAM_PARTS equal
 * parts, so that a percentile is exact to 1/HISTOGRAM_PARTS of its value. Zeroed memory is an empty
 * one. Not safe across threads: one per owner, merged by who reads. */
#pragma once
#include "base/types.h"

enum {
    HISTOGRAM_PART_BITS = 4,
    HISTOGRAM_PARTS = 1 << HISTOGRAM_PART_BITS,
    HISTOGRAM_VALUE_BITS = 44, /* larger values count as the largest: 4.8 h in nanoseconds */
    HISTOGRAM_BUCKETS = (HISTOGRAM_VALUE_BITS - HISTOGRAM_PART_BITS + 1) * HISTOGRAM_PARTS,
};

struct histogram {
    uint64_t count;
    uint64_t sum; /* stops at UINT64_MAX */
    uint64_t largest;
    uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *histogram, uint64_t value);
void histogram_merge(struct histogram *histogram, const struct histogram *other);
/* The upper end of the bucket that holds the per_mille-th thousandth (0..1000), at most the largest
 * value; 0 when empty. 500 = p50, 990 = p99, 999 = p99.9. */
uint64_t histogram_percentile(const struct histogram *histogram, uint32_t per_mille);
uint64_t histogram_mean(const struct histogram *histogram);
