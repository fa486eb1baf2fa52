/* The oracle of the namespace as a whole, when nothing is under way: rows of all metadata targets
 * are read, and every name must have its inode, every inode its names, and every directory one way
 * to the root. A transaction across logs that was done at one of them only breaks this. */
#pragma once
#include "world.h"

/* False with a line in failure. All metadata targets are up. */
bool whole_check(struct world *world, char failure[600]);
