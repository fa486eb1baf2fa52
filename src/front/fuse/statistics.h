/* Counts and latencies per kind of request, one set per thread so that no cache line is shared.
 *
 *     bucket:  0        1 ... 96                        97
 *     ns:      < 1024   4 per doubling, 2^10 to 2^34    >= 2^34
 *
 * Thread: any adds to any set (a reply may leave from another thread), by relaxed atomics. */
#pragma once
#include "base/types.h"
#include <stdatomic.h>

enum {
    STATISTICS_SHIFT_MIN = 10,
    STATISTICS_SHIFT_MAX = 34,
    STATISTICS_BUCKETS = 4 * (STATISTICS_SHIFT_MAX - STATISTICS_SHIFT_MIN) + 2,
};

struct statistics {
    _Atomic uint64_t count;
    _Atomic uint64_t error_count;
    _Atomic uint64_t sum_ns;
    _Atomic uint64_t buckets[STATISTICS_BUCKETS];
};

void statistics_add(struct statistics *statistics, uint64_t latency_ns, bool failed);
/* Adds `from` to `to`. */
void statistics_merge(struct statistics *to, struct statistics *from);
/* The latency that per_mille of all requests did not exceed, at most 1/4 too high; 0 without any.
 * Beyond the last bucket the answer is its lower end. */
uint64_t statistics_quantile_ns(struct statistics *statistics, unsigned per_mille);
