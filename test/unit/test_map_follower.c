/* Who follows the manager's map: the test is its owner, what carries its calls, and the manager. */
#include "env/env.h"
#include "env/env_sim.h"
#include "layout/map_change.h"
#include "maps/map_follower.h"
#include "unit.h"
#include <stdlib.h>
#include <string.h>

enum { WHO = 4711 };

static struct {
    struct sim *sim;
    struct map_follower follower;
    struct cluster_map *map;    /* in use; NULL: none */
    struct cluster_map *newest; /* the manager's, */
    struct cluster_map *before; /* and what its changes begin with */
    struct call *fetch, *wait;  /* under way */
    uint32_t changes, wholes;   /* that were asked for */
    uint32_t out;               /* maps that were made and not taken */
    bool has_no_memory;
    int take_result;
    uint32_t takes, fetches, watches;
    int fetched;      /* of the last one, */
    uint64_t watched; /* likewise */
} it;

static void hook_start(void *context, struct call *call) {
    assert_ptr_equal(context, &it);
    assert_ptr_equal(call->context, &it.follower);
    if (call->header.opcode == OP_MAP_WAIT) {
        assert_null(it.wait);
        it.wait = call;
        return;
    }
    assert_null(it.fetch);
    assert_true(call->header.opcode == OP_MAP_CHANGES || call->header.opcode == OP_MAP_GET);
    it.changes += call->header.opcode == OP_MAP_CHANGES;
    it.wholes += call->header.opcode == OP_MAP_GET;
    it.fetch = call;
}

static const struct cluster_map *hook_known(void *context) {
    (void)context;
    return it.map;
}

static struct cluster_map *hook_make(void *context) {
    (void)context;
    it.out += !it.has_no_memory;
    return it.has_no_memory ? NULL : calloc(1, sizeof(struct cluster_map));
}

static int hook_take(void *context, struct cluster_map *map, int result) {
    (void)context;
    assert_int_equal(it.out, 1);
    it.out--;
    it.takes++;
    result = result < 0 ? result : it.take_result;
    if (result < 0) {
        free(map);
        return result;
    }
    free(it.map);
    it.map = map;
    return 0;
}

static void hook_fetched(void *context, int result) {
    (void)context;
    assert_false(map_follower_is_fetching(&it.follower));
    it.fetches++;
    it.fetched = result;
}

static void hook_watched(void *context, uint64_t version) {
    (void)context;
    it.watches++;
    it.watched = version;
}

static const struct map_follower_hooks hooks = {.start = hook_start,
                                                .known = hook_known,
                                                .make = hook_make,
                                                .take = hook_take,
                                                .fetched = hook_fetched,
                                                .watched = hook_watched};

static int set_up(void **state) {
    static const struct target_id osts[] = {{16}};

    (void)state;
    memset(&it, 0, sizeof it);
    it.sim = sim_new(1);
    it.newest = calloc(1, sizeof *it.newest);
    it.before = calloc(1, sizeof *it.before);
    it.newest->cluster_id[0] = 1;
    cluster_map_single(it.newest, (struct target_id){2}, osts, 1);
    return map_follower_init(&it.follower, sim_process_env(sim_process_new(it.sim, "owner")),
                             &hooks, &it);
}

static int tear_down(void **state) {
    (void)state;
    assert_int_equal(it.out, 0);
    map_follower_deinit(&it.follower);
    map_follower_deinit(&it.follower);
    free(it.map);
    free(it.newest);
    free(it.before);
    sim_free(it.sim);
    return 0;
}

static void note_flag(void *context) {
    *(bool *)context = true;
}

static bool is_set(void *context) {
    return *(bool *)context;
}

static void pass(uint64_t ns) {
    bool flag = false;

    sim_schedule(it.sim, NULL, ns, note_flag, &flag);
    sim_run_until(it.sim, UINT64_MAX, is_set, &flag);
}

static void map_know(void) {
    it.map = calloc(1, sizeof *it.map);
    *it.map = *it.newest;
}

