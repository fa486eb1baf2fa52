/* mkdir: near the root a new directory goes to any group, all alike; further down it stays with its
 * parent. In its group it gets one of the opened slots. */
#include "meta/crossing.h"
#include "meta/group_internal.h"
#include "meta/inode.h"
#include "meta/make.h"
#include "meta/operations.h"

/* The child of the root, or of one of the root's. */
static int is_near(struct transaction *transaction, struct ino parent, bool *ret_near) {
    const struct inode_row *row;

    *ret_near = parent.value == INO_ROOT.value;
    if (*ret_near) {
        return 0;
    }
    int r = inode_get(transaction, parent, &row);
    if (r < 0) {
        return r == -ERR_STALE ? -ERR_CORRUPT : r;
    }
    *ret_near = row->parent == INO_ROOT.value;
    return 0;
}

/* The same in all runs of the call until it begins anew: then another group is tried. */
static struct log_id log_drawn(const struct transaction *transaction, const struct call *call) {
    const struct cluster_map *map = transaction->group->map;
    uint64_t random = (call->header.session.value << 32) + call->header.sequence +
                      ((uint64_t)crossing_tries(transaction) << 48);

    random = (random ^ random >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    random = (random ^ random >> 32) * UINT64_C(0x94d049bb133111eb);
    return map->groups[(random >> 32) % map->group_count].log;
}

static int log_choose(struct transaction *transaction, const struct call *call,
                      struct log_id *ret_log) {
    bool near = false;

    *ret_log = kv_log_id(transaction->group->kv);
    if (slots_has_all(&transaction->group->slots)) {
        return 0;
    }
    int r = is_near(transaction, call->request.mkdir.parent, &near);
    if (r == 0 && near) {
        *ret_log = log_drawn(transaction, call);
    }
    return r;
}

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
    r = r < 0 ? r : log_choose(transaction, call, &log);
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
