/* The way from a directory to the root, over all groups: no directory may come to lie within
 * itself. */
#pragma once
#include "meta/transaction.h"

/* As far as it is here: *at becomes the root, or the first directory that is elsewhere.
 * *ret_within: the ancestor was met, both ends included. */
MUST_CHECK int way_walk(struct transaction *transaction, struct ino *at, struct ino ancestor,
                        bool *ret_within);
/* All of it. */
MUST_CHECK int way_is_within(struct transaction *transaction, struct ino directory,
                             struct ino ancestor, bool *ret_within);
