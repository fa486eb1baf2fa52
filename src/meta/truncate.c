/* Truncation: by rows when the data is inline, by sequence when it is in chunks.
 *
 * (truncate_seq, truncate_size) goes with each capability: a chunk whose head is older is cut to
 * that size first. One pair says all only if no earlier cut that went deeper is still on its way,
 * so a later, longer one waits for it.
 *
 * After power loss chunks may reach beyond the size: a storage target had written more of the file
 * than the group. Nobody may see those bytes once the file grows, so the first to make it longer,
 * or to open it for writing, cuts it at the size that it has: once per inode and loss. */
#include "meta/truncate.h"
#include "meta/group_internal.h"
#include "meta/usage.h"
#include <string.h>

/* Removes inline bytes at and behind size. */
static int pieces_cut(struct transaction *transaction, struct ino ino, uint64_t size) {
    for (uint64_t piece = size / INLINE_PIECE_BYTES; piece < INLINE_PIECES_MAX; piece++) {
        uint64_t start = piece * INLINE_PIECE_BYTES;
        struct kv_key key = key_inline(ino, piece);
        struct bytes value;
        struct bytes data;

        int r = transaction_get(transaction, &key, &value);
        if (r == -ERR_NOT_FOUND) {
            continue;
        }
        r = r < 0 ? r : inline_row_check(value, &data);
        if (r == 0 && start >= size) {
            r = transaction_delete(transaction, &key);
        } else if (r == 0 && start + data.size > size) {
            r = transaction_put(transaction, &key, value.data,
                                sizeof(struct inline_row) + (size - start));
        }
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

/* Whether chunks may reach beyond the size although nobody writes. Not where that was asked when
 * not all had come back, and each has presented its opens since: what it had open was asked for
 * then. Who has ended instead may have written behind the answers. */
static bool end_is_unsure(const struct transaction *transaction, struct ino ino,
                          struct inode_row *row) {
    struct group *group = transaction->group;

    if (row->data_state == DATA_CHUNKED && row->losses != kv_losses(group->kv) &&
        group->sessions.unsure_count == 0 && fences_file_is_asked(&group->fences, ino)) {
        row->losses = kv_losses(group->kv);
        group->fences.sure_position = kv_position(group->kv) + 1;
    }
    return row->data_state == DATA_CHUNKED && row->losses != kv_losses(group->kv);
}

/* Somebody writes, or may: whose session has not come back since the loss. */
static bool may_be_written(const struct transaction *transaction, struct ino ino,
                           const struct inode_row *row, bool unsure) {
    const struct group *group = transaction->group;

    return opens_any_writer(&group->opens, ino, NULL) ||
           (unsure && group->sessions.unsure_count > 0 && !fences_are_over(&group->fences, row));
}

/* Then the OSTs know how long it is, and the call waits for them; once, as long as there are
 * sessions that have not come back. */
static int end_ask(struct transaction *transaction, struct ino ino) {
    return !transaction->group->rpc || fences_file_is_asked(&transaction->group->fences, ino)
               ? 0
               : settle_ask(transaction, ino);
}

static int cut_stage(struct transaction *transaction, struct ino ino, uint64_t size,
                     struct inode_row *row) {
    if ((row->flags & INODE_CUT_PENDING) && row->truncate_size < size) {
        /* The order leaves when its record is on disk, and is over when the OSTs' are. */
        group_sync_want(transaction->group, kv_position(transaction->group->kv));
        transaction->group->orders.urgent = true;
        return transaction_stall(transaction);
    }
    if (row->truncate_seq >= ORDER_DELETE_BIT - 1) {
        return -ERR_OVERFLOW;
    }
    row->truncate_seq++;
    row->truncate_size = size;
    row->truncate_position = kv_position(transaction->group->kv) + 1;
    /* Who is unsure may write on, at offsets below the size, too. */
    if (transaction->group->sessions.unsure_count == 0 ||
        fences_are_over(&transaction->group->fences, row)) {
        row->losses = kv_losses(transaction->group->kv);
    }
    row->flags = (uint16_t)((row->flags & ~INODE_TAIL) | INODE_CUT_PENDING);
    usage_cut(row, size, opens_any_writer(&transaction->group->opens, ino, NULL));
    transaction->after_sync = true;
    struct order_row order = order_make(transaction, row, ORDER_CUT);
    return order_put(transaction, ino, &order);
}

static int chunks_cut(struct transaction *transaction, struct ino ino, uint64_t size,
                      struct inode_row *row) {
    /* What a writer has written and not settled may lie beyond the size that we know. */
    bool unsure = end_is_unsure(transaction, ino, row);
    bool writers = may_be_written(transaction, ino, row, unsure);

    if (writers && size > row->size && unsure) {
        int r = end_ask(transaction, ino);

        if (r < 0) {
            return r;
        }
    }
    if (writers || size < row->size) {
        return cut_stage(transaction, ino, size, row);
    }
    return unsure || row->flags & INODE_TAIL ? cut_stage(transaction, ino, row->size, row) : 0;
}

int truncate_unsure_end(struct transaction *transaction, struct ino ino, struct inode_row *row) {
    uint16_t losses = row->losses;
    bool unsure = end_is_unsure(transaction, ino, row);
    int r = 0;

    if (row->losses != losses) {
        r = INODE_PATCH(transaction, ino, row, losses, blocks_high);
    }
    if (r < 0 || (!unsure && !(row->flags & INODE_TAIL))) {
        return r;
    }
    r = inode_size_known(transaction, ino, row);
    if (r == 0 && may_be_written(transaction, ino, row, unsure)) {
        return unsure ? end_ask(transaction, ino) : 0;
    }
    r = r < 0 ? r : cut_stage(transaction, ino, row->size, row);
    row->epoch = transaction->epoch;
    return r < 0 ? r : inode_put(transaction, ino, row);
}

int truncate_stage(struct transaction *transaction, struct ino ino, uint64_t size,
                   struct inode_row *row) {
    if (size > FILE_BYTES_MAX) {
        return -ERR_FILE_TOO_BIG;
    }
    int r = inode_size_known(transaction, ino, row);
    if (r == 0 && row->data_state == DATA_INLINE && size < row->size) {
        r = pieces_cut(transaction, ino, size);
    } else if (r == 0 && row->data_state == DATA_CHUNKED) {
        r = chunks_cut(transaction, ino, size, row);
    }
    if (r < 0) {
        return r;
    }
    row->size = size;
    inode_touch(transaction, row);
    row->mtime_ns = row->ctime_ns;
    return 0;
}
