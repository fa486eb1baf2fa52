/* For the files of fsck: targets that are away. Who has not answered once is not asked again in
 * this check; what can't be judged without it is no problem, and counted. */
#pragma once
#include "check/fsck_internal.h"

/* Asks the target with fsck->call. -ERR_AWAY, of a target that is away, and at once where that is
 * known; -ERR_CLOSED when told to stop. */
MUST_CHECK int fsck_ask(struct fsck *fsck, struct target_id target);
/* 0, or -ERR_AWAY where it is known to be. */
MUST_CHECK int fsck_is_there(struct fsck *fsck, struct target_id target);
/* -ERR_AWAY where names of the inode may be on a metadata target that is: those of a directory,
 * whose parent is given, or of a file, which may have some anywhere; else 0. */
MUST_CHECK int fsck_names_are_there(struct fsck *fsck, bool is_directory, uint64_t parent);
/* The result of judging one place. -ERR_AWAY: the place is counted, and the check goes on: 0. (Of
 * the scrub nothing is away.) */
MUST_CHECK int fsck_pass_by(struct fsck *fsck, int r);
/* Brings what only rings have to where the checks look, at all targets, and finds those that are
 * away. */
MUST_CHECK int fsck_sync(struct fsck *fsck);
