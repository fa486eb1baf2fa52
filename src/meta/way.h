/* The way from a directory to the root, over all groups: no directory may come to lie within
 * itself. */
#pragma once
#include "meta/transaction.h"

/* Of one walk, which is one step that nothing else comes between: about as many as 25 ms allow.
 * Directories that lie deeper are moved to where they are not, and nowhere else. */
enum { WAY_LEVELS_MAX = 16384 };

/* As far as it is here: *at becomes the root, or the first directory that is elsewhere.
 * *ret_within: the ancestor was met, both ends included. *left: levels that it may have; beyond,
 * -ERR_NAME_TOO_LONG, but for who asks from elsewhere *at becomes the next one. */
MUST_CHECK int way_walk(struct transaction *transaction, struct ino *at, struct ino ancestor,
                        uint32_t *left, bool *ret_within);
/* All of it; of what is here WAY_LEVELS_MAX levels, and of stretches elsewhere what
 * CROSSING_LOOKS_MAX leaves: beyond either, -ERR_NAME_TOO_LONG. */
MUST_CHECK int way_is_within(struct transaction *transaction, struct ino directory,
                             struct ino ancestor, bool *ret_within);
