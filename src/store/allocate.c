/* chunk_space: what fallocate asks of a range of one chunk. Each call is one record.
 *
 *     PUNCH     whole blocks become holes, others get zeros in the range; a promise of the holes is
 *               given back
 *     ZERO      likewise, but holes that are made stay promised, if they are so
 *     PROMISE   the range is promised: each of its holes that was not so takes a block of what is
 *               free, and is owed it
 *     UNDO      what PROMISE has added under the same name is given back
 *
 * Like a write it waits for earlier changes of the same blocks, cuts a chunk that has not heard of
 * a truncation that the caller knows, and comes back from an outcome. Holes that are neither
 * promised nor written have nothing to lose: they take no row. */
#include "base/crc32c.h"
#include "store/operations.h"
#include <assert.h>

enum allocate_stage { ALLOCATE_START, ALLOCATE_RECORD };

/* A block that is punched in part, [from, to), and keeps the rest. */
struct edge_fill {
    const uint8_t *old;
    uint32_t from;
    uint32_t to;
};

struct allocation {
    const struct chunk_space_request *body;
    struct store_head head;
    bool exists;
    struct extent holes; /* PUNCH, ZERO: these blocks */
    struct {
        struct extent block; /* count 0: none */
        struct block_entry fresh;
        struct edge_fill fill;
    } edges[REQUEST_EDGES];
    uint32_t edge_count;
    bool is_void; /* there is nothing to change but the outcome */
};

static bool makes_holes(const struct chunk_space_request *body) {
    return body->what == SPACE_PUNCH || body->what == SPACE_ZERO;
}

static bool is_whole_chunk(const struct chunk_space_request *body) {
    return body->offset == 0 && body->size == body->chunk_bytes;
}

/* Promises of a whole chunk need no look at its blocks, so that they may be as large. */
static int allocate_shape(struct ost *ost, struct request *request,
                          const struct chunk_space_request *body) {
    struct request_shape shape = {.capability = &body->capability,
                                  .chunk = body->chunk,
                                  .chunk_bytes = body->chunk_bytes,
                                  .offset = body->offset,
                                  .size = body->size};

    if (body->what < SPACE_PUNCH || body->what > SPACE_UNDO ||
        (!makes_holes(body) && body->call == 0)) {
        return -ERR_INVALID;
    }
    shape.is_whole = !makes_holes(body) && is_whole_chunk(body);
    return request_shape(ost, request, &shape);
}

static int allocate_outcome(struct ost *ost, struct request *request) {
    struct store_write_outcome answer;
    int result;
    int r = outcome_find(ost, request, &answer, &result);

    if (r != 0) {
        return r == -ERR_NOT_FOUND ? 0 : r;
    }
    request->call->reply.chunk_space = (struct chunk_space_reply){answer.version, answer.position};
    request_finish(ost, request, result);
    return REQUEST_WAITS;
}

/* As write_check: may it be done, as things are now? */
static int allocate_check(struct ost *ost, struct request *request, struct allocation *work) {
    const struct chunk_space_request *body = work->body;
    uint32_t mark = 0;
    int r = request_capability(ost, request->call, &body->capability, RIGHT_WRITE);

    if (r < 0) {
        return r;
    }
    work->head = (struct store_head){.format = STORE_FORMAT, .chunk_bytes = body->chunk_bytes};
    r = chunk_head_get(ost->kv, &request->id, &work->head);
    work->exists = r == 0;
    if (r == -ERR_NOT_FOUND) {
        r = cut_mark_get(ost, &request->id, &mark);
        work->head.truncate_seq = mark;
    }
    if (r == 0 && work->head.chunk_bytes != body->chunk_bytes) {
        r = -ERR_INVALID;
    }
    if (r == 0 && work->head.truncate_seq > body->capability.truncate_seq) {
        r = -ERR_BAD_CAPABILITY;
    }
    return r;
}

/* What is left of the block at one end of the range, if anything of it is to stay. */
static int edge_find(struct ost *ost, struct request *request, struct allocation *work,
                     uint32_t index) {
    struct extent at = {request->range.first + index, 1};
    uint64_t start = at.first * BLOCK_BYTES;
    uint32_t stored = work->head.length > start
                          ? (uint32_t)MIN(work->head.length - start, (uint64_t)BLOCK_BYTES)
                          : 0;
    uint32_t which = work->edge_count;
    struct block_entry old;
    uint32_t from;
    uint32_t to;

    request_block_part(request, index, &from, &to);
    if (from == 0 && to >= stored) {
        return 0; /* Nothing is. */
    }
    if (index == 0) {
        work->holes.first++;
    }
    work->holes.count--;
    int r = chunk_entries_get(ost->kv, &request->id, at, &old);
    if (r < 0 || old.block == 0) {
        return r;
    }
    r = edge_get(ost, request, which, old, &work->edges[which].fill.old);
    if (r == 0) {
        work->edges[which].block = at;
        work->edges[which].fill.from = from;
        work->edges[which].fill.to = to;
        work->edge_count++;
    }
    return r;
}

