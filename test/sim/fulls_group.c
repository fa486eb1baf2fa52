/* The metadata target's side of fulls.h. */
#include "fulls.h"
#include "meta/group_internal.h"

uint32_t fulls_of_group(const struct group *group) {
    uint32_t crossings_max =
        group->options.crossings_max ? group->options.crossings_max : CROSSINGS_MAX;

    return (uint32_t)(group->sessions.count >= group->sessions.max) << FULL_SESSIONS |
           (uint32_t)(group->orders.busy_count == ORDER_JOBS) << FULL_ORDERS |
           (uint32_t)(group->settle.busy_count == SETTLE_JOBS) << FULL_SETTLES |
           (uint32_t)(group->crossings.count >= crossings_max) << FULL_CROSSINGS;
}
