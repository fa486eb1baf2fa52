/* chunk_write: one write within one chunk, which is one record.
 *
 *     START   outcome? capability, sequence, size; earlier writes of the same blocks first
 *     DATA    64 KiB or more of whole blocks: to free blocks of the data file, and wait
 *     RECORD  the chunk is cut if the writer knows a newer truncation; blocks that are written in
 *             part are merged; what did not go to disk goes to the ring; then the record
 *
 * Every run of RECORD looks at session, head and rows anew: they may have changed meanwhile. */
#include "base/crc32c.h"
#include "store/operations.h"
#include <assert.h>

enum write_stage { WRITE_START, WRITE_DATA, WRITE_RECORD, WRITE_LAST };

static const struct chunk_write_request *body_of(const struct request *request) {
    return &request->call->request.chunk_write;
}

/* Where block i's bytes begin in the data. */
static size_t data_offset(const struct request *request, uint32_t i) {
    return i == 0 ? 0 : (size_t)i * BLOCK_BYTES - request->skip;
}

/* The longest piece of the caller's memory at offset, up to size bytes. */
static struct bytes bulk_at(const struct call *call, size_t offset, size_t size) {
    for (uint32_t i = 0; i < call->bulk_out_count; i++) {
        struct bytes part = call->bulk_out[i];

        if (offset < part.size) {
            return (struct bytes){part.data + offset, MIN(size, part.size - offset)};
        }
        offset -= part.size;
    }
    return (struct bytes){0};
}

static void bulk_copy(const struct call *call, size_t offset, uint8_t *to, size_t size) {
    while (size > 0) {
        struct bytes piece = bulk_at(call, offset, size);

        memcpy(to, piece.data, piece.size);
        to += piece.size;
        offset += piece.size;
        size -= piece.size;
    }
}

static uint32_t bulk_crc(const struct call *call, size_t offset, size_t size) {
    uint32_t crc = 0;

    while (size > 0) {
        struct bytes piece = bulk_at(call, offset, size);

        crc = crc32c(crc, piece.data, piece.size);
        offset += piece.size;
        size -= piece.size;
    }
    return crc;
}

/* Blocks written in part are always checked: their checksum is computed anew. */
static int data_check(const struct ost *ost, const struct request *request) {
    const struct call *call = request->call;
    size_t total = 0;

    for (uint32_t i = 0; i < MIN(call->bulk_out_count, (uint32_t)CALL_BULK_PARTS_MAX); i++) {
        total += call->bulk_out[i].size;
    }
    if (call->bulk_out_count > CALL_BULK_PARTS_MAX || total != request->size ||
        call->checksum_count != request->range.count || !call->checksums) {
        return -ERR_MALFORMED;
    }
    for (uint32_t i = 0; i < request->range.count; i++) {
        uint32_t from;
        uint32_t to;

        request_block_part(request, i, &from, &to);
        if ((ost->options.verify_on_arrival || to - from < BLOCK_BYTES) &&
            bulk_crc(call, data_offset(request, i), to - from) != call->checksums[i]) {
            return -ERR_CORRUPT;
        }
    }
    return 0;
}

/* Whole blocks go to the disk from here when they are many; all others through the ring. */
static void plan_direct(struct request *request) {
    uint32_t from;
    uint32_t to;
    uint32_t last = request->range.count - 1;

    request_block_part(request, last, &from, &to);
    request->direct_first = request->skip > 0;
    request->direct_count = last + (to == BLOCK_BYTES) - request->direct_first;
    if (request->skip > 0 && last == 0) {
        request->direct_count = 0;
    }
    if (request->direct_count < OST_DIRECT_BYTES_MIN / BLOCK_BYTES) {
        request->direct_first = 0;
        request->direct_count = 0;
    }
    assert(request->direct_first + request->direct_count <= request->range.count);
    for (uint32_t i = 0; i < request->direct_count; i++) {
        request->entries[request->direct_first + i].crc =
            request->call->checksums[request->direct_first + i];
    }
}

static bool same_chunk(const struct chunk_id *a, const struct chunk_id *b) {
    return a->ino.value == b->ino.value && a->generation == b->generation && a->chunk == b->chunk;
}

