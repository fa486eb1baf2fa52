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
#define INPUT PLAN_DOUBLE
#define CHOICE PLAN_INT
#include "planner/rebalance.def"
};

struct rebalance_outputs {
#define OUTPUT PLAN_FIGURE
#define WORDS PLAN_WORDS_FIELD
#include "planner/rebalance.def"
};

enum rebalance_mode { REBALANCE_SERVERS, REBALANCE_CLIENTS };

void rebalance_plan(const struct rebalance_inputs *in, struct rebalance_outputs *out);
