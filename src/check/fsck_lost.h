/* For the files of fsck: targets that are lost for good, of which nothing is asked. */
#pragma once
#include "check/fsck_internal.h"

bool fsck_ost_is_lost(const struct fsck *fsck, uint32_t ost);
/* By the index of its group. */
bool fsck_mdt_is_lost(const struct fsck *fsck, uint32_t index);
/* Whether the target is that kept the inode; whether any is: what it named, nobody knows. */
bool fsck_ino_is_lost(const struct fsck *fsck, uint64_t ino);
bool fsck_any_mdt_is_lost(const struct fsck *fsck);
