/* Writes to a shared file: what locks cost, what collective I/O saves, how a write falls on
 * stripes.
 *
 * Two formulas for the cost of locks are in use: a serial chain, in which each process waits for
 * all before it, and one by the number of conflicts. Both are upper bounds: extent locks are kept
 * by each target for itself, and writes that don't overlap need not wait for each other.
 *
 * The layout that fits: sizes are multiples of 64 KiB up to 4 MiB, counts 4 to 64 and at most the
 * targets there are. Of these the one whose rounds over all its targets end closest behind the
 * write; among equals stripes of 1 MiB or more, then most targets, then the largest stripes. */
#pragma once
#include "planner/figure.h"
#include "planner/model.h"

struct stripe_inputs {
#include "planner/def_inputs.inc"
#include "planner/stripe.def"
};

struct stripe_outputs {
#include "planner/def_outputs.inc"
#include "planner/stripe.def"
};

/* data may be NULL: what needs them cannot be computed then. */
void stripe_plan(const struct data *data, const struct stripe_inputs *in,
                 struct stripe_outputs *out);
/* The words that are commands. */
void stripe_words(const struct data *data, const struct stripe_inputs *in,
                  struct stripe_outputs *out);
