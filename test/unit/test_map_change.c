/* What one version of the map adds to another makes that very map, and no other. */
#include "unit.h"
#include "base/crc32c.h"
#include "base/endian.h"
#include "base/prng.h"
#include "layout/map_change.h"
#include "layout/map_lost.h"
#include "layout/map_pools.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEED = 91, STEPS = 400, FORMAT_AT = 4, SIZE_AT = 8, HEAD_BYTES = 32, CRC_BYTES = 4 };

static struct {
    struct cluster_map before, now, made;
    uint8_t space[MAP_CHANGES_BYTES_MAX];
    uint8_t whole[2][4 << 20];
    struct prng prng;
    uint32_t next_target;
} it;

static int set_up(void **state) {
    static const struct target_id osts[] = {{3}, {4}};

    (void)state;
    memset(&it, 0, sizeof it);
    prng_init(&it.prng, SEED);
    it.now.cluster_id[0] = 9;
    cluster_map_single(&it.now, (struct target_id){2}, osts, ARRAY_SIZE(osts));
    it.next_target = 5;
    it.before = it.now;
    return 0;
}

static struct bytes whole(const struct cluster_map *map, int which) {
    struct buffer out = {it.whole[which], 0, sizeof it.whole[which]};

    cluster_map_encode(map, &out);
    return (struct bytes){out.data, out.size};
}

static void assert_same(const struct cluster_map *a, const struct cluster_map *b) {
    struct bytes x = whole(a, 0);
    struct bytes y = whole(b, 1);

    assert_int_equal(x.size, y.size);
    assert_memory_equal(x.data, y.data, x.size);
    assert_int_equal(cluster_map_crc(a), load_le32(x.data + x.size - CRC_BYTES));
}

/* A new version, with one of the things that happen to a map. */
static void map_step(void) {
    struct cluster_map *map = &it.now;
    uint64_t lot = prng_below(&it.prng, 10);
    uint32_t some = (uint32_t)prng_below(&it.prng, SLOT_COUNT);

    it.before = *map;
    map->version += 1 + prng_below(&it.prng, 3);
    if (lot == 0) {
        uint32_t chain = it.next_target++;

        (void)!cluster_map_add_ost(map, map->nodes[0].id, (struct target_id){chain},
                                   (struct log_id){chain});
        (void)!cluster_map_grow_pool(map, &chain, 1);
    } else if (lot == 1) {
        (void)!cluster_map_add_mdt(map, map->nodes[0].id, (struct target_id){it.next_target++});
    } else if (lot == 2 && map->node_count < MAP_NODES_MAX) {
        map->nodes[map->node_count] = (struct map_node){.id = {map->node_count + 1}, .key = {some}};
        map->node_count++;
    } else if (lot == 3) {
        snprintf(map->nodes[some % map->node_count].address, ADDRESS_TEXT_BYTES, "10.0.0.%u:7400",
                 some % 250);
    } else if (lot == 4) {
        (void)!cluster_map_revoke(map, some + 1);
    } else if (lot == 5) {
        map->signing_key = some + 1;
    } else if (lot == 8) {
        map->capability_number += 1 + some % 2;
    } else if (lot == 6) {
        (void)!cluster_map_lose(map, (struct target_id){3 + some % (it.next_target - 3)});
    } else if (lot == 7) {
        for (uint32_t i = some; i < SLOT_COUNT && i < some + 500; i += 1 + i % 3) {
            map->slot_groups[i] = (uint16_t)(map->group_count - 1);
            map->slot_handovers[i] = some;
        }
    } else {
        (void)!cluster_map_put_pool(map, &map->chains[some % map->chain_count].id, 1);
    }
}

static struct bytes change_made(void) {
    struct buffer out = {it.space, 0, sizeof it.space};

    assert_int_equal(cluster_map_change_encode(&it.before, &it.now, &out), 0);
    return (struct bytes){out.data, out.size};
}

static int applied_to(const struct cluster_map *base, struct bytes changes) {
    it.made = *base;
    return cluster_map_changes_apply(&it.made, changes);
}

