/* mkdir: the new directory gets one of the opened slots, so that directories spread over them. */
#include "meta/group_internal.h"
#include "meta/inode.h"
#include "meta/make.h"
#include "meta/operations.h"

/* The finaliser of splitmix64: consecutive counters give slots that look drawn at random. */
static uint64_t mix(uint64_t value) {
    value ^= value >> 30;
    value *= UINT64_C(0xbf58476d1ce4e5b9);
    value ^= value >> 27;
    value *= UINT64_C(0x94d049bb133111eb);
    return value ^ (value >> 31);
}

int op_mkdir(struct transaction *transaction, struct call *call) {
    const struct mkdir_request *request = &call->request.mkdir;
    struct place place = {.parent = request->parent, .name = request->name, .who = &request->who};
    const struct group *group = transaction->group;
    struct slot slot = slots_draw(&group->slots, mix(group->numbers.inos.next));
    struct made made;

    int r = place_find_free(transaction, &place);
    if (r < 0) {
        return r;
    }
    uint32_t mode = MODE_DIRECTORY | (request->mode & MODE_BITS);
    r = make_inode(transaction, &place, mode, slot, &made);
    if (r < 0) {
        return r;
    }
    struct partition_row partition = {
        .format = META_FORMAT,
        .state = PARTITION_LIVE,
        .mode = made.row.mode,
        .epoch = transaction->epoch,
        .ctime_ns = transaction->now_ns,
        .mtime_ns = transaction->now_ns,
        .uid = made.row.uid,
        .gid = made.row.gid,
        .domain = made.row.domain,
        .pool_version = made.row.pool_version,
        .chunk_bytes = made.row.chunk_bytes,
        .stripe_count = made.row.stripe_count,
        .redundancy = made.row.redundancy,
    };
    struct kv_key key = key_partition(made.ino);
    r = transaction_put(transaction, &key, &partition, sizeof partition);
    r = r < 0 ? r : inode_put(transaction, made.ino, &made.row);
    if (r == 0) {
        attributes_fill(made.ino, &made.row, &partition, &call->reply.mkdir.attributes);
    }
    return r;
}
