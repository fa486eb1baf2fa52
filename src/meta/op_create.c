/* create: open with O_CREAT, in one step: makes a regular file and opens it, or opens what is
 * there; or with O_TMPFILE, which makes one without a name. The mode is not asked of whoever made
 * the file. */
#include "meta/crossing.h"
#include "meta/make.h"
#include "meta/open.h"
#include "meta/operations.h"
#include "meta/truncate.h"
#include "meta/untouched.h"

static int reply_fill(struct transaction *transaction, struct ino ino, const struct inode_row *row,
                      struct call *call) {
    struct create_reply *reply = &call->reply.create;
    uint32_t open_flags = call->request.create.open_flags;

    reply->layout = inode_layout(row);
    capability_fill(transaction, ino, row, rights_of(transaction, ino, open_flags),
                    &reply->capability);
    attributes_fill(ino, row, NULL, &reply->attributes);
    return 0;
}

static int open_existing(struct transaction *transaction, struct ino ino, struct call *call) {
    const struct create_request *request = &call->request.create;
    const struct inode_row *row;

    if (request->exclusive) {
        return -ERR_EXISTS;
    }
    if (crossing_is_elsewhere(transaction, ino)) {
        call->reply.create.elsewhere = 1;
        call->reply.create.attributes.ino = ino;
        return 0;
    }
    int r = inode_get(transaction, ino, &row);
    if (r == 0 && mode_is_directory(row->mode)) {
        r = -ERR_IS_DIRECTORY;
    }
    r = r < 0 ? r : open_check(row, &request->who, request->open_flags);
    r = r < 0 ? r : inode_size_known(transaction, ino, row);
    if (r < 0) {
        return r;
    }
    open_is_shared(transaction, row, request->open_flags);
    struct inode_row changed = *row;
    if (request->open_flags & OPEN_TRUNCATE) {
        r = truncate_stage(transaction, ino, 0, &changed);
        truncate_drop_set_ids(&request->who, &changed);
        r = r < 0 ? r : inode_put(transaction, ino, &changed);
    } else if (request->open_flags & OPEN_WRITE) {
        r = truncate_unsure_end(transaction, ino, &changed);
    }
    if (r == 0 && untouched_end(&changed)) {
        r = inode_put(transaction, ino, &changed);
    }
    r = r < 0 ? r : open_stage(transaction, ino, &request->who, request->open_flags);
    return r < 0 ? r : reply_fill(transaction, ino, &changed, call);
}

/* Finds the place, and makes what is to be there: 0, -ERR_EXISTS. */
static int make_named(struct transaction *transaction, struct place *place, uint32_t mode,
                      struct made *ret_made) {
    int r = place_find_free(transaction, place);

    return r < 0 ? r : make_inode(transaction, place, mode, ino_slot(place->parent), ret_made);
}

/* The directory gives it slot, layout and group, and lets those make it who may make a name. */
static int make_nameless(struct transaction *transaction, struct place *place, uint32_t mode,
                         struct made *ret_made) {
    const struct create_request *request = &transaction->call->request.create;

    /* The row of who writes it is what keeps it while he has no answer: leftovers.h. */
    if (place->name.size > 0 || !(request->open_flags & OPEN_WRITE)) {
        return -ERR_INVALID;
    }
    int r = directory_get(transaction, place->parent, &place->directory);
    if (r == 0 && place->directory->state != PARTITION_LIVE) {
        r = -ERR_NOT_FOUND;
    }
    r = r < 0 ? r
              : permission_check(place->who, partition_ownership(place->directory),
                                 ACCESS_WRITE | ACCESS_EXECUTE);
    return r < 0 ? r : make_unnamed(transaction, place, mode, request->exclusive, ret_made);
}

int op_create(struct transaction *transaction, struct call *call) {
    const struct create_request *request = &call->request.create;
    struct place place = {.parent = request->parent, .name = request->name, .who = &request->who};
    uint32_t mode = MODE_REGULAR | (request->mode & MODE_BITS);
    struct made made;

    if (!(request->open_flags & (OPEN_READ | OPEN_WRITE)) ||
        (request->open_flags & ~(uint32_t)OPEN_FLAGS_KNOWN)) {
        return -ERR_INVALID;
    }
    int r = (request->unnamed ? make_nameless : make_named)(transaction, &place, mode, &made);
    if (r == -ERR_EXISTS) {
        return open_existing(transaction, place.dentry.ino, call);
    }
    if (r == 0 && request->draws && (request->open_flags & OPEN_WRITE)) {
        r = untouched_draw(transaction, &made.row);
    }
    r = r < 0 ? r : inode_put(transaction, made.ino, &made.row);
    r = r < 0 ? r : open_stage(transaction, made.ino, &request->who, request->open_flags);
    if (r < 0) {
        return r;
    }
    call->reply.create.created = 1;
    (void)untouched_end(&made.row); /* The capability is its maker's, */
    made.row.truncate_position = 0; /* who is told if it is lost. */
    return reply_fill(transaction, made.ino, &made.row, call);
}
