/* The manager's log is lost for good, and a manager is rebuilt of what all others know, one to
 * three times in a quarter of the seeds; and the oracle of that.
 *
 *     its power fails, and its log is gone --> half a second or more, in which somebody sees it
 *         --> the newest map of all metadata targets; each target is asked for its rows, by calls
 *             from the first metadata target's process (node/rebuild_listing.h)
 *         --> a manager opens on an empty log with these --> loaded: it is a manager as any other
 *
 * It goes at any moment, or as it begins a session, ends one, or hands slots over. Whoever is asked
 * may die, be stopped or be cut off, the asker may, and so may the manager before it is loaded: all
 * is asked anew. A target that is gone for good is lost by it. Nodes whose first joining only the
 * lost log knew of are made anew and join again. It goes again only when all have heard of the
 * numbers of the one that was rebuilt.
 *
 * The oracle: what the manager hands out lies above all that the lost logs had given; no number of
 * a session is given twice; a session that is found was begun by a client, and one that a target
 * has told of, which has not ended, is found; who is found goes on for a timeout at least. All
 * other oracles go on as they are, but for what only the lost log knew
 * (docs/internals/rebuilding.md).
 *
 * Thread: the world's. Memory: the heap. */
#pragma once
#include "copies.h"
#include "losses.h"
#include "newcomers.h"
#include "totals.h"
#include "world.h"

struct rebuilds;

/* Who knows of the manager, and is told what it forgets; borrowed. */
struct rebuilds_told {
    const struct losses *losses;
    struct newcomers *newcomers;
    struct copies *copies;
};

/* operations: of the whole seed. */
struct rebuilds *rebuilds_new(struct world *world, const struct rebuilds_told *told,
                              uint64_t operations);
/* Takes NULL. */
void rebuilds_free(struct rebuilds *rebuilds);
/* The manager's log is to go now, or something has come about that must be looked at before
 * anything else happens. */
bool rebuilds_are_due(struct rebuilds *rebuilds, uint64_t submitted);
/* Every few milliseconds, and when they are due. True: the manager's power is to fail now, and then
 * rebuilds_begin is called. */
bool rebuilds_look(struct rebuilds *rebuilds, uint64_t submitted);
void rebuilds_begin(struct rebuilds *rebuilds);
/* It is not to start now. */
bool rebuilds_has(const struct rebuilds *rebuilds, const struct node *node);
/* None is under way. */
bool rebuilds_are_over(const struct rebuilds *rebuilds);
/* NULL, or what was wrong. */
const char *rebuilds_failure(const struct rebuilds *rebuilds);
void rebuilds_sum(const struct rebuilds *rebuilds, uint64_t counts[TOTAL_COUNT]);
