/* The oracle of floors: what outcomes targets keep.
 *
 * An idle session has told each log that it awaits nothing, so no outcome of it is kept anywhere.
 *
 * Reads the tables of the targets, between their steps. Thread: the world's. */
#pragma once
#include "world.h"

/* No target that is up keeps an outcome of a client that has a session. */
bool floors_are_told(struct world *world);
/* Where one is kept, in words. */
void floors_print(struct world *world, char failure[600]);
