/* The oracle of the list of the ended sessions: what storage and metadata targets have of it.
 *
 * Once faults have ended each of them comes to have the manager's number, on disk; and from then on
 * it names each session that ever was and does not live, nobody else, and keeps nothing of whom it
 * names. At any time a client is told that its session was evicted only where it was.
 *
 * Reads the rows of manager and targets, between their steps. Thread: the world's. */
#pragma once
#include "world.h"

/* Whether the list of a metadata target that is up and not stopped names the session. Rows that are
 * not in memory are for another look. */
bool lists_name(struct node *mdt, struct session_id session);
/* Whether those of all metadata targets do that have joined and are not lost. */
bool lists_all_name(struct world *world, struct session_id session);
/* The manager has told all that ended to all targets. Everything is up. */
bool lists_are_told(struct world *world);
/* Each client is back at each metadata target that has started anew since it was there. */
bool lists_await_nobody(struct world *world);
/* Then: metadata targets have settled what those had open. */
bool lists_are_settled(struct world *world);
/* Whether a client takes its session for over. By whose word it may be, it is: the manager has
 * ended it, or is not there to be asked; else failure says so. */
bool lists_is_fenced(struct world *world, struct node *client, char failure[600]);
/* False: failure says what is wrong with which list. */
bool lists_check(struct world *world, char failure[600]);
