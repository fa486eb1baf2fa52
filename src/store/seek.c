/* chunk_seek: where in a file something begins, as far as this target knows.
 *
 *     DATA, ANY   the first block that is stored, or chunk with blocks or a promise, at or behind
 *                 the place, of all chunks of the file that are here
 *     HOLE        the first block that is not, of the chunks `chunk`, `chunk` + stride, ..., which
 *                 are here as long as they have data
 *
 * A block counts as a whole; one that a truncation has taken which the caller knows, and the chunk
 * does not, is a hole. Some chunks a step, then others get their turn. */
#include "store/operations.h"

enum { SEEK_START, SEEK_NEXT, SEEK_CHUNKS_A_STEP = 64 };

static void seek_found(struct request *request, uint64_t chunk, uint64_t block) {
    const struct chunk_seek_request *body = &request->call->request.chunk_seek;
    uint64_t place = block * BLOCK_BYTES;

    if (chunk == body->chunk) {
        place = MAX(place, (uint64_t)body->offset);
    }
    request->call->reply.chunk_seek =
        (struct chunk_seek_reply){.found = 1, .offset = chunk * body->chunk_bytes + place};
    request->stage = SEEK_NEXT + 1;
}

/* Blocks of the chunk that may hold data which the caller sees. */
static uint64_t seen_blocks(const struct chunk_seek_request *body, const struct store_head *head,
                            uint64_t chunk) {
    uint32_t seen = head->length;

    if (head->truncate_seq < body->capability.truncate_seq) {
        seen =
            MIN(seen, chunk_bytes_before(chunk, body->chunk_bytes, body->capability.truncate_size));
    }
    return ((uint64_t)seen + BLOCK_BYTES - 1) / BLOCK_BYTES;
}

/* The first block in [from, end) that is stored, or is not; end: there is none. */
static int block_find(struct ost *ost, const struct chunk_id *id, struct extent range, bool stored,
                      uint64_t *ret_block) {
    struct block_entry entries[BLOCKS_PER_SEGMENT];
    uint64_t end = range.first + range.count;

    for (uint64_t at = range.first; at < end;) {
        uint64_t count = MIN(end - at, BLOCKS_PER_SEGMENT - at % BLOCKS_PER_SEGMENT);
        int r = chunk_entries_get(ost->kv, id, (struct extent){at, (uint32_t)count}, entries);

        if (r < 0) {
            return r;
        }
        for (uint64_t i = 0; i < count; i++) {
            if ((entries[i].block != 0) == stored) {
                *ret_block = at + i;
                return 0;
            }
        }
        at += count;
    }
    *ret_block = end;
    return 0;
}

/* In one chunk, whose head is there. */
static int seek_in(struct ost *ost, struct request *request, const struct chunk_id *id,
                   const struct store_head *head) {
    const struct chunk_seek_request *body = &request->call->request.chunk_seek;
    uint64_t from = id->chunk == body->chunk ? body->offset / BLOCK_BYTES : 0;
    uint64_t end = seen_blocks(body, head, id->chunk);
    uint64_t blocks = body->chunk_bytes / BLOCK_BYTES;
    uint64_t at = from;
    int r = 0;

    if (head->chunk_bytes != body->chunk_bytes) {
        return -ERR_INVALID;
    }
    if (body->what == WIRE_SEEK_ANY) {
        if (head->block_count > 0 || head->promised > 0) {
            seek_found(request, id->chunk, 0);
        }
        return 0;
    }
    bool data = body->what == WIRE_SEEK_DATA;
    if (from < end && (data ? head->block_count > 0 : head->block_count < blocks)) {
        r = block_find(ost, id, (struct extent){from, (uint32_t)(end - from)}, data, &at);
    } else if (from < end) {
        at = end;
    }
    if (r == 0 && (data ? at < end : at < blocks)) {
        seek_found(request, id->chunk, at);
    }
    return r;
}

/* The next chunk that is here; -ERR_NOT_FOUND: there is none. */
static int seek_walk(struct ost *ost, struct request *request, struct chunk_id *id) {
    struct kv_cursor cursor;
    struct store_head head;
    struct bytes value;

    request_walk(request, id, &cursor);
    int r = kv_next(ost->kv, &cursor, &value);
    if (r < 0) {
        request_walked(request, r, &cursor);
        return r;
    }
    id->chunk = kv_key_split(&cursor.key).index >> STORE_INDEX_BITS;
    request->cursor = id->chunk;
    r = chunk_head_get(ost->kv, id, &head);
    if (r == 0) {
        r = seek_in(ost, request, id, &head);
    } else if (r == -ERR_NOT_FOUND) {
        r = 0; /* Segments without a head: fsck finds them. */
    }
    request->cursor += r == 0;
    return r;
}

/* The chunk at the cursor: without it there is a hole. */
static int seek_hole(struct ost *ost, struct request *request, struct chunk_id *id) {
    const struct chunk_seek_request *body = &request->call->request.chunk_seek;
    struct store_head head;

    id->chunk = request->cursor;
    int r = chunk_head_get(ost->kv, id, &head);
    if (r == -ERR_NOT_FOUND) {
        seek_found(request, id->chunk, 0);
        return 0;
    }
    r = r < 0 ? r : seek_in(ost, request, id, &head);
    request->cursor += r == 0 ? body->stride : 0;
    return r;
}

static int seek_start(struct ost *ost, struct request *request) {
    const struct chunk_seek_request *body = &request->call->request.chunk_seek;
    uint32_t rights = body->capability.rights & (RIGHT_READ | RIGHT_WRITE);

    if (body->chunk_bytes < CHUNK_BYTES_MIN || body->chunk_bytes > CHUNK_BYTES_MAX ||
        body->chunk_bytes % SEGMENT_BYTES || body->offset >= body->chunk_bytes ||
        body->chunk > FILE_BYTES_MAX / body->chunk_bytes || body->stride == 0 ||
        body->what < WIRE_SEEK_DATA || body->what > WIRE_SEEK_ANY) {
        return -ERR_INVALID;
    }
    request->cursor = body->chunk;
    request->call->reply.chunk_seek = (struct chunk_seek_reply){0};
    return rights == 0
               ? -ERR_BAD_CAPABILITY
               : request_capability(ost, request->call, &body->capability, rights & -rights);
}

void seek_run(struct ost *ost, struct request *request) {
    const struct chunk_seek_request *body = &request->call->request.chunk_seek;
    struct chunk_id id = {body->capability.ino, body->capability.generation, 0};
    int r = 0;

    if (request->stage == SEEK_START) {
        r = seek_start(ost, request);
        request->stage += r == 0;
    }
    for (uint32_t i = 0; r == 0 && request->stage == SEEK_NEXT && i < SEEK_CHUNKS_A_STEP; i++) {
        r = body->what == WIRE_SEEK_HOLE ? seek_hole(ost, request, &id)
                                         : seek_walk(ost, request, &id);
    }
    if (r == 0 && request->stage == SEEK_NEXT) {
        request_yield(ost, request);
        return;
    }
    if (!request_stops(ost, request, r == -ERR_NOT_FOUND ? 0 : r)) {
        request_finish(ost, request, 0);
    }
}
