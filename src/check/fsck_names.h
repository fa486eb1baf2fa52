/* Inside of fsck's check of names: a pass reads, and what it counted is judged.
 *
 * A pass takes the inodes whose hash falls in its part, or, when it looks again, those of a list.
 * Rows of inodes, partitions and orphans are read first and entries last, so an inode is judged by
 * its epoch: if its row has not changed since, then neither have its names. But a transaction
 * across logs may have changed its row before, and its name elsewhere only behind that: so between
 * the two it is asked which are under way, and whom they are about is looked at again. */
#pragma once
#include "check/fsck_internal.h"
#include "check/fsck_table.h"

struct fsck_names {
    struct fsck *fsck;
    struct fsck_table table;
    uint64_t part;
    uint64_t parts;
    uint32_t mdts_away; /* when the pass began */
    bool again;         /* the table holds what is looked at again */
    uint64_t *later;    /* inodes that changed meanwhile */
    uint32_t later_count;
    uint64_t *rooted; /* directories known to be below the root, by hash; others displace them */
};

enum { FSCK_ROOTED_COUNT = 1 << 16 };

/* Judges the nodes of the table: problems, and who is to be looked at again. */
MUST_CHECK int fsck_names_judge(struct fsck_names *names);
