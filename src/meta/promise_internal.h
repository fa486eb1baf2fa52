/* What the files of the participant's side share: promise.c, promise_lost.c (whose coordinator is
 * lost for good), op_cross.c. */
#pragma once
#include "meta/promise.h"
#include "meta/transaction.h"

/* Stages what was promised, and the row that says so. (op_cross.c) */
MUST_CHECK int promise_keep(struct transaction *transaction, struct promise *promise);

/* (promise.c) Asks: opcode and request are filled. */
void promise_ask(struct group *group, struct promise *promise, struct log_id log,
                 void (*done)(struct call *call));
/* Its question is answered; false: it is gone, and may not be touched any more. */
bool promise_answered(struct promise *promise);
/* It is not one of those of its coordinator's marks that are being asked about. */
void promise_mark_asked(struct promise *promise);
/* Its row can go: it is given up, or has ended everywhere. */
void promise_is_over(struct promise *promise);

/* (promise_lost.c) */
bool promises_source_is_lost(const struct promises *promises, const struct promise_source *source);
/* Asks the next of the other participants what became of it; behind the last it is over. */
void promise_others_ask(struct group *group, struct promise *promise);
/* Does what others have done. */
void promises_lost_step(struct group *group);
