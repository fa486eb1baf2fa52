/* Targets that are lost, and pool versions without them. */
#include "layout/map_lost.h"
#include "layout/map_pools.h"

bool cluster_map_is_lost(const struct cluster_map *map, struct target_id target) {
    const struct map_target *found = cluster_map_target(map, target);

    return found && found->state == TARGET_LOST;
}

bool cluster_map_chain_is_lost(const struct cluster_map *map, uint32_t chain) {
    const struct map_chain *found = cluster_map_chain(map, chain);

    return found && found->member_count > 0 && cluster_map_is_lost(map, found->members[0]);
}

bool cluster_map_group_is_lost(const struct cluster_map *map, const struct map_group *group) {
    return group->member_count > 0 && cluster_map_is_lost(map, group->members[0]);
}

bool cluster_map_slot_is_lost(const struct cluster_map *map, struct slot slot) {
    const struct map_group *group = cluster_map_group(map, slot);

    return group && cluster_map_group_is_lost(map, group);
}

bool cluster_map_place_is_lost(const struct cluster_map *map, uint32_t place) {
    return place < MAP_GROUPS_MAX ? cluster_map_group_is_lost(map, &map->groups[place])
                                  : map->targets[place - MAP_GROUPS_MAX].state == TARGET_LOST;
}

struct log_id cluster_map_lost_log(const struct cluster_map *map, uint32_t index) {
    const struct map_target *target = &map->targets[index];

    return target->state == TARGET_LOST ? cluster_map_log_of(map, target->id) : (struct log_id){0};
}

bool cluster_map_node_is_member(const struct cluster_map *map, const struct map_node *node) {
    if (node->target_count == 0) {
        return node->address[0] != '\0';
    }
    for (uint32_t i = 0; i < map->target_count; i++) {
        const struct map_target *target = &map->targets[i];

        if (target->node.value == node->id.value && target->state != TARGET_LOST) {
            return true;
        }
    }
    return false;
}

/* Without the root there is no way to anything. */
static bool has_root(const struct cluster_map *map, const struct map_target *target) {
    const struct map_group *group = cluster_map_group(map, ino_slot(INO_ROOT));

    return group && group->member_count > 0 && group->members[0].value == target->id.value;
}

int cluster_map_lose_check(const struct cluster_map *map, struct target_id target) {
    const struct map_target *found = cluster_map_target(map, target);
    uint32_t others = 0;

    if (!found) {
        return -ERR_NOT_FOUND;
    }
    if (found->state == TARGET_LOST) {
        return -ERR_TARGET_LOST;
    }
    if (has_root(map, found)) {
        return -ERR_ROOT_TARGET;
    }
    for (uint32_t i = 0; i < map->target_count; i++) {
        const struct map_target *other = &map->targets[i];

        others += other != found && other->kind == found->kind && other->state != TARGET_LOST;
    }
    return others > 0 ? 0 : -ERR_LAST_TARGET;
}

/* Of the newest pool version those that are not lost; of all chains, where none is left of it. */
static uint32_t chains_left(const struct cluster_map *map, uint32_t *ret_chains) {
    struct pool_version pool = {0};
    uint32_t count = 0;

    (void)cluster_map_pool(map, 0, &pool);
    for (uint32_t i = 0; i < pool.chain_count; i++) {
        if (!cluster_map_chain_is_lost(map, pool.chains[i])) {
            ret_chains[count++] = pool.chains[i];
        }
    }
    for (uint32_t i = 0; count == 0 && i < map->chain_count; i++) {
        if (!cluster_map_chain_is_lost(map, map->chains[i].id)) {
            ret_chains[count++] = map->chains[i].id;
        }
    }
    return count;
}

static bool pool_rests_on(const struct cluster_map *map, const struct pool_version *pool,
                          struct target_id target) {
    for (uint32_t i = 0; i < pool->chain_count; i++) {
        const struct map_chain *chain = cluster_map_chain(map, pool->chains[i]);

        if (chain && chain->member_count > 0 && chain->members[0].value == target.value) {
            return true;
        }
    }
    return false;
}

int cluster_map_lose(struct cluster_map *map, struct target_id target) {
    int r = cluster_map_lose_check(map, target);
    uint32_t chains[CHAINS_MAX];

    if (r < 0) {
        return r;
    }
    struct map_target *lost = &map->targets[cluster_map_target(map, target) - map->targets];
    uint8_t state = lost->state;
    lost->state = TARGET_LOST;
    if (lost->kind == TARGET_OST && !cluster_map_pool_is_whole(map, 0)) {
        uint32_t count = chains_left(map, chains);

        r = count > 0 ? cluster_map_put_pool(map, chains, count) : -ERR_LAST_TARGET;
    }
    if (r < 0) {
        lost->state = state;
    }
    return r;
}

bool cluster_map_pool_is_whole(const struct cluster_map *map, uint32_t version) {
    struct pool_version pool;

    if (!cluster_map_pool(map, version, &pool)) {
        return false;
    }
    for (uint32_t i = 0; i < map->target_count; i++) {
        if (map->targets[i].state == TARGET_LOST && pool_rests_on(map, &pool, map->targets[i].id)) {
            return false;
        }
    }
    return true;
}
