/* For the files of the manager: the number of the key by which capabilities are signed. */
#pragma once
#include "manager/manager_internal.h"

MUST_CHECK int manager_renewals_new(struct manager *manager);
void manager_renewals_free(struct manager *manager);
/* By which number a node of the map signs, as it tells. -ERR_PENDING: it has no targets yet, and is
 * to get none before it has the map of now; -ERR_TOO_OLD: it knows of no number. */
MUST_CHECK int manager_renewals_note(struct manager *manager, const struct map_node *node,
                                     const struct node_join_request *request);
void manager_renewals_take(struct manager *manager, struct call *call);
/* Each tick: who has waited for too long is refused. */
void manager_renewals_tick(struct manager *manager);
/* Somebody waits, and all members have told the number of now. */
bool manager_renewals_are_due(const struct manager *manager);
/* One more for all who wait, into the map that is to be; true: it is there. */
bool manager_renewals_apply(struct manager *manager, struct cluster_map *map);
/* That map could not be written, with this result. */
void manager_renewals_put_back(struct manager *manager, int result);
/* That map is the manager's. */
void manager_renewals_end(struct manager *manager);
