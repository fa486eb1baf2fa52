/* The ring of records in shared memory. */
#include "kv/ring.h"
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

static const struct ring_start *newest_start(const struct ring_header *header) {
    const struct ring_start *newest = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(header->starts); i++) {
        const struct ring_start *start = &header->starts[i];

        if (start->crc == start_crc(start) && (!newest || start->sequence > newest->sequence)) {
            newest = start;
        }
    }
    return newest;
}

/* Whether a ring is of this log and this boot, of whatever size. */
static bool header_is_ours(const struct ring_header *header, const struct ring_options *options) {
    uint8_t boot_id[sizeof header->boot_id];

    options->env->ops->boot_id(options->env, boot_id);
    return header->magic == LOG_RING_MAGIC && header->format == LOG_FORMAT &&
           header->crc == header_crc(header) &&
           memcmp(header->owner_id, options->owner_id, sizeof header->owner_id) == 0 &&
           memcmp(header->boot_id, boot_id, sizeof boot_id) == 0 &&
           memcmp(header->log_id, options->log_id, sizeof header->log_id) == 0 &&
           newest_start(header) != NULL;
}

static bool sizes_are(const struct ring_header *header, uint64_t record_bytes,
                      uint64_t data_bytes) {
    return header->record_bytes == record_bytes && header->data_bytes == data_bytes;
}

static void ring_lay_out(struct ring *ring, size_t record_bytes, size_t data_bytes) {
    ring->header = ring->env->ops->shared_data(ring->shared);
    ring->records = (uint8_t *)ring->header + BLOCK_BYTES;
    ring->data = ring->records + record_bytes;
    ring->record_bytes = record_bytes;
    ring->data_bytes = data_bytes;
    ring->record_bytes_max = MIN(record_bytes / 4, (size_t)MIB / 2);
}

size_t ring_region_bytes(size_t record_bytes, size_t data_bytes) {
    return BLOCK_BYTES + record_bytes + data_bytes;
}

