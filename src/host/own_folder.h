/* A folder that is the caller's alone: he owns it and what lies in it, and nobody else may write
 * there, so no name below it leads anywhere else by another's doing. Paths are relative to it and
 * follow no symbolic link at their end. One system call each, blocking, for `shoal bench` to time.
 * Errors: -ERR_. Threads: any. */
#pragma once
#include "base/err.h"
#include "base/types.h"

struct own_folder {
    int parent; /* descriptors */
    int folder;
    char name[256]; /* in the parent */
};

/* Makes it in the directory, or takes what is there, which has to be a folder that is the caller's
 * and that nobody else may write to: -ERR_NOT_PERMITTED. */
MUST_CHECK int own_folder_open(const char *directory, const char *name,
                               struct own_folder *ret_folder);
/* Removes it if it is empty. */
void own_folder_close(struct own_folder *folder);
/* Likewise, one below. */
MUST_CHECK int own_folder_make(const struct own_folder *folder, const char *path);

/* flags: enum plain_file_open. */
MUST_CHECK int own_folder_file_open(const struct own_folder *folder, const char *path,
                                    unsigned flags, int *ret_fd);
MUST_CHECK int own_folder_stat(const struct own_folder *folder, const char *path);
MUST_CHECK int own_folder_mkdir(const struct own_folder *folder, const char *path);
MUST_CHECK int own_folder_rmdir(const struct own_folder *folder, const char *path);
MUST_CHECK int own_folder_unlink(const struct own_folder *folder, const char *path);
MUST_CHECK int own_folder_rename(const struct own_folder *folder, const char *from, const char *to);
/* Entries but "." and "..", each with its attributes, as `ls -l` asks for them. The kernel is asked
 * for as much as there is room in piece at a time; it is aligned to 8. */
MUST_CHECK int own_folder_list(const struct own_folder *folder, const char *path,
                               struct buffer piece, uint64_t *ret_count);
