/* The oracle of what is left when all is over: every client asks for one of each kind of operation,
 * each of which must succeed within RULE_ALIVE_S; and then nothing waits at any target (waits.h).
 *
 *     faults have ended, all oracles have looked --> each client: create, write, fsync, read, cut,
 *     link, rename, mkdir, listing, unlink, rmdir, statfs, sync --> nobody waits for anything
 *
 * What is asked here was never asked before in part (listings, statfs, flush), so it also meets
 * what a whole life has left. Its files are gone at the end.
 *
 * Thread: the world's. Memory: the heap. */
#pragma once
#include "totals.h"
#include "world.h"

struct liveness;

/* no_space: storage targets may be full, so that what needs new blocks may answer ENOSPC. */
struct liveness *liveness_new(struct world *world, bool no_space);
/* Takes NULL. */
void liveness_free(struct liveness *liveness);
/* Goes on: clients that have a session get their turns. Between events, again and again. True: all
 * have had all answers, and nobody waits; or failure says what is wrong. */
bool liveness_look(struct liveness *liveness, char failure[600]);
/* Adds what there was of it. */
void liveness_sum(const struct liveness *liveness, struct seed_report *report);