static void test_each_change_makes_the_newer_map(void **state) {
    (void)state;
    for (int i = 0; i < STEPS; i++) {
        map_step();
        assert_int_equal(applied_to(&it.before, change_made()), 0);
        assert_same(&it.made, &it.now);
    }
    assert_true(it.now.capability_number > 20);
    assert_true(it.now.target_count > 50 && it.now.revoked_count > 20 && it.now.pool_count > 50);
}

/* Those of several versions, one behind the other. */
static void test_several_are_applied_in_one_go(void **state) {
    struct cluster_map *first = malloc(sizeof *first);
    struct buffer out = {it.space, 0, sizeof it.space};

    (void)state;
    *first = it.now;
    for (int i = 0; i < 20; i++) {
        map_step();
        assert_int_equal(cluster_map_change_encode(&it.before, &it.now, &out), 0);
    }
    assert_int_equal(applied_to(first, (struct bytes){out.data, out.size}), 0);
    assert_same(&it.made, &it.now);
    free(first);
}

/* Of another version, or of the same one of another map. */
static void test_another_base_is_refused(void **state) {
    struct cluster_map *other = malloc(sizeof *other);

    (void)state;
    map_step();
    struct bytes change = change_made();
    assert_int_equal(applied_to(&it.now, change), -ERR_STALE_MAP);
    *other = it.before;
    other->version++;
    assert_int_equal(applied_to(other, change), -ERR_STALE_MAP);
    for (int i = 0; i < 4; i++) {
        *other = it.before;
        other->revoked_count += i == 0;
        other->revoked[0] = 7;
        other->nodes[0].address[0] = i == 1 ? 'x' : '\0';
        other->slot_handovers[4711] = i == 2;
        other->pool_chains[0] += i == 3;
        assert_int_equal(applied_to(other, change), -ERR_STALE_MAP);
    }
    free(other);
}

static struct bytes crc_put(struct bytes change) {
    size_t body = change.size - CRC_BYTES;

    store_le32(it.space + body, crc32c(0, it.space, body));
    return change;
}

/* Bytes that were cut, or changed, with or without a checksum that says that they were not. */
static void test_damage_is_refused(void **state) {
    (void)state;
    for (int i = 0; i < 30; i++) {
        map_step();
    }
    struct bytes change = change_made();
    assert_int_equal(applied_to(&it.before, (struct bytes){NULL, 0}), -ERR_MALFORMED);
    for (size_t size = 1; size < change.size; size++) {
        assert_int_equal(applied_to(&it.before, (struct bytes){change.data, size}), -ERR_MALFORMED);
    }
    for (size_t at = 0; at < change.size; at++) {
        uint8_t was = it.space[at];

        it.space[at] ^= 0x10;
        assert_true(applied_to(&it.before, change) < 0);
        if (at < change.size - CRC_BYTES) {
            assert_true(applied_to(&it.before, crc_put(change)) < 0);
        }
        it.space[at] = was;
        (void)crc_put(change);
    }
    assert_int_equal(applied_to(&it.before, change), 0);
    it.space[FORMAT_AT]++;
    assert_int_equal(applied_to(&it.before, crc_put(change)), -ERR_NEWER_FORMAT);
}

/* What a newer version adds is passed over, and then the map is another one than it made. */
static void test_a_section_of_a_newer_version_is_passed_over(void **state) {
    (void)state;
    it.now.version++;
    struct bytes change = change_made();
    assert_int_equal(change.size, HEAD_BYTES + CRC_BYTES);
    store_le32(it.space + HEAD_BYTES, 77);
    store_le32(it.space + HEAD_BYTES + 4, 3);
    memcpy(it.space + HEAD_BYTES + 8, "new", 3);
    change.size += 8 + 3;
    store_le32(it.space + SIZE_AT, (uint32_t)change.size);
    assert_int_equal(applied_to(&it.before, crc_put(change)), 0);
    assert_same(&it.made, &it.now);
}

