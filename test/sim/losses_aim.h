/* Moments for a metadata target to be lost at: when a decision of it has reached some of its
 * participants, and others not yet; or when all have promised, and none has heard of a decision.
 *
 * Thread: the world's. */
#pragma once
#include "world.h"

/* Cuts the link to one participant of a transaction that the target is about to decide, or has
 * decided just now. Its number; 0: there is none. */
uint64_t losses_aim(struct node *mdt, uint64_t lot);
/* Whether that moment of this transaction has come. *aimed: 0 where there is no such transaction
 * any more, and another one is to be found. */
bool losses_is_hit(struct node *mdt, uint64_t *aimed);
/* Whether the other moment is now, of any transaction with several participants. */
bool losses_decides(struct node *mdt);
