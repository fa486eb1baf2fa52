/* Conversion: the bytes that lie with a file's inode move to chunk 0.
 *
 *     BEGIN --EMPTY-------------------------------------------------> chunked
 *       ^  \--INLINE, bytes--> WRITE chunk 0 -> SYNC when they may be promised -> COMMIT -->
 *       +------- CONFLICT: the file has changed or been promised meanwhile ---------+
 *
 * Until the COMMIT everybody else is given the inline bytes; then size and bytes are the same as
 * before, in chunks. An operation that is alone in its file calls convert_start; its step hands on
 * to convert_step as long as convert_owns, and finds itself at stage CONVERT_RETURNS_TO with the
 * result when the file is chunked or cannot be. */
#pragma once
#include "client/file.h"

enum { CONVERT_RETURNS_TO = 1, CONVERT_STAGES = 100 };

void convert_start(struct operation *operation);
void convert_step(struct operation *operation);

static inline bool convert_owns(const struct operation *operation) {
    return operation->stage >= CONVERT_STAGES;
}
