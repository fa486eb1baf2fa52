/* The account: what is free, what is promised, and who may have the rest.
 *
 *     ring      start ....... end of what is open | what is asked for, behind a filler |  kept
 *     data      likewise, with what is skipped before the area's end
 *     changes   used | rows asked for, with all splits | a row for each outcome and floor that is
 *               not stored | the next generation's first chunk | kept
 * log       used | the running sync point's rest | all else in the ring, with what is asked for,
 *               as one more sync point | kept
 *
 * So a sync point of what was admitted always fits, a freeze has always room, and a checkpoint that
 * needs both always ends: whoever is refused waits for one of them. What is kept depends on the
 * class; log.md has the sum. */
#include "kv/kv_internal.h"
#include "base/bug.h"
#include <assert.h>

/* What is left for others: of ring and data area in eighths, of the memory for changes in
 * sixteenths, of the log in quarters of the ring's size. */
static const struct kept {
    uint8_t ring_eighths;
    uint8_t changes_sixteenths;
    uint8_t log_ring_quarters;
} kept_by_class[KV_CLASS_COUNT] = {
    [KV_CLASS_CONTROL] = {0, 0, 4},    [KV_CLASS_RELEASE] = {1, 2, 6},
    [KV_CLASS_BACKGROUND] = {0, 1, 6}, [KV_CLASS_FREEING] = {2, 3, 7},
    [KV_CLASS_REQUEST] = {2, 4, 8},
};

bool kv_log_has_room(const struct kv *kv, uint64_t ring_end, uint64_t more_bytes) {
    const struct kv_sync_state *sync = &kv->sync;
    uint64_t from = kv->ring.start.offset;
    uint64_t rest = 0;

    if (sync->stage != SYNC_IDLE) {
        from = sync->cut.offset;
        rest = sync->cut.offset - sync->walk;
    }
    assert(ring_end >= from);
    uint64_t used = disk_log_used_bytes(&kv->log) + more_bytes;
    uint64_t next = ring_end - from;
    /* Far from full, as it mostly is, a bound that needs no division will do. */
    uint64_t bound = 2 * (rest + next) + 4 * kv->log.stage_bytes;

    return used + bound <= kv->log.region_bytes ||
           used + disk_log_cost(&kv->log, rest, next) <= kv->log.region_bytes;
}

static uint16_t thousandths(uint64_t used, uint64_t all) {
    /* A table of outcomes may have been made smaller than what is kept of an earlier life. */
    return (uint16_t)(all > 0 ? MIN(used * 1000 / all, (uint64_t)UINT16_MAX) : 0);
}

struct kv_levels kv_levels_of(const struct kv *kv) {
    const struct ring *ring = &kv->ring;
    uint64_t data_used = ring->data_bytes - ring_data_free_bytes(ring);
    uint64_t now_ns = env_now_ns(kv->env);

    return (struct kv_levels){
        .ring = thousandths(ring_used_bytes(ring), ring->record_bytes),
        .data = thousandths(data_used, ring->data_bytes),
        .memory = thousandths(kv_changes_used_bytes(kv), changes_pool_bytes(kv->pool)),
        .log = thousandths(disk_log_used_bytes(&kv->log), kv->log.region_bytes),
        .outcomes = thousandths(outcomes_count(kv->outcomes), kv->options.outcomes_max),
        .full_ns =
            kv->checkpoint.no_space ? MAX(now_ns - kv->checkpoint.no_space_ns, UINT64_C(1)) : 0};
}

/* Rows that a freeze adds: of outcomes and floors, and that of the applied position. */
static size_t own_rows(const struct kv *kv) {
    return BUG(FREEZE_ROOM) ? 0 : outcomes_unstored_rows(kv->outcomes) + 1;
}

static size_t own_value_bytes(const struct kv *kv) {
    return BUG(FREEZE_ROOM) ? 0
                            : outcomes_unstored_rows(kv->outcomes) * sizeof(struct log_outcome) +
                                  outcomes_unstored_bytes(kv->outcomes) + KV_APPLIED_BYTES;
}

static size_t changes_cost_with_own(const struct kv *kv, size_t rows, size_t value_bytes) {
    return changes_cost(kv->changes, rows + own_rows(kv), value_bytes + own_value_bytes(kv));
}

static bool changes_take(const struct kv *kv, size_t cost_bytes, size_t keep_bytes) {
    size_t room = changes_room(kv->changes, kv->frozen || BUG(FREEZE_ROOM) ? 0 : 1);

    return cost_bytes + keep_bytes <= room;
}

bool kv_changes_have_room(const struct kv *kv, size_t rows, size_t value_bytes, size_t keep_bytes) {
    return changes_take(kv, changes_cost_with_own(kv, rows, value_bytes), keep_bytes);
}

void kv_changes_set_aside(struct kv *kv, size_t rows, size_t value_bytes) {
    int r = changes_reserve(kv->changes, changes_cost_with_own(kv, rows, value_bytes));

    assert(r == 0);
    (void)r;
}

size_t kv_changes_used_bytes(const struct kv *kv) {
    return changes_pool_used_bytes(kv->pool) - changes_spare_bytes(kv->changes);
}

/* With an outcome come its row, that of its floor, and a deleted one whose place it takes. */
static size_t rows_of(const struct kv_need *need) {
    return need->rows + (need->session.value != 0 ? 3 : 0);
}

