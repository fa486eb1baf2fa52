/* The contract is in fsck_slots.h. */
#include "check/fsck_slots.h"

int fsck_slot_get(struct fsck *fsck, uint64_t ino, struct fsck_slot *ret_slot) {
    uint64_t slot = ino_slot((struct ino){ino}).value;
    struct fsck_list list;
    struct fsck_row row;
    int r;

    *ret_slot = (struct fsck_slot){.is_its = false};
    fsck_list_begin(&list, fsck, fsck_mdt_of(fsck, ino), FSCK_SLOTS);
    while ((r = fsck_list_next(&list, &row)) == 0) {
        uint64_t first = kv_key_split(&row.key).id;
        const struct slots_row *slots;

        if (slots_row_check(row.value, &slots) == 0 && slots->state == SLOTS_MINE &&
            slot >= first && slot - first < slots->count) {
            *ret_slot = (struct fsck_slot){true, slot - first < slots->opened};
        }
    }
    return r == -ERR_NOT_FOUND || r == -ERR_INVALID ? 0 : r;
}

static bool is_known(const struct cluster_map *map, uint64_t log) {
    for (uint32_t i = 0; i < map->group_count; i++) {
        if (map->groups[i].log.value == log) {
            return true;
        }
    }
    return false;
}

/* Whether the map has some of the slots at the place yet; rows of what was given long ago stay. */
static bool has_any(const struct cluster_map *map, uint32_t place, uint64_t first, uint64_t count) {
    for (uint64_t slot = first; slot < MIN(first + count, (uint64_t)SLOT_COUNT); slot++) {
        if (map->slot_groups[slot] == place) {
            return true;
        }
    }
    return false;
}

int fsck_has_unknown_group(struct fsck *fsck, bool *ret_has) {
    const struct cluster_map *map = fsck->cluster->map;
    struct fsck_list list;
    struct fsck_row row;
    int r;

    *ret_has = false;
    fsck_list_begin_all(&list, fsck, FSCK_SLOTS);
    while ((r = fsck_list_next(&list, &row)) == 0) {
        uint32_t place = map->group_count - list.groups_left - 1;
        const struct slots_row *slots;

        if (slots_row_check(row.value, &slots) == 0 && slots->state == SLOTS_GIVEN &&
            !is_known(map, slots->given_to)) {
            *ret_has = *ret_has || has_any(map, place, kv_key_split(&row.key).id, slots->count);
        }
    }
    return r == -ERR_NOT_FOUND || r == -ERR_INVALID ? 0 : r;
}
