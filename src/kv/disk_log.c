/* The disk log: its file, superblocks, what is written. */
#include "kv/disk_log_internal.h"
#include "base/bug.h"
#include "base/crc32c.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { WRITTEN_AT_START_BYTES = 64 * 1024 * 1024 };

int disk_log_run(struct disk_log *log, enum env_io_kind kind, uint64_t offset, size_t size) {
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

    r = r < 0 ? r : disk_log_run(log, ENV_IO_SYNC, 0, 0);
    log->tail = r < 0 ? log->tail : log->superblock.tail_offset;
    return r;
}

void disk_log_note_stop(struct disk_log *log) {
    struct log_superblock *superblock = &log->superblock;
    uint64_t term = superblock->term + 1;

    superblock->stopped = 1;
    superblock->starts[term % LOG_STARTS] =
        (struct log_start){.term = term, .position = log->last_position};
}

bool disk_log_is_complete(const struct disk_log *log) {
    const struct log_superblock *superblock = &log->superblock;
    uint64_t term = superblock->term + 1;
    const struct log_start *next = &superblock->starts[term % LOG_STARTS];

    if (superblock->stopped && next->term == term) {
        return log->last_position >= next->position;
    }
    return superblock->term == 0 || log->unreadable == 0;
}

void disk_log_move_tail(struct disk_log *log) {
    log->superblock.tail_offset = log->head;
    log->superblock.tail_position = log->last_position + 1;
    log->superblock.tail_previous_crc = log->last_crc;
}

/* The region's beginning is written through, so that flushes of the first batches do not wait for
 * the file system to note that blocks have become written. */
