/* What `shoal bench --json` printed, as the costs that the planner's cluster model takes. */
#pragma once
#include "planner/plan.h"

/* Sets rows of section "calibration": for each phase of names and attributes the CPU time of an
 * operation (the processors / its best rate), for 1 MiB blocks the CPU time a byte, and, where
 * small files of two sizes or more were read or written, the CPU time of a file and of each of its
 * bytes: the line through the smallest and the largest. The processors are those of this machine,
 * taken to be busy in the best of the runs. -ERR_MALFORMED and others with *problem filled. */
MUST_CHECK int plan_calibration_load(const char *const *paths, size_t path_count, struct data *data,
                                     struct plan_problem *problem);
