/* What a model says first: verdict, a few figures, what was given; tables of what varies. */
#include "planner/report.h"
#include <stdio.h>
#include <string.h>

enum { COLUMNS_MAX = 8, CELL_BYTES = 600, LINE_COLUMNS = 100 };

/* Text as it is counted in columns: bytes that begin no character take none. */
static size_t columns_of(const char *text) {
    size_t columns = 0;

    for (; *text; text++) {
        columns += (*text & 0xc0) != 0x80;
    }
    return columns;
}

static void add_label(const struct report *report, const struct plan_output *output, int width,
                      struct plan *plan) {
    char shown[PLAN_SHOWN_BYTES];

    report_show(plan, output, shown);
    int pad = width - (int)columns_of(output->label);
    text_add(report->text, "  %s%*s  ", output->label, pad, "");
    text_add_wrapped(report->text, shown, (size_t)width + 4, (size_t)width + 4);
}

static void add_figures(const struct report *report, struct plan *plan) {
    const struct plan_model *model = plan->model;
    size_t width = 0;

    for (uint32_t i = 0; i < model->output_count; i++) {
        if (model->outputs[i].head) {
            width = MAX(width, columns_of(model->outputs[i].label));
        }
    }
    for (uint32_t i = 0; i < model->output_count; i++) {
        if (model->outputs[i].head) {
            add_label(report, &model->outputs[i], (int)width, plan);
        }
    }
}

static void add_given(const struct report *report, const struct plan *plan) {
    char line[8192] = "";
    char shown[PLAN_SHOWN_BYTES];
    size_t defaults = 0;
    size_t used = 0;

    for (uint32_t i = 0; i < plan->model->input_count; i++) {
        const struct plan_input *input = &plan->model->inputs[i];

        if (report->sweep && report->sweep->input == input) {
            continue;
        }
        if (!plan->given[i]) {
            defaults++;
            continue;
        }
        plan_show_input(plan, input, shown);
        int size = snprintf(line + used, sizeof line - used, " %s=%.200s", input->name, shown);
        used = MIN(used + (size_t)size, sizeof line - 1);
    }
    if (used > 0) {
        text_add(report->text, "  given: ");
        text_add_wrapped(report->text, line, 9, 4);
    }
    text_add(report->text, "  %zu inputs have their defaults: --all shows all, --explain why\n",
             defaults);
}

static void add_unused(const struct report *report, const struct plan *plan) {
    for (uint32_t i = 0; i < plan->model->input_count; i++) {
        const struct plan_input *input = &plan->model->inputs[i];
        struct plan_problem why;

        if (report->sweep && report->sweep->input == input && report->swept_given) {
            text_add(report->text, "  not used: --%s (it is swept)\n", input->name);
        } else if (plan_unused(plan, input, &why)) {
            text_add(report->text, "  not used: %s\n", why.text);
        }
    }
}

/* A table: the swept input, then figures. */
struct column {
    const struct plan_output *output; /* NULL: the swept input */
    size_t width;
    bool varies;
    char first[CELL_BYTES];
};

struct table {
    struct column columns[COLUMNS_MAX];
    size_t count;
};

static void cell_of(const struct report *report, const struct plan *plan,
                    const struct column *column, char cell[CELL_BYTES]) {
    char shown[PLAN_SHOWN_BYTES];

    if (!column->output) {
        plan_show_input(plan, report->sweep->input, shown);
    } else if (column->output->is_words && strcmp(column->output->name, "verdict") == 0 &&
               plan_level(plan) != LEVEL_NONE) {
        snprintf(shown, sizeof shown, "%s", level_word(plan_level(plan)));
        shown[strcspn(shown, ":")] = '\0';
    } else if (!column->output->is_words && plan_figure(plan, column->output)->cannot) {
        snprintf(shown, sizeof shown, "-");
    } else {
        report_show(plan, column->output, shown);
    }
    snprintf(cell, CELL_BYTES, "%.*s", CELL_BYTES - 1, shown);
}

static void take_columns(const struct report *report, const struct plan_model *model,
                         struct table *table) {
    const struct plan_output *verdict = plan_output_find(model, "verdict");

    *table = (struct table){0};
    table->count = report->sweep ? 1 : 0;
    for (uint32_t i = 0; i < model->output_count; i++) {
        const struct plan_output *output = &model->outputs[i];

        if ((output->head || (report->sweep && output == verdict)) && table->count < COLUMNS_MAX) {
            table->columns[table->count++].output = output;
        }
    }
}

