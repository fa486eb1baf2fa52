/* Cost: what idle GPUs cost, what the storage costs that keeps them busy, and when it pays.
 *
 * What recurs is a rate, what is bought is paid once. Break-even is a share of the GPUs' time, as
 * both sides are dollars an hour; only what is bought has a time to pay back. Prices come from the
 * data. */
#pragma once
#include "planner/figure.h"
#include "planner/model.h"

struct cost_inputs {
#define INPUT PLAN_DOUBLE
#define CHOICE PLAN_INT
#include "planner/cost.def"
};

struct cost_outputs {
#define OUTPUT PLAN_FIGURE
#define WORDS PLAN_WORDS_FIELD
#include "planner/cost.def"
};

/* Values of the choices, in their order. */
enum cost_storage { COST_OWN, COST_MANAGED };

void cost_plan(const struct cost_inputs *in, struct cost_outputs *out);
