/* What the kernel was told last of the attributes of inodes, as far as this remembers.
 *
 * The kernel keeps attributes for a second, also across an open, and reads no further than the size
 * that it keeps. Whoever opens a file must see what another mount has written and closed: an open
 * that meets other attributes than were told makes the kernel forget them.
 *
 *     slot by inode number: hash of (number, size, mtime, ctime) told last, 0: none, 1: not known
 *                           hash of (number, size)
 *
 * Of two answers that are on their way together the kernel may drop the later one: it takes none of
 * a request that was sent before it took another. So where others were told since a request was
 * sent, or a moment before, or are told at once, what it tells is not known to be kept.
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

/* From where the kernel sends a request to where it is read, and from where an answer is noted to
 * where the kernel takes it: longer where threads wait for a CPU. */
enum { TOLD_OVERLAP_NS = 1000000 };

struct told_slot {
    _Atomic uint64_t attributes;
    _Atomic uint64_t size;
    _Atomic uint64_t noted_ns; /* when something was told last */
};

struct told_table {
    struct told_slot *slots;
};

/* -ERR_NO_MEMORY. */
MUST_CHECK int told_table_init(struct told_table *table);
void told_table_deinit(struct told_table *table);

/* These are being told now, to a request that has come at asked_ns. */
void told_note(const struct told_table *table, const struct shoal_attributes *attributes,
               uint64_t asked_ns, uint64_t now_ns);
/* Whether the kernel may have others; they count as told from now on. */
bool told_differs(const struct told_table *table, const struct shoal_attributes *attributes);
/* A read found the file's end there. */
void told_end(const struct told_table *table, uint64_t ino, uint64_t end);
