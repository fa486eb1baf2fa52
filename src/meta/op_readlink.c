/* readlink: the target as bulk. */
#include "meta/inline.h"
#include "meta/operations.h"

int op_readlink(struct transaction *transaction, struct call *call) {
    struct ino ino = call->request.readlink.ino;
    const struct inode_row *row;

    int r = inode_get(transaction, ino, &row);
    if (r < 0) {
        return r;
    }
    if (!mode_is_link(row->mode)) {
        return -ERR_NOT_LINK;
    }
    call->bulk_in.size = 0;
    return inline_get(transaction, ino, row->size, &call->bulk_in);
}
