/* Changes of a range of a chunk: their order, and what is kept of them for copies. */
#pragma once
#include "store/request.h"

/* write.c: waits behind the first earlier one that changes the same blocks, a copy behind the first
 * of them. */
MUST_CHECK int write_queue(struct ost *ost, struct request *request);
/* outcome.c: what the request was answered before. -ERR_NOT_FOUND: it was not. */
MUST_CHECK int outcome_find(struct ost *ost, const struct request *request,
                            struct store_write_outcome *ret_answer, int *ret_result);
/* What an outcome takes, and staging it: no record is begun between here and the commit, as this is
 * the one that holds it. */
void outcome_need(struct ost *ost, const struct request *request, struct kv_need *need);
MUST_CHECK int outcome_stage(struct ost *ost, const struct request *request,
                             const struct store_write_outcome *answer);
