/* Open addressing; the contract is in lost_logs.h. */
#include "rpc/lost_logs.h"
#include <stdlib.h>

struct lost_logs *lost_logs_new(uint32_t logs_max) {
    struct lost_logs *logs = calloc(1, sizeof *logs + (size_t)logs_max * sizeof logs->places[0]);

    if (logs) {
        logs->place_count = logs_max;
    }
    return logs;
}

void lost_logs_free(struct lost_logs *logs) {
    free(logs);
}

void lost_logs_add(struct lost_logs *logs, struct log_id log) {
    for (uint32_t i = 0; log.value != 0 && i < logs->place_count; i++) {
        uint64_t there = 0;

        if (atomic_compare_exchange_strong(&logs->places[(log.value + i) % logs->place_count],
                                           &there, log.value)) {
            atomic_fetch_add(&logs->count, 1);
            return;
        }
        if (there == log.value) {
            return;
        }
    }
}

uint32_t lost_logs_count(const struct lost_logs *logs) {
    uint32_t count = 0;

    if (atomic_load_explicit(&logs->count, memory_order_acquire) == 0) {
        return 0;
    }
    for (uint32_t i = 0; i < logs->place_count; i++) {
        count += atomic_load_explicit(&logs->places[i], memory_order_acquire) != 0;
    }
    return count;
}

bool lost_logs_have(const struct lost_logs *logs, struct log_id log) {
    uint64_t there = 1;

    if (atomic_load_explicit(&logs->count, memory_order_acquire) == 0) {
        return false;
    }
    for (uint32_t i = 0; there != 0 && i < logs->place_count; i++) {
        there = atomic_load_explicit(&logs->places[(log.value + i) % logs->place_count],
                                     memory_order_acquire);
        if (there == log.value) {
            return true;
        }
    }
    return false;
}
