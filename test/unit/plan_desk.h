/* One model at a desk: options as a user types them go in, figures by name come out.
 *
 * A wrong option or name ends the test. Memory: the desk's, freed by desk_deinit. */
#pragma once
#include "planner/plan.h"

struct desk {
    struct plan plan;
    struct data data;
};

void desk_init(struct desk *desk, const char *model);
void desk_deinit(struct desk *desk);
/* "--name value --name value": sets them; the others keep what they have. */
void desk_set(struct desk *desk, const char *options);
/* Fills the rest with defaults and computes a row; false when there is no such row. */
bool desk_row(struct desk *desk, size_t row);
/* desk_set, then row 0. */
void desk_run(struct desk *desk, const char *options);
double desk_value(const struct desk *desk, const char *name);
/* NULL when it was computed. */
const char *desk_cannot(const struct desk *desk, const char *name);
const char *desk_words(const struct desk *desk, const char *name);
/* Fails unless the figure is `wanted` to `tolerance` of it. */
void desk_assert(const struct desk *desk, const char *name, double wanted, double tolerance);
/* Fails when a figure is neither a finite number nor has a reason. */
void desk_assert_sound(const struct desk *desk);
