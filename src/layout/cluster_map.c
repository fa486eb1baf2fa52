/* Look-ups in the map, and its changes. Its bytes are in map_bytes.c. */
#include "layout/map_pools.h"
#include "layout/map_slots.h"
#include "base/endian.h"
#include <assert.h>

const struct map_target *cluster_map_target(const struct cluster_map *map, struct target_id id) {
    for (uint32_t i = 0; i < map->target_count; i++) {
        if (map->targets[i].id.value == id.value) {
            return &map->targets[i];
        }
    }
    return NULL;
}

const struct map_node *cluster_map_node(const struct cluster_map *map, struct node_id id) {
    for (uint32_t i = 0; i < map->node_count; i++) {
        if (map->nodes[i].id.value == id.value) {
            return &map->nodes[i];
        }
    }
    return NULL;
}

bool cluster_map_pool(const struct cluster_map *map, uint32_t version,
                      struct pool_version *ret_pool) {
    const struct map_pool *pool;

    version = version ? version : map->pool_count;
    if (version == 0 || version > map->pool_count) {
        return false;
    }
    pool = &map->pools[version - 1];
    *ret_pool = (struct pool_version){version, pool->count, map->pool_chains + pool->first};
    return true;
}

const struct map_chain *cluster_map_chain(const struct cluster_map *map, uint32_t chain_id) {
    for (uint32_t i = 0; i < map->chain_count; i++) {
        if (map->chains[i].id == chain_id) {
            return &map->chains[i];
        }
    }
    return NULL;
}

const struct map_group *cluster_map_group(const struct cluster_map *map, struct slot slot) {
    uint16_t index = map->slot_groups[slot.value];

    return index < map->group_count ? &map->groups[index] : NULL;
}

#define ROWS_COPY(to, from, rows, count)                                                           \
    memcpy((to)->rows, (from)->rows, (from)->count * sizeof(from)->rows[0])

void cluster_map_copy(struct cluster_map *to, const struct cluster_map *from) {
    memcpy(to, from, offsetof(struct cluster_map, nodes));
    ROWS_COPY(to, from, nodes, node_count);
    ROWS_COPY(to, from, targets, target_count);
    ROWS_COPY(to, from, groups, group_count);
    ROWS_COPY(to, from, chains, chain_count);
    memcpy(to->slot_groups, from->slot_groups, sizeof to->slot_groups);
    memcpy(to->slot_handovers, from->slot_handovers, sizeof to->slot_handovers);
    ROWS_COPY(to, from, pools, pool_count);
    ROWS_COPY(to, from, pool_chains, pool_chain_count);
    to->revoked_count = from->revoked_count;
    ROWS_COPY(to, from, revoked, revoked_count);
    to->signing_key = from->signing_key;
    to->capability_number = from->capability_number;
}

enum { SLOTS_BLOCK = 256 };

/* Whether a block of slots is like the slot before it: each then is like the one before. */
static bool block_is_alike(const struct cluster_map *map, uint32_t slot) {
    return memcmp(map->slot_groups + slot, map->slot_groups + slot - 1,
                  SLOTS_BLOCK * sizeof map->slot_groups[0]) == 0 &&
           memcmp(map->slot_handovers + slot, map->slot_handovers + slot - 1,
                  SLOTS_BLOCK * sizeof map->slot_handovers[0]) == 0;
}

uint32_t cluster_map_slots_alike(const struct cluster_map *map, uint32_t slot) {
    uint16_t group = map->slot_groups[slot];
    uint32_t handover = map->slot_handovers[slot];
    uint32_t end = slot + 1;

    while (end + SLOTS_BLOCK <= SLOT_COUNT && block_is_alike(map, end)) {
        end += SLOTS_BLOCK;
    }
    while (end < SLOT_COUNT && map_slot_is_of(map, end, group, handover)) {
        end++;
    }
    return end - slot;
}

uint32_t cluster_map_slots_differ(const struct cluster_map *a, const struct cluster_map *b,
                                  uint32_t slot) {
    while (slot + SLOTS_BLOCK <= SLOT_COUNT &&
           memcmp(a->slot_groups + slot, b->slot_groups + slot,
                  SLOTS_BLOCK * sizeof a->slot_groups[0]) == 0 &&
           memcmp(a->slot_handovers + slot, b->slot_handovers + slot,
                  SLOTS_BLOCK * sizeof a->slot_handovers[0]) == 0) {
        slot += SLOTS_BLOCK;
    }
    while (slot < SLOT_COUNT &&
           map_slot_is_of(a, slot, b->slot_groups[slot], b->slot_handovers[slot])) {
        slot++;
    }
    return slot;
}

