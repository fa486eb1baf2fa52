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
#define INPUT PLAN_DOUBLE
#define CHOICE PLAN_INT
#include "planner/size.def"
};

struct size_outputs {
#define OUTPUT PLAN_FIGURE
#define WORDS PLAN_WORDS_FIELD
#include "planner/size.def"
};

/* Values of the choices, in their order. */
enum size_protection { SIZE_NONE, SIZE_COPIES, SIZE_ERASURE };

void size_plan(const struct size_inputs *in, struct size_outputs *out);
