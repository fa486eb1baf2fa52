/* For the files of the manager: hands slots over to groups that have few, and tells each group what
 * it has. */
#pragma once
#include "manager/manager_internal.h"

MUST_CHECK int manager_slots_new(struct manager *manager);
void manager_slots_free(struct manager *manager);
MUST_CHECK int manager_slots_load(struct manager *manager);
void manager_slots_tick(struct manager *manager);
/* Tells at once who waits for what: the list of the ended goes on. */
void manager_groups_tell(struct manager *manager);
/* A hand-over waits for the map that has it; puts it there; and that map is on disk. */
bool manager_slots_are_given(const struct manager *manager);
void manager_slots_apply(struct manager *manager, struct cluster_map *map);
void manager_slots_recorded(struct manager *manager);
/* The hand-over's row, as it is with a map that has it. */
MUST_CHECK int manager_slots_row_put(struct manager *manager);
/* How many files the metadata target had when it was heard last; false: not by this manager. */
bool manager_slots_inodes(const struct manager *manager, struct target_id target,
                          uint64_t *ret_inodes);
/* Ends what is under way; false: a group still holds a call of ours. */
bool manager_slots_stop(struct manager *manager);
