/* chunk_length: the last byte written of a file on this OST, and the space that it uses.
 *
 * Asked after sessions ended uncleanly, so it fences first: from the answer on, also after our
 * own restart, those incarnations change nothing here any more. Then it walks the heads, some of
 * them a step; writes of others may pass it, as they may pass the answer. */
#include "base/endian.h"
#include "store/operations.h"

enum { LENGTH_FENCE, LENGTH_FENCED, LENGTH_WALK, LENGTH_HEADS_A_STEP = 256 };

static struct wire_rows fence_rows(const struct chunk_length_request *order) {
    return (struct wire_rows){.bytes = order->fences,
                              .row_bytes = order->fences_row_bytes,
                              .row_bytes_min = WIRE_FENCE_BYTES_MIN,
                              .count_max = WIRE_FENCES_MAX};
}

static struct session_entry fence_at(const struct wire_rows *fences, uint32_t index) {
    struct wire_fence fence;

    wire_rows_get(fences, index, &fence, sizeof fence);
    return (struct session_entry){.session = fence.session, .incarnation = fence.incarnation};
}

static int fences_check(const struct wire_rows *fences) {
    int r = wire_rows_check(fences);

    for (uint32_t i = 0; r == 0 && i < wire_rows_count(fences); i++) {
        r = fence_at(fences, i).session != 0 ? 0 : -ERR_INVALID;
    }
    return r;
}

/* One that has to wait goes on from the first: those that are there already cost a look each. */
static int length_fence(struct ost *ost, struct request *request) {
    const struct chunk_length_request *order = &request->call->request.chunk_length;
    struct session_entry fence = {.session = order->fence_session,
                                  .incarnation = order->fence_incarnation};
    const struct wire_rows fences = fence_rows(order);
    uint64_t position = 0;
    uint64_t last = 0;
    int r = fences_check(&fences);

    if (r < 0) {
        return r;
    }
    if (fence.session == 0 && order->fences.size == 0) {
        request->stage = LENGTH_WALK;
        return 0;
    }
    if (fence.session != 0) {
        r = ost_session_fence(ost, request, fence, &position);
    }
    for (uint32_t i = 0; r == 0 && i < wire_rows_count(&fences); i++) {
        r = ost_session_fence(ost, request, fence_at(&fences, i), &last);
        position = MAX(position, last);
    }
    if (r == 0) {
        request->stage = LENGTH_FENCED;
        request_sync(ost, request, position);
        r = REQUEST_WAITS;
    }
    return r;
}

static void length_count(struct request *request, const struct store_head *head, uint64_t chunk) {
    const struct chunk_length_request *order = &request->call->request.chunk_length;
    uint32_t length = head->length;

    if (head->truncate_seq < order->truncate_seq) {
        length = MIN(length, chunk_bytes_before(chunk, head->chunk_bytes, order->truncate_size));
    }
    if (length > 0) {
        request->sum = MAX(request->sum, chunk * head->chunk_bytes + length);
    }
    request->more += head->block_count;
}

/* The next head at or behind the cursor; -ERR_NOT_FOUND at the end. */
static int length_next(struct ost *ost, struct request *request) {
    const struct chunk_length_request *order = &request->call->request.chunk_length;
    const struct chunk_id file = {order->ino, order->generation, 0};
    struct kv_cursor cursor;
    struct store_head head;
    struct bytes value;

    request_walk(request, &file, &cursor);
    int r = kv_next(ost->kv, &cursor, &value);
    if (r < 0) {
        request_walked(request, r, &cursor);
        return r;
    }
    uint64_t index = kv_key_split(&cursor.key).index;
    if (index % (1 << STORE_INDEX_BITS) == 0) {
        r = chunk_head_check(value, &head);
        if (r == 0) {
            length_count(request, &head, index >> STORE_INDEX_BITS);
        }
    }
    request->cursor = (index >> STORE_INDEX_BITS) + 1;
    return r;
}

void length_run(struct ost *ost, struct request *request) {
    struct call *call = request->call;
    int r = 0;

    if (request->stage == LENGTH_FENCED) {
        r = request->sync_result;
        request->stage = LENGTH_WALK;
    }
    if (request->stage == LENGTH_FENCE) {
        r = length_fence(ost, request);
    }
    for (uint32_t i = 0; r == 0 && i < LENGTH_HEADS_A_STEP; i++) {
        r = length_next(ost, request);
    }
    if (r == 0) {
        request_yield(ost, request);
        return;
    }
    if (r == REQUEST_WAITS || request_stops(ost, request, r == -ERR_NOT_FOUND ? 0 : r)) {
        return;
    }
    const struct wire_rows fences = fence_rows(&call->request.chunk_length);
    call->reply.chunk_length =
        (struct chunk_length_reply){.length = request->sum,
                                    .bytes_used = request->more * BLOCK_BYTES,
                                    .fenced_count = wire_rows_count(&fences),
                                    .losses = kv_losses(ost->kv)};
    request_finish(ost, request, 0);
}
