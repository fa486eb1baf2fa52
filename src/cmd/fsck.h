/* Checking a cluster that runs: every row of every target against the others, and stored blocks
 * against their checksums. Finds; changes nothing.
 *
 *     names    inodes, partitions, orphans, then entries, counted in a table; so many inodes at a
 *              time as fit it
 *     chunks   index rows of each OST in order, each file's against its inode
 *     blocks   bitmap, index, bitmap again: bits for a range of blocks at a time
 *     data     each block read from its disk
 *
 * The cluster is in use meanwhile, so nothing that seems wrong is a problem yet: it is looked at
 * again, until either it is right, or wrong in a way that no change can explain. What changes all
 * the while is counted as unsettled.
 *
 * Thread: one that has entered the cluster; it waits. Memory: FSCK_TABLE_BYTES for names and
 * FSCK_BITS_BYTES for blocks, however big the cluster is, and lists of FSCK_SUSPECTS_MAX. */
#pragma once
#include "cmd/local_cluster.h"
#include "kv/kv_key.h"
#include "meta/rows.h"
#include "store/chunk.h"

enum {
    FSCK_TABLE_BYTES = 64 << 20,
    FSCK_BITS_BYTES = 64 << 20,
    FSCK_SUSPECTS_MAX = 65536,
    FSCK_LIST_BYTES = 256 << 10, /* holds all index rows of any chunk */
    FSCK_POINT_BYTES = 2048,
    FSCK_LOOKS_MAX = 8, /* at what changes all the while */
    FSCK_WHERE_BYTES = 1200,
};

struct fsck_report {
    /* kind is one word, where names the place, meaning says what is wrong with it. */
    void (*problem)(void *context, const char *kind, const char *where, const char *meaning);
    void (*progress)(void *context, const char *line);
    bool (*stopped)(void *context); /* the daemon shall end */
    void *context;
};

struct fsck_counts {
    uint64_t files; /* all that is no directory */
    uint64_t directories;
    uint64_t chunks;
    uint64_t blocks;
    uint64_t problems;
    uint64_t unsettled; /* changed at each look */
    uint64_t beyond;    /* files (for each OST) with data behind their ends */
};

/* A chunk that seems to belong to nobody. */
struct fsck_stray {
    uint32_t ost;
    struct chunk_id id;
};

struct fsck {
    struct local_cluster *cluster;
    const struct cluster_map *map;
    const struct fsck_report *report;
    struct fsck_counts counts;
    char stage[64];      /* what is being checked */
    uint64_t stage_rows; /* looked at */
    uint64_t told_at_ns;
    struct call call;
    uint8_t *list_memory;
    uint8_t point_memory[FSCK_POINT_BYTES];
    struct fsck_stray *strays;
    uint32_t stray_count;
};

/* with_data: reads every stored block. 0 when all has been looked at, whatever was found;
 * -ERR_CLOSED when told to stop; errors of the targets. ret_counts is filled as far as it went. */
MUST_CHECK int fsck_run_all(struct local_cluster *cluster, const struct fsck_report *report,
                            bool with_data, struct fsck_counts *ret_counts);

/* The rest is shared by the files of fsck, and scrub. */

/* NULL: no memory. free takes NULL. */
struct fsck *fsck_new(struct local_cluster *cluster, const struct fsck_report *report);
void fsck_free(struct fsck *fsck);

struct fsck_row {
    struct kv_key key;
    struct bytes value; /* until the next answer */
};

/* Rows of one kind of one target, in order of their keys. One list at a time. */
struct fsck_list {
    struct fsck *fsck;
    struct target_id target;
    uint32_t what; /* FSCK_ of wire_types.h */
    struct kv_key cursor;
    bool has_cursor;
    bool end;
    struct bytes rest;
};

static inline struct target_id fsck_mdt(void) {
    return (struct target_id){LOCAL_MDT_ID};
}
static inline struct target_id fsck_ost(uint32_t index) {
    return (struct target_id){LOCAL_OST_ID_FIRST + index};
}

void fsck_list_begin(struct fsck_list *list, struct fsck *fsck, struct target_id target,
                     uint32_t what);
/* Rows from the key on. */
void fsck_list_from(struct fsck_list *list, const struct kv_key *key);
/* -ERR_NOT_FOUND behind the last one. */
MUST_CHECK int fsck_list_next(struct fsck_list *list, struct fsck_row *ret_row);
/* One row as it is now, beside any list; -ERR_NOT_FOUND. */
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
MUST_CHECK int fsck_chunks(struct fsck *fsck, uint32_t ost);
/* Chunks that seemed stray: those that still are. */
MUST_CHECK int fsck_strays(struct fsck *fsck);
/* *ret_reason: what is wrong with it as it is now, and will be: nobody can make it an inode's any
 * more; NULL when it belongs to its inode, is on its way there or about to be deleted, or gone. */
MUST_CHECK int fsck_stray_look(struct fsck *fsck, const struct fsck_stray *stray,
                               const char **ret_reason);
MUST_CHECK int fsck_blocks(struct fsck *fsck, uint32_t ost);
MUST_CHECK int fsck_data(struct fsck *fsck, uint32_t ost);

static inline uint64_t chunk_of(const struct kv_key_fields *fields) {
    return fields->index >> STORE_INDEX_BITS;
}
static inline uint64_t chunk_row_of(const struct kv_key_fields *fields) {
    return fields->index % (1 << STORE_INDEX_BITS);
}
