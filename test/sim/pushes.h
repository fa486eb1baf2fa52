/* The oracle of maps: what a node makes of changes is what the manager has, and newer ones come to
 * who waits for them without his asking.
 *
 * Of each version there is one encoding, whoever has it: the manager's, as far as it was seen, and
 * that of each map that a client or a metadata target puts to use are compared byte by byte. Once
 * faults have ended each of them comes to have the newest and to wait for a newer one, at least as
 * many as there are places for; then a version is made, and as many have it within PUSHES_MS: less
 * than the time after which clients look by themselves.
 *
 * Thread: the world's. Memory: the world's, an encoding a version. */
#pragma once
#include "world.h"

struct pushes;

enum { PUSHES_WAIT_S = 3, PUSHES_MS = 300, PUSHES_FEW = 2 };

/* Calls that the manager of this world lets wait: PUSHES_FEW, or as many as may come. */
uint32_t pushes_waits_max(const struct world *world);
/* A node is about to use a map. */
void pushes_came(struct node *node, const struct cluster_map *map);
/* NULL: no two nodes have had different maps of one version. */
const char *pushes_failure(const struct world *world);
/* All have the newest, and wait. Everything is up. */
bool pushes_are_settled(struct world *world);
/* Makes a version; to be called again and again until the manager has it: true. */
bool pushes_make(struct world *world);
/* How many wait for it; then, how many have it. */
uint32_t pushes_waiting(struct world *world);
uint32_t pushes_arrived(const struct world *world);
/* Maps that came by changes and were compared with the manager's. */
uint64_t pushes_by_changes(const struct world *world);
/* Takes NULL. */
void pushes_free(struct pushes *pushes);
