/* Pools on one thread: reserves, refusals, the way home. test_actor_stress has the threads. */
#include "rpc/pool.h"
#include "rpc/worker.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { OBJECTS = 20 };

struct object {
    struct pool_item item;
    struct message message;
    uint32_t number;
};

static struct worker home;
static struct worker elsewhere;
static struct pool pool;

static int set_up(void **state) {
    (void)state;
    worker_init(&home);
    worker_init(&elsewhere);
    worker_bind(&home);
    return pool_init(&pool, &(struct pool_options){.name = "test",
                                                   .object_bytes = sizeof(struct object),
                                                   .object_count = OBJECTS,
                                                   .reserve_count = {1, 2, 4, 0},
                                                   .worker = &home});
}

static int tear_down(void **state) {
    (void)state;
    worker_bind(&home);
    pool_deinit(&pool);
    worker_bind(NULL);
    return 0;
}

static uint32_t take_all(enum message_class message_class, struct object **objects) {
    uint32_t count = 0;
    struct object *object;

    while ((object = pool_get(&pool, message_class))) {
        objects[count++] = object;
    }
    return count;
}

static void put_all(struct object **objects, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        pool_put(objects[i]);
    }
}

/* Each class leaves what is reserved for those before it. */
static void classes_have_reserves(void **state) {
    static const struct {
        enum message_class message_class;
        uint32_t expected;
    } rows[] = {
        {MESSAGE_BACKGROUND, OBJECTS - 7},
        {MESSAGE_REQUEST, 4},
        {MESSAGE_RELEASE, 2},
        {MESSAGE_CONTROL, 1},
    };
    struct object *objects[OBJECTS];
    struct pool_usage usage;
    uint32_t count = 0;

    (void)state;
    for (uint32_t i = 0; i < ARRAY_SIZE(rows); i++) {
        assert_int_equal(take_all(rows[i].message_class, objects + count), rows[i].expected);
        count += rows[i].expected;
    }
    assert_int_equal(count, OBJECTS);
    usage = pool_usage(&pool);
    assert_int_equal(usage.used_count, OBJECTS);
    for (uint32_t i = 0; i < ARRAY_SIZE(rows); i++) {
        assert_int_equal(usage.got_count[rows[i].message_class], rows[i].expected);
        assert_int_equal(usage.refused_count[rows[i].message_class], 1);
    }
    put_all(objects, count);
    usage = pool_usage(&pool);
    assert_int_equal(usage.used_count, 0);
    assert_int_equal(usage.used_count_max, OBJECTS);
    assert_int_equal(take_all(MESSAGE_REQUEST, objects), OBJECTS - 3);
    put_all(objects, OBJECTS - 3);
}

/* The same object comes next, warm and with its content. */
static void last_put_first_got(void **state) {
    struct object *object = pool_get(&pool, MESSAGE_REQUEST);

    (void)state;
    object->number = 7;
    pool_put(object);
    assert_ptr_equal(pool_get(&pool, MESSAGE_REQUEST), object);
    assert_int_equal(object->number, 7);
    pool_put(object);
    pool_put(NULL);
}

static struct object *taken[OBJECTS];
static uint32_t seen_in_step;

static void put_in_step(struct actor *actor, struct message *first) {
    (void)actor;
    (void)first;
    put_all(taken, OBJECTS);
    seen_in_step = take_all(MESSAGE_CONTROL, taken);
}

/* What another thread's slice puts arrives in batches: full ones at once, the rest at its end. */
static void batches_go_home(void **state) {
    struct actor actor;
    struct message message = {0};

    (void)state;
    actor_init(&actor, "putter", put_in_step);
    assert_int_equal(take_all(MESSAGE_CONTROL, taken), OBJECTS);
    worker_bind(&elsewhere);
    actor_post(&actor, &message);
    assert_int_equal(seen_in_step, POOL_BATCH_MAX);
    assert_int_equal(take_all(MESSAGE_CONTROL, taken + POOL_BATCH_MAX), OBJECTS - POOL_BATCH_MAX);

    put_all(taken, OBJECTS); /* outside a step: each by itself */
    assert_int_equal(elsewhere.return_count, 0);
    assert_int_equal(take_all(MESSAGE_CONTROL, taken), OBJECTS);

    worker_bind(NULL); /* a thread without a worker */
    put_all(taken, OBJECTS);
    assert_int_equal(take_all(MESSAGE_CONTROL, taken), OBJECTS);
    put_all(taken, OBJECTS);
}

/* More pools than a worker has batches for: none is lost. */
static void many_pools(void **state) {
    struct pool pools[WORKER_RETURNS_MAX + 3];
    void *objects[WORKER_RETURNS_MAX + 3];

    (void)state;
    for (uint32_t i = 0; i < ARRAY_SIZE(pools); i++) {
        assert_int_equal(pool_init(&pools[i], &(struct pool_options){.name = "many",
                                                                     .object_bytes = 16,
                                                                     .object_count = 1}),
                         0);
        objects[i] = pool_get(&pools[i], MESSAGE_REQUEST);
        assert_non_null(objects[i]);
    }
    elsewhere.in_step = true;
    worker_bind(&elsewhere);
    for (uint32_t i = 0; i < ARRAY_SIZE(pools); i++) {
        pool_put(objects[i]);
    }
    elsewhere.in_step = false;
    worker_return_all(&elsewhere);
    for (uint32_t i = 0; i < ARRAY_SIZE(pools); i++) {
        assert_ptr_equal(pool_get(&pools[i], MESSAGE_BACKGROUND), objects[i]);
        pool_put(objects[i]);
        pool_deinit(&pools[i]);
    }
}

static void bad_options_are_refused(void **state) {
    static const struct pool_options rows[] = {
        {.object_bytes = 64, .object_count = 0},
        {.object_bytes = 8, .object_count = 4},
        {.object_bytes = 64, .object_count = 4, .reserve_count = {1, 1, 1, 1}},
        {.object_bytes = SIZE_MAX, .object_count = 4},
        {.object_bytes = SIZE_MAX / 4, .object_count = 16},
        {.object_bytes = 64, .object_count = 4, .reserve_count = {UINT32_MAX, 2, 0, 0}},
    };
    struct pool bad;

    (void)state;
    for (uint32_t i = 0; i < ARRAY_SIZE(rows); i++) {
        assert_int_equal(pool_init(&bad, &rows[i]), -ERR_INVALID);
    }
    pool_deinit(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(classes_have_reserves, set_up, tear_down),
        cmocka_unit_test_setup_teardown(last_put_first_got, set_up, tear_down),
        cmocka_unit_test_setup_teardown(batches_go_home, set_up, tear_down),
        cmocka_unit_test_setup_teardown(many_pools, set_up, tear_down),
        cmocka_unit_test(bad_options_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
