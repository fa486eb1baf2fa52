/* A new inode and its name. */
#include "meta/make.h"
#include "meta/inode.h"

int make_inode(struct transaction *transaction, const struct place *place, uint32_t mode,
               struct slot slot, struct made *ret_made) {
    struct ownership owner =
        permission_create(place->who, partition_ownership(place->directory), mode);
    struct dentry dentry = place->dentry;

    int r = transaction_ino(transaction, slot, &ret_made->ino);
    if (r < 0) {
        return r;
    }
    ret_made->row = inode_make(transaction, owner, ret_made->ino, place->directory);
    ret_made->row.parent = place->parent.value;
    ret_made->row.parent_name = dentry.index;
    dentry.ino = ret_made->ino;
    dentry.type = (uint8_t)(mode >> 12);
    r = dentry_add(transaction, place->parent, place->name, &dentry);
    r = r < 0 ? r
              : directory_changed(transaction, place->parent, place->directory,
                                  change_of(dentry.type, 1));
    transaction->inode_delta++;
    transaction->directory_delta += mode_is_directory(mode);
    return r;
}
