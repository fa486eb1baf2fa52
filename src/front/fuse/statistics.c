/* Counts and latencies per kind of request. */
#include "front/fuse/statistics.h"

static unsigned bucket_of(uint64_t latency_ns) {
    unsigned shift;

    if (latency_ns < UINT64_C(1) << STATISTICS_SHIFT_MIN)
        return 0;
    if (latency_ns >= UINT64_C(1) << STATISTICS_SHIFT_MAX)
        return STATISTICS_BUCKETS - 1;
    shift = 63 - (unsigned)__builtin_clzll(latency_ns);
    return 1 + 4 * (shift - STATISTICS_SHIFT_MIN) + ((latency_ns >> (shift - 2)) & 3);
}

/* The first latency beyond the bucket. */
static uint64_t bucket_end_ns(unsigned bucket) {
    unsigned shift;

    if (bucket == 0)
        return UINT64_C(1) << STATISTICS_SHIFT_MIN;
    if (bucket == STATISTICS_BUCKETS - 1)
        return UINT64_C(1) << STATISTICS_SHIFT_MAX;
    shift = STATISTICS_SHIFT_MIN + (bucket - 1) / 4;
    return (UINT64_C(1) << shift) + ((bucket - 1) % 4 + 1) * (UINT64_C(1) << (shift - 2));
}

static void add(_Atomic uint64_t *to, uint64_t more) {
    atomic_fetch_add_explicit(to, more, memory_order_relaxed);
}

void statistics_add(struct statistics *statistics, uint64_t latency_ns, bool failed) {
    add(&statistics->count, 1);
    add(&statistics->sum_ns, latency_ns);
    add(&statistics->buckets[bucket_of(latency_ns)], 1);
    if (failed)
        add(&statistics->error_count, 1);
}

void statistics_merge(struct statistics *to, struct statistics *from) {
    add(&to->count, atomic_load_explicit(&from->count, memory_order_relaxed));
    add(&to->error_count, atomic_load_explicit(&from->error_count, memory_order_relaxed));
    add(&to->sum_ns, atomic_load_explicit(&from->sum_ns, memory_order_relaxed));
    for (unsigned i = 0; i < STATISTICS_BUCKETS; i++)
        add(&to->buckets[i], atomic_load_explicit(&from->buckets[i], memory_order_relaxed));
}

uint64_t statistics_quantile_ns(struct statistics *statistics, unsigned per_mille) {
    uint64_t all = 0;
    uint64_t below = 0;
    uint64_t wanted;

    for (unsigned i = 0; i < STATISTICS_BUCKETS; i++)
        all += atomic_load_explicit(&statistics->buckets[i], memory_order_relaxed);
    if (all == 0)
        return 0;
    wanted = MAX((all * per_mille + 999) / 1000, UINT64_C(1));
    for (unsigned i = 0; i < STATISTICS_BUCKETS; i++) {
        below += atomic_load_explicit(&statistics->buckets[i], memory_order_relaxed);
        if (below >= wanted)
            return bucket_end_ns(i);
    }
    return bucket_end_ns(STATISTICS_BUCKETS - 1);
}
