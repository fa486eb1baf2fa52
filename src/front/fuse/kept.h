/* Which version of each file the pages are of that the kernel keeps, so that who opens a file that
 * nobody has changed reads what is there already.
 *
 * An open drops the file's pages unless its answer says that they are kept. What is read after that
 * is no older than what the open was told. So an open that is told the same as one before, behind
 * which pages were dropped, may keep them: nobody has closed or synced another change since. Pages
 * are known to be dropped when the first read of the handle comes, as the kernel sends that behind
 * the open; an answer alone may still be on its way while another one is faster.
 *
 *     open: told a version --> the same as noted --> kept
 *                          '-> another one --> dropped; the first read by its handle notes it
 *
 *     slot by inode number: mark of (number, version, size, times), 0: none
 *
 * The version alone would do, but that one which power took from its server may come again where
 * the clock was set back. Inodes that share a slot only have more dropped. What a mount changes
 * itself the kernel drops.
 * Thread: any.  Memory: one table, taken at init, of which only what is used is resident. */
#pragma once
#include "base/err.h"
#include "base/types.h"
#include <shoal/shoal.h>
#include <stdatomic.h>
#include <stdbool.h>

struct kept_table {
    _Atomic uint64_t *slots;
};

/* -ERR_NO_MEMORY. */
MUST_CHECK int kept_table_init(struct kept_table *table);
void kept_table_deinit(struct kept_table *table);

/* Of what an open was told; 0: there is no version to go by. */
uint64_t kept_mark(const struct shoal_attributes *attributes);
/* Whether the pages are of that. */
bool kept_is(const struct kept_table *table, uint64_t ino, uint64_t mark);
/* Those of before are dropped. */
void kept_note(const struct kept_table *table, uint64_t ino, uint64_t mark);
