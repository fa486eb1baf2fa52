/* Which files that are only read are served past the kernel's pages, and which version of each file
 * the pages are of that it keeps: so what is read once costs as little as it may, and who opens a
 * file again that nobody has changed reads what is there already.
 *
 *     first open of a version, by who reads files whole --> past them; its first READ: seen
 *     a later one of what was seen, while there is room --> by pages
 *     by who reads piece by piece, and small files ------> by pages
 *     of what is kept -----------------------------------> by the pages that are there
 *
 * An open by pages drops those of its file unless its answer says that they are kept. What is read
 * after that is no older than what the open was told. So an open that is told the same as one
 * before, behind which pages were dropped, may keep them: nobody has closed or synced another
 * change since. Pages are known to be dropped when the first READ of the handle comes, as the
 * kernel sends that behind the open; an answer alone may still be on its way while another one is
 * faster.
 *
 *     slot by inode number: mark of (number, version, size, times) | size in pages | kept, 0: none
 *
 * The version tells the lives of its server apart, so that none comes again that power took; size
 * and times are in the mark as they cost nothing. Inodes that share a slot only have more dropped.
 * What a mount changes itself the kernel drops.
 *
 * Room is for pages of files that could be read past them: half of the memory at most. A READ of
 * what is kept says that the kernel has let its pages go, and takes their size from the room; an
 * end without one gives a sixteenth of that back, or half, while the room is less than half of what
 * was too much.
 * So of more data than memory a part stays there, and the rest does not push it out. FORGET says
 * that an inode's pages are gone.
 * Thread: any.  Memory: one table, taken at init, of which only what is used is resident. */
#pragma once
#include "base/err.h"
#include "base/types.h"
#include <shoal/shoal.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { KEPT_READERS = 64 };

struct kept_table {
    _Atomic uint64_t *slots;
    _Atomic int64_t pages;  /* that are kept */
    _Atomic int64_t room;   /* for these */
    _Atomic int64_t enough; /* to grow fast up to */
    _Atomic uint32_t calm;  /* hits since a miss */
    int64_t room_max;
    /* Files that were read whole on end, by a hash of the thread's number. */
    _Atomic uint8_t whole[KEPT_READERS];
};

enum kept_way { KEPT_APART, KEPT_PAST, KEPT_DROPPED, KEPT_THERE };

/* Of a handle. */
struct kept_use {
    _Atomic uint64_t mark; /* until its first READ; 0: that came, or nothing is noted of it */
    uint32_t whole_bytes;  /* a first READ of so many takes the file whole; 0: it is small */
    uint8_t reader;
    uint8_t way;
};

/* memory_bytes: of the machine. -ERR_NO_MEMORY. */
MUST_CHECK int kept_table_init(struct kept_table *table, uint64_t memory_bytes);
void kept_table_deinit(struct kept_table *table);

/* How an open is served that was told these, by the thread of that number; KEPT_PAST only where it
 * may be. */
enum kept_way kept_use_begin(struct kept_table *table, struct kept_use *use,
                             const struct shoal_attributes *attributes, uint32_t thread,
                             bool may_pass);
/* Of an open that nothing is noted of. */
void kept_use_none(struct kept_use *use);
/* Each READ of the handle. */
void kept_use_read(struct kept_table *table, struct kept_use *use, uint64_t ino, uint64_t offset,
                   uint32_t bytes);
/* The handle is closed. */
void kept_use_end(struct kept_table *table, struct kept_use *use);
/* The kernel has forgotten the inode. */
void kept_forget(struct kept_table *table, uint64_t ino);