static struct list *active_of(struct ost *ost, const struct chunk_id *id) {
    uint64_t hash = (id->ino.value + id->chunk * 31) * UINT64_C(0x9e3779b97f4a7c15);

    return &ost->active[(hash >> 40) % OST_ACTIVE_BUCKETS];
}

static bool is_copy(const struct request *a, const struct request *b) {
    return a->call->header.session.value == b->call->header.session.value &&
           a->call->header.sequence == b->call->header.sequence && same_chunk(&a->id, &b->id);
}

/* Behind the first copy, which is at work, it waits in the stead of one that waited before: for the
 * older ones nobody may wait any more, their connections being gone. Then it gets the outcome. */
static void copy_queue(struct ost *ost, struct request *first, struct request *request) {
    struct list_node *node = list_next(active_of(ost, &request->id), &first->active);

    while (node != &request->active) {
        struct request *other = CONTAINER_OF(node, struct request, active);

        node = list_next(active_of(ost, &request->id), node);
        if (is_copy(other, request)) {
            request_discard(ost, other);
        }
    }
    ost->counters.copies++;
    request_wait(request, &first->followers);
}

int write_queue(struct ost *ost, struct request *request) {
    struct list *active = active_of(ost, &request->id);
    struct list_node *node;

    if (!list_contains(&request->active)) {
        list_push_back(active, &request->active);
    }
    for (node = list_first(active); node != &request->active; node = list_next(active, node)) {
        struct request *other = CONTAINER_OF(node, struct request, active);
        uint64_t end = request->range.first + request->range.count;
        uint64_t other_end = other->range.first + other->range.count;

        if (!same_chunk(&request->id, &other->id)) {
            continue;
        }
        if (is_copy(other, request)) {
            copy_queue(ost, other, request);
            return REQUEST_WAITS;
        }
        if (request->range.first < other_end && other->range.first < end) {
            request_wait(request, &other->followers);
            return REQUEST_WAITS;
        }
    }
    return 0;
}

static void write_answer(struct request *request, const struct store_write_outcome *answer) {
    request->call->reply.chunk_write = (struct chunk_write_reply){
        answer->version, answer->position, answer->blocks, answer->blocks_before};
}

/* Answers what the write answered before, when it did. */
static int write_outcome(struct ost *ost, struct request *request) {
    struct store_write_outcome answer;
    int result;
    int r = outcome_find(ost, request, &answer, &result);

    if (r != 0) {
        return r == -ERR_NOT_FOUND ? 0 : r;
    }
    write_answer(request, &answer);
    request_finish(ost, request, result);
    return REQUEST_WAITS;
}

/* May it be written, as things are now? ret_head: zeroed when there is no chunk yet. */
static int write_check(struct ost *ost, struct request *request, struct store_head *ret_head,
                       bool *ret_exists) {
    const struct chunk_write_request *body = body_of(request);
    struct store_head head = {.format = STORE_FORMAT, .chunk_bytes = body->chunk_bytes};
    uint32_t mark = 0;
    int r = request_capability(ost, request->call, &body->capability, RIGHT_WRITE);

    if (r < 0) {
        return r;
    }
    r = chunk_head_get(ost->kv, &request->id, &head);
    *ret_exists = r == 0;
    if (r == -ERR_NOT_FOUND) {
        r = cut_mark_get(ost, &request->id, &mark);
        head.truncate_seq = mark;
    }
    if (r < 0) {
        return r;
    }
    if (head.chunk_bytes != body->chunk_bytes) {
        return -ERR_INVALID;
    }
    /* From before a truncation: the client gets a newer one and writes again. */
    if (head.truncate_seq > body->capability.truncate_seq) {
        return -ERR_BAD_CAPABILITY;
    }
    *ret_head = head;
    return 0;
}

static int write_start(struct ost *ost, struct request *request) {
    const struct chunk_write_request *body = body_of(request);
    struct request_shape shape = {.capability = &body->capability,
                                  .chunk = body->chunk,
                                  .chunk_bytes = body->chunk_bytes,
                                  .offset = body->offset,
                                  .size = body->size};
    struct store_head head;
    bool exists;
    int r = request_shape(ost, request, &shape);

    if (r == 0) {
        r = write_queue(ost, request);
    }
    if (r == 0) {
        r = write_outcome(ost, request);
    }
    if (r == 0) {
        r = data_check(ost, request);
    }
    if (r == 0) {
        r = write_check(ost, request, &head, &exists);
    }
    if (r == 0) {
        plan_direct(request);
    }
    return r;
}

