/* The engine's face: opening, reading, walking, progress, stopping. */
#include "kv/kv_internal.h"
#include "kv/windows.h"
#include "base/bug.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

static void options_round(struct kv_options *options) {
    options->ring_bytes &= ~(size_t)(BLOCK_BYTES - 1);
    options->sessions_max = options->sessions_max > 0 ? options->sessions_max : KV_SESSIONS_MAX;
    options->outcomes_max = options->outcomes_max > 0
                                ? options->outcomes_max
                                : WINDOW_LEAST * options->sessions_max + KV_OUTCOMES_SPARE;
    options->ring_data_bytes &= ~(size_t)(BLOCK_BYTES - 1);
    options->ring_bytes_name = options->ring_bytes_name ? options->ring_bytes_name : "ring_bytes";
    options->ring_data_bytes_name =
        options->ring_data_bytes_name ? options->ring_data_bytes_name : "ring_data_bytes";
    options->disk_log_bytes &= ~(uint64_t)(BLOCK_BYTES - 1);
}

static int options_check(const struct kv_options *options) {
    bool fits = options->env && options->directory && options->shared_name && options->base &&
                options->hooks.wake && options->ring_bytes >= 64 * KIB &&
                options->disk_log_bytes >= 8 * (uint64_t)options->ring_bytes &&
                options->changes_bytes_max >= 256 * KIB;

    return fits ? 0 : -ERR_INVALID;
}

static int take_memory(struct kv *kv) {
    int r = changes_pool_new(kv->options.changes_bytes_max, &kv->pool);

    if (r == 0) {
        r = changes_new(kv->pool, &kv->changes);
    }
    if (r == 0) {
        r = outcomes_new(kv->options.outcomes_max, kv->options.sessions_max, &kv->outcomes);
    }
    /* No more rows than the memory for changes holds. */
    kv->checkpoint.rows_max =
        MIN((size_t)KV_COMMIT_ROWS, kv->options.changes_bytes_max / sizeof(struct kv_key));
    kv->checkpoint.rows = malloc(kv->checkpoint.rows_max * sizeof *kv->checkpoint.rows);
    kv->scratch = calloc(KV_SCRATCH_VALUES, sizeof *kv->scratch);
    r = r < 0 ? r : kv_warmth_init(kv);
    return r < 0 ? r : kv->checkpoint.rows && kv->scratch ? 0 : -ERR_NO_MEMORY;
}

int kv_open(const struct kv_options *options, struct kv **ret_kv, char ret_problem[256]) {
    int r = options_check(options);

    ret_problem[0] = '\0';
    if (r < 0) {
        return r;
    }
    struct kv *kv = calloc(1, sizeof *kv);
    if (!kv) {
        return -ERR_NO_MEMORY;
    }
    kv->options = *options;
    options_round(&kv->options);
    kv->env = options->env;
    r = take_memory(kv);
    if (r == 0) {
        r = kv_recover(kv, ret_problem);
    }
    if (r < 0) {
        kv_close(kv);
        return r;
    }
    kv->sync.last_ns = env_now_ns(kv->env);
    kv->checkpoint.last_ns = kv->sync.last_ns;
    *ret_kv = kv;
    return 0;
}

void kv_abandon(struct kv *kv) {
    if (!kv) {
        return;
    }
    if (kv->base) {
        kv->options.base->close(kv->base);
    }
    disk_log_close(&kv->log);
    ring_close(&kv->ring);
    outcomes_free(kv->outcomes);
    changes_free(kv->frozen);
    changes_free(kv->changes);
    changes_pool_free(kv->pool);
    free(kv->checkpoint.rows);
    free(kv->scratch);
    free(kv->warmth.points);
    free(kv);
}

void kv_close(struct kv *kv) {
    assert(!kv || kv_is_idle(kv));
    kv_abandon(kv);
}

void kv_wake(struct kv *kv) {
    kv->options.hooks.wake(kv->options.hook_context);
}

static void say_failed(struct kv *kv, const char *what, int result) {
    const char *root = kv->options.root ? kv->options.root : "DIR";
    char line[1024];

    if (kv->options.log) {
        snprintf(line, sizeof line,
                 "%.300s/%s: %s failed: %s; it answers nothing more, all else goes on: see to the "
                 "disk, then `shoal down %.300s` and start again",
                 root, kv->options.directory, what, err_text(result), root);
        kv->options.log(kv->options.log_context, line);
    }
}

