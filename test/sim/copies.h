/* A node whose directory is copied, or put back from a backup, and started at several places; in
 * one seed of three. It has a directory's terms and no targets, so nothing of it is in the map:
 * what is played is who of its copies is registered by the manager, through all faults. Each copy
 * runs beside a client, with whose process it dies, and asks as a member does
 * (member/registration.h).
 *
 * The oracle:
 * - no life is registered behind one of a higher term, or of the same
 * - none is while one at another place is heard, nor for as long behind that as it stands; an
 *   answer that a process read late, as it was stopped, is not compared with what was registered
 *   after it
 * - none is refused but for another copy, that has run since, or has started as often
 * - at the end exactly one copy is registered, and all others are refused
 *
 * Thread: the world's. Memory: the heap. */
#pragma once
#include "base/prng.h"
#include "world.h"

struct copies;

struct copies *copies_new(struct world *world);
/* Takes NULL. */
void copies_free(struct copies *copies);
/* From here on nothing is copied and no copy dies by itself. */
void copies_end(struct copies *copies);
/* The manager is rebuilt by this map: of a log without a target in it nobody tells a life, so none
 * is registered. Where the map does not know the node, it gets other numbers. */
void copies_rebuilt(struct copies *copies, const struct cluster_map *map);
/* One serves, and the others are refused. */
bool copies_are_done(const struct copies *copies);
/* NULL, or what was wrong. */
const char *copies_failure(const struct copies *copies);
uint64_t copies_made(const struct copies *copies);
uint64_t copies_refused(const struct copies *copies);
/* Of these, as another one runs. */
uint64_t copies_run(const struct copies *copies);
/* Lives that were registered behind one at another place. */
uint64_t copies_moved(const struct copies *copies);