static uint32_t edge_fill(void *context, uint32_t i, uint8_t *data) {
    const struct edge_fill *fill = context;

    (void)i;
    memcpy(data, fill->old, BLOCK_BYTES);
    memset(data + fill->from, 0, fill->to - fill->from);
    return crc32c(0, data, BLOCK_BYTES);
}

static int holes_find(struct ost *ost, struct request *request, struct allocation *work) {
    int r = 0;

    work->holes = request->range;
    if (!work->exists) {
        return 0;
    }
    r = edge_find(ost, request, work, 0);
    if (r == 0 && request->range.count > 1) {
        r = edge_find(ost, request, work, request->range.count - 1);
    }
    return r;
}

/* Blocks for the edges, which take as many as they free. */
static int edges_take(struct ost *ost, struct request *request, struct allocation *work) {
    struct space_wish wish = {.lane = BLOCKS_LANE_SMALL, .count = work->edge_count};
    struct block_entry fresh[REQUEST_EDGES] = {{0}};
    int r = work->edge_count > 0 ? space_take(ost, request, &wish, fresh) : 0;

    for (uint32_t i = 0; r == 0 && i < work->edge_count; i++) {
        work->edges[i].fresh = fresh[i];
    }
    return r;
}

static void edges_give_back(struct ost *ost, const struct allocation *work) {
    for (uint32_t i = 0; i < work->edge_count; i++) {
        space_give_back(ost, &work->edges[i].fresh, 1);
    }
}

/* What the change is, with all rows that it reads. */
static int holes_change(struct ost *ost, struct request *request, struct allocation *work) {
    struct change *change = &ost->change;
    struct store_head *head = &work->head;
    int r = head->promise != STORE_PROMISE_NONE ? change_promise(change, &request->id, head) : 0;

    if (r == 0) {
        r = change_holes(change, &request->id, work->holes);
    }
    if (r == 0 && change->has_promise && work->body->what == SPACE_PUNCH) {
        promise_drop(&change->promise, work->holes);
        r = change_promised(change, head, (uint64_t)head->promised - change->promised_holes, true);
    } else if (r == 0 && change->has_promise) {
        uint32_t promised = promise_count(&change->promise, work->holes);

        r = change_promised(change, head,
                            (uint64_t)head->promised + promised - change->promised_holes, false);
    }
    for (uint32_t i = 0; r == 0 && i < work->edge_count; i++) {
        r = change_entries(change, &request->id, work->edges[i].block, &work->edges[i].fresh);
    }
    return r;
}

/* Holes of the range that are not promised yet; of a whole chunk its head tells. */
static int fresh_count(struct ost *ost, struct request *request, const struct allocation *work,
                       uint32_t *ret_count) {
    const struct promise *promise = &ost->change.promise;
    uint64_t used = (uint64_t)work->head.block_count + work->head.promised;
    bool whole = is_whole_chunk(work->body);
    struct block_entry entry;
    uint32_t count = whole ? (uint32_t)(request->range.count - used) : 0;
    int r = whole && used > request->range.count ? -ERR_CORRUPT : 0;

    for (uint32_t i = 0; r == 0 && !whole && i < request->range.count; i++) {
        struct extent one = {request->range.first + i, 1};

        if (!promise_has(promise, one.first)) {
            r = chunk_entries_get(ost->kv, &request->id, one, &entry);
            count += r == 0 && entry.block == 0;
        }
    }
    *ret_count = count;
    return r;
}

/* Whose call it is that may be taken back: where another has relied on what was promised, nobody's.
 */
static void promise_name(struct allocation *work, struct promise *promise, bool adds) {
    struct store_head *head = &work->head;

    if (head->promise_call == work->body->call) {
        return;
    }
    head->promise_call = adds ? work->body->call : 0;
    promise_forget_before(promise);
    if (adds) {
        promise_keep_before(promise);
    }
}

static int promise_change(struct ost *ost, struct request *request, struct allocation *work) {
    struct change *change = &ost->change;
    struct promise *promise = &change->promise;
    uint32_t fresh = 0;
    int r = change_promise(change, &request->id, &work->head);

    if (r == 0) {
        r = fresh_count(ost, request, work, &fresh);
    }
    if (r == 0) {
        r = space_promise(ost, request, fresh);
    }
    if (r != 0) {
        return r;
    }
    promise_name(work, promise, promise_count(promise, request->range) < request->range.count);
    promise_add(promise, request->range);
    return change_promised(change, &work->head, (uint64_t)work->head.promised + fresh, true);
}

static int undo_change(struct ost *ost, struct request *request, struct allocation *work) {
    struct change *change = &ost->change;
    struct extent range = request->range;
    struct block_entry entry;
    uint32_t given = 0;
    uint64_t block;
    int r = change_promise(change, &request->id, &work->head);

    while (r == 0 && promise_take_back(&change->promise, &range, &block)) {
        r = chunk_entries_get(ost->kv, &request->id, (struct extent){block, 1}, &entry);
        given += r == 0 && entry.block == 0;
    }
    return r < 0
               ? r
               : change_promised(change, &work->head, (uint64_t)work->head.promised - given, true);
}

