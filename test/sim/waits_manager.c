/* The manager's side of waits.h. Calls that wait for a newer map are no matter. */
#include "waits.h"
#include "manager/manager_internal.h"
#include <assert.h>
#include <string.h>

size_t waits_of_manager(const struct manager *manager, struct wait ret_waits[WAITS_OF_TARGET]) {
    const struct wait waits[] = {
        {"sessions that begin", list_count(&manager->begin_calls)},
        {"calls that came early", list_count(&manager->early_calls)},
        {"lives to be registered",
         list_count(&manager->life_calls) + list_count(&manager->living_calls)},
        {"joins", list_count(&manager->join_calls) + list_count(&manager->joining_calls)},
        {"losses", list_count(&manager->lose_calls) + list_count(&manager->losing_calls)},
        {"renewals of keys",
         list_count(&manager->renew_calls) + list_count(&manager->renewing_calls)},
        {"changes of the map", manager->next_map != NULL},
        {"evictions", manager->ended_count},
    };

    static_assert(ARRAY_SIZE(waits) <= WAITS_OF_TARGET, "there is room for all");
    memcpy(ret_waits, waits, sizeof waits);
    return ARRAY_SIZE(waits);
}
