/* The metadata target's side of waits.h. */
#include "waits.h"
#include "meta/group_internal.h"
#include <assert.h>
#include <string.h>

size_t waits_of_group(const struct group *group, struct wait ret_waits[WAITS_OF_TARGET]) {
    const struct wait waits[] = {
        {"calls parked", group->parking.count},
        {"calls that await a sync point", list_count(&group->awaiting_sync)},
        {"lists of ended sessions", list_count(&group->ended.calls)},
        {"orders", group->orders.busy_count},
        {"orders put aside", group->orders.aside},
        {"questions for lengths", group->settle.busy_count},
        {"questions for lengths put off", group->settle.later_count},
        {"transactions with others", group->crossings.count},
        {"calls of transactions", group->crossings.calls_out},
        {"promises to others", list_count(&group->promises.prepared)},
        {"calls about promises", group->promises.calls_out},
        {"turns of moves", group->turns.line_count + (group->turns.holder.number != 0)},
        {"evictions", group->sessions.evicting_count},
    };

    static_assert(ARRAY_SIZE(waits) <= WAITS_OF_TARGET, "there is room for all");
    memcpy(ret_waits, waits, sizeof waits);
    return ARRAY_SIZE(waits);
}
