/* What a manager is made of whose log is gone: of several maps the newest, of several words on a
 * slot that of the highest hand-over, and nobody who has ended anywhere. */
#include "unit.h"
#include "layout/map_lost.h"
#include "manager/rebuilt.h"
#include <stdlib.h>
#include <string.h>

enum { ROOT_MDT = 2, OST = 10, JOINED_MDT = 20, JOINED_OST = 21, SECOND = 30 };

struct desk {
    struct cluster_map map;   /* of two nodes, each with a metadata and a storage target */
    struct cluster_map other; /* that a node tells */
    struct rebuilt *rebuilt;
};

static struct log_id log_of(const struct cluster_map *map, uint32_t target) {
    return cluster_map_log_of(map, (struct target_id){target});
}

static void node_add(struct cluster_map *map, uint32_t id, uint32_t first_target) {
    struct target_id mdt = {first_target};
    struct target_id ost = {first_target + 1};

    map->nodes[map->node_count++] = (struct map_node){.id = {id},
                                                      .key = {id, 1},
                                                      .first_target = first_target,
                                                      .target_count = 2,
                                                      .mdt_count = 1};
    assert_int_equal(cluster_map_add_mdt(map, (struct node_id){id}, mdt), 0);
    assert_int_equal(
        cluster_map_add_ost(map, (struct node_id){id}, ost, cluster_map_first_log(map, ost)), 0);
    assert_int_equal(cluster_map_grow_pool(map, &ost.value, 1), 0);
    map->version++;
}

static int setup(void **state) {
    const struct target_id ost = {OST};
    struct desk *desk = calloc(1, sizeof *desk);

    desk->map.cluster_id[0] = 1;
    cluster_map_single(&desk->map, (struct target_id){ROOT_MDT}, &ost, 1);
    node_add(&desk->map, 2, JOINED_MDT);
    desk->map.version = 40;
    cluster_map_copy(&desk->other, &desk->map);
    assert_int_equal(rebuilt_new(&desk->map, &desk->rebuilt), 0);
    *state = desk;
    return 0;
}

static int teardown(void **state) {
    struct desk *desk = *state;

    rebuilt_free(desk->rebuilt);
    free(desk);
    return 0;
}

static bool map_add(struct desk *desk) {
    bool is_newer = false;

    assert_int_equal(rebuilt_map_add(desk->rebuilt, &desk->other, &is_newer), 0);
    return is_newer;
}

static void test_newest_map(void **state) {
    struct desk *desk = *state;

    assert_false(map_add(desk));
    desk->other.version = 12;
    assert_false(map_add(desk));
    desk->other.version = 40;
    node_add(&desk->other, 3, SECOND);
    assert_true(map_add(desk));
    assert_false(map_add(desk));
    assert_true(rebuilt_needs(desk->rebuilt, &desk->other.nodes[2]));
    cluster_map_copy(&desk->other, &desk->map);
    assert_false(map_add(desk));
    assert_int_equal(rebuilt_finish(desk->rebuilt), 0);
    assert_int_equal(desk->rebuilt->map->node_count, 3);
    assert_int_equal(desk->rebuilt->map->version, 41 + REBUILT_STEP);
}

/* Nobody else has told one: that of the own DIR. */
static void test_no_map_but_the_own(void **state) {
    struct desk *desk = *state;

    assert_int_equal(rebuilt_finish(desk->rebuilt), 0);
    assert_int_equal(desk->rebuilt->map->version, 40 + REBUILT_STEP);
    assert_int_equal(desk->rebuilt->next_session, 1 + REBUILT_STEP_SESSIONS);
    assert_int_equal(desk->rebuilt->ended_number, REBUILT_STEP);
    assert_int_equal(desk->rebuilt->handover, REBUILT_STEP_SHORT);
}

