/* Which slots of the map are whose. */
#pragma once
#include "layout/cluster_map.h"

/* A run of slots of one group, by one hand-over, that begins at `from` or is the next one behind;
 * false: there is none any more. */
struct map_slots {
    uint32_t first;
    uint32_t count;
    uint32_t handover;
};
bool cluster_map_slots_next(const struct cluster_map *map, uint16_t group, uint32_t from,
                            struct map_slots *ret_slots);
/* How many a group has. */
uint32_t cluster_map_slot_count(const struct cluster_map *map, uint16_t group);
/* Index of the group whose first member it is; map->group_count: none. */
uint32_t cluster_map_group_of(const struct cluster_map *map, struct target_id target);

static inline bool map_slot_is_of(const struct cluster_map *map, uint32_t slot, uint16_t group,
                                  uint32_t handover) {
    return map->slot_groups[slot] == group && map->slot_handovers[slot] == handover;
}

/* How many slots from this one on, at least 1, are like it: compared many at a time, as a map is
 * walked for each change of it, and has few runs. */
uint32_t cluster_map_slots_alike(const struct cluster_map *map, uint32_t slot);
/* The first slot from this one on that has another group or hand-over in the other map;
 * SLOT_COUNT: none has. */
uint32_t cluster_map_slots_differ(const struct cluster_map *a, const struct cluster_map *b,
                                  uint32_t slot);