/* Each version has a target that the one before has not. */
static void map_grow(void) {
    *it.before = *it.newest;
    it.newest->version++;
    uint32_t id = 100 + (uint32_t)it.newest->version;
    assert_int_equal(cluster_map_add_ost(it.newest, (struct node_id){1}, (struct target_id){id},
                                         (struct log_id){id}),
                     0);
}

static void call_end(struct call **place, int result) {
    struct call *call = TAKE_PTR(*place);

    call->result = result;
    call->done(call);
}

static void changes_encode(void) {
    it.fetch->reply.map_changes.version = it.newest->version;
    if (it.fetch->request.map_changes.known_version < it.newest->version) {
        assert_int_equal(cluster_map_change_encode(it.before, it.newest, &it.fetch->bulk_in), 0);
    }
}

static void changes_answer(void) {
    assert_int_equal(it.fetch->header.opcode, OP_MAP_CHANGES);
    changes_encode();
    call_end(&it.fetch, 0);
}

static void whole_answer(void) {
    assert_int_equal(it.fetch->header.opcode, OP_MAP_GET);
    it.fetch->reply.map_get.version = it.newest->version;
    if (it.fetch->request.map_get.known_version < it.newest->version) {
        assert_true(it.fetch->bulk_in.capacity >= cluster_map_size(it.newest));
        cluster_map_encode(it.newest, &it.fetch->bulk_in);
    }
    call_end(&it.fetch, 0);
}

static void newest_check(void) {
    assert_false(map_follower_is_fetching(&it.follower));
    assert_int_equal(it.fetched, 0);
    assert_int_equal(it.map->version, it.newest->version);
    assert_int_equal(cluster_map_crc(it.map), cluster_map_crc(it.newest));
}

/* Only who has none asks for all of it first; one that is the newest is left as it is. */
static void test_a_map_is_fetched_by_what_it_adds(void **state) {
    (void)state;
    map_follower_fetch(&it.follower);
    assert_int_equal(it.follower.fetch, MAP_FETCH_WHOLE);
    whole_answer();
    newest_check();
    for (int i = 0; i < 3; i++) {
        map_grow();
        map_follower_fetch(&it.follower);
        assert_int_equal(it.follower.fetch, MAP_FETCH_CHANGES);
        assert_int_equal(it.fetch->request.map_changes.known_version, it.map->version);
        changes_answer();
        newest_check();
    }
    assert_int_equal(it.takes, 4);
    map_follower_fetch(&it.follower);
    changes_answer();
    newest_check();
    assert_int_equal(it.takes, 4);
    assert_int_equal(it.fetches, 5);
    assert_int_equal(it.wholes, 1);
    free(TAKE_PTR(it.map)); /* Of version 0 there is none, either. */
    it.map = calloc(1, sizeof *it.map);
    map_follower_fetch(&it.follower);
    assert_int_equal(it.follower.fetch, MAP_FETCH_WHOLE);
    whole_answer();
    newest_check();
}

static void none_answer(void) {
    it.fetch->reply.map_changes.version = it.newest->version;
    call_end(&it.fetch, 0);
}

static void damaged_answer(void) {
    changes_encode();
    it.fetch->bulk_in.data[it.fetch->bulk_in.size / 2] ^= 1;
    call_end(&it.fetch, 0);
}

static void other_base_answer(void) {
    it.before->revoked[it.before->revoked_count++] = 5;
    it.newest->revoked[it.newest->revoked_count++] = 5;
    changes_answer();
}

/* By a manager of the version before: to a member, and to a mount. */
static void unknown_answer(void) {
    call_end(&it.fetch, -ERR_NOT_SUPPORTED);
}

static void not_permitted_answer(void) {
    call_end(&it.fetch, -ERR_NOT_PERMITTED);
}

