/* Opening: base, disk log, ring (kv_recover_ring.c), new term. Blocks; serves nobody yet.
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

static int pool_grow(struct kv *kv) {
    ptrdiff_t moved_bytes;
    char line[256];
    int r = changes_pool_grow(kv->pool, &moved_bytes);

    if (r < 0) {
        return r;
    }
    kv->changes = changes_moved(kv->changes, moved_bytes);
    kv->frozen = kv->frozen ? changes_moved(kv->frozen, moved_bytes) : NULL;
    kv_checkpoint_moved(kv, moved_bytes);
    if (kv->options.log) {
        snprintf(line, sizeof line,
                 "%s: what was not in a checkpoint yet needs more memory than the %zu KiB that are "
                 "set: until the next start it may take %zu KiB",
                 kv->options.directory, kv->options.changes_bytes_max / KIB,
                 changes_pool_bytes(kv->pool) / KIB);
        kv->options.log(kv->options.log_context, line);
    }
    return 0;
}

static int record_pass(void *context, const struct log_record *record) {
    (void)context;
    (void)record;
    return 0;
}

/* A start that is refused for a damaged log has changed nothing: it sees all before it writes. */
static int log_look(struct kv_replay *replay) {
    struct disk_log log;
    int r = disk_log_open(&log, replay->log_options, replay->problem);

    if (r == 0) {
        r = disk_log_replay(&log, record_pass, NULL, replay->problem);
        disk_log_close(&log);
    }
    replay->log_is_whole = r == 0;
    return r;
}

/* Before the record: what the disk log holds may go to the base, if that has room; what only the
 * ring holds may not. */
static int checkpoint_if_full(struct kv_replay *replay, const struct log_record *record) {
    struct kv *kv = replay->kv;
    uint64_t position = record->position - 1;
    bool half = kv_changes_used_bytes(kv) >= kv->options.changes_bytes_max / 2;

    if (replay->in_ring || kv->frozen || position <= kv->applied ||
        (!half && kv_replay_will_fit(kv, record->length))) {
        return 0;
    }
    int r = replay->log_is_whole ? 0 : log_look(replay);
    r = r < 0 ? r : kv_checkpoint_now(kv, position);
    return r == -ERR_NO_SPACE ? 0 : r;
}

/* Most rows are small, and few leaves are split; where that guess is too low the memory grows. */
bool kv_replay_will_fit(const struct kv *kv, uint64_t record_bytes) {
    enum { MEMORY_PER_BYTE = 4 };

    return kv_changes_have_room(kv, 0, 0, MEMORY_PER_BYTE * (size_t)record_bytes);
}

static int make_room(struct kv *kv, const struct record_operation *operation) {
    size_t rows = operation->kind <= LOG_PATCH ? 1 : operation->kind == LOG_NOTE ? 0 : 3;
    size_t value_bytes = operation->kind == LOG_PUT     ? operation->value.size
                         : operation->kind == LOG_PATCH ? KV_VALUE_BYTES_MAX
                         : rows == 3                    ? 2 * (size_t)KV_OUTCOME_VALUE_BYTES
                                                        : 0;
    int r = outcomes_make_room(kv->outcomes);

    while (r == 0 && !kv_changes_have_room(kv, rows, value_bytes, 0)) {
        r = pool_grow(kv);
    }
    if (r == 0) {
        kv_changes_set_aside(kv, rows, value_bytes);
    }
    return r;
}

/* The engine's own rows are in no record: they are made of what it keeps. */
static bool is_engine_row(const struct record_operation *operation) {
    return operation->kind <= LOG_PATCH && kv_key_split(&operation->key).space >= KV_SPACE_ENGINE;
}

static int replay_operation(struct kv_replay *replay, const struct log_record *record,
                            const struct record_operation *operation) {
    struct kv *kv = replay->kv;

    if (is_engine_row(operation)) {
        return -ERR_MALFORMED;
    }
    if (operation->kind == LOG_NOTE) {
        return kv->options.hooks.replay_note
                   ? kv->options.hooks.replay_note(kv->options.hook_context, operation->value,
                                                   record->position, replay->in_ring)
                   : 0;
    }
    if (BUG(LOST_OUTCOME) && operation->kind == LOG_OUTCOME) {
        return 0;
    }
    int r = make_room(kv, operation);
    return r < 0 ? r : kv_apply(kv, operation);
}

