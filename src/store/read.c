/* chunk_read: looks up the blocks once, so a read sees all of a write or nothing of it, then
 * delivers them from the ring, the block cache or the disk.
 *
 *     whole block         as it lies, with its checksum from the index: the client checks it
 *     part of one, or cut its checksum is checked here, then that of what is returned is computed
 *     hole                zeros
 *
 * Runs of adjoining blocks go from disk into the caller's memory where they lie there as on disk,
 * else through a buffer; a last block that is wanted in part does so, too, when there is room for
 * the whole. The blocks stay where they are until the read ends: it is pinned. */
#include "base/crc32c.h"
#include "store/operations.h"
#include <assert.h>

enum { READ_START, READ_DATA };

static const uint8_t zero_block[BLOCK_BYTES];

static uint8_t *target_of(const struct request *request, uint32_t i) {
    size_t offset = i == 0 ? 0 : (size_t)i * BLOCK_BYTES - request->skip;

    return request->call->bulk_in.data + offset;
}

/* How much of block i this reader may see: what lies beyond a cut that the chunk does not know yet
 * reads as zeros. */
static uint32_t visible_of(const struct request *request, uint32_t i) {
    uint64_t start = (request->range.first + i) * BLOCK_BYTES;

    return request->visible <= start ? 0 : (uint32_t)MIN(request->visible - start, UINT64_C(4096));
}

static bool is_plain(const struct request *request, uint32_t i) {
    uint32_t from;
    uint32_t to;

    request_block_part(request, i, &from, &to);
    return to - from == BLOCK_BYTES && visible_of(request, i) == BLOCK_BYTES;
}

/* Whether the caller's memory takes block i as it lies on the disk. */
static bool is_direct(const struct request *request, uint32_t i) {
    const struct buffer *to = &request->call->bulk_in;
    uint8_t *target = target_of(request, i);

    return (i > 0 || request->skip == 0) && (uintptr_t)target % BLOCK_BYTES == 0 &&
           (size_t)(target - to->data) + BLOCK_BYTES <= to->capacity;
}

static void checksum_set(const struct request *request, uint32_t i, uint32_t crc) {
    if (request->call->checksums) {
        request->call->checksums[i] = crc;
    }
}

static void deliver_hole(const struct request *request, uint32_t i) {
    uint32_t from;
    uint32_t to;

    request_block_part(request, i, &from, &to);
    memset(target_of(request, i), 0, to - from);
    checksum_set(request, i, crc32c(0, zero_block, to - from));
}

/* Small reads come again. */
static bool is_kept(const struct ost *ost, const struct request *request) {
    return ost->cache.slot_count > 0 && request->range.count <= OST_CACHED_BLOCKS_MAX;
}

/* The client has found damage and wants it named, or what enters the cache is looked at. */
static bool is_verified(const struct ost *ost, const struct request *request) {
    return request->call->request.chunk_read.verify || is_kept(ost, request);
}

/* data: the whole block. */
static int deliver(struct ost *ost, const struct request *request, uint32_t i,
                   const uint8_t *data) {
    const struct block_entry *entry = &request->entries[i];
    uint8_t *target = target_of(request, i);
    uint32_t visible = visible_of(request, i);
    uint32_t from;
    uint32_t to;

    request_block_part(request, i, &from, &to);
    bool plain = is_plain(request, i);
    bool verify = !plain || request->call->request.chunk_read.verify;

    if (verify && crc32c(0, data, BLOCK_BYTES) != entry->crc) {
        return block_corrupt(ost, &request->id, entry->block);
    }
    if (plain) {
        memcpy(target, data, BLOCK_BYTES);
        checksum_set(request, i, entry->crc);
        return 0;
    }
    uint32_t stop = MAX(from, MIN(to, visible));
    memcpy(target, data + from, stop - from);
    memset(target + (stop - from), 0, to - stop);
    checksum_set(request, i, crc32c(0, target, to - from));
    return 0;
}

/* The whole block is in the caller's memory. */
static int deliver_direct(struct ost *ost, const struct request *request, uint32_t i) {
    const struct block_entry *entry = &request->entries[i];
    uint8_t *target = target_of(request, i);
    uint32_t visible = visible_of(request, i);
    uint32_t from;
    uint32_t to;

    if (is_plain(request, i)) {
        checksum_set(request, i, entry->crc);
        return 0;
    }
    request_block_part(request, i, &from, &to);
    if (crc32c(0, target, BLOCK_BYTES) != entry->crc) {
        return block_corrupt(ost, &request->id, entry->block);
    }
    if (visible < to) {
        memset(target + visible, 0, BLOCK_BYTES - visible);
    }
    checksum_set(request, i, crc32c(0, target, to));
    return 0;
}

static void read_finished(struct ost *ost, struct ost_io *io) {
    struct request *request = io->owner;
    const uint8_t *data = io->io.buffer;
    bool direct = !io->bounce;
    int r = io->result;

    assert(request->is_pinned && io->index + io->block_count <= request->cursor);
    for (uint32_t k = 0; r == 0 && k < io->block_count; k++) {
        const struct block_entry *entry = &request->entries[io->index + k];
        const uint8_t *block = data + (size_t)k * BLOCK_BYTES;

        if (is_verified(ost, request) && crc32c(0, block, BLOCK_BYTES) != entry->crc) {
            r = block_corrupt(ost, &request->id, entry->block);
            break;
        }
        if (is_kept(ost, request)) {
            block_cache_insert(&ost->cache, entry->block, block);
        }
        r = direct ? deliver_direct(ost, request, io->index + k)
                   : deliver(ost, request, io->index + k, block);
    }
    request_io_end(ost, request, io, r);
}

