/* All models on one set of settings. */
#include "planner/scenario.h"
#include "base/err.h"
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a row of settings that refers to a figure took in the last pass. */
struct reference {
    enum { REFERENCE_NEW, REFERENCE_TAKEN, REFERENCE_CANNOT, REFERENCE_REFUSED } state;
    double value;
    struct plan_problem problem; /* of the last two */
};

/* One row of settings on its way into an input. */
struct setting {
    struct plan *plan;
    const struct data_row *row;
    const struct plan_input *input;
    char shown[2 * DATA_NAME_BYTES + 4]; /* "[checkpoint] target" */
};

/* Rounding may differ in the last digits when two figures lean on each other. */
#define SAME_SHARE 1e-12

void scenario_deinit(struct scenario *scenario) {
    for (size_t i = 0; i < SCENARIO_MODELS_MAX; i++) {
        plan_deinit(&scenario->plans[i]);
    }
    free(scenario->references);
    *scenario = (struct scenario){0};
}

static size_t model_index(const struct plan_model *model) {
    size_t i = 0;

    while (plan_models[i] != model) {
        i++;
    }
    return i;
}

struct plan *scenario_plan(struct scenario *scenario, const struct plan_model *model) {
    return &scenario->plans[model_index(model)];
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

/* "=model.output", of the input's unit. */
static int refer(const struct setting *setting, const struct plan_model **ret_model,
                 const struct plan_output **ret_output, struct plan_problem *problem) {
    const struct plan_input *input = setting->input;
    char name[DATA_NAME_BYTES] = {0};
    const char *at = setting->row->text + 1 + strspn(setting->row->text + 1, " ");
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
        plan_complain(problem,
                      "%s refers to \"%.60s\", which is no figure: `shoal plan MODEL --help` lists "
                      "them, for example %s = =size.write_bandwidth",
                      setting->shown, at, setting->shown);
        return -ERR_NOT_FOUND;
    }
    if (input->kind != PLAN_NUMBER ||
        strcmp(unit_name(input->unit), unit_name(output->unit)) != 0) {
        plan_complain(problem, "%s takes %s, and %.60s is %s", setting->shown,
                      input->kind == PLAN_NUMBER ? unit_words(input->unit) : "no figure", at,
                      unit_words(output->unit));
        return -ERR_MALFORMED;
    }
    *ret_model = model;
    *ret_output = output;
    return 0;
}

/* Takes what the figure was at last; an input without stays at its default for this pass. */
static void take_figure(struct scenario *scenario, const struct setting *setting,
                        const struct figure *figure) {
    struct reference *reference = &scenario->references[setting->row - scenario->settings->rows];
    struct reference now = {.state = REFERENCE_NEW};

    if (figure && figure->cannot) {
        now.state = REFERENCE_CANNOT;
        plan_complain(&now.problem, "%s needs %.60s, which cannot be computed: %s", setting->shown,
                      setting->row->text + 1, figure->cannot);
    } else if (figure) {
        now.value = figure->value;
        now.state = plan_set_number(setting->plan, setting->input, setting->shown, figure->value,
                                    &now.problem) == 0
                        ? REFERENCE_TAKEN
                        : REFERENCE_REFUSED;
    }
    scenario->changed |= now.state == REFERENCE_NEW || now.state != reference->state ||
                         fabs(now.value - reference->value) > SAME_SHARE * fabs(now.value);
    *reference = now;
}

/* A figure's name without the = that makes it one. */
static bool is_figure_name(const char *text) {
    char name[DATA_NAME_BYTES] = {0};
    size_t size = strcspn(text, ".");

    if (text[size] != '.' || size >= sizeof name) {
        return false;
    }
    memcpy(name, text, size);
    const struct plan_model *model = plan_model_find(name);
    return model && plan_output_find(model, text + size + 1);
}

static int set_text(const struct setting *setting, struct plan_problem *problem) {
    const struct data_row *row = setting->row;
    int r = plan_set(setting->plan, setting->input, setting->shown, row->text, problem);

    if (r < 0 && is_figure_name(row->text)) {
        plan_complain(problem, "%s: a figure is taken by a second =: %s = =%.60s", setting->shown,
                      row->key, row->text);
    }
    return r;
}

