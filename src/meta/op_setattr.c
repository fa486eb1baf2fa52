/* setattr: mode, owner, times, size. All checks come before the first change; when several are
 * refused, the first of size, times, owner, mode names the error, and after them who writes to a
 * file that would begin to act for its owner. */
#include "meta/directory.h"
#include "meta/group_internal.h"
#include "meta/inode.h"
#include "meta/operations.h"
#include "meta/truncate.h"
#include "meta/untouched.h"

enum { SETATTR_TIMES = SETATTR_ATIME | SETATTR_MTIME | SETATTR_ATIME_NOW | SETATTR_MTIME_NOW };
enum { SETATTR_KNOWN = 2048 - 1 };

static int size_check(struct transaction *transaction, const struct setattr_request *request,
                      const struct inode_row *row) {
    if (mode_is_directory(row->mode)) {
        return -ERR_IS_DIRECTORY;
    }
    if (!mode_is_regular(row->mode)) {
        return -ERR_INVALID;
    }
    if (request->opened && inode_is_open(transaction, request->ino, OPEN_WRITE) == 0) {
        return 0;
    }
    return permission_check(&request->who, inode_ownership(row), ACCESS_WRITE);
}

static int owner_changes(const struct setattr_request *request, struct inode_row *row) {
    struct ownership owner = inode_ownership(row);
    int r = 0;

    if (request->valid & (SETATTR_UID | SETATTR_GID)) {
        struct ownership to = {0, request->uid, request->gid};

        /* -1 is how POSIX says "leave it", so nobody can be that. */
        bool nobody = ((request->valid & SETATTR_UID) && to.uid == UINT32_MAX) ||
                      ((request->valid & SETATTR_GID) && to.gid == UINT32_MAX);
        r = nobody ? -ERR_INVALID : permission_chown(&request->who, request->valid, to, &owner);
    }
    if (r == 0 && (request->valid & SETATTR_MODE)) {
        /* Who gives a file away may set its mode in the same call: he was the owner. */
        struct ownership mode_owner = {owner.mode, row->uid, owner.gid};

        r = permission_chmod(&request->who, request->mode, &mode_owner);
        owner.mode = mode_owner.mode;
    }
    row->mode = owner.mode;
    row->uid = owner.uid;
    row->gid = owner.gid;
    return r;
}

/* What another session opened for writing before it got these bits, it may write to as if it had
 * none: bytes in chunks ask no metadata target, and a mount believes the mode that it saw last. So
 * nothing begins to act for its owner or group before those have closed it. */
static int acts_check(const struct transaction *transaction, struct ino ino,
                      const struct inode_row *before, const struct inode_row *after) {
    bool same = before->uid == after->uid && before->gid == after->gid;
    uint32_t acted = same ? permission_acts(before->mode) : 0;
    bool begins = mode_is_regular(after->mode) && (permission_acts(after->mode) & ~acted) != 0;

    /* Power may have taken what a session had open that has not come back yet. */
    return begins && (transaction->group->sessions.unsure_count > 0 ||
                      opens_any_writer(&transaction->group->opens, ino, transaction->session))
               ? -ERR_IN_USE
               : 0;
}

static int times_check(const struct setattr_request *request, const struct inode_row *row) {
    bool own_times = request->valid & (SETATTR_TIMES | SETATTR_CTIME_ONLY);

    /* With a new size the kernel sends the time of the truncation along. */
    if (!own_times || (request->valid & SETATTR_SIZE)) {
        return 0;
    }
    return permission_times(&request->who, request->valid, inode_ownership(row));
}

static void times_set(const struct setattr_request *request, int64_t now_ns,
                      struct inode_row *row) {
    if (request->valid & SETATTR_ATIME) {
        row->atime_ns = request->atime_ns;
    }
    if (request->valid & SETATTR_ATIME_NOW) {
        row->atime_ns = now_ns;
    }
    if (request->valid & SETATTR_MTIME) {
        row->mtime_ns = request->mtime_ns;
    }
    if (request->valid & SETATTR_MTIME_NOW) {
        row->mtime_ns = now_ns;
    }
}

/* A directory's copy of what access depends on, and its mtime, are in its partition. */
static int directory_put(struct transaction *transaction, const struct setattr_request *request,
                         const struct partition_row *partition, const struct inode_row *row) {
    struct kv_key key = key_partition(request->ino);
    struct partition_row changed = *partition;

    changed.epoch = transaction->epoch;
    changed.mode = row->mode;
    changed.uid = row->uid;
    changed.gid = row->gid;
    if (request->valid & (SETATTR_MTIME | SETATTR_MTIME_NOW)) {
        changed.mtime_ns = row->mtime_ns;
    }
    return transaction_put(transaction, &key, &changed, sizeof changed);
}

