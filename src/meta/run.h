/* From call to answer: session, outcome, room in the log, the operation, commit or park.
 *
 * Thread: the group's step. */
#pragma once
#include "meta/group_internal.h"

/* Takes in a call that has just arrived. */
void run_arrived(struct group *group, struct call *call);
/* Runs what is parked and may go on, then what has arrived, as far as the log has room. */
void run_class(struct group *group, enum message_class message_class);
