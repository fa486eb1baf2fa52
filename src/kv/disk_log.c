/* The disk log: superblocks, batches, replay. */
#include "kv/disk_log.h"
#include "base/crc32c.h"
#include "kv/record.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { WRITTEN_AT_START_BYTES = 64 * 1024 * 1024 };

static uint64_t round_up(uint64_t value, uint64_t unit) {
    return (value + unit - 1) / unit * unit;
}

static int run(struct disk_log *log, enum env_io_kind kind, uint64_t offset, size_t size) {
    log->io = (struct env_io){
        .kind = kind, .file = log->file, .offset = offset, .buffer = log->stage, .size = size};
    int r = log->env->ops->io_run(log->env, &log->io);

    return r == 0 && kind == ENV_IO_READ && log->io.ret_size != size ? -ERR_CORRUPT : r;
}

static uint32_t superblock_crc(const struct log_superblock *superblock) {
    struct log_superblock copy = *superblock;

    copy.crc = 0;
    return crc32c(0, &copy, copy.format == 1 ? LOG_SUPERBLOCK_BYTES_OF_1 : sizeof copy);
}

void disk_log_prepare_superblock(struct disk_log *log) {
    log->superblock.sequence++;
    log->superblock.crc = superblock_crc(&log->superblock);
    memset(log->stage, 0, BLOCK_BYTES);
    memcpy(log->stage, &log->superblock, sizeof log->superblock);
    log->io = (struct env_io){.kind = ENV_IO_WRITE,
                              .file = log->file,
                              .offset = log->superblock.sequence % 2 * BLOCK_BYTES,
                              .buffer = log->stage,
                              .size = BLOCK_BYTES};
}

int disk_log_write_superblock(struct disk_log *log) {
    disk_log_prepare_superblock(log);
    int r = log->env->ops->io_run(log->env, &log->io);

    r = r < 0 ? r : run(log, ENV_IO_SYNC, 0, 0);
    log->tail = r < 0 ? log->tail : log->superblock.tail_offset;
    return r;
}

void disk_log_move_tail(struct disk_log *log) {
    log->superblock.tail_offset = log->head;
    log->superblock.tail_position = log->last_position + 1;
    log->superblock.tail_previous_crc = log->last_crc;
}

/* The region's beginning is written through, so that flushes of the first batches do not wait for
 * the file system to note that blocks have become written. */
static int log_format(struct disk_log *log, const struct disk_log_options *options) {
    int r = run(log, ENV_IO_ALLOCATE, 0, options->file_bytes);

    memset(log->stage, 0, log->stage_bytes);
    uint64_t end = MIN(options->file_bytes, (uint64_t)WRITTEN_AT_START_BYTES);
    for (uint64_t at = 0; at < end && r == 0; at += log->stage_bytes) {
        r = run(log, ENV_IO_WRITE, at, (size_t)MIN(end - at, log->stage_bytes));
    }
    /* Whoever finds a superblock finds a whole file: without power it may come back shorter. */
    r = r < 0 ? r : run(log, ENV_IO_SYNC, 0, 0);
    if (r < 0) {
        return r;
    }
    log->superblock = (struct log_superblock){.magic = LOG_SUPERBLOCK_MAGIC,
                                              .format = LOG_FORMAT,
                                              .region_bytes = log->region_bytes,
                                              .tail_position = 1,
                                              .counted_from = 1,
                                              .written_bytes = end - DISK_LOG_REGION_START};
    memcpy(log->superblock.owner_id, options->owner_id, LOG_OWNER_BYTES);
    log->env->ops->random(log->env, log->superblock.log_id, LOG_ID_BYTES);
    /* Numbers this low are no log's: see LOG_MANAGER. */
    log->superblock.log_id[7] |= 0x80;
    if (options->log_id.value != 0) {
        store_le64(log->superblock.log_id, options->log_id.value);
    }
    r = disk_log_write_superblock(log);
    return r < 0 ? r : disk_log_write_superblock(log);
}

