/* The number of the keys that sign capabilities rises, as somebody renews them again and again; and
 * the oracle of that.
 *
 *     an MDT asks --key_renew--> manager: all nodes have told the number of now --> map: one more
 *     map --> each MDT, as soon as it has it; an OST earlier or later than that of its own node
 *
 * The oracle: no MDT signs by a number that any OST takes no more, whoever is down or cut off. And
 * who is told that he has renewed finds a number that is higher than any before he asked.
 *
 * Thread: the world's. Memory: the heap. */
#pragma once
#include "world.h"

struct renewals;

/* That a renewal waits at the manager. */
enum { RENEWALS_WAIT_MS = 1000 };

struct renewals *renewals_new(struct world *world);
void renewals_free(struct renewals *renewals);
/* Every few milliseconds, while faults happen. */
void renewals_turn(struct renewals *renewals, struct prng *prng);
/* An MDT has a newer map on disk. */
void renewals_map(struct node *node);
/* A node that is not of the first has asked its manager. */
void renewals_hear(struct node *node);
/* The newest that a storage target has heard of keys by; NULL: none. */
const struct cluster_map *renewals_heard(const struct node *ost);
/* The manager is rebuilt by this map: numbers go on at its own. */
void renewals_rebuilt(struct world *world, const struct cluster_map *map);
/* As member_hooks.key_number, of the node that has the first targets. */
uint32_t renewals_told(const struct world *world);
/* Nothing that was asked can make a map any more. */
bool renewals_are_over(const struct world *world);
/* NULL: all is well. */
const char *renewals_failure(const struct world *world);
/* That were made; and refused, as a node had not told. */
uint64_t renewals_made(const struct world *world);
uint64_t renewals_refused(const struct world *world);
