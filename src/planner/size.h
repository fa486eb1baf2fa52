/* Size: what storage nodes hold and carry in all, and how many of them a job needs.
 *
 * Bandwidth is the least of what drives, NICs and nodes carry; each byte written counts on the
 * storage side as often as the protection stores it. The nodes that train bound both directions.
 * Where they are the storage nodes too, the answer holds while training itself leaves their NICs
 * free. */
#pragma once
#include "planner/figure.h"
#include "planner/model.h"

struct size_inputs {
#include "planner/def_inputs.inc"
#include "planner/size.def"
};

struct size_outputs {
#include "planner/def_outputs.inc"
#include "planner/size.def"
};

/* data may be NULL: what needs them cannot be computed then. */
void size_plan(const struct data *data, const struct size_inputs *in, struct size_outputs *out);
