/* Halves: what a transaction across logs does at one of them. A half says what it will do, and what
 * it relies on by value; rows are made when it is carried out, from what stands there then
 * (docs/internals/halves.md).
 *
 * The same bytes go over the wire and into rows: packed, little-endian.
 *
 * Thread: the group's step. */
#pragma once
#include "meta/half_format.h"
#include "meta/transaction.h"

/* What it holds: at most two; *ret_count of them. */
void half_stakes(const struct transaction *transaction, const struct half *half,
                 struct stake_what ret_what[2], uint32_t *ret_count);
/* Whether it can be promised: 0, -ERR_CHANGED where something that it relies on is not so, or is
 * held by others; -ERR_STALE_MAP where it is another group's; or an error that ends the operation.
 * MAKE draws the number. */
MUST_CHECK int half_check(struct transaction *transaction, struct half *half);
/* Stages what was promised. What contradicts itself on disk is left as it is, with a line. */
MUST_CHECK int half_apply(struct transaction *transaction, const struct half *half);
