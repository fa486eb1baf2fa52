/* Cluster maps. What decodes may not be what our encoder makes (slots may be in more runs than
 * needed), but encoded it decodes to the same map, byte by byte as encoded. The answers of look-ups
 * stay within the map, whatever it says. */
#include "base/crc32c.h"
#include "fuzz.h"
#include "layout/map_change.h"

enum { MAP_BYTES_MAX = 1 << 22, CRC_BYTES = 4, CHANGE_SIZE_AT = 8, CHANGE_MAP_CRC_AT = 28 };

static struct cluster_map map, again;
static uint8_t space[MAP_BYTES_MAX], space_again[MAP_BYTES_MAX];

static void check_look_ups(void) {
    struct pool_version pool;

    assert(map.node_count <= MAP_NODES_MAX && map.target_count <= MAP_TARGETS_MAX);
    assert(map.group_count <= MAP_GROUPS_MAX && map.chain_count <= MAP_TARGETS_MAX);
    for (uint32_t i = 0; i < map.node_count; i++) {
        assert(memchr(map.nodes[i].address, '\0', sizeof map.nodes[i].address));
        assert(cluster_map_node(&map, map.nodes[i].id));
    }
    for (uint32_t i = 0; i <= map.pool_count; i++) {
        if (cluster_map_pool(&map, i, &pool)) {
            assert(pool.chains >= map.pool_chains && pool.chain_count <= CHAINS_MAX);
            assert(pool.chains + pool.chain_count <= map.pool_chains + map.pool_chain_count);
        }
    }
    for (uint32_t i = 0; i < SLOT_COUNT; i += 257) {
        const struct map_group *group = cluster_map_group(&map, (struct slot){(uint16_t)i});

        assert(!group || (size_t)(group - map.groups) < map.group_count);
        assert(!group || group->member_count <= MAP_CHAIN_MEMBERS_MAX);
    }
    for (uint32_t i = 0; i < cluster_map_log_places(&map); i++) {
        (void)cluster_map_log_at(&map, i);
    }
    for (uint32_t i = 0; i < map.target_count; i++) {
        (void)cluster_map_log_of(&map, map.targets[i].id);
    }
}

static struct bytes encode(const struct cluster_map *from, uint8_t *to) {
    size_t size = cluster_map_size(from);
    struct buffer out = {to, 0, size};

    assert(size <= MAP_BYTES_MAX);
    cluster_map_encode(from, &out);
    assert(out.size == size);
    return (struct bytes){to, size};
}

/* The first byte says whether the checksum is put right: else hardly anything got past it. */
void fuzz_cluster_map(struct bytes in) {
    struct wire_cursor cursor = fuzz_cursor(in);
    bool repairs = wire_take_number(&cursor, 1) & 1;
    struct bytes data = fuzz_rest(&cursor);

    if (repairs && data.size >= CRC_BYTES && data.size <= sizeof space) {
        memcpy(space, data.data, data.size);
        store_le32(space + data.size - CRC_BYTES, crc32c(0, space, data.size - CRC_BYTES));
        data.data = space;
    }
    int r = cluster_map_decode(data, &map);
    if (r < 0) {
        assert(r == -ERR_MALFORMED || r == -ERR_CORRUPT || r == -ERR_NEWER_FORMAT ||
               r == -ERR_OLDER_FORMAT);
        return;
    }
    check_look_ups();
    struct bytes encoded = encode(&map, space);
    r = cluster_map_decode(encoded, &again);
    assert(r == 0 && fuzz_is_same(encode(&again, space_again), encoded));
}

