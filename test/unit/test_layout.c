/* Placement spreads evenly and never changes; the map survives its bytes and refuses others. */

#include "unit.h"
#include "base/crc32c.h"
#include "base/endian.h"
#include "base/err.h"
#include "base/prng.h"
#include "layout/map_lost.h"
#include "layout/map_pools.h"
#include "layout/cluster_map.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEED = 77 };

static struct pool_version pool_of(uint32_t count) {
    static uint32_t chains[16];

    for (uint32_t i = 0; i < count; i++) {
        chains[i] = 100 + i;
    }
    return (struct pool_version){.version = 1, .chain_count = count, .chains = chains};
}

static void test_valid_layouts(void **state) {
    (void)state;
    const struct {
        struct layout layout;
        bool valid;
    } rows[] = {
        {{.chunk_bytes = CHUNK_BYTES_DEFAULT, .stripe_count = 1}, true},
        {{.chunk_bytes = CHUNK_BYTES_MIN, .stripe_count = STRIPE_ALL}, true},
        {{.chunk_bytes = CHUNK_BYTES_MAX, .stripe_count = 4}, true},
        {{.chunk_bytes = CHUNK_BYTES_MAX + SEGMENT_BYTES, .stripe_count = 4}, false},
        {{.chunk_bytes = CHUNK_BYTES_MIN + BLOCK_BYTES, .stripe_count = 4}, false},
        {{.chunk_bytes = 0, .stripe_count = 4}, false},
        {{.chunk_bytes = CHUNK_BYTES_DEFAULT, .stripe_count = 0}, false},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        assert_int_equal(layout_is_valid(&rows[i].layout), rows[i].valid);
    }
}

static void test_stripes_use_exactly_their_width(void **state) {
    (void)state;
    struct pool_version pool = pool_of(7);

    for (uint32_t seed = 0; seed < 100; seed++) {
        struct layout layout = {
            .chunk_bytes = CHUNK_BYTES_DEFAULT, .stripe_count = 3, .seed = seed};
        uint32_t used[7] = {0};

        for (uint64_t chunk = 0; chunk < 300; chunk++) {
            uint32_t chain = layout_chain(&layout, &pool, chunk);

            assert_int_equal(chain, layout_chain(&layout, &pool, chunk + 3));
            used[chain - 100]++;
        }
        uint32_t width = 0;
        for (size_t i = 0; i < 7; i++) {
            assert_true(used[i] == 0 || used[i] == 100);
            width += used[i] > 0;
        }
        assert_int_equal(width, 3);
    }
}

static void test_small_files_spread(void **state) {
    (void)state;
    struct pool_version pool = pool_of(8);
    uint32_t used[8] = {0};

    for (uint32_t seed = 0; seed < 80000; seed++) {
        struct layout layout = {
            .chunk_bytes = CHUNK_BYTES_DEFAULT, .stripe_count = 1, .seed = seed};

        used[layout_chain(&layout, &pool, 0) - 100]++;
    }
    for (size_t i = 0; i < 8; i++) {
        assert_in_range(used[i], 9500, 10500);
    }
}

