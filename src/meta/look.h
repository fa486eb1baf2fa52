/* Looks: what a coordinator reads at another log before it decides. The answer is of one moment
 * and holds nothing: what is relied on goes along with the prepare (docs/internals/halves.md).
 *
 * Packed and little-endian, as bulk of cross_look's answer. */
#pragma once
#include "meta/meta_format.h"

enum look_kind {
    LOOK_INODE = 1, /* its row; of a directory its partition, too */
    LOOK_NAME,      /* a directory's partition, and the name in it */
    LOOK_WAY,       /* from a directory towards the root, as far as this log knows */
    LOOK_COUNT,     /* of moves */
};

struct look_what {
    enum look_kind kind;
    struct ino ino;
    struct ino ancestor; /* WAY: that is looked for */
    struct bytes name;   /* NAME */
};

struct __attribute__((packed)) look_answer {
    uint8_t format;
    uint8_t has_inode;
    uint8_t has_partition;
    uint8_t has_name; /* name_ino and type are there; index is, in any case */
    uint8_t type;
    uint8_t within; /* WAY: the ancestor was met */
    uint8_t reserved[2];
    uint64_t name_ino;
    uint64_t name_epoch;
    uint64_t index;
    uint64_t next; /* WAY: where it goes on, elsewhere; the root: it has ended */
    uint64_t count;
    struct inode_row inode;
    struct partition_row partition;
};
static_assert(sizeof(struct look_answer) == 264, "look_answer is on the wire");
