/* All models on one set of settings. */
#include "planner/scenario.h"
#include "base/err.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

static int run_model(struct scenario *scenario, size_t index, struct plan_problem *problem);

void scenario_deinit(struct scenario *scenario) {
    for (size_t i = 0; i < SCENARIO_MODELS_MAX; i++) {
        plan_deinit(&scenario->plans[i]);
    }
    *scenario = (struct scenario){0};
}

static size_t model_index(const struct plan_model *model) {
    size_t i = 0;

    while (plan_models[i] != model) {
        i++;
    }
    return i;
}

static bool any_model_has(const char *name) {
    for (size_t i = 0; i < plan_model_count; i++) {
        if (plan_input_find(plan_models[i], name)) {
            return true;
        }
    }
    return false;
}

static int check_settings(const struct data *settings, struct plan_problem *problem) {
    for (size_t i = 0; i < settings->count; i++) {
        const struct data_row *row = &settings->rows[i];
        const struct plan_model *model = plan_model_find(row->section);

        if (strncmp(row->section, "about.", 6) == 0) {
            continue;
        }
        if (!model && strcmp(row->section, "common") != 0) {
            plan_complain(problem,
                          "there is no model \"%s\": sections are [common] and the verbs of "
                          "`shoal plan --help`, for example [checkpoint]",
                          row->section);
            return -ERR_NOT_FOUND;
        }
        if (model ? !plan_input_find(model, row->key) : !any_model_has(row->key)) {
            plan_complain(problem, "[%s] has no input \"%s\": `shoal plan %s --help` lists them",
                          row->section, row->key, model ? row->section : "checkpoint");
            return -ERR_NOT_FOUND;
        }
    }
    return 0;
}

/* A figure of another model. */
struct reference {
    const struct plan_model *model;
    const struct plan_output *output;
};

/* "=model.output" */
static int read_reference(const char *shown, const char *text, struct reference *ret_reference,
                          struct plan_problem *problem) {
    char name[DATA_NAME_BYTES] = {0};
    const char *at = text + 1 + strspn(text + 1, " ");
    size_t size = strcspn(at, ".");
    const struct plan_model *model = NULL;
    const struct plan_output *output = NULL;

    if (at[size] == '.' && size < sizeof name) {
        memcpy(name, at, size);
        model = plan_model_find(name);
    }
    if (model) {
        output = plan_output_find(model, at + size + 1);
    }
    if (!output || output->is_words) {
        plan_complain(problem, "%s refers to \"%.60s\", which is no figure: for example %s = =%s",
                      shown, at, shown, "checkpoint.size");
        return -ERR_NOT_FOUND;
    }
    *ret_reference = (struct reference){model, output};
    return 0;
}

/* Seconds are no share: the base units have to be the same. */
static int check_unit(const char *shown, const struct plan_input *input,
                      const struct reference *reference, struct plan_problem *problem) {
    const char *unit = unit_name(reference->output->unit);

    if (input->kind == PLAN_NUMBER && strcmp(unit_name(input->unit), unit) != 0) {
        plan_complain(problem, "%s takes %s, and %s.%s has the unit %s", shown,
                      unit_words(input->unit), reference->model->name, reference->output->name,
                      unit);
        return -ERR_MALFORMED;
    }
    return 0;
}

/* Runs the figure's model first. */
static int refer(struct scenario *scenario, const struct reference *reference,
                 const struct figure **ret_figure, struct plan_problem *problem) {
    size_t index = model_index(reference->model);

    int r = run_model(scenario, index, problem);
    if (r == 0) {
        *ret_figure = plan_figure(&scenario->plans[index], reference->output);
    }
    return r;
}

static int set_one(struct scenario *scenario, struct plan *plan, const struct data_row *row,
                   const struct plan_input *input, struct plan_problem *problem) {
    const struct figure *figure = NULL;
    struct reference reference;
    char shown[2 * DATA_NAME_BYTES + 4];

    snprintf(shown, sizeof shown, "[%s] %s", row->section, row->key);
    if (row->text[0] != '=') {
        return plan_set(plan, input, shown, row->text, problem);
    }
    int r = read_reference(shown, row->text, &reference, problem);
    r = r < 0 ? r : check_unit(shown, input, &reference, problem);
    r = r < 0 ? r : refer(scenario, &reference, &figure, problem);
    if (r < 0) {
        return r;
    }
    if (figure->cannot) {
        plan_complain(problem, "%s needs %.60s, which cannot be computed: %s", shown, row->text + 1,
                      figure->cannot);
        return -ERR_INVALID;
    }
    return plan_set_number(plan, input, shown, figure->value, problem);
}

/* Common settings first, so that the model's own go over them. */
static int set_all(struct scenario *scenario, struct plan *plan, const char *section,
                   struct plan_problem *problem) {
    const struct data *settings = scenario->settings;

    for (size_t i = 0; i < settings->count; i++) {
        const struct data_row *row = &settings->rows[i];
        const struct plan_input *input = plan_input_find(plan->model, row->key);

        if (input && strcmp(row->section, section) == 0) {
            int r = set_one(scenario, plan, row, input, problem);

            if (r < 0) {
                return r;
            }
        }
    }
    return 0;
}

static int run_model(struct scenario *scenario, size_t index, struct plan_problem *problem) {
    struct plan *plan = &scenario->plans[index];

    if (scenario->states[index] == SCENARIO_DONE) {
        return 0;
    }
    if (scenario->states[index] == SCENARIO_AT_WORK) {
        plan_complain(problem, "settings of [%s] refer to each other in a circle",
                      plan_models[index]->name);
        return -ERR_LOOP;
    }
    scenario->states[index] = SCENARIO_AT_WORK;
    int r = plan_init(plan, plan_models[index]);
    if (r < 0) {
        plan_complain(problem, "memory ran out");
        return r;
    }
    r = set_all(scenario, plan, "common", problem);
    if (r == 0) {
        r = set_all(scenario, plan, plan->model->name, problem);
    }
    if (r == 0) {
        r = plan_fill(plan, scenario->data, problem);
    }
    if (r < 0) {
        return r;
    }
    (void)plan_row(plan, scenario->data, 0);
    scenario->states[index] = SCENARIO_DONE;
    return 0;
}

int scenario_run(struct scenario *scenario, const struct data *data, const struct data *settings,
                 struct plan_problem *problem) {
    assert(plan_model_count <= SCENARIO_MODELS_MAX);
    *scenario = (struct scenario){.data = data, .settings = settings};
    int r = check_settings(settings, problem);
    for (size_t i = 0; r == 0 && i < plan_model_count; i++) {
        r = run_model(scenario, i, problem);
    }
    if (r < 0) {
        scenario_deinit(scenario);
    }
    return r;
}
