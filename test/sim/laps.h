/* How often a target has gone round its ring in one life, of records and of the bytes of small
 * writes. In seeds that wrap (shapes.h) storage targets have the smallest rings that they take and
 * are written to a little at a time, so that what is used over again, what straddles the end and
 * what a kill finds there is met in each life.
 *
 * Thread: the world's. */
#pragma once
#include "world.h"

struct life;

/* It is open: it begins here. */
void laps_begin(struct life *life);
/* It ends: what it has come round is told to the world, and to its node. */
void laps_end(const struct life *life);
/* Of the median storage target, the most that both of its rings have come round in a life. */
uint64_t laps_median(const struct world *world);
