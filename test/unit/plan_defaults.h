/* For tests of a model's function: the inputs as a bare command has them, and what a figure is. */
#pragma once
#include "unit.h"
#include "planner/plan.h"
#include <math.h>
#include <string.h>

static inline void plan_defaults(const struct plan_model *model, const struct data *data,
                                 void *ret_inputs) {
    struct plan_problem problem = {0};
    struct plan plan;

    assert_int_equal(plan_init(&plan, model), 0);
    if (plan_fill(&plan, data, &problem) < 0) {
        fail_msg("%s", problem.text);
    }
    memcpy(ret_inputs, plan.inputs, model->input_bytes);
    plan_deinit(&plan);
}

/* Equal but for a share of `wanted`. */
static inline void assert_figure(struct figure figure, double wanted, double share) {
    if (figure.cannot) {
        fail_msg("cannot be computed: %s", figure.cannot);
    }
    if (!(fabs(figure.value - wanted) <= fabs(wanted) * share)) {
        fail_msg("%.15g, not %.15g", figure.value, wanted);
    }
}

static inline void assert_cannot(struct figure figure, const char *why) {
    assert_non_null(figure.cannot);
    assert_string_equal(figure.cannot, why);
}

/* The number of a choice, as the .def has them in their order. */
static inline int choice_of(const struct plan_model *model, const char *name, const char *value) {
    const struct plan_input *input = plan_input_find(model, name);
    int index = 0;

    assert_non_null(input);
    for (const char *at = input->choices;; index++) {
        size_t size = strcspn(at, "|");

        if (strlen(value) == size && memcmp(at, value, size) == 0) {
            return index;
        }
        if (at[size] == '\0') {
            fail_msg("%s has no choice %s", name, value);
        }
        at += size + 1;
    }
}
