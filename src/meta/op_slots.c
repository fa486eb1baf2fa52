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
    call->bulk_in.size = count * sizeof *given;
    if (count > 0) {
        memcpy(call->bulk_in.data, given, call->bulk_in.size);
    }
    transaction->after_sync = !BUG(EARLY_GIVE);
    return again ? 0 : ranges_stage(transaction, ranges, count);
}

/* The request's bulk comes over a network. */
static int told_read(const struct call *call, struct slot_range *ret_ranges,
                     struct bytes *ret_loads) {
    const struct group_tell_request *request = &call->request.group_tell;
    struct bytes bulk = call->bulk_out_count > 0 ? call->bulk_out[0] : (struct bytes){NULL, 0};
    struct wire_slots told;

    if (call->bulk_out_count > 1 || request->slots > SLOTS_TOLD_MAX ||
        request->loads > MAP_GROUPS_MAX ||
        bulk.size != request->slots * sizeof told + request->loads * sizeof(struct wire_load)) {
        return -ERR_MALFORMED;
    }
    for (uint32_t i = 0; i < request->slots; i++) {
        memcpy(&told, bulk.data + i * sizeof told, sizeof told);
        if (told.count == 0 || told.count > SLOT_COUNT || told.first > SLOT_COUNT - told.count) {
            return -ERR_MALFORMED;
        }
        ret_ranges[i] = (struct slot_range){
            .first = told.first, .count = told.count, .handover = told.handover};
    }
    *ret_loads = bulk;
    if (request->slots > 0) {
        ret_loads->data += request->slots * sizeof told;
        ret_loads->size -= request->slots * sizeof told;
    }
    return 0;
}

static void loads_take(struct group *group, struct bytes loads) {
    struct wire_load load;

    for (size_t at = 0; at < loads.size; at += sizeof load) {
        memcpy(&load, loads.data + at, sizeof load);
        for (uint32_t i = 0; i < group->map->group_count; i++) {
            if (group->map->groups[i].log.value == load.log) {
                group->inode_counts[i] = load.inode_count;
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
    struct bytes loads;
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
    loads_take(group, loads);
    transaction->after_sync = count > 0;
    transaction->sync_position = group->slots.open_position;
    reply->inode_count = group->numbers.inode_count;
    reply->unopened = slots_unopened(&group->slots) + unopened_of(&group->slots, missing, count);
    reply->more = more;
    return 0;
}
