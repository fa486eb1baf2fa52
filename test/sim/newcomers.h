/* Nodes that join, as far as the manager sees them: they ask for their numbers, again and again,
 * and tell new addresses, through all faults. The oracle: a node gets the same numbers for ever,
 * no two have one in common, and the map's version never goes back.
 *
 * One of them is the cluster's last OST in half of the seeds, which serves from when it has its
 * numbers. The others serve nothing, so they bring no targets into the map. Asked for by the
 * metadata target's process. Thread: the world's. */
#pragma once
#include "base/prng.h"
#include "world.h"

struct newcomers;

struct newcomers *newcomers_new(struct world *world, uint64_t seed);
/* Takes NULL. */
void newcomers_free(struct newcomers *newcomers);
/* From here on no address is new. They go on asking, as nodes that live. */
void newcomers_end(struct newcomers *newcomers);
/* The storage target that joined is gone, and nobody speaks for it any more. */
void newcomers_gone(struct newcomers *newcomers, const struct node *node);
/* The manager is rebuilt by this map: nodes that it does not know have their directories removed,
 * and join anew; so do those that have asked and not heard yet. Answers how many had numbers.
 * Between events only. */
uint32_t newcomers_rebuilt(struct newcomers *newcomers, const struct cluster_map *map);
/* Each was answered once since. */
bool newcomers_are_done(const struct newcomers *newcomers);
/* Each has its numbers. */
bool newcomers_are_numbered(const struct newcomers *newcomers);
/* Of how many the manager's map has said, in an answer, that they are nodes that can be reached, or
 * that serve something. */
uint32_t newcomers_registered(const struct newcomers *newcomers);
/* NULL, or what was wrong. */
const char *newcomers_failure(const struct newcomers *newcomers);
/* Answers that gave numbers. */
uint64_t newcomers_joins(const struct newcomers *newcomers);
