/* The bytes of a map.
 *
 * Bytes: u32 magic "SMAP", u16 format, u16 0, version, cluster id, hash key, counts and arrays of
 * nodes (an address is u16 bytes and its text), targets, groups, chains, slots as runs of {u16
 * group index, u32 hand-over, u32 slots}, pool versions and their chains; sections, each {u32 kind,
 * u32 bytes, the bytes}; CRC-32C of all before it. A section that is empty is not written, and one
 * of a kind that is not known here is passed over.
 *
 *     1 revoked     u64 each serial
 *     2 signing     u64 name of the members' key by which the cluster signs
 *     3 number      u32 of the keys that sign capabilities */
#include "layout/map_change.h"
#include "layout/map_slots.h"
#include "layout/map_walk.h"
#include "base/endian.h"

enum { MAP_MAGIC = 0x50414d53, MAP_FORMAT = 4 };
enum { SECTION_REVOKED = 1, SECTION_SIGNING = 2, SECTION_NUMBER = 3 };

uint64_t walk_number(struct walk *walk, uint64_t value, size_t bytes) {
    if (bytes > walk->limit - walk->size) {
        walk->bad = true;
        return 0;
    }
    if (walk->out) {
        memcpy(walk->out + walk->size, &value, bytes);
    }
    if (walk->in) {
        value = 0;
        memcpy(&value, walk->in + walk->size, bytes);
    }
    if (walk->sums) {
        walk->crc = crc32c(walk->crc, &value, bytes);
    }
    walk->size += bytes;
    return value;
}

uint32_t walk_count(struct walk *walk, uint32_t count, uint32_t max) {
    count = (uint32_t)walk_number(walk, count, sizeof count);
    if (count > max) {
        walk->bad = true;
        count = 0;
    }
    return count;
}

static void walk_members(struct walk *walk, uint32_t *count, struct target_id *members) {
    *count = walk_count(walk, *count, MAP_CHAIN_MEMBERS_MAX);
    for (uint32_t i = 0; i < *count; i++) {
        WALK(members[i].value);
    }
}

static void walk_slots(struct walk *walk, struct cluster_map *map) {
    uint32_t slot = 0;

    while (slot < SLOT_COUNT && !walk->bad) {
        uint16_t group = map->slot_groups[slot];
        uint32_t handover = map->slot_handovers[slot];
        uint32_t run = walk->in ? 1 : cluster_map_slots_alike(map, slot);

        WALK(group);
        WALK(handover);
        run = walk_count(walk, run, SLOT_COUNT - slot);
        if (run == 0) {
            walk->bad = true;
        }
        for (uint32_t i = 0; walk->in && i < run; i++) {
            map->slot_groups[slot + i] = group;
            map->slot_handovers[slot + i] = handover;
        }
        slot += run;
    }
}

static void walk_address(struct walk *walk, char address[ADDRESS_TEXT_BYTES]) {
    size_t size = (size_t)walk_number(walk, walk->in ? 0 : strlen(address), 2);

    if (size >= ADDRESS_TEXT_BYTES || size > walk->limit - walk->size) {
        walk->bad = true;
        return;
    }
    for (size_t i = 0; i < size; i++) {
        WALK(address[i]);
    }
    if (walk->in) {
        memset(address + size, 0, ADDRESS_TEXT_BYTES - size);
    }
}

void walk_node(struct walk *walk, struct map_node *node) {
    WALK(node->id.value);
    WALK(node->key[0]);
    WALK(node->key[1]);
    WALK(node->first_target);
    WALK(node->target_count);
    WALK(node->mdt_count);
    walk_address(walk, node->address);
}

static void walk_nodes(struct walk *walk, struct cluster_map *map) {
    map->node_count = walk_count(walk, map->node_count, MAP_NODES_MAX);
    for (uint32_t i = 0; i < map->node_count; i++) {
        walk_node(walk, &map->nodes[i]);
    }
}

void walk_pool(struct walk *walk, const struct cluster_map *map, struct map_pool *pool) {
    WALK(pool->first);
    pool->count = walk_count(walk, pool->count, CHAINS_MAX);
    if (pool->first > map->pool_chain_count || pool->count > map->pool_chain_count - pool->first) {
        walk->bad = true;
    }
}

static void walk_pools(struct walk *walk, struct cluster_map *map) {
    map->pool_chain_count = walk_count(walk, map->pool_chain_count, MAP_POOL_CHAINS_MAX);
    for (uint32_t i = 0; i < map->pool_chain_count; i++) {
        WALK(map->pool_chains[i]);
    }
    map->pool_count = walk_count(walk, map->pool_count, MAP_POOL_VERSIONS_MAX);
    for (uint32_t i = 0; i < map->pool_count; i++) {
        walk_pool(walk, map, &map->pools[i]);
    }
}

void walk_target(struct walk *walk, struct map_target *target) {
    WALK(target->id.value);
    WALK(target->node.value);
    WALK(target->kind);
    WALK(target->state);
    WALK(target->incarnation);
    WALK(target->synced_position);
    WALK(target->log.value);
}

void walk_group(struct walk *walk, struct map_group *group) {
    WALK(group->id.value);
    WALK(group->log.value);
    WALK(group->version);
    walk_members(walk, &group->member_count, group->members);
}

void walk_chain(struct walk *walk, struct map_chain *chain) {
    WALK(chain->id);
    WALK(chain->version);
    walk_members(walk, &chain->member_count, chain->members);
}

