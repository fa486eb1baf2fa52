/* What the newest versions of the map have added, kept to be handed out: map_changes. */
#pragma once
#include "manager/manager_internal.h"

MUST_CHECK int manager_map_changes_new(struct manager *manager);
void manager_map_changes_free(struct manager *manager);
/* `next` is on disk, and about to be the manager's map. */
void manager_map_changes_note(struct manager *manager, const struct cluster_map *next);
void manager_map_changes_get(struct manager *manager, struct call *call);
