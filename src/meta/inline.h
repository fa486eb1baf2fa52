/* Bytes that live in L rows: the data of small files and the targets of symbolic links. */
#pragma once
#include "meta/inode.h"

/* Writes data at offset; the end is at most INLINE_BYTES_MAX. What lies between the end of a piece
 * and the data reads as zeros. */
MUST_CHECK int inline_put(struct transaction *transaction, struct ino ino, uint64_t offset,
                          struct bytes data);
/* Appends the first size bytes to out; -ERR_TOO_SMALL. */
MUST_CHECK int inline_get(struct transaction *transaction, struct ino ino, uint64_t size,
                          struct buffer *out);
/* Deletes all pieces that a file with inline data of that row can have. */
MUST_CHECK int inline_drop(struct transaction *transaction, struct ino ino,
                           const struct inode_row *row);
