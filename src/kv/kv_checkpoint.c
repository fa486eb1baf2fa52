/* Checkpoints: freeze the changes, wait until they are synced, commit them to the base in sorted
 * pieces, move the log's tail. The last piece holds the applied row (it sorts behind all others),
 * so a checkpoint that was cut in the middle is replayed over: records are absolute. */
#include "kv/kv_internal.h"
#include "base/bug.h"
#include <assert.h>
#include <stdio.h>

enum { COMMIT_VALUE_BYTES = 8 * 1024 * 1024 };
#define SPACE_RETRY_NS NS_PER_S

void kv_checkpoint_want(struct kv *kv) {
    kv->checkpoint.wanted = true;
}

/* In the tree, outcomes and floors are rows like others. */
static void store_outcome(void *context, const struct kv_outcome *outcome) {
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
    int r = changes_put(kv->changes, &key,
                        (struct bytes){value, sizeof fixed + outcome->reply.size}, NULL);

    assert(r == 0);
    (void)r;
}

static void store_applied(struct kv *kv, uint64_t position) {
    uint8_t value[KV_APPLIED_BYTES];
    struct kv_key key = kv_applied_key();

    store_le64(value, LOG_FORMAT);
    store_le64(value + 8, kv->term);
    store_le64(value + 16, position);
    int r = changes_put(kv->changes, &key, (struct bytes){value, sizeof value}, NULL);

    assert(r == 0);
    (void)r;
}

/* Adds the engine's own rows, whose room was kept, and begins a new generation. */
static void generation_end(struct kv *kv, uint64_t position) {
    struct changes *fresh;

    assert(!kv->frozen);
    kv_changes_set_aside(kv, 0, 0);
    outcomes_store(kv->outcomes, store_outcome, kv);
    store_applied(kv, position);
    changes_trim(kv->changes);
    int r = changes_new(kv->pool, &fresh);
    assert(r == 0);
    (void)r;
    kv->frozen = kv->changes;
    kv->changes = fresh;
}

static void walk_begin(struct kv_checkpoint_state *checkpoint) {
    checkpoint->walk = (struct kv_key){{0}};
    checkpoint->walk_inclusive = true;
    checkpoint->last_commit = false;
}

/* What is frozen goes to the base once it is synced. A sync point that is under way will do, if it
 * was cut behind it. */
static void sync_want_frozen(struct kv *kv) {
    if (kv_sync_is_idle(kv) || kv->sync.cut.position <= kv->checkpoint.position) {
        kv_sync_want(kv);
    }
}

/* The log's tail will be where its head is now. Batches that follow may hold records up to the
 * frozen position; replay skips those. */
static void freeze(struct kv *kv) {
    struct kv_checkpoint_state *checkpoint = &kv->checkpoint;

    (void)kv_seal(kv);
    generation_end(kv, kv->ring.position);
    kv->counters.checkpoints_begun++;
    checkpoint->wanted = false;
    checkpoint->last_ns = env_now_ns(kv->env);
    checkpoint->stage = CHECKPOINT_SYNC;
    checkpoint->position = kv->ring.position;
    checkpoint->tail_offset = kv->log.head;
    checkpoint->tail_position = kv->log.last_position + 1;
    checkpoint->tail_crc = kv->log.last_crc;
    walk_begin(checkpoint);
    if (kv->synced < checkpoint->position) {
        sync_want_frozen(kv);
    }
}

