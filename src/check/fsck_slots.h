/* For the files of fsck: whose slots are, by the rows of those who have them. A check goes by the
 * map of its beginning. Slots may have been handed over since (docs/internals/handover.md), and who
 * had them before knows nothing of what is made there. So what a target does not know is missing
 * only where the slot is its own, asked after it has said that. */
#pragma once
#include "check/fsck_internal.h"

struct fsck_slot {
    bool is_its;    /* of the target that the map names for it */
    bool is_opened; /* and that has drawn numbers there, or may have */
};

/* By its rows. Neither, where it can't tell, being of a version before such rows were listed. */
MUST_CHECK int fsck_slot_get(struct fsck *fsck, uint64_t ino, struct fsck_slot *ret_slot);
/* Whether a target that the map does not have was given slots: its rows are in no list. */
MUST_CHECK int fsck_has_unknown_group(struct fsck *fsck, bool *ret_has);
