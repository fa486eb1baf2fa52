/* Groups of a process, for fronts. */
#pragma once
#include "base/err.h"
#include "base/types.h"

/* The numbers of a line "Groups:\t4 24 27" of /proc/ID/status: how many there are, of which at most
 * count_max are in ret_groups. False: it is another line. */
bool env_groups_parse(const char *line, size_t count_max, uint32_t *ret_groups, size_t *ret_count);
/* The supplementary groups of a process. Answers how many there are in ret_count, at most
 * count_max of which are in ret_groups. -ERR_NOT_FOUND when the process has gone. */
MUST_CHECK int env_groups_get(int process_id, size_t count_max, uint32_t *ret_groups,
                              size_t *ret_count);