static int set_one(struct scenario *scenario, struct setting *setting,
                   struct plan_problem *problem) {
    const struct plan_model *model;
    const struct plan_output *output;

    snprintf(setting->shown, sizeof setting->shown, "[%s] %s", setting->row->section,
             setting->row->key);
    if (setting->row->text[0] != '=') {
        return set_text(setting, problem);
    }
    int r = refer(setting, &model, &output, problem);
    if (r == 0) {
        size_t index = model_index(model);

        take_figure(scenario, setting,
                    scenario->computed[index] ? plan_figure(&scenario->plans[index], output)
                                              : NULL);
    }
    return r;
}

static int set_all(struct scenario *scenario, struct plan *plan, const char *section,
                   struct plan_problem *problem) {
    const struct data *settings = scenario->settings;

    for (size_t i = 0; i < settings->count; i++) {
        const struct data_row *row = &settings->rows[i];
        const struct plan_input *input = plan_input_find(plan->model, row->key);

        /* A model's own setting goes over the common one. */
        if (input && strcmp(row->section, section) == 0 &&
            !(strcmp(section, "common") == 0 && data_text(settings, plan->model->name, row->key))) {
            struct setting setting = {.plan = plan, .row = row, .input = input};
            int r = set_one(scenario, &setting, problem);

            if (r < 0) {
                return r;
            }
        }
    }
    return 0;
}

static int run_model(struct scenario *scenario, size_t index, struct plan_problem *problem) {
    struct plan *plan = &scenario->plans[index];

    plan_reset(plan);
    int r = set_all(scenario, plan, "common", problem);
    if (r == 0) {
        r = set_all(scenario, plan, plan->model->name, problem);
    }
    if (r == 0) {
        r = plan_fill(plan, scenario->data, problem);
    }
    if (r == 0) {
        (void)plan_row(plan, scenario->data, 0);
        scenario->computed[index] = true;
    }
    return r;
}

static int run_passes(struct scenario *scenario, struct plan_problem *problem) {
    for (int pass = 0; pass < SCENARIO_PASSES_MAX; pass++) {
        scenario->changed = false;
        for (size_t i = 0; i < plan_model_count; i++) {
            int r = run_model(scenario, i, problem);

            if (r < 0) {
                return r;
            }
        }
        if (!scenario->changed) {
            return 0;
        }
    }
    plan_complain(problem, "settings refer to each other in a circle that does not settle: each "
                           "pass changes the figures that they take");
    return -ERR_LOOP;
}

/* What no pass could take. */
static int check_references(const struct scenario *scenario, struct plan_problem *problem) {
    for (size_t i = 0; i < scenario->settings->count; i++) {
        const struct reference *reference = &scenario->references[i];

        if (reference->state == REFERENCE_CANNOT || reference->state == REFERENCE_REFUSED) {
            *problem = reference->problem;
            return -ERR_INVALID;
        }
    }
    return 0;
}

int scenario_run(struct scenario *scenario, const struct data *data, const struct data *settings,
                 struct plan_problem *problem) {
    assert(plan_model_count <= SCENARIO_MODELS_MAX);
    *scenario = (struct scenario){.data = data, .settings = settings};
    int r = check_settings(settings, problem);
    if (r == 0) {
        scenario->references = calloc(settings->count + 1, sizeof *scenario->references);
        r = scenario->references ? 0 : -ERR_NO_MEMORY;
        for (size_t i = 0; r == 0 && i < plan_model_count; i++) {
            r = plan_init(&scenario->plans[i], plan_models[i]);
        }
        if (r < 0) {
            plan_complain(problem, "memory ran out");
        }
    }
    r = r < 0 ? r : run_passes(scenario, problem);
    r = r < 0 ? r : check_references(scenario, problem);
    if (r < 0) {
        scenario_deinit(scenario);
    }
    return r;
}
