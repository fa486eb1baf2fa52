/* What a model is: a function from a struct of inputs to a struct of outputs, and a table that
 * names both, so that the command line, the JSON, the page and the tests need no code of their own
 * for it.
 *
 * A model is its NOUN.def, of which formulas.py makes the function and the table at build time; a
 * NOUN.c has only what is no expression. Its rows:
 *     MODEL("noun", "what it tells", "options of an example")
 *     HEAD("the three to six figures that are shown first")
 *     INPUT(name, UNIT, "value if none is given", least, most, "what it is")
 *     WHOLE(name, "value if none is given", least, most, "what it is")     of whole things
 *     CHOICE(name, "first|second", "value if none is given", "what it is")
 *     POINTS(name, "example", "what it is")
 *     USED("name name", "condition without which these inputs change nothing")
 *     WHY("divisor, data() or figure", "what it means that it is 0, missing or too large")
 *     OUTPUT(name, UNIT, SOURCE, "what it is", "formula")
 *     WORDS(name, SOURCE, "what it is", "formula")
 *     VERDICT(level, "condition", "sentence")      the worst first; the first that holds is shown
 *     ROWS_BY(function), WORDS_BY(function)        what is C, before and after the formulas
 * A default that begins with @ is a key of the data: "@prices.h200_spot".
 *
 * A formula is an expression in the names of inputs and of outputs above it, in the syntax of a
 * Python expression: + - * / % **, comparisons, `a if c else b`, {'choice': a, ...}[choice], min,
 * max, ceil, floor, sqrt, exp, expm1, log, log2 and the functions in docs/concepts/planner.md.
 * cannot('reason') has no value; lacks('name') asks whether a figure has none. In words {name} is
 * a value as it is shown, {name+}, {name-} and {name=} as an option takes it, rounded up, down or
 * to the nearest, {name?} why there is none. A test evaluates each formula a second time, as
 * Python; --explain shows it with the values of the names in it. */
#pragma once
#include "planner/data.h"
#include "planner/figure.h"
#include "planner/source.h"

enum plan_kind { PLAN_NUMBER, PLAN_CHOICE, PLAN_POINTS };

struct plan_input {
    const char *name;
    size_t offset;
    enum plan_kind kind;
    enum unit unit;
    const char *fallback; /* text, as a user would type it */
    double least, most;   /* both allowed */
    const char *help;
    const char *choices; /* "first|second"; the value is the index, an int */
    const char *used;    /* the condition without which it changes nothing, or NULL */
    bool whole;          /* no fractions */
};

struct plan_output {
    const char *name;
    size_t offset;
    bool is_words;
    bool head; /* among the first that are shown */
    enum unit unit;
    enum plan_source source;
    const char *label;
    const char *formula;
};

struct plan_model {
    const char *name;
    const char *summary;
    const char *example; /* options of a command line */
    const struct plan_input *inputs;
    const struct plan_output *outputs;
    uint32_t input_count;
    uint32_t output_count;
    uint32_t input_bytes;
    uint32_t output_bytes;
    /* Fills the row-th row of outputs from inputs; false when there is no such row. Most models
     * have one. Inputs are within their ranges. */
    bool (*row)(const struct data *data, const void *inputs, size_t row, void *ret_outputs);
    /* The input whose value leaves the named one without effect, or NULL. */
    const char *(*moot)(const void *inputs, const char *name);
};

/* Every model, in the order of `shoal plan --help`. */
extern const struct plan_model *const plan_models[];
extern const size_t plan_model_count;
extern const struct plan_model plan_checkpoint;
extern const struct plan_model plan_metadata;
extern const struct plan_model plan_loading;
extern const struct plan_model plan_scaling;
extern const struct plan_model plan_stripe;
extern const struct plan_model plan_latency;
extern const struct plan_model plan_rebalance;
extern const struct plan_model plan_cost;
extern const struct plan_model plan_size;
extern const struct plan_model plan_choose;
extern const struct plan_model plan_compare;
extern const struct plan_model plan_cluster;
extern const struct plan_model plan_inference;
extern const struct plan_model plan_mix;
extern const struct plan_model plan_systems;
/* The name of a choice by its number: "nand". */
void plan_choice_name(const struct plan_model *model, const char *input, int number,
                      char ret_name[DATA_NAME_BYTES]);
/* NULL when there is none. */
const struct plan_model *plan_model_find(const char *name);
