/* Shoal itself: what a cluster does, from measured costs and the product's own placement.
 *
 * Slots are shared out evenly; pieces of files lie where layout/ puts them. The costs are those of
 * share/shoal/calibration.ini or of `shoal bench --json`. A single directory lives on one metadata
 * target until directories split, so its rate is target_rate at most. */
#pragma once
#include "planner/model.h"

struct cluster_inputs {
#include "planner/def_inputs.inc"
#include "planner/cluster.def"
};

struct cluster_outputs {
#include "planner/def_outputs.inc"
#include "planner/cluster.def"
};

/* data may be NULL: what needs them cannot be computed then. */
void cluster_plan(const struct data *data, const struct cluster_inputs *in,
                  struct cluster_outputs *out);

/* How `file_count` files of that stripe count, with seeds 0, 1, ..., lie on `target_count` chains:
 * pieces on the fullest chain against the mean, and the share of files with a piece on that chain.
 * False when memory ran out. */
MUST_CHECK bool cluster_spread(uint32_t file_count, uint32_t stripe_count, uint32_t target_count,
                               double *ret_spread, double *ret_on_fullest);
