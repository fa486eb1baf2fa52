/* Checkpoints: freeze the changes, wait until they are synced, commit them to the base in sorted
 * pieces, move the log's tail. The last piece holds the applied row (it sorts behind all others),
 * so a checkpoint that was cut in the middle is replayed over: records are absolute. */
#include "kv/kv_internal.h"
#include "base/bug.h"
#include <stdio.h>

enum { COMMIT_VALUE_BYTES = 8 * 1024 * 1024 };
#define SPACE_RETRY_NS (5 * NS_PER_S)

void kv_checkpoint_want(struct kv *kv) {
    kv->checkpoint.wanted = true;
}

/* In the tree, outcomes and floors are rows like others. */
static int store_outcome(void *context, const struct kv_outcome *outcome) {
    struct kv *kv = context;
    uint8_t value[sizeof(struct log_outcome) + KV_REPLY_BYTES_MAX];
    struct log_outcome fixed = {.session = outcome->session.value,
                                .sequence = outcome->sequence,
                                .floor = outcome->floor,
                                .result = outcome->result,
                                .slot = outcome->slot.value};
    struct kv_key key = kv_outcome_key(outcome->session, outcome->sequence);

    memcpy(value, &fixed, sizeof fixed);
    if (outcome->reply.size > 0) {
        memcpy(value + sizeof fixed, outcome->reply.data, outcome->reply.size);
    }
    return changes_put(kv->changes, &key, (struct bytes){value, sizeof fixed + outcome->reply.size},
                       NULL);
}

static int store_applied(struct kv *kv) {
    uint8_t value[24];
    struct kv_key key = kv_applied_key();

    store_le64(value, LOG_FORMAT);
    store_le64(value + 8, kv->term);
    store_le64(value + 16, kv->ring.position);
    return changes_put(kv->changes, &key, (struct bytes){value, sizeof value}, NULL);
}

/* The log's tail will be where its head is now. Batches that follow may hold records up to the
 * frozen position; replay skips those. Without room for the engine's own rows or for a new
 * generation it is tried again at a later step: kv_admit leaves enough for both. */
static void freeze(struct kv *kv) {
    struct kv_checkpoint_state *checkpoint = &kv->checkpoint;
    struct changes *fresh;

    (void)kv_seal(kv);
    if (outcomes_store(kv->outcomes, store_outcome, kv) < 0 || store_applied(kv) < 0 ||
        changes_new(kv->pool, &fresh) < 0) {
        return;
    }
    kv->frozen = kv->changes;
    kv->changes = fresh;
    kv->counters.checkpoints_begun++;
    checkpoint->wanted = false;
    checkpoint->last_ns = env_now_ns(kv->env);
    checkpoint->stage = CHECKPOINT_SYNC;
    checkpoint->position = kv->ring.position;
    checkpoint->tail_offset = kv->log.head;
    checkpoint->tail_position = kv->log.last_position + 1;
    checkpoint->tail_crc = kv->log.last_crc;
    checkpoint->walk = (struct kv_key){{0}};
    checkpoint->walk_inclusive = true;
    checkpoint->last_commit = false;
    if (kv->synced < checkpoint->position) {
        kv_sync_want(kv);
    }
}

static void commit_done(struct kv_base_commit *commit) {
    struct kv *kv = commit->context;

    atomic_store(&kv->checkpoint.commit_finished, true);
    kv_wake(kv);
}

static void commit_submit(struct kv *kv) {
    struct kv_checkpoint_state *checkpoint = &kv->checkpoint;

    checkpoint->committing = true;
    atomic_store(&checkpoint->commit_finished, false);
    kv->options.base->commit(kv->base, &checkpoint->commit);
}

static bool piece_is_full(const struct kv_checkpoint_state *checkpoint) {
    return checkpoint->row_count == checkpoint->rows_max ||
           checkpoint->row_bytes >= COMMIT_VALUE_BYTES;
}

/* The next rows of the frozen tree, up to a bounded number and size: some in each step, so that
 * others are not kept waiting. */
static void commit_piece(struct kv *kv) {
    struct kv_checkpoint_state *checkpoint = &kv->checkpoint;

    for (int i = 0; i < KV_STEP_ROWS && !piece_is_full(checkpoint); i++) {
        struct kv_base_row *row = &checkpoint->rows[checkpoint->row_count];
        enum changes_state state = changes_next(kv->frozen, &checkpoint->walk,
                                                checkpoint->walk_inclusive, &row->key, &row->value);

        if (state == CHANGES_ABSENT) {
            checkpoint->last_commit = true;
            break;
        }
        row->deleted = state == CHANGES_DELETED;
        checkpoint->walk = row->key;
        checkpoint->walk_inclusive = false;
        checkpoint->row_bytes += row->deleted ? 0 : row->value.size;
        checkpoint->row_count++;
        kv->counters.checkpoint_rows++;
    }
    if (!piece_is_full(checkpoint) && !checkpoint->last_commit) {
        kv_wake(kv);
        return;
    }
    checkpoint->commit = (struct kv_base_commit){.rows = checkpoint->rows,
                                                 .row_count = checkpoint->row_count,
                                                 .done = commit_done,
                                                 .context = kv};
    checkpoint->row_count = 0;
    checkpoint->row_bytes = 0;
    commit_submit(kv);
}