/* Of one version there is one map, and all are of one cluster. What is refused changes nothing. */
static void test_maps_that_disagree(void **state) {
    struct desk *desk = *state;
    bool is_newer = true;

    assert_int_equal(cluster_map_revoke(&desk->other, 77), 0);
    assert_int_equal(rebuilt_map_add(desk->rebuilt, &desk->other, &is_newer), -ERR_CONFLICT);
    assert_false(is_newer);
    cluster_map_copy(&desk->other, &desk->map);
    desk->other.signing_key = 5;
    assert_int_equal(rebuilt_map_add(desk->rebuilt, &desk->other, &is_newer), -ERR_CONFLICT);
    desk->other.version = 900;
    desk->other.cluster_id[0] = 2;
    assert_int_equal(rebuilt_map_add(desk->rebuilt, &desk->other, &is_newer), -ERR_OTHER_CLUSTER);
    assert_int_equal(desk->rebuilt->map->version, 40);
    assert_false(cluster_map_is_revoked(desk->rebuilt->map, 77));
}

static void test_nodes_that_are_gone(void **state) {
    struct desk *desk = *state;
    const struct cluster_map *map = desk->rebuilt->map;

    assert_int_equal(rebuilt_lose(desk->rebuilt, (struct node_id){1}), -ERR_ROOT_TARGET);
    assert_true(rebuilt_needs(desk->rebuilt, &map->nodes[1]));
    assert_int_equal(rebuilt_lose(desk->rebuilt, (struct node_id){2}), 0);
    assert_false(rebuilt_needs(desk->rebuilt, &map->nodes[1]));
    assert_true(cluster_map_is_lost(map, (struct target_id){JOINED_MDT}));
    assert_true(cluster_map_is_lost(map, (struct target_id){JOINED_OST}));
    assert_true(cluster_map_pool_is_whole(map, 0));
    assert_false(cluster_map_is_lost(map, (struct target_id){OST}));
}

struct run {
    uint32_t first, count;
};

static int slots_say(struct desk *desk, uint32_t by, struct run run, uint64_t handover,
                     struct log_id of) {
    const struct rebuilt_slots slots = {run.first, run.count, handover, of};

    return rebuilt_slots_add(desk->rebuilt, log_of(&desk->map, by), &slots);
}

/* The map has 0 to 65535 at the first group. A giver has given what the map does not have; the
 * receiver has some of it; and some went to a log of which there is nothing else. */
static void test_slots(void **state) {
    struct desk *desk = *state;
    const struct cluster_map *map = desk->rebuilt->map;
    struct log_id first = log_of(&desk->map, ROOT_MDT);
    struct log_id joined = log_of(&desk->map, JOINED_MDT);
    struct log_id unknown = {joined.value + 1};

    assert_int_equal(slots_say(desk, ROOT_MDT, (struct run){0, 100}, 0, first), 0);
    assert_int_equal(slots_say(desk, JOINED_MDT, (struct run){200, 50}, 7, joined), 0);
    assert_int_equal(slots_say(desk, ROOT_MDT, (struct run){200, 100}, 7, joined), 0);
    assert_int_equal(slots_say(desk, ROOT_MDT, (struct run){300, 100}, 9, unknown), 0);
    /* It has given back what it had got. */
    assert_int_equal(slots_say(desk, JOINED_MDT, (struct run){240, 10}, 8, first), 0);
    assert_int_equal(slots_say(desk, ROOT_MDT, (struct run){240, 10}, 7, joined), 0);
    assert_int_equal(rebuilt_finish(desk->rebuilt), 0);
    assert_int_equal(desk->rebuilt->handover, 9 + REBUILT_STEP_SHORT);
    for (uint32_t slot = 0; slot < SLOT_COUNT; slot++) {
        bool is_joined = slot >= 200 && slot < 300 && (slot < 240 || slot >= 250);
        bool is_back = slot >= 300 && slot < 400;
        uint32_t handover = slot >= 240 && slot < 250 ? 8 : is_joined ? 7 : 0;

        assert_int_equal(map->slot_groups[slot], is_joined ? 1 : 0);
        assert_int_equal(map->slot_handovers[slot], is_back ? desk->rebuilt->handover : handover);
    }
}

