/* What open, create and reopen share. */
#pragma once
#include "meta/inode.h"

/* Whether who may open the inode with these OPEN_ flags: types first, then permission. */
MUST_CHECK int open_check(const struct inode_row *row, const struct credentials *who,
                          uint32_t open_flags);
/* Stages the open of the call's session: the W row and the effect. -ERR_TOO_MANY_OPEN. */
MUST_CHECK int open_stage(struct transaction *transaction, struct ino ino, uint32_t open_flags);
/* The W row of the session, unless it is there. */
MUST_CHECK int open_writer_stage(struct transaction *transaction, struct ino ino);