static size_t value_bytes_of(const struct kv_need *need) {
    return need->value_bytes + (need->session.value != 0 ? 2 * (size_t)KV_OUTCOME_VALUE_BYTES : 0);
}

static size_t record_bytes_of(const struct kv_need *need) {
    size_t outcome = need->session.value == 0 ? 0
                     : need->drops            ? record_drop_bytes()
                                              : record_outcome_bytes(KV_REPLY_BYTES_MAX);

    return need->record_bytes + outcome;
}

static bool ring_has_room(const struct kv *kv, const struct kept *kept, uint64_t end) {
    size_t total = kv->ring.record_bytes;

    return end - kv->ring.start.offset <= total - total / 8 * kept->ring_eighths;
}

static bool data_has_room(const struct kv *kv, const struct kept *kept,
                          const struct kv_need *need) {
    size_t keep = kv->ring.data_bytes / 8 * kept->ring_eighths;

    return need->data_bytes == 0 ||
           ring_data_cost(&kv->ring, need->data_bytes) + keep <= ring_data_free_bytes(&kv->ring);
}

static bool changes_have_room(const struct kv *kv, const struct kept *kept, size_t cost_bytes) {
    return changes_take(kv, cost_bytes,
                        changes_pool_room(kv->pool) / 16 * kept->changes_sixteenths);
}

static bool log_has_room(const struct kv *kv, const struct kept *kept, uint64_t end) {
    return kv_log_has_room(kv, end, (uint64_t)kv->ring.record_bytes / 4 * kept->log_ring_quarters);
}

/* With all of data area and memory free. */
static bool can_ever_fit(const struct kv *kv, const struct kept *kept, const struct kv_need *need) {
    size_t memory = changes_cost_of_new(rows_of(need) + 1, value_bytes_of(need) + KV_APPLIED_BYTES);
    size_t room = changes_pool_room(kv->pool) / 16 * (16 - kept->changes_sixteenths);
    size_t data = kv->ring.data_bytes / 8 * (8 - kept->ring_eighths);

    return memory + changes_pool_chunk_room(kv->pool) <= room &&
           2 * (size_t)need->data_bytes <= data;
}

/* 0, or who is to make room. */
static int ask(struct kv *kv, enum kv_class message_class, const struct kv_need *need,
               size_t memory_bytes) {
    const struct kept *kept = &kept_by_class[message_class];
    bool keeps = need->session.value != 0 && !need->drops && !need->floors;
    bool asks_log = !BUG(FULL_LOG) || message_class >= KV_CLASS_BACKGROUND;
    int r = keeps ? outcomes_admit(kv->outcomes, need->session, need->floor, need->window) : 0;

    if (r < 0) {
        return r;
    }
    uint64_t end = ring_end_with(&kv->ring, record_bytes_of(need));
    if (ring_has_room(kv, kept, end) && data_has_room(kv, kept, need)) {
        if (changes_have_room(kv, kept, memory_bytes) &&
            (!asks_log || log_has_room(kv, kept, end))) {
            return 0;
        }
        kv_checkpoint_want(kv);
        r = kv->checkpoint.no_space ? -ERR_NO_SPACE : -ERR_PENDING;
    } else {
        kv_sync_want(kv);
        r = -ERR_PENDING;
    }
    return can_ever_fit(kv, kept, need) ? r : -ERR_INVALID;
}

/* After a failure all is granted: the operation itself gets the error. */
int kv_admit(struct kv *kv, enum kv_class message_class, const struct kv_need *need,
             struct kv_grant *ret_grant) {
    bool fits = record_bytes_of(need) <= kv->ring.record_bytes_max - sizeof(struct log_record);
    bool counted = kv->failed == 0 && (!BUG(UNASKED) || message_class != KV_CLASS_CONTROL);
    size_t memory_bytes = changes_cost_with_own(kv, rows_of(need), value_bytes_of(need));
    int r = !fits ? -ERR_INVALID : counted ? ask(kv, message_class, need, memory_bytes) : 0;

    assert(!kv->transaction.open);
    if (r == 0) {
        *ret_grant = (struct kv_grant){
            .need = *need, .memory_bytes = memory_bytes, .number = ++kv->grant_number};
    } else {
        kv->counters.stalls++;
        kv->counters.outcomes_refused += r == -ERR_BUSY;
    }
    return r;
}

bool kv_must_seal(const struct kv *kv, const struct kv_need *need) {
    return ring_must_seal(&kv->ring, record_bytes_of(need));
}

/* Sets aside what was granted. */
void kv_begin(struct kv *kv, const struct kv_grant *grant) {
    assert(!kv->transaction.open && grant->number == kv->grant_number);
    if (kv->failed == 0) {
        if (kv_must_seal(kv, &grant->need)) {
            kv_seal_open(kv);
        }
        int r = changes_reserve(kv->changes, grant->memory_bytes);

        assert(r == 0);
        (void)r;
    }
    kv->transaction = (struct kv_transaction){
        .open = true,
        .grant = *grant,
        .record_bytes = kv->ring.open_bytes,
        .record_operations = kv->ring.open_operations,
        .data_head = kv->ring.data_head,
        .data_end_max = kv->ring.data_head + ring_data_cost(&kv->ring, grant->need.data_bytes),
    };
}
