/* Which cluster a verb means: one named by its directory, one by a path in its mount, else the only
 * one that runs on this machine. */
#pragma once
#include "cmd/verb.h"

enum { FIND_PATH_BYTES = 4096 };

/* what may be NULL. Fills the directory, or prints one line that says what is wrong and answers an
 * exit status other than 0. */
int find_cluster(const struct verb *verb, const char *what, char ret_directory[FIND_PATH_BYTES]);
/* The absolute path, for the caller to free; likewise. A mount that doesn't answer is not asked. */
int find_path(const struct verb *verb, const char *what, char **ret_path);
/* Sends the request to the daemon of the directory; its text goes to standard output, or to
 * standard error (behind "shoal VERB: ") when it failed. Answers the exit status. */
int find_and_call(const struct verb *verb, const char *what, size_t argument_count,
                  const char *const *arguments);
/* The same for a directory that is known already. */
int call_daemon(const struct verb *verb, const char *directory, size_t argument_count,
                const char *const *arguments);
/* Whether its daemon runs, and no mount is there; nothing is printed. */
bool find_is_unmounted(const char *directory);
/* Whether its daemon serves the mount at this path itself; nothing is printed. */
bool find_is_mounted_at(const char *directory, const char *path);
/* Says why a daemon could not be asked; answers the exit status. */
int call_failed(const struct verb *verb, const char *directory, int error);
