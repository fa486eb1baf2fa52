/* symlink. A target is 1 to 4,095 bytes, none of them NUL. */
#include "meta/inline.h"
#include "meta/make.h"
#include "meta/operations.h"
#include <string.h>

int op_symlink(struct transaction *transaction, struct call *call) {
    const struct symlink_request *request = &call->request.symlink;
    struct place place = {.parent = request->parent, .name = request->name, .who = &request->who};
    struct made made;

    if (request->target.size == 0) {
        return -ERR_NOT_FOUND;
    }
    if (request->target.size >= INLINE_BYTES_MAX) {
        return -ERR_NAME_TOO_LONG;
    }
    if (memchr(request->target.data, '\0', request->target.size)) {
        return -ERR_INVALID;
    }
    int r = place_find_free(transaction, &place);
    r = r < 0 ? r
              : make_inode(transaction, &place, MODE_LINK | 0777, ino_slot(request->parent), &made);
    r = r < 0 ? r : inline_put(transaction, made.ino, 0, request->target);
    if (r < 0) {
        return r;
    }
    made.row.data_state = DATA_INLINE;
    made.row.size = request->target.size;
    attributes_fill(made.ino, &made.row, NULL, &call->reply.symlink.attributes);
    return inode_put(transaction, made.ino, &made.row);
}
