/* The ring of records in shared memory. */
#include "kv/ring.h"
#include "base/bug.h"
#include "base/crc32c.h"
#include "kv/record.h"
#include <assert.h>

static uint32_t header_crc(const struct ring_header *header) {
    struct ring_header copy = *header;

    copy.crc = 0;
    return crc32c(0, &copy, offsetof(struct ring_header, starts));
}

static uint32_t start_crc(const struct ring_start *start) {
    return crc32c(0, start, offsetof(struct ring_start, crc));
}

/* One that names a place where no record can begin was not written by us, whatever its crc. */
static bool start_is_whole(const struct ring_start *start) {
    return start->crc == start_crc(start) && start->offset % LOG_ALIGN == 0 &&
           start->sequence <= LOG_TOTAL_MAX && start->position > 0 &&
           start->position <= LOG_TOTAL_MAX && start->offset <= LOG_TOTAL_MAX &&
           start->data_start <= LOG_TOTAL_MAX;
}

static const struct ring_start *newest_start(const struct ring_header *header) {
    const struct ring_start *newest = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(header->starts); i++) {
        const struct ring_start *start = &header->starts[i];

        if (start_is_whole(start) && (!newest || start->sequence > newest->sequence)) {
            newest = start;
        }
    }
    return newest;
}

static uint32_t newest_check(const struct ring_newest *newest) {
    return crc32c(LOG_RECORD_MAGIC, newest, offsetof(struct ring_newest, check));
}

bool ring_newest(const struct ring *ring, struct ring_newest *ret_newest) {
    bool found = false;

    for (size_t i = 0; i < ARRAY_SIZE(ring->header->newest); i++) {
        const struct ring_newest *newest = &ring->header->newest[i];

        if (newest->check == newest_check(newest) &&
            (!found || newest->position > ret_newest->position)) {
            *ret_newest = *newest;
            found = true;
        }
    }
    return found;
}

static bool header_is_of_boot(const struct ring_header *header,
                              const struct ring_options *options) {
    uint8_t boot_id[sizeof header->boot_id];

    options->env->ops->boot_id(options->env, boot_id);
    return memcmp(header->boot_id, boot_id, sizeof boot_id) == 0;
}

static bool header_is_valid(const struct ring_header *header) {
    return header->magic == LOG_RING_MAGIC && header->format == LOG_RING_FORMAT &&
           header->crc == header_crc(header);
}

/* A whole ring of this boot, of whatever log and size. */
static bool header_is_whole(const struct ring_header *header, const struct ring_options *options) {
    return header_is_valid(header) && header_is_of_boot(header, options) &&
           newest_start(header) != NULL;
}

/* A ring that was never finished does not say what its newest record is. */
static bool header_is_damaged(const struct ring *ring, const struct ring_options *options) {
    struct ring_newest newest;
    bool stale = header_is_valid(ring->header) && !header_is_of_boot(ring->header, options);

    return !stale && ring_newest(ring, &newest);
}

static bool header_is_ours(const struct ring_header *header, const struct ring_options *options) {
    return memcmp(header->owner_id, options->owner_id, sizeof header->owner_id) == 0 &&
           memcmp(header->log_id, options->log_id, sizeof header->log_id) == 0;
}

static bool sizes_are(const struct ring_header *header, uint64_t record_bytes,
                      uint64_t data_bytes) {
    return header->record_bytes == record_bytes && header->data_bytes == data_bytes;
}

static void ring_lay_out(struct ring *ring, size_t record_bytes, size_t data_bytes) {
    ring->header = ring->env->ops->shared_data(ring->shared);
    ring->records = (const uint8_t *)ring->header + BLOCK_BYTES;
    ring->data = ring->records + record_bytes;
    ring->record_bytes = record_bytes;
    ring->data_bytes = data_bytes;
    ring->record_bytes_max = ring_record_bytes_max(record_bytes);
}

size_t ring_record_bytes_max(size_t record_bytes) {
    return MIN(record_bytes / 4, (size_t)MIB / 2);
}

