/* fsck_list: the rows of chunks and bitmaps as they are, and a check of stored blocks.
 *
 * The answer is a list of rows (struct store_fsck_row, key, value, padded to 8); the key of the
 * last one is the cursor of the next call. FSCK_CHUNKS, FSCK_BLOCKS, FSCK_PROMISED, FSCK_SESSIONS
 * and FSCK_ENDED give rows of types C, B, P, S and E. FSCK_DATA reads the blocks of segments from
 * the disk, past all caches, and gives for each segment that it looked at a mask of blocks that
 * don't match their checksums. A row whose own checksum is wrong comes without a value, and
 * FSCK_DATA passes over it. */
#include "base/crc32c.h"
#include "store/fsck_format.h"
#include "store/operations.h"

enum { FSCK_BEGIN, FSCK_NEXT, FSCK_CHECK, FSCK_SEGMENTS_A_CALL = 16, FSCK_SKIPS_MAX = 4096 };

static int fsck_range(const struct fsck_list_request *body, struct kv_cursor *ret_cursor) {
    struct kv_key_fields low = {0};
    struct kv_key_fields high = {0};

    if (body->what == FSCK_CHUNKS || body->what == FSCK_DATA) {
        low.space = KV_SPACE_SLOT;
        high.space = KV_SPACE_SLOT + 1;
    } else if (body->what == FSCK_BLOCKS) {
        low.type = STORE_ROW_BITMAP;
        high.type = STORE_ROW_BITMAP + 1;
    } else if (body->what == FSCK_PROMISED) {
        low.type = STORE_ROW_PROMISED;
        high.type = STORE_ROW_PROMISED + 1;
    } else if (body->what == FSCK_SESSIONS) {
        low.type = STORE_ROW_SESSION;
        high.type = STORE_ROW_SESSION + 1;
    } else if (body->what == FSCK_ENDED) {
        low.type = STORE_ROW_ENDED;
        high.type = STORE_ROW_ENDED + 1;
    } else {
        return -ERR_NOT_SUPPORTED;
    }
    struct kv_key from = kv_key_make(low);
    struct kv_key to = kv_key_make(high);

    kv_cursor_init(ret_cursor, &from, &to);
    ret_cursor->skips_max = FSCK_SKIPS_MAX;
    if (body->cursor.size == 0) {
        return 0;
    }
    if (body->cursor.size != KV_KEY_BYTES) {
        return -ERR_MALFORMED;
    }
    if (memcmp(body->cursor.data, from.bytes, KV_KEY_BYTES) >= 0) {
        memcpy(ret_cursor->key.bytes, body->cursor.data, KV_KEY_BYTES);
        ret_cursor->inclusive = false;
    }
    return 0;
}

/* False: it does not fit. */
static bool row_give(struct buffer *out, size_t limit, const struct kv_key *key,
                     struct bytes value) {
    size_t stored = value.size == FSCK_ROW_IS_BAD ? 0 : value.size;
    struct store_fsck_row row = {.row_bytes = (uint32_t)((sizeof row + stored + 7) / 8 * 8),
                                 .value_bytes = (uint32_t)value.size};

    if (row.row_bytes > limit - out->size) {
        return false;
    }
    memcpy(row.key, key->bytes, sizeof row.key);
    memset(out->data + out->size, 0, row.row_bytes);
    memcpy(out->data + out->size, &row, sizeof row);
    if (stored > 0) {
        memcpy(out->data + out->size + sizeof row, value.data, stored);
    }
    out->size += row.row_bytes;
    return true;
}

static size_t limit_of(const struct request *request) {
    const struct call *call = request->call;

    return MIN(call->bulk_in.capacity, (size_t)call->request.fsck_list.bytes_max);
}

/* A row whose checksum is wrong has the size FSCK_ROW_IS_BAD. */
static int row_next(struct ost *ost, struct kv_cursor *cursor, struct bytes *ret_value) {
    struct kv_key before = cursor->key;
    bool inclusive = cursor->inclusive;
    int r = kv_next(ost->kv, cursor, ret_value);

    if (r == -ERR_CORRUPT &&
        (inclusive != cursor->inclusive || kv_key_compare(&before, &cursor->key) != 0)) {
        *ret_value = (struct bytes){NULL, FSCK_ROW_IS_BAD};
        r = 0;
    }
    return r;
}

/* What must be waited for ends the list once it holds something. */
static int list_rows(struct ost *ost, struct request *request) {
    struct call *call = request->call;
    struct bytes value;
    int r = 0;

    while (r == 0) {
        struct kv_cursor before = request->walk;

        r = row_next(ost, &request->walk, &value);
        if (r == 0 && !row_give(&call->bulk_in, limit_of(request), &request->walk.key, value)) {
            request->walk = before;
            r = -ERR_TOO_SMALL;
        }
    }
    bool partial = (r == -ERR_TOO_SMALL || r == -ERR_PENDING) && call->bulk_in.size > 0;
    call->reply.fsck_list.end = r == -ERR_NOT_FOUND;
    return r == -ERR_NOT_FOUND || partial ? 0 : r;
}

