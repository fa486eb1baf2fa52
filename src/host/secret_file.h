/* Small files that are their owner's alone, by the path that the user typed. What is written is
 * there whole, and durable, or not at all; its mode is 0600. Everything here blocks.
 * Threads: any. */
#pragma once
#include "base/err.h"
#include "base/types.h"

/* All of it into buffer. -ERR_NOT_PERMITTED: group or others may read or change it; -ERR_NOT_FILE;
 * -ERR_FILE_TOO_BIG: it is larger than the buffer. */
MUST_CHECK int secret_file_read(const char *path, struct buffer *buffer);
/* -ERR_EXISTS: something is there, and stays as it is. */
MUST_CHECK int secret_file_make(const char *path, struct bytes content);
/* Replaces a file that is there, by one of the caller's. path: as plain_file_resolve gives it;
 * -ERR_NOT_FILE: a symbolic link. */
MUST_CHECK int secret_file_replace(const char *path, struct bytes content);