/* The first error stops the log for good: what was written after it could not be trusted. */
void kv_fail(struct kv *kv, const char *what, int result) {
    struct queue_node *node;

    if (kv->failed == 0) {
        kv->failed = result;
        say_failed(kv, what, result);
    }
    while ((node = queue_pop(&kv->waiters))) {
        struct kv_waiter *waiter = CONTAINER_OF(node, struct kv_waiter, node);

        waiter->done(waiter, kv->failed);
    }
    kv_wake(kv); /* for a stop that waits */
}

int kv_read(struct kv *kv, const struct kv_key *key, bool may_pend, struct bytes *ret_value) {
    enum changes_state state = changes_find(kv->changes, key, ret_value);

    if (state == CHANGES_ABSENT && kv->frozen) {
        state = changes_find(kv->frozen, key, ret_value);
    }
    if (state != CHANGES_ABSENT) {
        return state == CHANGES_PRESENT ? 0 : -ERR_NOT_FOUND;
    }
    if (may_pend && kv_must_warm(kv, key, false)) {
        return -ERR_PENDING;
    }
    kv->base_read = true;
    return kv->options.base->get(kv->base, key, ret_value);
}

/* One layer's candidate for the next row of a walk. */
struct candidate {
    enum changes_state state;
    struct kv_key key;
    struct bytes value;
    bool corrupt; /* it is there, but its checksum is wrong */
};

static int base_next(struct kv *kv, const struct kv_cursor *cursor, struct candidate *candidate) {
    struct kv_key none;

    memset(&none, 0xff, sizeof none);
    if (kv_must_warm(kv, &cursor->key, true)) {
        return -ERR_PENDING;
    }
    kv->base_read = true;
    candidate->key = none;
    int r = kv->options.base->next(kv->base, &cursor->key, cursor->inclusive, &candidate->key,
                                   &candidate->value);
    if (r == -ERR_NOT_FOUND) {
        candidate->state = CHANGES_ABSENT;
        return 0;
    }
    candidate->state = CHANGES_PRESENT;
    candidate->corrupt = r == -ERR_CORRUPT && kv_key_compare(&candidate->key, &none) != 0;
    return candidate->corrupt ? 0 : r;
}

void kv_cursor_init(struct kv_cursor *cursor, const struct kv_key *from, const struct kv_key *to) {
    *cursor = (struct kv_cursor){.key = *from, .end = *to, .inclusive = true};
}

/* The least key of three layers; of equal keys the newest layer's, which comes first. */
static int next_of_layers(struct kv *kv, const struct kv_cursor *cursor, struct candidate *best) {
    struct candidate layers[3] = {{.state = CHANGES_ABSENT}};

    layers[0].state = changes_next(kv->changes, &cursor->key, cursor->inclusive, &layers[0].key,
                                   &layers[0].value);
    if (kv->frozen) {
        layers[1].state = changes_next(kv->frozen, &cursor->key, cursor->inclusive, &layers[1].key,
                                       &layers[1].value);
    }
    int r = base_next(kv, cursor, &layers[2]);
    if (r < 0) {
        return r;
    }
    best->state = CHANGES_ABSENT;
    for (size_t i = 0; i < ARRAY_SIZE(layers); i++) {
        if (layers[i].state != CHANGES_ABSENT &&
            (best->state == CHANGES_ABSENT || kv_key_compare(&layers[i].key, &best->key) < 0)) {
            *best = layers[i];
        }
    }
    return 0;
}

int kv_next(struct kv *kv, struct kv_cursor *cursor, struct bytes *ret_value) {
    struct candidate best = {0};
    uint32_t skips = 0;

    if (kv->failed < 0) {
        return kv->failed;
    }
    do {
        if (cursor->skips_max > 0 && skips++ > cursor->skips_max) {
            kv_wake(kv);
            return -ERR_PENDING;
        }
        int r = next_of_layers(kv, cursor, &best);
        if (r < 0) {
            return r;
        }
        if (best.state == CHANGES_ABSENT || kv_key_compare(&best.key, &cursor->end) >= 0) {
            return -ERR_NOT_FOUND;
        }
        cursor->key = best.key;
        cursor->inclusive = false;
        if (best.corrupt) {
            return -ERR_CORRUPT;
        }
    } while (best.state == CHANGES_DELETED);
    *ret_value = best.value;
    return 0;
}