size_t ring_region_bytes(size_t record_bytes, size_t data_bytes) {
    return BLOCK_BYTES + record_bytes + data_bytes;
}

/* What was there before is no ring from the first store on. ring_reset makes one of it. */
static void header_write(struct ring *ring, const struct ring_options *options) {
    struct ring_header header = {.magic = LOG_RING_MAGIC,
                                 .format = LOG_RING_FORMAT,
                                 .record_bytes = options->record_bytes,
                                 .data_bytes = options->data_bytes};

    memcpy(header.owner_id, options->owner_id, sizeof header.owner_id);
    memcpy(header.log_id, options->log_id, sizeof header.log_id);
    options->env->ops->boot_id(options->env, header.boot_id);
    ring_store(&ring->header->starts, &header.starts,
               sizeof header - offsetof(struct ring_header, starts));
    header.crc = header_crc(&header);
    ring_store(ring->header, &header, offsetof(struct ring_header, starts));
}

int ring_open_new(struct ring *ring, const struct ring_options *options) {
    bool created;

    *ring = (struct ring){.env = options->env};
    int r = options->env->ops->shared_open(
        options->env, options->name, ring_region_bytes(options->record_bytes, options->data_bytes),
        &ring->shared, &created);
    if (r < 0) {
        return r;
    }
    ring_lay_out(ring, options->record_bytes, options->data_bytes);
    header_write(ring, options);
    return 0;
}

/* Maps what is there with the size that it has; ring_found says RING_NEW when that is no ring. */
static int ring_open_found(struct ring *ring, const struct ring_options *options,
                           uint64_t size_bytes, enum ring_found *ret_found) {
    bool created;

    *ring = (struct ring){.env = options->env};
    int r = options->env->ops->shared_open(options->env, options->name, (size_t)size_bytes,
                                           &ring->shared, &created);
    if (r < 0) {
        return r;
    }
    ring->header = options->env->ops->shared_data(ring->shared);
    const struct ring_header *header = ring->header;
    bool whole = !created && header_is_whole(header, options) && header->record_bytes > 0 &&
                 header->record_bytes <= size_bytes - BLOCK_BYTES &&
                 header->record_bytes % BLOCK_BYTES == 0 &&
                 header->data_bytes == size_bytes - BLOCK_BYTES - header->record_bytes;
    bool ours = whole && header_is_ours(header, options);
    bool wanted = ours && sizes_are(header, options->record_bytes, options->data_bytes);
    bool damaged = !whole && !created && header_is_damaged(ring, options);

    *ret_found = wanted                                        ? RING_USABLE
                 : ours                                        ? RING_OTHER_SIZE
                 : whole                                       ? RING_FOREIGN
                 : damaged                                     ? RING_DAMAGED
                 : !created && header->magic == LOG_RING_MAGIC ? RING_STALE
                                                               : RING_NEW;
    if (ours) {
        ring_lay_out(ring, (size_t)header->record_bytes, (size_t)header->data_bytes);
        ring->start = *newest_start(header);
    } else if (!damaged) {
        ring_close(ring);
    }
    return 0;
}

int ring_open(struct ring *ring, const struct ring_options *options, enum ring_found *ret_found) {
    enum ring_found found = RING_NEW;
    uint64_t size_bytes = 0;
    int r = options->env->ops->shared_size(options->env, options->name, &size_bytes);

    if (r < 0 && r != -ERR_NOT_FOUND) {
        return r;
    }
    if (r == 0 && size_bytes >= BLOCK_BYTES && size_bytes <= SIZE_MAX) {
        r = ring_open_found(ring, options, size_bytes, &found);
        if (r < 0) {
            return r;
        }
    }
    if (found == RING_NEW || found == RING_STALE) {
        r = ring_open_new(ring, options);
        if (r < 0) {
            return r;
        }
    }
    *ret_found = found;
    return 0;
}

void ring_close(struct ring *ring) {
    if (ring->shared) {
        ring->env->ops->shared_close(ring->shared);
        ring->shared = NULL;
    }
}

