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

/* Whether chunks may reach beyond the size although nobody writes. */
static bool end_is_unsure(const struct transaction *transaction, const struct inode_row *row) {
    return row->data_state == DATA_CHUNKED && row->losses != kv_losses(transaction->group->kv);
}

/* Somebody has it open for writing since before the loss, or its close was lost: then the OSTs know
 * how long it is, and the call waits for them. */
static int end_ask(struct transaction *transaction, struct ino ino) {
    struct group *group = transaction->group;

    if (!group->rpc) {
        return 0;
    }
    if (settle_has_room(group, ino)) {
        settle_begin(group, ino, NULL);
        group_again(group);
    }
    return transaction_stall(transaction);
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
    row->losses = kv_losses(transaction->group->kv);
    row->flags = (uint16_t)((row->flags & ~INODE_TAIL) | INODE_CUT_PENDING);
    transaction->after_sync = true;
    struct order_row order = order_make(transaction, row, ORDER_CUT);
    return order_put(transaction, ino, &order);
}

static int chunks_cut(struct transaction *transaction, struct ino ino, uint64_t size,
                      struct inode_row *row) {
    /* What a writer has written and not settled may lie beyond the size that we know. */
    bool writers = opens_any_writer(&transaction->group->opens, ino, NULL);

    if (writers && size > row->size && end_is_unsure(transaction, row)) {
        int r = end_ask(transaction, ino);

        if (r < 0) {
            return r;
        }
    }
    if (writers || size < row->size) {
        return cut_stage(transaction, ino, size, row);
    }
    return end_is_unsure(transaction, row) || row->flags & INODE_TAIL
               ? cut_stage(transaction, ino, row->size, row)
               : 0;
}

int truncate_unsure_end(struct transaction *transaction, struct ino ino, struct inode_row *row) {
    bool unsure = end_is_unsure(transaction, row);

    if (!unsure && !(row->flags & INODE_TAIL)) {
        return 0;
    }
    int r = inode_size_known(transaction, ino, row);
    if (r == 0 && opens_any_writer(&transaction->group->opens, ino, NULL)) {
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