bool cluster_map_slots_next(const struct cluster_map *map, uint16_t group, uint32_t from,
                            struct map_slots *ret_slots) {
    while (from < SLOT_COUNT && map->slot_groups[from] != group) {
        from += cluster_map_slots_alike(map, from);
    }
    if (from >= SLOT_COUNT) {
        return false;
    }
    *ret_slots = (struct map_slots){.first = from,
                                    .count = cluster_map_slots_alike(map, from),
                                    .handover = map->slot_handovers[from]};
    return true;
}

uint32_t cluster_map_slot_count(const struct cluster_map *map, uint16_t group) {
    uint32_t count = 0;

    for (uint32_t slot = 0; slot < SLOT_COUNT; slot++) {
        count += map->slot_groups[slot] == group;
    }
    return count;
}

uint32_t cluster_map_group_of(const struct cluster_map *map, struct target_id target) {
    uint32_t i = 0;

    while (i < map->group_count &&
           (map->groups[i].member_count == 0 || map->groups[i].members[0].value != target.value)) {
        i++;
    }
    return i;
}

uint32_t cluster_map_log_places(const struct cluster_map *map) {
    return MAP_GROUPS_MAX + map->target_count;
}

struct map_log cluster_map_log_at(const struct cluster_map *map, uint32_t place) {
    if (place < MAP_GROUPS_MAX) {
        return (struct map_log){
            place < map->group_count ? map->groups[place].log : (struct log_id){0}, TARGET_MDT};
    }
    const struct map_target *target = &map->targets[place - MAP_GROUPS_MAX];
    return (struct map_log){target->log, target->kind};
}

struct log_id cluster_map_log_of(const struct cluster_map *map, struct target_id target) {
    const struct map_target *found = cluster_map_target(map, target);
    uint32_t group = cluster_map_group_of(map, target);

    if (group < map->group_count) {
        return map->groups[group].log;
    }
    return found ? found->log : (struct log_id){0};
}

bool cluster_map_is_revoked(const struct cluster_map *map, uint64_t serial) {
    for (uint32_t i = 0; i < map->revoked_count; i++) {
        if (map->revoked[i] == serial) {
            return true;
        }
    }
    return false;
}

int cluster_map_revoke(struct cluster_map *map, uint64_t serial) {
    if (serial == 0) {
        return -ERR_INVALID;
    }
    if (cluster_map_is_revoked(map, serial)) {
        return 0;
    }
    if (map->revoked_count == MAP_REVOKED_MAX) {
        return -ERR_TOO_MANY_REVOKED;
    }
    map->revoked[map->revoked_count++] = serial;
    return 0;
}

/* The cluster's id is random, so this is; the mixing is that of splitmix64 (Steele, Lea, Flood
 * 2014). */
struct log_id cluster_map_first_log(const struct cluster_map *map, struct target_id target) {
    uint64_t value = load_le64(map->cluster_id) ^ load_le64(map->cluster_id + 8);

    value += (target.value + UINT64_C(1)) * UINT64_C(0x9e3779b97f4a7c15);
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return (struct log_id){(value ^ value >> 31) | UINT64_C(1) << 63};
}

int cluster_map_add_ost(struct cluster_map *map, struct node_id node, struct target_id ost,
                        struct log_id log) {
    if (map->target_count == MAP_TARGETS_MAX || map->chain_count == MAP_TARGETS_MAX) {
        return -ERR_NO_SPACE;
    }
    map->targets[map->target_count++] = (struct map_target){.id = ost,
                                                            .node = node,
                                                            .kind = TARGET_OST,
                                                            .state = TARGET_UP,
                                                            .incarnation = 1,
                                                            .log = log};
    map->chains[map->chain_count++] =
        (struct map_chain){.id = ost.value, .version = 1, .member_count = 1, .members = {ost}};
    return 0;
}

static void pool_chains_add(struct cluster_map *map, const uint32_t *chains, uint32_t count) {
    memcpy(map->pool_chains + map->pool_chain_count, chains, count * sizeof *chains);
    map->pool_chain_count += count;
}

/* The newest version grows where it stands, if nothing is behind it; else it is repeated there. */
int cluster_map_grow_pool(struct cluster_map *map, const uint32_t *chains, uint32_t chain_count) {
    struct map_pool pool = map->pool_count > 0 ? map->pools[map->pool_count - 1]
                                               : (struct map_pool){map->pool_chain_count, 0};
    uint32_t again = pool.first + pool.count == map->pool_chain_count ? 0 : pool.count;

    if (map->pool_count == MAP_POOL_VERSIONS_MAX ||
        chain_count > CHAINS_MAX - MIN(pool.count, (uint32_t)CHAINS_MAX) ||
        again + chain_count > MAP_POOL_CHAINS_MAX - map->pool_chain_count) {
        return -ERR_NO_SPACE;
    }
    if (again > 0) {
        const uint32_t *old = map->pool_chains + pool.first;

        pool.first = map->pool_chain_count;
        pool_chains_add(map, old, again);
    }
    pool_chains_add(map, chains, chain_count);
    pool.count += chain_count;
    map->pools[map->pool_count++] = pool;
    return 0;
}

