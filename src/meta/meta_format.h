/* Rows of a metadata group: keys, which are those of kv/kv_key.h, and the values of space 1.
 *
 *     space 1, by slot      id        generation  index
 *     P partition           dir ino   partition   0                state, counts, times, access
 *     D dentry              dir ino   0           hash:51|rank:12  ino, type, name
 *     I inode               ino       0           0                attributes, layout, first link
 *     L inline data         ino       0           piece            bytes of a small file
 *
 *     space 0, slot 0       id        generation  index
 *     G group               0         0           0                format, cluster, hash of names
 *     C counters            0         0           0                reserved numbers, last epoch
 *     R slots               first     0           0                range: mine? how many opened
 *     S session, F fence    session   0           0                its state; are its opens known
 *     O orphan              ino       0           0                unlinked but open
 *     W writer              ino       0           session          open for writing
 *     M move                ino       chunk gen.  session          on its way to chunks
 *     N numbers, U over     losses, 0 0           0                may be lost; over: fences.h
 *     Q order               position  what        ino              what OSTs shall delete or cut
 *     T transaction         its log   its term    its number       halves that are promised here
 *     Y decision            number    term        0                who is to hear of it
 *     K count               0         0           0                moves of directories so far
 *     E ended               see kv/ended_list.h; values of space 0: group_format.h
 *
 * O, W and M are keyed by ino in space 0: those of a slot are a range, as are those of the group.
 * Values: packed, little-endian, format first, with the epoch of the change; reserved bytes 0. */
#pragma once
#include "base/types.h"
#include "layout/layout.h"
#include "meta/inode_format.h"
#include <assert.h>

enum {
    META_FORMAT = 1,
    INLINE_PIECE_BYTES = 1920,
    INLINE_PIECES_MAX = 3,
    ROW_BYTES_MAX = 320 /* of all rows but inline data: a dentry with the longest name */
};

enum row_type {
    ROW_PARTITION = 'P',
    ROW_DENTRY = 'D',
    ROW_INODE = 'I',
    ROW_INLINE = 'L',
    ROW_GROUP = 'G',
    ROW_COUNTERS = 'C',
    ROW_SLOTS = 'R',
    ROW_SESSION = 'S',
    ROW_ORPHAN = 'O',
    ROW_WRITER = 'W',
    ROW_MOVE = 'M',
    ROW_LOST = 'N',
    ROW_ORDER = 'Q',
    ROW_TRANSACTION = 'T',
    ROW_DECISION = 'Y',
    ROW_COUNT = 'K',
    ROW_ENDED = 'E',
    ROW_FENCE = 'F',
    ROW_OVER = 'U',
};

enum partition_state { PARTITION_LIVE = 1, PARTITION_FROZEN = 2, PARTITION_DYING = 3 };

/* The first fields change with every entry made or removed: one patch covers them. */
struct __attribute__((packed)) partition_row {
    uint8_t format;
    uint8_t state; /* enum partition_state */
    uint8_t depth;
    uint8_t reserved;
    uint32_t mode; /* this and uid, gid, domain, layout: the directory's, to spare reading I */
    uint64_t epoch;
    int64_t ctime_ns;
    int64_t mtime_ns;
    uint64_t file_count; /* entries that are not directories */
    uint64_t directory_count;
    uint32_t uid;
    uint32_t gid;
    uint32_t domain;
    uint32_t pool_version; /* of new files here; 0 = the newest */
    uint32_t chunk_bytes;
    uint16_t stripe_count;
    uint8_t redundancy;
    uint8_t reserved2;
    uint64_t reserved3;
};
static_assert(sizeof(struct partition_row) == 80, "partition_row is on disk");
static_assert(offsetof(struct partition_row, epoch) == 8, "partition_row is on disk");
static_assert(offsetof(struct partition_row, uid) == 48, "partition_row is on disk");

/* MORE: a row of the same hash and the next rank exists. HOLE: no name, kept for higher ranks. */
enum dentry_flag { DENTRY_MORE = 1, DENTRY_HOLE = 2 };

struct __attribute__((packed)) dentry_row {
    uint8_t format;
    uint8_t type; /* mode >> 12; 0 in a hole */
    uint8_t flags;
    uint8_t name_bytes;
    uint32_t reserved;
    uint64_t epoch;
    uint64_t ino;
    uint8_t name[];
};
static_assert(sizeof(struct dentry_row) == 24, "dentry_row is on disk");

struct __attribute__((packed)) inline_row {
    uint8_t format;
    uint8_t reserved[7];
    uint64_t epoch;
    uint8_t data[];
};
static_assert(sizeof(struct inline_row) == 16, "inline_row is on disk");
