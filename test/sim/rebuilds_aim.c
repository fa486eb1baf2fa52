/* The contract is in rebuilds_aim.h. */
#include "rebuilds_aim.h"
#include "manager/manager_internal.h"
#include <string.h>

/* The newest one; false: there was none, or its row is not in memory. */
static bool handover_get(const struct manager *manager, struct manager_handover_row *ret_row) {
    struct kv_key key = manager_key(MANAGER_ROW_HANDOVER, 0, 0);
    struct bytes value;
    bool is_there = kv_get(manager->kv, &key, &value) == 0 && value.size == sizeof *ret_row;

    if (is_there) {
        memcpy(ret_row, value.data, sizeof *ret_row);
    }
    return is_there;
}

bool rebuilds_is_amid(const struct manager *manager, enum rebuilds_amid kind) {
    struct manager_handover_row row;

    switch (kind) {
    case AMID_BEGIN:
        return !list_is_empty(&manager->sessions.beginning);
    case AMID_END:
        return !list_is_empty(&manager->sessions.marking) || manager_ending_count(manager) > 0;
    case AMID_HANDOVER:
        return handover_get(manager, &row) && !row.recorded;
    case AMID_KINDS:
        break;
    }
    return true;
}

void rebuilds_given_get(const struct manager *manager, struct rebuilds_given *ret_given) {
    struct manager_handover_row row = {.number = 0};

    (void)handover_get(manager, &row);
    *ret_given = (struct rebuilds_given){.map_version = manager->map->version,
                                         .next_session = manager->next_session,
                                         .ended_number = manager->ended_number,
                                         .handover = row.number};
}

bool rebuilds_is_loaded(const struct manager *manager) {
    return manager->loaded && manager->failure == 0;
}
