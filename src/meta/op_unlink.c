/* unlink: removes a name, and the inode with its last one unless it is open; of a name whose inode
 * is lost for good the name alone. */
#include "meta/crossing.h"
#include "meta/directory.h"
#include "meta/inode.h"
#include "meta/names.h"
#include "meta/operations.h"

int op_unlink(struct transaction *transaction, struct call *call) {
    const struct unlink_request *request = &call->request.unlink;
    struct place place = {.parent = request->parent, .name = request->name, .who = &request->who};
    const struct inode_row *row;

    int r = place_find(transaction, &place);
    if (r < 0) {
        return r;
    }
    if (name_kind(request->name) != NAME_PLAIN) {
        return -ERR_IS_DIRECTORY;
    }
    call->reply.unlink.ino = place.dentry.ino;
    if (crossing_is_lost(transaction, place.dentry.ino)) {
        return place_remove_lost(transaction, &place, false);
    }
    r = inode_get(transaction, place.dentry.ino, &row);
    if (r < 0) {
        return r == -ERR_STALE ? -ERR_CORRUPT : r;
    }
    r = place_may_remove(&place, row);
    if (r == 0 && mode_is_directory(row->mode)) {
        r = -ERR_IS_DIRECTORY;
    }
    r = r < 0 ? r : dentry_remove(transaction, request->parent, &place.dentry);
    r = r < 0 ? r
              : directory_changed(transaction, request->parent, place.directory,
                                  (struct directory_change){.files = -1});
    return r < 0 ? r : inode_unlink(transaction, place.dentry.ino, row, &call->reply.unlink.nlink);
}
