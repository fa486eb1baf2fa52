/* Limits that are met together. In a tenth of the seeds, by a generator of their own, many of a
 * target's limits are small at once: rings, memory for changes, log, outcomes, sessions, requests,
 * operations and buffers of a storage target, its data, transactions across logs. Which of them
 * are full at the same moment is looked at while the work goes on, and when something is killed.
 *
 * What the limits answer is the oracles' matter, as anywhere: nothing but what explains it. That
 * all moves again behind it is liveness.h's.
 *
 * Reads targets between their steps. Thread: the world's. */
#pragma once
#include "world.h"

struct group;
struct ost;

enum full {
    FULL_RING,
    FULL_DATA_RING,
    FULL_MEMORY,
    FULL_LOG,
    FULL_OUTCOMES,
    FULL_SESSIONS,
    FULL_ORDERS,
    FULL_SETTLES,
    FULL_CROSSINGS,
    FULL_REQUESTS,
    FULL_BLOCKS,
    FULL_KINDS
};
enum { FULL_PAIRS = FULL_KINDS * (FULL_KINDS - 1) / 2 };
extern const char *const full_names[FULL_KINDS];

/* Sizes of a world that has them. */
bool fulls_draw(uint64_t seed);
/* Looks at all targets that are up. One that is to be killed now, as it has several limits full; or
 * NULL. */
struct node *fulls_look(struct world *world);
/* It is about to die. */
void fulls_killed(struct world *world, const struct node *node);
/* The kinds of a pair, of FULL_PAIRS. */
void full_pair(uint32_t pair, enum full *ret_first, enum full *ret_second);

/* By bits of enum full. */
uint32_t fulls_of_group(const struct group *group);
uint32_t fulls_of_ost(const struct ost *ost);
