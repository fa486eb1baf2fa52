/* What create, mknod, mkdir and symlink share. */
#pragma once
#include "meta/directory.h"

struct made {
    struct ino ino;
    struct inode_row row; /* to be completed and put by the operation */
};

/* One of the opened slots, for a new directory: consecutive ones look drawn at random. */
struct slot make_slot(const struct group *group);
/* The first partition of a directory whose row is made in this transaction. */
struct partition_row make_partition(const struct transaction *transaction,
                                    const struct inode_row *row);
/* Names the inode, whose number is in ret_made, or will be in the run that decides. */
MUST_CHECK int make_name(struct transaction *transaction, const struct place *place, uint32_t mode,
                         struct made *ret_made);
/* A new file in the directory's slot, by its rules, which has no name and never gets one
 * (for_good), or may be given one. */
MUST_CHECK int make_unnamed(struct transaction *transaction, const struct place *place,
                            uint32_t mode, bool for_good, struct made *ret_made);
/* Names a new inode of that mode (with type) in the slot: stages the entry and the parent's counts.
 * The place is free. */
MUST_CHECK int make_inode(struct transaction *transaction, const struct place *place, uint32_t mode,
                          struct slot slot, struct made *ret_made);
