/* The directory of a cluster on this machine: is it ours, is it free, is there room. */
#pragma once
#include "host/folder.h"
#include "node/config.h"

/* What its daemon makes there. */
#define LOCAL_CONTROL_NAME "control.sock"
#define LOCAL_LOG_NAME "shoal.log"

struct local_cluster_options;

/* Looks and changes nothing: empty, or ours; else -ERR_NOT_OURS with a line in problem. */
MUST_CHECK int local_directory_check(const struct local_cluster_options *options,
                                     char problem[512]);
/* What somebody should know of a directory that was not refused, one line after the other; nothing
 * for most. Before the start, which makes a new directory one that is known. */
void local_directory_notes(const struct local_cluster_options *options, char *text, size_t size);
/* Locks it, formats it when it is empty (its shoal.conf is the first file beside the lock), reads
 * it. On failure *ret_lock may be held, for the caller to close. */
MUST_CHECK int local_directory_take(struct env *env, const struct local_cluster_options *options,
                                    struct folder_lock **ret_lock, struct config *ret_config,
                                    char problem[512]);
/* What shoal.conf of this directory says, as it stands there; a line in problem where it can't be
 * read. */
MUST_CHECK int local_directory_config(const char *directory, struct config *ret_config,
                                      char problem[512]);
