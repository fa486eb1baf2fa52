/* The list of models. */
#include "planner/model.h"
#include "planner/plan.h"
#include <stdio.h>
#include <string.h>

const struct plan_model *const plan_models[] = {
    &plan_checkpoint, &plan_metadata,  &plan_loading,   &plan_scaling, &plan_stripe,
    &plan_latency,    &plan_rebalance, &plan_cost,      &plan_size,    &plan_choose,
    &plan_compare,    &plan_cluster,   &plan_inference, &plan_mix,     &plan_systems,
};
const size_t plan_model_count = ARRAY_SIZE(plan_models);

const struct plan_model *plan_model_find(const char *name) {
    for (size_t i = 0; i < plan_model_count; i++) {
        if (strcmp(plan_models[i]->name, name) == 0) {
            return plan_models[i];
        }
    }
    return NULL;
}

void plan_choice_name(const struct plan_model *model, const char *input, int number,
                      char ret_name[DATA_NAME_BYTES]) {
    const char *at = plan_input_find(model, input)->choices;

    for (int i = 0; i < number; i++) {
        at += strcspn(at, "|") + 1;
    }
    snprintf(ret_name, DATA_NAME_BYTES, "%.*s", (int)strcspn(at, "|"), at);
}