/* Whether `size` bytes from `at` on are zeros: also those behind the file's last whole block. */
static int check_piece_is_zero(struct disk_log *log, uint64_t at, size_t size) {
    size_t blocks = (size_t)round_up(size, BLOCK_BYTES);

    log->io = (struct env_io){
        .kind = ENV_IO_READ, .file = log->file, .offset = at, .buffer = log->stage, .size = blocks};
    int r = log->env->ops->io_run(log->env, &log->io);
    if (r == 0 && log->io.ret_size < size) {
        r = -ERR_CORRUPT;
    }
    memset(log->stage + size, 0, blocks - size);
    for (size_t i = 0; r == 0 && i < blocks; i += sizeof(uint64_t)) {
        r = load_le64(log->stage + i) == 0 ? 0 : -ERR_CORRUPT;
    }
    return r;
}

/* What an unfinished format has left, if anything: a file that is all zeros. */
static int check_is_zero(struct disk_log *log, const struct disk_log_options *options,
                         char problem[256]) {
    uint64_t size = 0;
    int r = log->env->ops->file_size(log->file, &size);

    for (uint64_t at = 0; r == 0 && at < size; at += log->stage_bytes) {
        r = check_piece_is_zero(log, at, (size_t)MIN(log->stage_bytes, size - at));
    }
    if (r == -ERR_CORRUPT) {
        snprintf(problem, 256,
                 "%s is no disk log, or its beginning was overwritten: it is left as it is; "
                 "restore DIR from a backup, or move the file away if nothing in it is needed",
                 options->path);
    }
    return r;
}

static int read_superblocks(struct disk_log *log, const char *path, bool *ret_found,
                            char problem[256]) {
    bool found = false;

    for (uint64_t i = 0; i < 2; i++) {
        struct log_superblock superblock;
        int r = run(log, ENV_IO_READ, i * BLOCK_BYTES, BLOCK_BYTES);

        if (r < 0) {
            return r;
        }
        memcpy(&superblock, log->stage, sizeof superblock);
        if (superblock.magic != LOG_SUPERBLOCK_MAGIC || superblock.format == 0) {
            continue;
        }
        if (superblock.format == 1) {
            superblock.counted_from = UINT64_MAX;
        }
        if (superblock.format > LOG_FORMAT) {
            snprintf(problem, 256, "%s has format %u, this version reads up to %d: use a newer one",
                     path, superblock.format, LOG_FORMAT);
            return -ERR_NEWER_FORMAT;
        }
        if (superblock.crc == superblock_crc(&superblock) &&
            (!found || superblock.sequence > log->superblock.sequence)) {
            log->superblock = superblock;
            found = true;
        }
    }
    *ret_found = found;
    return 0;
}

/* Running totals of bytes stay far below; what is added to one does not wrap. */
#define LOG_OFFSET_MAX (UINT64_C(3) << 62)

/* Its checksum is right, so what makes no sense was written so. */
static int check_tail(const struct log_superblock *superblock, const char *path,
                      char problem[256]) {
    if (superblock->tail_offset % BLOCK_BYTES != 0 || superblock->tail_offset > LOG_OFFSET_MAX ||
        superblock->tail_position == 0) {
        snprintf(problem, 256, "%s: its superblock names a place that no batch can have", path);
        return -ERR_CORRUPT;
    }
    return 0;
}

static int check_superblock(struct disk_log *log, const struct disk_log_options *options,
                            char problem[256]) {
    if (memcmp(log->superblock.owner_id, options->owner_id, LOG_OWNER_BYTES) != 0) {
        snprintf(problem, 256, "%s belongs to another target", options->path);
        return -ERR_NOT_OURS;
    }
    if (options->log_id.value != 0 && options->log_id.value != disk_log_id(log).value) {
        snprintf(problem, 256, "%s is log %016" PRIx64 ", the cluster has log %016" PRIx64 " there",
                 options->path, disk_log_id(log).value, options->log_id.value);
        return -ERR_NOT_OURS;
    }
    if (log->superblock.region_bytes != log->region_bytes) {
        snprintf(problem, 256, "%s has %llu bytes, configured are %llu", options->path,
                 (unsigned long long)log->superblock.region_bytes,
                 (unsigned long long)log->region_bytes);
        return -ERR_INVALID;
    }
    return check_tail(&log->superblock, options->path, problem);
}

