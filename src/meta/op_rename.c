/* rename, with NO_REPLACE and EXCHANGE. The order of checks, and so of errors, is that of Linux'
 * do_renameat2 and vfs_rename. */
#include "meta/count.h"
#include "meta/directory.h"
#include "meta/inode.h"
#include "meta/names.h"
#include "meta/operations.h"
#include "meta/way.h"

/* Both ends: the place and the inode whose name it is (NULL: the name is free). */
struct rename_end {
    struct place place;
    const struct inode_row *row;
    bool is_directory;
};

struct rename {
    struct transaction *transaction;
    const struct rename_request *request;
    struct rename_end from;
    struct rename_end to;
    bool exchange;
    bool same_parent;
};

static int end_find(struct transaction *transaction, struct rename_end *end) {
    int r = place_find(transaction, &end->place);

    if (r < 0) {
        return r;
    }
    r = inode_get(transaction, end->place.dentry.ino, &end->row);
    if (r < 0) {
        return r == -ERR_STALE ? -ERR_CORRUPT : r;
    }
    end->is_directory = mode_is_directory(end->row->mode);
    return 0;
}

static int find_both(struct rename *rename) {
    const struct rename_request *request = rename->request;
    const struct partition_row *directory;

    int r = end_find(rename->transaction, &rename->from);
    if (r < 0) {
        /* A target that is no directory is found out before a source that is not there. */
        int r2 = r == -ERR_NOT_FOUND
                     ? directory_get(rename->transaction, request->new_parent, &directory)
                     : 0;
        return r2 < 0 ? r2 : r;
    }
    r = end_find(rename->transaction, &rename->to);
    bool free = r == -ERR_NOT_FOUND && rename->to.place.directory;
    if (r < 0 && !free) {
        return r;
    }
    bool removed = free && rename->to.place.directory->state != PARTITION_LIVE;
    if (removed || (free && rename->exchange)) {
        return -ERR_NOT_FOUND;
    }
    return !free && (request->flags & RENAME_FLAG_NO_REPLACE) ? -ERR_EXISTS : 0;
}

/* No directory may come to lie within itself. */
static int loops_check(struct rename *rename) {
    struct transaction *transaction = rename->transaction;
    bool within = false;
    int r = 0;

    if (rename->same_parent) {
        return 0;
    }
    if (rename->from.is_directory || (rename->exchange && rename->to.is_directory)) {
        r = count_raise(transaction);
        if (r < 0) {
            return r;
        }
    }
    if (rename->from.is_directory) {
        r = way_is_within(transaction, rename->request->new_parent, rename->from.place.dentry.ino,
                          &within);
        if (r < 0 || within) {
            return r < 0 ? r : -ERR_INVALID;
        }
    }
    if (rename->to.row && rename->to.is_directory) {
        r = way_is_within(transaction, rename->request->parent, rename->to.place.dentry.ino,
                          &within);
        if (r < 0 || within) {
            return r < 0 ? r : rename->exchange ? -ERR_INVALID : -ERR_NOT_EMPTY;
        }
    }
    return 0;
}

static int permissions_check(const struct rename *rename) {
    const struct rename_end *from = &rename->from;
    const struct rename_end *to = &rename->to;
    const struct credentials *who = &rename->request->who;

    int r = place_may_remove(&from->place, from->row);
    if (r < 0) {
        return r;
    }
    if (!to->row) {
        r = permission_check(who, partition_ownership(to->place.directory),
                             ACCESS_WRITE | ACCESS_EXECUTE);
    } else {
        r = place_may_remove(&to->place, to->row);
        if (r == 0 && !rename->exchange && from->is_directory != to->is_directory) {
            r = from->is_directory ? -ERR_NOT_DIRECTORY : -ERR_IS_DIRECTORY;
        }
    }
    /* A directory that moves gets another "..", which is a write to it. */
    if (r == 0 && !rename->same_parent && from->is_directory) {
        r = permission_check(who, inode_ownership(from->row), ACCESS_WRITE);
    }
    if (r == 0 && !rename->same_parent && rename->exchange && to->is_directory) {
        r = permission_check(who, inode_ownership(to->row), ACCESS_WRITE);
    }
    return r;
}

static int empty_check(struct rename *rename) {
    const struct partition_row *partition;

    if (!rename->to.row || rename->exchange || !rename->to.is_directory) {
        return 0;
    }
    int r = directory_get(rename->transaction, rename->to.place.dentry.ino, &partition);
    if (r < 0) {
        return r;
    }
    return partition->file_count + partition->directory_count > 0 ? -ERR_NOT_EMPTY : 0;
}

/* The inode of `end` now has the name at `place`. */
static int moved(struct transaction *transaction, const struct rename_end *end,
                 const struct place *place) {
    return inode_moved(transaction, end->place.dentry.ino, end->row,
                       &(struct link_move){end->place.parent, end->place.dentry.index,
                                           place->parent, place->dentry.index});
}

