/* The contract and the idea are in slots.h. */
#include "meta/slots.h"
#include "layout/cluster_map.h"
#include "meta/rows.h"
#include <assert.h>
#include <string.h>

struct slots_row slots_row_first(uint32_t count) {
    return (struct slots_row){.format = META_FORMAT,
                              .state = SLOTS_MINE,
                              .count = count,
                              .opened = MIN(count, (uint32_t)SLOTS_OPEN_MIN)};
}

int slots_load(struct slots *slots, uint64_t place, const struct slots_row *row) {
    uint32_t first = (uint32_t)place;
    const struct slot_range *before =
        slots->range_count > 0 ? &slots->ranges[slots->range_count - 1] : NULL;

    if (slots->range_count == SLOT_RANGES_MAX || place > SLOT_COUNT - row->count ||
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

int64_t slots_handover(const struct slots *slots, struct slot slot) {
    const struct slot_range *range = range_of(slots, slot);

    return range ? (int64_t)range->handover : -1;
}

bool slots_is_opened(const struct slots *slots, struct slot slot) {
    const struct slot_range *range = range_of(slots, slot);

    return range && range->mine && slot.value - range->first < range->opened;
}

struct slots_row slots_row_of(const struct slot_range *range) {
    return (struct slots_row){.format = META_FORMAT,
                              .state = range->mine ? SLOTS_MINE : SLOTS_GIVEN,
                              .count = range->count,
                              .opened = range->opening,
                              .handover = range->handover,
                              .given_to = range->given_to.value};
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
    struct slots_row row = slots_row_of(range);
    row.opened++;
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

uint32_t slots_opening(const struct slots *slots) {
    uint32_t count = 0;

    for (uint32_t i = 0; i < slots->range_count; i++) {
        count += slots->ranges[i].mine ? slots->ranges[i].opening : 0;
    }
    return count;
}

uint32_t slots_mine(const struct slots *slots) {
    uint32_t count = 0;

    for (uint32_t i = 0; i < slots->range_count; i++) {
        count += slots->ranges[i].mine ? slots->ranges[i].count : 0;
    }
    return count;
}

uint32_t slots_unopened(const struct slots *slots) {
    uint32_t count = 0;

    for (uint32_t i = 0; i < slots->range_count; i++) {
        const struct slot_range *range = &slots->ranges[i];

        count += range->mine ? range->count - range->opening : 0;
    }
    return count;
}

static uint32_t given_by(const struct slots *slots, uint64_t handover,
                         struct slot_range ret_ranges[SLOTS_MOVED_MAX]) {
    uint32_t found = 0;

    for (uint32_t i = 0; i < slots->range_count && found < SLOTS_MOVED_MAX; i++) {
        if (!slots->ranges[i].mine && slots->ranges[i].handover == handover) {
            ret_ranges[found++] = slots->ranges[i];
        }
    }
    return found;
}

/* Nothing is given by a number that others came after, or that has given already. */
static bool is_outdated(const struct slots *slots, uint64_t handover) {
    uint64_t highest = 0;

    for (uint32_t i = 0; i < slots->range_count; i++) {
        highest = MAX(highest, slots->ranges[i].handover);
    }
    return handover <= highest;
}

uint32_t slots_choose(const struct slots *slots, uint64_t handover, uint32_t count, bool *ret_given,
                      struct slot_range ret_ranges[SLOTS_MOVED_MAX]) {
    uint32_t found = given_by(slots, handover, ret_ranges);

    *ret_given = found > 0;
    if (is_outdated(slots, handover)) {
        return found;
    }
    for (uint32_t i = slots->range_count; i-- > 0 && count > 0;) {
        const struct slot_range *range = &slots->ranges[i];
        uint32_t part = range->mine ? MIN(range->count - range->opening, count) : 0;

        /* Each may become two. */
        if (found == SLOTS_MOVED_MAX || slots->range_count + found == SLOT_RANGES_MAX) {
            break;
        }
        if (part > 0) {
            ret_ranges[found++] = (struct slot_range){
                .first = range->first + range->count - part, .count = part, .handover = handover};
            count -= part;
        }
    }
    return found;
}

/* The place of the first range that does not end before the slot. */
static uint32_t place_of(const struct slots *slots, uint32_t slot) {
    uint32_t low = 0;
    uint32_t high = slots->range_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (slots->ranges[middle].first + slots->ranges[middle].count <= slot) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

uint32_t slots_missing(const struct slots *slots, const struct slot_range *wanted,
                       uint32_t wanted_count, bool *ret_more,
                       struct slot_range ret_ranges[SLOTS_MOVED_MAX]) {
    uint32_t found = 0;

    *ret_more = false;
    for (uint32_t i = 0; i < wanted_count && !*ret_more; i++) {
        uint32_t end = wanted[i].first + wanted[i].count;
        uint32_t at = wanted[i].first;

        while (at < end && !*ret_more) {
            uint32_t place = place_of(slots, at);
            const struct slot_range *range =
                place < slots->range_count ? &slots->ranges[place] : NULL;
            bool inside = range && range->first <= at;
            uint32_t next = inside  ? range->first + range->count
                            : range ? range->first
                                    : (uint32_t)SLOT_COUNT;

            next = MIN(next, end);
            if (!inside || range->handover < wanted[i].handover) {
                /* Each may add two: the range that it is part of has a rest at either end. */
                *ret_more = found == SLOTS_MOVED_MAX ||
                            slots->range_count + 2 * (found + 1) > SLOT_RANGES_MAX;
                if (!*ret_more) {
                    ret_ranges[found++] = (struct slot_range){.first = at,
                                                              .count = next - at,
                                                              .mine = true,
                                                              .handover = wanted[i].handover};
                }
            }
            at = next;
        }
    }
    return found;
}

uint32_t slots_rows(const struct slots *slots, const struct slot_range *range,
                    struct slot_range ret_rows[3]) {
    const struct slot_range *whole = range_of(slots, (struct slot){(uint16_t)range->first});
    uint32_t count = 0;

    if (!whole) {
        ret_rows[0] = *range;
        return 1;
    }
    uint32_t before = range->first - whole->first;
    uint32_t behind = whole->count - before - range->count;
    uint32_t opened = whole->opening;

    assert(behind < whole->count && (range->mine || opened <= before));
    if (before > 0) {
        ret_rows[count] = *whole;
        ret_rows[count].count = before;
        ret_rows[count++].opening = MIN(opened, before);
    }
    ret_rows[count] = *range;
    /* What is this group's already stays opened. */
    if (whole->mine && range->mine) {
        ret_rows[count].opening =
            MAX(range->opening, MIN(opened - MIN(opened, before), range->count));
    }
    count++;
    if (behind > 0) {
        ret_rows[count] = *whole;
        ret_rows[count].first = range->first + range->count;
        ret_rows[count].count = behind;
        ret_rows[count++].opening = opened - MIN(opened, before + range->count);
    }
    return count;
}

void slots_change(struct slots *slots, const struct slot_range *range, uint64_t position) {
    struct slot_range rows[3];
    uint32_t count = slots_rows(slots, range, rows);
    uint32_t place = place_of(slots, range->first);
    const struct slot_range *whole = range_of(slots, (struct slot){(uint16_t)range->first});
    uint32_t opened = whole && whole->mine ? whole->opened : 0;
    uint32_t first = whole ? whole->first : range->first;
    uint32_t replaced = whole ? 1 : 0;

    assert(slots->range_count + count - replaced <= SLOT_RANGES_MAX);
    memmove(slots->ranges + place + count, slots->ranges + place + replaced,
            (slots->range_count - place - replaced) * sizeof *slots->ranges);
    for (uint32_t i = 0; i < count; i++) {
        /* Those that were opened on disk lie together at the beginning. */
        uint32_t passed = rows[i].first - first;

        rows[i].opened = rows[i].mine ? MIN(opened - MIN(opened, passed), rows[i].count) : 0;
        slots->ranges[place + i] = rows[i];
    }
    slots->range_count += count - replaced;
    slots->open_position = MAX(slots->open_position, position);
}
