/* inline_read, inline_write, inline_convert: the data of small files, and its way out to chunks.
 *
 *     EMPTY --inline_write--> INLINE --convert COMMIT--> CHUNKED
 *       +---------- convert BEGIN -----------------------^
 *
 * A file may be made CHUNKED, and become EMPTY by its first small write: untouched.h.
 * Who meets a state further on than it thought gets attributes and capability, and nothing is done.
 * A conversion's generation is drawn at BEGIN and comes back with COMMIT: of two that race, each
 * writes chunks of its own, and those of the loser are deleted (move.h). */
#include "meta/group_internal.h"
#include "meta/inline.h"
#include "meta/move.h"
#include "meta/operations.h"
#include "meta/truncate.h"
#include "meta/untouched.h"
#include "meta/usage.h"

/* A small part of the interval of sync points, which take what is older. */
#define CONVERT_YOUNG_NS ((int64_t)NS_PER_S / 10)

int op_inline_read(struct transaction *transaction, struct call *call) {
    struct inline_read_reply *reply = &call->reply.inline_read;
    struct ino ino = call->request.inline_read.ino;
    const struct inode_row *row;

    int r = inode_get(transaction, ino, &row);
    r = r < 0 ? r : inode_is_open(transaction, ino, OPEN_READ);
    if (r == 0 && !mode_is_regular(row->mode)) {
        r = -ERR_INVALID;
    }
    r = r < 0 ? r : attributes_read(transaction, ino, row, &reply->attributes);
    if (r < 0) {
        return r;
    }
    capability_fill(transaction, ino, row, rights_of(transaction, ino, 0), &reply->capability);
    call->bulk_in.size = 0;
    uint64_t size = row->data_state == DATA_INLINE ? row->size : 0;
    return inline_get(transaction, ino, MIN(size, (uint64_t)INLINE_BYTES_MAX), &call->bulk_in);
}

int op_inline_write(struct transaction *transaction, struct call *call) {
    const struct inline_write_request *request = &call->request.inline_write;
    struct inline_write_reply *reply = &call->reply.inline_write;
    const struct inode_row *row;

    int r = inode_get(transaction, request->ino, &row);
    r = r < 0 ? r : inode_is_open(transaction, request->ino, OPEN_WRITE);
    if (r == 0 && (!mode_is_regular(row->mode) || request->data.size == 0 ||
                   request->offset > INLINE_BYTES_MAX ||
                   request->data.size > INLINE_BYTES_MAX - request->offset)) {
        r = -ERR_INVALID;
    }
    if (r < 0) {
        return r;
    }
    struct inode_row changed = *row;
    bool is_given_back =
        untouched_give_back(transaction, request->ino, request->untouched, &changed);
    if (changed.data_state != DATA_CHUNKED) {
        r = inline_put(transaction, request->ino, request->offset, request->data);
        changed.data_state = DATA_INLINE;
        changed.size = MAX(row->size, request->offset + request->data.size);
        inode_touch(transaction, &changed);
        changed.mtime_ns = changed.ctime_ns;
        if (request->drop_suid) {
            changed.mode = permission_drop_set_ids(changed.mode);
        }
        /* Everything up to the mode changes, and mostly nothing behind it. */
        r = r < 0           ? r
            : is_given_back ? inode_put(transaction, request->ino, &changed)
                            : INODE_PATCH(transaction, request->ino, &changed, format, uid);
    } else if (untouched_end(&changed)) {
        r = inode_put(transaction, request->ino, &changed);
    }
    r = r < 0 ? r : attributes_read(transaction, request->ino, &changed, &reply->attributes);
    if (r == 0) {
        capability_fill(transaction, request->ino, &changed,
                        rights_of(transaction, request->ino, 0), &reply->capability);
    }
    return r;
}

static int convert_begin(struct transaction *transaction, struct inode_row *row,
                         struct call *call) {
    struct ino ino = call->request.inline_convert.ino;
    uint32_t generation = 0;

    if (row->data_state == DATA_CHUNKED) {
        return untouched_end(row) ? inode_put(transaction, ino, row) : 0;
    }
    int r = transaction_generation(transaction, &generation);
    if (r == 0 && row->data_state == DATA_INLINE) {
        r = move_begin(transaction, ino, row, generation);
    }
    if (r < 0) {
        return r;
    }
    row->chunk_generation = generation;
    if (row->data_state == DATA_EMPTY) {
        row->data_state = DATA_CHUNKED;
        usage_set(row, 0);
        row->truncate_position = kv_position(transaction->group->kv) + 1;
        row->losses = kv_losses(transaction->group->kv); /* Nobody has written these chunks yet. */
        row->epoch = transaction->epoch;
        return inode_put(transaction, ino, row);
    }
    /* The bytes go with this very answer, so a second copy of the request gets new ones. */
    transaction->repeatable = true;
    call->bulk_in.size = 0;
    return inline_get(transaction, ino, MIN(row->size, (uint64_t)INLINE_BYTES_MAX), &call->bulk_in);
}

