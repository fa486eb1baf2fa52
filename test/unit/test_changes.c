/* Changes against a model, a sorted array. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "kv/changes.h"
#include "kv/changes_tree.h"
#include "row_model.h"

enum { VALUE_BYTES_MAX = 300, KEYS_OF_A_RUN = 2500 };

static struct row_model model;

static void check_row(size_t place, enum changes_state state, struct bytes value) {
    const struct model_row *row = model.rows[place];

    assert_int_equal(state, row->deleted ? CHANGES_DELETED : CHANGES_PRESENT);
    if (!row->deleted) {
        assert_int_equal(value.size, row->size);
        assert_memory_equal(value.data, row->value, row->size);
    }
}

static void check_around(const struct changes *changes, const struct kv_key *key) {
    size_t place = model_place(&model, key);
    bool there = model_has(&model, place, key);
    struct kv_key found;
    struct bytes value = {NULL, 0};
    enum changes_state state = changes_find(changes, key, &value);

    if (there) {
        check_row(place, state, value);
    } else {
        assert_int_equal(state, CHANGES_ABSENT);
    }
    for (unsigned inclusive = 0; inclusive < 2; inclusive++) {
        size_t next = place + (there && !inclusive);

        state = changes_next(changes, key, inclusive, &found, &value);
        if (next == model.count) {
            assert_int_equal(state, CHANGES_ABSENT);
        } else {
            assert_memory_equal(&found, &model.rows[next]->key, sizeof found);
            check_row(next, state, value);
        }
    }
    state = changes_previous(changes, key, &found, &value);
    if (place == 0) {
        assert_int_equal(state, CHANGES_ABSENT);
    } else {
        assert_memory_equal(&found, &model.rows[place - 1]->key, sizeof found);
        check_row(place - 1, state, value);
    }
}

/* From the first row to the last and back, each by the one before. */
static void check_walks(const struct changes *changes) {
    struct kv_key key = {{0}};
    struct bytes value = {NULL, 0};
    size_t place = 0;
    enum changes_state state = changes_next(changes, &key, true, &key, &value);

    assert_int_equal(changes_row_count(changes), model.count);
    while (state != CHANGES_ABSENT) {
        assert_true(place < model.count);
        assert_memory_equal(&key, &model.rows[place]->key, sizeof key);
        check_row(place, state, value);
        place++;
        state = changes_next(changes, &key, false, &key, &value);
    }
    assert_int_equal(place, model.count);
    memset(&key, 0xFF, sizeof key);
    while (changes_previous(changes, &key, &key, &value) != CHANGES_ABSENT) {
        place--;
        assert_memory_equal(&key, &model.rows[place]->key, sizeof key);
    }
    assert_int_equal(place, 0);
}

/* How the keys of a run follow each other. */
enum order { ORDER_RANDOM, ORDER_ASCENDING, ORDER_DESCENDING, ORDER_RUNS, ORDER_COUNT };

static struct kv_key key_draw(struct prng *prng, enum order order, unsigned step) {
    struct kv_key_fields fields = {.space = 1, .slot = 7, .type = 3};

    switch (order) {
    case ORDER_RANDOM:
        /* Few values in each word, so that every word decides some comparisons. */
        fields.slot = (uint16_t)prng_below(prng, 4);
        fields.id = prng_below(prng, 8) << 29;
        fields.generation = (uint32_t)prng_below(prng, 4) << 31;
        fields.index = prng_below(prng, 64) << 57 | prng_below(prng, 4);
        break;
    case ORDER_ASCENDING:
        fields.index = (uint64_t)step * 2;
        break;
    case ORDER_DESCENDING:
        fields.index = UINT64_MAX - (uint64_t)step * 2;
        break;
    default:
        /* Ascending within each of several ids, in turn. */
        fields.id = step / 50 * 7919 % 13;
        fields.index = (uint64_t)step * 2;
        break;
    }
    return kv_key_make(fields);
}

