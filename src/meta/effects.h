/* What a committed transaction changes in the group's memory.
 *
 * Thread: the group's, inside transaction_commit. */
#pragma once
#include "meta/transaction.h"

/* position: of the record that holds the transaction. */
void effect_apply(struct transaction *transaction, const struct effect *effect, uint64_t position);
