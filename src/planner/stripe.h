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
#define INPUT PLAN_DOUBLE
#define CHOICE PLAN_INT
#include "planner/stripe.def"
};

struct stripe_outputs {
#define OUTPUT PLAN_FIGURE
#define WORDS PLAN_WORDS_FIELD
#include "planner/stripe.def"
};

struct stripe_layout {
    double size_bytes;
    double count;
};

/* NULL, or the reason why no layout fits; then *ret_layout is untouched. */
MUST_CHECK const char *stripe_best(double length_bytes, double target_count,
                                   struct stripe_layout *ret_layout);
void stripe_plan(const struct stripe_inputs *in, struct stripe_outputs *out);
