/* Where data, a hole, or anything of a chunked file begins: asked of the target of the chunk at
 * hand first, which mostly knows, then of all others of the file. */
#pragma once
#include "client/file.h"

/* Sets out from a place of the operation's file; what: enum chunk_seek. */
void seek_start(struct operation *operation, uint32_t what, uint64_t from);
/* True when all has been answered: operation->result tells. Until then the step runs again. */
MUST_CHECK bool seek_advance(struct operation *operation);
/* Then: the place, UINT64_MAX: there is none. */
uint64_t seek_place(const struct operation *operation);
