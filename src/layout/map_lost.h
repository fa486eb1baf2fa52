/* Targets that will not come back. */
#pragma once
#include "layout/cluster_map.h"

bool cluster_map_is_lost(const struct cluster_map *map, struct target_id target);
/* Whether the target at the head of the chain is; false where the map has no such chain. */
bool cluster_map_chain_is_lost(const struct cluster_map *map, uint32_t chain);
/* Whether the metadata target that serves the group is, that has the slot's group; false where the
 * map has none. */
bool cluster_map_group_is_lost(const struct cluster_map *map, const struct map_group *group);
bool cluster_map_slot_is_lost(const struct cluster_map *map, struct slot slot);
/* By its place (cluster_map_log_at). */
bool cluster_map_place_is_lost(const struct cluster_map *map, uint32_t place);
/* The log of map->targets[index] where that is lost; else 0. */
struct log_id cluster_map_lost_log(const struct cluster_map *map, uint32_t index);
/* Whether it has come back with what it was given numbers for, and has any of it left: targets that
 * are not all lost, or an address where it has no targets. A first start that fails never does. */
bool cluster_map_node_is_member(const struct cluster_map *map, const struct map_node *node);
/* Why the target can't be declared lost, or 0: -ERR_NOT_FOUND: the map has none of that id;
 * -ERR_TARGET_LOST: it is already; -ERR_ROOT_TARGET: it has slot 0, and so the root;
 * -ERR_LAST_TARGET: no other one of its kind would be left. */
MUST_CHECK int cluster_map_lose_check(const struct cluster_map *map, struct target_id target);
/* It is lost for good. Of a storage target the newest pool version lacks it: one is made without it
 * where need be, with all that are left where it was the only one there. A metadata target keeps
 * its slots. -> as cluster_map_lose_check; -ERR_NO_SPACE: the map has no room for a pool version,
 * and is unchanged. */
MUST_CHECK int cluster_map_lose(struct cluster_map *map, struct target_id target);
/* Whether new files may be made under this pool version, 0 being the newest: it is named here, and
 * none of its chains is lost. */
bool cluster_map_pool_is_whole(const struct cluster_map *map, uint32_t version);
