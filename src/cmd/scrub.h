/* Taking away chunks that belong to no file: what a power loss leaves when a storage target had
 * written more of it than the metadata target.
 *
 *     first pass    chunks whose inode does not exist and has a number that a power loss may have
 *                   taken back: numbers never come again, and chunks come after their inode, so
 *                   nobody will ever want them
 *     second pass   chunks of a generation that is not their file's, seen by the first one: whoever
 *                   had drawn it would have made it the file's by now
 *
 * Chunks that the queue is about to delete are left to it. An inode of any other number was lost in
 * another way, and its chunks may be all that is left of a file: they are named, and stay.
 *
 * Thread: one that has entered the cluster; it waits, and is the only one that checks. Memory: as
 * for a check, while a pass runs. */
#pragma once
#include "cmd/fsck.h"

enum {
    SCRUB_LATER_MAX = 4096,
    SCRUB_NAMED_MAX = 16, /* lines about chunks that stay */
    /* Longer than a client tries to finish a request. */
    SCRUB_WAIT_S = 65,
};

struct scrub {
    struct local_cluster *cluster;
    bool (*stopped)(void *context);
    void *context;
    void (*kept)(void *context, uint64_t ino, uint32_t ost); /* SCRUB_NAMED_MAX times at most */
    uint64_t removed;         /* files and generations, for each OST */
    uint64_t kept_count;      /* likewise */
    uint32_t round;           /* of the first pass; what stays is named in its first */
    struct fsck_stray *later; /* SCRUB_LATER_MAX */
    uint32_t later_count;
};

/* One pass each. -ERR_CLOSED when told to stop; errors of the targets. */
MUST_CHECK int scrub_first(struct scrub *scrub);
MUST_CHECK int scrub_second(struct scrub *scrub);
