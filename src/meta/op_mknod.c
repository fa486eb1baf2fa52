/* mknod: regular files, pipes, sockets; devices by root only. */
#include "meta/inode.h"
#include "meta/make.h"
#include "meta/operations.h"

int op_mknod(struct transaction *transaction, struct call *call) {
    const struct mknod_request *request = &call->request.mknod;
    struct place place = {.parent = request->parent, .name = request->name, .who = &request->who};
    uint32_t type = request->mode & MODE_TYPE_BITS;
    bool device = type == MODE_CHARACTER || type == MODE_BLOCK;
    struct made made;

    if (type == MODE_DIRECTORY) {
        return -ERR_NOT_PERMITTED;
    }
    if (type == 0) {
        type = MODE_REGULAR;
    } else if (!device && type != MODE_REGULAR && type != MODE_FIFO && type != MODE_SOCKET) {
        return -ERR_INVALID;
    }
    int r = place_find_free(transaction, &place);
    if (r == 0 && device && request->who.uid != 0) {
        r = -ERR_NOT_PERMITTED;
    }
    uint32_t mode = type | (request->mode & MODE_BITS);
    r = r < 0 ? r : make_inode(transaction, &place, mode, ino_slot(request->parent), &made);
    if (r < 0) {
        return r;
    }
    made.row.rdev = device ? request->rdev : 0;
    attributes_fill(made.ino, &made.row, NULL, &call->reply.mknod.attributes);
    return inode_put(transaction, made.ino, &made.row);
}
