/* A step of a group's engine, and what must hold around it: what is begun and when, what is said,
 * and what is told of how full it is. Time is simulated, so these bounds are exact. */
#include "group_internal.h"
#include "kv/kv_internal.h"

/* What a step finds. */
struct found {
    uint64_t now_ns;
    uint64_t sync_points, checkpoints;
    enum checkpoint_stage checkpoint;
    bool sync_rests;   /* none is under way, nor asked for */
    bool sync_is_due;  /* by the interval, or as ring or data area are half full */
    bool unsynced;     /* something is */
    bool checkpointed; /* there is nothing that a checkpoint would bring to the base */
    bool asked;        /* for a checkpoint */
    bool checkpoint_is_due;
    bool clean; /* no row of an outcome waits to be deleted */
};

static bool is_half_full(const struct kv *kv) {
    return ring_used_bytes(&kv->ring) >= kv->ring.record_bytes / 2 ||
           ring_data_free_bytes(&kv->ring) < kv->ring.data_bytes / 2;
}

static bool is_checkpoint_due(const struct group *group, uint64_t now_ns) {
    const struct kv *kv = group->owner.kv;
    uint64_t interval_ns = kv->options.checkpoint_ns;

    return kv_changes_used_bytes(kv) >= kv->options.changes_bytes_max / 2 ||
           disk_log_used_bytes(&kv->log) >= kv->log.region_bytes / 8 * 3 ||
           (interval_ns > 0 && kv->applied < kv->ring.position &&
            now_ns - group->times.begun_ns >= interval_ns);
}

static struct found look(const struct group *group) {
    const struct kv *kv = group->owner.kv;
    uint64_t now_ns = env_now_ns(kv->env);
    bool is_open = kv->ring.open_bytes > 0;

    return (struct found){
        .now_ns = now_ns,
        .sync_points = kv->counters.sync_points,
        .checkpoints = kv->counters.checkpoints,
        .checkpoint = kv->checkpoint.stage,
        .sync_rests = kv->sync.stage == SYNC_IDLE && !kv->sync.wanted,
        .sync_is_due =
            is_half_full(kv) || now_ns - group->times.rested_ns >= kv->options.sync_interval_ns,
        .unsynced = kv->synced < kv->ring.position || is_open,
        .checkpointed = changes_row_count(kv->changes) == 0 && kv->applied == kv->ring.position &&
                        !is_open && kv->log.tail == kv->log.head,
        .asked = kv->checkpoint.wanted,
        .checkpoint_is_due = is_checkpoint_due(group, now_ns),
        .clean = outcomes_are_clean(kv->outcomes),
    };
}

/* A sync point begins when somebody asks for one, or something is unsynced and it is time; not
 * earlier, and not later. A checkpoint may ask for one. */
static void check_sync(const struct group *group, const struct found *found) {
    const struct kv *kv = group->owner.kv;
    bool begun = kv->sync.stage != SYNC_IDLE || kv->sync.wanted ||
                 kv->counters.sync_points > found->sync_points;
    bool for_checkpoint = found->checkpoint != CHECKPOINT_IDLE ||
                          kv->checkpoint.stage != CHECKPOINT_IDLE ||
                          kv->counters.checkpoints > found->checkpoints;

    if (!found->sync_rests) {
        return;
    }
    MUST(found->unsynced || !begun, "a sync point begins though nothing is unsynced");
    MUST(found->sync_is_due || for_checkpoint || !begun,
         "a sync point begins before its time, at %llu, %llu behind the last",
         (unsigned long long)found->now_ns,
         (unsigned long long)(found->now_ns - group->times.rested_ns));
    MUST(begun || !found->unsynced || !found->sync_is_due,
         "a sync point does not begin, though it is time");
}

static void check_checkpoint(const struct group *group, const struct found *found) {
    const struct kv *kv = group->owner.kv;
    bool begun =
        kv->checkpoint.stage != CHECKPOINT_IDLE || kv->counters.checkpoints > found->checkpoints;
    bool is_time = found->asked || found->checkpoint_is_due;

    if (found->checkpoint != CHECKPOINT_IDLE || kv->stop_stage != STOP_WAIT) {
        return;
    }
    /* What is deleted in the step is a change, and may be what brings memory to its mark. */
    MUST(is_time || !found->clean || !begun,
         "a checkpoint begins that nobody asked for, before its time");
    MUST(!found->checkpointed || !found->clean || !begun,
         "a checkpoint begins that has nothing to do");
    MUST(begun || !is_time || found->checkpointed,
         "a checkpoint does not begin, though it is time");
}

static uint64_t thousandths(uint64_t used, uint64_t all) {
    return all > 0 ? MIN(used * 1000 / all, (uint64_t)UINT16_MAX) : 0;
}

