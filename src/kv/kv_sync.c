/* Sync points: cut, data, records, flush. One at a time; what comes meanwhile joins the next. */
#include "kv/kv_internal.h"
#include "base/bug.h"
#include <assert.h>

bool kv_sync_is_idle(const struct kv *kv) {
    return kv->sync.stage == SYNC_IDLE;
}

void kv_sync_want(struct kv *kv) {
    kv->sync.wanted = true;
}

void kv_sync(struct kv *kv, struct kv_waiter *waiter, uint64_t position) {
    uint64_t newest = kv->ring.position + (kv->ring.open_bytes > 0 ? 1 : 0);

    waiter->position = position;
    if (kv->failed < 0) {
        waiter->done(waiter, kv->failed);
    } else if (position > newest) {
        waiter->done(waiter, -ERR_INVALID);
    } else if (position <= kv->synced) {
        waiter->done(waiter, 0);
    } else {
        queue_push(&kv->waiters, &waiter->node);
        kv_sync_want(kv);
        kv_wake(kv);
    }
}

/* One that is told may find a damaged row and stop the log: then that is what the rest is told. */
static void sync_answer(struct kv *kv) {
    struct queue waiting = kv->waiters;
    struct queue_node *node;

    kv->waiters = (struct queue){0};
    while ((node = queue_pop(&waiting))) {
        struct kv_waiter *waiter = CONTAINER_OF(node, struct kv_waiter, node);

        if (waiter->position <= kv->synced) {
            waiter->done(waiter, 0);
        } else if (kv->failed < 0) {
            waiter->done(waiter, kv->failed);
        } else {
            queue_push(&kv->waiters, &waiter->node);
            kv->sync.wanted = true;
        }
    }
}

static void sync_finish(struct kv *kv) {
    struct kv_sync_state *sync = &kv->sync;

    kv->synced = sync->cut.position - 1;
    ring_release(&kv->ring, &sync->cut);
    sync->stage = SYNC_IDLE;
    sync->last_ns = env_now_ns(kv->env);
    kv->counters.sync_points++;
    kv->counters.sync_points_unasked += !sync->asked;
    if (kv->options.hooks.synced) {
        kv->options.hooks.synced(kv->options.hook_context, kv->synced);
    }
    sync_answer(kv);
}

/* What is cut must be in the ring as it is: then the log takes it, and the walk over it ends where
 * the newest record does. */
static void cut_check(const struct kv *kv) {
    const struct ring *ring = &kv->ring;

    assert(ring->open_bytes == 0 && ring->start.position == kv->log.last_position + 1);
    assert((ring->head == ring->start.offset) == (ring->position == kv->log.last_position));
    assert(kv_log_has_room(kv, ring->head, 0));
}

/* The cut lies behind the newest record. The data hook runs even when no record is new: data whose
 * record is synced may be waited for. */
static void sync_begin(struct kv *kv) {
    struct kv_sync_state *sync = &kv->sync;
    struct ring *ring = &kv->ring;

    (void)kv_seal(kv);
    cut_check(kv);
    sync->wanted = false;
    sync->data_done = false;
    sync->asked = kv->waiters.first != NULL;
    sync->stage = SYNC_DATA;
    sync->cut = (struct ring_start){.offset = ring->head,
                                    .position = ring->position + 1,
                                    .data_start = ring->data_head,
                                    .previous_crc = ring->last_crc};
    sync->walk = ring->start.offset;
    if (kv->options.hooks.data_sync) {
        kv->options.hooks.data_sync(kv->options.hook_context, ring->position);
    } else {
        kv_data_synced(kv, 0);
    }
}

void kv_data_synced(struct kv *kv, int result) {
    assert((kv->sync.stage == SYNC_DATA && !kv->sync.data_done) || kv->failed < 0);
    kv->sync.data_result = result;
    kv->sync.data_done = true;
}

/* Copies whole records into the stage as far as they fit, and submits the batch. False: there is
 * none left before the cut. */
static bool sync_write_batch(struct kv *kv) {
    struct kv_sync_state *sync = &kv->sync;
    size_t limit = (size_t)kv->log.payload_bytes_max;
    uint8_t *payload = disk_log_payload(&kv->log);
    struct disk_log_span span = {.first_position = kv->log.last_position + 1,
                                 .last_position = kv->log.last_position,
                                 .durable_upto = kv->synced,
                                 .last_crc = kv->log.last_crc};

    while (sync->walk < sync->cut.offset) {
        uint64_t next = sync->walk;
        const struct log_record *record =
            ring_walk(&kv->ring, &next, span.last_position + 1, span.last_crc);

        if (!record) {
            /* Our own memory does not hold what we wrote: nothing can be trusted any more. */
            kv_fail(kv, "reading its ring in memory", -ERR_CORRUPT);
            return false;
        }
        size_t padded = record_padded(record->length);
        if (span.payload_bytes + padded > limit) {
            break;
        }
        memcpy(payload + span.payload_bytes, record, record->length);
        memset(payload + span.payload_bytes + record->length, 0, padded - record->length);
        span.payload_bytes += (uint32_t)padded;
        span.last_position++;
        span.last_crc = record->crc;
        sync->walk = next;
    }
    if (span.payload_bytes == 0) {
        assert(sync->walk == sync->cut.offset && span.last_position + 1 == sync->cut.position);
        assert(span.last_crc == sync->cut.previous_crc);
        return false;
    }
    sync->span = span;
    disk_log_prepare(&kv->log, &span);
    kv_log_submit(kv);
    return true;
}

static void sync_records(struct kv *kv) {
    if (sync_write_batch(kv) || kv->failed < 0) {
        return;
    }
    kv->sync.stage = SYNC_FLUSH;
    if (BUG(NO_FLUSH)) {
        sync_finish(kv);
        return;
    }
    kv->log.io = (struct env_io){.kind = ENV_IO_SYNC, .file = kv->log.file};
    kv_log_submit(kv);
}

/* The log's one I/O is done: 1 when there was one, 0 when there is none or it is in flight. */
static bool take_io(struct kv *kv) {
    if (!kv->io_busy || !atomic_load(&kv->io_finished)) {
        return false;
    }
    kv->io_busy = false;
    if (kv->io_result < 0) {
        kv_fail(kv, "writing the log", kv->io_result);
        return false;
    }
    return true;
}

/* The log's file serves checkpoints' superblocks too: their I/O is not ours to take. */
static bool log_is_ours(const struct kv *kv) {
    return kv->checkpoint.stage < CHECKPOINT_SUPERBLOCK;
}

void kv_sync_step(struct kv *kv) {
    struct kv_sync_state *sync = &kv->sync;

    if (kv->failed < 0) {
        return;
    }
    if (sync->stage == SYNC_IDLE && sync->wanted) {
        sync_begin(kv);
    }
    if (sync->stage == SYNC_DATA && sync->data_done) {
        if (sync->data_result < 0) {
            kv_fail(kv, "writing data", sync->data_result);
            return;
        }
        if (log_is_ours(kv) && !kv->io_busy) {
            sync->stage = SYNC_RECORDS;
            sync_records(kv);
        }
    }
    while (kv->failed == 0 && (sync->stage == SYNC_RECORDS || sync->stage == SYNC_FLUSH) &&
           take_io(kv)) {
        if (sync->stage == SYNC_FLUSH) {
            sync_finish(kv);
        } else {
            disk_log_advance(&kv->log, &sync->span);
            sync_records(kv);
        }
    }
    if (kv->failed == 0 && sync->stage == SYNC_IDLE && sync->wanted) {
        kv_wake(kv);
    }
}
