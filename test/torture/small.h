/* The small scope, complete: from each of some prepared states every sequence of at most two of
 * some steps, every crash point of it, by kill and by four kinds of power.
 *
 * Thread: one.  Memory: the heap. */
#pragma once
#include "seed.h"

/* How many sequences there are, over all states. */
uint64_t small_count(void);
/* Plays sequence `number`; recoveries are counted in the group's totals. */
void small_run(struct machine *machine, uint64_t number, FILE *trace,
               struct seed_report *ret_report);
