/* The oracle of space: chunks that belong to no file.
 *
 * Once nobody has anything open and the queue of orders is empty, each chunk of each storage target
 * is its inode's, of its generation; or it is one that a scrub takes away: a power loss took what
 * was known of it, or the inode is there and has chunks of another generation or none. What is left
 * of a file that was removed would stay for ever.
 *
 * Reads the rows of the targets, between their steps. Thread: the world's. */
#pragma once
#include "world.h"

/* All orders are carried out, all opens closed, all moves to chunks over. Everything is up. False:
 * left names a row that says otherwise. */
bool strays_are_settled(struct world *world, char left[200]);
/* *ret_count: generations of files that are left to a scrub. False: there is something that no
 * scrub may take away; failure says what. */
bool strays_check(struct world *world, uint64_t *ret_count, char failure[600]);
/* Whether no other target than that one has something of a file that is gone; else failure says
 * what. All others are up. */
bool strays_are_elsewhere(struct world *world, const struct node *away, char failure[600]);
/* Whether all that is open for writing needs that target. */
bool strays_writers_need(struct world *world, const struct node *away, char failure[600]);
