/* Several jobs on one storage: what they need together. */
#pragma once
#include "planner/figure.h"
#include "planner/model.h"

struct mix_inputs {
#include "planner/def_inputs.inc"
#include "planner/mix.def"
};

struct mix_outputs {
#include "planner/def_outputs.inc"
#include "planner/mix.def"
};

void mix_plan(const struct data *data, const struct mix_inputs *in, struct mix_outputs *out);
