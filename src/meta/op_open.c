/* open: an inode by number, with O_TRUNC if asked. */
#include "meta/group_internal.h"
#include "meta/open.h"
#include "meta/operations.h"
#include "meta/truncate.h"
#include "meta/untouched.h"

/* It is a copy of the request that the session has the inode open by. */
static bool has_opened(const struct transaction *transaction, const struct call *call) {
    const struct open_entry *entry =
        opens_find(&transaction->group->opens, call->request.open.ino, transaction->session);

    return open_is_by_name(call) && entry && entry->named && entry->name == call->header.sequence;
}

int op_open(struct transaction *transaction, struct call *call) {
    const struct open_request *request = &call->request.open;
    struct open_reply *reply = &call->reply.open;
    const struct inode_row *row;

    int r = inode_get(transaction, request->ino, &row);
    if (r == 0 && !has_opened(transaction, call)) {
        r = open_check(row, &request->who, request->open_flags);
    }
    if (r < 0) {
        return r;
    }
    open_is_shared(transaction, row, request->open_flags);
    struct inode_row changed = *row;
    if (request->open_flags & OPEN_TRUNCATE) {
        r = truncate_stage(transaction, request->ino, 0, &changed);
        truncate_drop_set_ids(&request->who, &changed);
        r = r < 0 ? r : inode_put(transaction, request->ino, &changed);
    } else if (request->open_flags & OPEN_WRITE) {
        r = truncate_unsure_end(transaction, request->ino, &changed);
    }
    if (r == 0 && !open_is_by_name(call) && untouched_end(&changed)) {
        r = inode_put(transaction, request->ino, &changed);
    }
    r = r < 0 ? r : open_stage(transaction, request->ino, &request->who, request->open_flags);
    r = r < 0 ? r : attributes_read(transaction, request->ino, &changed, &reply->attributes);
    if (r < 0) {
        return r;
    }
    reply->name = open_is_by_name(call) ? call->header.sequence : 0;
    reply->layout = inode_layout(&changed);
    capability_fill(transaction, request->ino, &changed,
                    rights_of(transaction, request->ino, request->open_flags), &reply->capability);
    return 0;
}