/* How many of the blocks are holes now, and not promised, or promised; asked only when space is
 * short. */
static int count_holes(struct ost *ost, struct request *request, struct space_wish *wish) {
    struct promise *promise = &ost->change.promise; /* No change is at hand. */
    struct store_head head = {0};
    struct block_entry entry;
    int r = chunk_head_get(ost->kv, &request->id, &head);

    r = r == -ERR_NOT_FOUND ? 0 : r;
    if (r == 0 && head.promised > 0) {
        r = promise_load(ost->kv, &request->id, &head, promise);
    }
    for (uint32_t i = 0; r == 0 && i < request->range.count; i++) {
        struct extent one = {request->range.first + i, 1};

        r = chunk_entries_get(ost->kv, &request->id, one, &entry);
        if (r == 0 && entry.block == 0) {
            bool promised = head.promised > 0 && promise_has(promise, one.first);

            wish->count_new += !promised;
            wish->count_spent += promised;
        }
    }
    return r;
}

static int take_blocks(struct ost *ost, struct request *request) {
    struct space_wish wish = {.lane =
                                  request->direct_count > 0 ? BLOCKS_LANE_LARGE : BLOCKS_LANE_SMALL,
                              .count = request->range.count};
    int r = 0;

    assert(list_contains(&request->active));
    assert(!request->has_blocks || wish.count <= ost->held_blocks);
    if (request->has_blocks) {
        return 0;
    }
    if (ost->blocks.free_count < ost->reserve_blocks + ost->blocks.promised_count + wish.count) {
        r = count_holes(ost, request, &wish);
    }
    if (r == 0) {
        r = space_take(ost, request, &wish, request->entries);
    }
    request->has_blocks = r == 0;
    return r;
}

static void data_written(struct ost *ost, struct ost_io *io) {
    request_io_end(ost, io->owner, io, io->result);
}

/* Starts the next I/O of the direct part: from the caller's memory where that is aligned, else
 * through a buffer. REQUEST_WAITS: none can be had now. */
static int data_write_next(struct ost *ost, struct request *request) {
    uint32_t index = request->direct_first + (uint32_t)request->cursor;
    uint32_t left = request->direct_count - (uint32_t)request->cursor;
    const struct block_entry *entries = request->entries + index;
    size_t offset = data_offset(request, index);
    struct bytes piece = bulk_at(request->call, offset, (size_t)left * BLOCK_BYTES);
    bool aligned = (uintptr_t)piece.data % BLOCK_BYTES == 0 && piece.size >= BLOCK_BYTES;
    uint32_t count_max = (uint32_t)((aligned ? piece.size : OST_BOUNCE_BYTES) / BLOCK_BYTES);
    uint32_t count = 1;
    struct ost_io *io = ost_io_get(ost, aligned ? OST_IO_PLAIN : OST_IO_BOUNCED);

    if (!io) {
        return REQUEST_WAITS;
    }
    while (count < left && count < count_max && entries[count].block == entries[0].block + count) {
        count++;
    }
    size_t size = (size_t)count * BLOCK_BYTES;
    assert(request->has_blocks && entries[0].block + count <= ost->blocks.block_count);
    if (!aligned) {
        bulk_copy(request->call, offset, io->bounce, size);
    }
    io->finished = data_written;
    io->io = (struct env_io){.kind = ENV_IO_WRITE,
                             .offset = entries[0].block * BLOCK_BYTES,
                             .buffer = aligned ? (uint8_t *)(uintptr_t)piece.data : io->bounce,
                             .size = size};
    request->cursor += count;
    request_io_start(ost, request, io);
    return 0;
}

static int write_data(struct ost *ost, struct request *request) {
    int r = request->io_result;

    if (r == 0 && request->direct_count > 0) {
        r = take_blocks(ost, request);
    }
    if (r != 0) {
        return r;
    }
    while (request->cursor < request->direct_count && request->io_result == 0) {
        if (data_write_next(ost, request) != 0) {
            if (request->io_pending == 0) {
                request_wait(request, &ost->io_waiting);
            }
            return REQUEST_WAITS;
        }
    }
    return request->io_pending > 0 ? REQUEST_WAITS : request->io_result;
}