static int counts_change(struct rename *rename, struct directory_change from_change,
                         struct directory_change to_change) {
    struct transaction *transaction = rename->transaction;

    if (rename->same_parent) {
        struct directory_change sum = {from_change.files + to_change.files,
                                       from_change.directories + to_change.directories};

        return directory_changed(transaction, rename->request->parent, rename->from.place.directory,
                                 sum);
    }
    int r = directory_changed(transaction, rename->request->parent, rename->from.place.directory,
                              from_change);
    return r < 0 ? r
                 : directory_changed(transaction, rename->request->new_parent,
                                     rename->to.place.directory, to_change);
}

/* A name of an end gets the inode of the other. */
static int entry_set(struct transaction *transaction, const struct place *place,
                     const struct dentry *what) {
    struct dentry dentry = place->dentry;

    dentry.ino = what->ino;
    dentry.type = what->type;
    return dentry_replace(transaction, place->parent, place->name, &dentry);
}

static int exchange(struct rename *rename) {
    struct transaction *transaction = rename->transaction;
    struct place *from = &rename->from.place;
    struct place *to = &rename->to.place;

    int r = entry_set(transaction, from, &to->dentry);
    r = r < 0 ? r : entry_set(transaction, to, &from->dentry);
    r = r < 0 ? r : moved(transaction, &rename->from, to);
    r = r < 0 ? r : moved(transaction, &rename->to, from);
    if (r < 0) {
        return r;
    }
    struct directory_change out = change_of(from->dentry.type, -1);
    struct directory_change in = change_of(to->dentry.type, 1);
    struct directory_change from_change = {out.files + in.files, out.directories + in.directories};
    struct directory_change to_change = {-from_change.files, -from_change.directories};
    return counts_change(rename, from_change, to_change);
}

/* Takes the old name away. Adding the new one may have changed the flags of the old one's row, when
 * both hash alike, so it is looked up anew. */
static int entry_take(struct transaction *transaction, const struct place *place) {
    struct dentry dentry;

    int r = dentry_find(transaction, place->parent, place->name, &dentry);
    return r < 0 ? r : dentry_remove(transaction, place->parent, &dentry);
}

static int replace(struct rename *rename, struct rename_reply *reply) {
    struct transaction *transaction = rename->transaction;
    struct place *from = &rename->from.place;
    struct place *to = &rename->to.place;
    struct directory_change to_change = change_of(from->dentry.type, 1);
    int r = 0;

    if (rename->to.row) {
        struct directory_change lost = change_of(to->dentry.type, -1);

        to_change.files += lost.files;
        to_change.directories += lost.directories;
        reply->replaced = to->dentry.ino;
        r = inode_unlink(transaction, to->dentry.ino, rename->to.row, &reply->replaced_nlink);
        r = r < 0 ? r : entry_set(transaction, to, &from->dentry);
    } else {
        to->dentry.ino = from->dentry.ino;
        to->dentry.type = from->dentry.type;
        r = dentry_add(transaction, to->parent, to->name, &to->dentry);
    }
    r = r < 0 ? r : entry_take(transaction, from);
    r = r < 0 ? r : moved(transaction, &rename->from, to);
    return r < 0 ? r : counts_change(rename, change_of(from->dentry.type, -1), to_change);
}

int op_rename(struct transaction *transaction, struct call *call) {
    const struct rename_request *request = &call->request.rename;
    uint32_t both = RENAME_FLAG_NO_REPLACE | RENAME_FLAG_EXCHANGE;
    struct rename rename = {
        .transaction = transaction,
        .request = request,
        .from.place = {.parent = request->parent, .name = request->name, .who = &request->who},
        .to.place = {.parent = request->new_parent,
                     .name = request->new_name,
                     .who = &request->who},
        .exchange = request->flags & RENAME_FLAG_EXCHANGE,
        .same_parent = request->parent.value == request->new_parent.value,
    };

    if ((request->flags & ~both) || request->flags == both) {
        return -ERR_INVALID;
    }
    int r = name_check(request->name);
    r = r < 0 ? r : name_check(request->new_name);
    if (r == 0 && name_kind(request->name) != NAME_PLAIN) {
        r = -ERR_IN_USE;
    }
    if (r == 0 && name_kind(request->new_name) != NAME_PLAIN) {
        r = request->flags & RENAME_FLAG_NO_REPLACE ? -ERR_EXISTS : -ERR_IN_USE;
    }
    r = r < 0 ? r : find_both(&rename);
    if (r < 0) {
        return r;
    }
    call->reply.rename.ino = rename.from.place.dentry.ino;
    if (rename.to.row && rename.to.place.dentry.ino.value == rename.from.place.dentry.ino.value) {
        return 0; /* two names of one inode: POSIX wants nothing done */
    }
    r = loops_check(&rename);
    r = r < 0 ? r : permissions_check(&rename);
    r = r < 0 ? r : empty_check(&rename);
    if (r < 0) {
        return r;
    }
    return rename.exchange ? exchange(&rename) : replace(&rename, &call->reply.rename);
}