static int log_format(struct disk_log *log, const struct disk_log_options *options) {
    int r = disk_log_run(log, ENV_IO_ALLOCATE, 0, options->file_bytes);

    memset(log->stage, 0, log->stage_bytes);
    uint64_t end = MIN(options->file_bytes, (uint64_t)WRITTEN_AT_START_BYTES);
    for (uint64_t at = 0; at < end && r == 0; at += log->stage_bytes) {
        r = disk_log_run(log, ENV_IO_WRITE, at, (size_t)MIN(end - at, log->stage_bytes));
    }
    /* Whoever finds a superblock finds a whole file: without power it may come back shorter. */
    r = r < 0 ? r : disk_log_run(log, ENV_IO_SYNC, 0, 0);
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

/* Of a newer format nothing is known but that it begins as ours, with a crc of the whole, however
 * long that is: another number in a format that we know is damage. */
static bool superblock_is_newer(const uint8_t *block) {
    static const uint8_t no_crc[sizeof(uint32_t)];
    const size_t crc_at = offsetof(struct log_superblock, crc);
    uint32_t wanted = load_le32(block + crc_at);
    uint32_t crc = crc32c(crc32c(0, block, crc_at), no_crc, sizeof no_crc);

    if (load_le32(block + offsetof(struct log_superblock, format)) <= LOG_FORMAT) {
        return false;
    }
    for (size_t at = crc_at + sizeof no_crc; at < BLOCK_BYTES; at += sizeof(uint64_t)) {
        crc = crc32c(crc, block + at, sizeof(uint64_t));
        if (crc == wanted) {
            return true;
        }
    }
    return false;
}

/* A start needs one that is whole. */
static bool superblock_is_whole(const struct log_superblock *superblock) {
    return superblock->magic == LOG_SUPERBLOCK_MAGIC && superblock->format > 0 &&
           superblock->format <= LOG_FORMAT && superblock->crc == superblock_crc(superblock);
}

/* What a start takes for true when the other superblock, which may be the newer, is damaged: that
 * one told of a start more, which found no ring and all that was not synced lost. */
static void superblock_assume(struct disk_log *log) {
    struct log_superblock *superblock = &log->superblock;

    superblock->term++;
    superblock->losses++;
    superblock->stopped = 0;
    superblock->starts[superblock->term % LOG_STARTS] =
        (struct log_start){.term = superblock->term, .position = superblock->tail_position - 1};
}

static int refuse_unreadable(const struct disk_log *log, uint64_t offset, char problem[256]) {
    snprintf(problem, 256,
             "%s: its superblock, at byte %" PRIu64 ", cannot be read, and the other one is not "
             "whole: check the disk, and restore DIR from a backup",
             log->path, offset);
    return -ERR_IO;
}

/* The one at `place`. -ERR_CORRUPT: it is not whole; -ERR_IO. */
static int read_superblock(struct disk_log *log, uint64_t place, struct log_superblock *superblock,
                           char problem[256]) {
    int r = disk_log_run(log, ENV_IO_READ, place, BLOCK_BYTES);

    if (r < 0) {
        return r;
    }
    memcpy(superblock, log->stage, sizeof *superblock);
    if (superblock->magic == LOG_SUPERBLOCK_MAGIC && superblock_is_newer(log->stage)) {
        snprintf(problem, 256, "%s has format %u, this version reads up to %d: use a newer one",
                 log->path, superblock->format, LOG_FORMAT);
        return -ERR_NEWER_FORMAT;
    }
    if (!superblock_is_whole(superblock)) {
        return -ERR_CORRUPT;
    }
    if (superblock->format == 1) {
        superblock->counted_from = UINT64_MAX;
    }
    return 0;
}

static int read_superblocks(struct disk_log *log, bool *ret_found, char problem[256]) {
    int unreadable = 0;
    uint64_t damaged_at = 0;

    *ret_found = false;
    for (uint64_t place = 0; place < DISK_LOG_REGION_START; place += BLOCK_BYTES) {
        struct log_superblock superblock;
        int r = read_superblock(log, place, &superblock, problem);

        if (r == -ERR_IO || r == -ERR_CORRUPT) {
            log->superblock_is_damaged = true;
            damaged_at = unreadable < 0 ? damaged_at : place;
            unreadable = r == -ERR_IO ? r : unreadable;
        } else if (r < 0) {
            return r;
        } else if (!*ret_found || superblock.sequence > log->superblock.sequence) {
            log->superblock = superblock;
            *ret_found = true;
        }
    }
    if (unreadable < 0 && !*ret_found) {
        return refuse_unreadable(log, damaged_at, problem);
    }
    log->superblock_damaged_at = damaged_at;
    /* The first one is alone until the log has served. */
    log->superblock_is_damaged &= *ret_found && (unreadable < 0 || log->superblock.sequence > 1);
    return 0;
}

/* Its checksum is right, so what makes no sense was written so. */
static int check_totals(const struct log_superblock *superblock, const char *path,
                        char problem[256]) {
    if (superblock->tail_offset % BLOCK_BYTES != 0 || superblock->tail_offset > LOG_TOTAL_MAX ||
        superblock->tail_position == 0 || superblock->tail_position > LOG_TOTAL_MAX) {
        snprintf(problem, 256,
                 "%s: its superblock names a place that no batch can have: restore DIR from a "
                 "backup",
                 path);
        return -ERR_CORRUPT;
    }
    if (superblock->term > LOG_TOTAL_MAX || superblock->sequence > LOG_TOTAL_MAX) {
        snprintf(problem, 256,
                 "%s: its superblock counts more starts than there can have been: restore DIR from "
                 "a backup",
                 path);
        return -ERR_CORRUPT;
    }
    return 0;
}

static int check_superblock(struct disk_log *log, const struct disk_log_options *options,
                            char problem[256]) {
    uint64_t size_bytes = 0;
    int r = log->env->ops->file_size(log->file, &size_bytes);

    if (r < 0) {
        return r;
    }
    if (memcmp(log->superblock.owner_id, options->owner_id, LOG_OWNER_BYTES) != 0) {
        snprintf(problem, 256,
                 "%s belongs to another target: files of two were exchanged, or another cluster's "
                 "lie here: put the right ones back",
                 options->path);
        return -ERR_NOT_OURS;
    }
    if (options->log_id.value != 0 && options->log_id.value != disk_log_id(log).value) {
        snprintf(problem, 256,
                 "%s is log %016" PRIx64 ", the cluster has log %016" PRIx64
                 " there: put the right one back",
                 options->path, disk_log_id(log).value, options->log_id.value);
        return -ERR_NOT_OURS;
    }
    if (log->superblock.region_bytes != log->region_bytes) {
        snprintf(problem, 256,
                 "the disk log %s has %" PRIu64 " bytes, configured are %" PRIu64
                 ": put disk_log_bytes back",
                 options->path, DISK_LOG_REGION_START + log->superblock.region_bytes,
                 DISK_LOG_REGION_START + log->region_bytes);
        return -ERR_INVALID;
    }
    if (size_bytes < DISK_LOG_REGION_START + log->region_bytes) {
        snprintf(problem, 256,
                 "%s was cut short: it has %" PRIu64 " bytes, and had %" PRIu64
                 ": restore DIR from a backup",
                 options->path, size_bytes, DISK_LOG_REGION_START + log->region_bytes);
        return -ERR_CORRUPT;
    }
    return check_totals(&log->superblock, options->path, problem);
}

/* A process that was killed may have had writes with the medium, which come after it has gone: into
 * what is read here, or over what is written next. An allocation waits for all of the file's, and
 * of what is allocated already it changes nothing. */
static int wait_for_earlier(struct disk_log *log) {
    int r = BUG(EARLY_READ) ? 0 : disk_log_run(log, ENV_IO_ALLOCATE, 0, DISK_LOG_REGION_START);

    /* A full file system may refuse space that is there already (XFS reserves it anew): it has
     * waited all the same, and nothing more is needed. */
    return r == -ERR_NO_SPACE ? 0 : r;
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
    snprintf(log->path, sizeof log->path, "%s", options->path);
    int r = env->ops->file_open(env, options->path, flags | ENV_FILE_DIRECT, &log->file);
    if (r == 0) {
        r = env->ops->file_size(log->file, &size);
    }
    *ret_found = false;
    if (r == 0 && size >= DISK_LOG_REGION_START) {
        r = wait_for_earlier(log);
        r = r < 0 ? r : read_superblocks(log, ret_found, problem);
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
        snprintf(problem, 256,
                 "%s is no disk log, or its beginning was overwritten: neither of its superblocks, "
                 "at bytes 0 and %d, is whole: restore DIR from a backup",
                 options->path, BLOCK_BYTES);
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
        if (r == 0 && log->superblock_is_damaged) {
            superblock_assume(log);
        } else if (r == 0 && log->superblock.term == 0) {
            /* A ring bears the id of its log, which may not be on disk yet. */
            r = disk_log_run(log, ENV_IO_SYNC, 0, 0);
        }
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

uint32_t disk_log_batch_crc(const struct log_batch *batch) {
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
    batch->crc = disk_log_batch_crc(batch);
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

uint64_t disk_log_ring_bytes_max(const struct disk_log *log) {
    uint8_t log2 = log->superblock.ring_log2;

    return log2 > 0 && log2 < 64 ? UINT64_C(1) << log2
                                 : (log->region_bytes + DISK_LOG_REGION_START) / 8;
}

void disk_log_note_ring(struct disk_log *log, uint64_t ring_bytes) {
    struct log_superblock *superblock = &log->superblock;
    bool is_new = superblock->term == 0 && superblock->ring_log2 == 0;
    uint64_t longest = is_new ? ring_bytes : MAX(ring_bytes, disk_log_ring_bytes_max(log));

    superblock->ring_log2 = 1;
    while (longest > UINT64_C(1) << superblock->ring_log2) {
        superblock->ring_log2++;
    }
}