static int last_of_layers(struct kv *kv, const struct kv_key *before, struct candidate *best) {
    struct candidate layers[3] = {{.state = CHANGES_ABSENT}};

    if (kv_must_warm(kv, before, false)) {
        return -ERR_PENDING;
    }
    layers[0].state = changes_previous(kv->changes, before, &layers[0].key, &layers[0].value);
    if (kv->frozen) {
        layers[1].state = changes_previous(kv->frozen, before, &layers[1].key, &layers[1].value);
    }
    kv->base_read = true;
    int r = kv->options.base->previous(kv->base, before, &layers[2].key, &layers[2].value);
    if (r < 0 && r != -ERR_NOT_FOUND) {
        return r;
    }
    layers[2].state = r == 0 ? CHANGES_PRESENT : CHANGES_ABSENT;
    best->state = CHANGES_ABSENT;
    for (size_t i = 0; i < ARRAY_SIZE(layers); i++) {
        if (layers[i].state != CHANGES_ABSENT &&
            (best->state == CHANGES_ABSENT || kv_key_compare(&layers[i].key, &best->key) > 0)) {
            *best = layers[i];
        }
    }
    return 0;
}

int kv_last(struct kv *kv, const struct kv_key *from, const struct kv_key *to,
            struct kv_key *ret_key, struct bytes *ret_value) {
    struct kv_key before = *to;
    struct candidate best = {0};

    do {
        int r = kv->failed < 0 ? kv->failed : last_of_layers(kv, &before, &best);

        if (r < 0) {
            return r;
        }
        if (best.state == CHANGES_ABSENT || kv_key_compare(&best.key, from) < 0) {
            return -ERR_NOT_FOUND;
        }
        before = best.key;
    } while (best.state == CHANGES_DELETED);
    *ret_key = best.key;
    *ret_value = best.value;
    return 0;
}

int kv_outcome_get(struct kv *kv, struct slot slot, struct session_id session, uint64_t sequence,
                   struct kv_outcome *ret_outcome) {
    (void)slot;
    int r =
        kv->failed < 0 ? kv->failed : outcomes_find(kv->outcomes, session, sequence, ret_outcome);

    if (r != -ERR_NOT_FOUND) {
        kv->counters.duplicates_refused++;
    }
    return r;
}

struct log_id kv_log_id(const struct kv *kv) {
    return disk_log_id(&kv->log);
}

bool kv_floor_is_due(const struct kv *kv, struct session_id session, uint64_t floor) {
    return kv->failed == 0 && outcomes_floor_is_due(kv->outcomes, session, floor);
}

uint32_t kv_outcomes_of(const struct kv *kv, struct session_id session) {
    return outcomes_kept(kv->outcomes, session);
}

uint32_t kv_outcomes_max(const struct kv *kv) {
    return kv->options.outcomes_max;
}

struct log_life kv_life(const struct kv *kv) {
    return kv->life;
}

uint64_t kv_position(const struct kv *kv) {
    return kv->ring.position;
}

uint64_t kv_synced_position(const struct kv *kv) {
    return kv->synced;
}

uint64_t kv_term(const struct kv *kv) {
    return kv->term;
}

uint64_t kv_survived_position(const struct kv *kv, uint64_t term) {
    uint64_t least = UINT64_MAX;

    if (term + LOG_STARTS < kv->term) {
        return 0;
    }
    for (size_t i = 0; i < LOG_STARTS; i++) {
        const struct log_start *start = &kv->log.superblock.starts[i];

        if (start->term > term && start->term <= kv->term) {
            least = MIN(least, start->position);
        }
    }
    return least;
}

uint16_t kv_losses(const struct kv *kv) {
    return kv->log.superblock.losses;
}

int kv_failure(const struct kv *kv) {
    return kv->failed;
}

