/* Opening, the ring's part: is it this log's, does it hold what it says, what of it is new. */
#include "kv/kv_internal.h"
#include "base/bug.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

enum { RING_PATH_BYTES = 96 };

/* What a line calls the ring. */
static void ring_path(struct kv *kv, char path[RING_PATH_BYTES]) {
    kv->env->ops->shared_path(kv->env, kv->options.shared_name, RING_PATH_BYTES, path);
}

/* A part of the disk log can't be read that the start needs. */
static int refuse_unreadable(const struct kv_replay *replay, const char *way_on) {
    const struct disk_log *log = &replay->kv->log;

    snprintf(replay->problem, 256,
             "%s: byte %" PRIu64 " of it cannot be read, and records behind %" PRIu64
             " may have been there: check the disk, and %s",
             log->path, log->unreadable, log->last_position, way_on);
    return -ERR_IO;
}

/* The log of another life: that of a copy which was put back, or one that a disk forgot. */
static int refuse_ring(struct kv_replay *replay, uint64_t position) {
    const struct disk_log *log = &replay->kv->log;
    char path[RING_PATH_BYTES];

    if (log->unreadable > 0) {
        return refuse_unreadable(replay, "restore DIR from a backup");
    }
    ring_path(replay->kv, path);
    snprintf(replay->problem, 256,
             "the ring %.60s and %.16s disagree from its byte %" PRIu64 ", record %" PRIu64
             ", on: if DIR was put back from a copy, remove the ring; else the disk lost data: "
             "restore a backup",
             path, log->path, DISK_LOG_REGION_START + log->head % log->region_bytes, position);
    return -ERR_CORRUPT;
}

static void say_of_ring(struct kv *kv, const char *what) {
    char path[RING_PATH_BYTES];
    char line[320];

    if (kv->options.log) {
        ring_path(kv, path);
        snprintf(line, sizeof line, "%s: the ring %s %s", kv->options.directory, path, what);
        kv->options.log(kv->options.log_context, line);
    }
}

/* What a walk over the ring has found. */
struct walked {
    struct ring_start start; /* as the ring should have it: behind what the disk log holds */
    uint64_t end;            /* behind the last whole record */
    uint64_t position;       /* of that record */
    uint32_t crc;            /* likewise */
    uint64_t data_head;      /* likewise */
    bool agrees;             /* with the disk log, where both have a record */
};

/* What lies in the data area has only grown since the ring's start, and fits. */
static bool data_end_is_sound(const struct ring *ring, uint64_t before, uint64_t data_end) {
    return data_end >= before && data_end - ring->start.data_start <= ring->data_bytes;
}

static struct walked walk(const struct kv *kv) {
    const struct ring *ring = &kv->ring;
    struct walked walked = {.start = ring->start,
                            .end = ring->start.offset,
                            .position = ring->start.position - 1,
                            .crc = ring->start.previous_crc,
                            .data_head = ring->start.data_start,
                            .agrees = ring->start.position != kv->log.last_position + 1 ||
                                      ring->start.previous_crc == kv->log.last_crc};
    const struct log_record *record;
    uint64_t end = walked.end;

    while ((record = ring_walk(ring, &end, walked.position + 1, walked.crc)) &&
           data_end_is_sound(ring, walked.data_head, record->data_end)) {
        walked.end = end;
        walked.position++;
        walked.crc = record->crc;
        walked.data_head = record->data_end;
        if (walked.position == kv->log.last_position) {
            /* We died between the log's flush and the release of what it holds. */
            walked.agrees = record->crc == kv->log.last_crc;
            walked.start = (struct ring_start){.offset = walked.end,
                                               .position = walked.position + 1,
                                               .data_start = record->data_end,
                                               .previous_crc = record->crc};
        }
    }
    return walked;
}

