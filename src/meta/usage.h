/* What a file in chunks takes on storage targets: a count of blocks of 4 KiB in its inode's row.
 *
 * Writers tell with each settle what the chunks have gained (chunk_write's answers say it), so the
 * count is the sum of all that was told, whoever wrote. It is *sure* (INODE_COUNTED) as long as
 * nothing can be missing in it:
 *
 *     chunks are new, or cut to size 0 --> sure -- a cut elsewhere; a writer that can't tell all,
 *                                           ^      was presented after a start, is evicted, or
 *                                           |      whose close was lost --> unsure
 *                                           '-- nobody writes any more: OSTs are asked once --'
 *
 * They are asked when the last writer closes, or a cut is done that nobody writes behind; never by
 * who looks at the file. While it is unsure the count is the best that is known, and what is told
 * of it is at most what the size allows; 0 stands for "as if it had no holes", so that a program
 * that skips holes by it skips nothing.
 *
 * Thread: the group's. */
#pragma once
#include "meta/transaction.h"

struct session;
struct settle_request;

/* The count is sure from now on. */
void usage_set(struct inode_row *row, uint64_t blocks);
/* It is not; it stays as the best that is known. */
void usage_unsure(struct inode_row *row);
/* For a truncation to that size by sequence, before the row's own size changes; somebody may write
 * meanwhile. */
void usage_cut(struct inode_row *row, uint64_t size, bool is_written);
/* Takes what a settle tells of the file, of which only writers know something. */
void usage_settle(struct inode_row *row, const struct settle_request *request);
/* Bytes, as attributes tell them: of a small file those of its rows, in units of 512. */
uint64_t usage_bytes(const struct inode_row *row);
/* Stages what differs from the row that is there. */
MUST_CHECK int usage_patch(struct transaction *transaction, struct ino ino,
                           const struct inode_row *row, const struct inode_row *changed);
/* Whether the OSTs are to be asked: it is unsure, and nobody but that session (NULL: nobody) has it
 * open for writing, nor has an order to cut it still to be done, whose end asks. */
bool usage_is_due(const struct transaction *transaction, struct ino ino,
                  const struct inode_row *row, const struct session *except);
