/* Cutting and growing a file, within a transaction. */
#pragma once
#include "meta/inode.h"

/* Gives the copy of the file's row that size, with times, and stages what follows from it besides
 * the row itself: inline pieces, the order to cut chunks. -ERR_PENDING also while an earlier,
 * deeper cut has not reached all OSTs. -ERR_FILE_TOO_BIG. */
MUST_CHECK int truncate_stage(struct transaction *transaction, struct ino ino, uint64_t size,
                              struct inode_row *row);
/* For a file that is about to be opened for writing: cuts what power loss, or a write that failed,
 * may have left behind its end, and puts the row, unless that is known to be nothing. Where others
 * have it open for writing, or may have, what power loss left becomes part of the file instead, and
 * the rest waits. -ERR_PENDING as above, and while the OSTs are
 * asked. */
MUST_CHECK int truncate_unsure_end(struct transaction *transaction, struct ino ino,
                                   struct inode_row *row);

/* Set-id bits go when somebody but root truncates or writes. */
static inline void truncate_drop_set_ids(const struct credentials *who, struct inode_row *row) {
    if (who->uid != 0) {
        row->mode = permission_drop_set_ids(row->mode);
    }
}
