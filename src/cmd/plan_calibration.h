/* What `shoal bench --json` printed, as the costs that the planner's cluster model takes. */
#pragma once
#include "planner/plan.h"

/* Sets rows of section "calibration": for each phase of names and attributes the CPU time of an
 * operation (its cores / its best rate), and for 1 MiB blocks the CPU time a byte. The processors
 * are those of this machine. -ERR_MALFORMED and others with *problem filled. */
MUST_CHECK int plan_calibration_load(const char *path, struct data *data,
                                     struct plan_problem *problem);