/* The base has all: what the last checkpoint's own sync point wrote is needed no more. */
static void move_tail(struct kv *kv) {
    struct kv_checkpoint_state *checkpoint = &kv->checkpoint;

    checkpoint->wanted = false;
    checkpoint->stage = CHECKPOINT_SUPERBLOCK;
    checkpoint->position = kv->applied;
    checkpoint->tail_offset = kv->log.head;
    checkpoint->tail_position = kv->log.last_position + 1;
    checkpoint->tail_crc = kv->log.last_crc;
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

/* The next rows of the frozen tree, up to a bounded number and size. */
static void piece_add(struct kv *kv, size_t rows_max) {
    struct kv_checkpoint_state *checkpoint = &kv->checkpoint;

    for (size_t i = 0; i < rows_max && !piece_is_full(checkpoint); i++) {
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
}

static void piece_close(struct kv *kv) {
    struct kv_checkpoint_state *checkpoint = &kv->checkpoint;

    checkpoint->commit = (struct kv_base_commit){.rows = checkpoint->rows,
                                                 .row_count = checkpoint->row_count,
                                                 .done = commit_done,
                                                 .context = kv};
    checkpoint->row_count = 0;
    checkpoint->row_bytes = 0;
}

/* Some rows in each step, so that others are not kept waiting. */
static void commit_piece(struct kv *kv) {
    piece_add(kv, KV_STEP_ROWS);
    if (!piece_is_full(&kv->checkpoint) && !kv->checkpoint.last_commit) {
        kv_wake(kv);
        return;
    }
    piece_close(kv);
    commit_submit(kv);
}

static void space_note(struct kv *kv, bool no_space) {
    char line[256];

    kv->checkpoint.retry_ns = env_now_ns(kv->env) + SPACE_RETRY_NS;
    if (kv->checkpoint.no_space == no_space) {
        return;
    }
    kv->checkpoint.no_space = no_space;
    kv->checkpoint.no_space_ns = env_now_ns(kv->env);
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

static void finish(struct kv *kv) {
    kv->applied = kv->checkpoint.position;
    kv->log.tail = kv->log.superblock.tail_offset;
    changes_free(kv->frozen);
    kv->frozen = NULL;
    kv->checkpoint.stage = CHECKPOINT_IDLE;
    kv->counters.checkpoints++;
    kv_wake(kv);
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
    if (BUG(TAIL_EARLY)) {
        finish(kv);
        return;
    }
    disk_log_prepare_superblock(&kv->log);
    checkpoint->stage = CHECKPOINT_SUPERBLOCK_FLUSH;
    checkpoint->flushing = false;
    kv_log_submit(kv);
}

/* Write, then flush, with the log's one I/O. */
static void superblock_flush_step(struct kv *kv) {
    struct kv_checkpoint_state *checkpoint = &kv->checkpoint;

    if (!kv->io_busy || !atomic_load(&kv->io_finished)) {
        return;
    }
    kv->io_busy = false;
    if (kv->io_result < 0) {
        kv_fail(kv, "writing the log", kv->io_result);
    } else if (!checkpoint->flushing) {
        checkpoint->flushing = true;
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

    if (kv->failed < 0 || kv->stop_stage != STOP_WAIT) {
        return;
    }
    if (checkpoint->stage == CHECKPOINT_IDLE && checkpoint->wanted) {
        bool applied = changes_row_count(kv->changes) == 0 && kv->applied == kv->ring.position &&
                       kv->ring.open_bytes == 0;

        if (applied && kv->log.tail == kv->log.head) {
            checkpoint->wanted = false;
        } else if (applied && kv->synced == kv->applied) {
            move_tail(kv);
        } else if (!applied) {
            freeze(kv);
        }
    }
    if (checkpoint->stage == CHECKPOINT_SYNC) {
        if (may_commit(kv)) {
            checkpoint->stage = CHECKPOINT_COMMIT;
        } else {
            sync_want_frozen(kv);
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

static int commit_all_now(struct kv *kv) {
    struct kv_checkpoint_state *checkpoint = &kv->checkpoint;
    int r = 0;

    while (r == 0 && !checkpoint->last_commit) {
        piece_add(kv, SIZE_MAX);
        piece_close(kv);
        kv->options.base->read_end(kv->base);
        kv->base_read = false;
        r = kv->options.base->commit_now(kv->base, &checkpoint->commit);
    }
    return r;
}

/* What is read from the log may not be on disk yet: its process was killed before the flush. Where
 * there is no space the rest is left to steps; the log's tail stays where it is then. */
int kv_checkpoint_now(struct kv *kv, uint64_t position) {
    struct env_io flush = {.kind = ENV_IO_SYNC, .file = kv->log.file};
    struct kv_checkpoint_state *checkpoint = &kv->checkpoint;
    const struct log_superblock *superblock = &kv->log.superblock;
    int r = kv->env->ops->io_run(kv->env, &flush);

    if (r < 0) {
        return r;
    }
    generation_end(kv, position);
    checkpoint->position = position;
    walk_begin(checkpoint);
    r = commit_all_now(kv);
    if (r == 0) {
        kv->applied = position;
        changes_free(kv->frozen);
        kv->frozen = NULL;
    } else if (r == -ERR_NO_SPACE) {
        checkpoint->stage = CHECKPOINT_COMMIT;
        checkpoint->tail_offset = superblock->tail_offset;
        checkpoint->tail_position = superblock->tail_position;
        checkpoint->tail_crc = superblock->tail_previous_crc;
        space_note(kv, true);
    }
    return r;
}

void kv_checkpoint_moved(struct kv *kv, ptrdiff_t moved_bytes) {
    struct kv_checkpoint_state *checkpoint = &kv->checkpoint;

    for (size_t i = 0; kv->frozen && i < checkpoint->commit.row_count; i++) {
        checkpoint->rows[i].value.data += checkpoint->rows[i].deleted ? 0 : moved_bytes;
    }
}
