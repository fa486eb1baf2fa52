/* The end of a session that will not close its files itself.
 *
 *     S row EVICTING, on disk --> sizes of what it wrote settled (OSTs fence it), opens dropped,
 *     orphans freed --> outcomes and S row dropped
 *
 * Thread: the group's step. */
#pragma once
#include "meta/transaction.h"

/* Whether a session under eviction may have written bytes of the ino that nobody has settled. */
bool eviction_holds(const struct group *group, struct ino ino);
/* Stages the end of all opens that the session has of the ino; row: NULL when there is none. */
MUST_CHECK int eviction_close_stage(struct transaction *transaction, struct session *session,
                                    struct ino ino, const struct inode_row *row);
/* The same in memory, once that is committed. */
void eviction_close_apply(struct group *group, struct session *session, struct ino ino);
/* Goes on with the evictions under way. */
void eviction_step(struct group *group);
