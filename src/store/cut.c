/* Truncation: of one chunk, for a write or an order, and of all chunks of a file beyond a size.
 *
 *     chunk   |####|####|##..|....|....|      cut inside the third block: it is replaced by one
 *              kept kept new   freed           that ends in zeros; the rest is freed
 *
 * Blocks at the end go first, some segments a transaction, and the head's length with them; the
 * last transaction brings the new sequence. A reader that knows the truncation sees zeros behind it
 * all along, one that does not knows an older file.
 *
 * Where the third block can't be read the cut is done all the same, and the block stays where it
 * is, damaged for good: reads of any of it fail until it is written over. */
#include "store/operations.h"
#include "base/crc32c.h"
#include <assert.h>
#include <inttypes.h>

enum { CUT_CHUNKS_A_STEP = 64 };

struct cut_fill {
    const uint8_t *old;
    uint32_t keep; /* bytes */
};

static uint32_t cut_fill(void *context, uint32_t i, uint8_t *data) {
    const struct cut_fill *fill = context;

    (void)i;
    memcpy(data, fill->old, fill->keep);
    memset(data + fill->keep, 0, BLOCK_BYTES - fill->keep);
    return crc32c(0, data, BLOCK_BYTES);
}

/* One transaction of a cut. */
struct cut_step {
    uint64_t first; /* blocks from here on to end become holes */
    uint64_t end;
    bool last;
    struct store_head head; /* as it is afterwards */
    struct extent straddle; /* the block that is cut through; count 0: none, or it is damaged */
    bool is_damaged;
    uint64_t damaged; /* if so, it */
    struct block_entry fresh;
    struct cut_fill fill;
};

/* What was promised behind the cut is given back. Behind the step all are holes. */
static int cut_promise(struct change *change, struct cut_step *step) {
    struct promise *promise = &change->promise;
    struct extent behind = {step->end, (uint32_t)(promise->block_count - step->end)};
    uint64_t given = change->promised_holes + promise_count(promise, behind);

    promise_drop(promise,
                 (struct extent){step->first, (uint32_t)(promise->block_count - step->first)});
    return change_promised(change, &step->head, step->head.promised - given, true);
}

/* Reads what it changes, and begins. */
static int cut_begin(struct ost *ost, struct request *request, const struct cut_order *order,
                     struct cut_step *step) {
    struct change *change = &ost->change;
    const struct chunk_id *id = &order->id;
    struct kv_need need;

    change_begin(change, ost->kv);
    int r = step->head.promise != STORE_PROMISE_NONE ? change_promise(change, id, &step->head) : 0;

    if (r == 0) {
        r = change_holes(change, id,
                         (struct extent){step->first, (uint32_t)(step->end - step->first)});
    }
    if (r == 0 && change->has_promise) {
        r = cut_promise(change, step);
    }

    if (r == 0 && step->straddle.count > 0) {
        r = change_entries(change, id, step->straddle, &step->fresh);
    } else if (r == 0 && step->is_damaged) {
        r = change_checksum(change, id, step->damaged, &step->fresh);
    }
    if (r == 0) {
        r = change_need(change, &need);
    }
    if (r == 0) {
        need.record_bytes += small_spans_bytes(step->straddle.count);
        need.data_bytes = step->straddle.count * BLOCK_BYTES;
        step->head.block_count = (uint32_t)((int64_t)step->head.block_count + change->block_delta);
        r = request_begin(ost, request, &need);
    }
    return r;
}

static int cut_stage(struct ost *ost, const struct cut_order *order, struct cut_step *step,
                     struct small_spans *spans) {
    struct change *change = &ost->change;
    const struct chunk_id *id = &order->id;
    struct small_part part = {&step->fresh, 1, cut_fill, &step->fill};
    int r = step->last && order->length == 0 ? change_head_delete(change, id)
                                             : change_head(change, id, &step->head, true);

    if (r == 0 && step->straddle.count > 0) {
        small_part_fill(ost, &part, spans);
    }
    if (r == 0) {
        r = change_stage(change);
    }
    return r < 0 ? r : small_spans_note(ost, spans);
}

