/* Results as lines and as CSV, and what all reports share. */
#include "planner/report.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

void report_formula_names(const struct plan_model *model, const char *formula,
                          void (*take)(void *context, const struct plan_input *input,
                                       const struct plan_output *output),
                          void *context) {
    bool seen_inputs[PLAN_INPUTS_MAX] = {0};
    bool seen_outputs[PLAN_OUTPUTS_MAX] = {0};
    char name[DATA_NAME_BYTES];
    char quote = '\0';

    for (const char *at = formula; *at;) {
        size_t size = 1;

        if (*at == '\'' || *at == '"') {
            quote = quote == *at ? '\0' : *at;
        } else if (!quote && (isalpha((unsigned char)*at) || *at == '_')) {
            while (isalnum((unsigned char)at[size]) || at[size] == '_') {
                size++;
            }
        }
        if (!quote && size < sizeof name) {
            memcpy(name, at, size);
            name[size] = '\0';
            const struct plan_input *input = plan_input_find(model, name);
            const struct plan_output *output = input ? NULL : plan_output_find(model, name);
            bool *seen = input    ? &seen_inputs[input - model->inputs]
                         : output ? &seen_outputs[output - model->outputs]
                                  : NULL;

            if (seen && !*seen) {
                *seen = true;
                take(context, input, output);
            }
        }
        at += size;
    }
}

void report_show(const struct plan *plan, const struct plan_output *output,
                 char text[PLAN_SHOWN_BYTES]) {
    const struct figure *figure = plan_figure(plan, output);

    if (output->is_words) {
        snprintf(text, PLAN_SHOWN_BYTES, "%s", plan_words(plan, output));
    } else if (figure->cannot) {
        snprintf(text, PLAN_SHOWN_BYTES, "cannot be computed: %s", figure->cannot);
    } else {
        unit_format(output->unit, figure->value, text);
    }
}

struct name_lines {
    const struct report *report;
    const struct plan *plan;
};

/* Where a price or a cost comes from, and of when it is. */
static void add_origin(const struct name_lines *lines, const struct plan_input *input) {
    static const char *const parts[] = {"source", "url", "date"};
    const char *before = "            from: ";

    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        const char *told = plan_input_about(lines->plan, input, lines->report->data, parts[i]);

        if (told) {
            text_add(lines->report->text, "%s%s", before, told);
            before = ", ";
        }
    }
    text_add(lines->report->text, "%s", before[0] == ',' ? "\n" : "");
}

static void add_name(void *context, const struct plan_input *input,
                     const struct plan_output *output) {
    struct name_lines *lines = context;
    char shown[PLAN_SHOWN_BYTES];

    if (input) {
        plan_show_input(lines->plan, input, shown);
    } else {
        report_show(lines->plan, output, shown);
    }
    text_add(lines->report->text, "          %s = %s\n", input ? input->name : output->name, shown);
    if (input) {
        add_origin(lines, input);
    }
}

static void explain(const struct report *report, struct plan *plan,
                    const struct plan_output *output) {
    const struct source *source = source_get(output->source);

    if (output->formula[0]) {
        struct name_lines lines = {report, plan};

        text_add(report->text, "        %s = ", output->name);
        text_add_wrapped(report->text, output->formula, strlen(output->name) + 11, 12);
        report_formula_names(plan->model, output->formula, add_name, &lines);
    }
    char told[512];
    snprintf(told, sizeof told, "%s%s%s", source->text, source->url[0] ? ", " : "", source->url);
    text_add(report->text, "        source: ");
    text_add_wrapped(report->text, told, 16, 16);
}

static size_t name_width(const struct plan_model *model) {
    size_t width = 0;

    for (uint32_t i = 0; i < model->input_count; i++) {
        width = MAX(width, strlen(model->inputs[i].name));
    }
    for (uint32_t i = 0; i < model->output_count; i++) {
        width = MAX(width, strlen(model->outputs[i].name));
    }
    return width;
}

static void add_inputs(const struct report *report, struct plan *plan, int width) {
    char shown[PLAN_SHOWN_BYTES];

    text_add(report->text, "  inputs (* given)\n");
    for (uint32_t i = 0; i < plan->model->input_count; i++) {
        const struct plan_input *input = &plan->model->inputs[i];

        plan_show_input(plan, input, shown);
        text_add(report->text, "  %c %-*s  %-14s  %s\n", plan->given[i] ? '*' : ' ', width,
                 input->name, shown, input->help);
    }
}

