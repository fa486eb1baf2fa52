/* The disk log at a start: its batches, one behind the other, and what may lie behind the last. */
#include "kv/disk_log_internal.h"
#include "kv/record.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

/* A block behind the end of what is there, as far as it is known, which the medium can't read. */
static void note_unreadable(struct disk_log *log, uint64_t place) {
    if (log->unreadable == 0) {
        log->unreadable = DISK_LOG_REGION_START + place;
    }
}

/* Reads the batch at `offset` into the stage. -ERR_NOT_FOUND when there is none, it is not whole or
 * can't be read. Only bytes that the region has are read, and none of a batch that would lie over
 * the tail, however long its header says that it is. */
static int read_batch(struct disk_log *log, uint64_t offset) {
    struct log_batch *batch = (void *)log->stage;
    uint64_t place = offset % log->region_bytes;
    int r = disk_log_run(log, ENV_IO_READ, DISK_LOG_REGION_START + place, BLOCK_BYTES);

    if (r == 0) {
        size_t whole = sizeof *batch + (size_t)batch->payload_bytes;
        size_t padded = (size_t)round_up(whole, BLOCK_BYTES);

        if (batch->magic != LOG_BATCH_MAGIC || batch->owner != log->owner ||
            batch->offset != offset || whole > log->stage_bytes ||
            whole > log->region_bytes - place || padded > log->tail + log->region_bytes - offset) {
            return -ERR_NOT_FOUND;
        }
        if (whole > BLOCK_BYTES) {
            r = disk_log_run(log, ENV_IO_READ, DISK_LOG_REGION_START + place, padded);
        }
    }
    if (r == -ERR_IO) {
        note_unreadable(log, place);
        return -ERR_NOT_FOUND;
    }
    return r < 0 ? r : batch->crc == disk_log_batch_crc(batch) ? 0 : -ERR_NOT_FOUND;
}

/* The batch behind the last good one: at head, or at the region's beginning when it did not fit. */
static int find_batch(struct disk_log *log, uint64_t *ret_offset) {
    uint64_t lap = round_up(log->head, log->region_bytes);
    const uint64_t places[] = {log->head, lap};

    log->unreadable = 0;
    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        const struct log_batch *batch = (const void *)log->stage;

        if ((i == 1 && lap == log->head) ||
            places[i] + BLOCK_BYTES > log->tail + log->region_bytes) {
            break;
        }
        int r = read_batch(log, places[i]);
        if (r == 0 && batch->first_position == log->last_position + 1 &&
            batch->previous_crc == log->last_crc) {
            *ret_offset = places[i];
            return 0;
        }
        if (r < 0 && r != -ERR_NOT_FOUND) {
            return r;
        }
    }
    return -ERR_NOT_FOUND;
}

/* True when the block may begin a later batch that knew of more durable records than we found. */
static bool looks_later(const struct disk_log *log, const uint8_t *block, uint64_t offset) {
    const struct log_batch *batch = (const void *)block;

    return batch->magic == LOG_BATCH_MAGIC && batch->owner == log->owner &&
           batch->offset == offset && batch->durable_upto > log->last_position;
}

struct suspects {
    uint64_t offsets[DISK_LOG_STAGE_BYTES_MAX / BLOCK_BYTES];
    size_t count;
};

static int suspects_add(struct disk_log *log, uint64_t at, size_t size, struct suspects *suspects) {
    int r = disk_log_run(log, ENV_IO_READ, DISK_LOG_REGION_START + at % log->region_bytes, size);

    for (size_t i = 0; r == 0 && i < size; i += BLOCK_BYTES) {
        if (looks_later(log, log->stage + i, at + i)) {
            assert(suspects->count < ARRAY_SIZE(suspects->offsets));
            suspects->offsets[suspects->count++] = at + i;
        }
    }
    return r;
}

