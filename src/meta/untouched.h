/* Chunks that are drawn for a file when it is made, so that its first large write asks nobody.
 *
 *     create, draws --> CHUNKED, INODE_UNTOUCHED
 *                          |-- its maker says that it has written nothing to them, with a small
 *                          |   write, a new size or layout, or its last close --> EMPTY
 *                          '-- its size is told; its maker closes it; anybody opens it to write,
 *                              presents it, or writes to it as CHUNKED -----> CHUNKED, for good
 *
 * While the flag is there only its maker can have written to the chunks, as nobody else is given
 * their capability. Its maker has it by the create's answer, and gives it up with the message that
 * says so: who has lost that answer, or was refused, gets it by one that takes the flag away. So a
 * message that comes late, of which its sender knows no more, finds no flag, or no chunks. What was
 * presented again after a start is not believed: others may have been given the capability by what
 * the log has lost.
 *
 * Thread: the group's. */
#pragma once
#include "meta/transaction.h"

/* Draws them for a row that is made. */
MUST_CHECK int untouched_draw(struct transaction *transaction, struct inode_row *row);
/* If it may be believed that nobody has written to the chunks of that generation, as the session
 * says, the row has none any more: true. It is to be put. 0: nothing was said. */
bool untouched_give_back(const struct transaction *transaction, struct ino ino, uint32_t generation,
                         struct inode_row *row);
/* The chunks are the file's for good: true, and the row is to be put, where they were not yet. */
bool untouched_end(struct inode_row *row);
