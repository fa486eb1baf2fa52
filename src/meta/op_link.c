/* link: one more name for what is no directory, or the first one of a file made without. */
#include "meta/directory.h"
#include "meta/inode.h"
#include "meta/operations.h"

int op_link(struct transaction *transaction, struct call *call) {
    const struct link_request *request = &call->request.link;
    struct place place = {.parent = request->parent, .name = request->name, .who = &request->who};
    const struct inode_row *row;

    int r = inode_get(transaction, request->ino, &row);
    r = r < 0 ? r : place_find_free(transaction, &place);
    if (r < 0) {
        return r;
    }
    if (mode_is_directory(row->mode)) {
        return -ERR_NOT_PERMITTED;
    }
    if (!inode_may_be_named(row)) {
        return -ERR_NOT_FOUND;
    }
    if (row->nlink >= LINKS_MAX) {
        return -ERR_TOO_MANY_LINKS;
    }
    struct inode_row changed = *row;
    changed.nlink++;
    inode_touch(transaction, &changed); /* As who has it will. */
    place.dentry.ino = request->ino;
    place.dentry.type = (uint8_t)(row->mode >> 12);
    r = dentry_add(transaction, request->parent, request->name, &place.dentry);
    r = r < 0 ? r
              : directory_changed(transaction, request->parent, place.directory,
                                  (struct directory_change){.files = 1});
    r = r < 0 ? r
              : inode_link(
                    transaction, request->ino, row,
                    &(struct link_move){.to = request->parent, .to_index = place.dentry.index});
    return r < 0
               ? r
               : attributes_read(transaction, request->ino, &changed, &call->reply.link.attributes);
}