/* The straddling block's old content and a new block for it; none when the old one is damaged. */
static int cut_straddle(struct ost *ost, struct request *request, const struct cut_order *order,
                        struct cut_step *step) {
    struct space_wish wish = {.lane = BLOCKS_LANE_SMALL, .count = 1};
    struct block_entry old;

    step->straddle = (struct extent){order->length / BLOCK_BYTES, 1};
    int r = chunk_entries_get(ost->kv, &order->id, step->straddle, &old);
    if (r < 0 || old.block == 0) {
        step->straddle.count = 0;
        return r;
    }
    step->fill.keep = order->length % BLOCK_BYTES;
    r = edge_get(ost, request, 0, old, &step->fill.old);
    if (r == 0) {
        return space_take(ost, request, &wish, &step->fresh);
    }
    if (r == -ERR_CORRUPT || r == -ERR_IO) {
        step->is_damaged = true;
        step->damaged = step->straddle.first;
        step->straddle.count = 0;
        step->fresh = (struct block_entry){old.block, CHUNK_CRC_DAMAGED};
        r = 0;
    }
    return r;
}

static int cut_commit(struct ost *ost, struct request *request, const struct cut_order *order,
                      struct cut_step *step) {
    struct small_spans spans = {.count = 0};
    int r = 0;

    if (step->last && order->length % BLOCK_BYTES && order->head.length > order->length) {
        r = cut_straddle(ost, request, order, step);
        if (r != 0) {
            return r;
        }
    }
    r = cut_begin(ost, request, order, step);
    if (r == 0) {
        r = cut_stage(ost, order, step, &spans);
        if (r < 0) {
            kv_abort(ost->kv);
        }
    }
    if (r != 0) {
        if (step->straddle.count > 0) {
            space_give_back(ost, &step->fresh, 1);
        }
        return r;
    }
    assert(spans.count == step->straddle.count && !(step->is_damaged && spans.count > 0));
    uint64_t position = change_commit(&ost->change, ost->read_number);
    small_spans_commit(ost, &spans, position);
    space_recorded(ost, step->straddle.count);
    ost->counters.cuts++;
    if (step->is_damaged) {
        ost->counters.cuts_through_damage++;
        ost_log(ost,
                "target %" PRIu32 ": block %" PRIu64 ", of chunk %" PRIu64 " of inode %#" PRIx64
                ", was cut through and can't be read: it answers EIO until all of it is written "
                "anew; restore the file from a copy, and check the disk",
                ost->options.target.value, step->fresh.block, order->id.chunk, order->id.ino.value);
    }
    return 0;
}

/* The chunk is no longer than that; what is promised may lie behind it. Its head gets the sequence
 * in any case: it refuses what was written before the truncation and comes late. */
static int cut_behind(struct ost *ost, struct request *request, const struct cut_order *order) {
    uint64_t keep = (order->length + BLOCK_BYTES - 1) / BLOCK_BYTES;
    struct cut_step step = {.first = keep, .end = keep, .last = true, .head = order->head};

    step.head.version++;
    step.head.truncate_seq = order->truncate_seq;
    step.head.epoch = ost_epoch(ost);
    return cut_commit(ost, request, order, &step);
}

int chunk_cut(struct ost *ost, struct request *request, const struct cut_order *order) {
    struct store_head head = order->head;

    assert(head.truncate_seq < order->truncate_seq);
    if (head.length <= order->length) {
        return cut_behind(ost, request, order);
    }
    while (head.length > order->length) {
        uint64_t end = (head.length + BLOCK_BYTES - 1) / BLOCK_BYTES;
        uint64_t keep = (order->length + BLOCK_BYTES - 1) / BLOCK_BYTES;
        uint64_t segment = (end - 1) / BLOCKS_PER_SEGMENT;
        uint64_t from = segment >= ost->options.step_segments
                            ? (segment - ost->options.step_segments + 1) * BLOCKS_PER_SEGMENT
                            : 0;
        struct cut_step step = {
            .first = MAX(keep, from),
            .end = (segment + 1) * BLOCKS_PER_SEGMENT,
            .last = keep >= from,
            .head = head,
        };

        step.end = MAX(step.end, step.first);
        step.head.version++;
        step.head.length = step.last ? order->length : (uint32_t)from * BLOCK_BYTES;
        step.head.truncate_seq = step.last ? order->truncate_seq : head.truncate_seq;
        step.head.epoch = ost_epoch(ost);
        assert(step.head.length < head.length && step.head.length >= order->length);
        assert(step.last == (step.head.length == order->length));
        assert(step.end - step.first <= ost->options.step_segments * BLOCKS_PER_SEGMENT);
        int r = space_quarantine(ost, request);
        if (r == 0) {
            r = cut_commit(ost, request, order, &step);
        }
        if (r != 0) {
            return r;
        }
        head = step.head;
    }
    return 0;
}