static void test_map_bytes(void **state) {
    (void)state;
    const struct target_id osts[] = {{2}, {3}, {4}};
    struct cluster_map *map = calloc(1, sizeof *map);
    struct cluster_map *again = calloc(1, sizeof *again);
    struct prng prng;

    assert_true(map && again);
    cluster_map_single(map, (struct target_id){1}, osts, ARRAY_SIZE(osts));
    map->slot_groups[5] = 0;
    map->name_hash_key[0] = 99;
    map->nodes[map->node_count++] = (struct map_node){
        .id = {2}, .key = {7, 8}, .first_target = 10, .target_count = 1, .address = "[::1]:7400"};
    assert_int_equal(
        cluster_map_add_ost(map, (struct node_id){2}, (struct target_id){10}, (struct log_id){55}),
        0);
    assert_int_equal(cluster_map_grow_pool(map, (const uint32_t[]){10}, 1), 0);
    size_t size = cluster_map_size(map);
    struct buffer out = {malloc(size), 0, size};
    assert_non_null(out.data);
    cluster_map_encode(map, &out);
    assert_int_equal(out.size, size);
    assert_int_equal(cluster_map_decode((struct bytes){out.data, size}, again), 0);
    assert_int_equal(again->target_count, 5);
    assert_int_equal(again->name_hash_key[0], 99);
    assert_int_equal(cluster_map_group(again, (struct slot){65535})->members[0].value, 1);
    assert_int_equal(cluster_map_target(again, (struct target_id){3})->kind, TARGET_OST);
    assert_null(cluster_map_chain(again, 9));
    assert_string_equal(cluster_map_node(again, (struct node_id){2})->address, "[::1]:7400");
    assert_int_equal(cluster_map_node(again, (struct node_id){2})->key[1], 8);
    assert_int_equal(cluster_map_log_of(again, (struct target_id){10}).value, 55);

    /* The older version stays what it was; the newer has it at its beginning. */
    struct pool_version old, new;
    assert_true(cluster_map_pool(again, 1, &old) && cluster_map_pool(again, 0, &new));
    assert_int_equal(new.version, 2);
    assert_int_equal(old.chain_count, 3);
    assert_int_equal(new.chain_count, 4);
    assert_ptr_equal(old.chains, new.chains);
    assert_int_equal(new.chains[3], 10);
    assert_false(cluster_map_pool(again, 3, &new));

    prng_init(&prng, SEED);
    for (int i = 0; i < 500; i++) {
        size_t at = prng_below(&prng, size);
        uint8_t bit = (uint8_t)(1U << prng_below(&prng, 8));

        out.data[at] ^= bit;
        assert_int_equal(cluster_map_decode((struct bytes){out.data, size}, again), -ERR_CORRUPT);
        out.data[at] ^= bit;
        assert_true(cluster_map_decode((struct bytes){out.data, at}, again) < 0);
    }
    free(out.data);
    free(again);
    free(map);
}

static int map_again(const struct cluster_map *map, const struct bytes *section,
                     struct cluster_map *ret_again) {
    size_t size = cluster_map_size(map) + section->size;
    struct buffer out = {malloc(size), 0, size};

    cluster_map_encode(map, &out);
    if (section->size > 0) {
        out.size -= sizeof(uint32_t);
        memcpy(out.data + out.size, section->data, section->size);
        out.size += section->size;
        store_le32(out.data + out.size, crc32c(0, out.data, out.size));
        out.size += sizeof(uint32_t);
    }
    int r = cluster_map_decode((struct bytes){out.data, out.size}, ret_again);
    free(out.data);
    return r;
}

/* Serials are a section behind the rest: one of a later version is passed over, and a map without
 * it is one that revokes nothing. */
static void test_a_map_names_revoked_serials(void **state) {
    struct cluster_map *map = calloc(1, sizeof *map);
    struct cluster_map *again = calloc(1, sizeof *again);
    const struct {
        uint8_t bytes[16];
        size_t size;
        int result;
    } rows[] = {
        {{0}, 0, 0},
        {{9, 0, 0, 0, 3, 0, 0, 0, 1, 2, 3}, 11, 0},
        {{9, 0, 0, 0, 0, 0, 0, 0}, 8, 0},
        {{9, 0, 0, 0, 4, 0, 0, 0, 1, 2, 3}, 11, -ERR_MALFORMED},
        {{9, 0, 0}, 3, -ERR_MALFORMED},
        {{1, 0, 0, 0, 8, 0, 0, 0, 5}, 16, -ERR_MALFORMED}, /* a second one */
    };

    (void)state;
    cluster_map_single(map, (struct target_id){1}, &(struct target_id){2}, 1);
    assert_int_equal(map_again(map, &(struct bytes){NULL, 0}, again), 0);
    assert_int_equal(again->revoked_count, 0);
    assert_int_equal(cluster_map_revoke(map, 0), -ERR_INVALID);
    for (uint64_t serial = MAP_REVOKED_MAX; serial > 0; serial--) {
        assert_int_equal(cluster_map_revoke(map, serial), 0);
        assert_int_equal(cluster_map_revoke(map, serial), 0);
    }
    assert_int_equal(cluster_map_revoke(map, MAP_REVOKED_MAX + 1), -ERR_TOO_MANY_REVOKED);
    assert_int_equal(cluster_map_revoke(map, 7), 0);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct bytes section = {rows[i].bytes, rows[i].size};

        assert_int_equal(map_again(map, &section, again), rows[i].result);
        if (rows[i].result == 0) {
            assert_int_equal(again->revoked_count, MAP_REVOKED_MAX);
            assert_true(cluster_map_is_revoked(again, 1) &&
                        cluster_map_is_revoked(again, MAP_REVOKED_MAX));
            assert_false(cluster_map_is_revoked(again, MAP_REVOKED_MAX + 1));
        }
    }
    free(map);
    free(again);
}

