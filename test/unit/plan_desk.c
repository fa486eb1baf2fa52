/* A model for tests. */
#include "unit.h"
#include "plan_desk.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

void desk_init(struct desk *desk, const char *model) {
    const struct plan_model *found = plan_model_find(model);

    *desk = (struct desk){0};
    assert_non_null(found);
    assert_int_equal(plan_init(&desk->plan, found), 0);
}

void desk_deinit(struct desk *desk) {
    plan_deinit(&desk->plan);
    data_deinit(&desk->data);
}

void desk_set(struct desk *desk, const char *options) {
    struct plan_problem problem = {""};
    char name[64];
    char value[256];
    int used;

    while (sscanf(options, " --%63s %255s%n", name, value, &used) == 2) {
        const struct plan_input *input = plan_input_find(desk->plan.model, name);

        if (!input || plan_set(&desk->plan, input, name, value, &problem) < 0) {
            fail_msg("--%s %s: %s", name, value, input ? problem.text : "no such input");
        }
        options += used;
    }
    assert_int_equal(strspn(options, " "), strlen(options));
}

bool desk_row(struct desk *desk, size_t row) {
    struct plan_problem problem = {""};

    if (plan_fill(&desk->plan, &desk->data, &problem) < 0) {
        fail_msg("%s", problem.text);
    }
    return plan_row(&desk->plan, &desk->data, row);
}

void desk_run(struct desk *desk, const char *options) {
    desk_set(desk, options);
    assert_true(desk_row(desk, 0));
    desk_assert_sound(desk);
}

static const struct plan_output *output_of(const struct desk *desk, const char *name) {
    const struct plan_output *output = plan_output_find(desk->plan.model, name);

    if (!output) {
        fail_msg("there is no figure %s", name);
    }
    return output;
}

double desk_value(const struct desk *desk, const char *name) {
    const struct figure *figure = plan_figure(&desk->plan, output_of(desk, name));

    if (figure->cannot) {
        fail_msg("%s cannot be computed: %s", name, figure->cannot);
    }
    return figure->value;
}

const char *desk_cannot(const struct desk *desk, const char *name) {
    return plan_figure(&desk->plan, output_of(desk, name))->cannot;
}

const char *desk_words(const struct desk *desk, const char *name) {
    return plan_words(&desk->plan, output_of(desk, name));
}

void desk_assert(const struct desk *desk, const char *name, double wanted, double tolerance) {
    double value = desk_value(desk, name);

    if (!(fabs(value - wanted) <= tolerance * fabs(wanted))) {
        fail_msg("%s is %.12g, not %.12g", name, value, wanted);
    }
}

void desk_assert_sound(const struct desk *desk) {
    for (uint32_t i = 0; i < desk->plan.model->output_count; i++) {
        const struct plan_output *output = &desk->plan.model->outputs[i];

        if (!output->is_words && !plan_figure(&desk->plan, output)->cannot &&
            !isfinite(plan_figure(&desk->plan, output)->value)) {
            fail_msg("%s is not finite", output->name);
        }
    }
}
