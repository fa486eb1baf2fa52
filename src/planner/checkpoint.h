/* Checkpoints: how large, how long the GPUs stand still, how often, and what failures then cost.
 *
 * The completion time is Daly's closed form (2006) for failures that come at a constant
 * rate, also while restarting. With `async`, a failure before the drain ends falls back to the
 * checkpoint before; that is counted to first order. */
#pragma once
#include "planner/figure.h"
#include "planner/model.h"

struct checkpoint_inputs {
#include "planner/def_inputs.inc"
#include "planner/checkpoint.def"
};

struct checkpoint_outputs {
#include "planner/def_outputs.inc"
#include "planner/checkpoint.def"
};

/* data may be NULL: what needs them cannot be computed then. */
void checkpoint_plan(const struct data *data, const struct checkpoint_inputs *in,
                     struct checkpoint_outputs *out);
