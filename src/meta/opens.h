/* Which session has which inode open, in memory only: clients present their opens again after a
 * restart. What must outlive the sessions' clients are the W rows: opens for writing, whose size
 * may have to be asked of the OSTs.
 *
 * The limit is for new opens. Those that were there before a restart are taken in also when they
 * are more than the limit allows by now; until enough of them have gone the table counts as full.
 *
 * What only reads is open by name: the session's sequence of its newest such open, of which the
 * client counts how many it stands for. No record tells of it. A close names the newest that it is
 * about; an older one changes nothing, and an entry stays, shut, as long as a copy of an open that
 * is older than its close may still come: until the session's floor has passed the name.
 *
 *     none -- open n --> named n -- open m, m > n --> named m -- close m or above --> shut
 *     shut m -- open above m --> named;  shut m -- floor above m --> none
 *
 * An entry counts as the user's who opened the inode first (user_shares.h); whoever opens it too,
 * by the same session, has it for nothing. Whose those are that a start finds, their session tells.
 *
 * Thread: the group's.  Memory: opens_max entries, taken by opens_init, and more when what was open
 * before a restart does not fit. */
#pragma once
#include "base/list.h"
#include "base/types.h"
#include "base/user_shares.h"

struct session;

/* There is one as long as a count is above 0, it is named or shut, or there is a W row. */
struct open_entry {
    struct open_entry *next; /* of the bucket, or of the free ones */
    struct list_node by_session;
    struct list_node shut; /* in the session's, until its floor has passed the name */
    struct list_node left; /* in opens.left (leftovers.h) */
    struct session *session;
    struct ino ino;
    uint32_t uid;  /* whose it counts as; root's, whose are not counted, until that is known */
    uint64_t name; /* the newest that was heard of; 0: none */
    bool named;    /* open by it */
    uint32_t
        read_count; /* opens that may not write, but those by name: they made the file or cut it */
    uint32_t write_count;
    uint32_t move_count; /* M rows (move.h): none without the W row */
    bool has_row;
    bool presented; /* for writing, since a start: what was told before may be lost */
    bool end_asked; /* as one of opens.left */
};

struct open_block;

struct opens {
    struct open_block *blocks;
    struct open_entry **buckets;
    struct open_entry *free;
    struct list left; /* entries whose W row has no open behind it, as far as is known */
    uint32_t bucket_mask;
    uint32_t count;
    uint32_t count_max;
    uint32_t entry_count; /* of all blocks, count_max at least */
    struct user_shares shares;
};

/* Twice the most that open_files_max can be. */
enum { OPENS_MOST = 2 * 1024 * 1024 };

MUST_CHECK int opens_init(struct opens *opens, uint32_t opens_max);
void opens_deinit(struct opens *opens);

static inline bool open_entry_is_open(const struct open_entry *entry) {
    return entry->named || entry->read_count > 0 || entry->write_count > 0 || entry->has_row;
}

static inline bool open_entry_reads(const struct open_entry *entry) {
    return entry->named || entry->read_count > 0;
}

/* NULL when there is none; it may be shut. */
struct open_entry *opens_find(const struct opens *opens, struct ino ino,
                              const struct session *session);
bool opens_any(const struct opens *opens, struct ino ino);
/* Somebody else than the holder of this entry has it open. */
bool opens_any_other(const struct opens *opens, struct ino ino, const struct open_entry *except);
/* Another session than except (NULL: any) may write to it. */
bool opens_any_writer(const struct opens *opens, struct ino ino, const struct session *except);
/* A session that is EVICTING may have written to it. */
bool opens_any_evicted_writer(const struct opens *opens, struct ino ino);
/* The session may open it for this user: it has it open, or there is room, and he has not had his
 * share. */
bool opens_may(struct opens *opens, struct ino ino, const struct session *session, uint32_t uid);
/* Sees to an entry for an open that was there before a restart. -ERR_NO_MEMORY,
 * -ERR_TOO_MANY_OPEN beyond OPENS_MOST. */
MUST_CHECK int opens_reserve(struct opens *opens);
/* The entry, made when missing, for this user; the table is not full, or one is reserved. */
struct open_entry *opens_get(struct opens *opens, struct ino ino, struct session *session,
                             uint32_t uid);
/* Whose it is, where that was not known. */
void opens_own(struct opens *opens, struct open_entry *entry, uint32_t uid);
/* Drops the entry if nothing is left in it. */
void opens_trim(struct opens *opens, struct open_entry *entry);
/* The session's floor has risen: drops what it has passed. */
void opens_pass(struct opens *opens, struct session *session);
