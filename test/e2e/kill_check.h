/* Compares what is mounted with what one thread knows. */
#pragma once
#include "kill_work.h"

/* pending is the operation that was in flight when the daemon died, or NULL. It may have happened
 * or not (a write: each block of 4 KiB; all of it when it is small and within one chunk); the model
 * becomes what is found. Complains in tree->problem. */
void kill_check(struct tree *tree, struct work *pending);
