/* The contract and the idea are in slots.h. */
#include "meta/slots.h"
#include "layout/cluster_map.h"
#include "meta/rows.h"
#include <assert.h>

struct slots_row slots_row_first(uint32_t count) {
    return (struct slots_row){.format = META_FORMAT,
                              .state = SLOTS_MINE,
                              .count = count,
                              .opened = MIN(count, (uint32_t)SLOTS_OPEN_MIN)};
}

int slots_load(struct slots *slots, uint32_t first, const struct slots_row *row) {
    const struct slot_range *before =
        slots->range_count > 0 ? &slots->ranges[slots->range_count - 1] : NULL;

    if (slots->range_count == SLOT_RANGES_MAX || first + row->count > SLOT_COUNT ||
        (before && first < before->first + before->count)) {
        return -ERR_CORRUPT;
    }
    slots->ranges[slots->range_count++] = (struct slot_range){.first = first,
                                                              .count = row->count,
                                                              .opened = row->opened,
                                                              .opening = row->opened,
                                                              .mine = row->state == SLOTS_MINE,
                                                              .handover = row->handover,
                                                              .given_to = {row->given_to}};
    slots->opened += row->state == SLOTS_MINE ? row->opened : 0;
    return 0;
}

struct slot slots_draw(const struct slots *slots, uint64_t random) {
    assert(slots->opened > 0);
    uint32_t index = (uint32_t)(random % slots->opened);

    for (const struct slot_range *range = slots->ranges;; range++) {
        assert(range < slots->ranges + slots->range_count);
        if (range->mine && index < range->opened) {
            return (struct slot){(uint16_t)(range->first + index)};
        }
        index -= range->mine ? range->opened : 0;
    }
}

/* NULL: in none. */
static const struct slot_range *range_of(const struct slots *slots, struct slot slot) {
    uint32_t low = 0;
    uint32_t high = slots->range_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct slot_range *range = &slots->ranges[middle];

        if (slot.value < range->first) {
            high = middle;
        } else if (slot.value - range->first >= range->count) {
            low = middle + 1;
        } else {
            return range;
        }
    }
    return NULL;
}

int slots_check(const struct slots *slots, struct slot slot) {
    const struct slot_range *range = range_of(slots, slot);

    return range && range->mine ? 0 : -ERR_STALE_MAP;
}

bool slots_is_opened(const struct slots *slots, struct slot slot) {
    const struct slot_range *range = range_of(slots, slot);

    return range && range->mine && slot.value - range->first < range->opened;
}

void slots_stage(struct slots *slots, struct kv *kv, uint64_t directory_count) {
    enum { SLOTS_RECORD_BYTES = 100 };
    static const struct kv_need need = {
        .rows = 1, .value_bytes = SLOTS_RECORD_BYTES, .record_bytes = SLOTS_RECORD_BYTES};
    struct slot_range *range = slots->ranges;
    const struct slot_range *end = range + slots->range_count;
    struct kv_grant grant;

    if (slots->open_position != 0 ||
        directory_count <= (uint64_t)slots->opened * SLOT_DIRECTORIES) {
        return;
    }
    while (range < end && (!range->mine || range->opened == range->count)) {
        range++;
    }
    if (range == end || kv_admit(kv, KV_CLASS_CONTROL, &need, &grant) < 0) {
        return;
    }
    assert(range->opening == range->opened);
    const struct slots_row row = {.format = META_FORMAT,
                                  .state = SLOTS_MINE,
                                  .count = range->count,
                                  .opened = range->opened + 1,
                                  .handover = range->handover};
    struct kv_key key = key_owner(ROW_SLOTS, range->first, 0, 0);
    kv_begin(kv, &grant);
    if (kv_put(kv, &key, (struct bytes){(const uint8_t *)&row, sizeof row}) < 0) {
        kv_abort(kv);
        return;
    }
    range->opening = row.opened;
    slots->open_position = kv_commit(kv);
}

void slots_synced(struct slots *slots, uint64_t synced) {
    if (slots->open_position == 0 || synced < slots->open_position) {
        return;
    }
    slots->open_position = 0;
    for (uint32_t i = 0; i < slots->range_count; i++) {
        struct slot_range *range = &slots->ranges[i];

        assert(range->opening >= range->opened && range->opening <= range->count);
        slots->opened += range->opening - range->opened;
        range->opened = range->opening;
    }
}
