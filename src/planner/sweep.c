/* One input taken through a range. */
#include "planner/sweep.h"
#include "base/err.h"
#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* From the default of the input that was meant, or of the first that can be doubled. */
static bool example_with(const struct plan_input *input, char text[256]) {
    char end[UNIT_TEXT_BYTES];
    double number;

    if (!input || input->kind != PLAN_NUMBER ||
        unit_parse(input->unit, input->fallback, &number) < 0 || number <= 0) {
        return false;
    }
    bool doubled = 2 * number <= input->most;
    unit_format(input->unit, doubled ? 2 * number : number / 2, end);
    if (unit_parse(input->unit, end, &number) < 0) {
        unit_format_exact(input->unit, number, end);
    }
    for (char *at = end, *to = end;; at++) {
        if (*at != ' ' && *at != ',') {
            *to++ = *at;
        }
        if (*at == '\0') {
            break;
        }
    }
    snprintf(text, 256, "--sweep %s=%s..%s:10", input->name, doubled ? input->fallback : end,
             doubled ? end : input->fallback);
    return true;
}

static void example_of(const struct plan_model *model, const struct plan_input *input,
                       char text[256]) {
    bool found = example_with(input, text);

    for (uint32_t i = 0; !found && i < model->input_count; i++) {
        found = example_with(&model->inputs[i], text);
    }
    if (!found) {
        snprintf(text, 256, "--sweep NAME=FROM..TO:10");
    }
}

static int refuse(const struct plan_model *model, const struct plan_input *input, const char *text,
                  const char *why, struct plan_problem *problem) {
    char example[256];

    example_of(model, input, example);
    plan_complain(problem, "--sweep %.80s: %s: for example %s", text, why, example);
    return -ERR_MALFORMED;
}

static int refuse_end(const struct plan_model *model, const struct plan_input *input,
                      const char *text, struct plan_problem *problem) {
    char least[UNIT_TEXT_BYTES];
    char most[UNIT_TEXT_BYTES];
    char why[160];

    unit_format(input->unit, input->least, least);
    unit_format(input->unit, input->most, most);
    snprintf(why, sizeof why, "an end is malformed or out of range, which is %s to %s", least,
             most);
    return refuse(model, input, text, why, problem);
}

static bool copy_part(char part[64], const char *from, size_t size) {
    if (size == 0 || size >= 64) {
        return false;
    }
    memcpy(part, from, size);
    part[size] = '\0';
    return true;
}

/* ":20" or ":20log" at the end of the range. */
static bool take_steps(struct sweep *sweep, const char *text) {
    char *end;

    sweep->step_count = SWEEP_STEPS_DEFAULT;
    if (*text == '\0') {
        return true;
    }
    if (!isdigit((unsigned char)text[1])) {
        return false;
    }
    unsigned long steps = strtoul(text + 1, &end, 10);
    sweep->by_factors = strcmp(end, "log") == 0;
    sweep->step_count = (uint32_t)MIN(steps, SWEEP_STEPS_MAX + 1UL);
    return (*end == '\0' || sweep->by_factors) && steps >= 2 && steps <= SWEEP_STEPS_MAX;
}

static bool take_end(const struct sweep *sweep, const char *text, double *ret_value) {
    return unit_parse(sweep->input->unit, text, ret_value) == 0 &&
           *ret_value >= sweep->input->least && *ret_value <= sweep->input->most;
}

int sweep_parse(struct sweep *sweep, const struct plan_model *model, const char *text,
                struct plan_problem *problem) {
    char name[64];
    char from[64];
    char to[64];
    const char *equals = strchr(text, '=');
    const char *dots = equals ? strstr(equals, "..") : NULL;

    *sweep = (struct sweep){0};
    if (!dots || !copy_part(name, text, (size_t)(equals - text)) ||
        !copy_part(from, equals + 1, (size_t)(dots - equals - 1)) ||
        !copy_part(to, dots + 2, strcspn(dots + 2, ":"))) {
        return refuse(model, NULL, text, "it takes NAME=FROM..TO[:STEPS[log]]", problem);
    }
    sweep->input = plan_input_find(model, name);
    if (!sweep->input || sweep->input->kind != PLAN_NUMBER) {
        return refuse(model, NULL, text, "there is no such number among the inputs", problem);
    }
    if (!take_end(sweep, from, &sweep->from) || !take_end(sweep, to, &sweep->to)) {
        return refuse_end(model, sweep->input, text, problem);
    }
    if (!take_steps(sweep, dots + 2 + strcspn(dots + 2, ":"))) {
        return refuse(model, sweep->input, text,
                      "the number of steps is 2 to 10000, with log behind it or not", problem);
    }
    if (sweep->by_factors && (sweep->from <= 0 || sweep->to <= 0)) {
        return refuse(model, sweep->input, text, "equal factors need ends above 0", problem);
    }
    return 0;
}

double sweep_value(const struct sweep *sweep, uint32_t step) {
    double part = (double)step / (sweep->step_count - 1);

    /* The ends are met exactly. */
    if (step == 0 || step + 1 == sweep->step_count) {
        return step == 0 ? sweep->from : sweep->to;
    }
    double low = fmin(sweep->from, sweep->to);
    double high = fmax(sweep->from, sweep->to);
    /* The factor between the ends may be larger than a number can be, their powers are not. */
    double value = sweep->by_factors ? pow(sweep->from, 1 - part) * pow(sweep->to, part)
                                     : sweep->from + (sweep->to - sweep->from) * part;

    value = fmin(high, fmax(low, value));
    return sweep->input->whole ? round(value) : value;
}

void sweep_apply(const struct sweep *sweep, struct plan *plan, uint32_t step) {
    struct plan_problem problem;

    /* Both ends are in range, and so is what lies between. */
    int r =
        plan_set_number(plan, sweep->input, sweep->input->name, sweep_value(sweep, step), &problem);
    assert(r == 0);
    (void)r;
}