/* Opens the file and reads its superblocks, whether there are any or not. */
static int look(struct disk_log *log, const struct disk_log_options *options, unsigned flags,
                bool *ret_found, char problem[256]) {
    struct env *env = options->env;
    uint64_t size = 0;

    *log = (struct disk_log){.env = env,
                             .region_bytes = options->file_bytes - DISK_LOG_REGION_START,
                             .owner = load_le64(options->owner_id)};
    /* Whole blocks with the header; a small log still takes the longest record of its ring. */
    log->stage_bytes = MIN((uint64_t)DISK_LOG_STAGE_BYTES_MAX, log->region_bytes / 8);
    log->stage_bytes = log->stage_bytes / BLOCK_BYTES * BLOCK_BYTES;
    log->payload_bytes_max = log->stage_bytes - sizeof(struct log_batch);
    log->payload_bytes_min = log->payload_bytes_max - options->record_bytes_max;
    assert(options->record_bytes_max <= log->payload_bytes_max / 2 + BLOCK_BYTES);
    log->stage = aligned_alloc(BLOCK_BYTES, log->stage_bytes + BLOCK_BYTES);
    if (!log->stage) {
        return -ERR_NO_MEMORY;
    }
    int r = env->ops->file_open(env, options->path, flags | ENV_FILE_DIRECT, &log->file);
    if (r == 0) {
        r = env->ops->file_size(log->file, &size);
    }
    *ret_found = false;
    if (r == 0 && size >= 2 * BLOCK_BYTES) {
        r = read_superblocks(log, options->path, ret_found, problem);
    }
    return r;
}

/* Closes when opening failed, and says what nobody said more closely. */
static int looked(struct disk_log *log, const struct disk_log_options *options, int r,
                  char problem[256]) {
    if (r < 0) {
        if (!problem[0]) {
            snprintf(problem, 256, "the disk log %s cannot be opened: %s", options->path,
                     err_text(r));
        }
        disk_log_close(log);
    }
    return r;
}

int disk_log_check(const struct disk_log_options *options, char problem[256]) {
    struct disk_log log;
    bool found;

    problem[0] = '\0';
    int r = look(&log, options, 0, &found, problem);
    if (r == -ERR_NOT_FOUND) {
        snprintf(problem, 256, "%s is missing", options->path);
    } else if (r == 0 && !found) {
        snprintf(problem, 256, "%s is no disk log, or its beginning was overwritten",
                 options->path);
        r = -ERR_CORRUPT;
    }
    r = looked(&log, options, r < 0 ? r : check_superblock(&log, options, problem), problem);
    if (r == 0) {
        disk_log_close(&log);
    }
    return r;
}

int disk_log_open(struct disk_log *log, const struct disk_log_options *options, char problem[256]) {
    bool found;
    int r = look(log, options, ENV_FILE_CREATE, &found, problem);

    if (r == 0 && found) {
        r = check_superblock(log, options, problem);
    } else if (r == 0) {
        r = check_is_zero(log, options, problem);
        r = r < 0 ? r : log_format(log, options);
    }
    r = looked(log, options, r, problem);
    if (r == 0) {
        log->tail = log->superblock.tail_offset;
        log->head = log->superblock.tail_offset;
        log->last_position = log->superblock.tail_position - 1;
        log->last_crc = log->superblock.tail_previous_crc;
    }
    return r;
}

void disk_log_close(struct disk_log *log) {
    if (log->file) {
        log->env->ops->file_close(log->file);
        log->file = NULL;
    }
    free(log->stage);
    log->stage = NULL;
}

