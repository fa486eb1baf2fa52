/* One model at work. */
#include "planner/plan.h"
#include "base/err.h"
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TYPED_SHOWN_MAX = 20 };

void plan_complain(struct plan_problem *problem, const char *format, ...) {
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(problem->text, sizeof problem->text, format, arguments);
    va_end(arguments);
}

int plan_init(struct plan *plan, const struct plan_model *model) {
    assert(model->input_count <= PLAN_INPUTS_MAX && model->output_count <= PLAN_OUTPUTS_MAX);
    *plan = (struct plan){.model = model};
    plan->inputs = calloc(1, model->input_bytes);
    plan->outputs = calloc(1, model->output_bytes);
    if (!plan->inputs || !plan->outputs) {
        plan_deinit(plan);
        return -ERR_NO_MEMORY;
    }
    return 0;
}

void plan_deinit(struct plan *plan) {
    free(plan->inputs);
    free(plan->outputs);
    *plan = (struct plan){0};
}

void plan_reset(struct plan *plan) {
    memset(plan->given, 0, sizeof plan->given);
    memset(plan->typed, 0, sizeof plan->typed);
}

/* A dash and an underscore are the same. */
static bool name_is(const char *name, const char *wanted) {
    for (; *name && (*name == *wanted || (*name == '_' && *wanted == '-')); name++, wanted++) {
    }
    return *name == '\0' && *wanted == '\0';
}

const struct plan_input *plan_input_find(const struct plan_model *model, const char *name) {
    for (uint32_t i = 0; i < model->input_count; i++) {
        if (name_is(model->inputs[i].name, name)) {
            return &model->inputs[i];
        }
    }
    return NULL;
}

const struct plan_output *plan_output_find(const struct plan_model *model, const char *name) {
    for (uint32_t i = 0; i < model->output_count; i++) {
        if (name_is(model->outputs[i].name, name)) {
            return &model->outputs[i];
        }
    }
    return NULL;
}

static void *input_at(const struct plan *plan, const struct plan_input *input) {
    return (char *)plan->inputs + input->offset;
}

/* Between a name and its value: "--target 60s", "[checkpoint] target = 60s". */
static const char *equals_of(const char *shown) {
    return shown[0] == '[' ? " = " : " ";
}

static bool in_range(const struct plan_input *input, double number) {
    return number >= input->least && number <= input->most;
}

/* What would be taken: the default where it is a text that says something, or the unit's example,
 * or the end of the range. */
static const char *example_of(const struct plan_input *input, char text[UNIT_TEXT_BYTES]) {
    const char *example = unit_example(input->unit);
    double number;

    if (unit_parse(input->unit, input->fallback, &number) == 0 && number > 0) {
        return input->fallback;
    }
    if (unit_parse(input->unit, example, &number) == 0 && in_range(input, number)) {
        return example;
    }
    unit_format_exact(input->unit, input->most, text);
    return text;
}

int plan_set_number(struct plan *plan, const struct plan_input *input, const char *shown,
                    double number, struct plan_problem *problem) {
    char least[UNIT_TEXT_BYTES];
    char most[UNIT_TEXT_BYTES];
    char given[UNIT_TEXT_BYTES];

    if (input->kind != PLAN_NUMBER) {
        plan_complain(problem, "%s is no number", shown);
        return -ERR_INVALID;
    }
    if (!in_range(input, number)) {
        char example[UNIT_TEXT_BYTES];

        unit_format(input->unit, input->least, least);
        unit_format(input->unit, input->most, most);
        unit_format(input->unit, number, given);
        plan_complain(problem, "%s takes %s to %s, not %s: for example %s%s%s", shown, least, most,
                      given, shown, equals_of(shown), example_of(input, example));
        return -ERR_INVALID;
    }
    if (input->whole && number != floor(number)) {
        char whole[UNIT_TEXT_BYTES];

        unit_format(input->unit, number, given);
        unit_format_exact(input->unit, ceil(number), whole);
        plan_complain(problem, "%s takes a whole number, not %s: for example %s%s%s", shown, given,
                      shown, equals_of(shown), whole);
        return -ERR_INVALID;
    }
    *(double *)input_at(plan, input) = number + 0.0; /* of -0 it makes 0 */
    plan->given[input - plan->model->inputs] = true;
    plan->typed[input - plan->model->inputs][0] = '\0';
    return 0;
}