static void test_slots_that_no_log_has(void **state) {
    struct desk *desk = *state;
    struct log_id first = log_of(&desk->map, ROOT_MDT);
    const struct rebuilt_slots slots = {0, 1, 1, first};

    assert_int_equal(slots_say(desk, ROOT_MDT, (struct run){0, 0}, 1, first), -ERR_CORRUPT);
    assert_int_equal(slots_say(desk, ROOT_MDT, (struct run){SLOT_COUNT, 1}, 1, first),
                     -ERR_CORRUPT);
    assert_int_equal(slots_say(desk, ROOT_MDT, (struct run){1, SLOT_COUNT}, 1, first),
                     -ERR_CORRUPT);
    assert_int_equal(slots_say(desk, ROOT_MDT, (struct run){0, 1}, UINT32_MAX, first),
                     -ERR_CORRUPT);
    assert_int_equal(rebuilt_slots_add(desk->rebuilt, (struct log_id){99}, &slots), -ERR_CORRUPT);
}

static int session_say(struct desk *desk, uint64_t id, uint64_t incarnation) {
    const struct rebuilt_session session = {{id}, incarnation, 1};

    return rebuilt_session_add(desk->rebuilt, &session);
}

/* By the rows of some targets and the lists of others, in any order. */
static void test_sessions(void **state) {
    struct desk *desk = *state;
    const struct rebuilt *rebuilt = desk->rebuilt;
    const uint8_t bits[2] = {0x10, 0x80}; /* of the second stretch: 4100 and 4111 */
    const uint8_t more = 0x20;            /* 4101 */

    assert_int_equal(session_say(desk, 4101, 11), 0);
    assert_int_equal(session_say(desk, 4099, 12), 0);
    assert_int_equal(rebuilt_ended_add(desk->rebuilt, 1, (struct bytes){bits, 2}), 0);
    assert_int_equal(rebuilt_list_add(desk->rebuilt, 70, 33), 0);
    assert_int_equal(session_say(desk, 4100, 13), 0);
    assert_int_equal(session_say(desk, 4099, 12), 0);
    assert_int_equal(session_say(desk, 32, 14), 0);
    assert_int_equal(session_say(desk, 33, 15), 0);
    assert_int_equal(rebuilt_ended_add(desk->rebuilt, 1, (struct bytes){&more, 1}), 0);
    assert_int_equal(rebuilt_ended_add(desk->rebuilt, 0, (struct bytes){NULL, 0}), 0);
    assert_int_equal(rebuilt_list_add(desk->rebuilt, 69, 20), 0);
    assert_int_equal(rebuilt_finish(desk->rebuilt), 0);
    assert_int_equal(rebuilt->session_count, 2);
    assert_int_equal(rebuilt->sessions[0].id.value, 33);
    assert_int_equal(rebuilt->sessions[0].incarnation, 15);
    assert_int_equal(rebuilt->sessions[1].id.value, 4099);
    assert_int_equal(rebuilt->next_session, 4112 + REBUILT_STEP_SESSIONS);
    assert_int_equal(rebuilt->ended_number, 70 + REBUILT_STEP);
}

/* Where nobody lives the lowest is the next number. */
static void test_the_lowest_is_above_all(void **state) {
    struct desk *desk = *state;

    assert_int_equal(session_say(desk, 7, 11), 0);
    assert_int_equal(rebuilt_list_add(desk->rebuilt, 5, 50), 0);
    assert_int_equal(rebuilt_finish(desk->rebuilt), 0);
    assert_int_equal(desk->rebuilt->session_count, 0);
    assert_int_equal(desk->rebuilt->next_session, 50 + REBUILT_STEP_SESSIONS);
}

