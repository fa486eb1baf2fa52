/* The contract is in map_change.h.
 *
 * Bytes of one change: u32 magic "SMAC", u32 format, u32 bytes of all of it, u64 from version, u64
 * to version, u32 CRC-32C of the whole map that it makes (as that ends with); sections, each {u32
 * kind, u32 bytes, the bytes}; CRC-32C of all before it. A section that is empty is not written,
 * and one of a kind that is not known here is passed over: the map's CRC tells whether that was
 * right.
 *
 *     1 nodes        u32 how many there are now, {u32 index, node} each that is new or another
 *     2 targets      likewise
 *     3 groups       likewise
 *     4 chains       likewise
 *     5 slots        {u32 first, u32 slots, u16 group index, u32 hand-over} each run
 *     6 pool chains  u32 how many there were, u32 each new one
 *     7 pools        u32 how many there were, {u32 first, u32 count} each new one
 *     8 revoked      u32 how many there were, u64 each new serial
 *     9 signing      u64 name of the members' key that signs
 *     10 number      u32 of the keys that sign capabilities */
#include "layout/map_change.h"
#include "base/bug.h"
#include "base/endian.h"
#include "layout/map_walk.h"

enum { CHANGE_MAGIC = 0x43414d53, CHANGE_FORMAT = 1, CHANGE_HEAD_BYTES = 32, CHANGE_CRC_BYTES = 4 };

enum change_section {
    CHANGE_NODES = 1,
    CHANGE_TARGETS,
    CHANGE_GROUPS,
    CHANGE_CHAINS,
    CHANGE_SLOTS,
    CHANGE_POOL_CHAINS,
    CHANGE_POOLS,
    CHANGE_REVOKED,
    CHANGE_SIGNING,
    CHANGE_NUMBER
};

/* Writing. Where `out` has no room the walk is bad. */

struct change_pair {
    const struct cluster_map *from;
    const struct cluster_map *to;
};

static bool node_is_other(const struct map_node *a, const struct map_node *b) {
    return a->id.value != b->id.value || a->key[0] != b->key[0] || a->key[1] != b->key[1] ||
           a->first_target != b->first_target || a->target_count != b->target_count ||
           a->mdt_count != b->mdt_count || strcmp(a->address, b->address) != 0;
}

static bool target_is_other(const struct map_target *a, const struct map_target *b) {
    return a->id.value != b->id.value || a->node.value != b->node.value || a->kind != b->kind ||
           a->state != b->state || a->incarnation != b->incarnation ||
           a->synced_position != b->synced_position || a->log.value != b->log.value;
}

static bool members_are_other(const struct target_id *a, uint32_t a_count,
                              const struct target_id *b, uint32_t b_count) {
    return a_count != b_count || memcmp(a, b, a_count * sizeof *a) != 0;
}

static bool group_is_other(const struct map_group *a, const struct map_group *b) {
    return a->id.value != b->id.value || a->log.value != b->log.value || a->version != b->version ||
           members_are_other(a->members, a->member_count, b->members, b->member_count);
}

static bool chain_is_other(const struct map_chain *a, const struct map_chain *b) {
    return a->id != b->id || a->version != b->version ||
           members_are_other(a->members, a->member_count, b->members, b->member_count);
}

/* The rows of one kind: those that are new, and those that are another than they were. */
#define ROWS_WRITER(name, type, rows, row_count, is_other, walk_row)                               \
    static void name(struct walk *walk, const struct change_pair *pair) {                          \
        (void)walk_number(walk, pair->to->row_count, 4);                                           \
        for (uint32_t i = 0; i < pair->to->row_count; i++) {                                       \
            struct type row = pair->to->rows[i];                                                   \
                                                                                                   \
            if (i >= pair->from->row_count || is_other(&pair->from->rows[i], &row)) {              \
                (void)walk_number(walk, i, 4);                                                     \
                walk_row(walk, &row);                                                              \
            }                                                                                      \
        }                                                                                          \
    }

ROWS_WRITER(nodes_write, map_node, nodes, node_count, node_is_other, walk_node)
ROWS_WRITER(targets_write, map_target, targets, target_count, target_is_other, walk_target)
ROWS_WRITER(groups_write, map_group, groups, group_count, group_is_other, walk_group)
ROWS_WRITER(chains_write, map_chain, chains, chain_count, chain_is_other, walk_chain)

static bool slot_is_other(const struct change_pair *pair, uint32_t slot) {
    return !map_slot_is_of(pair->from, slot, pair->to->slot_groups[slot],
                           pair->to->slot_handovers[slot]);
}

