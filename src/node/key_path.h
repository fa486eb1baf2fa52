/* Key files by their paths, with words for people where one can't be used. */
#pragma once
#include "keys/key_file.h"

/* Wiped by key_file_wipe. problem: one line that names the path and says what to do; nothing of
 * what the file holds. */
MUST_CHECK int key_path_read(const char *path, struct key_file *ret_file, char problem[512]);
/* The same, and it must be the members' key. */
MUST_CHECK int key_path_read_members(const char *path, struct key_file *ret_file,
                                     char problem[512]);
