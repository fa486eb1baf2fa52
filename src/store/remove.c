/* chunk_delete: all chunks of a deleted file, some rows a transaction, from resume_chunk on.
 *
 * The order leaves the metadata target only when the file's end is on disk there, and is repeated
 * until it is on disk here: so a step may be done twice, and ends in what is not there any more. */
#include "store/operations.h"
#include <assert.h>

enum { REMOVE_STEPS = 4 };

/* Finds rows of the file from the cursor on, and begins; those before one that must be waited for
 * do not wait with it, as many deleted ones may lie between. -ERR_NOT_FOUND: there are none. */
static int remove_begin(struct ost *ost, struct request *request, uint64_t *ret_next) {
    const struct chunk_delete_request *order = &request->call->request.chunk_delete;
    const struct chunk_id file = {order->ino, order->generation, 0};
    struct kv_cursor cursor;
    struct bytes value;
    uint32_t count = 0;
    struct kv_need need;
    int r = 0;

    change_begin(&ost->change, ost->kv);
    request_walk(request, &file, &cursor);
    while (r == 0 && count < ost->options.step_segments) {
        r = kv_next(ost->kv, &cursor, &value);
        if (r == 0) {
            *ret_next = kv_key_split(&cursor.key).index >> STORE_INDEX_BITS;
            r = change_row_delete(&ost->change, &cursor.key, value);
            count++;
        } else if (count > 0 && (r == -ERR_PENDING || r == -ERR_NOT_FOUND)) {
            r = 0;
            break;
        }
    }
    if (r < 0) {
        request_walked(request, r, &cursor);
        return r;
    }
    r = change_need(&ost->change, &need);
    return r < 0 ? r : request_begin(ost, request, &need);
}

static int remove_step(struct ost *ost, struct request *request) {
    uint64_t next = request->cursor;
    int r = request->io_result ? request->io_result : space_quarantine(ost, request);

    if (r == 0) {
        r = remove_begin(ost, request, &next);
    }
    if (r != 0) {
        return r;
    }
    r = change_stage(&ost->change);
    if (r < 0) {
        kv_abort(ost->kv);
        return r;
    }
    assert(next >= request->cursor);
    (void)change_commit(&ost->change, ost->read_number);
    request->cursor = next;
    ost->counters.deletes++;
    return 0;
}

void remove_run(struct ost *ost, struct request *request) {
    struct call *call = request->call;
    int r = 0;

    if (request->stage == 0) {
        request->stage = 1;
        request->cursor = call->request.chunk_delete.resume_chunk;
        r = request->cursor > FILE_BYTES_MAX / CHUNK_BYTES_MIN ? -ERR_INVALID : 0;
    }
    while (r == 0 && request->sum < REMOVE_STEPS) {
        r = remove_step(ost, request);
        request->sum += r == 0;
    }
    bool end = r == -ERR_NOT_FOUND;

    if (end) {
        const struct chunk_id file = {call->request.chunk_delete.ino,
                                      call->request.chunk_delete.generation, 0};

        r = cut_mark_drop(ost, request, &file);
    }
    if (r == REQUEST_WAITS || request_stops(ost, request, r)) {
        return;
    }
    call->reply.chunk_delete = (struct chunk_delete_reply){.resume_chunk = request->cursor,
                                                           .end = end,
                                                           .position = kv_seal(ost->kv),
                                                           .term = kv_term(ost->kv)};
    request_finish(ost, request, 0);
}
