/* What a world has counted, as totals of a seed. */
#pragma once
#include "totals.h"
#include "world.h"

/* After world_sum. */
void sums_of_world(const struct world *world, uint64_t counts[TOTAL_COUNT]);