void *kv_data_allocate(struct kv *kv, size_t size_bytes, uint64_t *ret_offset) {
    const struct kv_transaction *transaction = &kv->transaction;
    bool allocated = ring_data_allocate(&kv->ring, size_bytes, ret_offset);

    assert(transaction->open && allocated && kv->ring.data_head <= transaction->data_end_max);
    return allocated ? ring_data_at(&kv->ring, *ret_offset) : NULL;
}

void *kv_data_at(struct kv *kv, uint64_t offset, size_t size_bytes) {
    size_t place = kv->ring.data_bytes > 0 ? (size_t)(offset % kv->ring.data_bytes) : 0;

    return size_bytes <= kv->ring.data_bytes - place ? ring_data_at(&kv->ring, offset) : NULL;
}

static void log_io_done(struct env_io *io, int result) {
    struct kv *kv = io->context;

    kv->io_result = result;
    atomic_store(&kv->io_finished, true);
    kv_wake(kv);
}

void kv_log_submit(struct kv *kv) {
    assert(!kv->io_busy);
    kv->io_busy = true;
    atomic_store(&kv->io_finished, false);
    kv->log.io.done = log_io_done;
    kv->log.io.context = kv;
    env_io_submit(kv->env, &kv->log.io);
}

static bool checkpoint_is_due(const struct kv *kv, uint64_t now_ns) {
    uint64_t interval_ns = kv->options.checkpoint_ns;

    return interval_ns > 0 && kv->applied < kv->ring.position &&
           now_ns - kv->checkpoint.last_ns >= interval_ns;
}

/* Of records or of data, with what no sync point has cut yet: what a running one takes is let go at
 * its end, and asks for no other. */
static bool ring_is_half_full(const struct kv *kv) {
    const struct ring *ring = &kv->ring;
    const struct ring_start *from = kv_sync_is_idle(kv) ? &ring->start : &kv->sync.cut;
    uint64_t end = ring->start.offset + ring_used_bytes(ring);

    return end - from->offset >= ring->record_bytes / 2 ||
           ring->data_head - from->data_start > ring->data_bytes / 2;
}

static void maintain(struct kv *kv) {
    uint64_t now = env_now_ns(kv->env);

    if (!outcomes_are_clean(kv->outcomes)) {
        outcomes_clean(kv->outcomes, kv_outcome_row_delete, kv);
    }
    bool unsynced = kv->synced < kv->ring.position || kv->ring.open_bytes > 0;
    bool due = kv_sync_is_idle(kv) && now - kv->sync.last_ns >= kv->options.sync_interval_ns;

    if (unsynced && (due || ring_is_half_full(kv))) {
        kv_sync_want(kv);
    }
    if (kv_changes_used_bytes(kv) >= kv->options.changes_bytes_max / 2 ||
        disk_log_used_bytes(&kv->log) >= kv->log.region_bytes / 8 * 3 ||
        checkpoint_is_due(kv, now)) {
        kv_checkpoint_want(kv);
    }
}

/* Without space for a checkpoint the disk log has it all: the next start replays it. */
static bool is_stoppable(const struct kv *kv) {
    bool synced = kv->synced >= kv->ring.position && kv->ring.open_bytes == 0;
    bool applied = kv->applied >= kv->ring.position && kv->checkpoint.stage == CHECKPOINT_IDLE;
    bool gives_up = kv->checkpoint.no_space && !kv->checkpoint.committing;
    bool quiet = kv_sync_is_idle(kv) && !kv->sync.wanted; /* none begins beside the stop's writes */

    return synced && (applied || gives_up) && quiet;
}

static void stop_answer(struct kv *kv, int result) {
    void (*done)(void *context, int result) = kv->stop_done;

    kv->stop_done = NULL;
    done(kv->stop_context, result);
}

/* Takes in what has ended, and nobody waits for any more. */
static void reap(struct kv *kv) {
    kv->io_busy = kv->io_busy && !atomic_load(&kv->io_finished);
    kv->checkpoint.committing =
        kv->checkpoint.committing && !atomic_load(&kv->checkpoint.commit_finished);
}

