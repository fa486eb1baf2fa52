/* Inodes: from row to attributes and capability, and their end. */
#include "meta/inode.h"
#include "layout/map_lost.h"
#include "meta/directory.h"
#include "meta/group_internal.h"
#include "meta/inline.h"
#include "meta/usage.h"
#include "wire/capability.h"

int inode_get(struct transaction *transaction, struct ino ino, const struct inode_row **ret_row) {
    struct kv_key key = key_inode(ino);
    const struct look_answer *answer;
    struct bytes value;

    if (transaction->call && crossing_is_elsewhere(transaction, ino)) {
        int r = crossing_look(transaction, &(struct look_what){LOOK_INODE, ino, {0}, {0}}, &answer);

        if (r == 0) {
            *ret_row = &answer->inode;
        }
        return r < 0 || answer->has_inode ? r : -ERR_STALE;
    }
    int r = stakes_meet(transaction, stake_of(STAKE_INODE, ino), STAKE_READ);
    r = r < 0 ? r : transaction_get(transaction, &key, &value);
    if (r < 0) {
        return r == -ERR_NOT_FOUND ? -ERR_STALE : r;
    }
    return inode_row_check(value, ret_row);
}

int inode_put(struct transaction *transaction, struct ino ino, const struct inode_row *row) {
    struct kv_key key = key_inode(ino);

    return transaction_put(transaction, &key, row, sizeof *row);
}

void inode_touch(const struct transaction *transaction, struct inode_row *row) {
    row->epoch = transaction->epoch;
    row->ctime_ns = MAX(row->ctime_ns, transaction->now_ns);
}

void attributes_fill(struct ino ino, const struct inode_row *row,
                     const struct partition_row *partition, struct attributes *ret_attributes) {
    *ret_attributes = (struct attributes){
        .ino = ino,
        .generation = 1, /* of the number: it is never used again */
        .mode = row->mode,
        .uid = row->uid,
        .gid = row->gid,
        .nlink = row->nlink,
        .rdev = mode_is_regular(row->mode) ? 0 : row->rdev,
        .truncate_seq = row->truncate_seq,
        .size = row->size,
        .bytes_used = usage_bytes(row),
        .atime_ns = row->atime_ns,
        .mtime_ns = row->mtime_ns,
        .ctime_ns = row->ctime_ns,
        .btime_ns = row->btime_ns,
        .epoch = row->epoch,
        .data_state = row->data_state,
    };
    if (partition) {
        ret_attributes->nlink += row->nlink ? (uint32_t)partition->directory_count : 0;
        ret_attributes->size = BLOCK_BYTES;
        ret_attributes->bytes_used = BLOCK_BYTES;
        ret_attributes->mtime_ns = partition->mtime_ns;
        ret_attributes->ctime_ns = MAX(row->ctime_ns, partition->ctime_ns);
        ret_attributes->epoch = MAX(row->epoch, partition->epoch);
    }
}

int inode_size_known(struct transaction *transaction, struct ino ino, const struct inode_row *row) {
    struct group *group = transaction->group;
    bool chunks = row->data_state == DATA_CHUNKED;
    bool asked = chunks && settle_is_awaited(group, ino);
    bool untold = chunks && row->flags & INODE_UNTOLD;

    if (!asked && (untold || fences_hold(group, ino, row)) &&
        !crossing_is_elsewhere(transaction, ino)) {
        return settle_ask(transaction, ino);
    }
    group->counters.totals.ends_over +=
        chunks && group->fences.count > 0 && fences_are_over(&group->fences, row);
    return asked ? transaction_stall(transaction) : 0;
}

int attributes_read(struct transaction *transaction, struct ino ino, const struct inode_row *row,
                    struct attributes *ret_attributes) {
    const struct partition_row *partition = NULL;
    int r = 0;

    if (mode_is_directory(row->mode)) {
        r = directory_get(transaction, ino, &partition);
        r = r == -ERR_NOT_FOUND || r == -ERR_NOT_DIRECTORY ? -ERR_CORRUPT : r;
    } else {
        r = inode_size_known(transaction, ino, row);
    }
    if (r == 0) {
        attributes_fill(ino, row, partition, ret_attributes);
    }
    return r;
}

uint32_t rights_of(const struct transaction *transaction, struct ino ino, uint32_t open_flags) {
    const struct open_entry *entry =
        opens_find(&transaction->group->opens, ino, transaction->session);
    bool write = (open_flags & OPEN_WRITE) || (entry && entry->write_count > 0);
    bool read = (open_flags & (OPEN_READ | OPEN_EXECUTE)) || (entry && open_entry_reads(entry));

    return (write ? RIGHT_WRITE | RIGHT_READ : 0) | (read ? RIGHT_READ : 0);
}

static void capability_sign(struct signer *signer, struct capability *capability) {
    uint8_t bytes[CAPABILITY_SIGNED_BYTES];
    uint8_t tag[TAG_BYTES];
    struct key_use use = signer_use(signer);

    capability->key_number = use.number;
    capability->key_name = use.name.value;
    capability_signed_bytes(capability, bytes);
    signer_sign(signer, use, (struct bytes){bytes, sizeof bytes}, tag);
    memcpy(capability->signature, tag, sizeof capability->signature);
}

