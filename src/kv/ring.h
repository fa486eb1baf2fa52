/* The ring: records in shared memory, where they survive the death of the process.
 *
 *     page 0: header | record_bytes of records, circular | data_bytes for small writes, circular
 *
 *     ... | record | record | filler? | open record ...      offsets are running totals; the place
 *     start               head        open_at                is offset % size
 *
 * head is always the end of the newest sealed record. One record at a time may be open: it grows at
 * its end, behind a filler where the longest record would not fit before the ring's end. Sealing
 * stores the filler, the record's header and then, in the ring's header, that it is the newest; so
 * an abort leaves nothing, and recovery's walk, which ends where position or crc chain do, knows
 * how far it must come. start moves when the disk log has what lies before it.
 *
 * Thread: the kv's owner.  Memory: the shared region. */
#pragma once
#include "env/env.h"
#include "kv/log_format.h"
#include "kv/ring_store.h"

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
    const struct ring_header *header; /* stored to by ring_store only, */
    const uint8_t *records;           /* likewise */
    const uint8_t *data;
    size_t record_bytes;
    size_t data_bytes;
    size_t record_bytes_max;
    struct ring_start start;
    uint64_t head;     /* behind the newest sealed record */
    uint64_t position; /* of the newest sealed record */
    uint32_t last_crc; /* of the newest sealed record */
    uint64_t data_head;
    uint64_t open_at;         /* where the open record begins */
    size_t open_bytes;        /* with its header; 0: no record is open */
    uint32_t open_operations; /* 0 only while it is being opened */
};

/* The longest record: a quarter of the ring, at most 512 KiB. */
size_t ring_record_bytes_max(size_t record_bytes);
/* Of shared memory, that a ring of these sizes takes. */
size_t ring_region_bytes(size_t record_bytes, size_t data_bytes);

enum ring_found { RING_NEW, RING_USABLE, RING_STALE, RING_FOREIGN, RING_OTHER_SIZE, RING_DAMAGED };
/* (start) What was there: nothing; a ring of this log and this boot, to be walked with ring_walk;
 * one of an earlier boot. NEW and STALE: one is made, call ring_reset. FOREIGN: a ring of another
 * log, of this boot: it is left alone, and nothing is open. OTHER_SIZE: one of this log and this
 * boot, mapped with the sizes that it has; to be walked, then closed, and made anew with
 * ring_open_new if nothing in it is needed. DAMAGED: its header is not whole, but ring_newest says
 * what was in it; nothing more of it may be used, else as OTHER_SIZE. */
MUST_CHECK int ring_open(struct ring *ring, const struct ring_options *options,
                         enum ring_found *ret_found);
/* (start) The same, whatever was there. */
MUST_CHECK int ring_open_new(struct ring *ring, const struct ring_options *options);
void ring_close(struct ring *ring);
/* Empties it: the next record is `position` + 1, behind one with this crc. */
void ring_reset(struct ring *ring, uint64_t position, uint32_t crc);
/* The record at *offset if it is `position` behind previous_crc, moving *offset behind it; NULL,
 * and *offset as it was, at the end of what is whole. */
const struct log_record *ring_walk(const struct ring *ring, uint64_t *offset, uint64_t position,
                                   uint32_t previous_crc);
/* What the newest record was, when the ring says so. */
bool ring_newest(const struct ring *ring, struct ring_newest *ret_newest);
/* The walk has ended: the next record goes to `head`, behind record `position` with this crc. */
void ring_continue(struct ring *ring, uint64_t head, uint64_t position, uint32_t crc);

/* Where the ring's contents end once `bytes` more are staged: behind what is open, or in a record
 * of their own where the open one is too long for them. */
uint64_t ring_end_with(const struct ring *ring, size_t bytes);
/* Whether they must go into another record than the open one. */
bool ring_must_seal(const struct ring *ring, size_t bytes);
/* Opens a record; none is open, and ring_end_with has said that it fits. */
void ring_open_record(struct ring *ring);
const uint8_t *ring_at_open(const struct ring *ring); /* where its next operation goes */
void ring_grow_open(struct ring *ring, size_t bytes, uint32_t operations);
/* Back to what it was, 0 bytes: to none. */
void ring_shrink_open(struct ring *ring, size_t open_bytes, uint32_t open_operations);
/* The open record has at least one operation. */
void ring_seal(struct ring *ring, uint64_t term, uint64_t durable_upto);

/* Everything before offset (behind record `position` with crc) is in the disk log, and data before
 * data_start in its blocks. */
void ring_release(struct ring *ring, const struct ring_start *start);
size_t ring_used_bytes(const struct ring *ring);

/* What `bytes` more take of the data area at most: what is skipped before its end counts. */
size_t ring_data_cost(const struct ring *ring, size_t bytes);
/* Space in the data area, in one piece; false when there is none. */
bool ring_data_allocate(struct ring *ring, size_t bytes, uint64_t *ret_offset);
size_t ring_data_free_bytes(const struct ring *ring);
static inline void *ring_data_at(struct ring *ring, uint64_t offset) {
    return ring_data_writable(ring->data + offset % ring->data_bytes);
}
