/* The oracle of transactions across logs: of one that has ended everywhere all participants that
 * are left have done their part, or all have given it up; whoever coordinated it, also one that is
 * lost for good, and whatever power has taken in between.
 *
 * Each end is noted as it comes, the last one of a participant counts: power may take it, and then
 * another one follows. A late copy of a prepare, behind the end, is promised and given up again,
 * which says nothing: so what was done and is forgotten stays done, unless the power fails.
 *
 * Thread: the world's. Memory: the heap. */
#pragma once
#include "meta/group.h"
#include "world.h"

struct accords;

struct accords *accords_new(void);
/* Takes NULL. */
void accords_free(struct accords *accords);
/* An MDT's promise has come to that end. */
void accords_note(struct node *mdt, const struct cross_id *id, enum promise_end end);
/* What the node had in memory is gone. */
void accords_power(struct node *node);
/* False: two that are left disagree. When nothing is under way any more. */
bool accords_check(struct world *world, char failure[600]);
/* Transactions that several participants had. */
uint64_t accords_count(const struct world *world);