static int set_choice(struct plan *plan, const struct plan_input *input, const char *shown,
                      const char *text, struct plan_problem *problem) {
    int index = 0;

    for (const char *at = input->choices;; index++) {
        size_t size = strcspn(at, "|");

        if (strlen(text) == size && memcmp(at, text, size) == 0) {
            *(int *)input_at(plan, input) = index;
            plan->given[input - plan->model->inputs] = true;
            return 0;
        }
        if (at[size] == '\0') {
            plan_complain(problem, "%s takes one of %s, not \"%.60s\": for example %s%s%s", shown,
                          input->choices, text, shown, equals_of(shown), input->fallback);
            return -ERR_MALFORMED;
        }
        at += size + 1;
    }
}

/* "x:y,x:y,...", both plain numbers above 0. */
static int set_points(struct plan *plan, const struct plan_input *input, const char *shown,
                      const char *text, struct plan_problem *problem) {
    struct points points = {0};

    for (const char *at = text; *at;) {
        char *end;

        if (points.count == POINTS_MAX) {
            plan_complain(problem, "%s takes %d points at most", shown, POINTS_MAX);
            return -ERR_INVALID;
        }
        points.x[points.count] = strtod(at, &end);
        bool good = end != at && *end == ':';
        at = end + (*end != '\0');
        points.y[points.count] = strtod(at, &end);
        good = good && end != at && (*end == ',' || *end == '\0');
        if (!good || !isfinite(points.x[points.count]) || !isfinite(points.y[points.count]) ||
            points.x[points.count] <= 0 || points.y[points.count] <= 0) {
            plan_complain(problem,
                          "%s takes points x:y of numbers above 0, not \"%.60s\": for example "
                          "%s 1:95,8:700,32:2100",
                          shown, text, shown);
            return -ERR_MALFORMED;
        }
        points.count++;
        at = end + (*end == ',');
    }
    *(struct points *)input_at(plan, input) = points;
    plan->given[input - plan->model->inputs] = true;
    return 0;
}

int plan_set(struct plan *plan, const struct plan_input *input, const char *shown, const char *text,
             struct plan_problem *problem) {
    double number;

    if (input->kind == PLAN_CHOICE) {
        return set_choice(plan, input, shown, text, problem);
    }
    if (input->kind == PLAN_POINTS) {
        return set_points(plan, input, shown, text, problem);
    }
    if (unit_parse(input->unit, text, &number) < 0) {
        char example[UNIT_TEXT_BYTES];

        plan_complain(problem, "%s takes %s, not \"%.60s\": for example %s%s%s", shown,
                      unit_words(input->unit), text, shown, equals_of(shown),
                      example_of(input, example));
        return -ERR_MALFORMED;
    }
    int r = plan_set_number(plan, input, shown, number, problem);
    if (r == 0) {
        char *typed = plan->typed[input - plan->model->inputs];

        text += strspn(text, " ");
        snprintf(typed, UNIT_TEXT_BYTES, "%s", strlen(text) < UNIT_TEXT_BYTES ? text : "");
    }
    return r;
}

int plan_fill(struct plan *plan, const struct data *data, struct plan_problem *problem) {
    for (uint32_t i = 0; i < plan->model->input_count; i++) {
        const struct plan_input *input = &plan->model->inputs[i];
        const char *text = input->fallback;

        if (plan->given[i]) {
            continue;
        }
        if (text[0] == '@') {
            text = data_find(data, text + 1);
        }
        if (!text) {
            plan_complain(problem, "the default of %s, %s, is missing in the data files",
                          input->name, input->fallback + 1);
            return -ERR_NOT_FOUND;
        }
        int r = plan_set(plan, input, input->fallback[0] == '@' ? input->fallback + 1 : input->name,
                         text, problem);
        if (r < 0) {
            return r;
        }
        plan->given[i] = false;
    }
    return 0;
}