static int changes_make(struct transaction *transaction, const struct setattr_request *request,
                        struct inode_row *row) {
    const struct inode_row before = *row;

    int r = request->valid & SETATTR_SIZE ? size_check(transaction, request, row) : 0;
    r = r < 0 ? r : times_check(request, row);
    r = r < 0 ? r : owner_changes(request, row);
    r = r < 0 ? r : acts_check(transaction, request->ino, &before, row);
    if (r == 0 && (request->valid & SETATTR_SIZE)) {
        (void)untouched_give_back(transaction, request->ino, request->untouched, row);
        r = truncate_stage(transaction, request->ino, request->size, row);
        truncate_drop_set_ids(&request->who, row);
    }
    /* A change of owner has dropped them already, and asks for no right to write. */
    bool drop = (request->valid & SETATTR_KILL_SUID) && mode_is_regular(row->mode) &&
                !(request->valid & (SETATTR_UID | SETATTR_GID));
    if (r == 0 && drop) {
        r = inode_is_open(transaction, request->ino, OPEN_WRITE) == 0
                ? 0
                : permission_check(&request->who, inode_ownership(&before), ACCESS_WRITE);
        /* Who truncates is not known by all of his groups: his mount asks once more, by itself. */
        row->mode = request->valid & SETATTR_SIZE
                        ? permission_drop_set_ids(row->mode)
                        : permission_drop_set_ids_by(&request->who, inode_ownership(row));
    }
    if (r == 0) {
        times_set(request, transaction->now_ns, row);
        inode_touch(transaction, row);
    }
    return r;
}

static bool trim_is_void(const struct transaction *transaction,
                         const struct setattr_request *request, const struct inode_row *row) {
    return (request->valid & SETATTR_TRIM) &&
           (row->size > request->size || row->truncate_seq != request->truncate_seq ||
            opens_any_writer(&transaction->group->opens, request->ino, transaction->session));
}

/* What a failed write left lies among what others write: who opens the file for writing when they
 * have closed it cuts it. A truncation since has cut it already. */
static int tail_stays(struct transaction *transaction, const struct setattr_request *request,
                      struct inode_row *row) {
    if (row->data_state != DATA_CHUNKED || row->truncate_seq != request->truncate_seq ||
        row->flags & INODE_TAIL) {
        return 0;
    }
    row->flags |= INODE_TAIL;
    row->epoch = transaction->epoch;
    return inode_put(transaction, request->ino, row);
}

int op_setattr(struct transaction *transaction, struct call *call) {
    const struct setattr_request *request = &call->request.setattr;
    struct setattr_reply *reply = &call->reply.setattr;
    const struct partition_row *partition = NULL;
    const struct inode_row *row;

    if ((request->valid & ~(uint32_t)SETATTR_KNOWN) ||
        ((request->valid & SETATTR_TRIM) && !(request->valid & SETATTR_SIZE))) {
        return -ERR_INVALID;
    }
    int r = inode_get(transaction, request->ino, &row);
    if (r == 0 && mode_is_directory(row->mode)) {
        r = directory_get(transaction, request->ino, &partition);
        r = r == -ERR_NOT_FOUND || r == -ERR_NOT_DIRECTORY ? -ERR_CORRUPT : r;
    }
    if (r < 0) {
        return r;
    }
    struct inode_row changed = *row;
    if (trim_is_void(transaction, request, row)) {
        r = tail_stays(transaction, request, &changed);
    } else if (request->valid != 0) {
        r = changes_make(transaction, request, &changed);
        r = r < 0 ? r : inode_put(transaction, request->ino, &changed);
        r = r < 0 || !partition ? r : directory_put(transaction, request, partition, &changed);
    }
    if (r == 0 && partition) {
        r = directory_get(transaction, request->ino, &partition);
    }
    r = r < 0 || partition ? r : inode_size_known(transaction, request->ino, &changed);
    if (r == 0) {
        attributes_fill(request->ino, &changed, partition, &reply->attributes);
    }
    if (r == 0 && mode_is_regular(changed.mode)) {
        capability_fill(transaction, request->ino, &changed,
                        rights_of(transaction, request->ino, 0), &reply->capability);
    }
    return r;
}