/* What was acknowledged is gone with what is damaged: refused, or told and counted. */
static int accept_damage(struct kv *kv, struct kv_replay *replay, const char *what) {
    char path[RING_PATH_BYTES];

    if (kv->options.accept_loss) {
        say_of_ring(kv, "is damaged: what was acknowledged behind the damage is lost");
        kv->log.superblock.losses++;
        return disk_log_write_superblock(&kv->log);
    }
    ring_path(kv, path);
    snprintf(replay->problem, 256,
             "the ring %.70s is damaged: %s; start with --accept-loss to go on without what was "
             "acknowledged from there on",
             path, what);
    return -ERR_CORRUPT;
}

/* The ring says how far it must reach, but for what the disk log has as well. A record in it that
 * is not whole was acknowledged. */
static int check_newest(struct kv *kv, struct kv_replay *replay, const struct walked *walked) {
    struct ring_newest newest;
    char what[80];

    if (!ring_newest(&kv->ring, &newest) || newest.position <= kv->log.last_position ||
        newest.position < walked->position ||
        (newest.position == walked->position && newest.end == walked->end)) {
        return 0;
    }
    snprintf(what, sizeof what, "record %" PRIu64 " of %" PRIu64 " is not whole",
             walked->position + 1, newest.position);
    return accept_damage(kv, replay, what);
}

/* Nothing of a ring can be taken without its header. */
static int check_header(struct kv *kv, struct kv_replay *replay) {
    struct ring_newest newest;
    char what[80];

    if (!ring_newest(&kv->ring, &newest) || newest.position <= kv->log.last_position) {
        return 0;
    }
    snprintf(what, sizeof what, "its header, before record %" PRIu64 ", is not whole",
             kv->log.last_position + 1);
    return accept_damage(kv, replay, what);
}

/* Before the ring is replayed what the log holds, all of which is synced, is brought to the base if
 * that makes room: in a log that is too full to take what the ring holds, as earlier versions could
 * leave it, or in memory. */
static int make_room(struct kv *kv, struct kv_replay *replay) {
    bool log_has_room = kv_log_has_room(kv, kv->ring.head, 0);

    if (!log_has_room && kv->log.tail != kv->log.superblock.tail_offset) {
        int r = disk_log_write_superblock(&kv->log);

        if (r < 0) {
            return r;
        }
        log_has_room = kv_log_has_room(kv, kv->ring.head, 0);
    }
    if (log_has_room && (kv_replay_will_fit(kv, kv->ring.head - kv->ring.start.offset) ||
                         kv->frozen || kv->applied == kv->log.last_position)) {
        return 0;
    }
    int r = kv->frozen                            ? -ERR_NO_SPACE
            : kv->applied < kv->log.last_position ? kv_checkpoint_now(kv, kv->log.last_position)
                                                  : 0;
    if (r == -ERR_NO_SPACE && log_has_room) {
        return 0;
    }
    if (r == -ERR_NO_SPACE) {
        snprintf(replay->problem, 256,
                 "%s: the log is full, and the file system below has no room for a checkpoint: "
                 "free some there and start again",
                 kv->options.directory);
    }
    if (r < 0) {
        return r;
    }
    disk_log_move_tail(&kv->log);
    return disk_log_write_superblock(&kv->log);
}

/* What the disk log lacks is applied, and stays in the ring: the next sync point writes it. */
static int replay_ring(struct kv *kv, struct kv_replay *replay) {
    struct ring *ring = &kv->ring;
    uint64_t offset = ring->start.offset;
    uint64_t position = ring->start.position;
    uint32_t crc = ring->start.previous_crc;
    uint64_t term = kv->term;
    int r = 0;

    replay->in_ring = true;
    kv->term = 0;
    for (; r == 0 && position <= ring->position; position++) {
        const struct log_record *record = ring_walk(ring, &offset, position, crc);

        if (!record) {
            return refuse_ring(replay, position); /* it was whole a moment ago */
        }
        assert(position > kv->log.last_position);
        crc = record->crc;
        r = kv_replay_record(replay, record);
    }
    kv->term = MAX(kv->term, term);
    assert(r < 0 || (offset == ring->head && crc == ring->last_crc));
    return r;
}

