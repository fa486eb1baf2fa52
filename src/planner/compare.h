/* A parallel file system against an object store: time for the same data, and how much faster.
 *
 * An object store's rate is that of its connections, so both are shown: against one connection, as
 * such comparisons often do, and against as many as the nodes open. */
#pragma once
#include "planner/figure.h"
#include "planner/model.h"

struct compare_inputs {
#define INPUT PLAN_DOUBLE
#include "planner/compare.def"
};

struct compare_outputs {
#define OUTPUT PLAN_FIGURE
#define WORDS PLAN_WORDS_FIELD
#include "planner/compare.def"
};

void compare_plan(const struct compare_inputs *in, struct compare_outputs *out);
