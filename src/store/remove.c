/* chunk_delete: all chunks of a deleted file, some rows a transaction, from resume_chunk on.
 *
 * The order leaves the metadata target only when the file's end is on disk there, and is repeated
 * until it is on disk here: so a step may be done twice, and ends in what is not there any more. */
#include "store/operations.h"

enum { REMOVE_ROWS_A_STEP = 64, REMOVE_STEPS = 4, REMOVE_RECORD_BYTES = 8 * 1024 };

/* Deletes rows of the file from the cursor on. -ERR_NOT_FOUND: there are none. */
static int remove_stage(struct ost *ost, struct request *request, uint64_t *ret_next) {
    const struct chunk_delete_request *order = &request->call->request.chunk_delete;
    struct chunk_id id = {order->ino, order->generation, request->cursor};
    struct chunk_id after = {order->ino, order->generation, UINT64_MAX >> STORE_INDEX_BITS};
    struct kv_key from = chunk_head_key(&id);
    struct kv_key to = chunk_head_key(&after);
    struct kv_cursor cursor;
    struct bytes value;
    uint32_t count = 0;
    int r = 0;

    kv_cursor_init(&cursor, &from, &to);
    while (r == 0 && count < REMOVE_ROWS_A_STEP) {
        r = kv_next(ost->kv, &cursor, &value);
        if (r == 0) {
            *ret_next = kv_key_split(&cursor.key).index >> STORE_INDEX_BITS;
            r = change_row_delete(&ost->change, &cursor.key, value);
            count++;
        }
    }
    if (r < 0 && (r != -ERR_NOT_FOUND || count == 0)) {
        return r;
    }
    return change_stage(&ost->change);
}

static int remove_step(struct ost *ost, struct request *request) {
    uint64_t next = request->cursor;
    int r = request->io_result ? request->io_result : space_quarantine(ost, request);

    if (r == 0 && !request_admit(ost, request, REMOVE_RECORD_BYTES, 0)) {
        return REQUEST_WAITS;
    }
    if (r != 0) {
        return r;
    }
    change_begin(&ost->change, ost->kv);
    r = remove_stage(ost, request, &next);
    if (r < 0) {
        change_abort(&ost->change);
        return request_log_full(ost, request, r);
    }
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
