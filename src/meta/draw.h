/* Which group a new directory goes to: that of its parent, unless this one has more than 1.25 times
 * as many files as the mean, or the parent is the root or a child of it. Then one is drawn, by how
 * far it is below that; all alike where none is, or where those that were drawn have not taken it.
 * One without slots, that is lost, or that nobody reaches, is not. Nor is one that is full (room.h)
 * where another one has room: then one is drawn for a parent of a full group, too. */
#pragma once
#include "meta/transaction.h"

/* Its log, the same in all runs of the call until it begins anew. */
MUST_CHECK int draw_log(struct transaction *transaction, const struct call *call,
                        struct log_id *ret_log);