static int replay_body(struct kv_replay *replay, const struct log_record *record) {
    bool counted = record->position >= replay->kv->log.superblock.counted_from;
    struct bytes body = record_body(record);
    struct record_operation operation;
    int r = record_count(body);

    if (r >= 0 && counted && (r == 0 || (uint32_t)r != record->operation_count)) {
        r = -ERR_MALFORMED;
    }
    r = r < 0 ? r : checkpoint_if_full(replay, record);
    while (r == 0 && (r = record_next(&body, &operation)) == 0) {
        r = replay_operation(replay, record, &operation);
    }
    return r == -ERR_NOT_FOUND ? 0 : r;
}

int kv_replay_record(void *context, const struct log_record *record) {
    struct kv_replay *replay = context;
    struct kv *kv = replay->kv;

    if (record->term < kv->term || record->term > LOG_TOTAL_MAX) {
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
    int r = replay_body(replay, record);
    if (r < 0 && !replay->problem[0]) {
        snprintf(replay->problem, 256, "record %" PRIu64 " cannot be replayed: %s",
                 record->position, err_text(r));
    }
    return r;
}

static int row_read(const struct kv_key *key, struct bytes value, struct kv_outcome *ret_outcome) {
    struct log_outcome fixed;
    struct kv_key named;

    if (value.size < sizeof fixed || value.size - sizeof fixed > KV_REPLY_BYTES_MAX) {
        return -ERR_CORRUPT;
    }
    memcpy(&fixed, value.data, sizeof fixed);
    named = kv_outcome_key((struct session_id){fixed.session}, fixed.sequence);
    if (kv_key_compare(key, &named) != 0) {
        return -ERR_CORRUPT;
    }
    *ret_outcome = (struct kv_outcome){
        .slot = {fixed.slot},
        .session = {fixed.session},
        .sequence = fixed.sequence,
        .floor = fixed.floor,
        .result = fixed.result,
        .reply = {value.data + sizeof fixed, value.size - sizeof fixed},
    };
    return 0;
}

/* The row of a superfluous outcome goes: its floor has passed it, or was the last to be deleted.
 * One that finds no room stays: the next start finds it as superfluous. */
static int restore_row(struct kv *kv, const struct kv_key *key, struct bytes value) {
    struct kv_outcome outcome;
    int r = row_read(key, value, &outcome);

    r = r < 0 ? r : outcomes_make_room(kv->outcomes);
    if (r == 0 && !outcomes_restore(kv->outcomes, &outcome) &&
        kv_changes_have_room(kv, 1, 0, changes_pool_room(kv->pool) / 2)) {
        r = changes_delete(kv->changes, key);
    }
    return r;
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
        r = restore_row(kv, &key, value);
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
                                            .check_bytes = kv->options.base_check_bytes,
                                            .store = kv->options.base_store,
                                            .log = kv->options.log,
                                            .log_context = kv->options.log_context};
    struct kv_key key = kv_applied_key();
    struct bytes value;
    int r = kv->options.base->open(&options, &kv->base, problem);

    if (r < 0) {
        return r;
    }
    kv->base_read = true;
    r = kv->options.base->get(kv->base, &key, &value);
    if (r == 0 && value.size != KV_APPLIED_BYTES) {
        return -ERR_CORRUPT;
    }
    if (r == 0) {
        kv->term = load_le64(value.data + 8);
        kv->applied = load_le64(value.data + 16);
        if (kv->term > LOG_TOTAL_MAX || kv->applied > LOG_TOTAL_MAX) {
            return -ERR_CORRUPT;
        }
    }
    /* Without that row the first checkpoint may have been cut among those of outcomes. */
    if (r == 0 || r == -ERR_NOT_FOUND) {
        r = restore_rows(kv, KV_ROW_FLOOR);
        r = r < 0 ? r : restore_rows(kv, KV_ROW_OUTCOME);
    }
    return r;
}

static int refuse_short(struct kv_replay *replay) {
    const struct kv *kv = replay->kv;
    char unreadable[64] = "";

    if (kv->log.unreadable > 0) {
        snprintf(unreadable, sizeof unreadable, ": byte %" PRIu64 " of it cannot be read",
                 kv->log.unreadable);
    }
    snprintf(replay->problem, 256,
             "%s: the disk log ends at record %" PRIu64 ", the base holds %" PRIu64
             "%s: one of the two is an older copy, or another's, or the disk lost data: put the "
             "right one back, or restore DIR from a backup",
             kv->options.directory, kv->log.last_position, kv->applied, unreadable);
    return kv->log.unreadable > 0 ? -ERR_IO : -ERR_CORRUPT;
}

