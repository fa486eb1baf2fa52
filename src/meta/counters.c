/* Counting. */
#include "meta/counters.h"

void counters_record(struct counters *counters, uint16_t opcode, int result, uint64_t latency_ns) {
    if (opcode >= OPCODE_COUNT) {
        return;
    }
    struct operation_counters *operation = &counters->operations[opcode];

    operation->count++;
    operation->error_count += result < 0;
    histogram_add(&operation->latency_ns, latency_ns);
}
