/* From call to answer: session, outcome, room in the log, the operation, commit or park.
 *
 * Thread: the group's step. */
#pragma once
#include "meta/group_internal.h"

/* Takes in a call that has just arrived. */
void run_arrived(struct group *group, struct call *call);
/* A tick: answers what has not run and was given up by its caller. */
void run_give_up(struct group *group);
/* Of the parked: those that wait for rows, for the group. */
enum run_what { RUN_ROWS = 1, RUN_GROUP = 2 };
/* Runs those, then what has arrived, as far as the log has room. */
void run_class(struct group *group, enum message_class message_class, enum run_what what);
/* Behind all classes: who has let others run is the last in the next step. False: nobody has. */
bool run_yielded(struct group *group);
