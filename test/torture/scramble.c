/* Reads a ring as recovery would, for the data that its records name, and spoils all else of the
 * data area: its owner may have been anywhere in filling it. */
#include "base/crc32c.h"
#include "kv/log_format.h"
#include "kv/record.h"
#include "kv/ring.h"
#include "seed.h"

enum { SPOILED_BYTES = 16 };

struct area {
    uint8_t named[MACHINE_REGION_BYTES_MAX];
    size_t size;
};
static struct area area;

static const struct ring_start *newest_start(const struct ring_header *header) {
    const struct ring_start *newest = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(header->starts); i++) {
        const struct ring_start *start = &header->starts[i];

        if (start->crc == crc32c(0, start, offsetof(struct ring_start, crc)) &&
            (!newest || start->sequence > newest->sequence)) {
            newest = start;
        }
    }
    return newest;
}

static void name(uint64_t offset, uint64_t size) {
    size_t place = (size_t)(offset % area.size);

    memset(area.named + place, 1, MIN((size_t)size, area.size - place));
}

static void name_record(const struct owner *owner, const struct log_record *record) {
    struct bytes body = record_body(record);
    uint64_t offset, size;
    struct record_operation operation;

    while (record_next(&body, &operation) == 0) {
        if (operation.kind == LOG_NOTE) {
            owner->ops->named(operation.value, &offset, &size);
            name(offset, size);
        }
    }
}

bool ring_walk_begin(const struct ring_header *header, struct ring_walk *ret_walk) {
    const struct ring_start *start = newest_start(header);

    if (start) {
        *ret_walk = (struct ring_walk){.header = header,
                                       .start = start,
                                       .offset = start->offset,
                                       .first = start->position,
                                       .position = start->position,
                                       .crc = start->previous_crc};
    }
    return start != NULL;
}

const struct log_record *ring_walk_next(struct ring_walk *walk) {
    struct ring ring = {.header = walk->header,
                        .record_bytes_max = ring_record_bytes_max(walk->header->record_bytes),
                        .records = (const uint8_t *)walk->header + BLOCK_BYTES,
                        .record_bytes = (size_t)walk->header->record_bytes,
                        .start = *walk->start};
    const struct log_record *record = ring_walk(&ring, &walk->offset, walk->position, walk->crc);

    if (record) {
        walk->crc = record->crc;
        walk->position++;
    }
    return record;
}

const struct ring_header *owner_ring(const struct owner *owner) {
    size_t size = 0;
    const struct ring_header *header =
        (const void *)machine_region(owner->machine, owner->ring_name, &size);

    return header && size >= BLOCK_BYTES && header->magic == LOG_RING_MAGIC &&
                   header->record_bytes > 0 &&
                   BLOCK_BYTES + header->record_bytes + header->data_bytes == size
               ? header
               : NULL;
}

/* The header, and the records that the walk takes: the last one's CRC is of all of them. */
uint64_t ring_seen(const struct owner *owner) {
    const struct ring_header *header = owner_ring(owner);

    if (!header) {
        return 0;
    }
    struct ring_walk walk = {0};
    bool walks = ring_walk_begin(header, &walk);
    while (walks && ring_walk_next(&walk)) {
    }
    uint64_t crcs = (uint64_t)crc32c(0, header, sizeof *header) << 32 | walk.crc;
    return (crcs ^ walk.offset) * UINT64_C(0x9e3779b97f4a7c15) + walk.position;
}

static void names_walk(const struct owner *owner, const struct ring_header *header) {
    const struct log_record *record;
    struct ring_walk walk;

    if (!ring_walk_begin(header, &walk)) {
        return;
    }
    while ((record = ring_walk_next(&walk))) {
        name_record(owner, record);
    }
}

/* Of a sector that nobody names some bytes in one place; else all that are not named. */
static void sector_spoil(struct machine *machine, const uint8_t *data, const uint8_t *named) {
    uint8_t bytes[MACHINE_SECTOR_BYTES];
    bool any = memchr(named, 1, MACHINE_SECTOR_BYTES) != NULL;
    bool all = !memchr(named, 0, MACHINE_SECTOR_BYTES);
    size_t first =
        any ? 0 : prng_below(machine_prng(machine), MACHINE_SECTOR_BYTES - SPOILED_BYTES);
    size_t size = any ? MACHINE_SECTOR_BYTES : SPOILED_BYTES;

    for (size_t i = 0; i < size; i++) {
        bytes[i] = (uint8_t)(named[first + i] ? data[first + i] : data[first + i] ^ 0x5a);
    }
    if (!all) {
        machine_spoil(machine, data + first, bytes, size);
    }
}

void scramble(struct owner *owner) {
    const struct ring_header *header = owner_ring(owner);

    if (!header || header->data_bytes == 0) {
        return;
    }
    area.size = (size_t)header->data_bytes;
    const uint8_t *data = (const uint8_t *)header + BLOCK_BYTES + header->record_bytes;
    memset(area.named, 0, area.size);
    names_walk(owner, header);
    machine_spoil_begin(owner->machine, data);
    for (size_t at = 0; at < area.size; at += MACHINE_SECTOR_BYTES) {
        sector_spoil(owner->machine, data + at, area.named + at);
    }
}
