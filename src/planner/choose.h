/* Choose: which file system suits, by rules with reasons that stand in the data.
 *
 * A section "chooser.NAME" is a system: `name` as it is shown, each other key a rule
 * (choose_rule.h). The points of rules that apply add up; from "chooser.fits" points on a system
 * fits, below it is possible, and a rule that excludes makes it "no". A rule that cannot be read
 * leaves its system without a score and is named in its row, under what rules it out. */
#pragma once
#include "planner/figure.h"
#include "planner/model.h"

struct choose_inputs {
#include "planner/def_inputs.inc"
#include "planner/choose.def"
};

struct choose_outputs {
#include "planner/def_outputs.inc"
#include "planner/choose.def"
};

enum { CHOOSE_SYSTEMS_MAX = 32 };

/* Fills the row-th row, best first; false when there is no such row. */
bool choose_system(const struct data *data, const void *inputs, size_t row,
                   struct choose_outputs *out);
void choose_plan(const struct data *data, const struct choose_inputs *in,
                 struct choose_outputs *out);