/* The list of the ended has a bit for each number above the lowest that lives: one number that is
 * far from all others would make it endless. */
static void test_a_session_far_from_all_others(void **state) {
    struct desk *desk = *state;

    assert_int_equal(session_say(desk, 7, 11), 0);
    assert_int_equal(session_say(desk, 7 + REBUILT_SPAN_MAX, 12), 0);
    assert_int_equal(session_say(desk, 8 + REBUILT_SPAN_MAX, 13), 0);
    assert_int_equal(rebuilt_finish(desk->rebuilt), -ERR_CORRUPT);
    assert_false(desk->rebuilt->is_finished);
}

static void test_sessions_far_from_none_that_lives(void **state) {
    struct desk *desk = *state;

    assert_int_equal(session_say(desk, 7, 11), 0);
    assert_int_equal(session_say(desk, 8, 11), 0);
    assert_int_equal(session_say(desk, 8 + REBUILT_SPAN_MAX, 13), 0);
    assert_int_equal(rebuilt_list_add(desk->rebuilt, 5, 8), 0);
    assert_int_equal(rebuilt_finish(desk->rebuilt), 0);
    assert_int_equal(desk->rebuilt->session_count, 2);
}

static void test_sessions_that_no_target_has(void **state) {
    struct desk *desk = *state;
    const uint8_t bits[REBUILT_BITS / 8 + 1] = {0};

    assert_int_equal(session_say(desk, 0, 1), -ERR_CORRUPT);
    assert_int_equal(session_say(desk, 1, 0), -ERR_CORRUPT);
    assert_int_equal(session_say(desk, UINT64_MAX, 1), -ERR_CORRUPT);
    assert_int_equal(rebuilt_list_add(desk->rebuilt, UINT64_MAX, 1), -ERR_CORRUPT);
    assert_int_equal(rebuilt_list_add(desk->rebuilt, 1, UINT64_MAX), -ERR_CORRUPT);
    assert_int_equal(rebuilt_ended_add(desk->rebuilt, 0, (struct bytes){bits, sizeof bits}),
                     -ERR_CORRUPT);
    assert_int_equal(rebuilt_ended_add(desk->rebuilt, UINT64_MAX, (struct bytes){bits, 1}),
                     -ERR_CORRUPT);
}

/* More than any array begins with; each once, by their ids. */
static void test_many(void **state) {
    enum { MANY = 3000 };
    struct desk *desk = *state;
    const uint8_t bits = 1;

    for (uint64_t i = MANY; i > 0; i--) {
        const struct rebuilt_life life = {{i}, 2, i, {i, i}};

        assert_int_equal(session_say(desk, i, i), 0);
        assert_int_equal(rebuilt_ended_add(desk->rebuilt, i, (struct bytes){&bits, 1}), 0);
        assert_int_equal(rebuilt_life_add(desk->rebuilt, &life), 0);
    }
    assert_int_equal(rebuilt_finish(desk->rebuilt), 0);
    assert_int_equal(desk->rebuilt->session_count, MANY);
    assert_int_equal(desk->rebuilt->life_count, MANY);
    for (uint32_t i = 0; i < MANY; i++) {
        assert_int_equal(desk->rebuilt->sessions[i].id.value, i + 1);
        assert_int_equal(desk->rebuilt->ended[i].index, i + 1);
    }
    assert_int_equal(desk->rebuilt->next_session, MANY * REBUILT_BITS + 1 + REBUILT_STEP_SESSIONS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(newest_map),
        TEST(no_map_but_the_own),
        TEST(maps_that_disagree),
        TEST(nodes_that_are_gone),
        TEST(slots),
        TEST(slots_that_no_log_has),
        TEST(sessions),
        TEST(the_lowest_is_above_all),
        TEST(a_session_far_from_all_others),
        TEST(sessions_far_from_none_that_lives),
        TEST(sessions_that_no_target_has),
        TEST(many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
