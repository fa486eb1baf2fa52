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
#include "planner/def_inputs.inc"
#include "planner/loading.def"
};

struct loading_outputs {
#include "planner/def_outputs.inc"
#include "planner/loading.def"
};

/* data may be NULL: what needs them cannot be computed then. */
void loading_plan(const struct data *data, const struct loading_inputs *in,
                  struct loading_outputs *out);
