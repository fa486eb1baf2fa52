/* One model at work: inputs as text come in, rows of figures go out.
 *
 * Thread: the caller's.  Memory: freed by plan_deinit. */
#pragma once
#include "planner/model.h"
#include "planner/words.h"

/* One line for the user: what was wrong, with what, and an example. */
struct plan_problem {
    char text[400];
};

enum { PLAN_INPUTS_MAX = 64, PLAN_OUTPUTS_MAX = 64 };

struct plan {
    const struct plan_model *model;
    void *inputs;
    void *outputs; /* of the row that was computed last */
    bool given[PLAN_INPUTS_MAX];
    /* Quantities as text had them; "" where a number was set, or the text is longer. */
    char typed[PLAN_INPUTS_MAX][UNIT_TEXT_BYTES];
};

MUST_CHECK int plan_init(struct plan *plan, const struct plan_model *model);
void plan_deinit(struct plan *plan);
/* Nothing is set any more; figures stay until the next plan_row. */
void plan_reset(struct plan *plan);

/* NULL when there is none. Words of a command line may write gpus-per-node for gpus_per_node. */
const struct plan_input *plan_input_find(const struct plan_model *model, const char *name);
const struct plan_output *plan_output_find(const struct plan_model *model, const char *name);

/* Sets one input. `shown` is how the user calls it, for the message: "--target".
 * -ERR_MALFORMED: not a value of that kind; -ERR_INVALID: outside its range. Both fill *problem. */
MUST_CHECK int plan_set(struct plan *plan, const struct plan_input *input, const char *shown,
                        const char *text, struct plan_problem *problem);
MUST_CHECK int plan_set_number(struct plan *plan, const struct plan_input *input, const char *shown,
                               double number, struct plan_problem *problem);
/* Gives every other input its default. -ERR_NOT_FOUND, -ERR_MALFORMED or -ERR_INVALID when the data
 * lack one or hold nonsense; fills *problem. */
MUST_CHECK int plan_fill(struct plan *plan, const struct data *data, struct plan_problem *problem);

/* Where a default comes from that the data hold: "source", "url" or "date" of it. NULL when the
 * input was given, its default is the model's own, or the data do not tell. */
const char *plan_input_about(const struct plan *plan, const struct plan_input *input,
                             const struct data *data, const char *what);

/* Why an input that was given changes nothing, "not used: --copies (protection is none)", behind
 * the prefix; false when it does or was not given. */
bool plan_unused(const struct plan *plan, const struct plan_input *input,
                 struct plan_problem *ret_why);
/* Of the verdict of the row that was computed last; LEVEL_NONE where the model has none. */
enum plan_level plan_level(const struct plan *plan);

/* Computes the row-th row; false behind the last. */
bool plan_row(struct plan *plan, const struct data *data, size_t row);

/* Values, once filled or computed. */
double plan_number(const struct plan *plan, const struct plan_input *input);
const struct figure *plan_figure(const struct plan *plan, const struct plan_output *output);
const char *plan_words(const struct plan *plan, const struct plan_output *output);
/* The input as it was typed, or, of a number that came from elsewhere, as unit_format has it. */
enum { PLAN_SHOWN_BYTES = 4096 }; /* room for POINTS_MAX points with all digits */
void plan_show_input(const struct plan *plan, const struct plan_input *input,
                     char ret_text[PLAN_SHOWN_BYTES]);

PRINTF_LIKE(2, 3) void plan_complain(struct plan_problem *problem, const char *format, ...);