/* Where a piece can't be read its blocks are, one by one. */
static int suspects_find(struct disk_log *log, uint64_t at, size_t size,
                         struct suspects *suspects) {
    int r = suspects_add(log, at, size, suspects);

    if (r != -ERR_IO) {
        return r;
    }
    for (size_t i = 0; i < size; i += BLOCK_BYTES) {
        r = suspects_add(log, at + i, BLOCK_BYTES, suspects);
        if (r == -ERR_IO) {
            note_unreadable(log, (at + i) % log->region_bytes);
        } else if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int refuse_missing(const struct disk_log *log, uint64_t durable_upto, char problem[256]) {
    char unreadable[48] = "";

    if (log->unreadable > 0) {
        snprintf(unreadable, sizeof unreadable, " (byte %" PRIu64 " cannot be read)",
                 log->unreadable);
    }
    snprintf(problem, 256,
             "%s: the disk log is damaged at byte %" PRIu64 ": record %" PRIu64
             " is missing though %" PRIu64
             " was durable%s: check the disk, restore DIR from a backup",
             log->path, DISK_LOG_REGION_START + log->head % log->region_bytes,
             log->last_position + 1, durable_upto, unreadable);
    return log->unreadable > 0 ? -ERR_IO : -ERR_CORRUPT;
}

static int check_piece(struct disk_log *log, uint64_t at, size_t size, char problem[256]) {
    struct suspects suspects = {.count = 0};
    int r = suspects_find(log, at, size, &suspects);

    for (size_t i = 0; r == 0 && i < suspects.count; i++) {
        const struct log_batch *batch = (const void *)log->stage;

        r = read_batch(log, suspects.offsets[i]);
        if (r == 0) {
            r = refuse_missing(log, batch->durable_upto, problem);
        } else if (r == -ERR_NOT_FOUND) {
            r = 0;
        }
    }
    return r;
}

/* The walk has ended. A batch further on that was written when the record at which it ended was
 * durable already means that what is missing here was lost by the medium, not by a crash. One sync
 * point writes at most a ring of records, so the next one's batches begin within that. */
static int check_end(struct disk_log *log, char problem[256]) {
    uint64_t limit = log->tail + log->region_bytes;
    uint64_t ring = MIN(disk_log_ring_bytes_max(log), log->region_bytes);
    uint64_t behind = round_up(ring / 4 * 5, BLOCK_BYTES) + 2 * log->stage_bytes;
    uint64_t end = MIN(log->head + behind, limit);
    int r = 0;

    for (uint64_t at = log->head; at < end && r == 0;) {
        uint64_t left = log->region_bytes - at % log->region_bytes;
        uint64_t piece = MIN(end - at, log->stage_bytes);
        uint64_t size = MIN(piece, left);

        r = check_piece(log, at, (size_t)size, problem);
        at += size;
    }
    return r;
}

static int replay_batch(struct disk_log *log,
                        int (*each)(void *context, const struct log_record *record),
                        void *context) {
    const struct log_batch *batch = (const void *)log->stage;
    uint64_t batch_offset = batch->offset;
    uint32_t left = batch->payload_bytes;
    const uint8_t *at = (const uint8_t *)(batch + 1);

    while (left > 0) {
        const struct log_record *record = (const void *)at;

        if (record_check(record, left, log->last_crc) < 0 ||
            record->position != log->last_position + 1 || record_padded(record->length) > left) {
            return -ERR_CORRUPT;
        }
        int r = each(context, record);
        if (r < 0) {
            return r;
        }
        log->last_position++;
        log->last_crc = record->crc;
        at += record_padded(record->length);
        left -= (uint32_t)record_padded(record->length);
    }
    log->head = batch_offset + round_up(sizeof *batch + batch->payload_bytes, BLOCK_BYTES);
    return 0;
}

int disk_log_replay(struct disk_log *log,
                    int (*each)(void *context, const struct log_record *record), void *context,
                    char problem[256]) {
    uint64_t offset;
    int r;

    while ((r = find_batch(log, &offset)) == 0) {
        r = replay_batch(log, each, context);
        if (r < 0) {
            if (!problem[0]) {
                snprintf(problem, 256,
                         "%s: the disk log cannot be replayed at record %" PRIu64
                         ": %s: restore DIR from a backup",
                         log->path, log->last_position + 1, err_text(r));
            }
            return r;
        }
        if (log->last_position <= log->applied) {
            disk_log_move_tail(log);
        }
    }
    return r == -ERR_NOT_FOUND ? check_end(log, problem) : r;
}
