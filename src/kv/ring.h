/* The ring: records in shared memory, where they survive the death of the process.
 *
 *     page 0: header | record_bytes of records, circular | data_bytes for small writes, circular
 *
 * Offsets are running totals; the place is offset % size. One record at a time is open: it grows
 * at its end and is closed in place. Nothing marks the end: the walk of recovery ends where
 * position, term or crc chain do. start moves when the disk log has what lies before it.
 *
 * Thread: the kv's owner.  Memory: the shared region. */
#pragma once
#include "env/env.h"
#include "kv/log_format.h"

struct ring_options {
    struct env *env;
    const char *name;
    uint8_t owner_id[LOG_OWNER_BYTES];
    uint8_t log_id[LOG_ID_BYTES];
    size_t record_bytes; /* a multiple of 4096 */
    size_t data_bytes;   /* a multiple of 4096, or 0 */
};

struct ring {
    struct env *env;
    struct env_shared *shared;
    struct ring_header *header;
    uint8_t *records;
    uint8_t *data;
    size_t record_bytes;
    size_t data_bytes;
    size_t record_bytes_max; /* longest record: a quarter of the ring, at most 512 KiB */
    struct ring_start start;
    uint64_t head;     /* where the next record goes */
    uint64_t position; /* of the newest closed record */
    uint32_t last_crc; /* of the newest closed record */
    uint64_t data_head;
    size_t open_bytes; /* 0: no record is open */
    uint32_t open_operations;
};

/* Of shared memory, that a ring of these sizes takes. */
size_t ring_region_bytes(size_t record_bytes, size_t data_bytes);

enum ring_found { RING_NEW, RING_USABLE, RING_FOREIGN, RING_OTHER_SIZE };
/* (start) What was there: nothing; a ring of this log and this boot, to be walked with ring_walk;
 * something else. If it is not usable, call ring_reset. RING_OTHER_SIZE: a ring of this log and
 * this boot, mapped with the sizes that it has; to be walked, then closed, and made anew with
 * ring_open_new if nothing in it is needed. */
MUST_CHECK int ring_open(struct ring *ring, const struct ring_options *options,
                         enum ring_found *ret_found);
/* (start) The same, whatever was there. */
MUST_CHECK int ring_open_new(struct ring *ring, const struct ring_options *options);
void ring_close(struct ring *ring);
/* Empties it: the next record is `position` + 1, behind one with this crc. */
void ring_reset(struct ring *ring, uint64_t position, uint32_t crc);
/* The record at *offset if it is `position` behind previous_crc, moving *offset behind it; NULL at
 * the end of what is whole. */
const struct log_record *ring_walk(const struct ring *ring, uint64_t *offset, uint64_t position,
                                   uint32_t previous_crc);

/* Bytes that the open record may still take; opens one when none is open. 0: the ring is full. */
size_t ring_open_record(struct ring *ring);
uint8_t *ring_at_open(struct ring *ring); /* where its next operation goes */
void ring_grow_open(struct ring *ring, size_t bytes, uint32_t operations);
/* Takes bytes off its end again. */
void ring_shrink_open(struct ring *ring, size_t open_bytes, uint32_t open_operations);
void ring_seal(struct ring *ring, uint64_t term, uint64_t durable_upto);

/* Everything before offset (behind record `position` with crc) is in the disk log, and data before
 * data_start in its blocks. */
void ring_release(struct ring *ring, const struct ring_start *start);
size_t ring_used_bytes(const struct ring *ring);

/* Space in the data area, in one piece; false when there is none. */
bool ring_data_allocate(struct ring *ring, size_t bytes, uint64_t *ret_offset);
size_t ring_data_free_bytes(const struct ring *ring);
static inline void *ring_data_at(struct ring *ring, uint64_t offset) {
    return ring->data + offset % ring->data_bytes;
}