/* What a block that goes through the ring is made of. */
struct ring_fill {
    struct request *request;
    uint32_t first;        /* block of the range that entry 0 is */
    const uint8_t *old[2]; /* content under the first and the last block; NULL: zeros */
    uint32_t old_bytes[2]; /* how much of it counts */
};

static uint32_t ring_fill(void *context, uint32_t i, uint8_t *data) {
    const struct ring_fill *fill = context;
    const struct request *request = fill->request;
    uint32_t index = fill->first + i;
    unsigned which = index == 0 ? 0 : 1;
    uint32_t from;
    uint32_t to;

    request_block_part(request, index, &from, &to);
    if (to - from == BLOCK_BYTES) {
        bulk_copy(request->call, data_offset(request, index), data, BLOCK_BYTES);
        return request->call->checksums[index];
    }
    if (fill->old[which]) {
        memcpy(data, fill->old[which], fill->old_bytes[which]);
        memset(data + fill->old_bytes[which], 0, BLOCK_BYTES - fill->old_bytes[which]);
    } else {
        memset(data, 0, BLOCK_BYTES);
    }
    bulk_copy(request->call, data_offset(request, index), data + from, to - from);
    return crc32c(0, data, BLOCK_BYTES);
}

/* Finds what lies under a block that is written in part: nothing, when it is a hole or all of it
 * up to the chunk's length is written. */
static int merge_find(struct ost *ost, struct request *request, uint32_t index, uint32_t length,
                      struct ring_fill *fill) {
    struct extent at = {request->range.first + index, 1};
    uint64_t start = at.first * BLOCK_BYTES;
    unsigned which = index == 0 ? 0 : 1;
    uint32_t old_bytes = length > start ? (uint32_t)MIN(length - start, (uint64_t)BLOCK_BYTES) : 0;
    struct block_entry old;
    uint32_t from;
    uint32_t to;

    request_block_part(request, index, &from, &to);
    if (to - from == BLOCK_BYTES || old_bytes == 0 || (from == 0 && to >= old_bytes)) {
        return 0;
    }
    int r = chunk_entries_get(ost->kv, &request->id, at, &old);
    if (r < 0 || old.block == 0) {
        return r;
    }
    fill->old_bytes[which] = old_bytes;
    return edge_get(ost, request, which, old, &fill->old[which]);
}

static void ring_part(struct ost *ost, const struct request *request, struct ring_fill *fill,
                      struct extent part, struct small_spans *spans) {
    struct small_part small = {.entries = request->entries + part.first,
                               .count = part.count,
                               .fill = ring_fill,
                               .context = fill};

    fill->first = (uint32_t)part.first;
    if (part.count > 0) {
        small_part_fill(ost, &small, spans);
    }
}

static int write_stage(struct ost *ost, struct request *request, struct ring_fill *fill,
                       struct store_head *head, bool exists) {
    struct small_spans spans = {.count = 0};
    uint32_t behind = request->direct_first + request->direct_count;
    struct store_write_outcome answer = {.version = head->version,
                                         .position = kv_position(ost->kv) + 1,
                                         .blocks_before = head->block_count};

    head->block_count = (uint32_t)((int64_t)head->block_count + ost->change.block_delta);
    answer.blocks = head->block_count;
    int r = change_head(&ost->change, &request->id, head, exists);

    if (r == 0) {
        r = outcome_stage(ost, request, &answer);
    }
    ring_part(ost, request, fill, (struct extent){0, request->direct_first}, &spans);
    ring_part(ost, request, fill, (struct extent){behind, request->range.count - behind}, &spans);
    if (r == 0) {
        r = change_stage(&ost->change);
    }
    if (r == 0) {
        r = small_spans_note(ost, &spans);
    }
    if (r < 0) {
        return r;
    }
    uint64_t position = change_commit(&ost->change, ost->read_number);
    assert(position == answer.position); /* The stored outcome says so. */
    small_spans_commit(ost, &spans, position);
    write_answer(request, &answer);
    return 0;
}

