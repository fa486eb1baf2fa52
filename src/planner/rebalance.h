/* Data that moves between targets or into the file system: how fast, what bounds it, and what is
 * left to training meanwhile.
 *
 * A rate is the least of network, reading, writing and a limit. Between servers it passes the links
 * of those that give and those that take; a copy through clients also passes theirs. A file that
 * lies on every server goes at the pace of the busiest of them, so the pace falls further than the
 * bandwidth in all. */
#pragma once
#include "planner/figure.h"
#include "planner/model.h"

struct rebalance_inputs {
#include "planner/def_inputs.inc"
#include "planner/rebalance.def"
};

struct rebalance_outputs {
#include "planner/def_outputs.inc"
#include "planner/rebalance.def"
};

/* data may be NULL: what needs them cannot be computed then. */
void rebalance_plan(const struct data *data, const struct rebalance_inputs *in,
                    struct rebalance_outputs *out);
