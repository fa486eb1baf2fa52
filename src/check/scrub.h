/* Taking away chunks that belong to no file: what a power loss leaves when a storage target had
 * written more of it than the metadata target.
 *
 *     the inode is there   chunks of a generation that is not the file's, and that nobody moves its
 *                          bytes to: whoever had drawn it can make it the file's no more
 *     it is not            chunks whose inode or generation has a number that a power loss took
 *                          back: numbers never come again, and chunks come after their inode, so
 *                          nobody will ever want them
 *
 * Chunks that the queue is about to delete are left to it. An inode of any other number was lost in
 * another way, and its chunks may be all that is left of a file: they are named, and stay.
 *
 * Thread: the caller's, which waits, and is the only one that checks. Memory: as for a check, while
 * it runs. */
#pragma once
#include "check/fsck.h"

enum { SCRUB_NAMED_MAX = 16 /* lines about chunks that stay */ };

struct scrub {
    const struct fsck_cluster *cluster;
    bool (*stopped)(void *context);
    void *context;
    void (*kept)(void *context, uint64_t ino, uint32_t ost); /* SCRUB_NAMED_MAX times at most */
    uint64_t removed;    /* generations of files, for each OST */
    uint64_t kept_count; /* likewise */
    uint32_t round;      /* what stays is named in the first */
};

/* -ERR_CLOSED when told to stop; errors of the targets. */
MUST_CHECK int scrub_run(struct scrub *scrub);
