/* A walk over everything that the engine holds, for tests: what always is so between two steps. */
#include "kv/kv_internal.h"
#include <stdio.h>

static const char *ring_check(const struct kv *kv) {
    const struct ring *ring = &kv->ring;
    uint64_t offset = ring->start.offset;
    uint64_t position = ring->start.position;
    uint32_t crc = ring->start.previous_crc;
    struct ring_newest newest;
    const struct log_record *record;

    if (memcmp(ring->header->log_id, kv->log.superblock.log_id, LOG_ID_BYTES) != 0 ||
        memcmp(ring->header->owner_id, kv->options.owner_id, LOG_OWNER_BYTES) != 0) {
        return "the ring does not bear the ids of its log";
    }
    while (position <= ring->position) {
        record = ring_walk(ring, &offset, position, crc);
        if (!record) {
            return "a record of the ring is not whole";
        }
        if (record->operation_count == 0) {
            return "a record of the ring has no operation";
        }
        crc = record->crc;
        position++;
    }
    if (offset != ring->head || crc != ring->last_crc) {
        return "the ring's head is not the end of its newest record";
    }
    if (ring_newest(ring, &newest) && ring->position >= ring->start.position &&
        (newest.position != ring->position || newest.end != ring->head)) {
        return "the ring does not say which record is its newest";
    }
    return (ring->open_bytes == 0) == (ring->open_operations == 0) ? NULL
                                                                   : "a record is open and empty";
}

static const char *log_check(const struct kv *kv) {
    const struct disk_log *log = &kv->log;
    uint64_t end = ring_end_with(&kv->ring, 0);

    if (kv->synced > log->last_position || log->last_position > kv->ring.position) {
        return "the disk log is ahead of the ring, or behind what is synced";
    }
    if (kv->ring.start.position > kv->synced + 1) {
        return "the ring begins behind what is synced";
    }
    if (kv->applied > kv->synced) {
        return "the base holds what is not synced";
    }
    if (disk_log_used_bytes(log) > log->region_bytes) {
        return "the disk log is longer than its file";
    }
    if (log->tail > log->superblock.tail_offset ||
        (log->tail < log->superblock.tail_offset &&
         kv->checkpoint.stage != CHECKPOINT_SUPERBLOCK_FLUSH)) {
        return "the disk log's tail is not where its superblock says";
    }
    if (kv->waiters.first && !kv->sync.wanted && kv->sync.stage == SYNC_IDLE) {
        return "somebody waits for a sync point that nobody begins";
    }
    return kv_log_has_room(kv, kv->ring.open_bytes > 0 ? end : kv->ring.head, 0)
               ? NULL
               : "the disk log has no room for what the ring holds";
}

static const char *memory_check(const struct kv *kv) {
    const struct changes *const generations[] = {kv->changes, kv->frozen};
    const char *wrong = changes_check(kv->pool, generations, ARRAY_SIZE(generations));

    if (wrong) {
        return wrong;
    }
    if (kv->frozen && changes_spare_bytes(kv->frozen) > 0) {
        return "what is frozen keeps chunks that it does not need";
    }
    if (!kv_changes_have_room(kv, 0, 0, 0)) {
        return "there is no room for the next checkpoint's own rows";
    }
    return kv->frozen == NULL && (kv->checkpoint.stage == CHECKPOINT_SYNC ||
                                  kv->checkpoint.stage == CHECKPOINT_COMMIT)
               ? "a checkpoint is under way without its rows"
               : NULL;
}

bool kv_check(const struct kv *kv, char ret_problem[256]) {
    bool stopped = kv->stopping && !kv->stop_done; /* its region is gone */
    const char *wrong = NULL;

    if (kv->failed == 0 && !stopped) {
        wrong = ring_check(kv);
        wrong = wrong ? wrong : log_check(kv);
        wrong = wrong ? wrong : memory_check(kv);
        wrong = wrong ? wrong : outcomes_check(kv->outcomes);
    }
    (void)snprintf(ret_problem, 256, "%s", wrong ? wrong : "");
    return wrong == NULL;
}