/* Whether there is nothing to change but the outcome. */
static bool has_nothing(const struct allocation *work) {
    switch (work->body->what) {
    case SPACE_PROMISE:
        return false;
    case SPACE_UNDO:
        return !work->exists || work->head.promise == STORE_PROMISE_NONE ||
               work->head.promise_call != work->body->call;
    default:
        return !work->exists;
    }
}

/* Reads what it changes, and begins. */
static int allocate_begin(struct ost *ost, struct request *request, struct allocation *work) {
    struct change *change = &ost->change;
    struct kv_need need = {0};
    int r = 0;

    change_begin(change, ost->kv);
    if (!work->is_void) {
        r = makes_holes(work->body)             ? holes_change(ost, request, work)
            : work->body->what == SPACE_PROMISE ? promise_change(ost, request, work)
                                                : undo_change(ost, request, work);
    }
    if (r == 0) {
        r = change_need(change, &need);
    }
    if (r != 0) {
        return r;
    }
    need.record_bytes += small_spans_bytes(work->edge_count);
    need.data_bytes = work->edge_count * BLOCK_BYTES;
    outcome_need(ost, request, &need);
    return request_begin(ost, request, &need);
}

static int allocate_stage(struct ost *ost, const struct request *request, struct allocation *work,
                          struct small_spans *spans) {
    struct change *change = &ost->change;
    struct store_head *head = &work->head;
    struct store_write_outcome answer = {.version = head->version,
                                         .position = kv_position(ost->kv) + 1,
                                         .blocks_before = head->block_count};
    int r = 0;

    head->block_count = (uint32_t)((int64_t)head->block_count + change->block_delta);
    answer.blocks = head->block_count;
    bool is_nothing =
        head->length == 0 && head->block_count == 0 && head->promise == STORE_PROMISE_NONE;
    if (!work->is_void) {
        r = !is_nothing    ? change_head(change, &request->id, head, work->exists)
            : work->exists ? change_head_delete(change, &request->id)
                           : 0;
    }
    r = r < 0 ? r : outcome_stage(ost, request, &answer);
    for (uint32_t i = 0; r == 0 && i < work->edge_count; i++) {
        struct small_part part = {&work->edges[i].fresh, 1, edge_fill, &work->edges[i].fill};

        small_part_fill(ost, &part, spans);
    }
    r = r < 0 ? r : change_stage(change);
    return r < 0 ? r : small_spans_note(ost, spans);
}

static int allocate_commit(struct ost *ost, struct request *request, struct allocation *work) {
    struct small_spans spans = {.count = 0};
    struct store_head *head = &work->head;
    int r = edges_take(ost, request, work);

    if (r != 0) {
        return r;
    }
    if (!work->is_void) {
        head->epoch = ost_epoch(ost);
        head->version = work->exists ? head->version + 1 : head->epoch;
        head->truncate_seq = work->body->capability.truncate_seq;
    }
    r = allocate_begin(ost, request, work);
    if (r == 0) {
        r = allocate_stage(ost, request, work, &spans);
        if (r < 0) {
            kv_abort(ost->kv);
        }
    }
    if (r != 0) {
        edges_give_back(ost, work);
        return r;
    }
    uint64_t position = change_commit(&ost->change, ost->read_number);
    small_spans_commit(ost, &spans, position);
    space_recorded(ost, work->edge_count);
    request->call->reply.chunk_space = (struct chunk_space_reply){head->version, position};
    ost->counters.punches += makes_holes(work->body);
    ost->counters.promises += !makes_holes(work->body);
    return 0;
}

static int allocate_record(struct ost *ost, struct request *request) {
    struct allocation work = {.body = &request->call->request.chunk_space};
    bool cut = false;
    int r = request->io_result;

    if (r == 0) {
        r = allocate_check(ost, request, &work);
    }
    if (r == 0 && work.exists) {
        r = chunk_cut_for(ost, request, &work.body->capability, &work.head, &cut);
    }
    if (r == 0 && cut) {
        r = allocate_check(ost, request, &work);
    }
    work.is_void = has_nothing(&work);
    if (r == 0 && makes_holes(work.body)) {
        r = holes_find(ost, request, &work);
    }
    if (r == 0) {
        r = space_quarantine(ost, request);
    }
    return r == 0 ? allocate_commit(ost, request, &work) : r;
}

static int allocate_start(struct ost *ost, struct request *request) {
    struct allocation work = {.body = &request->call->request.chunk_space};
    int r = allocate_shape(ost, request, work.body);

    if (r == 0) {
        r = write_queue(ost, request);
    }
    if (r == 0) {
        r = allocate_outcome(ost, request);
    }
    return r == 0 ? allocate_check(ost, request, &work) : r;
}

void allocate_run(struct ost *ost, struct request *request) {
    int r = 0;

    if (request->io_pending > 0) {
        return;
    }
    if (request->stage == ALLOCATE_START) {
        r = allocate_start(ost, request);
        request->stage = r == 0 ? ALLOCATE_RECORD : ALLOCATE_START;
    }
    if (r == 0) {
        r = allocate_record(ost, request);
    }
    if (r != REQUEST_WAITS && !request_stops(ost, request, r)) {
        request_finish(ost, request, 0);
    }
}
