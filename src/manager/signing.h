/* For the files of the manager: by which members' key the cluster signs. */
#pragma once
#include "manager/manager_internal.h"

MUST_CHECK int manager_signing_new(struct manager *manager);
void manager_signing_free(struct manager *manager);
/* What a node of the map has told of its key file. */
void manager_signing_note(struct manager *manager, const struct map_node *node,
                          const struct node_join_request *request);
/* The map is another one: who is new in it, or lost, counts now. */
void manager_signing_map(struct manager *manager);
/* All nodes have the newest key of the manager's own file, and the map names another. */
bool manager_signing_is_due(struct manager *manager);
/* Into the map that is to be; true: it names another key now. */
bool manager_signing_apply(struct manager *manager, struct cluster_map *map);