static void check_finished(struct ost *ost, struct ost_io *io) {
    struct request *request = io->owner;
    const struct block_entry *entry = &request->entries[io->index];

    if (io->result < 0 || crc32c(0, io->bounce, BLOCK_BYTES) != entry->crc) {
        /* A read that fails is a damaged block too. */
        request->more |= UINT64_C(1) << io->index;
    }
    request_io_end(ost, request, io, 0);
}

/* Reads the blocks of the segment at hand; those in the ring only are not on disk yet. */
static int check_blocks(struct ost *ost, struct request *request) {
    while (request->cursor < request->range.count) {
        uint32_t index = (uint32_t)request->cursor;
        uint64_t block = request->entries[index].block;

        if (block == 0 || small_find(&ost->small, block)) {
            request->cursor++;
            continue;
        }
        struct ost_io *io = ost_io_get(ost, OST_IO_BOUNCED);
        if (!io) {
            if (request->io_pending == 0) {
                request_wait(request, &ost->io_waiting);
            }
            return REQUEST_WAITS;
        }
        io->index = index;
        io->finished = check_finished;
        io->io = (struct env_io){.kind = ENV_IO_READ,
                                 .offset = block * BLOCK_BYTES,
                                 .buffer = io->bounce,
                                 .size = BLOCK_BYTES};
        request->cursor++;
        request_io_start(ost, request, io);
    }
    return request->io_pending > 0 ? REQUEST_WAITS : 0;
}

/* The next segment behind the last one: its entries. */
static int check_next(struct ost *ost, struct request *request) {
    struct kv_cursor before;
    struct bytes value;
    uint64_t index;
    int r;

    do {
        before = request->walk;
        r = row_next(ost, &request->walk, &value);
        index = kv_key_split(&request->walk.key).index % (1 << STORE_INDEX_BITS);
    } while (r == 0 && (!store_row_is_segment(index) || value.size == FSCK_ROW_IS_BAD));
    if (r == 0) {
        struct kv_key_fields fields = kv_key_split(&request->walk.key);

        request->id = (struct chunk_id){.ino = {fields.id},
                                        .generation = fields.generation,
                                        .chunk = fields.index >> STORE_INDEX_BITS};
        request->range = (struct extent){(index - 1) * BLOCKS_PER_SEGMENT, BLOCKS_PER_SEGMENT};
        r = chunk_entries_get(ost->kv, &request->id, request->range, request->entries);
        if (r == -ERR_CORRUPT) {
            /* Told of by who reads the rows. */
            memset(request->entries, 0, BLOCKS_PER_SEGMENT * sizeof request->entries[0]);
            r = 0;
        }
        if (r < 0) {
            request->walk = before;
        }
    }
    return r;
}

static int check_data(struct ost *ost, struct request *request) {
    struct call *call = request->call;
    int r = 0;

    while (r == 0 && request->sum < FSCK_SEGMENTS_A_CALL) {
        if (request->stage == FSCK_NEXT) {
            r = check_next(ost, request);
            if (r < 0) {
                break;
            }
            request->cursor = 0;
            request->more = 0;
            request->stage = FSCK_CHECK;
            request_pin(ost, request);
        }
        r = check_blocks(ost, request);
        if (r == 0) {
            uint8_t mask[2];

            store_le16(mask, (uint16_t)request->more);
            request_unpin(ost, request);
            request->stage = FSCK_NEXT;
            request->sum++;
            if (!row_give(&call->bulk_in, limit_of(request), &request->walk.key,
                          (struct bytes){mask, sizeof mask})) {
                r = call->bulk_in.size > 0 ? 0 : -ERR_TOO_SMALL;
                break;
            }
        }
    }
    call->reply.fsck_list.end = r == -ERR_NOT_FOUND;
    return r == -ERR_NOT_FOUND ? 0 : r;
}

void fsck_run(struct ost *ost, struct request *request) {
    struct call *call = request->call;
    int r = 0;

    if (request->stage == FSCK_BEGIN) {
        r = call->bulk_in.data ? fsck_range(&call->request.fsck_list, &request->walk)
                               : -ERR_TOO_SMALL;
        call->bulk_in.size = 0;
        request->stage = FSCK_NEXT;
    }
    if (r == 0) {
        r = call->request.fsck_list.what == FSCK_DATA ? check_data(ost, request)
                                                      : list_rows(ost, request);
    }
    if (r != REQUEST_WAITS && !request_stops(ost, request, r)) {
        call->reply.fsck_list.term = kv_term(ost->kv);
        call->reply.fsck_list.life_high = kv_life(ost->kv).high;
        call->reply.fsck_list.life_low = kv_life(ost->kv).low;
        request_finish(ost, request, 0);
    }
}