/* Likewise, and a map without it names no key. */
static void test_a_map_names_the_key_that_signs(void **state) {
    struct cluster_map *map = calloc(1, sizeof *map);
    struct cluster_map *again = calloc(1, sizeof *again);
    const struct {
        uint8_t bytes[16];
        size_t size;
        int result;
    } rows[] = {
        {{0}, 0, 0},
        {{2, 0, 0, 0, 8, 0, 0, 0, 5}, 16, -ERR_MALFORMED}, /* a second one */
        {{2, 0, 0, 0, 8, 0, 0, 0, 5}, 16, 0},              /* these without a first one */
        {{2, 0, 0, 0, 8, 0, 0, 0, 0}, 16, -ERR_MALFORMED},
        {{2, 0, 0, 0, 7, 0, 0, 0, 5}, 15, -ERR_MALFORMED},
        {{2, 0, 0, 0, 0, 0, 0, 0}, 8, -ERR_MALFORMED},
    };

    (void)state;
    cluster_map_single(map, (struct target_id){1}, &(struct target_id){2}, 1);
    assert_int_equal(map_again(map, &(struct bytes){NULL, 0}, again), 0);
    assert_true(again->signing_key == 0);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct bytes section = {rows[i].bytes, rows[i].size};

        map->signing_key = i < 2 ? UINT64_C(0x8000000000000001) : 0;
        assert_int_equal(map_again(map, &section, again), rows[i].result);
        assert_true(rows[i].result < 0 || again->signing_key == (i < 2 ? map->signing_key : 5));
    }
    free(map);
    free(again);
}

/* Likewise. A map that tells no number has not a byte more than one of the version before. */
static void test_a_map_tells_the_number_of_keys(void **state) {
    struct cluster_map *map = calloc(1, sizeof *map);
    struct cluster_map *again = calloc(1, sizeof *again);
    const struct {
        uint8_t bytes[16];
        size_t size;
        int result;
    } rows[] = {
        {{0}, 0, 0},
        {{3, 0, 0, 0, 4, 0, 0, 0, 5}, 12, -ERR_MALFORMED}, /* a second one */
        {{3, 0, 0, 0, 4, 0, 0, 0, 5}, 12, 0},              /* these without a first one */
        {{3, 0, 0, 0, 4, 0, 0, 0, 0}, 12, -ERR_MALFORMED},
        {{3, 0, 0, 0, 3, 0, 0, 0, 5}, 11, -ERR_MALFORMED},
        {{3, 0, 0, 0, 8, 0, 0, 0, 5}, 16, -ERR_MALFORMED},
        {{3, 0, 0, 0, 0, 0, 0, 0}, 8, -ERR_MALFORMED},
    };

    (void)state;
    cluster_map_single(map, (struct target_id){1}, &(struct target_id){2}, 1);
    size_t size = cluster_map_size(map);
    again->capability_number = 9;
    assert_int_equal(map_again(map, &(struct bytes){NULL, 0}, again), 0);
    assert_int_equal(again->capability_number, 0);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct bytes section = {rows[i].bytes, rows[i].size};

        map->capability_number = i < 2 ? UINT32_C(0x80000001) : 0;
        assert_int_equal(cluster_map_size(map), size + (i < 2 ? 12 : 0));
        assert_int_equal(map_again(map, &section, again), rows[i].result);
        assert_true(rows[i].result < 0 ||
                    again->capability_number == (i < 2 ? map->capability_number : 5));
    }
    free(map);
    free(again);
}