static void slots_write(struct walk *walk, const struct change_pair *pair) {
    uint32_t slot = cluster_map_slots_differ(pair->from, pair->to, 0);

    while (slot < SLOT_COUNT) {
        uint16_t group = pair->to->slot_groups[slot];
        uint32_t handover = pair->to->slot_handovers[slot];
        uint32_t run = 1;

        while (slot + run < SLOT_COUNT && slot_is_other(pair, slot + run) &&
               map_slot_is_of(pair->to, slot + run, group, handover)) {
            run++;
        }
        (void)walk_number(walk, slot, 4);
        (void)walk_number(walk, run, 4);
        (void)walk_number(walk, group, 2);
        (void)walk_number(walk, handover, 4);
        slot = cluster_map_slots_differ(pair->from, pair->to, slot + run);
    }
}

static void pool_chains_write(struct walk *walk, const struct change_pair *pair) {
    (void)walk_number(walk, pair->from->pool_chain_count, 4);
    for (uint32_t i = pair->from->pool_chain_count; i < pair->to->pool_chain_count; i++) {
        (void)walk_number(walk, pair->to->pool_chains[i], 4);
    }
}

static void pools_write(struct walk *walk, const struct change_pair *pair) {
    (void)walk_number(walk, pair->from->pool_count, 4);
    for (uint32_t i = pair->from->pool_count; i < pair->to->pool_count; i++) {
        struct map_pool pool = pair->to->pools[i];

        walk_pool(walk, pair->to, &pool);
    }
}

static void revoked_write(struct walk *walk, const struct change_pair *pair) {
    (void)walk_number(walk, pair->from->revoked_count, 4);
    for (uint32_t i = pair->from->revoked_count; i < pair->to->revoked_count; i++) {
        (void)walk_number(walk, pair->to->revoked[i], 8);
    }
}

static void signing_write(struct walk *walk, const struct change_pair *pair) {
    if (pair->to->signing_key != pair->from->signing_key) {
        (void)walk_number(walk, pair->to->signing_key, 8);
    }
}

static void number_write(struct walk *walk, const struct change_pair *pair) {
    if (pair->to->capability_number != pair->from->capability_number) {
        (void)walk_number(walk, pair->to->capability_number, 4);
    }
}

typedef void section_writer(struct walk *walk, const struct change_pair *pair);

/* A section that says no more than a count says nothing where the count is the old one. */
static bool is_empty(const struct change_pair *pair, enum change_section kind, size_t bytes) {
    const struct cluster_map *from = pair->from;
    const struct cluster_map *to = pair->to;
    const bool same_count[] = {[CHANGE_NODES] = from->node_count == to->node_count,
                               [CHANGE_TARGETS] = from->target_count == to->target_count,
                               [CHANGE_GROUPS] = from->group_count == to->group_count,
                               [CHANGE_CHAINS] = from->chain_count == to->chain_count,
                               [CHANGE_POOL_CHAINS] = true,
                               [CHANGE_POOLS] = true,
                               [CHANGE_REVOKED] = true};
    bool counts = kind < CHANGE_SIGNING && kind != CHANGE_SLOTS;

    return bytes == 0 || (counts && bytes == 4 && same_count[kind]);
}

static void sections_write(struct walk *walk, const struct change_pair *pair) {
    static section_writer *const writers[] = {
        [CHANGE_NODES] = nodes_write,     [CHANGE_TARGETS] = targets_write,
        [CHANGE_GROUPS] = groups_write,   [CHANGE_CHAINS] = chains_write,
        [CHANGE_SLOTS] = slots_write,     [CHANGE_POOL_CHAINS] = pool_chains_write,
        [CHANGE_POOLS] = pools_write,     [CHANGE_REVOKED] = revoked_write,
        [CHANGE_SIGNING] = signing_write, [CHANGE_NUMBER] = number_write};

    for (uint32_t kind = CHANGE_NODES; kind <= CHANGE_NUMBER; kind++) {
        struct walk count = {.limit = SIZE_MAX};

        writers[kind](&count, pair);
        if (!is_empty(pair, (enum change_section)kind, count.size)) {
            (void)walk_number(walk, kind, 4);
            (void)walk_number(walk, count.size, 4);
            writers[kind](walk, pair);
        }
    }
}

/* Whether all that `from` has stays where it is. */
static bool is_successor(const struct cluster_map *from, const struct cluster_map *to) {
    return memcmp(from->cluster_id, to->cluster_id, sizeof from->cluster_id) == 0 &&
           memcmp(from->name_hash_key, to->name_hash_key, sizeof from->name_hash_key) == 0 &&
           from->node_count <= to->node_count && from->target_count <= to->target_count &&
           from->group_count <= to->group_count && from->chain_count <= to->chain_count &&
           from->pool_chain_count <= to->pool_chain_count && from->pool_count <= to->pool_count &&
           from->revoked_count <= to->revoked_count &&
           (to->signing_key != 0 || from->signing_key == 0) &&
           from->capability_number <= to->capability_number &&
           memcmp(from->pool_chains, to->pool_chains,
                  from->pool_chain_count * sizeof from->pool_chains[0]) == 0 &&
           memcmp(from->pools, to->pools, from->pool_count * sizeof from->pools[0]) == 0 &&
           memcmp(from->revoked, to->revoked, from->revoked_count * sizeof from->revoked[0]) == 0;
}