/* Whether the inline bytes have to be on disk as a chunk before they go as rows. Not while the file
 * is so young that nothing of it can be expected to survive a power loss, nobody has synced
 * anything since it was made, and only its maker has had it open for writing and has it open now:
 * who will sync that target when he wants to be sure, and hear of its losses. */
static bool convert_is_promised(const struct transaction *transaction, struct ino ino,
                                const struct inode_row *row) {
    const struct group *group = transaction->group;
    const struct open_entry *own = opens_find(&group->opens, ino, transaction->session);
    bool young = row->btime_ns > 0 && transaction->now_ns < row->btime_ns + CONVERT_YOUNG_NS;

    return row->data_state == DATA_INLINE && row->size > 0 &&
           (!young || (uint64_t)row->btime_ns <= group->promised_epoch ||
            opens_any_other(&group->opens, ino, own));
}

/* Power loss has taken the record of its BEGIN, or the move was ended: what was written is deleted,
 * once more in that case. Never what is the file's, or may become so when another session commits.
 */
static int convert_unknown(struct transaction *transaction, const struct inode_row *row,
                           const struct inline_convert_request *request) {
    struct inode_row lost = *row;
    int r = move_find(transaction, request->ino, request->generation);

    if (r != -ERR_NOT_FOUND) {
        return r;
    }
    lost.chunk_generation = request->generation;
    struct order_row order = order_make(transaction, &lost, ORDER_DELETE);
    return order_put(transaction, request->ino, &order);
}

static int convert_commit(struct transaction *transaction, struct inode_row *row,
                          struct call *call) {
    const struct inline_convert_request *request = &call->request.inline_convert;
    bool done = row->data_state == DATA_CHUNKED && row->chunk_generation == request->generation;

    if (done || request->generation == 0) {
        return done ? 0 : -ERR_INVALID;
    }
    int r = move_check(transaction, request->ino, request->generation);
    if (r < 0 && r != -ERR_NOT_FOUND) {
        return r;
    }
    if (r == -ERR_NOT_FOUND || row->data_state != DATA_INLINE ||
        row->epoch != request->inline_epoch ||
        (!request->synced && convert_is_promised(transaction, request->ino, row))) {
        transaction->answer = -ERR_CONFLICT;
        return r == 0 ? move_lose(transaction, request->ino, request->generation)
                      : convert_unknown(transaction, row, request);
    }
    r = move_commit(transaction, request->ino, request->generation);
    r = r < 0 ? r : inline_drop(transaction, request->ino, row);
    row->data_state = DATA_CHUNKED;
    usage_set(row,
              row->size > 0); /* The inline bytes are one block, which its client has written. */
    row->chunk_generation = request->generation;
    row->truncate_position = kv_position(transaction->group->kv) + 1;
    row->size = MAX(row->size, MIN(request->size, FILE_BYTES_MAX));
    inode_touch(transaction, row);
    row->mtime_ns = row->ctime_ns;
    return r < 0 ? r : inode_put(transaction, request->ino, row);
}

int op_inline_convert(struct transaction *transaction, struct call *call) {
    const struct inline_convert_request *request = &call->request.inline_convert;
    struct inline_convert_reply *reply = &call->reply.inline_convert;
    bool begins = request->stage == INLINE_CONVERT_BEGIN;
    const struct inode_row *row;

    int r = inode_get(transaction, request->ino, &row);
    r = r < 0 ? r : inode_is_open(transaction, request->ino, OPEN_WRITE);
    if (r == 0 &&
        (!mode_is_regular(row->mode) || (!begins && request->stage != INLINE_CONVERT_COMMIT))) {
        r = -ERR_INVALID;
    }
    if (r < 0) {
        return r;
    }
    struct inode_row changed = *row;
    r = begins ? convert_begin(transaction, &changed, call)
               : convert_commit(transaction, &changed, call);
    /* By the row that is there: what becomes chunks by this has had no others yet. */
    r = r < 0 ? r : inode_size_known(transaction, request->ino, row);
    if (r < 0) {
        return r;
    }
    attributes_fill(request->ino, &changed, NULL, &reply->attributes);
    uint32_t rights = rights_of(transaction, request->ino, 0);
    if (convert_is_promised(transaction, request->ino, &changed)) {
        rights |= RIGHT_SYNC_FIRST;
    }
    /* Of what he has done himself he is told that it is lost. */
    changed.truncate_position = row->truncate_position;
    capability_fill(transaction, request->ino, &changed, rights, &reply->capability);
    reply->layout = inode_layout(&changed);
    return 0;
}
