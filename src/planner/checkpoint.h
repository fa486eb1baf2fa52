/* Checkpoints: how large, how long the GPUs stand still, how often, and what failures then cost.
 *
 * The completion time is Daly's closed form (2006) for failures that come at a constant
 * rate, also while restarting. With `async`, a failure before the drain ends falls back to the
 * checkpoint before; that is counted to first order. */
#pragma once
#include "planner/figure.h"
#include "planner/model.h"

struct checkpoint_inputs {
#define INPUT PLAN_DOUBLE
#define CHOICE PLAN_INT
#include "planner/checkpoint.def"
};

struct checkpoint_outputs {
#define OUTPUT PLAN_FIGURE
#define WORDS PLAN_WORDS_FIELD
#include "planner/checkpoint.def"
};

/* Values of the choices, in their order. */
enum checkpoint_mode { CHECKPOINT_SYNC, CHECKPOINT_ASYNC };

/* The data have the sizes of benchmarks. */
void checkpoint_plan(const struct data *data, const struct checkpoint_inputs *in,
                     struct checkpoint_outputs *out);