void capability_fill(struct transaction *transaction, struct ino ino, const struct inode_row *row,
                     uint32_t rights, struct capability *ret_capability) {
    *ret_capability = (struct capability){
        .ino = ino,
        .generation = row->flags & INODE_UNTOUCHED ? 0 : row->chunk_generation,
        .rights = rights,
        .max_offset = FILE_BYTES_MAX,
        .truncate_seq = row->truncate_seq,
        .truncate_size = row->truncate_size,
        .session = transaction->session->id.value,
        .session_incarnation = transaction->session->incarnation,
        .map_version = transaction->group->map->version,
    };
    if (signer_has_keys(&transaction->group->signer)) {
        capability_sign(&transaction->group->signer, ret_capability);
    }
    /* Who writes behind another one's truncation, or into the chunks that another one has made of
     * the file, hears of no loss of what he has not asked for: it is on disk before he does. */
    bool is_told = !(row->flags & INODE_UNTOUCHED);
    bool relies = row->truncate_seq > 0 || (is_told && (rights & RIGHT_WRITE));
    if (relies && row->truncate_position > kv_synced_position(transaction->group->kv)) {
        transaction->sync_position = MAX(transaction->sync_position, row->truncate_position);
    }
}

int inode_is_open(const struct transaction *transaction, struct ino ino, uint32_t open_flag) {
    const struct open_entry *entry =
        opens_find(&transaction->group->opens, ino, transaction->session);
    bool is_open =
        entry && (entry->write_count > 0 || (open_flag != OPEN_WRITE && open_entry_reads(entry)));

    return is_open ? 0 : -ERR_BAD_HANDLE;
}

struct inode_row inode_make(const struct transaction *transaction, struct ownership owner,
                            struct ino ino, const struct partition_row *parent) {
    bool directory = mode_is_directory(owner.mode);
    const struct cluster_map *map = transaction->group->map;
    uint32_t pool_version = parent->pool_version;

    if (!directory && (pool_version == 0 || !cluster_map_pool_is_whole(map, pool_version))) {
        pool_version = map->pool_count;
    }
    return (struct inode_row){
        .format = META_FORMAT,
        .nlink = directory ? 2 : 1,
        .epoch = transaction->epoch,
        .ctime_ns = transaction->now_ns,
        .mtime_ns = transaction->now_ns,
        .atime_ns = transaction->now_ns,
        .btime_ns = transaction->now_ns,
        .mode = owner.mode,
        .uid = owner.uid,
        .gid = owner.gid,
        .domain = parent->domain,
        .pool_version = pool_version,
        .chunk_bytes = parent->chunk_bytes,
        .seed = (uint32_t)ino.value,
        .stripe_count = parent->stripe_count,
        .redundancy = parent->redundancy,
        .losses = kv_losses(transaction->group->kv),
    };
}

struct order_row order_make(const struct transaction *transaction, const struct inode_row *row,
                            uint8_t kind) {
    return (struct order_row){
        .format = META_FORMAT,
        .kind = kind,
        .stripe_count = row->stripe_count,
        .chunk_generation = row->chunk_generation,
        .epoch = transaction->epoch,
        .truncate_size = row->truncate_size,
        .truncate_seq = row->truncate_seq,
        .pool_version = row->pool_version,
        .chunk_bytes = row->chunk_bytes,
        .seed = row->seed,
    };
}

/* Orders about one file may share a record, so what they are about is in the key. */
static uint32_t order_sequence(const struct order_row *order) {
    return order->kind == ORDER_CUT ? order->truncate_seq
                                    : order->chunk_generation | ORDER_DELETE_BIT;
}

static bool order_is_told(const struct transaction *transaction) {
    for (uint32_t i = 0; i < transaction->effect_count; i++) {
        if (transaction->effects[i].kind == EFFECT_ORDER) {
            return true;
        }
    }
    return false;
}

int order_put(struct transaction *transaction, struct ino ino, const struct order_row *order) {
    /* Orders are carried out in the order of their records, so the position leads the key. */
    uint64_t position = kv_position(transaction->group->kv) + 1;
    struct kv_key key = key_owner(ROW_ORDER, position, order_sequence(order), ino.value);

    if (!order_is_told(transaction)) {
        transaction_effect(transaction, (struct effect){.kind = EFFECT_ORDER, .ino = ino});
    }
    return transaction_put(transaction, &key, order, sizeof *order);
}

int inode_free(struct transaction *transaction, struct ino ino, const struct inode_row *row) {
    struct kv_key key = key_inode(ino);

    int r = transaction_delete(transaction, &key);
    if (r == 0 && mode_is_directory(row->mode)) {
        key = key_partition(ino);
        r = transaction_delete(transaction, &key);
    }
    r = r < 0 ? r : inline_drop(transaction, ino, row);
    if (r == 0 && row->nlink == 0) {
        key = key_owner(ROW_ORPHAN, ino.value, 0, 0);
        r = transaction_delete(transaction, &key);
    }
    if (r == 0 && row->data_state == DATA_CHUNKED) {
        struct order_row order = order_make(transaction, row, ORDER_DELETE);

        r = order_put(transaction, ino, &order);
    }
    transaction->inode_delta--;
    transaction->directory_delta -= mode_is_directory(row->mode);
    return r;
}

