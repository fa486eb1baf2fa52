/* The disk log: batches of records in a preallocated file that is overwritten in place.
 *
 *     block 0, 1: superblocks in turn | region, circular: batch, batch, … each on a 4 KiB boundary
 *
 * Offsets are running totals; the place is DISK_LOG_REGION_START + offset % region. A batch that
 * does not fit before the region's end starts at its beginning. Everything from tail on is needed.
 *
 * Thread: the kv owner's; one write or flush at a time is in flight.  Memory: a staging buffer. */
#pragma once
#include "env/env.h"
#include "kv/log_format.h"

enum { DISK_LOG_STAGE_BYTES_MAX = 1024 * 1024 };

struct disk_log_options {
    struct env *env;
    const char *path;
    uint64_t file_bytes;     /* a multiple of 4096 */
    size_t record_bytes_max; /* longest record, padded; half of a batch at the most */
    uint8_t owner_id[LOG_OWNER_BYTES];
    struct log_id log_id; /* of a new one, and what another must have; 0: drawn, any */
};

struct disk_log {
    struct env *env;
    struct env_file *file;
    uint64_t region_bytes;
    uint64_t owner;
    uint64_t payload_bytes_max; /* of a batch */
    uint64_t payload_bytes_min; /* of one that is followed by another */
    uint64_t stage_bytes;       /* the longest batch, with its header */
    struct log_superblock superblock;
    uint64_t tail;          /* of the superblock that is on disk: what is before may be reused */
    uint64_t head;          /* where the next batch goes */
    uint64_t batch_bytes;   /* of the batch that is being written at head; 0: none */
    uint64_t applied;       /* set before a replay: the base has records up to this */
    uint64_t last_position; /* newest record in it */
    uint32_t last_crc;      /* of that record */
    uint64_t unreadable;    /* behind a replay: where a batch might follow, byte; 0: all was read */
    bool superblock_is_damaged;     /* one of the two: not whole, or the medium can't read it */
    uint64_t superblock_damaged_at; /* where that one lies, byte */
    uint8_t *stage;                 /* stage_bytes and a block, aligned */
    struct env_io io;
    char path[56]; /* for messages */
};

/* (start) Formats a missing file, or one that is all zeros. One that is there is read when all has
 * come that was written before, also by a process that was killed (env.h, ALLOCATE). Of its two
 * superblocks one may be damaged: the start counts as one behind a loss. -ERR_NOT_OURS,
 * -ERR_NEWER_FORMAT, -ERR_CORRUPT, -ERR_IO, -ERR_NO_SPACE with a line in problem. */
MUST_CHECK int disk_log_open(struct disk_log *log, const struct disk_log_options *options,
                             char problem[256]);
/* (start) Whether the file is a log that disk_log_open takes as it is; changes nothing. The same
 * errors, and -ERR_NOT_FOUND. */
MUST_CHECK int disk_log_check(const struct disk_log_options *options, char problem[256]);
void disk_log_close(struct disk_log *log);

/* (start) Gives every record from the tail on to `each`, in order; leaves head behind the last, and
 * the superblock's tail, which is not written, behind the batches up to record log->applied.
 * -ERR_CORRUPT when a batch is bad that a later one says was durable; -ERR_IO when it can't be
 * read. One that can't be read with none behind it ends the replay: see disk_log_is_complete. */
MUST_CHECK int disk_log_replay(struct disk_log *log,
                               int (*each)(void *context, const struct log_record *record),
                               void *context, char problem[256]);

struct log_id disk_log_id(const struct disk_log *log);
/* With the batch that is being written. */
uint64_t disk_log_used_bytes(const struct disk_log *log);
/* What is taken at most by the rest of a sync point and one more behind it, of so many bytes. */
uint64_t disk_log_cost(const struct disk_log *log, uint64_t rest_bytes, uint64_t next_bytes);

/* Lays a batch's header before payload_bytes that the caller has put at disk_log_payload; the
 * filled io is to be submitted by the caller, who then calls disk_log_advance. */
uint8_t *disk_log_payload(struct disk_log *log);
struct disk_log_span {
    uint64_t first_position;
    uint64_t last_position;
    uint64_t durable_upto;
    uint32_t last_crc;
    uint32_t payload_bytes; /* at most payload_bytes_max */
};
void disk_log_prepare(struct disk_log *log, const struct disk_log_span *span);
void disk_log_advance(struct disk_log *log, const struct disk_log_span *span);

/* Notes in the superblock how long the ring is from now on: the longest that there was bounds how
 * far behind a bad batch a later one can be. */
void disk_log_note_ring(struct disk_log *log, uint64_t ring_bytes);
/* Notes in the superblock that the term has ended with what the log holds now: the next start
 * misses no ring, and finds all that, or some was lost. */
void disk_log_note_stop(struct disk_log *log);
/* Behind a replay, where no ring has what the log lacks: whether all is in it that may have been
 * flushed. A note of a stop says; without one it is so where all could be read. */
bool disk_log_is_complete(const struct disk_log *log);
/* The superblock's tail is where the log ends now: nothing in it is needed. */
void disk_log_move_tail(struct disk_log *log);
/* Lays the next superblock out in the stage and the io that writes it. */
void disk_log_prepare_superblock(struct disk_log *log);
/* (start) Writes and flushes it now. */
MUST_CHECK int disk_log_write_superblock(struct disk_log *log);
