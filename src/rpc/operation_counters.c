/* Counting. */
#include "rpc/operation_counters.h"

void operation_counters_record(struct operation_counters *operations, uint16_t opcode, int result,
                               uint64_t latency_ns) {
    if (opcode >= OPCODE_COUNT) {
        return;
    }
    operations[opcode].count++;
    operations[opcode].error_count += result < 0;
    histogram_add(&operations[opcode].latency_ns, latency_ns);
}
