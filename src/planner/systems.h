/* Storage systems side by side: one row each, from the data's [system.NAME]. */
#pragma once
#include "planner/figure.h"
#include "planner/model.h"

struct systems_inputs {
#include "planner/def_inputs.inc"
#include "planner/systems.def"
};

struct systems_outputs {
#include "planner/def_outputs.inc"
#include "planner/systems.def"
};

void systems_plan(const struct data *data, const struct systems_inputs *in,
                  struct systems_outputs *out);
/* The words of a row that its figures begin from; false when there is no such row. */
bool systems_begin(const struct data *data, const struct systems_inputs *in, size_t row,
                   struct systems_outputs *out);
