/* settle: what a client has written: size and time; and the close of one open.
 *
 * A size is only raised, and only if it was seen under the truncate_seq that holds now: a client
 * that has not heard of the last truncation may speak of bytes that were cut, so the OSTs are asked
 * instead; the inode says so until they were, as whoever has closed it tells it to nobody again.
 * Sizes of files without chunks are exact already. */
#include "meta/group_internal.h"
#include "meta/inode.h"
#include "meta/open.h"
#include "meta/operations.h"
#include "meta/untouched.h"
#include "meta/usage.h"

/* The time of the last write as the client saw it: it is what getattr has shown there. */
static int64_t mtime_of(const struct inode_row *row, int64_t wanted_ns, int64_t now_ns) {
    if (wanted_ns <= 0 || wanted_ns > now_ns) {
        return now_ns;
    }
    /* Only a time in the future, which somebody has set, may be put back. */
    return row->mtime_ns > now_ns ? wanted_ns : MAX(row->mtime_ns, wanted_ns);
}

static int size_settle(struct transaction *transaction, const struct settle_request *request,
                       struct inode_row *row) {
    if (row->data_state != DATA_CHUNKED) {
        return 0;
    }
    if (request->truncate_seq == row->truncate_seq) {
        row->size = MAX(row->size, MIN(request->size, FILE_BYTES_MAX));
    } else if (transaction->group->rpc) {
        if (!settle_has_room(transaction->group, request->ino)) {
            return transaction_stall(transaction);
        }
        row->flags |= INODE_UNTOLD;
        transaction_effect(transaction,
                           (struct effect){.kind = EFFECT_SETTLE, .ino = request->ino});
    }
    return 0;
}

/* Where a start came between, what was told before it may be lost. */
static void blocks_settle(const struct settle_request *request, const struct open_entry *entry,
                          struct inode_row *row) {
    usage_settle(row, request);
    if (entry->presented) {
        usage_unsure(row);
    }
}

/* touched: size or times differ, too. One patch has all that most settles change. */
static int row_patch(struct transaction *transaction, struct ino ino, const struct inode_row *row,
                     struct inode_row *changed, bool touched) {
    struct inode_row before = *row;
    int r = 0;

    if (touched) {
        changed->epoch = transaction->epoch;
    }
    if (touched && changed->blocks_low != before.blocks_low) {
        r = INODE_PATCH(transaction, ino, changed, epoch, atime_ns);
        before.blocks_low = changed->blocks_low;
    } else if (touched) {
        r = INODE_PATCH(transaction, ino, changed, epoch, mode);
    }
    return r < 0 ? r : usage_patch(transaction, ino, &before, changed);
}

/* With a close of that entry's. Answers that come in meanwhile may be older than what it wrote. */
static bool count_is_due(const struct transaction *transaction, struct ino ino,
                         const struct inode_row *row, const struct open_entry *entry) {
    return settle_has_job(transaction->group, ino) ||
           (entry->write_count == 1 && usage_is_due(transaction, ino, row, entry->session));
}

/* Of an inode that nobody names it may be the end. */
static int close_by_name(struct transaction *transaction, const struct settle_request *request) {
    const struct effect close = {.kind = EFFECT_CLOSE, .ino = request->ino, .name = request->name};
    const struct inode_row *row;
    bool freed = false;

    transaction->repeatable = true;
    int r = inode_get(transaction, request->ino, &row);
    return r == -ERR_STALE ? 0 : r < 0 ? r : close_stage(transaction, row, &close, &freed);
}

int op_settle(struct transaction *transaction, struct call *call) {
    const struct settle_request *request = &call->request.settle;
    const struct open_entry *entry =
        opens_find(&transaction->group->opens, request->ino, transaction->session);
    bool closes_writer = request->close && (request->open_flags & OPEN_WRITE);
    bool closes_reader = request->close && !closes_writer;
    const struct inode_row *row;
    bool freed = false;

    if (request->open_flags & ~(uint32_t)OPEN_FLAGS_KNOWN) {
        return -ERR_INVALID;
    }
    if (request->name != 0) {
        return close_by_name(transaction, request);
    }
    if (!entry || (closes_writer && entry->write_count == 0) ||
        (closes_reader && entry->read_count == 0)) {
        return -ERR_BAD_HANDLE;
    }
    bool writes = entry->write_count > 0;
    int r = inode_get(transaction, request->ino, &row);
    if (r < 0) {
        return r == -ERR_STALE ? -ERR_CORRUPT : r;
    }
    struct inode_row changed = *row;
    bool is_given_back = closes_writer && untouched_give_back(transaction, request->ino,
                                                              request->untouched, &changed);
    /* The log has lost that there are those chunks, and with them what was written. */
    bool is_of_others = request->generation != 0 && row->chunk_generation != request->generation;
    if (writes && mode_is_regular(row->mode) && !is_of_others) {
        r = size_settle(transaction, request, &changed);
        blocks_settle(request, entry, &changed);
    }
    if (closes_writer || changed.size > 0) {
        (void)untouched_end(&changed);
    }
    if (writes && request->wrote) {
        changed.mtime_ns = mtime_of(row, request->mtime_ns, transaction->now_ns);
        inode_touch(transaction, &changed);
    }
    struct effect close = {.kind = EFFECT_CLOSE, .ino = request->ino, .flags = request->open_flags};
    if (r == 0 && request->close) {
        r = close_stage(transaction, is_given_back ? &changed : row, &close, &freed);
    }
    bool touched = changed.size != row->size || (writes && request->wrote);
    if (r == 0 && !freed && is_given_back) {
        changed.epoch = touched ? transaction->epoch : changed.epoch;
        r = inode_put(transaction, request->ino, &changed);
    } else if (r == 0 && !freed) {
        r = row_patch(transaction, request->ino, row, &changed, touched);
    }
    if (r == 0 && closes_writer && !freed &&
        count_is_due(transaction, request->ino, &changed, entry)) {
        transaction_effect(transaction, (struct effect){.kind = EFFECT_COUNT, .ino = request->ino});
    }
    if (r < 0 || mode_is_directory(row->mode)) {
        return r;
    }
    attributes_fill(request->ino, &changed, NULL, &call->reply.settle.attributes);
    return 0;
}
