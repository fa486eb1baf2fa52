/* A new inode and its name. */
#include "meta/make.h"
#include "meta/group_internal.h"
#include "meta/inode.h"

/* The finaliser of splitmix64. */
static uint64_t mix(uint64_t value) {
    value ^= value >> 30;
    value *= UINT64_C(0xbf58476d1ce4e5b9);
    value ^= value >> 27;
    value *= UINT64_C(0x94d049bb133111eb);
    return value ^ (value >> 31);
}

struct slot make_slot(const struct group *group) {
    return slots_draw(&group->slots, mix(group->numbers.inos.next));
}

struct partition_row make_partition(const struct transaction *transaction,
                                    const struct inode_row *row) {
    return (struct partition_row){
        .format = META_FORMAT,
        .state = PARTITION_LIVE,
        .mode = row->mode,
        .epoch = transaction->epoch,
        .ctime_ns = transaction->now_ns,
        .mtime_ns = transaction->now_ns,
        .uid = row->uid,
        .gid = row->gid,
        .domain = row->domain,
        .pool_version = row->pool_version,
        .chunk_bytes = row->chunk_bytes,
        .stripe_count = row->stripe_count,
        .redundancy = row->redundancy,
    };
}

int make_name(struct transaction *transaction, const struct place *place, uint32_t mode,
              struct made *ret_made) {
    struct ownership owner =
        permission_create(place->who, partition_ownership(place->directory), mode);
    struct dentry dentry = place->dentry;

    ret_made->row = inode_make(transaction, owner, ret_made->ino, place->directory);
    ret_made->row.parent = place->parent.value;
    ret_made->row.parent_name = dentry.index;
    dentry.ino = ret_made->ino;
    dentry.type = (uint8_t)(mode >> 12);
    int r = dentry_add(transaction, place->parent, place->name, &dentry);
    return r < 0 ? r
                 : directory_changed(transaction, place->parent, place->directory,
                                     change_of(dentry.type, 1));
}

int make_unnamed(struct transaction *transaction, const struct place *place, uint32_t mode,
                 bool for_good, struct made *ret_made) {
    struct ownership owner =
        permission_create(place->who, partition_ownership(place->directory), mode);
    int r = transaction_ino(transaction, ino_slot(place->parent), &ret_made->ino);

    if (r < 0) {
        return r;
    }
    ret_made->row = inode_make(transaction, owner, ret_made->ino, place->directory);
    ret_made->row.nlink = 0;
    ret_made->row.parent = for_good ? place->parent.value : 0;
    transaction->inode_delta++;
    return inode_orphan(transaction, ret_made->ino);
}

int make_inode(struct transaction *transaction, const struct place *place, uint32_t mode,
               struct slot slot, struct made *ret_made) {
    int r = transaction_ino(transaction, slot, &ret_made->ino);

    r = r < 0 ? r : make_name(transaction, place, mode, ret_made);
    transaction->inode_delta++;
    transaction->directory_delta += mode_is_directory(mode);
    return r;
}
