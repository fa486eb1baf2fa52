/* layout_get, layout_set: how a file maps to chunks; of a directory, how new files in it will. */
#include "meta/directory.h"
#include "meta/group_internal.h"
#include "meta/inode.h"
#include "meta/operations.h"
#include "meta/untouched.h"

int op_layout_get(struct transaction *transaction, struct call *call) {
    struct layout_get_reply *reply = &call->reply.layout_get;
    struct ino ino = call->request.layout_get.ino;
    const struct inode_row *row;

    int r = inode_get(transaction, ino, &row);
    r = r < 0 ? r : attributes_read(transaction, ino, row, &reply->attributes);
    if (r == 0) {
        reply->layout = inode_layout(row);
    }
    return r;
}

static int layout_check(const struct transaction *transaction, const struct inode_row *row,
                        const struct layout_set_request *request) {
    uint32_t newest = transaction->group->map->pool_count;
    bool pool_ok = request->layout.pool_version == 0 || request->layout.pool_version == newest;

    if (request->who.uid != 0 && request->who.uid != row->uid) {
        return -ERR_NOT_PERMITTED;
    }
    if (!layout_is_valid(&request->layout) || !pool_ok || request->layout.redundancy != 0) {
        return -ERR_INVALID;
    }
    if (mode_is_directory(row->mode)) {
        return 0;
    }
    /* Bytes never move, so a file must not have any in chunks. */
    bool chunked = row->data_state == DATA_CHUNKED;
    return !mode_is_regular(row->mode) || chunked ? -ERR_INVALID : 0;
}

int op_layout_set(struct transaction *transaction, struct call *call) {
    const struct layout_set_request *request = &call->request.layout_set;
    const struct partition_row *partition;
    const struct inode_row *row;

    int r = inode_get(transaction, request->ino, &row);
    if (r < 0) {
        return r;
    }
    struct inode_row changed = *row;
    (void)untouched_give_back(transaction, request->ino, request->untouched, &changed);
    r = layout_check(transaction, &changed, request);
    if (r < 0) {
        return r;
    }
    struct layout layout = request->layout;
    bool directory = mode_is_directory(row->mode);
    layout.seed = row->seed;
    if (!directory && layout.pool_version == 0) {
        layout.pool_version = transaction->group->map->pool_count;
    }
    inode_layout_set(&changed, &layout);
    inode_touch(transaction, &changed);
    r = inode_put(transaction, request->ino, &changed);
    if (r == 0 && directory) {
        struct kv_key key = key_partition(request->ino);

        r = directory_get(transaction, request->ino, &partition);
        if (r < 0) {
            return r;
        }
        struct partition_row copy = *partition;
        copy.epoch = transaction->epoch;
        copy.pool_version = layout.pool_version;
        copy.chunk_bytes = layout.chunk_bytes;
        copy.stripe_count = layout.stripe_count;
        r = transaction_put(transaction, &key, &copy, sizeof copy);
    }
    call->reply.layout_set.layout = layout;
    return r;
}