static void step_random(struct prng *prng, struct changes *changes, const struct kv_key *key) {
    struct model_row *row = model_put(&model, key, prng, prng_below(prng, VALUE_BYTES_MAX + 1));
    uint8_t *place = NULL;

    row->deleted = prng_chance(prng, 1, 5);
    if (row->deleted) {
        assert_int_equal(changes_delete(changes, key), 0);
        return;
    }
    assert_int_equal(changes_put(changes, key, (struct bytes){row->value, row->size}, &place), 0);
    assert_non_null(place);
    if (row->size > 0 && prng_chance(prng, 1, 4)) {
        /* What is written in place is seen. */
        place[row->size - 1] ^= 0x5A;
        row->value[row->size - 1] ^= 0x5A;
    }
}

/* Broken when the tree and a sorted array ever differ, in any order of insertion. */
static void test_random_against_model(void **state) {
    struct changes_pool *pool;

    (void)state;
    assert_int_equal(changes_pool_new(8 * MIB, &pool), 0);
    for (uint64_t seed = 1; seed <= 12; seed++) {
        enum order order = (enum order)(seed % ORDER_COUNT);
        struct changes *changes;
        struct prng prng;

        print_message("seed %lu\n", (unsigned long)seed);
        prng_init(&prng, seed);
        model_clear(&model);
        assert_int_equal(changes_new(pool, &changes), 0);
        for (unsigned step = 0; step < KEYS_OF_A_RUN; step++) {
            unsigned which =
                prng_chance(&prng, 1, 8) ? (unsigned)prng_below(&prng, step + 1) : step;
            struct kv_key key = key_draw(&prng, order, which);

            step_random(&prng, changes, &key);
            check_around(changes, &key);
            /* Most likely a key that is not there, beside one that is. */
            key.bytes[KV_KEY_BYTES - 1] ^= 1;
            check_around(changes, &key);
        }
        check_walks(changes);
        changes_free(changes);
        assert_int_equal(changes_pool_used_bytes(pool), 0);
    }
    changes_pool_free(pool);
    model_clear(&model);
}

static void test_empty(void **state) {
    struct changes_pool *pool;
    struct changes *changes;
    struct kv_key key = {{1}}, found;
    struct bytes value;

    (void)state;
    assert_int_equal(changes_pool_new(128 * KIB, &pool), 0);
    assert_int_equal(changes_new(pool, &changes), 0);
    assert_int_equal(changes_find(changes, &key, &value), CHANGES_ABSENT);
    assert_int_equal(changes_next(changes, &key, true, &found, &value), CHANGES_ABSENT);
    assert_int_equal(changes_previous(changes, &key, &found, &value), CHANGES_ABSENT);
    assert_int_equal(changes_row_count(changes), 0);
    changes_free(changes);
    changes_free(NULL);
    changes_pool_free(pool);
    changes_pool_free(NULL);
}

/* Broken when the highest key of all is taken for a place without a key. */
static void test_highest_key(void **state) {
    struct changes_pool *pool;
    struct changes *changes;
    struct kv_key highest, found;
    struct bytes value;

    (void)state;
    memset(&highest, 0xFF, sizeof highest);
    assert_int_equal(changes_pool_new(256 * KIB, &pool), 0);
    assert_int_equal(changes_new(pool, &changes), 0);
    for (unsigned i = 0; i < 500; i++) {
        struct kv_key key = kv_key_make((struct kv_key_fields){.space = 255, .index = i});

        assert_int_equal(changes_find(changes, &highest, &value), CHANGES_ABSENT);
        assert_int_equal(changes_next(changes, &highest, true, &found, &value), CHANGES_ABSENT);
        assert_int_equal(changes_put(changes, &key, (struct bytes){NULL, 0}, NULL), 0);
        assert_int_equal(changes_previous(changes, &highest, &found, &value), CHANGES_PRESENT);
        assert_memory_equal(&found, &key, sizeof key);
    }
    assert_int_equal(changes_put(changes, &highest, (struct bytes){NULL, 0}, NULL), 0);
    assert_int_equal(changes_put(changes, &highest, (struct bytes){NULL, 0}, NULL), 0);
    assert_int_equal(changes_row_count(changes), 501);
    assert_int_equal(changes_find(changes, &highest, &value), CHANGES_PRESENT);
    assert_int_equal(changes_next(changes, &highest, true, &found, &value), CHANGES_PRESENT);
    assert_int_equal(changes_next(changes, &highest, false, &found, &value), CHANGES_ABSENT);
    changes_free(changes);
    changes_pool_free(pool);
}

