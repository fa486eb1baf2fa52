/* For the files of the manager: keys that are revoked. */
#pragma once
#include "manager/manager_internal.h"

void manager_revoke(struct manager *manager, struct call *call);
/* What was asked until now, into the map that is to be; true: some of it is there. */
bool manager_revokes_apply(struct manager *manager, struct cluster_map *map);
/* That map could not be written, with this result. */
void manager_revokes_put_back(struct manager *manager, int result);
/* That map is the manager's. */
void manager_revokes_end(struct manager *manager);
/* Which sessions are by keys that the map says are revoked. */
void manager_revoked_mark(struct manager *manager);
