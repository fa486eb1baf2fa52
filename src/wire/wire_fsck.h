/* What fsck_list lists. */
#pragma once
#include "base/types.h"

enum fsck_what {
    FSCK_INODES = 1,
    FSCK_DENTRIES = 2,
    FSCK_PARTITIONS = 3,
    FSCK_ORPHANS = 4,
    FSCK_CHUNKS = 5,
    FSCK_BLOCKS = 6,
    FSCK_QUEUE = 7,
    FSCK_DATA = 8, /* blocks of chunks, read from the disk and checked */
    FSCK_INLINE = 9,
    FSCK_WRITERS = 10,
    FSCK_LOST = 11,         /* numbers that power losses may have taken back */
    FSCK_MOVES = 12,        /* moves of small files to chunks that are under way */
    FSCK_TRANSACTIONS = 13, /* what is promised to transactions across logs, or done */
    FSCK_PROMISED = 14,     /* holes of chunks that are promised, in all */
    /* What a manager is rebuilt from, of both kinds of targets: */
    FSCK_SESSIONS = 15, /* that are attached */
    FSCK_ENDED = 16,    /* the list of the ended, kv/ended_list.h */
    FSCK_SLOTS = 17,    /* of a metadata target: whose slots are, by its own rows */
};

/* In the place of a row's size in answers of fsck_list: no value, its checksum is wrong. */
enum { FSCK_ROW_IS_BAD = UINT16_MAX };
