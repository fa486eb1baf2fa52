/* Buckets of a log-linear histogram: values below HISTOGRAM_PARTS each have their own, then come
 * HISTOGRAM_PARTS a power of two. */
#include "base/histogram.h"

static uint32_t bucket_of(uint64_t value) {
    if (value < HISTOGRAM_PARTS) {
        return (uint32_t)value;
    }
    value = MIN(value, (UINT64_C(1) << HISTOGRAM_VALUE_BITS) - 1);
    uint32_t power = 63 - (uint32_t)__builtin_clzll(value);
    uint32_t shift = power - HISTOGRAM_PART_BITS;
    uint32_t part = (uint32_t)(value >> shift) & (HISTOGRAM_PARTS - 1);

    return (shift + 1) * HISTOGRAM_PARTS + part;
}

static uint64_t bucket_upper(uint32_t bucket) {
    if (bucket < HISTOGRAM_PARTS) {
        return bucket;
    }
    uint32_t shift = bucket / HISTOGRAM_PARTS - 1;
    uint64_t part = bucket % HISTOGRAM_PARTS + HISTOGRAM_PARTS;

    return ((part + 1) << shift) - 1;
}

void histogram_add(struct histogram *histogram, uint64_t value) {
    uint64_t sum = histogram->sum + value;

    histogram->count++;
    histogram->sum = sum < value ? UINT64_MAX : sum;
    histogram->largest = MAX(histogram->largest, value);
    histogram->buckets[bucket_of(value)]++;
}

void histogram_merge(struct histogram *histogram, const struct histogram *other) {
    uint64_t sum = histogram->sum + other->sum;

    histogram->count += other->count;
    histogram->sum = sum < other->sum ? UINT64_MAX : sum;
    histogram->largest = MAX(histogram->largest, other->largest);
    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        histogram->buckets[i] += other->buckets[i];
    }
}

uint64_t histogram_percentile(const struct histogram *histogram, uint32_t per_mille) {
    /* How many values are at or below the answer; divided first, so that it can't wrap. */
    uint64_t whole = histogram->count / 1000 * per_mille;
    uint64_t rest = (histogram->count % 1000 * per_mille + 999) / 1000;
    uint64_t wanted = MAX(whole + rest, UINT64_C(1));
    uint64_t seen = 0;

    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += histogram->buckets[i];
        if (seen >= wanted) {
            return MIN(bucket_upper(i), histogram->largest);
        }
    }
    return histogram->largest;
}

uint64_t histogram_mean(const struct histogram *histogram) {
    return histogram->count ? histogram->sum / histogram->count : 0;
}
