/* Groups of a process, for fronts. */
#pragma once
#include "base/err.h"
#include "base/types.h"

/* The supplementary groups of a process. Answers how many there are in ret_count, at most
 * count_max of which are in ret_groups. -ERR_NOT_FOUND when the process has gone. */
MUST_CHECK int env_groups_get(int process_id, size_t count_max, uint32_t *ret_groups,
                              size_t *ret_count);
