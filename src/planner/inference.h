/* Inference: the KV cache that is kept outside the GPUs. */
#pragma once
#include "planner/figure.h"
#include "planner/model.h"

struct inference_inputs {
#include "planner/def_inputs.inc"
#include "planner/inference.def"
};

struct inference_outputs {
#include "planner/def_outputs.inc"
#include "planner/inference.def"
};

void inference_plan(const struct data *data, const struct inference_inputs *in,
                    struct inference_outputs *out);
