/* What a model is: a function from a struct of inputs to a struct of outputs, and a table that
 * names both, so that the command line, the JSON, the page and the tests need no code of their own
 * for it.
 *
 * A model NOUN is three files. NOUN.def has its inputs and outputs, each once:
 *     INPUT(name, UNIT, "value if none is given", least, most, "what it is")
 *     CHOICE(name, "first|second", "value if none is given", "what it is")
 *     POINTS(name, "example", "what it is")
 *     OUTPUT(name, UNIT, SOURCE, "what it is", "formula")
 *     WORDS(name, SOURCE, "what it is", "formula")
 * NOUN.h makes the structs of them and declares the function; NOUN.c has the function, the table
 * and a line for models.c. A default that begins with @ is a key of the data: "@prices.h200_spot".
 *
 * A formula is an expression in the names of inputs and outputs of the model, in the syntax of a
 * Python expression with min, max, ceil, floor, sqrt, exp, log, log2 and the functions named in
 * docs/concepts/planner.md. A test evaluates it and compares; --explain shows it with the values of
 * the names in it. A figure is computed from inputs and figures above it. */
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
};

struct plan_output {
    const char *name;
    size_t offset;
    bool is_words;
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
/* NULL when there is none. */
const struct plan_model *plan_model_find(const char *name);

/* What NOUN.h and NOUN.c define INPUT and its sisters as, before they include NOUN.def, which ends
 * with their #undef. */
#define PLAN_NOTHING(...)
#define PLAN_DOUBLE(name, ...) double name;
#define PLAN_INT(name, ...) int name;
#define PLAN_POINTS_FIELD(name, ...) struct points name;
#define PLAN_FIGURE(name, ...) struct figure name;
#define PLAN_WORDS_FIELD(name, ...) struct plan_words name;

/* The row function of a model that has one row, which the call makes of data and inputs. */
#define PLAN_ONE_ROW(call)                                                                         \
    static bool row(const struct data *data, const void *inputs, size_t row, void *ret_outputs) {  \
        (void)data;                                                                                \
        if (row == 0) {                                                                            \
            call;                                                                                  \
        }                                                                                          \
        return row == 0;                                                                           \
    }

/* The members of struct plan_model that follow from the tables. */
#define PLAN_TABLES(inputs_, outputs_)                                                             \
    .inputs = inputs_, .input_count = ARRAY_SIZE(inputs_), .outputs = outputs_,                    \
    .output_count = ARRAY_SIZE(outputs_), .input_bytes = sizeof(struct PLAN_INPUTS),               \
    .output_bytes = sizeof(struct PLAN_OUTPUTS)

/* Rows of the tables; PLAN_INPUTS and PLAN_OUTPUTS are the names of the model's structs. */
#define PLAN_INPUT_ROW(field, unit_, fallback_, least_, most_, help_)                              \
    {.name = #field,                                                                               \
     .offset = offsetof(struct PLAN_INPUTS, field),                                                \
     .kind = PLAN_NUMBER,                                                                          \
     .unit = UNIT_##unit_,                                                                         \
     .fallback = fallback_,                                                                        \
     .least = least_,                                                                              \
     .most = most_,                                                                                \
     .help = help_},
#define PLAN_CHOICE_ROW(field, choices_, fallback_, help_)                                         \
    {.name = #field,                                                                               \
     .offset = offsetof(struct PLAN_INPUTS, field),                                                \
     .kind = PLAN_CHOICE,                                                                          \
     .fallback = fallback_,                                                                        \
     .help = help_,                                                                                \
     .choices = choices_},
#define PLAN_POINTS_ROW(field, fallback_, help_)                                                   \
    {.name = #field,                                                                               \
     .offset = offsetof(struct PLAN_INPUTS, field),                                                \
     .kind = PLAN_POINTS,                                                                          \
     .fallback = fallback_,                                                                        \
     .help = help_},
#define PLAN_OUTPUT_ROW(field, unit_, source_, label_, formula_)                                   \
    {.name = #field,                                                                               \
     .offset = offsetof(struct PLAN_OUTPUTS, field),                                               \
     .unit = UNIT_##unit_,                                                                         \
     .source = SOURCE_##source_,                                                                   \
     .label = label_,                                                                              \
     .formula = formula_},
#define PLAN_WORDS_ROW(field, source_, label_, formula_)                                           \
    {.name = #field,                                                                               \
     .offset = offsetof(struct PLAN_OUTPUTS, field),                                               \
     .is_words = true,                                                                             \
     .source = SOURCE_##source_,                                                                   \
     .label = label_,                                                                              \
     .formula = formula_},
