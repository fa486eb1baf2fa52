/* Transactions across logs that are not done everywhere, as fsck sees them: what rows say of whom
 * they are about is about to change, or has changed at some of the targets only. */
#pragma once
#include "check/fsck_internal.h"

/* Shows each inode that one is about; 0 where a half is about fewer. */
MUST_CHECK int fsck_crossings(struct fsck *fsck, void (*see)(void *context, uint64_t ino),
                              void *context);
/* Whether one is about the inode. */
MUST_CHECK int fsck_is_crossing(struct fsck *fsck, uint64_t ino, bool *ret_crossing);