static void newest_store(struct ring *ring) {
    struct ring_newest newest = {.position = ring->position, .end = ring->head};

    newest.check = newest_check(&newest);
    ring_store(&ring->header->newest[newest.position % ARRAY_SIZE(ring->header->newest)], &newest,
               sizeof newest);
}

static void newest_forget(struct ring *ring) {
    static const struct ring_newest none[ARRAY_SIZE(ring->header->newest)];

    ring_store(&ring->header->newest, none, sizeof none);
}

/* Nothing of an earlier life may be taken for the next record, nor be missed: both places that say
 * what the newest one was go first. */
void ring_reset(struct ring *ring, uint64_t position, uint32_t crc) {
    static const struct log_record no_record;
    struct ring_start start = {.position = position + 1, .previous_crc = crc};

    newest_forget(ring);
    ring_store(ring->records, &no_record, sizeof no_record);
    ring->data_head = 0;
    ring->open_bytes = 0;
    ring->open_operations = 0;
    ring->head = 0;
    ring->position = position;
    ring->last_crc = crc;
    ring_release(ring, &start);
}

void ring_continue(struct ring *ring, uint64_t head, uint64_t position, uint32_t crc) {
    assert(head >= ring->start.offset && head - ring->start.offset <= ring->record_bytes);
    assert(position + 1 >= ring->start.position);
    assert((head == ring->start.offset) == (position + 1 == ring->start.position));
    ring->head = head;
    ring->position = position;
    ring->last_crc = crc;
    struct ring_newest newest;
    if (ring_newest(ring, &newest) && newest.position > position) {
        newest_forget(ring); /* what was behind is given up */
    }
    newest_store(ring); /* it may have been killed before it said so */
}

static size_t left_behind(const struct ring *ring, uint64_t offset) {
    if (BUG(OFFSET_32)) {
        offset = (uint32_t)offset;
    }
    return ring->record_bytes - (size_t)(offset % ring->record_bytes);
}

const struct log_record *ring_walk(const struct ring *ring, uint64_t *offset, uint64_t position,
                                   uint32_t previous_crc) {
    uint64_t at = *offset;
    const struct log_record *record = (const void *)(ring->records + at % ring->record_bytes);

    if (record->magic == LOG_FILLER_MAGIC) {
        at += left_behind(ring, at);
        record = (const void *)ring->records;
    }
    size_t longest = MIN(left_behind(ring, at), ring->record_bytes_max);

    if (record_check(record, longest, previous_crc) < 0 || record->position != position ||
        at + record_padded(record->length) - ring->start.offset > ring->record_bytes) {
        return NULL;
    }
    *offset = at + record_padded(record->length);
    return record;
}

/* Where a record behind `offset` begins: the longest one fits there. */
static uint64_t record_place(const struct ring *ring, uint64_t offset) {
    size_t left = left_behind(ring, offset);

    return left < ring->record_bytes_max ? offset + left : offset;
}

static uint64_t end_of_open(const struct ring *ring) {
    return ring->open_bytes > 0 ? ring->open_at + record_padded(ring->open_bytes) : ring->head;
}

size_t ring_used_bytes(const struct ring *ring) {
    return (size_t)(end_of_open(ring) - ring->start.offset);
}

bool ring_must_seal(const struct ring *ring, size_t bytes) {
    return ring->open_bytes > 0 && bytes > ring->record_bytes_max - ring->open_bytes;
}

uint64_t ring_end_with(const struct ring *ring, size_t bytes) {
    assert(bytes <= ring->record_bytes_max - sizeof(struct log_record));
    if (ring->open_bytes > 0 && !ring_must_seal(ring, bytes)) {
        return ring->open_at + record_padded(ring->open_bytes + bytes);
    }
    return record_place(ring, end_of_open(ring)) + record_padded(sizeof(struct log_record) + bytes);
}