/* For good, and no new file goes there; the last storage target can't be. */
static void test_a_target_is_lost(void **state) {
    (void)state;
    const struct target_id osts[] = {{2}, {3}, {4}};
    struct cluster_map *map = calloc(1, sizeof *map);
    struct cluster_map *again = calloc(1, sizeof *again);
    struct pool_version pool;

    assert_true(map && again);
    cluster_map_single(map, (struct target_id){1}, osts, ARRAY_SIZE(osts));
    assert_int_equal(cluster_map_lose(map, (struct target_id){1}), -ERR_ROOT_TARGET);
    assert_int_equal(cluster_map_lose(map, (struct target_id){9}), -ERR_NOT_FOUND);
    assert_int_equal(map->pool_count, 1);
    assert_int_equal(cluster_map_lose(map, (struct target_id){3}), 0);
    assert_int_equal(cluster_map_lose(map, (struct target_id){3}), -ERR_TARGET_LOST);
    assert_true(cluster_map_pool(map, 0, &pool));
    assert_int_equal(pool.version, 2);
    assert_int_equal(pool.chain_count, 2);
    assert_int_equal(pool.chains[1], 4);
    assert_false(cluster_map_pool_is_whole(map, 1));
    assert_true(cluster_map_pool_is_whole(map, 2) && cluster_map_pool_is_whole(map, 0));
    assert_false(cluster_map_pool_is_whole(map, 3));

    size_t size = cluster_map_size(map);
    struct buffer out = {malloc(size), 0, size};
    assert_non_null(out.data);
    cluster_map_encode(map, &out);
    assert_int_equal(cluster_map_decode((struct bytes){out.data, size}, again), 0);
    assert_true(cluster_map_is_lost(again, (struct target_id){3}));
    assert_true(cluster_map_chain_is_lost(again, 3) && !cluster_map_chain_is_lost(again, 4));
    assert_false(cluster_map_is_lost(again, (struct target_id){9}));

    /* What the newest version lacks anyway needs none; where it had just this one, others come. */
    assert_int_equal(cluster_map_put_pool(map, (const uint32_t[]){2}, 1), 0);
    map->pool_count = MAP_POOL_VERSIONS_MAX;
    map->pools[MAP_POOL_VERSIONS_MAX - 1] = map->pools[2];
    assert_int_equal(cluster_map_lose(map, (struct target_id){2}), -ERR_NO_SPACE);
    assert_false(cluster_map_is_lost(map, (struct target_id){2}));
    map->pool_count = 3;
    assert_int_equal(cluster_map_lose(map, (struct target_id){2}), 0);
    assert_true(cluster_map_pool(map, 0, &pool));
    assert_int_equal(pool.version, 4);
    assert_int_equal(pool.chain_count, 1);
    assert_int_equal(pool.chains[0], 4);
    assert_int_equal(cluster_map_lose(map, (struct target_id){4}), -ERR_LAST_TARGET);
    assert_true(cluster_map_pool_is_whole(map, 0));
    free(out.data);
    free(map);
    free(again);
}

/* Of a metadata target nothing but its state changes: its slots are its, and no pool version is
 * made. */