struct log_id disk_log_id(const struct disk_log *log) {
    return (struct log_id){load_le64(log->superblock.log_id)};
}

uint64_t disk_log_used_bytes(const struct disk_log *log) {
    return log->head + log->batch_bytes - log->tail;
}

static uint64_t batch_place(const struct disk_log *log, uint64_t payload_bytes) {
    uint64_t size = round_up(sizeof(struct log_batch) + payload_bytes, BLOCK_BYTES);
    uint64_t left = log->region_bytes - log->head % log->region_bytes;

    return left < size ? log->head + left : log->head;
}

/* Records are cut into batches at their borders, so each batch but the last has payload_bytes_min
 * at least; it wastes less than its header and a block. */
static uint64_t batches_cost(const struct disk_log *log, uint64_t payload_bytes) {
    uint64_t batches = payload_bytes / log->payload_bytes_min + 1;

    return payload_bytes == 0 ? 0
                              : round_up(payload_bytes, BLOCK_BYTES) + batches * 2 * BLOCK_BYTES;
}

/* A batch that does not fit before the region's end leaves a gap there, once: what is written is
 * shorter than the region. After a kill the rest and what is behind it are one sync point, so the
 * longest batch is counted as of both. */
uint64_t disk_log_cost(const struct disk_log *log, uint64_t rest_bytes, uint64_t next_bytes) {
    uint64_t cost = batches_cost(log, rest_bytes) + batches_cost(log, next_bytes);
    uint64_t head = log->head + log->batch_bytes;
    uint64_t left = log->region_bytes - head % log->region_bytes;
    uint64_t longest = MIN(rest_bytes + next_bytes, log->payload_bytes_max) + 2 * BLOCK_BYTES;

    return cost <= left ? cost : cost + MIN(left, longest);
}

uint8_t *disk_log_payload(struct disk_log *log) {
    return log->stage + sizeof(struct log_batch);
}

static uint32_t batch_crc(const struct log_batch *batch) {
    struct log_batch header = *batch;

    header.crc = 0;
    return crc32c(crc32c(0, &header, sizeof header), batch + 1, batch->payload_bytes);
}

void disk_log_prepare(struct disk_log *log, const struct disk_log_span *span) {
    struct log_batch *batch = (void *)log->stage;
    size_t whole = sizeof *batch + span->payload_bytes;
    size_t padded = (size_t)round_up(whole, BLOCK_BYTES);

    assert(padded <= log->stage_bytes);
    log->head = batch_place(log, span->payload_bytes);
    *batch = (struct log_batch){.magic = LOG_BATCH_MAGIC,
                                .owner = log->owner,
                                .offset = log->head,
                                .first_position = span->first_position,
                                .last_position = span->last_position,
                                .durable_upto = span->durable_upto,
                                .payload_bytes = span->payload_bytes,
                                .previous_crc = log->last_crc};
    batch->crc = batch_crc(batch);
    log->batch_bytes = padded;
    assert(disk_log_used_bytes(log) <= log->region_bytes);
    memset(log->stage + whole, 0, padded - whole);
    log->io = (struct env_io){.kind = ENV_IO_WRITE,
                              .file = log->file,
                              .offset = DISK_LOG_REGION_START + log->head % log->region_bytes,
                              .buffer = log->stage,
                              .size = padded};
}

void disk_log_advance(struct disk_log *log, const struct disk_log_span *span) {
    assert(log->batch_bytes > 0 && span->first_position == log->last_position + 1);
    log->head += log->batch_bytes;
    log->batch_bytes = 0;
    log->last_position = span->last_position;
    log->last_crc = span->last_crc;
}

/* Reads the batch at `offset` into the stage. -ERR_NOT_FOUND when there is none or it is not whole.
 * Only bytes that the region has are read, however long the header says that it is. */
