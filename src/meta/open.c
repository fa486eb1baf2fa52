/* Opening. */
#include "meta/open.h"
#include "meta/group_internal.h"
#include "meta/move.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

int open_check(const struct inode_row *row, const struct credentials *who, uint32_t open_flags) {
    bool write = open_flags & (OPEN_WRITE | OPEN_TRUNCATE);
    uint32_t mask = (open_flags & OPEN_READ ? ACCESS_READ : 0) | (write ? ACCESS_WRITE : 0) |
                    (open_flags & OPEN_EXECUTE ? ACCESS_EXECUTE : 0);

    if (mode_is_link(row->mode)) {
        return -ERR_LOOP;
    }
    if ((open_flags & OPEN_DIRECTORY) && !mode_is_directory(row->mode)) {
        return -ERR_NOT_DIRECTORY;
    }
    if (mode_is_directory(row->mode) && write) {
        return -ERR_IS_DIRECTORY;
    }
    if (mask == 0 || (open_flags & ~(uint32_t)OPEN_FLAGS_KNOWN)) {
        return -ERR_INVALID;
    }
    int r = permission_check(who, inode_ownership(row), mask);
    /* Pipes, sockets and devices are opened by the kernel that has them. */
    bool ours = mode_is_directory(row->mode) || mode_is_regular(row->mode);
    return r < 0 || ours ? r : -ERR_NO_DEVICE;
}

void open_is_shared(const struct transaction *transaction, const struct inode_row *row,
                    uint32_t open_flags) {
    struct group *group = transaction->group;

    if ((open_flags & OPEN_WRITE) && row->data_state != DATA_CHUNKED) {
        group->promised_epoch = group->numbers.epoch;
    }
}

int open_writer_stage(struct transaction *transaction, struct ino ino) {
    const struct open_entry *entry =
        opens_find(&transaction->group->opens, ino, transaction->session);
    struct kv_key key = key_owner(ROW_WRITER, ino.value, 0, transaction->session->id.value);
    struct mark_row mark = {.format = META_FORMAT, .epoch = transaction->epoch};

    return entry && entry->has_row ? 0 : transaction_put(transaction, &key, &mark, sizeof mark);
}

const struct kv_need open_lose_need = {.rows = 16 + 2 * MOVES_MAX, .record_bytes = 3000};

int open_writer_lose(struct transaction *transaction, const struct open_entry *entry) {
    struct kv_key key = key_owner(ROW_WRITER, entry->ino.value, 0, entry->session->id.value);
    int r = transaction_delete(transaction, &key);

    return r < 0 ? r : moves_lose(transaction, entry);
}

bool open_is_by_name(const struct call *call) {
    return call->header.opcode == OP_OPEN     ? wire_opens_by_name(call->request.open.open_flags)
           : call->header.opcode == OP_SETTLE ? call->request.settle.name != 0
                                              : false;
}

int open_stage(struct transaction *transaction, struct ino ino, const struct credentials *who,
               uint32_t open_flags) {
    if (!opens_may(&transaction->group->opens, ino, transaction->session, who->uid)) {
        return -ERR_TOO_MANY_OPEN;
    }
    const struct call *call = transaction->call;

    transaction->repeatable = open_is_by_name(call);
    /* Power that takes this open must not take what says that it may have been (fences.h). */
    if ((open_flags & OPEN_WRITE) &&
        transaction->group->fences.sure_position > kv_synced_position(transaction->group->kv)) {
        transaction->sync_position = transaction->group->fences.sure_position;
    }
    transaction_effect(
        transaction, (struct effect){.kind = EFFECT_OPEN,
                                     .ino = ino,
                                     .flags = open_flags,
                                     .uid = who->uid,
                                     .name = transaction->repeatable ? call->header.sequence : 0});
    return open_flags & OPEN_WRITE ? open_writer_stage(transaction, ino) : 0;
}

void open_shares_tell(struct group *group) {
    const struct kv_options *kv = &group->options.kv;
    struct user_shares *shares = &group->opens.shares;
    char line[256];
    uint32_t uid;

    while (kv->log && user_shares_to_tell(shares, group->now_ns, &uid)) {
        (void)snprintf(line, sizeof line,
                       "%.100s: user %" PRIu32 " has as many files open by all mounts as one may, "
                       "%" PRIu32 " of %" PRIu32 " (twice open_files_max): opens of his fail with "
                       "ENFILE",
                       kv->directory ? kv->directory : "metadata", uid, user_shares_of_user(shares),
                       shares->max);
        kv->log(kv->log_context, line);
    }
}

int close_stage(struct transaction *transaction, const struct inode_row *row,
                const struct effect *effect, bool *ret_freed) {
    const struct group *group = transaction->group;
    struct ino ino = effect->ino;
    const struct open_entry *entry = opens_find(&group->opens, ino, transaction->session);
    int r = 0;

    *ret_freed = false;
    if (!entry || (effect->name != 0 && (!entry->named || entry->name > effect->name))) {
        return 0;
    }
    assert(entry->write_count == 0 || entry->has_row);
    transaction_effect(transaction, *effect);
    /* The row also goes where no open of it was presented: nothing else would take it. */
    bool writer_ends = effect->name == 0 && (effect->flags & OPEN_WRITE) && entry->has_row &&
                       entry->write_count <= 1;
    if (writer_ends) {
        r = open_writer_lose(transaction, entry);
    }
    /* Else it may be of an open whose answer was lost, and keeps the file for who asks again. */
    bool unasked = entry->has_row && entry->write_count == 0 && !writer_ends;
    bool last = entry->named + entry->read_count + entry->write_count == 1 && !unasked &&
                !opens_any_other(&group->opens, ino, entry) &&
                group->sessions.unattached_count == 0;
    return r == 0 && row->nlink == 0 && last ? inode_end(transaction, ino, row, ret_freed) : r;
}