/* Reads what it changes, and begins. */
static int write_begin(struct ost *ost, struct request *request, struct store_head *head) {
    struct change *change = &ost->change;
    uint32_t ring_blocks = request->range.count - request->direct_count;
    struct kv_need need;

    change_begin(change, ost->kv);
    int r = head->promise != STORE_PROMISE_NONE ? change_promise(change, &request->id, head) : 0;
    r = r < 0 ? r : change_entries(change, &request->id, request->range, request->entries);
    if (r == 0 && change->promised_holes > 0) {
        r = change_promised(change, head, (uint64_t)head->promised - change->promised_holes, false);
    }
    r = r < 0 ? r : change_need(change, &need);
    if (r < 0) {
        return r;
    }
    need.record_bytes += small_spans_bytes(ring_blocks);
    need.data_bytes = ring_blocks * BLOCK_BYTES;
    outcome_need(ost, request, &need);
    return request_begin(ost, request, &need);
}

static int write_commit(struct ost *ost, struct request *request, struct ring_fill *fill,
                        struct store_head *head, bool exists) {
    const struct chunk_write_request *body = body_of(request);
    struct session_counters *counters = session_counters_of(request->call);

    assert(request->has_blocks && head->truncate_seq <= body->capability.truncate_seq);
    head->epoch = ost_epoch(ost);
    /* A chunk that is made anew, behind a cut, has no lower versions than it had before. */
    head->version = exists ? head->version + 1 : head->epoch;
    head->length = MAX(head->length, body->offset + body->size);
    head->truncate_seq = body->capability.truncate_seq;
    int r = write_begin(ost, request, head);
    if (r == 0) {
        r = write_stage(ost, request, fill, head, exists);
        if (r < 0) {
            kv_abort(ost->kv);
        }
    }
    if (r != 0) {
        return r;
    }
    request->has_blocks = false;
    space_recorded(ost, request->range.count);
    ost->counters.writes++;
    ost->counters.write_bytes += request->size;
    if (counters) {
        counters->written_bytes += request->size;
    }
    ost->counters.small_writes += request->direct_count == 0;
    ost_count_direct(ost, (uint64_t)request->direct_count * BLOCK_BYTES);
    return 0;
}

/* A chunk that is older than the truncation that the writer knows is cut first: what the writer
 * does not overwrite must not come back. */
static int write_cut(struct ost *ost, struct request *request, struct store_head *head,
                     bool *exists) {
    bool done = false;
    int r = 0;

    if (*exists) {
        r = chunk_cut_for(ost, request, &body_of(request)->capability, head, &done);
    }
    return r == 0 && done ? write_check(ost, request, head, exists) : r;
}

static int write_record(struct ost *ost, struct request *request) {
    struct ring_fill fill = {.request = request};
    struct store_head head;
    bool exists = false;

    assert(request->io_pending == 0 && request->cursor == request->direct_count);
    assert(request->direct_count == 0 || request->has_blocks);
    int r = request->io_result;

    if (r == 0) {
        r = write_check(ost, request, &head, &exists);
    }
    if (r == 0) {
        r = write_cut(ost, request, &head, &exists);
    }
    if (r == 0) {
        r = merge_find(ost, request, 0, head.length, &fill);
    }
    if (r == 0 && request->range.count > 1) {
        r = merge_find(ost, request, request->range.count - 1, head.length, &fill);
    }
    if (r == 0) {
        r = space_quarantine(ost, request);
    }
    if (r == 0) {
        r = take_blocks(ost, request);
    }
    return r == 0 ? write_commit(ost, request, &fill, &head, exists) : r;
}

void write_run(struct ost *ost, struct request *request) {
    int r = 0;

    if (request->stage == WRITE_START) {
        r = write_start(ost, request);
        request->stage = r == 0 ? WRITE_DATA : WRITE_START;
    }
    if (r == 0 && request->stage == WRITE_DATA) {
        r = write_data(ost, request);
        request->stage = r == 0 ? WRITE_RECORD : WRITE_DATA;
    }
    if (r == 0 && request->stage == WRITE_RECORD) {
        r = write_record(ost, request);
        request->stage = r == 0 ? WRITE_LAST : WRITE_RECORD;
    }
    if (r != REQUEST_WAITS && !request_stops(ost, request, r)) {
        assert(request->stage == WRITE_LAST && !request->has_blocks);
        request_finish(ost, request, request->io_result);
    }
}
