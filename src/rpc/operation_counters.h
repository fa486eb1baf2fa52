/* What a server counts of its calls, per opcode. Thread: the server's step; others get copies. */
#pragma once
#include "base/histogram.h"
#include "wire/wire.h"

struct operation_counters {
    uint64_t count;
    uint64_t error_count;
    struct histogram latency_ns; /* from the arrival of the call to its reply */
};

/* operations: OPCODE_COUNT of them; other opcodes are not counted. */
void operation_counters_record(struct operation_counters *operations, uint16_t opcode, int result,
                               uint64_t latency_ns);