/* Before the ring's start moves over records that the disk log is found to hold: the process that
 * wrote them may have been killed before their flush, and a disk that fails in one may forget. */
static int flush_log(struct kv *kv) {
    struct env_io flush = {.kind = ENV_IO_SYNC, .file = kv->log.file};

    return BUG(EARLY_START) ? 0 : kv->env->ops->io_run(kv->env, &flush);
}

static int take_ring(struct kv *kv, struct kv_replay *replay) {
    struct ring *ring = &kv->ring;

    if (ring->start.position > kv->log.last_position + 1) {
        return refuse_ring(replay, kv->log.last_position + 1);
    }
    struct walked walked = walk(kv);
    if (!walked.agrees) {
        return refuse_ring(replay, kv->log.last_position);
    }
    int r = check_newest(kv, replay, &walked);
    if (r < 0) {
        return r;
    }
    r = walked.start.position != ring->start.position || walked.position < kv->log.last_position
            ? flush_log(kv)
            : 0;
    if (r < 0 || walked.position < kv->log.last_position) {
        return r; /* nothing in it that the disk log lacks: it is begun anew */
    }
    ring_continue(ring, walked.end, walked.position, walked.crc);
    ring->data_head = walked.data_head;
    if (walked.start.position != ring->start.position) {
        ring_release(ring, &walked.start);
    }
    r = make_room(kv, replay);
    return r < 0 ? r : replay_ring(kv, replay);
}

/* A ring whose size was changed while it holds what the disk log lacks is neither walked, as what
 * follows must fit the new size, nor thrown away. */
static int refuse_other_size(struct kv *kv, struct kv_replay *replay) {
    const struct ring *ring = &kv->ring;
    const struct kv_options *options = &kv->options;
    bool data = options->ring_data_bytes != ring->data_bytes;
    uint64_t position = ring->start.position;
    uint64_t offset = ring->start.offset;
    uint32_t crc = ring->start.previous_crc;
    const struct log_record *record;

    while ((record = ring_walk(ring, &offset, position, crc))) {
        crc = record->crc;
        position++;
    }
    struct ring_newest newest;
    bool damaged = ring_newest(ring, &newest) && newest.position > kv->log.last_position;
    if (position <= kv->log.last_position + 1 && !damaged) {
        return 0;
    }
    snprintf(replay->problem, 256,
             "memory still holds acknowledged operations that the disk lacks: set %s back to %zu, "
             "start and stop once, then change it",
             data ? options->ring_data_bytes_name : options->ring_bytes_name,
             data ? ring->data_bytes : ring->record_bytes);
    return -ERR_IN_USE;
}

/* Where the disk log ends there was more, or may have been, and no ring has it. */
static int check_complete(struct kv *kv, struct kv_replay *replay) {
    const struct disk_log *log = &kv->log;
    char line[256];

    if (disk_log_is_complete(log)) {
        return 0;
    }
    if (!kv->options.accept_loss && log->unreadable > 0) {
        return refuse_unreadable(replay, "start with --accept-loss to go on without them");
    }
    if (!kv->options.accept_loss) {
        snprintf(replay->problem, 256,
                 "%s: the disk log is damaged: it ends at record %" PRIu64
                 ", and went on when it was stopped: check the disk, and start with --accept-loss "
                 "to go on without what is missing",
                 log->path, log->last_position);
        return -ERR_CORRUPT;
    }
    if (kv->options.log) {
        snprintf(line, sizeof line,
                 "%s: the disk log is damaged at its end: what was acknowledged behind record "
                 "%" PRIu64 " is lost",
                 kv->options.directory, log->last_position);
        kv->options.log(kv->options.log_context, line);
    }
    kv->log.superblock.stopped = 0;
    return 0;
}

/* Before the ring is made, which from then on would seem to be the one that was lost. */
static int note_loss(struct kv *kv, struct kv_replay *replay) {
    struct log_superblock *superblock = &kv->log.superblock;
    int r = check_complete(kv, replay);

    if (r < 0 || superblock->term == 0 || superblock->stopped) {
        return r;
    }
    superblock->losses++;
    return disk_log_write_superblock(&kv->log);
}

