/* One seed: a world is drawn, played, broken, mended, and looked at. */
#pragma once
#include "totals.h"

/* Plays the seed once; trace (NULL for none) gets every event. The report tells all. */
void run_seed(uint64_t seed, FILE *trace, struct seed_report *ret_report);
