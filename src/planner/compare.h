/* A parallel file system against an object store: time for the same data, and how much faster.
 *
 * An object store's rate is that of its connections, so both are shown: against one connection, as
 * such comparisons often do, and against as many as the nodes open. */
#pragma once
#include "planner/figure.h"
#include "planner/model.h"

struct compare_inputs {
#include "planner/def_inputs.inc"
#include "planner/compare.def"
};

struct compare_outputs {
#include "planner/def_outputs.inc"
#include "planner/compare.def"
};

/* data may be NULL: what needs them cannot be computed then. */
void compare_plan(const struct data *data, const struct compare_inputs *in,
                  struct compare_outputs *out);