/* The ring that is there holds nothing that the disk log lacks, and gives way to another one: as
 * behind a stop, none is missed from here on. Where the log ends is noted when it is on disk: the
 * process that wrote it may have been killed before its flush. */
static int note_complete(struct kv *kv) {
    int r = flush_log(kv);

    if (r < 0 || kv->log.superblock.stopped) {
        return r;
    }
    disk_log_note_stop(&kv->log);
    return disk_log_write_superblock(&kv->log);
}

static int refuse_unmapped(struct kv_replay *replay, int error) {
    const struct kv *kv = replay->kv;
    const char *why = err_text(error);
    char path[RING_PATH_BYTES];
    char full[80];

    if (error == -ERR_NO_SPACE) {
        size_t bytes = ring_region_bytes(kv->options.ring_bytes, kv->options.ring_data_bytes);

        snprintf(full, sizeof full, "its file system is full, it needs %zu KiB: make room there",
                 bytes / KIB);
        why = full;
    } else if (error == -ERR_ACCESS) {
        why = "another user started the cluster last: start it as that one, or remove the ring and "
              "lose what was acknowledged in the last second";
    }
    ring_path(replay->kv, path);
    snprintf(replay->problem, 256, "the ring %s cannot be mapped: %s", path, why);
    return error;
}

static int refuse_foreign(struct kv_replay *replay) {
    char path[RING_PATH_BYTES];

    ring_path(replay->kv, path);
    snprintf(
        replay->problem, 256,
        "the ring %s belongs to another log, and may hold what that one acknowledged: start and "
        "stop its cluster, or remove the file if its directory is gone",
        path);
    return -ERR_IN_USE;
}

static int map_ring(struct kv *kv, struct kv_replay *replay, enum ring_found *ret_found) {
    struct ring_options options = {.env = kv->env,
                                   .name = kv->options.shared_name,
                                   .record_bytes = kv->options.ring_bytes,
                                   .data_bytes = kv->options.ring_data_bytes};

    memcpy(options.owner_id, kv->options.owner_id, sizeof options.owner_id);
    memcpy(options.log_id, kv->log.superblock.log_id, sizeof options.log_id);
    int r = ring_open(&kv->ring, &options, ret_found);
    if (r == 0 && (*ret_found == RING_OTHER_SIZE || *ret_found == RING_DAMAGED)) {
        int refused =
            *ret_found == RING_DAMAGED ? check_header(kv, replay) : refuse_other_size(kv, replay);

        ring_close(&kv->ring);
        refused = refused < 0 ? refused : note_complete(kv);
        if (refused < 0) {
            return refused;
        }
        r = ring_open_new(&kv->ring, &options);
    }
    return r < 0                        ? refuse_unmapped(replay, r)
           : *ret_found == RING_FOREIGN ? refuse_foreign(replay)
                                        : 0;
}

int kv_recover_ring(struct kv *kv, struct kv_replay *replay) {
    enum ring_found found;
    bool lost;
    int r = map_ring(kv, replay, &found);

    if (r < 0) {
        return r;
    }
    lost = found == RING_NEW || found == RING_STALE;
    if (found == RING_STALE) {
        say_of_ring(kv, "is of an earlier boot, and is ignored");
    } else if (found == RING_NEW && kv->options.ring_expected && !kv->log.superblock.stopped) {
        say_of_ring(kv, "is gone, though the machine still runs since the daemon was killed: what "
                        "was acknowledged in the last second before is lost");
    }
    r = found == RING_USABLE ? take_ring(kv, replay) : lost ? note_loss(kv, replay) : 0;
    if (r == 0 && (found != RING_USABLE || kv->ring.position < kv->log.last_position)) {
        ring_reset(&kv->ring, kv->log.last_position, kv->log.last_crc);
    }
    return r;
}
