/* Results and descriptions as JSON. */
#include "planner/report.h"
#include <stdio.h>
#include <string.h>

/* "name": "text", with what stands before it. */
static void add_pair(struct text *text, const char *before, const char *name, const char *value) {
    text_add(text, "%s", before);
    text_add_json(text, name);
    text_add(text, ": ");
    text_add_json(text, value);
}

static const char *kind_name(enum plan_kind kind) {
    return kind == PLAN_NUMBER ? "number" : kind == PLAN_CHOICE ? "choice" : "points";
}

static void add_range(struct text *text, const struct plan_input *input) {
    text_add(text, ", \"least\": ");
    text_add_number(text, input->least);
    text_add(text, ", \"most\": ");
    text_add_number(text, input->most);
    text_add(text, ", \"whole\": %s", input->whole ? "true" : "false");
}

static void add_input(const struct report *report, struct plan *plan, uint32_t index) {
    static const char *const parts[] = {"source", "url", "date"};
    const struct plan_input *input = &plan->model->inputs[index];
    char shown[PLAN_SHOWN_BYTES];

    plan_show_input(plan, input, shown);
    add_pair(report->text, index > 0 ? ",\n   {" : "\n   {", "name", input->name);
    add_pair(report->text, ", ", "kind", kind_name(input->kind));
    if (input->kind == PLAN_NUMBER) {
        add_pair(report->text, ", ", "unit", unit_name(input->unit));
        text_add(report->text, ", \"value\": ");
        text_add_number(report->text, plan_number(plan, input));
    } else {
        add_pair(report->text, ", ", "value", shown);
    }
    add_pair(report->text, ", ", "text", shown);
    if (input->kind == PLAN_CHOICE) {
        add_pair(report->text, ", ", "choices", input->choices);
    } else if (input->kind == PLAN_NUMBER) {
        add_range(report->text, input);
    }
    text_add(report->text, ", \"given\": %s", plan->given[index] ? "true" : "false");
    add_pair(report->text, ", ", "help", input->help);
    const char *moot = plan->model->moot(plan->inputs, input->name);
    if (moot) {
        add_pair(report->text, ", ", "moot", moot);
    }
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        const char *told = plan_input_about(plan, input, report->data, parts[i]);

        if (told) {
            add_pair(report->text, ", ", parts[i], told);
        }
    }
    text_add(report->text, "}");
}

struct names {
    struct text *text;
    bool any;
};

static void add_name(void *context, const struct plan_input *input,
                     const struct plan_output *output) {
    struct names *names = context;

    text_add(names->text, "%s", names->any ? ", " : "");
    text_add_json(names->text, input ? input->name : output->name);
    names->any = true;
}

static void add_output(struct text *text, const struct plan_model *model, uint32_t index) {
    const struct plan_output *output = &model->outputs[index];
    const struct source *source = source_get(output->source);
    struct names names = {.text = text};

    add_pair(text, index > 0 ? ",\n   {" : "\n   {", "name", output->name);
    add_pair(text, ", ", "label", output->label);
    add_pair(text, ", ", "unit", output->is_words ? "words" : unit_name(output->unit));
    add_pair(text, ", ", "formula", output->formula);
    text_add(text, ", \"names\": [");
    report_formula_names(model, output->formula, add_name, &names);
    add_pair(text, "], ", "source", source->text);
    add_pair(text, ", ", "url", source->url);
    text_add(text, ", \"head\": %s}", output->head ? "true" : "false");
}

static void add_figure(struct text *text, const struct plan *plan,
                       const struct plan_output *output) {
    const struct figure *figure = plan_figure(plan, output);
    char shown[UNIT_TEXT_BYTES];

    text_add_json(text, output->name);
    if (output->is_words) {
        add_pair(text, ": {", "value", plan_words(plan, output));
        add_pair(text, ", ", "text", plan_words(plan, output));
    } else if (figure->cannot) {
        char why[WORDS_BYTES];

        snprintf(why, sizeof why, "cannot be computed: %s", figure->cannot);
        add_pair(text, ": {\"value\": null, ", "text", why);
    } else {
        unit_format(output->unit, figure->value, shown);
        text_add(text, ": {\"value\": ");
        text_add_number(text, figure->value);
        add_pair(text, ", ", "text", shown);
    }
    text_add(text, "}");
}

