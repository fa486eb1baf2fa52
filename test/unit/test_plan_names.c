/* An input's name is one thing: a scenario and the page set it once for every model that has it. */
#include "unit.h"
#include "planner/plan.h"
#include <string.h>

static bool same_choices(const struct plan_input *one, const struct plan_input *other) {
    return one->kind != PLAN_CHOICE || strcmp(one->choices, other->choices) == 0;
}

static void equal_names_are_equal_things(void **state) {
    size_t compared = 0;

    (void)state;
    for (size_t i = 0; i < plan_model_count; i++) {
        for (size_t j = 0; j < plan_models[i]->input_count; j++) {
            const struct plan_input *input = &plan_models[i]->inputs[j];

            for (size_t k = i + 1; k < plan_model_count; k++) {
                const struct plan_input *other = plan_input_find(plan_models[k], input->name);

                if (other && (other->kind != input->kind || other->unit != input->unit ||
                              !same_choices(input, other))) {
                    fail_msg("%s of %s is another thing than that of %s", input->name,
                             plan_models[i]->name, plan_models[k]->name);
                }
                compared += other != NULL;
            }
        }
    }
    /* At least the nodes are everywhere. */
    assert_true(compared > plan_model_count);
}

/* A default is allowed wherever the name is: who types what one model shows is not refused. */
static void one_range_holds_the_other_default(void **state) {
    (void)state;
    for (size_t i = 0; i < plan_model_count; i++) {
        for (size_t j = 0; j < plan_models[i]->input_count; j++) {
            const struct plan_input *input = &plan_models[i]->inputs[j];
            double number;

            if (input->kind != PLAN_NUMBER || input->fallback[0] == '@') {
                continue;
            }
            assert_int_equal(unit_parse(input->unit, input->fallback, &number), 0);
            for (size_t k = 0; k < plan_model_count; k++) {
                const struct plan_input *other = plan_input_find(plan_models[k], input->name);

                if (other && (number < other->least || number > other->most)) {
                    fail_msg("%s: the default of %s is out of range in %s", input->name,
                             plan_models[i]->name, plan_models[k]->name);
                }
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_names_are_equal_things),
        cmocka_unit_test(one_range_holds_the_other_default),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
