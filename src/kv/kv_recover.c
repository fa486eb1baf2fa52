/* Opening: base, disk log, ring, new term. Blocks; serves nobody yet.
 *
 * Records up to the base's applied position are walked (their chain is checked) and skipped. What
 * the ring holds beyond the disk log is applied and stays in the ring: the next sync point writes
 * it. So it does not matter how often opening is cut in the middle. */
#include "kv/kv_internal.h"
#include "base/bug.h"
#include "base/crc32c.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

struct kv_key kv_applied_key(void) {
    return kv_key_make((struct kv_key_fields){
        .space = KV_SPACE_ENGINE, .slot = UINT16_MAX, .type = KV_ROW_APPLIED});
}

/* Sequence 0: the session's floor. */
struct kv_key kv_outcome_key(struct session_id session, uint64_t sequence) {
    return kv_key_make((struct kv_key_fields){.space = KV_SPACE_ENGINE,
                                              .type = sequence == 0 ? KV_ROW_FLOOR : KV_ROW_OUTCOME,
                                              .id = session.value,
                                              .index = sequence});
}

enum { RING_PATH_BYTES = 96 };

struct replay {
    struct kv *kv;
    char *problem;
    bool in_ring;
};

static int replay_operation(struct replay *replay, const struct log_record *record,
                            const struct record_operation *operation) {
    struct kv *kv = replay->kv;

    if (operation->kind == LOG_NOTE) {
        return kv->options.hooks.replay_note
                   ? kv->options.hooks.replay_note(kv->options.hook_context, operation->value,
                                                   record->position, replay->in_ring)
                   : 0;
    }
    if (BUG(LOST_OUTCOME) && operation->kind == LOG_OUTCOME) {
        return 0;
    }
    return kv_apply(kv, operation, true);
}

static int replay_record(void *context, const struct log_record *record) {
    struct replay *replay = context;
    struct kv *kv = replay->kv;
    struct bytes body = record_body(record);
    struct record_operation operation;
    int r = 0;

    if (record->term < kv->term) {
        snprintf(replay->problem, 256, "record %" PRIu64 " is of term %" PRIu64 ", behind %" PRIu64,
                 record->position, record->term, kv->term);
        return -ERR_CORRUPT;
    }
    kv->term = record->term;
    if (record->position <= kv->applied) {
        return 0;
    }
    kv->counters.replayed_records++;
    kv->counters.replayed_ring_records += replay->in_ring;
    while (r == 0 && (r = record_next(&body, &operation)) == 0) {
        r = replay_operation(replay, record, &operation);
    }
    if (r != -ERR_NOT_FOUND || body.size > 0) {
        snprintf(replay->problem, 256, "record %" PRIu64 " cannot be replayed: %s",
                 record->position, err_text(r));
        return r;
    }
    return 0;
}

static int restore_row(struct kv *kv, struct bytes value) {
    struct log_outcome fixed;

    if (value.size < sizeof fixed || value.size - sizeof fixed > KV_REPLY_BYTES_MAX) {
        return -ERR_CORRUPT;
    }
    memcpy(&fixed, value.data, sizeof fixed);
    struct kv_outcome outcome = {
        .slot = {fixed.slot},
        .session = {fixed.session},
        .sequence = fixed.sequence,
        .floor = fixed.floor,
        .result = fixed.result,
        .reply = {value.data + sizeof fixed, value.size - sizeof fixed},
    };
    return outcomes_restore(kv->outcomes, &outcome);
}

static int restore_rows(struct kv *kv, uint8_t type) {
    struct kv_key key = kv_key_make((struct kv_key_fields){.space = KV_SPACE_ENGINE, .type = type});
    struct bytes value;
    bool inclusive = true;
    int r;

    while ((r = kv->options.base->next(kv->base, &key, inclusive, &key, &value)) == 0) {
        struct kv_key_fields fields = kv_key_split(&key);

        if (fields.space != KV_SPACE_ENGINE || fields.slot != 0 || fields.type != type) {
            break;
        }
        r = restore_row(kv, value);
        if (r < 0) {
            return r;
        }
        inclusive = false;
    }
    return r == -ERR_NOT_FOUND ? 0 : r;
}

