/* For the files of fsck: whether inodes count the blocks that storage targets have of their files.
 *
 * The walks over the indexes add up what heads count, in a table by inode; then each inode's row
 * that says that it is sure is compared. What differs, and what the table has no room for, is asked
 * of its targets and looked at until it stands still. */
#pragma once
#include "check/fsck_internal.h"

struct fsck_usage;

enum { FSCK_USAGE_BYTES = 64 << 20 };

/* NULL: no memory. free takes NULL. */
struct fsck_usage *fsck_usage_new(size_t bytes);
void fsck_usage_free(struct fsck_usage *usage);
/* A chunk of the inode has so many blocks. */
void fsck_usage_add(struct fsck_usage *usage, uint64_t ino, uint32_t blocks);
/* When all indexes have been walked. */
MUST_CHECK int fsck_usages(struct fsck *fsck);
/* Whether a session has it open for writing. */
MUST_CHECK int fsck_is_written(struct fsck *fsck, uint64_t ino, bool *ret_written);
