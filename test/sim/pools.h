/* The oracle of pool versions: storage targets that are full get no new files.
 *
 * A metadata target that has a map on disk gives new files no older pool version than that names,
 * whatever befalls it: each file that was made is compared with what all of them had when it was
 * asked for. All chunks of a file are on targets of its version. And once faults have ended, the
 * newest version soon has nobody who is full, while others are not, and lacks nobody who has room;
 * and all metadata targets have it.
 *
 * Reads rows and maps between the steps of their owners. Thread: the world's. Memory: the world's
 * list of files. */
#pragma once
#include "world.h"

struct pools;

/* The oldest pool version that a metadata target may give from now on. */
uint32_t pools_floor(const struct world *world);
/* A file was made, which was asked for when that was the floor. */
void pools_note(struct world *world, uint64_t ino, uint32_t floor);
/* Takes NULL. */
void pools_free(struct pools *pools);
/* The newest version is as storage targets are, and all have it. */
bool pools_are_settled(const struct world *world);
/* False: a file has a version that it must not have, or a chunk beside its version; failure says
 * which. Everything is up. */
bool pools_check(struct world *world, char failure[600]);
/* Versions that lack a target that the one before has; that have one that the one before lacks, and
 * an older one has. */
uint32_t pools_left(const struct world *world);
uint32_t pools_back(const struct world *world);