/* Whether block k of the range lies on the disk right behind the count blocks from index. */
static bool run_goes_on(struct ost *ost, const struct request *request, uint32_t index,
                        uint32_t count) {
    const struct block_entry *entries = request->entries + index;

    return index + count < request->range.count &&
           entries[count].block == entries[0].block + count &&
           visible_of(request, index + count) > 0 && !small_find(&ost->small, entries[count].block);
}

/* Starts to read the run of blocks at the cursor. */
static int read_next(struct ost *ost, struct request *request) {
    uint32_t index = (uint32_t)request->cursor;
    uint8_t *target = target_of(request, index);
    bool direct = is_direct(request, index);
    uint32_t count_max = direct ? UINT32_MAX : OST_BOUNCE_BYTES / BLOCK_BYTES;
    uint32_t count = 1;
    struct ost_io *io = ost_io_get(ost, direct ? OST_IO_PLAIN : OST_IO_BOUNCED);

    if (!io) {
        return REQUEST_WAITS;
    }
    while (count < count_max && run_goes_on(ost, request, index, count) &&
           (!direct || is_direct(request, index + count))) {
        count++;
    }
    io->index = index;
    io->block_count = count;
    io->finished = read_finished;
    io->io = (struct env_io){.kind = ENV_IO_READ,
                             .offset = request->entries[index].block * BLOCK_BYTES,
                             .buffer = direct ? target : io->bounce,
                             .size = (size_t)count * BLOCK_BYTES};
    request->cursor += count;
    request_io_start(ost, request, io);
    return 0;
}

static int read_data(struct ost *ost, struct request *request) {
    while (request->cursor < request->range.count && request->io_result == 0) {
        uint32_t index = (uint32_t)request->cursor;
        uint64_t block = request->entries[index].block;
        const uint8_t *data = NULL;

        if (block == 0 || visible_of(request, index) == 0) {
            deliver_hole(request, index);
            request->cursor++;
            continue;
        }
        data = block_in_memory(ost, block);
        if (data) {
            int r = deliver(ost, request, index, data);

            if (r < 0) {
                return r;
            }
            request->cursor++;
        } else if (read_next(ost, request) != 0) {
            if (request->io_pending == 0) {
                request_wait(request, &ost->io_waiting);
            }
            return REQUEST_WAITS;
        }
    }
    return request->io_pending > 0 ? REQUEST_WAITS : request->io_result;
}

static int read_start(struct ost *ost, struct request *request) {
    struct call *call = request->call;
    const struct chunk_read_request *body = &call->request.chunk_read;
    struct request_shape shape = {.capability = &body->capability,
                                  .chunk = body->chunk,
                                  .chunk_bytes = body->chunk_bytes,
                                  .offset = body->offset,
                                  .size = body->size};
    struct store_head head = {.chunk_bytes = body->chunk_bytes};
    int r = request_shape(ost, request, &shape);

    if (r == 0 && (call->bulk_in.capacity < body->size || !call->bulk_in.data ||
                   (call->checksums && call->checksum_count < request->range.count))) {
        r = -ERR_TOO_SMALL;
    }
    if (r == 0) {
        r = request_capability(ost, call, &body->capability, RIGHT_READ);
    }
    if (r == 0) {
        r = chunk_head_get(ost->kv, &request->id, &head);
        r = r == -ERR_NOT_FOUND ? 0 : r;
    }
    if (r == 0 && head.chunk_bytes != body->chunk_bytes) {
        r = -ERR_INVALID;
    }
    if (r < 0) {
        return r;
    }
    /* Beyond the length zeros are stored: without a cut that it does not know, all is visible. */
    request->visible = body->chunk_bytes;
    if (head.truncate_seq < body->capability.truncate_seq) {
        uint32_t kept =
            chunk_bytes_before(body->chunk, body->chunk_bytes, body->capability.truncate_size);

        request->visible = kept < head.length ? kept : body->chunk_bytes;
    }
    call->reply.chunk_read = (struct chunk_read_reply){.version = head.version};
    return chunk_entries_get(ost->kv, &request->id, request->range, request->entries);
}

void read_run(struct ost *ost, struct request *request) {
    struct call *call = request->call;
    struct session_counters *counters;
    int r = 0;

    if (request->stage == READ_START) {
        r = read_start(ost, request);
        if (request_stops(ost, request, r)) {
            return;
        }
        request_pin(ost, request);
        request->stage = READ_DATA;
    }
    assert(request->is_pinned);
    r = read_data(ost, request);
    if (r == REQUEST_WAITS || request_stops(ost, request, r)) {
        return;
    }
    assert(request->cursor == request->range.count && request->io_pending == 0);
    call->bulk_in.size = request->size;
    call->checksum_count = call->checksums ? request->range.count : 0;
    call->reply.chunk_read.size = request->size;
    ost->counters.reads++;
    ost->counters.read_bytes += request->size;
    counters = session_counters_of(call);
    if (counters) {
        counters->read_bytes += request->size;
    }
    request_finish(ost, request, 0);
}