static void test_what_it_cannot_say_is_told(void **state) {
    struct buffer out = {it.space, 0, 100};

    (void)state;
    it.now.signing_key = 5;
    it.before = it.now;
    it.now.version++;
    it.now.signing_key = 0;
    assert_int_equal(cluster_map_change_encode(&it.before, &it.now, &out), -ERR_NOT_SUPPORTED);
    it.now.signing_key = 6;
    it.before.capability_number = 3;
    it.now.capability_number = 2;
    assert_int_equal(cluster_map_change_encode(&it.before, &it.now, &out), -ERR_NOT_SUPPORTED);
    it.now.capability_number = 0;
    assert_int_equal(cluster_map_change_encode(&it.before, &it.now, &out), -ERR_NOT_SUPPORTED);
    it.now.capability_number = 3;
    it.now.node_count = 0;
    assert_int_equal(cluster_map_change_encode(&it.before, &it.now, &out), -ERR_NOT_SUPPORTED);
    it.now.node_count = it.before.node_count;
    for (uint32_t i = 0; i < 100; i++) {
        it.now.slot_handovers[2 * i] = i + 1;
    }
    assert_int_equal(cluster_map_change_encode(&it.before, &it.now, &out), -ERR_TOO_SMALL);
    assert_int_equal(out.size, 0);
}

/* A change without it is as one of the version before; and none lets it sink, or stay. */
static void test_the_number_of_keys_only_rises(void **state) {
    enum { NUMBER_AT = HEAD_BYTES + 8, SECTION_BYTES = 12 };
    const struct {
        uint32_t number;
        int result;
    } rows[] = {{8, 0}, {7, -ERR_MALFORMED}, {6, -ERR_MALFORMED}, {0, -ERR_MALFORMED}};

    (void)state;
    it.before.capability_number = 7;
    it.now.capability_number = 7;
    it.now.version++;
    assert_int_equal(change_made().size, HEAD_BYTES + CRC_BYTES);
    it.now.capability_number = 8;
    struct bytes change = change_made();
    assert_int_equal(change.size, HEAD_BYTES + SECTION_BYTES + CRC_BYTES);
    assert_int_equal(load_le32(it.space + NUMBER_AT), 8);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        store_le32(it.space + NUMBER_AT, rows[i].number);
        assert_int_equal(applied_to(&it.before, crc_put(change)), rows[i].result);
    }
}

/* All that a map may have, from a map that has next to nothing. */
static void test_the_largest_map(void **state) {
    struct buffer out = {malloc(4 << 20), 0, 4 << 20};

    (void)state;
    it.now.version++;
    while (it.now.node_count < MAP_NODES_MAX) {
        it.now.nodes[it.now.node_count].id.value = it.now.node_count + 1;
        memset(it.now.nodes[it.now.node_count++].address, 'x', ADDRESS_TEXT_BYTES - 1);
    }
    while (it.now.group_count < MAP_GROUPS_MAX) {
        assert_int_equal(
            cluster_map_add_mdt(&it.now, (struct node_id){1}, (struct target_id){it.next_target++}),
            0);
    }
    while (it.now.target_count < MAP_TARGETS_MAX) {
        uint32_t chain = it.next_target++;

        assert_int_equal(cluster_map_add_ost(&it.now, (struct node_id){1},
                                             (struct target_id){chain}, (struct log_id){chain}),
                         0);
        assert_int_equal(cluster_map_grow_pool(&it.now, &chain, 1), 0);
    }
    while (it.now.revoked_count < MAP_REVOKED_MAX) {
        assert_int_equal(cluster_map_revoke(&it.now, it.now.revoked_count + 1), 0);
    }
    for (uint32_t i = 0; i < SLOT_COUNT; i++) {
        it.now.slot_groups[i] = (uint16_t)(i % MAP_GROUPS_MAX);
        it.now.slot_handovers[i] = i + 1;
    }
    assert_int_equal(cluster_map_change_encode(&it.before, &it.now, &out), 0);
    assert_int_equal(applied_to(&it.before, (struct bytes){out.data, out.size}), 0);
    assert_same(&it.made, &it.now);
    free(out.data);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup(test_##name, set_up)
    const struct CMUnitTest tests[] = {
        TEST(each_change_makes_the_newer_map),
        TEST(several_are_applied_in_one_go),
        TEST(another_base_is_refused),
        TEST(damage_is_refused),
        TEST(a_section_of_a_newer_version_is_passed_over),
        TEST(what_it_cannot_say_is_told),
        TEST(the_number_of_keys_only_rises),
        TEST(the_largest_map),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
