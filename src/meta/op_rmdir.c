/* rmdir: removes an empty directory; of one whose inode is lost for good the name, as nobody can
 * say what was in it. */
#include "meta/crossing.h"
#include "meta/directory.h"
#include "meta/inode.h"
#include "meta/names.h"
#include "meta/operations.h"

int op_rmdir(struct transaction *transaction, struct call *call) {
    const struct rmdir_request *request = &call->request.rmdir;
    struct place place = {.parent = request->parent, .name = request->name, .who = &request->who};
    const struct partition_row *partition;
    const struct inode_row *row;
    uint32_t nlink = 0;

    int r = place_find(transaction, &place);
    if (r < 0) {
        return r;
    }
    if (name_kind(request->name) != NAME_PLAIN) {
        return name_kind(request->name) == NAME_SELF ? -ERR_INVALID : -ERR_NOT_EMPTY;
    }
    call->reply.rmdir.ino = place.dentry.ino;
    if (crossing_is_lost(transaction, place.dentry.ino)) {
        return place_remove_lost(transaction, &place, true);
    }
    r = inode_get(transaction, place.dentry.ino, &row);
    if (r < 0) {
        return r == -ERR_STALE ? -ERR_CORRUPT : r;
    }
    r = place_may_remove(&place, row);
    if (r == 0 && !mode_is_directory(row->mode)) {
        r = -ERR_NOT_DIRECTORY;
    }
    r = r < 0 ? r : directory_get(transaction, place.dentry.ino, &partition);
    if (r == 0 && partition->file_count + partition->directory_count > 0) {
        r = -ERR_NOT_EMPTY;
    }
    r = r < 0 ? r : dentry_remove(transaction, request->parent, &place.dentry);
    r = r < 0 ? r
              : directory_changed(transaction, request->parent, place.directory,
                                  (struct directory_change){.directories = -1});
    return r < 0 ? r : inode_unlink(transaction, place.dentry.ino, row, &nlink);
}
