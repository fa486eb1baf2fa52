/* All models on one set of settings, where a setting may be a figure of another model.
 *
 * Settings are rows of data: section "common" sets an input in every model that has it, a section
 * named as a model sets one of its inputs, and a value "=size.write_bandwidth" is that figure of
 * that model, which must be of the input's unit. "about.*" sections are notes.
 *
 * Models may refer to each other: all are computed again and again, each time with the figures of
 * the time before, until none that is referred to changes any more.
 *
 * Thread: the caller's.  Memory: freed by scenario_deinit. */
#pragma once
#include "planner/plan.h"

enum { SCENARIO_MODELS_MAX = 16, SCENARIO_PASSES_MAX = 64 };

struct scenario {
    const struct data *data;
    const struct data *settings;
    struct plan plans[SCENARIO_MODELS_MAX]; /* in the order of plan_models; their first row */
    bool computed[SCENARIO_MODELS_MAX];
    struct reference *references; /* of each row of settings */
    bool changed;
};

/* Both must live as long as the scenario. -ERR_INVALID, -ERR_MALFORMED, -ERR_NOT_FOUND, -ERR_LOOP
 * with *problem filled: a section or key that does not exist, a value out of place, figures that
 * do not settle in SCENARIO_PASSES_MAX passes. -ERR_NO_MEMORY. */
MUST_CHECK int scenario_run(struct scenario *scenario, const struct data *data,
                            const struct data *settings, struct plan_problem *problem);
void scenario_deinit(struct scenario *scenario);
/* One of its models, at work on the scenario's settings. */
struct plan *scenario_plan(struct scenario *scenario, const struct plan_model *model);