bool kv_is_idle(const struct kv *kv) {
    bool io_busy = kv->io_busy && !atomic_load(&kv->io_finished);
    bool committing = kv->checkpoint.committing && !atomic_load(&kv->checkpoint.commit_finished);

    return !io_busy && !committing && kv_warmth_is_idle(kv);
}

static void stop_write(struct kv *kv) {
    kv->stop_stage = STOP_WRITE;
    disk_log_note_stop(&kv->log);
    disk_log_prepare_superblock(&kv->log);
    kv_log_submit(kv);
}

/* What the stop has written or flushed is done; behind the last of it so are reads from disk that
 * began meanwhile. */
static bool stop_goes_on(const struct kv *kv) {
    return kv->stop_done && kv->io_busy && atomic_load(&kv->io_finished) &&
           (kv->stop_stage == STOP_WRITE || (kv->stop_stage == STOP_FLUSH && kv_is_idle(kv)));
}

/* The superblock says that nothing is missing before the ring goes. */
static void stop_step(struct kv *kv) {
    if (!kv->stop_done) {
        return;
    }
    if (kv->stop_stage == STOP_WAIT && is_stoppable(kv) && !kv->io_busy && kv_is_idle(kv)) {
        stop_write(kv);
    }
    while (stop_goes_on(kv)) {
        kv->io_busy = false;
        if (kv->io_result < 0) {
            kv_fail(kv, "writing the log", kv->io_result);
            return;
        }
        if (kv->stop_stage == STOP_WRITE) {
            kv->stop_stage = STOP_FLUSH;
            kv->log.io = (struct env_io){.kind = ENV_IO_SYNC, .file = kv->log.file};
            kv_log_submit(kv);
        } else {
            stop_answer(kv, kv->env->ops->shared_remove(kv->env, kv->options.shared_name));
        }
    }
}

/* What is in flight ends before a stop is answered: its memory is the engine's. */
static void failed_step(struct kv *kv) {
    reap(kv);
    if (kv->stop_done && (kv_is_idle(kv) || BUG(LATE_DONE))) {
        stop_answer(kv, kv->failed);
    }
}

void kv_step(struct kv *kv) {
    kv->grant_number++;
    if (kv->base_read) {
        kv->options.base->read_end(kv->base);
        kv->base_read = false;
    }
    kv_warmth_step(kv);
    if (kv->failed == 0) {
        maintain(kv);
        kv_sync_step(kv);
        kv_checkpoint_step(kv);
        /* One may have begun that waits for a sync point, or ended one's wait for space. */
        kv_sync_step(kv);
        stop_step(kv);
    }
    if (kv->failed < 0) {
        failed_step(kv);
    }
}

void kv_stop_start(struct kv *kv, void (*done)(void *context, int result), void *context) {
    kv->stop_done = done;
    kv->stop_context = context;
    kv->stopping = true;
    if (kv->failed == 0) {
        (void)kv_seal(kv);
        kv_checkpoint_want(kv);
        kv_sync_want(kv);
    }
    kv_step(kv);
}

void kv_space_get(struct kv *kv, struct kv_space *ret_space) {
    const uint64_t most = UINT64_C(1) << 56;
    struct kv_base_space space;
    uint64_t free_bytes;

    kv->options.base->space(kv->base, &space);
    if (kv->env->ops->file_space(kv->log.file, &free_bytes) < 0) {
        free_bytes = most;
    }
    uint64_t within = space.bytes_max - MIN(space.bytes_max, space.used_bytes);
    uint64_t below = MIN(space.unused_bytes, most) + MIN(free_bytes, most);
    *ret_space = (struct kv_space){.used_bytes = space.used_bytes,
                                   .available_bytes = MIN(MIN(within, below), most)};
    if (kv->checkpoint.no_space) {
        ret_space->available_bytes = 0;
    }
}

void kv_counters_get(const struct kv *kv, struct kv_counters *ret_counters) {
    *ret_counters = kv->counters;
    ret_counters->changes_bytes = kv_changes_used_bytes(kv);
    ret_counters->ring_used_bytes = ring_used_bytes(&kv->ring);
    ret_counters->disk_log_used_bytes = disk_log_used_bytes(&kv->log);
    ret_counters->levels = kv_levels_of(kv);
}
