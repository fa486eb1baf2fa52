/* The list of the ended over an engine, with an owner who counts: who attaches while news wait for
 * room, and what a stretch of names costs. */
#include "unit.h"
#include "kv/ended_list.h"
#include "kv_edge.h"
#include <stdlib.h>
#include <string.h>

enum { KEPT_MAX = 8, WAITS = 1, ROW = 'E' };

/* An owner of sessions that are attached. */
struct world {
    struct edge *edge;
    struct ended_list list;
    uint64_t kept[KEPT_MAX]; /* 0: none in this place */
    uint32_t refusals;       /* so often there is no room */
    uint32_t transactions;
};

static int room_begin(void *context, const struct kv_need *need) {
    struct world *world = context;
    struct kv_grant grant;

    if (world->refusals > 0) {
        world->refusals--;
        return WAITS;
    }
    int r = kv_admit(world->edge->kv, KV_CLASS_CONTROL, need, &grant);
    if (r == 0) {
        kv_begin(world->edge->kv, &grant);
        world->transactions++;
    }
    return r == -ERR_PENDING || r == -ERR_NO_SPACE ? WAITS : r;
}

static void room_commit(void *context) {
    (void)kv_commit(((struct world *)context)->edge->kv);
}

static void room_abort(void *context) {
    kv_abort(((struct world *)context)->edge->kv);
}

static int session_end(void *context, uint64_t session) {
    (void)context;
    (void)session;
    return 0;
}

static void session_ended(void *context, uint64_t session) {
    struct world *world = context;

    for (int i = 0; i < KEPT_MAX; i++) {
        world->kept[i] = world->kept[i] == session ? 0 : world->kept[i];
    }
}

/* In no order. */
static int within_find(void *context, uint64_t from, uint64_t end, uint64_t *ret_session) {
    const struct world *world = context;

    *ret_session = 0;
    for (int i = 0; i < KEPT_MAX; i++) {
        if (world->kept[i] >= from && world->kept[i] < end && world->kept[i] != 0) {
            *ret_session = world->kept[i];
        }
    }
    return 0;
}

static const struct ended_owner owner = {.row_type = ROW,
                                         .begin = room_begin,
                                         .commit = room_commit,
                                         .abort = room_abort,
                                         .end = session_end,
                                         .ended = session_ended,
                                         .within = within_find};

static int setup(void **state) {
    struct world *world = calloc(1, sizeof *world);

    world->edge = edge_new(1);
    assert_int_equal(ended_list_load(&world->list, world->edge->kv, &owner), 0);
    *state = world;
    return 0;
}

static int teardown(void **state) {
    struct world *world = *state;

    edge_free(world->edge);
    free(world);
    return 0;
}

static bool has_ended(const struct world *world, uint64_t session) {
    bool ended = false;

    assert_int_equal(ended_list_has(&world->list, session, &ended), 0);
    return ended;
}

static uint32_t kept_count(const struct world *world) {
    uint32_t count = 0;

    for (int i = 0; i < KEPT_MAX; i++) {
        count += world->kept[i] != 0;
    }
    return count;
}

/* A late copy attaches one of whom the news tell only that all below the lowest have ended, while
 * their number waits for room: it does not stay. */
static void test_attached_while_the_number_waits(void **state) {
    struct world *world = *state;
    const struct ended_news news = {.number = 5, .lowest = 100, .first = 100};
    struct ended_work work = {0};

    world->refusals = 1;
    assert_int_equal(ended_list_take(&world->list, &work, &news, world), WAITS);
    assert_int_equal(world->list.number, 0);
    assert_false(has_ended(world, 40));
    world->kept[0] = 40;
    assert_int_equal(ended_list_take(&world->list, &work, &news, world), 0);
    assert_int_equal(world->list.number, 5);
    assert_true(has_ended(world, 40));
    assert_int_equal(kept_count(world), 0);
}

/* All of the news, however often that waits. */
static void news_take(struct world *world, const struct ended_news *news) {
    struct ended_work work = {0};
    int r = 1;

    for (int i = 0; i < EDGE_TURNS_MAX && r != 0; i++) {
        r = ended_list_take(&world->list, &work, news, world);
        assert_true(r >= 0 || r == -ERR_PENDING);
        (void)kv_seal(world->edge->kv);
        edge_turn(world->edge, 10 * NS_PER_MS);
    }
    assert_int_equal(r, 0);
}

/* A row of names of whom few are kept is no dearer than those few. */
static void test_a_run_with_some_kept(void **state) {
    static uint8_t names[ENDED_BITS / 8];
    struct world *world = *state;
    const struct ended_news news = {.first = ENDED_BITS, .names = {names, sizeof names}};

    memset(names, 0xff, sizeof names);
    world->kept[0] = ENDED_BITS + 4000;
    world->kept[1] = 2 * ENDED_BITS - 1;
    world->kept[2] = ENDED_BITS + 1;
    world->kept[3] = ENDED_BITS - 1;
    world->kept[4] = 2 * ENDED_BITS;
    news_take(world, &news);
    assert_int_equal(kept_count(world), 2);
    for (uint64_t session = ENDED_BITS; session < 2 * ENDED_BITS; session++) {
        assert_true(has_ended(world, session));
    }
    assert_false(has_ended(world, ENDED_BITS - 1));
    assert_false(has_ended(world, 2 * ENDED_BITS));
    assert_int_equal(world->transactions, 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_attached_while_the_number_waits, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_run_with_some_kept, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
