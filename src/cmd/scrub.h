/* Taking away chunks that belong to no file: what a power loss leaves when a storage target had
 * written more of it than the metadata target.
 *
 *     first pass    chunks whose inode does not exist: inode numbers never come again, and chunks
 *                   come after their inode, so nobody will ever want them
 *     second pass   chunks of a generation that is not their file's, seen by the first one: whoever
 *                   had drawn it would have made it the file's by now
 *
 * Chunks that the queue is about to delete are left to it.
 *
 * Thread: one that has entered the cluster; it waits, and is the only one that checks. Memory: as
 * for a check, while a pass runs. */
#pragma once
#include "cmd/fsck.h"

enum {
    SCRUB_LATER_MAX = 4096,
    /* Longer than a client tries to finish a request. */
    SCRUB_WAIT_S = 65,
};

struct scrub {
    struct local_cluster *cluster;
    bool (*stopped)(void *context);
    void *context;
    uint64_t removed;         /* files and generations, for each OST */
    struct fsck_stray *later; /* SCRUB_LATER_MAX */
    uint32_t later_count;
};

/* One pass each. -ERR_CLOSED when told to stop; errors of the targets. */
MUST_CHECK int scrub_first(struct scrub *scrub);
MUST_CHECK int scrub_second(struct scrub *scrub);
