/* For the files of the manager: targets that are lost for good. */
#pragma once
#include "manager/manager_internal.h"

void manager_lose(struct manager *manager, struct call *call);
/* What was asked until now, into the map that is to be; true: some of it is there. */
bool manager_losses_apply(struct manager *manager, struct cluster_map *map);
/* That map could not be written, with this result. */
void manager_losses_put_back(struct manager *manager, int result);
/* That map is the manager's. */
void manager_losses_end(struct manager *manager);
/* The map says which: none of them is called any more. */
void manager_losses_follow(struct manager *manager);
