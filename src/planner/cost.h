/* Cost: what idle GPUs cost, what the storage costs that keeps them busy, and when it pays.
 *
 * What recurs is a rate, what is bought is paid once. Break-even is a share of the GPUs' time, as
 * both sides are dollars an hour; only what is bought has a time to pay back. Prices come from the
 * data. */
#pragma once
#include "planner/figure.h"
#include "planner/model.h"

struct cost_inputs {
#include "planner/def_inputs.inc"
#include "planner/cost.def"
};

struct cost_outputs {
#include "planner/def_outputs.inc"
#include "planner/cost.def"
};

/* data may be NULL: what needs them cannot be computed then. */
void cost_plan(const struct data *data, const struct cost_inputs *in, struct cost_outputs *out);