static void header_write(struct ring *ring, const struct ring_options *options) {
    struct ring_header *header = ring->header;

    *header = (struct ring_header){.magic = LOG_RING_MAGIC,
                                   .format = LOG_FORMAT,
                                   .record_bytes = options->record_bytes,
                                   .data_bytes = options->data_bytes};
    memcpy(header->owner_id, options->owner_id, sizeof header->owner_id);
    memcpy(header->log_id, options->log_id, sizeof header->log_id);
    options->env->ops->boot_id(options->env, header->boot_id);
    header->crc = header_crc(header);
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
    const struct ring_header *header = options->env->ops->shared_data(ring->shared);
    bool ours = !created && header_is_ours(header, options);
    bool wanted = ours && sizes_are(header, options->record_bytes, options->data_bytes);
    bool whole = ours && header->record_bytes > 0 &&
                 header->record_bytes <= size_bytes - BLOCK_BYTES &&
                 header->data_bytes == size_bytes - BLOCK_BYTES - header->record_bytes;

    *ret_found = wanted && whole                               ? RING_USABLE
                 : whole                                       ? RING_OTHER_SIZE
                 : !created && header->magic == LOG_RING_MAGIC ? RING_FOREIGN
                                                               : RING_NEW;
    if (whole) {
        ring_lay_out(ring, (size_t)header->record_bytes, (size_t)header->data_bytes);
        ring->start = *newest_start(header);
    } else {
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
    if (found == RING_NEW || found == RING_FOREIGN) {
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

void ring_reset(struct ring *ring, uint64_t position, uint32_t crc) {
    struct ring_start start = {.position = position + 1, .previous_crc = crc};

    ring->head = 0;
    ring->data_head = 0;
    ring->position = position;
    ring->last_crc = crc;
    ring->open_bytes = 0;
    /* What an earlier life left at the beginning may not be taken for the next record. */
    memset(ring->records, 0, sizeof(struct log_record));
    ring_release(ring, &start);
}

const struct log_record *ring_walk(const struct ring *ring, uint64_t *offset, uint64_t position,
                                   uint32_t previous_crc) {
    for (int lap = 0; lap < 2; lap++) {
        size_t place = *offset % ring->record_bytes;
        const struct log_record *record = (const void *)(ring->records + place);
        size_t left = ring->record_bytes - place;

        if (left >= sizeof record->magic && record->magic == LOG_FILLER_MAGIC) {
            *offset += left;
            continue;
        }
        if (record_check(record, left, previous_crc) < 0 || record->position != position) {
            return NULL;
        }
        *offset += record_padded(record->length);
        return record;
    }
    return NULL;
}

size_t ring_used_bytes(const struct ring *ring) {
    return (size_t)(ring->head - ring->start.offset) + record_padded(ring->open_bytes);
}

size_t ring_open_record(struct ring *ring) {
    if (ring->open_bytes == 0) {
        size_t left = ring->record_bytes - ring->head % ring->record_bytes;
        size_t filler = left < ring->record_bytes_max ? left : 0;

        if (ring_used_bytes(ring) + filler + ring->record_bytes_max > ring->record_bytes) {
            return 0;
        }
        if (filler > 0) {
            uint32_t magic = LOG_FILLER_MAGIC;

            memcpy(ring->records + ring->head % ring->record_bytes, &magic, sizeof magic);
            ring->head += filler;
        }
        ring->open_bytes = sizeof(struct log_record);
        ring->open_operations = 0;
    }
    return ring->record_bytes_max - ring->open_bytes;
}

uint8_t *ring_at_open(struct ring *ring) {
    assert(ring->open_bytes > 0);
    return ring->records + ring->head % ring->record_bytes + ring->open_bytes;
}

void ring_grow_open(struct ring *ring, size_t bytes, uint32_t operations) {
    assert(bytes <= ring->record_bytes_max - ring->open_bytes);
    ring->open_bytes += bytes;
    ring->open_operations += operations;
}

void ring_shrink_open(struct ring *ring, size_t open_bytes, uint32_t open_operations) {
    assert(open_bytes <= ring->open_bytes);
    ring->open_bytes = open_bytes;
    ring->open_operations = open_operations;
}

void ring_seal(struct ring *ring, uint64_t term, uint64_t durable_upto) {
    struct log_record *record = (void *)(ring->records + ring->head % ring->record_bytes);

    assert(ring->open_bytes >= sizeof *record);
    *record = (struct log_record){.magic = LOG_RECORD_MAGIC,
                                  .length = (uint32_t)ring->open_bytes,
                                  .position = ring->position + 1,
                                  .term = term,
                                  .durable_upto = durable_upto,
                                  .data_end = ring->data_head,
                                  .operation_count = ring->open_operations};
    record_close(record, ring->last_crc);
    ring->last_crc = record->crc;
    ring->position++;
    ring->head += record_padded(ring->open_bytes);
    ring->open_bytes = 0;
}

void ring_release(struct ring *ring, const struct ring_start *start) {
    struct ring_start next = *start;

    next.sequence = ring->start.sequence + 1;
    next.crc = start_crc(&next);
    ring->header->starts[next.sequence % ARRAY_SIZE(ring->header->starts)] = next;
    ring->start = next;
}

size_t ring_data_free_bytes(const struct ring *ring) {
    return ring->data_bytes - (size_t)(ring->data_head - ring->start.data_start);
}

bool ring_data_allocate(struct ring *ring, size_t bytes, uint64_t *ret_offset) {
    if (ring->data_bytes == 0 || bytes > ring->data_bytes) {
        return false;
    }
    size_t left = ring->data_bytes - (size_t)(ring->data_head % ring->data_bytes);
    size_t skip = left < bytes ? left : 0;

    if (skip + bytes > ring_data_free_bytes(ring)) {
        return false;
    }
    *ret_offset = ring->data_head + skip;
    ring->data_head += skip + bytes;
    return true;
}