/* It is one fetch, whatever it takes. */
static void test_changes_that_are_none_are_followed_by_the_whole(void **state) {
    static void (*const answers[])(void) = {none_answer, damaged_answer, other_base_answer,
                                            unknown_answer, not_permitted_answer};

    (void)state;
    map_know();
    for (uint32_t i = 0; i < ARRAY_SIZE(answers); i++) {
        map_grow();
        map_follower_fetch(&it.follower);
        answers[i]();
        assert_int_equal(it.follower.fetch, MAP_FETCH_WHOLE);
        assert_int_equal(it.fetches, i);
        assert_int_equal(it.fetch->request.map_get.known_version, it.map->version);
        whole_answer();
        newest_check();
        assert_int_equal(it.fetches, i + 1);
        assert_int_equal(it.wholes, i + 1);
        assert_int_equal(it.changes, i + 1);
    }
}

/* Silence is no reason to ask for more. */
static void test_an_error_ends_the_fetch(void **state) {
    static const int errors[] = {-ERR_TIMED_OUT, -ERR_AWAY, -ERR_CLOSED, -ERR_INTERRUPTED};

    (void)state;
    map_know();
    map_grow();
    for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
        map_follower_fetch(&it.follower);
        call_end(&it.fetch, errors[i]);
        assert_int_equal(it.fetched, errors[i]);
        assert_null(it.fetch);
        map_follower_fetch(&it.follower);
        none_answer();
        call_end(&it.fetch, errors[i]);
        assert_int_equal(it.fetched, errors[i]);
        assert_null(it.fetch);
    }
    map_follower_fetch(&it.follower);
    none_answer();
    call_end(&it.fetch, -ERR_NOT_SUPPORTED); /* There is nothing less than the whole. */
    assert_int_equal(it.fetched, -ERR_NOT_SUPPORTED);
    assert_null(it.fetch);
    assert_int_equal(it.takes, 0);
    map_follower_fetch(&it.follower);
    changes_answer();
    newest_check();
}

/* Nor is one that can't be read; the map in use stays. */
static void test_a_map_that_is_not_taken_ends_the_fetch(void **state) {
    (void)state;
    map_know();
    map_grow();
    it.take_result = -ERR_BUSY;
    map_follower_fetch(&it.follower);
    changes_answer();
    assert_int_equal(it.fetched, -ERR_BUSY);
    it.take_result = 0;
    it.has_no_memory = true;
    map_follower_fetch(&it.follower);
    changes_answer();
    assert_int_equal(it.fetched, -ERR_NO_MEMORY);
    map_follower_fetch(&it.follower);
    none_answer();
    whole_answer();
    assert_int_equal(it.fetched, -ERR_NO_MEMORY);
    it.has_no_memory = false;
    map_follower_fetch(&it.follower);
    none_answer();
    cluster_map_encode(it.newest, &it.fetch->bulk_in);
    it.fetch->bulk_in.data[100] ^= 1;
    call_end(&it.fetch, 0);
    assert_int_equal(it.fetched, -ERR_CORRUPT);
    assert_int_equal(it.map->version, it.before->version);
    map_follower_fetch(&it.follower);
    changes_answer();
    newest_check();
}

/* What comes with the answer comes; who heard of more meanwhile is not forgotten, but asks anew. */
static void test_newer_versions_come_while_one_is_fetched(void **state) {
    (void)state;
    map_know();
    map_grow();
    map_follower_fetch(&it.follower);
    none_answer();
    map_grow();
    map_follower_fetch(&it.follower);
    assert_int_equal(it.changes + it.wholes, 2);
    map_follower_watch(&it.follower, WHO);
    assert_null(it.wait); /* It will know better what it waits for. */
    whole_answer();
    newest_check();
    map_grow();
    map_follower_watch(&it.follower, WHO);
    assert_int_equal(it.wait->request.map_wait.known_version, it.map->version);
    it.wait->reply.map_wait.version = it.newest->version;
    call_end(&it.wait, 0);
    assert_int_equal(it.watched, it.newest->version);
    assert_true(it.watched > it.map->version);
    map_follower_fetch(&it.follower);
    changes_answer();
    newest_check();
}