static void test_a_metadata_target_is_lost(void **state) {
    (void)state;
    const struct target_id ost = {2};
    struct cluster_map *map = calloc(1, sizeof *map);
    const struct target_id mdts[] = {{3}, {4}};

    assert_non_null(map);
    cluster_map_single(map, (struct target_id){1}, &ost, 1);
    assert_int_equal(cluster_map_add_mdts(map, mdts, ARRAY_SIZE(mdts)), 0);
    struct slot last = {SLOT_COUNT - 1};
    struct log_id log = cluster_map_log_of(map, mdts[1]);
    assert_false(cluster_map_slot_is_lost(map, last));
    assert_int_equal(cluster_map_lose(map, (struct target_id){1}), -ERR_ROOT_TARGET);
    assert_int_equal(cluster_map_lose(map, mdts[1]), 0);
    assert_int_equal(cluster_map_lose(map, mdts[1]), -ERR_TARGET_LOST);
    assert_int_equal(map->pool_count, 1);
    assert_true(cluster_map_slot_is_lost(map, last));
    assert_false(cluster_map_slot_is_lost(map, (struct slot){0}));
    assert_true(cluster_map_group_is_lost(map, &map->groups[2]));
    assert_false(cluster_map_group_is_lost(map, &map->groups[1]));
    assert_true(cluster_map_place_is_lost(map, 2));
    assert_false(cluster_map_place_is_lost(map, 1));
    for (uint32_t i = 0; i < map->target_count; i++) {
        bool is_it = map->targets[i].id.value == mdts[1].value;

        assert_int_equal(cluster_map_lost_log(map, i).value, is_it ? log.value : 0);
    }
    assert_int_equal(cluster_map_lose(map, mdts[0]), 0);
    assert_int_equal(cluster_map_lose(map, (struct target_id){1}), -ERR_ROOT_TARGET);
    /* A cluster whose slot 0 nobody serves may keep its last one all the same. */
    map->slot_groups[0] = 1;
    assert_int_equal(cluster_map_lose(map, (struct target_id){1}), -ERR_LAST_TARGET);
    free(map);
}

/* By what it has come back with, and while any of it is left. */
static void test_who_is_a_member(void **state) {
    (void)state;
    const struct target_id osts[] = {{2}, {3}};
    struct cluster_map *map = calloc(1, sizeof *map);
    struct map_node *node;

    assert_non_null(map);
    cluster_map_single(map, (struct target_id){1}, osts, ARRAY_SIZE(osts));
    assert_true(cluster_map_node_is_member(map, &map->nodes[0]));
    node = &map->nodes[map->node_count++];
    *node = (struct map_node){.id = {2}, .first_target = 4, .target_count = 2};
    assert_false(cluster_map_node_is_member(map, node));
    snprintf(node->address, sizeof node->address, "10.0.0.2:7400");
    assert_false(cluster_map_node_is_member(map, node));
    for (uint32_t i = 4; i <= 5; i++) {
        assert_int_equal(
            cluster_map_add_ost(map, node->id, (struct target_id){i}, (struct log_id){i}), 0);
    }
    for (uint32_t i = 4; i <= 5; i++) {
        assert_true(cluster_map_node_is_member(map, node));
        assert_int_equal(cluster_map_lose(map, (struct target_id){i}), 0);
    }
    assert_false(cluster_map_node_is_member(map, node));
    node = &map->nodes[map->node_count++];
    *node = (struct map_node){.id = {3}, .first_target = 6};
    assert_false(cluster_map_node_is_member(map, node));
    snprintf(node->address, sizeof node->address, "10.0.0.3:7400");
    assert_true(cluster_map_node_is_member(map, node));
    free(map);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_valid_layouts),
        cmocka_unit_test(test_stripes_use_exactly_their_width),
        cmocka_unit_test(test_small_files_spread),
        cmocka_unit_test(test_map_bytes),
        cmocka_unit_test(test_a_target_is_lost),
        cmocka_unit_test(test_a_metadata_target_is_lost),
        cmocka_unit_test(test_who_is_a_member),
        cmocka_unit_test(test_a_map_names_revoked_serials),
        cmocka_unit_test(test_a_map_tells_the_number_of_keys),
        cmocka_unit_test(test_a_map_names_the_key_that_signs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
