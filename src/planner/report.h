/* Results written out: lines for people, JSON and CSV in SI base units for programs.
 *
 * JSON of one model (RFC 8259):
 *     {"model", "summary", "inputs": [{"name", "kind", "unit", "value", "text", "choices" or
 *                 "least" and "most", "given", "help", and of a default that the data tell
 *                 of "source", "url", "date"}],
 *      "outputs": [{"name", "label", "unit", "formula", "names", "source", "url"}],
 *      "rows": [{NAME: {"value", "text"} or {"value": null, "text": "cannot be computed: ..."}}]}
 * With a sweep each row holds the swept input too. Words have their text as value.
 *
 * A text whose `failed` is set is not whole: memory ran out or it would be too large. */
#pragma once
#include "planner/scenario.h"
#include "planner/sweep.h"
#include "planner/text.h"

struct report {
    struct text *text;
    const struct data *data;
    const struct sweep *sweep; /* NULL: none */
    bool swept_given;          /* the swept input was given a value too */
    bool all;                  /* every input and figure, not only the first ones */
    bool explain;              /* each with its formula and source */
    const char *explain_name;  /* that one only, or NULL */
};

/* The plan must be filled; they compute its rows. Lines are at most 100 columns but for --all. */
void report_brief(const struct report *report, struct plan *plan);
void report_lines(const struct report *report, struct plan *plan);
void report_json(const struct report *report, struct plan *plan);
void report_csv(const struct report *report, struct plan *plan);

/* A figure or words as lines have them. */
void report_show(const struct plan *plan, const struct plan_output *output,
                 char ret_text[PLAN_SHOWN_BYTES]);

/* Names of a formula: those of inputs and outputs that stand in it, each once, in its order.
 * Calls take(model, name, context). */
void report_formula_names(const struct plan_model *model, const char *formula,
                          void (*take)(void *context, const struct plan_input *input,
                                       const struct plan_output *output),
                          void *context);

/* {"version", "models": [{"name", "summary", "example", "inputs": [...], "outputs": [...]}]}: what
 * the page makes its forms of. Defaults are those that the data hold. */
void report_describe(struct text *text, const struct data *data, const char *version);
