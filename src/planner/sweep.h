/* One input taken through a range: "write_bandwidth=1GB/s..100GB/s:20" in equal steps, or
 * "...:20log" in equal factors. */
#pragma once
#include "planner/plan.h"

enum { SWEEP_STEPS_DEFAULT = 10, SWEEP_STEPS_MAX = 10000 };

struct sweep {
    const struct plan_input *input;
    double from, to;
    uint32_t step_count; /* values, both ends among them; at least 2 */
    bool by_factors;
};

/* -ERR_MALFORMED with *problem filled. */
MUST_CHECK int sweep_parse(struct sweep *sweep, const struct plan_model *model, const char *text,
                           struct plan_problem *problem);
double sweep_value(const struct sweep *sweep, uint32_t step);
/* Gives the plan that value. */
void sweep_apply(const struct sweep *sweep, struct plan *plan, uint32_t step);