int chunk_cut_for(struct ost *ost, struct request *request, const struct capability *capability,
                  const struct store_head *head, bool *ret_done) {
    struct cut_order cut = {
        .id = request->id,
        .head = *head,
        .length =
            chunk_bytes_before(request->id.chunk, head->chunk_bytes, capability->truncate_size),
        .truncate_seq = capability->truncate_seq,
    };

    if (head->truncate_seq >= capability->truncate_seq ||
        (head->length <= cut.length && head->promise == STORE_PROMISE_NONE)) {
        return 0;
    }
    int r = chunk_cut(ost, request, &cut);
    *ret_done = r == 0;
    return r;
}

static int cut_check(const struct chunk_cut_request *order) {
    return order->chunk_bytes < CHUNK_BYTES_MIN || order->chunk_bytes > CHUNK_BYTES_MAX ||
                   order->chunk_bytes % SEGMENT_BYTES || order->truncate_size > FILE_BYTES_MAX ||
                   order->resume_chunk > FILE_BYTES_MAX / CHUNK_BYTES_MIN + 1
               ? -ERR_INVALID
               : 0;
}

/* Cuts the next chunk at or behind the cursor. -ERR_NOT_FOUND: there is none. */
static int cut_next(struct ost *ost, struct request *request) {
    const struct chunk_cut_request *order = &request->call->request.chunk_cut;
    struct chunk_id id = {order->ino, order->generation, request->cursor};
    struct kv_cursor cursor;
    struct bytes value;
    struct store_head head;

    request_walk(request, &id, &cursor);
    int r = kv_next(ost->kv, &cursor, &value);
    if (r < 0) {
        request_walked(request, r, &cursor);
        return r;
    }
    id.chunk = kv_key_split(&cursor.key).index >> STORE_INDEX_BITS;
    assert(id.chunk >= request->cursor);
    request->cursor = id.chunk;
    request->id = id;
    r = chunk_head_get(ost->kv, &id, &head);
    if (r == 0 && head.chunk_bytes != order->chunk_bytes) {
        return -ERR_INVALID;
    }
    if (r == 0 && head.truncate_seq < order->truncate_seq) {
        struct cut_order cut = {
            .id = id,
            .head = head,
            .length = chunk_bytes_before(id.chunk, order->chunk_bytes, order->truncate_size),
            .truncate_seq = order->truncate_seq,
        };

        r = chunk_cut(ost, request, &cut);
    }
    if (r == 0 || r == -ERR_NOT_FOUND) {
        /* Segments without a head belong to no chunk; fsck finds them. */
        request->cursor = id.chunk + 1;
        r = 0;
    }
    return r;
}

void cut_run(struct ost *ost, struct request *request) {
    struct call *call = request->call;
    const struct chunk_cut_request *order = &call->request.chunk_cut;
    struct chunk_cut_reply *reply = &call->reply.chunk_cut;
    int r = cut_check(order);

    if (request_stops(ost, request, r)) {
        return;
    }
    if (request->stage == 0) {
        request->stage = 1;
        request->cursor = MAX(order->resume_chunk, order->truncate_size / order->chunk_bytes);
    }
    if (request->io_pending > 0) {
        return;
    }
    const struct chunk_id file = {order->ino, order->generation, 0};

    r = request->io_result;
    r = r == 0 ? cut_mark_raise(ost, request, &file, order->truncate_seq) : r;
    while (r == 0 && request->sum < CUT_CHUNKS_A_STEP) {
        r = cut_next(ost, request);
        request->sum += r == 0;
    }
    if (r == REQUEST_WAITS || request_stops(ost, request, r == -ERR_NOT_FOUND ? 0 : r)) {
        return;
    }
    *reply = (struct chunk_cut_reply){.resume_chunk = request->cursor,
                                      .end = r == -ERR_NOT_FOUND,
                                      .position = kv_seal(ost->kv),
                                      .term = kv_term(ost->kv)};
    request_finish(ost, request, 0);
}
