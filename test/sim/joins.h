/* A node with a metadata target and one with a storage target join, and at each operation of each
 * party a crash: of the manager, the metadata target that gives slots, both newcomers.
 *
 *     for each party, by kill and by power, n = 0, 1, ..:
 *         cluster --> both join; the party crashes at its n-th disk or ring operation --> starts
 *                 --> they have joined, slots are dealt, new files go everywhere, names are whole
 *     until one joins without coming to n
 *
 * The first n crashes of a seed of the simulator are drawn; these are all.
 *
 * Thread: one.  Memory: the heap. */
#pragma once
#include "base/types.h"

/* Plays all, prints a line for each point that goes wrong, then how many points each party has. The
 * last line counts them. Answers how many have failed. */
unsigned joins_play(void);