static int open_log(struct kv *kv, struct kv_replay *replay) {
    char path[512];
    struct disk_log_options options = {.env = kv->env,
                                       .path = path,
                                       .file_bytes = kv->options.disk_log_bytes,
                                       .log_id = kv->options.log_id,
                                       .record_bytes_max =
                                           ring_record_bytes_max(kv->options.ring_bytes)};

    memcpy(options.owner_id, kv->options.owner_id, sizeof options.owner_id);
    snprintf(path, sizeof path, "%s/log", kv->options.directory);
    int r = disk_log_open(&kv->log, &options, replay->problem);
    if (r < 0) {
        return r;
    }
    if (kv->applied + 1 < kv->log.superblock.tail_position) {
        snprintf(
            replay->problem, 256,
            "%s: the base holds records up to %" PRIu64 ", the disk log begins at %" PRIu64
            ": some are missing: %s/base.mdb or the log is an older copy, or another's: put the "
            "right one back",
            kv->options.directory, kv->applied, kv->log.superblock.tail_position,
            kv->options.directory);
        return -ERR_CORRUPT;
    }
    uint64_t applied_term = kv->term;
    replay->log_options = &options;
    kv->term = 0;
    /* A checkpoint may have been cut between its last commit and its superblock. */
    kv->log.applied = kv->applied;
    r = disk_log_replay(&kv->log, kv_replay_record, replay, replay->problem);
    kv->term = MAX(kv->term, applied_term);
    kv->term = MAX(kv->term, kv->log.superblock.term);
    if (r == 0 && kv->log.last_position < kv->applied) {
        r = refuse_short(replay);
    }
    replay->log_options = NULL;
    return r;
}

/* The superblock that is damaged may be the newer one: a log that does not go with the other is not
 * damaged for that. */
static int refuse_older(const struct kv *kv, char problem[256]) {
    snprintf(problem, 256,
             "%s: its superblock at byte %" PRIu64
             " is damaged, and the other one is too old: check the disk, and restore DIR from a "
             "backup",
             kv->log.path, kv->log.superblock_damaged_at);
    return -ERR_IO;
}

static void say_of_superblock(const struct kv *kv) {
    char line[256];

    if (kv->log.superblock_is_damaged && kv->options.log) {
        snprintf(line, sizeof line,
                 "%s: one of the superblocks of its log, at byte %" PRIu64
                 ", was damaged, and is written anew: check the disk",
                 kv->options.directory, kv->log.superblock_damaged_at);
        kv->options.log(kv->options.log_context, line);
    }
}

int kv_recover(struct kv *kv, char problem[256]) {
    struct kv_replay replay = {.kv = kv, .problem = problem};
    struct log_superblock *superblock = &kv->log.superblock;
    int r = kv->env->ops->directory_make(kv->env, kv->options.directory);

    if (r == 0) {
        r = open_base(kv, problem);
    }
    if (r == 0) {
        r = open_log(kv, &replay);
        r = r == -ERR_CORRUPT && kv->log.superblock_is_damaged ? refuse_older(kv, problem) : r;
    }
    if (r == 0) {
        r = kv_recover_ring(kv, &replay);
    }
    if (r < 0) {
        if (!problem[0]) {
            snprintf(problem, 256, "%s cannot be opened: %s", kv->options.directory, err_text(r));
        }
        return r;
    }
    kv->synced = kv->log.last_position;
    kv->term++;
    kv->env->ops->random(kv->env, &kv->life, sizeof kv->life);
    if (superblock->format < LOG_FORMAT) {
        superblock->format = LOG_FORMAT;
        superblock->counted_from = kv->ring.position + 1;
    }
    disk_log_note_ring(&kv->log, kv->options.ring_bytes);
    superblock->term = kv->term;
    superblock->stopped = 0;
    superblock->starts[kv->term % LOG_STARTS] =
        (struct log_start){.term = kv->term, .position = kv->ring.position};
    r = disk_log_write_superblock(&kv->log);
    assert(r < 0 || kv_log_has_room(kv, kv->ring.head, 0));
    if (r == 0) {
        say_of_superblock(kv);
    }
    return r;
}
