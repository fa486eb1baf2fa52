/* What the manager asks of a group about its slots: slots_give, and group_tell. See
 * docs/internals/handover.md. */
#include "base/bug.h"
#include "meta/group_internal.h"
#include "meta/operations.h"
#include <string.h>

enum { SLOTS_TOLD_MAX = SLOT_RANGES_MAX };

/* Rows of the ranges, which take effect when the transaction is committed. */
static int ranges_stage(struct transaction *transaction, const struct slot_range *ranges,
                        uint32_t count) {
    struct slots *slots = &transaction->group->slots;
    struct slot_range rows[3];
    int r = 0;

    for (uint32_t i = 0; i < count && r == 0; i++) {
        uint32_t row_count = slots_rows(slots, &ranges[i], rows);

        for (uint32_t k = 0; k < row_count && r == 0; k++) {
            struct slots_row row = slots_row_of(&rows[k]);
            struct kv_key key = key_owner(ROW_SLOTS, rows[k].first, 0, 0);

            r = transaction_put(transaction, &key, &row, sizeof row);
        }
        slots->moved[i] = ranges[i];
    }
    slots->moved_count = count;
    if (r == 0 && count > 0) {
        transaction_effect(transaction, (struct effect){.kind = EFFECT_SLOTS});
    }
    return r;
}

/* Asked twice under one number it answers the same: its rows say what was given. */
int op_slots_give(struct transaction *transaction, struct call *call) {
    const struct slots_give_request *request = &call->request.slots_give;
    const struct group *group = transaction->group;
    struct slot_range ranges[SLOTS_MOVED_MAX];
    struct wire_slots given[SLOTS_MOVED_MAX];
    bool again;

    if (request->handover == 0 || request->to == 0 || request->to == kv_log_id(group->kv).value ||
        call->bulk_in.capacity < sizeof given) {
        return -ERR_INVALID;
    }
    uint32_t count = slots_choose(&group->slots, request->handover, request->count, &again, ranges);
    for (uint32_t i = 0; i < count; i++) {
        ranges[i].given_to.value = request->to;
        given[i] = (struct wire_slots){ranges[i].first, ranges[i].count, request->handover};
    }
    call->reply.slots_give.row_bytes = sizeof *given;
    call->bulk_in.size = count * sizeof *given;
    if (count > 0) {
        memcpy(call->bulk_in.data, given, call->bulk_in.size);
    }
    transaction->after_sync = !BUG(EARLY_GIVE);
    return again ? 0 : ranges_stage(transaction, ranges, count);
}

/* The slots that the request's bulk begins with, and the loads behind them. */
static int told_split(const struct call *call, struct wire_rows *ret_slots,
                      struct wire_rows *ret_loads) {
    const struct group_tell_request *request = &call->request.group_tell;
    struct bytes bulk = call->bulk_out_count > 0 ? call->bulk_out[0] : (struct bytes){NULL, 0};
    struct wire_rows slots = {.row_bytes = request->slots_row_bytes,
                              .row_bytes_min = WIRE_SLOTS_BYTES_MIN,
                              .count_max = SLOTS_TOLD_MAX};
    struct wire_rows loads = {.row_bytes = request->loads_row_bytes,
                              .row_bytes_min = WIRE_LOAD_BYTES_MIN,
                              .count_max = MAP_GROUPS_MAX};
    size_t slots_bytes = (size_t)request->slots * wire_rows_each(&slots);

    if (call->bulk_out_count > 1 || slots_bytes > bulk.size) {
        return -ERR_MALFORMED;
    }
    slots.bytes = (struct bytes){bulk.data, slots_bytes};
    loads.bytes =
        slots_bytes == 0 ? bulk : (struct bytes){bulk.data + slots_bytes, bulk.size - slots_bytes};
    if (wire_rows_check(&slots) < 0 || wire_rows_check(&loads) < 0 ||
        wire_rows_count(&loads) != request->loads) {
        return -ERR_MALFORMED;
    }
    *ret_slots = slots;
    *ret_loads = loads;
    return 0;
}

/* The request's bulk comes over a network. */
static int told_read(const struct call *call, struct slot_range *ret_ranges,
                     struct wire_rows *ret_loads) {
    struct wire_rows slots;
    struct wire_slots told;

    int r = told_split(call, &slots, ret_loads);
    if (r < 0) {
        return r;
    }
    for (uint32_t i = 0; i < wire_rows_count(&slots); i++) {
        wire_rows_get(&slots, i, &told, sizeof told);
        if (told.count == 0 || told.count > SLOT_COUNT || told.first > SLOT_COUNT - told.count) {
            return -ERR_MALFORMED;
        }
        ret_ranges[i] = (struct slot_range){
            .first = told.first, .count = told.count, .handover = told.handover};
    }
    return 0;
}

static void loads_take(struct group *group, const struct wire_rows *loads) {
    struct wire_load load;

    for (uint32_t at = 0; at < wire_rows_count(loads); at++) {
        wire_rows_get(loads, at, &load, sizeof load);
        for (uint32_t i = 0; i < group->map->group_count; i++) {
            if (group->map->groups[i].log.value == load.log) {
                group->inode_counts[i] = load.inode_count;
                group->room.group_is_full[i] = load.is_full != 0;
            }
        }
    }
}

/* The first ones of those that it has not are opened, where it has opened few so far. */
static void ranges_open(const struct slots *slots, struct slot_range *ranges, uint32_t count) {
    uint32_t opened = slots_opening(slots);

    for (uint32_t i = 0; i < count && opened < SLOTS_OPEN_MIN; i++) {
        ranges[i].opening = MIN(SLOTS_OPEN_MIN - opened, ranges[i].count);
        opened += ranges[i].opening;
    }
}

/* Of what the transaction takes. */
static uint32_t unopened_of(const struct slots *slots, const struct slot_range *ranges,
                            uint32_t count) {
    uint32_t sum = 0;

    for (uint32_t i = 0; i < count; i++) {
        bool known = slots_check(slots, (struct slot){(uint16_t)ranges[i].first}) == 0;

        sum += known ? 0 : ranges[i].count - ranges[i].opening;
    }
    return sum;
}

int op_group_tell(struct transaction *transaction, struct call *call) {
    struct group *group = transaction->group;
    struct group_tell_reply *reply = &call->reply.group_tell;
    struct slot_range missing[SLOTS_MOVED_MAX];
    struct wire_rows loads;
    bool more;

    int r = told_read(call, group->slots.told, &loads);
    if (r < 0) {
        return r;
    }
    uint32_t count = slots_missing(&group->slots, group->slots.told, call->request.group_tell.slots,
                                   &more, missing);
    if (count == 0 && more) {
        return -ERR_NO_SPACE; /* There is no place for more ranges. */
    }
    ranges_open(&group->slots, missing, count);
    r = ranges_stage(transaction, missing, count);
    if (r < 0) {
        return r;
    }
    loads_take(group, &loads);
    transaction->after_sync = count > 0;
    transaction->sync_position = group->slots.open_position;
    reply->inode_count = group->numbers.inode_count;
    reply->unopened = slots_unopened(&group->slots) + unopened_of(&group->slots, missing, count);
    reply->more = more;
    reply->is_full = group->room.is_full;
    return 0;
}
