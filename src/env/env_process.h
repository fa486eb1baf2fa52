/* What the machine knows of other processes. */
#pragma once
#include "env/env.h"

/* The supplementary groups of a process or thread, groups_max of them at most, the rest left out.
 * -ERR_NOT_FOUND when it is gone, or not visible from here. */
MUST_CHECK int env_process_groups(uint32_t process, uint32_t *groups, uint32_t groups_max,
                                  uint32_t *ret_count);
