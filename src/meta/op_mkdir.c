/* mkdir: the group of the new directory is drawn (draw.h); it gives it one of its opened slots. */
#include "meta/crossing.h"
#include "meta/draw.h"
#include "meta/group_internal.h"
#include "meta/inode.h"
#include "meta/make.h"
#include "meta/operations.h"

static int make_here(struct transaction *transaction, const struct place *place, uint32_t mode,
                     struct made *ret_made) {
    int r = make_inode(transaction, place, mode, make_slot(transaction->group), ret_made);

    if (r < 0) {
        return r;
    }
    struct partition_row partition = make_partition(transaction, &ret_made->row);
    struct kv_key key = key_partition(ret_made->ino);
    r = transaction_put(transaction, &key, &partition, sizeof partition);
    return r < 0 ? r : inode_put(transaction, ret_made->ino, &ret_made->row);
}

static int make_there(struct transaction *transaction, const struct place *place, uint32_t mode,
                      struct log_id log, struct made *ret_made) {
    ret_made->ino = crossing_made(transaction, log);
    int r = make_name(transaction, place, mode, ret_made);

    if (r < 0) {
        return r;
    }
    const struct inode_row *row = &ret_made->row;
    struct half half = {.kind = HALF_MAKE,
                        .mode = row->mode,
                        .uid = row->uid,
                        .gid = row->gid,
                        .domain = row->domain,
                        .pool_version = row->pool_version,
                        .chunk_bytes = row->chunk_bytes,
                        .stripe_count = row->stripe_count,
                        .redundancy = row->redundancy,
                        .to = place->parent.value,
                        .to_index = row->parent_name};
    return crossing_half(transaction, log, &half, (struct bytes){NULL, 0});
}

int op_mkdir(struct transaction *transaction, struct call *call) {
    const struct mkdir_request *request = &call->request.mkdir;
    struct place place = {.parent = request->parent, .name = request->name, .who = &request->who};
    uint32_t mode = MODE_DIRECTORY | (request->mode & MODE_BITS);
    struct log_id log;
    struct made made;

    int r = place_find_free(transaction, &place);
    r = r < 0 ? r : draw_log(transaction, call, &log);
    if (r < 0) {
        return r;
    }
    if (log.value == kv_log_id(transaction->group->kv).value) {
        r = make_here(transaction, &place, mode, &made);
    } else {
        r = make_there(transaction, &place, mode, log, &made);
    }
    if (r == 0) {
        struct partition_row partition = make_partition(transaction, &made.row);
        attributes_fill(made.ino, &made.row, &partition, &call->reply.mkdir.attributes);
    }
    return r;
}
