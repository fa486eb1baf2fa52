/* Files whose storage targets were asked how long they are: a set of inode numbers, emptied as a
 * whole.
 *
 * It grows with what is put in. One more than ASKED_FILES_MAX, or no memory for more, empties it:
 * what is forgotten is asked for again.
 *
 * Thread: the group's.  Memory: two words a file, at least; of the largest 16 MiB. */
#pragma once
#include "base/err.h"
#include "base/types.h"

enum { ASKED_FILES_LEAST = 2048, ASKED_FILES_MAX = 1024 * 1024 };

/* A hash table with open addressing, at most half full, so that each search ends. */
struct asked_files {
    uint64_t *places; /* 0: free */
    uint32_t place_count;
    uint32_t count;
};

MUST_CHECK int asked_files_init(struct asked_files *files);
void asked_files_deinit(struct asked_files *files);
void asked_files_add(struct asked_files *files, struct ino ino);
bool asked_files_have(const struct asked_files *files, struct ino ino);
void asked_files_empty(struct asked_files *files);