/* Broken when a row that shrinks, is deleted or grows back within its place moves. */
static void test_put_in_place(void **state) {
    struct changes_pool *pool;
    struct changes *changes;
    struct kv_key key = {{1}};
    uint8_t data[CHANGES_VALUE_BYTES_MAX + 1] = {0};
    uint8_t *first, *again;

    (void)state;
    assert_int_equal(changes_pool_new(128 * KIB, &pool), 0);
    assert_int_equal(changes_new(pool, &changes), 0);
    assert_int_equal(changes_put(changes, &key, (struct bytes){data, 100}, &first), 0);
    assert_int_equal(changes_put(changes, &key, (struct bytes){data, 7}, &again), 0);
    assert_ptr_equal(first, again);
    assert_int_equal(changes_delete(changes, &key), 0);
    assert_int_equal(changes_put(changes, &key, (struct bytes){data, 104}, &again), 0);
    assert_ptr_equal(first, again);
    /* A value may be shifted within itself. */
    for (unsigned i = 0; i < 104; i++) {
        first[i] = (uint8_t)i;
    }
    assert_int_equal(changes_put(changes, &key, (struct bytes){first + 4, 100}, &again), 0);
    assert_ptr_equal(first, again);
    assert_int_equal(again[0], 4);
    assert_int_equal(again[99], 103);
    assert_int_equal(changes_put(changes, &key, (struct bytes){again, 100}, NULL), 0);
    assert_int_equal(
        changes_put(changes, &key, (struct bytes){data, CHANGES_VALUE_BYTES_MAX}, &again), 0);
    assert_ptr_not_equal(first, again);
    assert_int_equal(changes_put(changes, &key, (struct bytes){data, sizeof data}, &again),
                     -ERR_INVALID);
    assert_int_equal(changes_row_count(changes), 1);
    changes_free(changes);
    changes_pool_free(pool);
}

static void test_pool_sizes(void **state) {
    struct changes_pool *pool = NULL;

    (void)state;
    assert_int_equal(changes_pool_new(0, &pool), -ERR_INVALID);
    assert_int_equal(changes_pool_new(127 * KIB, &pool), -ERR_INVALID);
    assert_int_equal(changes_pool_new(33 * GIB, &pool), -ERR_INVALID);
    assert_null(pool);
    assert_int_equal(changes_pool_new(200 * KIB, &pool), 0);
    assert_int_equal(changes_pool_free_bytes(pool), 192 * KIB);
    changes_pool_free(pool);
}

/* Fills the pool by transactions that reserve first, then by single puts until one fails. */
static void fill_pool(struct prng *prng, struct changes *changes) {
    enum { ROWS_RESERVED = 9, ROW_BYTES = 150 };
    uint8_t data[ROW_BYTES] = {0};
    struct kv_key key;

    while (changes_reserve(changes,
                           changes_cost(changes, ROWS_RESERVED, ROWS_RESERVED * ROW_BYTES)) == 0) {
        for (unsigned i = 0; i < ROWS_RESERVED; i++) {
            key = key_draw(prng, ORDER_RANDOM, 0);
            struct model_row *row = model_put(&model, &key, prng, prng_below(prng, ROW_BYTES + 1));
            assert_int_equal(
                changes_put(changes, &key, (struct bytes){row->value, row->size}, NULL), 0);
        }
    }
    assert_true(model.count > 1000);
    check_walks(changes);
    for (;;) {
        key = key_draw(prng, ORDER_RANDOM, 0);
        int r = changes_put(changes, &key, (struct bytes){data, ROW_BYTES}, NULL);
        if (r < 0) {
            assert_int_equal(r, -ERR_NO_SPACE);
            break;
        }
        memset(model_put(&model, &key, prng, ROW_BYTES)->value, 0, ROW_BYTES);
    }
    check_walks(changes);
    check_around(changes, &key);
}

