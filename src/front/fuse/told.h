/* What the kernel was told last of the attributes of inodes, as far as this remembers.
 *
 * The kernel keeps attributes for a second, also across an open, and reads no further than the size
 * that it keeps. Whoever opens a file must see what another mount has written and closed: an open
 * that meets other attributes than were told makes the kernel forget them.
 *
 *     slot by inode number: hash of (number, size, mtime, ctime) told last, 0: none, 1: not known
 *                           hash of (number, size)
 *
 * A read through the kernel's cache that ends before the size that was told makes the kernel take
 * that end for the size (the handle may be older than what was told), so then it is not known.
 * Inodes that share a slot only make the kernel ask more often.
 * Thread: any.  Memory: one table, taken at init. */
#pragma once
#include "base/err.h"
#include "base/types.h"
#include <shoal/shoal.h>
#include <stdatomic.h>
#include <stdbool.h>

struct told_slot {
    _Atomic uint64_t attributes;
    _Atomic uint64_t size;
};

struct told_table {
    struct told_slot *slots;
};

/* -ERR_NO_MEMORY. */
MUST_CHECK int told_table_init(struct told_table *table);
void told_table_deinit(struct told_table *table);

/* These are being told. */
void told_note(const struct told_table *table, const struct shoal_attributes *attributes);
/* Whether the kernel may have others; they count as told from now on. */
bool told_differs(const struct told_table *table, const struct shoal_attributes *attributes);
/* A read found the file's end there. */
void told_end(const struct told_table *table, uint64_t ino, uint64_t end);