/* What is told of how full it is: as its parts say. */
static void check_levels(const struct group *group, uint64_t now_ns) {
    const struct kv *kv = group->owner.kv;
    const struct ring *ring = &kv->ring;
    uint64_t chunks = changes_pool_bytes(kv->pool) - changes_pool_free_bytes(kv->pool) -
                      changes_spare_bytes(kv->changes);
    uint64_t log = kv->log.head + kv->log.batch_bytes - kv->log.tail;
    uint64_t full_ns =
        kv->checkpoint.no_space ? MAX(now_ns - group->times.full_ns, UINT64_C(1)) : 0;
    struct kv_counters counters;

    kv_counters_get(kv, &counters);
    const struct kv_levels *levels = &counters.levels;
    MUST(levels->ring == thousandths(ring_used_bytes(ring), ring->record_bytes) &&
             levels->data ==
                 thousandths(ring->data_head - ring->start.data_start, ring->data_bytes) &&
             levels->memory == thousandths(chunks, changes_pool_bytes(kv->pool)) &&
             levels->log == thousandths(log, kv->log.region_bytes) &&
             levels->outcomes ==
                 thousandths(outcomes_count(kv->outcomes), kv->options.outcomes_max),
         "the levels are not those of ring, memory, log and outcomes");
    MUST(levels->full_ns == full_ns, "the base is said to be full for %llu ns, it is for %llu",
         (unsigned long long)levels->full_ns, (unsigned long long)full_ns);
}

/* The log takes more to the last byte that its sync points may leave, and no byte beyond. */
static void check_log_room(const struct kv *kv) {
    const struct kv_sync_state *sync = &kv->sync;
    bool idle = sync->stage == SYNC_IDLE;
    uint64_t end = kv->ring.open_bytes > 0 ? ring_end_with(&kv->ring, 0) : kv->ring.head;
    uint64_t cost = disk_log_cost(&kv->log, idle ? 0 : sync->cut.offset - sync->walk,
                                  end - (idle ? kv->ring.start.offset : sync->cut.offset));
    uint64_t left = kv->log.region_bytes - disk_log_used_bytes(&kv->log) - cost;

    MUST(kv_log_has_room(kv, end, left) && !kv_log_has_room(kv, end, left + 1),
         "the log has %llu bytes left, and does not take them, or more", (unsigned long long)left);
}

/* What has ended woke the owner, who need not look for it. */
static void check_woken(const struct group *group) {
    const struct kv *kv = group->owner.kv;
    bool ended = (kv->io_busy && atomic_load(&kv->io_finished)) ||
                 (kv->checkpoint.committing && atomic_load(&kv->checkpoint.commit_finished));

    for (size_t i = 0; kv->warmth.busy_count > 0 && i < ARRAY_SIZE(kv->warmth.jobs); i++) {
        const struct kv_warm *warm = &kv->warmth.jobs[i];

        ended = ended || (warm->busy && atomic_load(&warm->finished));
    }
    MUST(group->due || !ended, "an I/O or a job of the engine's has ended, and wakes nobody");
}

/* A log that has failed has said so once, and answers who waits for it. */
static void check_failed(struct group *group) {
    bool failed = kv_failure(group->owner.kv) < 0;

    MUST(group->lines_failed == failed, "%u lines say that the log has failed, it has %s",
         group->lines_failed, failed ? "" : "not");
    if (!failed) {
        return;
    }
    group_sync_want(&group->owner);
    for (size_t i = 0; i < GROUP_WAITS_MAX; i++) {
        MUST(!group->waits[i].busy, "somebody waits for a log that has failed");
    }
}

void group_step_note(struct group *group) {
    const struct kv *kv = group->owner.kv;
    struct group_times *times = &group->times;
    uint64_t now_ns = env_now_ns(kv->env);

    if (kv->counters.sync_points > times->sync_points) {
        times->rested_ns = now_ns;
    }
    if (kv->counters.checkpoints_begun > times->begun) {
        times->begun_ns = now_ns;
    }
    if (kv->checkpoint.no_space && !times->full) {
        times->full_ns = now_ns;
    }
    times->sync_points = kv->counters.sync_points;
    times->begun = kv->counters.checkpoints_begun;
    times->full = kv->checkpoint.no_space;
    MUST(group->lines_full - group->lines_room == times->full,
         "%u lines say that the base is full, %u that it has room", group->lines_full,
         group->lines_room);
}

void group_step_begin(struct group *group) {
    uint64_t now_ns = env_now_ns(group->options.env);

    group->times = (struct group_times){.rested_ns = now_ns, .begun_ns = now_ns};
    group_step_note(group);
}

void group_step(struct group *group) {
    const struct kv *kv = group->owner.kv;

    check_woken(group);
    struct found found = look(group);
    group->due = false;
    kv_step(group->owner.kv);
    check_failed(group);
    if (kv_failure(kv) < 0) {
        return;
    }
    check_sync(group, &found);
    check_checkpoint(group, &found);
    group_step_note(group);
    if (!kv->stopping || kv->stop_done) {
        check_levels(group, found.now_ns);
        check_log_room(kv);
    }
}