static void add_row(const struct report *report, struct plan *plan, bool first) {
    text_add(report->text, first ? "\n   {" : ",\n   {");
    if (report->sweep) {
        const struct plan_input *input = report->sweep->input;
        char shown[PLAN_SHOWN_BYTES];

        plan_show_input(plan, input, shown);
        text_add_json(report->text, input->name);
        text_add(report->text, ": {\"value\": ");
        text_add_number(report->text, plan_number(plan, input));
        add_pair(report->text, ", ", "text", shown);
        text_add(report->text, "}, ");
    }
    for (uint32_t i = 0; i < plan->model->output_count; i++) {
        text_add(report->text, i > 0 ? ", " : "");
        add_figure(report->text, plan, &plan->model->outputs[i]);
    }
    text_add(report->text, "}");
}

void report_json(const struct report *report, struct plan *plan) {
    uint32_t step_count = report->sweep ? report->sweep->step_count : 1;
    bool first = true;

    add_pair(report->text, "{", "model", plan->model->name);
    add_pair(report->text, ", ", "summary", plan->model->summary);
    text_add(report->text, ",\n  \"inputs\": [");
    for (uint32_t i = 0; i < plan->model->input_count; i++) {
        add_input(report, plan, i);
    }
    text_add(report->text, "],\n  \"outputs\": [");
    for (uint32_t i = 0; i < plan->model->output_count; i++) {
        add_output(report->text, plan->model, i);
    }
    text_add(report->text, "],\n  \"rows\": [");
    for (uint32_t step = 0; step < step_count; step++) {
        if (report->sweep) {
            sweep_apply(report->sweep, plan, step);
        }
        for (size_t row = 0; plan_row(plan, report->data, row); row++) {
            add_row(report, plan, first);
            first = false;
        }
    }
    text_add(report->text, "]}");
}

static void describe_input(struct text *text, const struct data *data,
                           const struct plan_input *input) {
    const char *fallback = input->fallback;

    if (fallback[0] == '@') {
        fallback = data_find(data, fallback + 1);
    }
    add_pair(text, "{", "name", input->name);
    add_pair(text, ", ", "kind", kind_name(input->kind));
    add_pair(text, ", ", "default", fallback ? fallback : "");
    add_pair(text, ", ", "help", input->help);
    if (input->kind == PLAN_CHOICE) {
        add_pair(text, ", ", "choices", input->choices);
    } else if (input->kind == PLAN_NUMBER) {
        add_pair(text, ", ", "unit", unit_name(input->unit));
        add_pair(text, ", ", "example", unit_example(input->unit));
        add_range(text, input);
    }
    text_add(text, "}");
}

static void describe_model(struct text *text, const struct data *data,
                           const struct plan_model *model) {
    add_pair(text, "{", "name", model->name);
    add_pair(text, ", ", "summary", model->summary);
    add_pair(text, ", ", "example", model->example);
    text_add(text, ",\n  \"inputs\": [");
    for (uint32_t i = 0; i < model->input_count; i++) {
        text_add(text, i > 0 ? ",\n   " : "\n   ");
        describe_input(text, data, &model->inputs[i]);
    }
    text_add(text, "],\n  \"outputs\": [");
    for (uint32_t i = 0; i < model->output_count; i++) {
        add_output(text, model, i);
    }
    text_add(text, "]}");
}

void report_describe(struct text *text, const struct data *data, const char *version) {
    add_pair(text, "{", "version", version);
    text_add(text, ", \"models\": [\n ");
    for (size_t i = 0; i < plan_model_count; i++) {
        text_add(text, i > 0 ? ",\n " : "");
        describe_model(text, data, plan_models[i]);
    }
    text_add(text, "]}\n");
}
