/* What explains an error that a client got: a disk that is full, a bit that has flipped.
 *
 *     reads of a file that answered EIO     |-----|   |--|      each bit that flips lies in one
 *                                              |-----|          block of a file: so many points
 *                                               ^      ^        must there be, but not more
 *
 * So no knowledge of the engine is needed to say which error cannot be: the fewest blocks that all
 * such answers have in common may not be more than the bits that were flipped. A write fails only
 * at a block that it covers in part. A truncation through a damaged block ends like any other, and
 * the block stays the one damaged block that it was. Only data rots; bytes that are wrong explain
 * nothing.
 *
 * Thread: the world's.  Memory: the heap. */
#pragma once
#include "base/types.h"

struct excuses;
struct shoal_request;

struct excuses *excuses_new(void);
void excuses_free(struct excuses *excuses);
/* Disks may be full from now on. */
void excuses_no_space(struct excuses *excuses);
/* Whether they may. */
bool excuses_has_no_space(const struct excuses *excuses);
/* The metadata target's disk is full, or was a short time ago. */
void excuses_names_full(struct excuses *excuses, bool full);
void excuses_flipped(struct excuses *excuses, unsigned count);
/* Whether the request's failure is explained; ino: of the file it was about. */
bool excuses_explain(struct excuses *excuses, const struct shoal_request *request, uint64_t ino);
/* Likewise, that a close is not taken by the metadata target, and stays with the client. */
bool excuses_explain_late(const struct excuses *excuses);
uint64_t excuses_no_space_count(const struct excuses *excuses);
uint64_t excuses_names_full_count(const struct excuses *excuses);
uint64_t excuses_damaged_count(const struct excuses *excuses);
