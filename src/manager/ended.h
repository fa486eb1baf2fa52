/* The list of the ended, for the files of the manager. */
#pragma once
#include "manager/manager_internal.h"

/* In a transaction: the number of one more end; which is added when that is committed. */
MUST_CHECK int manager_ended_put(struct manager *manager);
void manager_ended_add(struct manager *manager, struct session_id session, uint64_t position);
/* told_number is what is on disk. True: it has risen. */
bool manager_ended_advance(struct manager *manager);
/* Each tick, and when told_number has risen. */
void manager_ended_tell(struct manager *manager);
/* A stop does not wait for targets that are away. */
void manager_ended_cancel(struct manager *manager);
bool manager_ended_is_telling(const struct manager *manager);
/* How many targets do not have the newest number. */
uint32_t manager_ended_behind(struct manager *manager);
MUST_CHECK int manager_ended_load(struct manager *manager);
/* Each group has this number, or was tried: it has answered with an error, or is away. */
bool manager_ended_groups_know(struct manager *manager, uint64_t number);
