/* The oracle of what files take: once nobody has anything open, the count of blocks in each inode's
 * row that says it is sure is what its storage targets have of it.
 *
 * A power failure of a storage target takes what had been counted, so files on such are left out;
 * as is one whose end is not sure since its metadata target lost power.
 *
 * Reads the rows of the targets, between their steps. Thread: the world's. */
#pragma once
#include "totals.h"
#include "world.h"

struct usages {
    uint64_t compared; /* files */
    uint64_t unsure;   /* that nobody has counted yet */
    uint64_t excused;
};

/* Adds to the counts. False: a file's is wrong; failure says which. All targets are up. */
bool usages_check(struct world *world, struct usages *usages, char failure[600]);
void usages_sum(const struct usages *usages, const struct world *world,
                uint64_t counts[TOTAL_COUNT]);