/* Asked again a second behind the last question, or ten behind a refusal. */
static void test_it_asks_to_be_told(void **state) {
    (void)state;
    map_know();
    map_follower_watch(&it.follower, WHO);
    assert_int_equal(it.wait->request.map_wait.who, WHO);
    assert_int_equal(it.wait->deadline_ns, env_now_ns(it.follower.env) + MAP_WATCH_NS);
    assert_true(map_follower_is_busy(&it.follower));
    map_follower_watch(&it.follower, WHO); /* One waits. */
    map_follower_fetch(&it.follower);
    changes_answer(); /* A fetch goes on beside it. */
    it.wait->reply.map_wait.version = it.newest->version;
    call_end(&it.wait, 0);
    assert_int_equal(it.watched, it.newest->version);
    map_follower_watch(&it.follower, WHO);
    assert_null(it.wait);
    pass(MAP_WATCH_AGAIN_NS);
    for (int refused = 0; refused < 2; refused++) {
        map_follower_watch(&it.follower, WHO);
        assert_non_null(it.wait);
        it.wait->reply.map_wait.is_full = !refused;
        it.wait->reply.map_wait.version = it.newest->version;
        call_end(&it.wait, refused ? -ERR_NOT_SUPPORTED : 0);
        assert_int_equal(it.watched, refused ? 0 : it.newest->version);
        pass(MAP_WATCH_REFUSED_NS - 1);
        map_follower_watch(&it.follower, WHO);
        assert_null(it.wait);
        pass(1);
    }
    assert_int_equal(it.watches, 3);
}

static bool is_called_off(const struct call *call) {
    return call_given_up(call, 0) == -ERR_INTERRUPTED;
}

/* At each place of a fetch, with and without a question that waits: what is under way ends, and
 * nothing begins. */
static void test_a_stop_ends_it_at_any_state(void **state) {
    (void)state;
    for (int place = MAP_FETCH_NONE; place <= MAP_FETCH_WHOLE; place++) {
        for (int watches = 0; watches < 2; watches++) {
            assert_int_equal(tear_down(NULL), 0);
            assert_int_equal(set_up(NULL), 0);
            map_know();
            map_grow();
            if (watches) {
                map_follower_watch(&it.follower, WHO);
            }
            if (place != MAP_FETCH_NONE) {
                map_follower_fetch(&it.follower);
            }
            if (place == MAP_FETCH_WHOLE) {
                none_answer();
            }
            map_follower_stop(&it.follower);
            assert_int_equal(it.follower.fetch, place);
            if (it.fetch) {
                assert_true(is_called_off(it.fetch));
                /* Its answer was on its way already. */
                place == MAP_FETCH_WHOLE ? whole_answer() : none_answer();
                assert_int_equal(it.fetches, 1);
                assert_int_equal(it.fetched, place == MAP_FETCH_WHOLE ? 0 : -ERR_NOT_FOUND);
            }
            assert_int_equal(map_follower_is_busy(&it.follower), watches);
            if (it.wait) {
                assert_true(is_called_off(it.wait));
                call_end(&it.wait, -ERR_INTERRUPTED);
            }
            pass(MAP_WATCH_REFUSED_NS);
            map_follower_fetch(&it.follower);
            map_follower_watch(&it.follower, WHO);
            assert_false(map_follower_is_busy(&it.follower));
        }
    }
}

/* As of a mount that stops, whose last closes may need a newer map. */
static void test_who_waits_no_more_still_fetches(void **state) {
    (void)state;
    map_know();
    map_grow();
    map_follower_unwatch(&it.follower);
    map_follower_watch(&it.follower, WHO);
    map_follower_fetch(&it.follower);
    map_follower_unwatch(&it.follower);
    assert_true(is_called_off(it.wait));
    assert_false(is_called_off(it.fetch));
    call_end(&it.wait, -ERR_INTERRUPTED);
    none_answer();
    whole_answer();
    newest_check();
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_map_is_fetched_by_what_it_adds),
        TEST(changes_that_are_none_are_followed_by_the_whole),
        TEST(an_error_ends_the_fetch),
        TEST(a_map_that_is_not_taken_ends_the_fetch),
        TEST(newer_versions_come_while_one_is_fetched),
        TEST(it_asks_to_be_told),
        TEST(a_stop_ends_it_at_any_state),
        TEST(who_waits_no_more_still_fetches),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
