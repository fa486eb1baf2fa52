/* The value of an I row; the others and what holds for all are in meta_format.h. */
#pragma once
#include "base/types.h"
#include <assert.h>

/* INODE_CUT_PENDING: the cut to truncate_size has not reached all OSTs. INODE_DYING: a removed
 * directory still open. INODE_TAIL: behind the end may lie what a write has left that failed while
 * others wrote; it is cut when nobody does. INODE_UNTOLD: only OSTs know the size (op_settle.c).
 * INODE_COUNTED: blocks are sure; usage.h. INODE_UNTOUCHED: its chunks were drawn when it was made;
 * untouched.h. */
enum inode_flag {
    INODE_CUT_PENDING = 1,
    INODE_DYING = 2,
    INODE_TAIL = 4,
    INODE_UNTOLD = 8,
    INODE_COUNTED = 16,
    INODE_UNTOUCHED = 32,
    INODE_FLAGS_KNOWN = 63
};

struct __attribute__((packed)) inode_row {
    uint8_t format;
    uint8_t data_state; /* enum data_state */
    uint16_t flags;
    uint32_t nlink; /* of a directory: 2, without its directories' ".." */
    uint64_t epoch;
    int64_t ctime_ns;
    int64_t mtime_ns; /* of a directory: the partition's counts */
    uint64_t size;
    uint32_t mode;
    uint32_t uid;
    uint32_t gid;
    union {
        uint32_t rdev;       /* of a device */
        uint32_t blocks_low; /* of a file in chunks: blocks that OSTs have of it */
    };
    int64_t atime_ns;
    int64_t btime_ns;
    uint64_t parent;      /* directory of the first link */
    uint64_t parent_name; /* hash and rank of its name there */
    uint32_t domain;
    uint32_t chunk_generation; /* 0 until the file has chunks */
    uint32_t truncate_seq;
    uint32_t pool_version;
    uint64_t truncate_size;
    uint64_t truncate_position; /* of the record that set the two, or made the file's chunks */
    uint32_t chunk_bytes;
    uint32_t seed;
    uint16_t stripe_count;
    uint8_t redundancy;
    uint8_t partition_depth;
    uint16_t losses; /* kv_losses when it was last sure that no chunk reaches beyond the size */
    uint16_t blocks_high; /* 0 but of a file in chunks */
};
static_assert(sizeof(struct inode_row) == 136, "inode_row is on disk");
static_assert(offsetof(struct inode_row, mode) == 40, "inode_row is on disk");
static_assert(offsetof(struct inode_row, parent) == 72, "inode_row is on disk");
static_assert(offsetof(struct inode_row, truncate_size) == 104, "inode_row is on disk");
