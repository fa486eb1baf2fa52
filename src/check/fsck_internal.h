/* What the files of fsck share, and scrub.
 *
 *     names    inodes, partitions, orphans, then entries, counted in a table; so many inodes at a
 *              time as fit it
 *     chunks   index rows of each OST in order, each file's against its inode
 *     blocks   bitmap, index, bitmap again: bits for a range of blocks at a time
 *     data     each block read from its disk */
#pragma once
#include "check/fsck.h"
#include "kv/kv_key.h"
#include "meta/rows.h"
#include "store/store_format.h"
#include <string.h>

enum {
    FSCK_TABLE_BYTES = 64 << 20,
    FSCK_BITS_BYTES = 64 << 20,
    FSCK_SUSPECTS_MAX = 65536,
    FSCK_LIST_BYTES = 256 << 10, /* holds all index rows of any chunk */
    FSCK_POINT_BYTES = 2048,
    FSCK_LOOKS_MAX = 8, /* at what changes all the while */
    FSCK_WHERE_BYTES = 1200,
};

struct fsck_chunk {
    struct ino ino;
    uint32_t generation;
    uint64_t chunk;
};

/* A chunk that seems to belong to nobody. */
struct fsck_stray {
    uint32_t ost;
    struct fsck_chunk id;
};

struct fsck {
    const struct fsck_cluster *cluster;
    const struct fsck_report *report;
    struct fsck_counts counts;
    char stage[64];                  /* what is being checked */
    uint64_t stage_rows, told_at_ns; /* looked at; when that was told */
    struct call call;
    uint8_t *list_memory;
    uint64_t list_answers; /* that list_memory has held */
    uint8_t point_memory[FSCK_POINT_BYTES];
    struct fsck_stray *strays;
    uint32_t stray_count;
    struct fsck_usage *usage;
    uint64_t kept; /* files (of each OST) with chunks, of a metadata target that is lost */
    struct fsck_target *needed; /* that is away, which -ERR_AWAY was about last */
    uint32_t mdts_away;
};

/* NULL: no memory. free takes NULL. */
struct fsck *fsck_new(const struct fsck_cluster *cluster, const struct fsck_report *report);
void fsck_free(struct fsck *fsck);

struct fsck_row {
    struct kv_key key;
    struct bytes value; /* until the next answer to any list */
};

/* Rows of one kind of one target in order of their keys, or of all metadata targets, one after
 * another. There is memory for one answer: where another list's has taken it the list asks again
 * behind the row that it gave last. */
struct fsck_list {
    struct fsck *fsck;
    struct target_id target;
    uint32_t what; /* FSCK_ of wire_types.h */
    struct kv_key cursor;
    bool has_cursor, end, all;
    uint32_t groups_left; /* of the map, whose rows follow */
    struct bytes rest;
    uint64_t answer; /* of list_answers, which rest is of */
};

/* A chain of its own for each OST. */
static inline struct target_id fsck_mdt(const struct fsck *fsck, uint32_t index) {
    return fsck->cluster->map->groups[index].members[0];
}
/* Which of them keeps the slot of the ino: as in mdt0. */
static inline uint32_t fsck_mdt_place(const struct fsck *fsck, uint64_t ino) {
    return fsck->cluster->map->slot_groups[ino_slot((struct ino){ino}).value];
}
/* That keeps the inode. */
static inline struct target_id fsck_mdt_of(const struct fsck *fsck, uint64_t ino) {
    return cluster_map_group(fsck->cluster->map, ino_slot((struct ino){ino}))->members[0];
}
static inline struct target_id fsck_ost(const struct fsck *fsck, uint32_t index) {
    return fsck->cluster->map->chains[index].members[0];
}
static inline uint32_t fsck_ost_count(const struct fsck *fsck) {
    return fsck->cluster->map->chain_count;
}

void fsck_list_begin(struct fsck_list *list, struct fsck *fsck, struct target_id target,
                     uint32_t what);
/* Passes over those that are lost, and those that are away or go away in its middle. */
void fsck_list_begin_all(struct fsck_list *list, struct fsck *fsck, uint32_t what);
/* Rows from the key on. */
void fsck_list_from(struct fsck_list *list, const struct kv_key *key);
/* -ERR_NOT_FOUND behind the last one. */
MUST_CHECK int fsck_list_next(struct fsck_list *list, struct fsck_row *ret_row);
/* One row as it is now, beside any list; -ERR_NOT_FOUND, also of a target that is lost. */
MUST_CHECK int fsck_row_get(struct fsck *fsck, struct target_id target, uint32_t what,
                            const struct kv_key *key, struct bytes *ret_value);
/* A copy of an inode's row; -ERR_NOT_FOUND, -ERR_CORRUPT. */
MUST_CHECK int fsck_inode_get(struct fsck *fsck, uint64_t ino, struct inode_row *ret_row);

/* A row more was looked at; told each second. */
void fsck_progress(struct fsck *fsck);
PRINTF_LIKE(4, 5)
void fsck_problem(struct fsck *fsck, const char *kind, const char *where, const char *format, ...);
/* "inode 17 (/a/b)", or without the path when it cannot be found. */
const char *fsck_where_ino(struct fsck *fsck, uint64_t ino, char where[FSCK_WHERE_BYTES]);

MUST_CHECK int fsck_names(struct fsck *fsck);
MUST_CHECK int fsck_inline(struct fsck *fsck);
/* What is lost with targets that are (fsck_lost.h). */
MUST_CHECK int fsck_lost(struct fsck *fsck);
MUST_CHECK int fsck_chunks(struct fsck *fsck, uint32_t ost);
MUST_CHECK int fsck_promised(struct fsck *fsck, uint32_t ost, uint64_t promised);
/* Chunks that seemed stray: those that still are. */
MUST_CHECK int fsck_strays(struct fsck *fsck);
/* *ret_reason: what is wrong with it as it is now, and will be: nobody can make it an inode's any
 * more; NULL when it belongs to its inode, is on its way there or about to be deleted, or gone. */
MUST_CHECK int fsck_stray_look(struct fsck *fsck, const struct fsck_stray *stray,
                               const char **ret_reason);
MUST_CHECK int fsck_blocks(struct fsck *fsck, uint32_t ost);
MUST_CHECK int fsck_data(struct fsck *fsck, uint32_t ost);

/* Answers for an inode's row that is gone or makes no sense, which is told where it is read. */
static inline bool fsck_is_row_error(int r) {
    return r == -ERR_NOT_FOUND || r == -ERR_CORRUPT || r == -ERR_NEWER_FORMAT;
}

/* A whole row of blocks, whatever its length in the store. */
static inline struct store_segment fsck_segment(struct bytes value) {
    struct store_segment segment = {0};

    memcpy(&segment, value.data, MIN(value.size, sizeof segment));
    return segment;
}
static inline uint64_t chunk_of(const struct kv_key_fields *fields) {
    return fields->index >> STORE_INDEX_BITS;
}
static inline uint64_t chunk_row_of(const struct kv_key_fields *fields) {
    return fields->index % (1 << STORE_INDEX_BITS);
}