void seed_cluster_map(const struct fuzz_seeds *seeds) {
    const struct target_id osts[] = {{2}, {3}, {4}};
    const uint32_t more[] = {5};

    memset(&map, 0, sizeof map);
    map.cluster_id[0] = 9;
    cluster_map_single(&map, (struct target_id){1}, osts, ARRAY_SIZE(osts));
    memcpy(map.nodes[0].address, "10.0.0.1:7400", 14);
    for (int i = 0; i < 2; i++) {
        struct bytes encoded = encode(&map, space + 1);

        space[0] = 1;
        fuzz_seed(seeds, (struct bytes){space, encoded.size + 1});
        int r = cluster_map_add_ost(&map, (struct node_id){1}, (struct target_id){5},
                                    (struct log_id){77});
        assert(r == 0);
        r = cluster_map_grow_pool(&map, more, ARRAY_SIZE(more));
        assert(r == 0);
        map.slot_groups[100] = 1;
        r = cluster_map_revoke(&map, 0x0123456789abcdef);
        assert(r == 0);
        map.capability_number = 3;
    }
}

static void base_make(struct cluster_map *base) {
    const struct target_id osts[] = {{2}, {3}};

    memset(base, 0, sizeof *base);
    base->cluster_id[0] = 9;
    cluster_map_single(base, (struct target_id){1}, osts, ARRAY_SIZE(osts));
}

/* Both sums of the first change: that of its bytes, and that of the map that it makes, which a
 * first try has left in `map`. */
static void change_repair(struct bytes data, bool of_map) {
    size_t size = data.size >= CHANGE_MAP_CRC_AT + 8 ? load_le32(space + CHANGE_SIZE_AT) : 0;

    if (size >= CHANGE_MAP_CRC_AT + 8 && size <= data.size) {
        if (of_map) {
            store_le32(space + CHANGE_MAP_CRC_AT, cluster_map_crc(&map));
        }
        store_le32(space + size - CRC_BYTES, crc32c(0, space, size - CRC_BYTES));
    }
}

/* What is taken makes a map as any other. */
void fuzz_map_changes(struct bytes in) {
    struct wire_cursor cursor = fuzz_cursor(in);
    bool repairs = wire_take_number(&cursor, 1) & 1;
    struct bytes data = fuzz_rest(&cursor);

    if (data.size > sizeof space) {
        return;
    }
    memcpy(space, data.data, data.size);
    data.data = space;
    base_make(&map);
    if (repairs) {
        change_repair(data, false);
    }
    int r = cluster_map_changes_apply(&map, data);
    if (r == -ERR_STALE_MAP && repairs) {
        change_repair(data, true);
        base_make(&map);
        r = cluster_map_changes_apply(&map, data);
    }
    if (r < 0) {
        assert(r == -ERR_MALFORMED || r == -ERR_CORRUPT || r == -ERR_NEWER_FORMAT ||
               r == -ERR_STALE_MAP);
        return;
    }
    check_look_ups();
    struct bytes encoded = encode(&map, space);
    r = cluster_map_decode(encoded, &again);
    assert(r == 0 && fuzz_is_same(encode(&again, space_again), encoded));
}

void seed_map_changes(const struct fuzz_seeds *seeds) {
    const uint32_t more[] = {5};
    struct buffer out = {space, 1, sizeof space};

    base_make(&again);
    map = again;
    space[0] = 1;
    for (int i = 0; i < 2; i++) {
        map.version++;
        int r = cluster_map_add_ost(&map, (struct node_id){1}, (struct target_id){5 + i},
                                    (struct log_id){77});
        assert(r == 0);
        r = cluster_map_grow_pool(&map, more, ARRAY_SIZE(more));
        assert(r == 0);
        r = cluster_map_add_mdt(&map, (struct node_id){1}, (struct target_id){50 + i});
        assert(r == 0);
        map.nodes[1].id.value = 2;
        map.node_count = 2;
        memcpy(map.nodes[i].address, "10.0.0.1:7400", 14);
        map.slot_groups[100 + i] = 1;
        map.signing_key = 7 + (unsigned)i;
        map.capability_number = 2 + (unsigned)i;
        r = cluster_map_revoke(&map, UINT64_C(0x0123456789abcdef) + (unsigned)i);
        assert(r == 0);
        r = cluster_map_change_encode(&again, &map, &out);
        assert(r == 0);
        fuzz_seed(seeds, (struct bytes){space, out.size});
        again = map;
    }
}
