/* getattr: attributes by inode number. No permission is needed on the inode itself. */
#include "meta/inode.h"
#include "meta/operations.h"

int op_getattr(struct transaction *transaction, struct call *call) {
    struct ino ino = call->request.getattr.ino;
    const struct inode_row *row;

    int r = inode_get(transaction, ino, &row);
    return r < 0 ? r : attributes_read(transaction, ino, row, &call->reply.getattr.attributes);
}
