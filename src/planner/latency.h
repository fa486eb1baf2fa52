/* Where the time of one I/O goes: propagation, switches, serialisation, host, server, medium; and
 * what headers and CPU time cost. A row for each section "latency.NAME" of the data, in their
 * order.
 *
 * What is physics or a standard is computed; what software and media take is data with low, high
 * and source. RoCEv2 carries a power of two of data up to 4,096 bytes in a packet, so an MTU of
 * 9,000 carries no more than one of 4,200. */
#pragma once
#include "planner/figure.h"
#include "planner/model.h"

struct latency_inputs {
#include "planner/def_inputs.inc"
#include "planner/latency.def"
};

struct latency_outputs {
#include "planner/def_outputs.inc"
#include "planner/latency.def"
};

/* data may be NULL: what needs them cannot be computed then. */
void latency_plan(const struct data *data, const struct latency_inputs *in,
                  struct latency_outputs *out);
/* The words of a row that its figures begin from; false when there is no such row. */
bool latency_way(const struct data *data, const struct latency_inputs *in, size_t row,
                 struct latency_outputs *out);
