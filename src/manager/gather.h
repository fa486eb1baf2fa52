/* For the files of the manager: when nodes that join make a version of the map. */
#pragma once
#include "manager/manager_internal.h"

/* A join that changes the map waits in join_calls from now on; its own copy that does goes. node:
 * of the map, by its key; NULL: none. */
void manager_gather_join(struct manager *manager, struct call *call, const struct map_node *node);
/* Some wait there, and are to wait no longer. */
bool manager_gather_is_due(struct manager *manager);
/* They make a version. */
void manager_gather_version(struct manager *manager);
/* Nobody is kept waiting from now on. */
void manager_gather_close(struct manager *manager);