static int open_base(struct kv *kv, char problem[256]) {
    const struct kv_base_options options = {.env = kv->env,
                                            .root = kv->options.root,
                                            .directory = kv->options.directory,
                                            .memory_bytes = kv->options.base_memory_bytes,
                                            .store = kv->options.base_store};
    struct kv_key key = kv_applied_key();
    struct bytes value;
    int r = kv->options.base->open(&options, &kv->base, problem);

    if (r < 0) {
        return r;
    }
    kv->base_read = true;
    r = kv->options.base->get(kv->base, &key, &value);
    if (r == 0 && value.size == 24) {
        kv->term = load_le64(value.data + 8);
        kv->applied = load_le64(value.data + 16);
        r = restore_rows(kv, KV_ROW_FLOOR);
        return r < 0 ? r : restore_rows(kv, KV_ROW_OUTCOME);
    }
    return r == -ERR_NOT_FOUND ? 0 : r < 0 ? r : -ERR_CORRUPT;
}

static int open_log(struct kv *kv, struct replay *replay) {
    char path[512];
    struct disk_log_options options = {
        .env = kv->env, .path = path, .file_bytes = kv->options.disk_log_bytes};

    memcpy(options.owner_id, kv->options.owner_id, sizeof options.owner_id);
    snprintf(path, sizeof path, "%s/log", kv->options.directory);
    int r = disk_log_open(&kv->log, &options, replay->problem);
    if (r < 0) {
        return r;
    }
    if (kv->applied + 1 < kv->log.superblock.tail_position) {
        snprintf(replay->problem, 256,
                 "%s: the base holds records up to %" PRIu64 ", the disk log begins at %" PRIu64
                 ": some are missing",
                 kv->options.directory, kv->applied, kv->log.superblock.tail_position);
        return -ERR_CORRUPT;
    }
    uint64_t applied_term = kv->term;
    kv->term = 0;
    r = disk_log_replay(&kv->log, kv->options.ring_bytes, replay_record, replay, replay->problem);
    kv->term = MAX(kv->term, applied_term);
    kv->term = MAX(kv->term, kv->log.superblock.term);
    if (r == 0 && kv->log.last_position < kv->applied) {
        snprintf(replay->problem, 256,
                 "%s: the disk log ends at record %" PRIu64 ", the base holds %" PRIu64,
                 kv->options.directory, kv->log.last_position, kv->applied);
        r = -ERR_CORRUPT;
    }
    return r;
}

/* What a line calls the ring. */
static void ring_path(struct kv *kv, char path[RING_PATH_BYTES]) {
    kv->env->ops->shared_path(kv->env, kv->options.shared_name, RING_PATH_BYTES, path);
}