static void space_note(struct kv *kv, bool no_space) {
    char line[256];

    kv->checkpoint.retry_ns = env_now_ns(kv->env) + SPACE_RETRY_NS;
    if (kv->checkpoint.no_space == no_space) {
        return;
    }
    kv->checkpoint.no_space = no_space;
    if (kv->options.log) {
        snprintf(line, sizeof line,
                 no_space ? "%s: the file system below is full: a checkpoint waits for space, and "
                            "changes go on until memory or log are full; free some there"
                          : "%s: the file system below has space again, the checkpoint goes on",
                 kv->options.directory);
        kv->options.log(kv->options.log_context, line);
    }
}

/* True when the piece before is in the base. One that met a full file system has changed nothing:
 * it is given again as it is. */
static bool commit_answered(struct kv *kv) {
    struct kv_checkpoint_state *checkpoint = &kv->checkpoint;

    if (checkpoint->committing) {
        if (!atomic_load(&checkpoint->commit_finished)) {
            return false;
        }
        checkpoint->committing = false;
        if (checkpoint->commit.result == -ERR_NO_SPACE) {
            space_note(kv, true);
        } else if (checkpoint->commit.result < 0) {
            kv_fail(kv, "writing base.mdb", checkpoint->commit.result);
            return false;
        } else {
            space_note(kv, false);
        }
    }
    if (checkpoint->no_space) {
        if (env_now_ns(kv->env) >= checkpoint->retry_ns && !kv->stopping) {
            commit_submit(kv);
        }
        return false;
    }
    return true;
}

static void commit_step(struct kv *kv) {
    struct kv_checkpoint_state *checkpoint = &kv->checkpoint;

    if (!commit_answered(kv)) {
        return;
    }
    if (!checkpoint->last_commit) {
        commit_piece(kv);
        return;
    }
    checkpoint->stage = CHECKPOINT_SUPERBLOCK;
}

static void superblock_step(struct kv *kv) {
    struct kv_checkpoint_state *checkpoint = &kv->checkpoint;
    struct log_superblock *superblock = &kv->log.superblock;

    if (kv->io_busy || kv->sync.stage == SYNC_RECORDS || kv->sync.stage == SYNC_FLUSH) {
        return;
    }
    superblock->tail_offset = checkpoint->tail_offset;
    superblock->tail_position = checkpoint->tail_position;
    superblock->tail_previous_crc = checkpoint->tail_crc;
    disk_log_prepare_superblock(&kv->log);
    checkpoint->stage = CHECKPOINT_SUPERBLOCK_FLUSH;
    checkpoint->committing = false;
    kv_log_submit(kv);
}

static void finish(struct kv *kv) {
    kv->applied = kv->checkpoint.position;
    changes_free(kv->frozen);
    kv->frozen = NULL;
    kv->checkpoint.stage = CHECKPOINT_IDLE;
    kv->counters.checkpoints++;
    kv_wake(kv);
}

/* Write, then flush, with the log's one I/O; `committing` tells which of the two is in flight. */
static void superblock_flush_step(struct kv *kv) {
    struct kv_checkpoint_state *checkpoint = &kv->checkpoint;

    if (!kv->io_busy || !atomic_load(&kv->io_finished)) {
        return;
    }
    kv->io_busy = false;
    if (kv->io_result < 0) {
        kv_fail(kv, "writing the log", kv->io_result);
    } else if (!checkpoint->committing) {
        checkpoint->committing = true;
        kv->log.io = (struct env_io){.kind = ENV_IO_SYNC, .file = kv->log.file};
        kv_log_submit(kv);
    } else {
        finish(kv);
    }
}

static bool may_commit(const struct kv *kv) {
    return kv->synced >= kv->checkpoint.position || BUG(EARLY_CHECKPOINT);
}

void kv_checkpoint_step(struct kv *kv) {
    struct kv_checkpoint_state *checkpoint = &kv->checkpoint;

    if (kv->failed < 0) {
        return;
    }
    if (checkpoint->stage == CHECKPOINT_IDLE && checkpoint->wanted) {
        if (changes_row_count(kv->changes) == 0 && kv->applied == kv->ring.position &&
            kv->ring.open_bytes == 0) {
            checkpoint->wanted = false;
        } else {
            freeze(kv);
        }
    }
    if (checkpoint->stage == CHECKPOINT_SYNC) {
        if (may_commit(kv)) {
            checkpoint->stage = CHECKPOINT_COMMIT;
        } else {
            kv_sync_want(kv);
        }
    }
    if (checkpoint->stage == CHECKPOINT_COMMIT) {
        commit_step(kv);
    }
    if (checkpoint->stage == CHECKPOINT_SUPERBLOCK) {
        superblock_step(kv);
    } else if (checkpoint->stage == CHECKPOINT_SUPERBLOCK_FLUSH) {
        superblock_flush_step(kv);
    }
}