/* Broken when a put that fails leaves a trace, or when what was reserved can fail. */
static void test_exhaustion(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct changes_pool *pool;
        struct changes *changes;
        struct prng prng;

        print_message("seed %lu\n", (unsigned long)seed);
        prng_init(&prng, seed);
        assert_int_equal(changes_pool_new(512 * KIB, &pool), 0);
        assert_int_equal(changes_new(pool, &changes), 0);
        fill_pool(&prng, changes);
        changes_free(changes);
        assert_int_equal(changes_pool_used_bytes(pool), 0);
        changes_pool_free(pool);
        model_clear(&model);
    }
}

/* Broken when one generation's end takes or keeps anything of another's. */
static void test_generations(void **state) {
    struct changes_pool *pool;
    struct changes *older, *newer, *none;
    uint8_t data[1000];
    struct kv_key key;
    struct bytes value;

    (void)state;
    assert_int_equal(changes_pool_new(256 * KIB, &pool), 0);
    assert_int_equal(changes_new(pool, &older), 0);
    for (unsigned generation = 0; generation < 50; generation++) {
        assert_int_equal(changes_new(pool, &newer), 0);
        memset(data, (int)generation, sizeof data);
        for (unsigned i = 0; i < 80; i++) {
            key = kv_key_make((struct kv_key_fields){.index = i});
            assert_int_equal(changes_put(newer, &key, (struct bytes){data, sizeof data}, NULL), 0);
        }
        if (generation > 0) {
            for (unsigned i = 0; i < 80; i++) {
                key = kv_key_make((struct kv_key_fields){.index = i});
                assert_int_equal(changes_find(older, &key, &value), CHANGES_PRESENT);
                assert_int_equal(value.data[0], generation - 1);
                assert_int_equal(value.data[999], generation - 1);
            }
        }
        assert_int_equal(changes_pool_used_bytes(pool) + changes_pool_free_bytes(pool), 256 * KIB);
        changes_free(older);
        older = newer;
    }
    assert_int_equal(changes_reserve(older, changes_cost(older, 1, 300 * KIB)), -ERR_NO_SPACE);
    /* What a reservation holds is not free for another generation, and comes back with it. */
    assert_int_equal(changes_reserve(older, changes_cost(older, 20, 70 * KIB)), 0);
    assert_int_equal(changes_pool_free_bytes(pool), 0);
    assert_int_equal(changes_new(pool, &none), -ERR_NO_SPACE);
    changes_free(older);
    assert_int_equal(changes_pool_used_bytes(pool), 0);
    changes_pool_free(pool);
}

/* How many rows a walk meets, each behind the one before. */
static size_t count_in_order(const struct changes *changes) {
    struct kv_key last = {{0}}, key = {{0}};
    struct bytes value;
    size_t count = 0;

    while (changes_next(changes, &key, count == 0, &key, &value) != CHANGES_ABSENT) {
        assert_true(count == 0 || kv_key_compare(&last, &key) < 0);
        assert_int_equal(changes_find(changes, &key, &value), CHANGES_PRESENT);
        last = key;
        count++;
    }
    return count;
}

/* Broken when some order of keys leaves nodes almost empty: bytes a row, empty values. */
static void test_density(void **state) {
    static const struct {
        enum order order;
        size_t row_bytes_max;
    } cases[] = {
        {ORDER_ASCENDING, 40}, {ORDER_DESCENDING, 80}, {ORDER_RUNS, 60}, {ORDER_RANDOM, 70}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct changes_pool *pool;
        struct changes *changes;
        struct prng prng;

        prng_init(&prng, 1);
        assert_int_equal(changes_pool_new(7 * MIB, &pool), 0);
        assert_int_equal(changes_new(pool, &changes), 0);
        for (unsigned step = 0; step < 20000; step++) {
            struct kv_key key = key_draw(&prng, cases[i].order, step);

            assert_int_equal(changes_put(changes, &key, (struct bytes){NULL, 0}, NULL), 0);
        }
        assert_int_equal(changes_row_count(changes), count_in_order(changes));
        print_message("order %d: %zu bytes a row\n", (int)cases[i].order,
                      changes_pool_used_bytes(pool) / changes_row_count(changes));
        assert_true(changes_pool_used_bytes(pool) <=
                    changes_row_count(changes) * cases[i].row_bytes_max + 64 * KIB);
        changes_free(changes);
        changes_pool_free(pool);
    }
}