/* Calls do(table, step, row) of each row; one pass measures, the next writes. */
static void each_row(const struct report *report, struct plan *plan, struct table *table,
                     void (*take)(const struct report *report, const struct plan *plan,
                                  struct table *table, bool first)) {
    uint32_t step_count = report->sweep ? report->sweep->step_count : 1;
    bool first = true;

    for (uint32_t step = 0; step < step_count; step++) {
        if (report->sweep) {
            sweep_apply(report->sweep, plan, step);
        }
        for (size_t row = 0; plan_row(plan, report->data, row); row++) {
            take(report, plan, table, first);
            first = false;
        }
    }
}

static void measure_row(const struct report *report, const struct plan *plan, struct table *table,
                        bool first) {
    for (size_t i = 0; i < table->count; i++) {
        struct column *column = &table->columns[i];
        char cell[CELL_BYTES];

        cell_of(report, plan, column, cell);
        column->width = MAX(column->width, columns_of(cell));
        if (first) {
            memcpy(column->first, cell, sizeof cell);
        }
        column->varies = column->varies || strcmp(column->first, cell) != 0;
    }
}

/* A cell, cut where the line would be too long. */
static void add_cell(struct text *text, const char *cell, size_t width, size_t *at, bool last) {
    size_t room = LINE_COLUMNS - *at;
    size_t columns = columns_of(cell);

    if (last && columns > room) {
        text_add(text, "%.*s...\n", (int)(room - 3), cell);
        return;
    }
    text_add(text, "%s%*s", cell, last ? 0 : (int)(width - columns + 2), "");
    text_add(text, "%s", last ? "\n" : "");
    *at += width + 2;
}

static void write_row(const struct report *report, const struct plan *plan, struct table *table,
                      bool first) {
    size_t at = 2;

    (void)first;
    text_add(report->text, "  ");
    for (size_t i = 0; i < table->count; i++) {
        char cell[CELL_BYTES];

        cell_of(report, plan, &table->columns[i], cell);
        add_cell(report->text, cell, table->columns[i].width, &at, i + 1 == table->count);
    }
}

/* Columns that vary and fit; the first stays, as does the verdict. */
static void drop_columns(const struct report *report, struct table *table) {
    size_t kept = 0;
    size_t at = 2;

    for (size_t i = 0; i < table->count; i++) {
        struct column *column = &table->columns[i];
        const char *name = column->output ? column->output->name : report->sweep->input->name;

        column->width = MAX(column->width, strlen(name));
        if ((i == 0 || column->varies) && at + 12 < LINE_COLUMNS) {
            at += column->width + 2;
            table->columns[kept++] = *column;
        }
    }
    table->count = kept;
}

static void add_table(const struct report *report, struct plan *plan) {
    struct table table;
    size_t at = 2;

    take_columns(report, plan->model, &table);
    each_row(report, plan, &table, measure_row);
    drop_columns(report, &table);
    text_add(report->text, "  ");
    for (size_t i = 0; i < table.count; i++) {
        const struct column *column = &table.columns[i];

        add_cell(report->text, column->output ? column->output->name : report->sweep->input->name,
                 column->width, &at, i + 1 == table.count);
    }
    each_row(report, plan, &table, write_row);
}

void report_brief(const struct report *report, struct plan *plan) {
    const struct plan_output *verdict = plan_output_find(plan->model, "verdict");

    text_add(report->text, "%s: ", plan->model->name);
    bool one = plan_row(plan, report->data, 0) && !plan_row(plan, report->data, 1);
    if (one && !report->sweep) {
        (void)plan_row(plan, report->data, 0);
        text_add_wrapped(report->text, verdict ? plan_words(plan, verdict) : plan->model->summary,
                         strlen(plan->model->name) + 2, 2);
        add_figures(report, plan);
    } else {
        text_add_wrapped(report->text, plan->model->summary, strlen(plan->model->name) + 2, 2);
        add_table(report, plan);
    }
    add_given(report, plan);
    add_unused(report, plan);
}