/* Where a version begins with these chains; pool_chain_count: none does. */
static uint32_t pool_find(const struct cluster_map *map, const uint32_t *chains, uint32_t count) {
    for (uint32_t i = 0; i < map->pool_count; i++) {
        const struct map_pool *pool = &map->pools[i];

        if (pool->count >= count &&
            memcmp(map->pool_chains + pool->first, chains, count * sizeof *chains) == 0) {
            return pool->first;
        }
    }
    return map->pool_chain_count;
}

int cluster_map_put_pool(struct cluster_map *map, const uint32_t *chains, uint32_t chain_count) {
    struct map_pool pool = {pool_find(map, chains, chain_count), chain_count};
    bool is_new = pool.first == map->pool_chain_count;

    assert(chain_count > 0);
    if (map->pool_count == MAP_POOL_VERSIONS_MAX || chain_count > CHAINS_MAX ||
        (is_new && chain_count > MAP_POOL_CHAINS_MAX - map->pool_chain_count)) {
        return -ERR_NO_SPACE;
    }
    if (is_new) {
        pool_chains_add(map, chains, chain_count);
    }
    map->pools[map->pool_count++] = pool;
    return 0;
}

static bool pool_has(const struct cluster_map *map, const struct map_pool *pool, uint32_t chain) {
    for (uint32_t i = 0; i < pool->count; i++) {
        if (map->pool_chains[pool->first + i] == chain) {
            return true;
        }
    }
    return false;
}

uint32_t cluster_map_pool_lacks(const struct cluster_map *map, uint32_t chain) {
    uint32_t version = map->pool_count;

    while (version > 0 && !pool_has(map, &map->pools[version - 1], chain)) {
        version--;
    }
    return version == map->pool_count ? 0 : version + 1;
}

/* A group's id is its first target's. */
int cluster_map_add_mdt(struct cluster_map *map, struct node_id node, struct target_id mdt) {
    if (map->group_count == MAP_GROUPS_MAX || map->target_count == MAP_TARGETS_MAX) {
        return -ERR_NO_SPACE;
    }
    map->targets[map->target_count++] = (struct map_target){
        .id = mdt, .node = node, .kind = TARGET_MDT, .state = TARGET_UP, .incarnation = 1};
    map->groups[map->group_count++] = (struct map_group){.id = {mdt.value},
                                                         .log = cluster_map_first_log(map, mdt),
                                                         .version = 1,
                                                         .member_count = 1,
                                                         .members = {mdt}};
    return 0;
}

int cluster_map_add_mdts(struct cluster_map *map, const struct target_id *mdts,
                         uint32_t mdt_count) {
    for (uint32_t i = 0; i < mdt_count; i++) {
        int r = cluster_map_add_mdt(map, map->nodes[0].id, mdts[i]);

        if (r < 0) {
            return r;
        }
        map->nodes[0].mdt_count++;
        map->nodes[0].target_count++;
    }
    for (uint32_t slot = 0; slot < SLOT_COUNT; slot++) {
        map->slot_groups[slot] = (uint16_t)((uint64_t)slot * map->group_count / SLOT_COUNT);
    }
    return 0;
}

void cluster_map_single(struct cluster_map *map, struct target_id mdt, const struct target_id *osts,
                        uint32_t ost_count) {
    map->version = 1;
    map->target_count = map->group_count = 0;
    memset(map->slot_groups, 0, sizeof map->slot_groups);
    memset(map->slot_handovers, 0, sizeof map->slot_handovers);
    map->node_count = 1;
    map->nodes[0] = (struct map_node){.id = {1}, .first_target = mdt.value, .mdt_count = 1};
    map->nodes[0].key[0] = load_le64(map->cluster_id);
    map->nodes[0].key[1] = load_le64(map->cluster_id + 8);
    map->nodes[0].target_count = 1 + ost_count;
    int r = cluster_map_add_mdt(map, map->nodes[0].id, mdt);
    assert(r == 0);
    map->chain_count = map->pool_count = map->pool_chain_count = 0;
    map->revoked_count = map->capability_number = 0;
    map->pools[map->pool_count++] = (struct map_pool){0, ost_count};
    for (uint32_t i = 0; i < ost_count; i++) {
        r = cluster_map_add_ost(map, (struct node_id){1}, osts[i],
                                cluster_map_first_log(map, osts[i]));
        assert(r == 0);
        map->pool_chains[map->pool_chain_count++] = osts[i].value;
    }
}