static void add_outputs(const struct report *report, struct plan *plan, int width) {
    char shown[PLAN_SHOWN_BYTES];

    for (uint32_t i = 0; i < plan->model->output_count; i++) {
        const struct plan_output *output = &plan->model->outputs[i];

        report_show(plan, output, shown);
        text_add(report->text, "    %-*s  %-14s  %s\n", width, output->name, shown, output->label);
        if (report->explain) {
            explain(report, plan, output);
        }
    }
}

/* --explain NAME. */
static void explain_one(const struct report *report, struct plan *plan) {
    const struct plan_output *output = plan_output_find(plan->model, report->explain_name);
    char shown[PLAN_SHOWN_BYTES];

    for (size_t row = 0; output && plan_row(plan, report->data, row); row++) {
        report_show(plan, output, shown);
        text_add(report->text, "%s: %s: %s\n", output->name, output->label, shown);
        explain(report, plan, output);
    }
}

void report_lines(const struct report *report, struct plan *plan) {
    if (report->explain_name) {
        explain_one(report, plan);
        return;
    }
    if (!report->all && !report->explain) {
        report_brief(report, plan);
        return;
    }
    int width = (int)name_width(plan->model);
    uint32_t step_count = report->sweep ? report->sweep->step_count : 1;

    text_add(report->text, "%s: %s\n", plan->model->name, plan->model->summary);
    add_inputs(report, plan, width);
    for (uint32_t step = 0; step < step_count; step++) {
        char swept[UNIT_TEXT_BYTES] = "";

        if (report->sweep) {
            sweep_apply(report->sweep, plan, step);
            unit_format(report->sweep->input->unit, sweep_value(report->sweep, step), swept);
        }
        for (size_t row = 0; plan_row(plan, report->data, row); row++) {
            text_add(report->text, "  results%s%s%s%s\n", report->sweep ? " at " : "",
                     report->sweep ? report->sweep->input->name : "", report->sweep ? " = " : "",
                     swept);
            add_outputs(report, plan, width);
        }
    }
}

static void csv_heading(struct text *text, const char *separator, const char *name,
                        const char *unit) {
    char heading[2 * DATA_NAME_BYTES];

    snprintf(heading, sizeof heading, strcmp(unit, "1") == 0 ? "%s" : "%s [%s]", name, unit);
    text_add(text, "%s", separator);
    text_add_csv(text, heading);
}

static void csv_head(const struct report *report, const struct plan_model *model) {
    text_add(report->text, "model");
    for (uint32_t i = 0; i < model->input_count; i++) {
        const struct plan_input *input = &model->inputs[i];

        csv_heading(report->text, ",", input->name,
                    input->kind == PLAN_NUMBER ? unit_name(input->unit) : "1");
    }
    for (uint32_t i = 0; i < model->output_count; i++) {
        const struct plan_output *output = &model->outputs[i];

        csv_heading(report->text, ",", output->name,
                    output->is_words ? "1" : unit_name(output->unit));
    }
    text_add(report->text, "\r\n");
}

static void csv_row(const struct report *report, struct plan *plan) {
    char shown[PLAN_SHOWN_BYTES];

    text_add(report->text, "%s", plan->model->name);
    for (uint32_t i = 0; i < plan->model->input_count; i++) {
        const struct plan_input *input = &plan->model->inputs[i];

        text_add(report->text, ",");
        if (input->kind == PLAN_NUMBER) {
            text_add_number(report->text, plan_number(plan, input));
        } else {
            plan_show_input(plan, input, shown);
            text_add_csv(report->text, shown);
        }
    }
    for (uint32_t i = 0; i < plan->model->output_count; i++) {
        const struct plan_output *output = &plan->model->outputs[i];

        text_add(report->text, ",");
        if (output->is_words || plan_figure(plan, output)->cannot) {
            report_show(plan, output, shown);
            text_add_csv(report->text, shown);
        } else {
            text_add_number(report->text, plan_figure(plan, output)->value);
        }
    }
    text_add(report->text, "\r\n");
}

void report_csv(const struct report *report, struct plan *plan) {
    uint32_t step_count = report->sweep ? report->sweep->step_count : 1;

    csv_head(report, plan->model);
    for (uint32_t step = 0; step < step_count; step++) {
        if (report->sweep) {
            sweep_apply(report->sweep, plan, step);
        }
        for (size_t row = 0; plan_row(plan, report->data, row); row++) {
            csv_row(report, plan);
        }
    }
}