void ring_open_record(struct ring *ring) {
    assert(ring->open_bytes == 0);
    ring->open_at = record_place(ring, ring->head);
    if (BUG(FILLER_HEAD) && ring->open_at != ring->head) {
        static const uint32_t filler = LOG_FILLER_MAGIC;

        ring_store(ring->records + ring->head % ring->record_bytes, &filler, sizeof filler);
        ring->head = ring->open_at;
    }
    ring->open_bytes = sizeof(struct log_record);
    ring->open_operations = 0;
}

const uint8_t *ring_at_open(const struct ring *ring) {
    assert(ring->open_bytes > 0);
    return ring->records + ring->open_at % ring->record_bytes + ring->open_bytes;
}

void ring_grow_open(struct ring *ring, size_t bytes, uint32_t operations) {
    assert(bytes <= ring->record_bytes_max - ring->open_bytes);
    ring->open_bytes += bytes;
    ring->open_operations += operations;
    assert(ring_used_bytes(ring) <= ring->record_bytes);
}

void ring_shrink_open(struct ring *ring, size_t open_bytes, uint32_t open_operations) {
    assert(open_bytes <= ring->open_bytes);
    assert((open_bytes == 0) == (open_operations == 0) || BUG(STALE_COUNT));
    ring->open_bytes = open_bytes;
    ring->open_operations = open_operations;
}

void ring_seal(struct ring *ring, uint64_t term, uint64_t durable_upto) {
    static const uint32_t filler = LOG_FILLER_MAGIC;
    const struct log_record *record =
        (const void *)(ring->records + ring->open_at % ring->record_bytes);
    struct log_record header = {.magic = LOG_RECORD_MAGIC,
                                .length = (uint32_t)ring->open_bytes,
                                .position = ring->position + 1,
                                .term = term,
                                .durable_upto = durable_upto,
                                .data_end = ring->data_head,
                                .operation_count = ring->open_operations};

    assert(ring->open_bytes > sizeof header && ring->open_operations > 0);
    assert(durable_upto <= ring->position);
    header.crc = record_crc(&header, record + 1, ring->last_crc);
    if (ring->open_at != ring->head) {
        ring_store(ring->records + ring->head % ring->record_bytes, &filler, sizeof filler);
    }
    if (BUG(NEWEST_FIRST)) {
        newest_store(&(struct ring){
            .header = ring->header, .position = header.position, .head = end_of_open(ring)});
    }
    ring_store(record, &header, sizeof header);
    ring->last_crc = header.crc;
    ring->position++;
    ring->head = end_of_open(ring);
    ring->open_bytes = 0;
    ring->open_operations = BUG(STALE_COUNT) ? ring->open_operations : 0;
    newest_store(ring);
}

void ring_release(struct ring *ring, const struct ring_start *start) {
    struct ring_start next = *start;

    assert(start->offset <= ring->head && start->data_start <= ring->data_head);
    next.sequence = ring->start.sequence + 1;
    next.crc = start_crc(&next);
    ring_store(&ring->header->starts[next.sequence % ARRAY_SIZE(ring->header->starts)], &next,
               sizeof next);
    ring->start = next;
}

size_t ring_data_free_bytes(const struct ring *ring) {
    return ring->data_bytes - (size_t)(ring->data_head - ring->start.data_start);
}

static size_t data_left(const struct ring *ring) {
    return ring->data_bytes - (size_t)(ring->data_head % ring->data_bytes);
}

size_t ring_data_cost(const struct ring *ring, size_t bytes) {
    bool skips = bytes > 0 && data_left(ring) < bytes && !BUG(DATA_WRAP);

    return skips ? data_left(ring) + bytes : bytes;
}

bool ring_data_allocate(struct ring *ring, size_t bytes, uint64_t *ret_offset) {
    if (ring->data_bytes == 0 || bytes > ring->data_bytes) {
        return false;
    }
    size_t skip = data_left(ring) < bytes ? data_left(ring) : 0;

    if (skip + bytes > ring_data_free_bytes(ring)) {
        return false;
    }
    *ret_offset = ring->data_head + skip;
    ring->data_head += skip + bytes;
    return true;
}
