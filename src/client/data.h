/* Data: a range of a file as one call a chunk, all under way at once.
 *
 * The operation's own call serves a range that lies in one chunk and is small; others take pieces.
 * A range that met a stale capability is done anew as a whole: nobody has been told of it yet. */
#pragma once
#include "client/file.h"

/* Sets out for [start, end) with the file's capability. Where operation->what is not 0, that is
 * done with the range (chunk_space). */
void data_start(struct operation *operation, uint64_t start, uint64_t end);
/* That end of what was written, if it counts for the size; 0: the file's chunks are others by now,
 * as a new start has lost these. */
uint64_t data_end(const struct operation *operation, uint64_t end);
/* Sends what is still to be sent, as far as pieces go. True when all has been answered, or nothing
 * is under way after an error: operation->result tells. Until then the step runs again. */
MUST_CHECK bool data_advance(struct operation *operation);
