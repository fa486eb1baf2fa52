/* What create, mknod, mkdir and symlink share. */
#pragma once
#include "meta/directory.h"

struct made {
    struct ino ino;
    struct inode_row row; /* to be completed and put by the operation */
};

/* Names a new inode of that mode (with type) in the slot: stages the entry and the parent's counts.
 * The place is free. */
MUST_CHECK int make_inode(struct transaction *transaction, const struct place *place, uint32_t mode,
                          struct slot slot, struct made *ret_made);
