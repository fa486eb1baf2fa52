/* For the files of the manager: storage targets that are full get no new files. */
#pragma once
#include "manager/manager_internal.h"

MUST_CHECK int manager_spaces_new(struct manager *manager);
void manager_spaces_free(struct manager *manager);
/* -ERR_MALFORMED, -ERR_INVALID: spaces that are none. */
MUST_CHECK int manager_spaces_check(const struct node_join_request *request);
/* What a node tells of its own targets; checked. */
void manager_spaces_note(struct manager *manager, struct node_id node,
                         const struct node_join_request *request);
/* What the target has, as it was told last; false: nobody has since this start. */
bool manager_spaces_used(const struct manager *manager, const struct map_target *target,
                         uint64_t *ret_bytes);
/* The newest pool version may have a target that is full, or lack one that has room again. */
bool manager_spaces_are_due(const struct manager *manager);
/* Into the map that is to be; true: it has another pool version now. Due again after a while. */
bool manager_spaces_apply(struct manager *manager, struct cluster_map *map);
/* Between two versions that are made so; UINT64_MAX: the map has no room for more of them. */
uint64_t manager_spaces_pause_ns(const struct cluster_map *map, uint64_t interval_ns);
