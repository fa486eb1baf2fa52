/* Parts of an engine by themselves, larger than the lives of a seed make them: a tree of changes of
 * three levels, a data file of several regions. Each seed plays one of each.
 *
 * Thread: one.  Memory: given back before they return. */
#pragma once
#include "base/types.h"

/* Filled in some order of keys: whole, as full as that order allows, and within its account. */
void tree_play(uint64_t seed);
/* Takes, and gives back: each take is the next fit, or else the longest run. */
void blocks_play(uint64_t seed);
