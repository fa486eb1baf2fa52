/* A stand-in for libshoal: shoal_submit and shoal_run over a file system in memory. For tests of
 * front-ends, and as the limit that benchmarks compare with.
 *
 * It keeps names, attributes and data, checks permission where a server would, and answers errors
 * as <shoal/shoal.h> has them. What it doesn't: layouts (EOPNOTSUPP), limits, crashes. */
#pragma once
#include "env/env.h"
#include <shoal/shoal.h>

enum memory_shoal_mode {
    MEMORY_SHOAL_INLINE, /* done runs inside shoal_submit */
    MEMORY_SHOAL_JOB,    /* done runs later on the submitting thread, through an env_job */
    MEMORY_SHOAL_THREAD, /* done runs later on a thread of the stand-in */
};

struct memory_shoal_options {
    enum memory_shoal_mode mode;
    struct env *env;    /* for MEMORY_SHOAL_JOB */
    uint32_t root_mode; /* permission of the root directory; 0 for 0755 */
};

/* Ends the program when memory is missing, here and later. */
struct shoal_client *memory_shoal_new(const struct memory_shoal_options *options);
/* Every request must be done. */
void memory_shoal_free(struct shoal_client *client);

/* How often an operation was asked for. */
uint64_t memory_shoal_count(struct shoal_client *client, enum shoal_operation operation);
/* Files that were opened and not released. */
uint64_t memory_shoal_open_count(struct shoal_client *client);
/* Inodes there are, the root among them. */
uint64_t memory_shoal_inode_count(struct shoal_client *client);
/* The next `count` requests of the operation answer `error`, a negative errno, and do nothing. */
void memory_shoal_fail(struct shoal_client *client, enum shoal_operation operation, int error,
                       unsigned count);
/* From now on each request waits for a server that is away: this is called, then it is asked
 * whether it was interrupted. NULL: no more. */
void memory_shoal_wait(struct shoal_client *client, void (*waits)(void *context), void *context);
/* From now on this is called when a request is done, before that is told. NULL: no more. */
void memory_shoal_behind(struct shoal_client *client, void (*acts)(void *context), void *context);
/* Of the last WRITE: how far its data lay behind a page boundary. */
size_t memory_shoal_write_misalignment(struct shoal_client *client);
/* Of the last READDIR: how much was asked for; 0: as much as there is. */
size_t memory_shoal_listing_bytes(struct shoal_client *client);