int cluster_map_change_encode(const struct cluster_map *from, const struct cluster_map *to,
                              struct buffer *out) {
    const struct change_pair pair = {from, to};
    struct walk walk = {.out = out->data + out->size, .limit = out->capacity - out->size};

    if (!is_successor(from, to)) {
        return -ERR_NOT_SUPPORTED;
    }
    (void)walk_number(&walk, CHANGE_MAGIC, 4);
    (void)walk_number(&walk, CHANGE_FORMAT, 4);
    (void)walk_number(&walk, 0, 4); /* Its bytes, when they are known. */
    (void)walk_number(&walk, from->version, 8);
    (void)walk_number(&walk, to->version, 8);
    (void)walk_number(&walk, cluster_map_crc(to), 4);
    sections_write(&walk, &pair);
    if (walk.bad || walk.limit - walk.size < CHANGE_CRC_BYTES) {
        return -ERR_TOO_SMALL;
    }
    store_le32(walk.out + 8, (uint32_t)(walk.size + CHANGE_CRC_BYTES));
    (void)walk_number(&walk, crc32c(0, walk.out, walk.size), CHANGE_CRC_BYTES);
    out->size += walk.size;
    return 0;
}

/* Reading. A section's walk ends with the section. */

#define ROWS_READER(name, rows, row_count, rows_max, walk_row)                                     \
    static void name(struct walk *walk, struct cluster_map *map) {                                 \
        uint32_t before = map->row_count;                                                          \
                                                                                                   \
        map->row_count = walk_count(walk, 0, rows_max);                                            \
        walk->bad = walk->bad || map->row_count < before;                                          \
        for (uint32_t i = before; !walk->bad && i < map->row_count; i++) {                         \
            memset(&map->rows[i], 0, sizeof map->rows[i]);                                         \
        }                                                                                          \
        while (!walk->bad && walk->size < walk->limit) {                                           \
            uint64_t index = walk_number(walk, 0, 4);                                              \
                                                                                                   \
            if (walk->bad || index >= map->row_count) {                                            \
                walk->bad = true;                                                                  \
                return;                                                                            \
            }                                                                                      \
            walk_row(walk, &map->rows[index]);                                                     \
        }                                                                                          \
    }

ROWS_READER(nodes_read, nodes, node_count, MAP_NODES_MAX, walk_node)
ROWS_READER(targets_read, targets, target_count, MAP_TARGETS_MAX, walk_target)
ROWS_READER(groups_read, groups, group_count, MAP_GROUPS_MAX, walk_group)
ROWS_READER(chains_read, chains, chain_count, MAP_TARGETS_MAX, walk_chain)

static void slots_read(struct walk *walk, struct cluster_map *map) {
    while (!walk->bad && walk->size < walk->limit) {
        uint64_t slot = walk_number(walk, 0, 4);
        uint64_t run = walk_number(walk, 0, 4);
        uint16_t group = (uint16_t)walk_number(walk, 0, 2);
        uint32_t handover = (uint32_t)walk_number(walk, 0, 4);

        walk->bad = walk->bad || slot > SLOT_COUNT || run > SLOT_COUNT - slot;
        for (uint64_t i = 0; !walk->bad && i < run; i++) {
            map->slot_groups[slot + i] = group;
            map->slot_handovers[slot + i] = handover;
        }
    }
}

/* How many the change goes on from: as many as the map has, else it is another map's. */
static bool count_read(struct walk *walk, uint32_t count) {
    walk->bad = walk_number(walk, 0, 4) != count || walk->bad;
    return !walk->bad;
}

static void pool_chains_read(struct walk *walk, struct cluster_map *map) {
    if (!count_read(walk, map->pool_chain_count)) {
        return;
    }
    while (!walk->bad && walk->size < walk->limit) {
        uint64_t chain = walk_number(walk, 0, 4);

        walk->bad = walk->bad || map->pool_chain_count == MAP_POOL_CHAINS_MAX;
        if (!walk->bad) {
            map->pool_chains[map->pool_chain_count++] = (uint32_t)chain;
        }
    }
}

