/* Which session has which inode open, in memory only: clients present their opens again after a
 * restart. What must outlive the sessions' clients are the W rows: opens for writing, whose size
 * may have to be asked of the OSTs.
 *
 * The limit is for new opens. Those that were there before a restart are taken in also when they
 * are more than the limit allows by now; until enough of them have gone the table counts as full.
 *
 * Thread: the group's.  Memory: opens_max entries, taken by opens_init, and more when what was open
 * before a restart does not fit. */
#pragma once
#include "base/list.h"
#include "base/types.h"

struct session;

/* There is one as long as a count is above 0 or there is a W row. */
struct open_entry {
    struct open_entry *next; /* of the bucket, or of the free ones */
    struct list_node by_session;
    struct session *session;
    struct ino ino;
    uint32_t read_count; /* opens that may not write; those of directories too */
    uint32_t write_count;
    uint32_t move_count; /* M rows (move.h): none without the W row */
    bool has_row;
};

struct open_block;

struct opens {
    struct open_block *blocks;
    struct open_entry **buckets;
    struct open_entry *free;
    uint32_t bucket_mask;
    uint32_t count;
    uint32_t count_max;
    uint32_t entry_count; /* of all blocks, count_max at least */
};

/* Twice the most that open_files_max can be. */
enum { OPENS_MOST = 2 * 1024 * 1024 };

MUST_CHECK int opens_init(struct opens *opens, uint32_t opens_max);
void opens_deinit(struct opens *opens);

/* NULL when there is none. */
struct open_entry *opens_find(const struct opens *opens, struct ino ino,
                              const struct session *session);
bool opens_any(const struct opens *opens, struct ino ino);
/* Somebody else than the holder of this entry has it open. */
bool opens_any_other(const struct opens *opens, struct ino ino, const struct open_entry *except);
/* Another session than except (NULL: any) may write to it. */
bool opens_any_writer(const struct opens *opens, struct ino ino, const struct session *except);
/* No new open may come. */
bool opens_is_full(const struct opens *opens);
/* Sees to an entry for an open that was there before a restart. -ERR_NO_MEMORY,
 * -ERR_TOO_MANY_OPEN beyond OPENS_MOST. */
MUST_CHECK int opens_reserve(struct opens *opens);
/* The entry, made when missing; the table is not full, or one is reserved. */
struct open_entry *opens_get(struct opens *opens, struct ino ino, struct session *session);
/* Drops the entry if nothing is left in it. */
void opens_trim(struct opens *opens, struct open_entry *entry);