static int read_batch(struct disk_log *log, uint64_t offset) {
    struct log_batch *batch = (void *)log->stage;
    uint64_t place = offset % log->region_bytes;
    int r = run(log, ENV_IO_READ, DISK_LOG_REGION_START + place, BLOCK_BYTES);

    if (r < 0) {
        return r;
    }
    size_t whole = sizeof *batch + (size_t)batch->payload_bytes;
    if (batch->magic != LOG_BATCH_MAGIC || batch->owner != log->owner || batch->offset != offset ||
        whole > log->stage_bytes || whole > log->region_bytes - place) {
        return -ERR_NOT_FOUND;
    }
    if (whole > BLOCK_BYTES) {
        r = run(log, ENV_IO_READ, DISK_LOG_REGION_START + place,
                (size_t)round_up(whole, BLOCK_BYTES));
        if (r < 0) {
            return r;
        }
    }
    return batch->crc == batch_crc(batch) ? 0 : -ERR_NOT_FOUND;
}

/* The batch behind the last good one: at head, or at the region's beginning when it did not fit. */
static int find_batch(struct disk_log *log, uint64_t *ret_offset) {
    uint64_t lap = round_up(log->head, log->region_bytes);
    const uint64_t places[] = {log->head, lap};

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

static int check_piece(struct disk_log *log, uint64_t at, size_t size, char problem[256]) {
    uint64_t suspects[DISK_LOG_STAGE_BYTES_MAX / BLOCK_BYTES];
    size_t suspect_count = 0;
    int r = run(log, ENV_IO_READ, DISK_LOG_REGION_START + at % log->region_bytes, size);

    assert(size / BLOCK_BYTES <= ARRAY_SIZE(suspects));
    for (size_t i = 0; r == 0 && i < size; i += BLOCK_BYTES) {
        if (looks_later(log, log->stage + i, at + i)) {
            suspects[suspect_count++] = at + i;
        }
    }
    for (size_t i = 0; r == 0 && i < suspect_count; i++) {
        const struct log_batch *batch = (const void *)log->stage;

        r = read_batch(log, suspects[i]);
        if (r == 0) {
            snprintf(problem, 256,
                     "the disk log is damaged: record %llu is missing though %llu was durable",
                     (unsigned long long)log->last_position + 1,
                     (unsigned long long)batch->durable_upto);
            return -ERR_CORRUPT;
        }
        r = r == -ERR_NOT_FOUND ? 0 : r;
    }
    return r;
}

/* A log is eight rings long at the least. */
static uint64_t ring_bytes_max(const struct disk_log *log) {
    uint8_t log2 = log->superblock.ring_log2;

    return log2 > 0 && log2 < 64 ? UINT64_C(1) << log2
                                 : (log->region_bytes + DISK_LOG_REGION_START) / 8;
}

void disk_log_note_ring(struct disk_log *log, uint64_t ring_bytes) {
    struct log_superblock *superblock = &log->superblock;
    bool is_new = superblock->term == 0 && superblock->ring_log2 == 0;
    uint64_t longest = is_new ? ring_bytes : MAX(ring_bytes, ring_bytes_max(log));

    superblock->ring_log2 = 1;
    while (longest > UINT64_C(1) << superblock->ring_log2) {
        superblock->ring_log2++;
    }
}

/* The walk has ended. A batch further on that was written when the record at which it ended was
 * durable already means that what is missing here was lost by the medium, not by a crash. One sync
 * point writes at most a ring of records, so the next one's batches begin within that. */
static int check_end(struct disk_log *log, char problem[256]) {
    uint64_t limit = log->tail + log->region_bytes;
    uint64_t behind = round_up(ring_bytes_max(log) / 4 * 5, BLOCK_BYTES) + 2 * log->stage_bytes;
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
                snprintf(problem, 256, "the disk log cannot be replayed at record %llu: %s",
                         (unsigned long long)log->last_position + 1, err_text(r));
            }
            return r;
        }
        if (log->last_position <= log->applied) {
            disk_log_move_tail(log);
        }
    }
    return r == -ERR_NOT_FOUND ? check_end(log, problem) : r;
}