int inode_end(struct transaction *transaction, struct ino ino, const struct inode_row *row,
              bool *ret_freed) {
    *ret_freed = !promises_hold_orphan(transaction->group, ino);
    return *ret_freed ? inode_free(transaction, ino, row) : 0;
}

int inode_orphan(struct transaction *transaction, struct ino ino) {
    struct kv_key key = key_owner(ROW_ORPHAN, ino.value, 0, 0);
    struct mark_row mark = {.format = META_FORMAT, .epoch = transaction->epoch};

    return transaction_put(transaction, &key, &mark, sizeof mark);
}

/* The inode has no name any more, but somebody may have it open. */
static int orphan_make(struct transaction *transaction, struct ino ino,
                       const struct inode_row *row) {
    struct inode_row changed = *row;

    changed.nlink = 0;
    inode_touch(transaction, &changed);
    if (mode_is_directory(row->mode)) {
        changed.flags |= INODE_DYING;
    }
    int r = inode_orphan(transaction, ino);
    if (r == 0 && mode_is_directory(row->mode)) {
        struct kv_key key = key_partition(ino);
        uint8_t state = PARTITION_DYING;

        r = transaction_patch(transaction, &key, offsetof(struct partition_row, state),
                              (struct bytes){&state, sizeof state});
    }
    return r < 0 ? r : INODE_PATCH(transaction, ino, &changed, format, mtime_ns);
}

/* A half about the inode, for who has it. */
static int half_send(struct transaction *transaction, enum half_kind kind, struct ino ino,
                     const struct inode_row *row, const struct link_move *move) {
    struct half half = {.kind = (uint8_t)kind,
                        .mode = row->mode,
                        .uid = row->uid,
                        .gid = row->gid,
                        .domain = row->domain,
                        .ino = ino.value};

    half.from = row->nlink;
    if (kind == HALF_MOVED) {
        half.from = move->from.value;
        half.from_index = move->from_index;
    }
    if (move) {
        half.to = move->to.value;
        half.to_index = move->to_index;
    }
    return crossing_half(transaction, crossing_log(transaction, ino), &half,
                         (struct bytes){NULL, 0});
}

int inode_link(struct transaction *transaction, struct ino ino, const struct inode_row *row,
               const struct link_move *move) {
    struct inode_row changed = *row;

    if (crossing_is_elsewhere(transaction, ino)) {
        return half_send(transaction, HALF_LINK, ino, row, move);
    }
    changed.nlink++;
    inode_touch(transaction, &changed);
    if (row->nlink > 0) {
        return INODE_PATCH(transaction, ino, &changed, format, mtime_ns);
    }
    struct kv_key key = key_owner(ROW_ORPHAN, ino.value, 0, 0);
    changed.parent = move->to.value;
    changed.parent_name = move->to_index;
    int r = transaction_delete(transaction, &key);
    return r < 0 ? r : inode_put(transaction, ino, &changed);
}

int inode_moved(struct transaction *transaction, struct ino ino, const struct inode_row *row,
                const struct link_move *move) {
    struct inode_row changed = *row;
    bool first_link = changed.parent == move->from.value && changed.parent_name == move->from_index;

    if (crossing_is_elsewhere(transaction, ino)) {
        return half_send(transaction, HALF_MOVED, ino, row, move);
    }
    inode_touch(transaction, &changed);
    if (first_link || mode_is_directory(row->mode)) {
        changed.parent = move->to.value;
        changed.parent_name = move->to_index;
    }
    return inode_put(transaction, ino, &changed);
}

int inode_unlink(struct transaction *transaction, struct ino ino, const struct inode_row *row,
                 uint32_t *ret_nlink) {
    struct group *group = transaction->group;
    struct inode_row changed = *row;

    if (crossing_is_elsewhere(transaction, ino)) {
        *ret_nlink = mode_is_directory(row->mode) ? 0 : row->nlink - 1;
        return half_send(transaction, HALF_UNLINK, ino, row, NULL);
    }
    if (mode_is_directory(row->mode)) {
        int r = stakes_meet(transaction, stake_of(STAKE_WITHIN, ino), STAKE_CHANGE);

        if (r < 0) {
            return r;
        }
    }

    if (!mode_is_directory(row->mode) && row->nlink > 1) {
        changed.nlink--;
        inode_touch(transaction, &changed);
        *ret_nlink = changed.nlink;
        return INODE_PATCH(transaction, ino, &changed, format, mtime_ns);
    }
    *ret_nlink = 0;
    /* A session that is not back yet after a restart may have it open too. */
    if (opens_any(&group->opens, ino) || group->sessions.unattached_count > 0) {
        return orphan_make(transaction, ino, row);
    }
    changed.nlink = 1; /* it has no O row */
    return inode_free(transaction, ino, &changed);
}
