/* All models on one set of settings, where a setting may be a figure of another model.
 *
 * Settings are rows of data: section "common" sets an input in every model that has it, a section
 * named as a model sets one of its inputs, and a value "=size.write_bandwidth" is that figure of
 * that model. "about.*" sections are notes. A model runs after those that it refers to.
 *
 * Thread: the caller's.  Memory: freed by scenario_deinit. */
#pragma once
#include "planner/plan.h"

enum { SCENARIO_MODELS_MAX = 16 };

struct scenario {
    const struct data *data;
    const struct data *settings;
    struct plan plans[SCENARIO_MODELS_MAX]; /* in the order of plan_models; their first row */
    enum { SCENARIO_NEW, SCENARIO_AT_WORK, SCENARIO_DONE } states[SCENARIO_MODELS_MAX];
};

/* Both must live as long as the scenario. -ERR_INVALID, -ERR_MALFORMED, -ERR_NOT_FOUND, -ERR_LOOP
 * with *problem filled: a section or key that does not exist, a value out of place, settings that
 * refer to each other in a circle. -ERR_NO_MEMORY. */
MUST_CHECK int scenario_run(struct scenario *scenario, const struct data *data,
                            const struct data *settings, struct plan_problem *problem);
void scenario_deinit(struct scenario *scenario);
