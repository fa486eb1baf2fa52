/* lookup: one name in one directory, "." and ".." included. */
#include "meta/crossing.h"
#include "meta/directory.h"
#include "meta/inode.h"
#include "meta/operations.h"

int op_lookup(struct transaction *transaction, struct call *call) {
    const struct lookup_request *request = &call->request.lookup;
    struct place place = {.parent = request->parent, .name = request->name, .who = &request->who};
    const struct inode_row *row;

    int r = place_find(transaction, &place);
    if (r < 0) {
        return r;
    }
    if (crossing_is_elsewhere(transaction, place.dentry.ino)) {
        call->reply.lookup.elsewhere = 1;
        call->reply.lookup.attributes.ino = place.dentry.ino;
        call->reply.lookup.attributes.mode = (uint32_t)place.dentry.type << 12;
        return 0;
    }
    r = inode_get(transaction, place.dentry.ino, &row);
    if (r < 0) {
        return r == -ERR_STALE ? -ERR_CORRUPT : r;
    }
    return attributes_read(transaction, place.dentry.ino, row, &call->reply.lookup.attributes);
}
