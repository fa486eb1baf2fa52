/* The oracle of slots: each is one metadata target's, as its rows say, and in the end the one's
 * that the map names; and each target has its share. */
#pragma once
#include "world.h"

/* Whether all hand-overs have ended. False with a line in failure where a slot is two targets', or
 * rows can't be read. All metadata targets are up. */
bool shares_are_dealt(struct world *world, char failure[600]);
/* Slots that were handed over, by the newest map. */
uint32_t shares_handed_over(const struct world *world);