/* Broken when a run of ascending keys leaves inner nodes half empty. */
static void test_density_above(void **state) {
    struct changes_pool *pool;
    struct changes *changes;

    (void)state;
    assert_int_equal(changes_pool_new(7 * MIB, &pool), 0);
    assert_int_equal(changes_new(pool, &changes), 0);
    for (unsigned step = 0; step < 100000; step++) {
        struct kv_key key = key_draw(NULL, ORDER_ASCENDING, step);

        assert_int_equal(changes_put(changes, &key, (struct bytes){NULL, 0}, NULL), 0);
    }
    assert_in_range(changes->leaf_count, 100000 / LEAF_ROWS_MAX, 100000 / LEAF_ROWS_MAX + 1);
    assert_true(changes->inner_count <= changes->leaf_count / 34);
    changes_free(changes);
    changes_pool_free(pool);
}

enum { SAID_ROWS = 3000, SAID_BYTES = 100 };

/* That a put takes no more than what was said of it and of those behind it, less what is said of
 * these then; for any number of them. */
static void check_said(struct changes *changes, const struct kv_key *key) {
    static const size_t more[] = {1, 2, 3, 8, 33, 200, 1000};
    static const uint8_t value[SAID_BYTES] = {0};
    size_t said[ARRAY_SIZE(more)];

    for (size_t i = 0; i < ARRAY_SIZE(more); i++) {
        said[i] = changes_cost(changes, more[i], more[i] * SAID_BYTES);
    }
    size_t room = changes_room(changes, 0);
    assert_int_equal(changes_put(changes, key, (struct bytes){value, sizeof value}, NULL), 0);
    size_t taken = room - changes_room(changes, 0);
    for (size_t i = 0; i < ARRAY_SIZE(more); i++) {
        size_t rest = changes_cost(changes, more[i] - 1, (more[i] - 1) * SAID_BYTES);

        if (said[i] < taken + rest) {
            fail_msg("row %zu takes %zu of %zu that were said of %zu, which leaves %zu",
                     changes_row_count(changes), taken, said[i], more[i], rest);
        }
    }
}

/* Broken when what is kept for rows to come is not enough for them once some of them are there: a
 * freeze that found room before the last grant finds none behind it. */
static void test_what_is_said(void **state) {
    static const enum order orders[] = {ORDER_ASCENDING, ORDER_DESCENDING, ORDER_RUNS,
                                        ORDER_RANDOM};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
        struct changes_pool *pool;
        struct changes *changes;
        struct prng prng;

        prng_init(&prng, 1);
        assert_int_equal(changes_pool_new(7 * MIB, &pool), 0);
        assert_int_equal(changes_new(pool, &changes), 0);
        for (unsigned step = 0; step < SAID_ROWS; step++) {
            struct kv_key key = key_draw(&prng, orders[i], step);

            check_said(changes, &key);
        }
        changes_free(changes);
        changes_pool_free(pool);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty),        cmocka_unit_test(test_random_against_model),
        cmocka_unit_test(test_put_in_place), cmocka_unit_test(test_pool_sizes),
        cmocka_unit_test(test_exhaustion),   cmocka_unit_test(test_generations),
        cmocka_unit_test(test_density),      cmocka_unit_test(test_highest_key),
        cmocka_unit_test(test_what_is_said), cmocka_unit_test(test_density_above),
    };

    return cmocka_run_group_tests_name("changes", tests, NULL, NULL);
}
