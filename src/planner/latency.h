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
#define INPUT PLAN_DOUBLE
#define CHOICE PLAN_INT
#include "planner/latency.def"
};

struct latency_outputs {
#define OUTPUT PLAN_FIGURE
#define WORDS PLAN_WORDS_FIELD
#include "planner/latency.def"
};

/* Data of a full packet: what the MTU leaves, or the largest power of two in that, up to most_bytes
 * if that is not 0. 0 when nothing is left. */
double latency_payload(double mtu_bytes, double reserved_bytes, double most_bytes);
/* False when there is no such row. */
bool latency_plan(const struct data *data, const struct latency_inputs *in, size_t row,
                  struct latency_outputs *out);