const char *plan_input_about(const struct plan *plan, const struct plan_input *input,
                             const struct data *data, const char *what) {
    if (plan->given[input - plan->model->inputs] || input->fallback[0] != '@') {
        return NULL;
    }
    return data_about(data, input->fallback + 1, what);
}

bool plan_unused(const struct plan *plan, const struct plan_input *input,
                 struct plan_problem *ret_why) {
    const char *moot = plan->given[input - plan->model->inputs]
                           ? plan->model->moot(plan->inputs, input->name)
                           : NULL;
    char shown[PLAN_SHOWN_BYTES];

    if (!moot) {
        return false;
    }
    const struct plan_input *culprit = plan_input_find(plan->model, moot);
    plan_show_input(plan, culprit, shown);
    plan_complain(ret_why, "--%s (%s is %s)", input->name, moot, shown);
    for (char *at = ret_why->text; *at && *at != ' '; at++) {
        if (*at == '_') {
            *at = '-';
        }
    }
    return true;
}

enum plan_level plan_level(const struct plan *plan) {
    const struct plan_output *verdict = plan_output_find(plan->model, "verdict");

    return verdict ? level_of(plan_words(plan, verdict)) : LEVEL_NONE;
}

bool plan_row(struct plan *plan, const struct data *data, size_t row) {
    memset(plan->outputs, 0, plan->model->output_bytes);
    if (!plan->model->row(data, plan->inputs, row, plan->outputs)) {
        return false;
    }
    for (uint32_t i = 0; i < plan->model->output_count; i++) {
        const struct plan_output *output = &plan->model->outputs[i];
        struct figure *figure = (void *)((char *)plan->outputs + output->offset);

        if (!output->is_words && !figure->cannot) {
            *figure = figure_of(figure->value);
        }
    }
    return true;
}

double plan_number(const struct plan *plan, const struct plan_input *input) {
    return input->kind == PLAN_NUMBER ? *(const double *)input_at(plan, input)
           : input->kind == PLAN_CHOICE
               ? *(const int *)input_at(plan, input)
               : (double)((const struct points *)input_at(plan, input))->count;
}

const struct figure *plan_figure(const struct plan *plan, const struct plan_output *output) {
    return (const void *)((const char *)plan->outputs + output->offset);
}

const char *plan_words(const struct plan *plan, const struct plan_output *output) {
    return ((const struct plan_words *)(const void *)((const char *)plan->outputs + output->offset))
        ->text;
}

static void show_points(const struct points *points, char text[PLAN_SHOWN_BYTES]) {
    size_t used = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < points->count && used < PLAN_SHOWN_BYTES - 50; i++) {
        used += (size_t)snprintf(text + used, PLAN_SHOWN_BYTES - used, "%s%.15g:%.15g",
                                 i > 0 ? "," : "", points->x[i], points->y[i]);
    }
}

void plan_show_input(const struct plan *plan, const struct plan_input *input,
                     char ret_text[PLAN_SHOWN_BYTES]) {
    const char *at = input->choices;

    const char *typed = plan->typed[input - plan->model->inputs];

    /* Measured costs have more digits than anybody would type. */
    if (input->kind == PLAN_NUMBER && typed[0] && strlen(typed) <= TYPED_SHOWN_MAX) {
        snprintf(ret_text, PLAN_SHOWN_BYTES, "%s", typed);
    } else if (input->kind == PLAN_NUMBER) {
        unit_format(input->unit, plan_number(plan, input), ret_text);
    } else if (input->kind == PLAN_POINTS) {
        show_points(input_at(plan, input), ret_text);
    } else {
        for (int i = 0; i < *(const int *)input_at(plan, input); i++) {
            at += strcspn(at, "|") + 1;
        }
        snprintf(ret_text, PLAN_SHOWN_BYTES, "%.*s", (int)strcspn(at, "|"), at);
    }
}
