/* Moves of small files from their inode to chunks, between BEGIN and COMMIT.
 *
 *     BEGIN --> M row {the order to delete what the client writes} --COMMIT--> none: the file's now
 *                 |
 *                 +-- refused COMMIT, one begun too many, the session's last close for writing,
 *                     its eviction --> the same order as a Q row
 *
 * The row is in the ring before the client hears the generation, and only who has one may commit.
 * So whatever is left of a move when its client dies is deleted like the chunks of a removed file,
 * also when the file goes meanwhile; and when power loss takes the row, the generation is one of
 * those that the next start notes as lost (start.c).
 *
 * Thread: the group's. Memory: a count in the open_entry. */
#pragma once
#include "meta/transaction.h"

struct open_entry;

/* Of one file by one session: more than one are copies of a request, or were given up. */
enum { MOVES_MAX = 4 };

/* Stages the row of a move of the call's session, which has the file open for writing. */
MUST_CHECK int move_begin(struct transaction *transaction, struct ino ino,
                          const struct inode_row *row, uint32_t generation);
/* 0: the call's session has begun it and it is not over; -ERR_NOT_FOUND, errors of reading. */
MUST_CHECK int move_check(struct transaction *transaction, struct ino ino, uint32_t generation);
/* 0: some session has, whichever; -ERR_NOT_FOUND, errors of reading. */
MUST_CHECK int move_find(struct transaction *transaction, struct ino ino, uint32_t generation);
/* Its chunks are the file's. */
MUST_CHECK int move_commit(struct transaction *transaction, struct ino ino, uint32_t generation);
/* They never will be. */
MUST_CHECK int move_lose(struct transaction *transaction, struct ino ino, uint32_t generation);
/* The same for all of the session's moves of the file; whoever applies the close forgets them. */
MUST_CHECK int moves_lose(struct transaction *transaction, const struct open_entry *entry);
