/* What fsck knows of inodes while it counts their names: a hash table of fixed size.
 *
 * Memory: all taken at init. */
#pragma once
#include "base/err.h"
#include "base/types.h"

enum fsck_node_flag {
    NODE_ORPHAN = 1,
    NODE_PARTITION = 2,
    NODE_DYING = 4,
    NODE_WRONG_TYPE = 8, /* a name says another type than the inode */
    NODE_CROSSING = 16,  /* a transaction across logs was about it before its names were counted */
};

struct fsck_node {
    uint64_t ino; /* 0: free */
    uint64_t epoch;
    uint64_t parent;
    uint64_t named_in;   /* directory of the name seen last */
    int64_t files;       /* entries that the partition counts, less those seen */
    int64_t directories; /* likewise */
    uint32_t nlink;
    uint32_t names; /* seen */
    uint8_t type;   /* mode >> 12 */
    uint8_t flags;  /* enum fsck_node_flag */
};

struct fsck_table {
    struct fsck_node *nodes;
    uint32_t mask;
    uint32_t count;
    uint32_t count_max;
};

MUST_CHECK int fsck_table_init(struct fsck_table *table, size_t bytes);
void fsck_table_deinit(struct fsck_table *table);
void fsck_table_clear(struct fsck_table *table);
/* NULL when there is none. */
struct fsck_node *fsck_table_find(const struct fsck_table *table, uint64_t ino);
/* The one that is there, or a new one; NULL when the table is full. */
struct fsck_node *fsck_table_add(struct fsck_table *table, uint64_t ino);

static inline uint64_t fsck_hash(uint64_t ino) {
    ino = (ino ^ ino >> 33) * UINT64_C(0xff51afd7ed558ccd);
    return ino ^ ino >> 29;
}
