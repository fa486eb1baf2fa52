/* Data loading: what the accelerators ask for, what workers and tiers deliver, and what is left of
 * the training time.
 *
 * Workers. A worker keeps `prefetch` reads in flight and decodes one sample at a time; more than
 * 1/decode or prefetch/(read + decode) it can't deliver (the bounds of a closed queue). Batches
 * that a loader keeps ready beyond that are a buffer against jitter; they add no throughput.
 *
 * Tiers. Each byte comes from one of memory, node NVMe, parallel file system and object store, by
 * the shares of hits. Read at once, the tier with the least bandwidth for its share binds, or the
 * NICs; read one after another, their times add up.
 *
 * Two losses. Data is loaded only between checkpoints, so of the share I/(I+T) of all time that is
 * not a checkpoint's standstill, the share s waits for data: useful = (1-s) I/(I+T). Adding both
 * losses counts their overlap twice. */
#pragma once
#include "planner/figure.h"
#include "planner/model.h"

struct loading_inputs {
#define INPUT PLAN_DOUBLE
#define CHOICE PLAN_INT
#include "planner/loading.def"
};

struct loading_outputs {
#define OUTPUT PLAN_FIGURE
#define WORDS PLAN_WORDS_FIELD
#include "planner/loading.def"
};

/* Values of the choice, in their order; those between are sections "preset.NAME" of the data. */
enum loading_workload { LOADING_TOKENS, LOADING_CUSTOM = 5 };

void loading_plan(const struct data *data, const struct loading_inputs *in,
                  struct loading_outputs *out);