static void walk_targets(struct walk *walk, struct cluster_map *map) {
    map->target_count = walk_count(walk, map->target_count, MAP_TARGETS_MAX);
    for (uint32_t i = 0; i < map->target_count; i++) {
        walk_target(walk, &map->targets[i]);
    }
    map->group_count = walk_count(walk, map->group_count, MAP_GROUPS_MAX);
    for (uint32_t i = 0; i < map->group_count; i++) {
        walk_group(walk, &map->groups[i]);
    }
    map->chain_count = walk_count(walk, map->chain_count, MAP_TARGETS_MAX);
    for (uint32_t i = 0; i < map->chain_count; i++) {
        walk_chain(walk, &map->chains[i]);
    }
}

static void walk_revoked(struct walk *walk, struct cluster_map *map) {
    for (uint32_t i = 0; i < map->revoked_count; i++) {
        WALK(map->revoked[i]);
        walk->bad = walk->bad || map->revoked[i] == 0;
    }
}

static void sections_write(struct walk *walk, struct cluster_map *map) {
    if (map->revoked_count > 0) {
        (void)walk_number(walk, SECTION_REVOKED, 4);
        (void)walk_number(walk, map->revoked_count * sizeof map->revoked[0], 4);
        walk_revoked(walk, map);
    }
    if (map->signing_key != 0) {
        (void)walk_number(walk, SECTION_SIGNING, 4);
        (void)walk_number(walk, sizeof map->signing_key, 4);
        WALK(map->signing_key);
    }
    if (map->capability_number != 0) {
        (void)walk_number(walk, SECTION_NUMBER, 4);
        (void)walk_number(walk, sizeof map->capability_number, 4);
        WALK(map->capability_number);
    }
}

static void signing_read(struct walk *walk, size_t bytes, struct cluster_map *map) {
    if (map->signing_key != 0 || bytes != sizeof map->signing_key) {
        walk->bad = true;
        return;
    }
    WALK(map->signing_key);
    walk->bad = walk->bad || map->signing_key == 0;
}

static void number_read(struct walk *walk, size_t bytes, struct cluster_map *map) {
    if (map->capability_number != 0 || bytes != sizeof map->capability_number) {
        walk->bad = true;
        return;
    }
    WALK(map->capability_number);
    walk->bad = walk->bad || map->capability_number == 0;
}

static void revoked_read(struct walk *walk, size_t bytes, struct cluster_map *map) {
    if (map->revoked_count > 0 || bytes == 0 || bytes % sizeof map->revoked[0] != 0 ||
        bytes / sizeof map->revoked[0] > MAP_REVOKED_MAX) {
        walk->bad = true;
        return;
    }
    map->revoked_count = (uint32_t)(bytes / sizeof map->revoked[0]);
    walk_revoked(walk, map);
}

static void section_read(struct walk *walk, uint64_t kind, size_t bytes, struct cluster_map *map) {
    switch (kind) {
    case SECTION_REVOKED:
        revoked_read(walk, bytes, map);
        break;
    case SECTION_SIGNING:
        signing_read(walk, bytes, map);
        break;
    case SECTION_NUMBER:
        number_read(walk, bytes, map);
        break;
    default:
        walk->size += bytes;
    }
}

static void sections_read(struct walk *walk, struct cluster_map *map) {
    map->revoked_count = 0;
    map->signing_key = 0;
    map->capability_number = 0;
    while (!walk->bad && walk->size < walk->limit) {
        uint64_t kind = walk_number(walk, 0, 4);
        size_t bytes = (size_t)walk_number(walk, 0, 4);

        if (walk->bad || bytes > walk->limit - walk->size) {
            walk->bad = true;
            return;
        }
        section_read(walk, kind, bytes, map);
    }
}

static int walk_map(struct walk *walk, struct cluster_map *map) {
    if (walk_number(walk, MAP_MAGIC, 4) != MAP_MAGIC) {
        return -ERR_MALFORMED;
    }
    uint64_t format = walk_number(walk, MAP_FORMAT, 4);
    if (format != MAP_FORMAT) {
        return format > MAP_FORMAT ? -ERR_NEWER_FORMAT : -ERR_OLDER_FORMAT;
    }
    WALK(map->version);
    for (size_t i = 0; i < sizeof map->cluster_id; i++) {
        WALK(map->cluster_id[i]);
    }
    WALK(map->name_hash_key[0]);
    WALK(map->name_hash_key[1]);
    walk_nodes(walk, map);
    walk_targets(walk, map);
    walk_slots(walk, map);
    walk_pools(walk, map);
    if (walk->in) {
        sections_read(walk, map);
    } else {
        sections_write(walk, map);
    }
    return walk->bad ? -ERR_MALFORMED : 0;
}

size_t cluster_map_size(const struct cluster_map *map) {
    struct walk walk = {.limit = SIZE_MAX};

    (void)walk_map(&walk, (struct cluster_map *)(uintptr_t)map);
    return walk.size + sizeof(uint32_t);
}

void cluster_map_encode(const struct cluster_map *map, struct buffer *out) {
    struct walk walk = {.out = out->data + out->size, .limit = out->capacity - out->size};

    (void)walk_map(&walk, (struct cluster_map *)(uintptr_t)map);
    (void)walk_number(&walk, crc32c(0, walk.out, walk.size), sizeof(uint32_t));
    out->size += walk.size;
}

uint32_t cluster_map_crc(const struct cluster_map *map) {
    struct walk walk = {.limit = SIZE_MAX, .sums = true};

    (void)walk_map(&walk, (struct cluster_map *)(uintptr_t)map);
    return walk.crc;
}

int cluster_map_decode(struct bytes data, struct cluster_map *ret_map) {
    if (data.size < sizeof(uint32_t)) {
        return -ERR_MALFORMED;
    }
    size_t body = data.size - sizeof(uint32_t);
    if (load_le32(data.data + body) != crc32c(0, data.data, body)) {
        return -ERR_CORRUPT;
    }
    struct walk walk = {.in = data.data, .limit = body};
    return walk_map(&walk, ret_map);
}