/* The log of another life: that of a copy which was put back, or one that a disk forgot. */
static int refuse_ring(struct replay *replay, uint64_t position) {
    char path[RING_PATH_BYTES];

    ring_path(replay->kv, path);
    snprintf(replay->problem, 256,
             "the ring %s and the disk log disagree from record %" PRIu64
             " on: if DIR was put back from a copy, remove this file; else the disk lost data",
             path, position);
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

/* Records that both have must be the same ones; the rest is applied. */
static int walk_ring(struct kv *kv, struct replay *replay) {
    struct ring *ring = &kv->ring;
    uint64_t position = ring->start.position;
    uint64_t offset = ring->start.offset;
    uint32_t crc = ring->start.previous_crc;
    struct ring_start release = ring->start;
    const struct log_record *record;

    if (position > kv->log.last_position + 1) {
        return refuse_ring(replay, kv->log.last_position + 1);
    }
    ring->data_head = ring->start.data_start;
    replay->in_ring = true;
    while ((record = ring_walk(ring, &offset, position, crc))) {
        if (position == kv->log.last_position && record->crc != kv->log.last_crc) {
            return refuse_ring(replay, position);
        }
        if (position > kv->log.last_position) {
            uint64_t term = kv->term;

            kv->term = 0;
            int r = replay_record(replay, record);
            kv->term = MAX(kv->term, term);
            if (r < 0) {
                return r;
            }
        }
        ring->data_head = record->data_end;
        crc = record->crc;
        position++;
        if (position == kv->log.last_position + 1) {
            /* We died between the log's flush and the release of what it holds. */
            release = (struct ring_start){.offset = offset,
                                          .position = position,
                                          .data_start = record->data_end,
                                          .previous_crc = crc};
        }
    }
    ring->head = offset;
    ring->position = position - 1;
    ring->last_crc = crc;
    if (release.position != ring->start.position) {
        ring_release(ring, &release);
    }
    return 0;
}

/* A ring whose size was changed while it holds what the disk log lacks is neither walked, as what
 * follows must fit the new size, nor thrown away. */
static int refuse_other_size(struct kv *kv, struct replay *replay) {
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
    if (position <= kv->log.last_position + 1) {
        return 0;
    }
    snprintf(replay->problem, 256,
             "memory still holds acknowledged operations that the disk lacks: set %s back to %zu, "
             "start and stop once, then change it",
             data ? options->ring_data_bytes_name : options->ring_bytes_name,
             data ? ring->data_bytes : ring->record_bytes);
    return -ERR_IN_USE;
}

/* Before the ring is made, which from then on would seem to be the one that was lost. */
static int note_loss(struct kv *kv) {
    struct log_superblock *superblock = &kv->log.superblock;

    if (superblock->term == 0 || superblock->stopped) {
        return 0;
    }
    superblock->losses++;
    return disk_log_write_superblock(&kv->log);
}

static int refuse_unmapped(struct replay *replay, int error) {
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

static int open_ring(struct kv *kv, struct replay *replay) {
    struct ring_options options = {.env = kv->env,
                                   .name = kv->options.shared_name,
                                   .record_bytes = kv->options.ring_bytes,
                                   .data_bytes = kv->options.ring_data_bytes};
    enum ring_found found;

    memcpy(options.owner_id, kv->options.owner_id, sizeof options.owner_id);
    memcpy(options.log_id, kv->log.superblock.log_id, sizeof options.log_id);
    int r = ring_open(&kv->ring, &options, &found);
    if (r == 0 && found == RING_OTHER_SIZE) {
        int refused = refuse_other_size(kv, replay);

        ring_close(&kv->ring);
        if (refused < 0) {
            return refused;
        }
        r = ring_open_new(&kv->ring, &options);
    }
    if (r < 0) {
        return refuse_unmapped(replay, r);
    }
    r = found == RING_USABLE ? walk_ring(kv, replay) : 0;
    if (found == RING_FOREIGN) {
        say_of_ring(kv, "is of another log or an earlier boot, and is ignored");
    } else if (found == RING_NEW && kv->options.ring_expected) {
        say_of_ring(kv, "is gone, though the machine still runs since the daemon was killed: what "
                        "was acknowledged in the last second before is lost");
    }
    if (r == 0 && (found == RING_NEW || found == RING_FOREIGN)) {
        r = note_loss(kv);
    }
    if (r == 0 && (found != RING_USABLE || kv->ring.position < kv->log.last_position)) {
        /* Nothing in it that the disk log lacks. */
        ring_reset(&kv->ring, kv->log.last_position, kv->log.last_crc);
    }
    return r;
}

int kv_recover(struct kv *kv, char problem[256]) {
    struct replay replay = {.kv = kv, .problem = problem};
    int r = kv->env->ops->directory_make(kv->env, kv->options.directory);

    if (r == 0) {
        r = open_base(kv, problem);
    }
    if (r == 0) {
        r = open_log(kv, &replay);
    }
    if (r == 0) {
        r = open_ring(kv, &replay);
    }
    if (r < 0) {
        if (!problem[0]) {
            snprintf(problem, 256, "%s cannot be opened: %s", kv->options.directory, err_text(r));
        }
        return r;
    }
    kv->synced = kv->log.last_position;
    kv->term++;
    kv->log.superblock.term = kv->term;
    kv->log.superblock.stopped = 0;
    kv->log.superblock.starts[kv->term % LOG_STARTS] =
        (struct log_start){.term = kv->term, .position = kv->ring.position};
    return disk_log_write_superblock(&kv->log);
}