static void pools_read(struct walk *walk, struct cluster_map *map) {
    if (!count_read(walk, map->pool_count)) {
        return;
    }
    while (!walk->bad && walk->size < walk->limit) {
        struct map_pool pool = {0};

        walk_pool(walk, map, &pool);
        walk->bad = walk->bad || map->pool_count == MAP_POOL_VERSIONS_MAX;
        if (!walk->bad) {
            map->pools[map->pool_count++] = pool;
        }
    }
}

static void revoked_read(struct walk *walk, struct cluster_map *map) {
    if (!count_read(walk, map->revoked_count)) {
        return;
    }
    while (!walk->bad && walk->size < walk->limit) {
        uint64_t serial = walk_number(walk, 0, 8);

        walk->bad = walk->bad || serial == 0 || map->revoked_count == MAP_REVOKED_MAX;
        if (!walk->bad) {
            map->revoked[map->revoked_count++] = serial;
        }
    }
}

static void signing_read(struct walk *walk, struct cluster_map *map) {
    map->signing_key = walk_number(walk, 0, 8);
    walk->bad = walk->bad || map->signing_key == 0;
}

/* It only rises. */
static void number_read(struct walk *walk, struct cluster_map *map) {
    uint32_t number = (uint32_t)walk_number(walk, 0, 4);

    walk->bad = walk->bad || number <= map->capability_number;
    map->capability_number = number;
}

static void section_read(struct walk *walk, uint64_t kind, struct cluster_map *map) {
    static void (*const readers[])(struct walk *walk, struct cluster_map *map) = {
        [CHANGE_NODES] = nodes_read,     [CHANGE_TARGETS] = targets_read,
        [CHANGE_GROUPS] = groups_read,   [CHANGE_CHAINS] = chains_read,
        [CHANGE_SLOTS] = slots_read,     [CHANGE_POOL_CHAINS] = pool_chains_read,
        [CHANGE_POOLS] = pools_read,     [CHANGE_REVOKED] = revoked_read,
        [CHANGE_SIGNING] = signing_read, [CHANGE_NUMBER] = number_read};

    if (kind >= CHANGE_NODES && kind <= CHANGE_NUMBER) {
        readers[kind](walk, map);
        walk->bad = walk->bad || walk->size != walk->limit;
    }
}

static int sections_read(struct bytes sections, struct cluster_map *map) {
    size_t at = 0;

    while (at < sections.size) {
        struct walk walk = {.in = sections.data + at, .limit = sections.size - at};
        uint64_t kind = walk_number(&walk, 0, 4);
        uint64_t bytes = walk_number(&walk, 0, 4);

        if (walk.bad || bytes > walk.limit - walk.size) {
            return -ERR_MALFORMED;
        }
        walk.limit = walk.size + (size_t)bytes;
        section_read(&walk, kind, map);
        if (walk.bad) {
            return -ERR_MALFORMED;
        }
        at += walk.limit;
    }
    return 0;
}

/* Of bytes that are there, as they say. */
static int change_apply(struct cluster_map *map, struct bytes change) {
    size_t body = change.size - CHANGE_CRC_BYTES;
    uint64_t from = load_le64(change.data + 12);
    uint64_t to = load_le64(change.data + 20);

    if (load_le32(change.data + body) != crc32c(0, change.data, body)) {
        return -ERR_CORRUPT;
    }
    if ((from != map->version && !BUG(OTHER_BASE)) || to <= from) {
        return -ERR_STALE_MAP;
    }
    int r = sections_read((struct bytes){change.data + CHANGE_HEAD_BYTES, body - CHANGE_HEAD_BYTES},
                          map);
    if (r < 0) {
        return r;
    }
    map->version = to;
    return cluster_map_crc(map) == load_le32(change.data + 28) || BUG(OTHER_BASE) ? 0
                                                                                  : -ERR_STALE_MAP;
}

int cluster_map_changes_apply(struct cluster_map *map, struct bytes changes) {
    int r = changes.size > 0 ? 0 : -ERR_MALFORMED;

    while (r == 0 && changes.size > 0) {
        if (changes.size < CHANGE_HEAD_BYTES + CHANGE_CRC_BYTES ||
            load_le32(changes.data) != CHANGE_MAGIC) {
            return -ERR_MALFORMED;
        }
        if (load_le32(changes.data + 4) != CHANGE_FORMAT) {
            return -ERR_NEWER_FORMAT;
        }
        size_t size = load_le32(changes.data + 8);
        if (size < CHANGE_HEAD_BYTES + CHANGE_CRC_BYTES || size > changes.size) {
            return -ERR_MALFORMED;
        }
        r = change_apply(map, (struct bytes){changes.data, size});
        changes = (struct bytes){changes.data + size, changes.size - size};
    }
    return r;
}
