/* The count of moves: how often a directory got another parent, in the log that has slot 0. Two
 * moves that do not know of one another could each put one directory into the other
 * (docs/internals/halves.md). */
#pragma once
#include "meta/transaction.h"

/* Where slot 0 is the group's. */
MUST_CHECK int count_get(struct transaction *transaction, uint64_t *ret_moves);
MUST_CHECK int count_put(struct transaction *transaction, uint64_t moves);
/* For a move of a directory to another parent: one more, here or elsewhere. Nothing where one group
 * has all slots, as its step is the lock. Before the way to the root is read. */
MUST_CHECK int count_raise(struct transaction *transaction);
