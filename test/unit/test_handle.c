/* Handles and the numbers behind them: wrong ones are found out, none is given twice. */
#include "unit.h"
#include "front/fuse/handle.h"
#include <pthread.h>
#include <stdlib.h>

static void test_numbers_of_handles(void **state) {
    struct handle_table table;
    struct handle *first;
    struct handle *second;
    uint64_t number;

    (void)state;
    assert_int_equal(handle_table_init(&table, 2), 0);
    assert_null(handle_find(&table, 0));
    assert_null(handle_find(&table, UINT64_MAX));
    first = handle_take(&table, 0);
    assert_null(handle_find(&table, UINT64_C(1) << 32 | 1));
    number = handle_open(&table, first);
    assert_ptr_equal(handle_find(&table, number), first);
    assert_null(handle_find(&table, number + 1));
    assert_null(handle_find(&table, number + (UINT64_C(1) << 32)));
    assert_null(handle_find(&table, number & UINT32_MAX));
    second = handle_take(&table, 0);
    assert_non_null(second);
    assert_null(handle_take(&table, 0));
    handle_put(&table, first);
    assert_null(handle_find(&table, number));

    /* The place is used again, its old number isn't. */
    first = handle_take(&table, 0);
    assert_true(handle_open(&table, first) != number);
    assert_null(handle_find(&table, number));
    handle_table_deinit(&table);
}

static void test_evicting_finds_what_is_open(void **state) {
    struct handle_table table;
    struct shoal_file *file;
    unsigned count = 0;
    uint32_t at = 0;

    (void)state;
    assert_int_equal(handle_table_init(&table, 8), 0);
    for (uintptr_t i = 0; i < 6; i++) {
        struct handle *handle = handle_take(&table, 0);

        handle->file = (void *)(i + 1);
        if (i % 2)
            (void)handle_open(&table, handle);
    }
    while (handle_evict(&table, &at, &file)) {
        assert_int_equal((uintptr_t)file % 2, 0);
        count++;
    }
    assert_int_equal(count, 3);
    handle_table_deinit(&table);
}

/* Counted once, and until the handle is put back, whoever has its place next. */
static void test_writers_are_counted(void **state) {
    enum { HANDLES = 4, INO = 42 };
    struct handle_table table;
    struct handle *handles[HANDLES];

    (void)state;
    assert_int_equal(handle_table_init(&table, HANDLES), 0);
    for (unsigned round = 0; round < 3; round++) {
        assert_false(handle_has_writers(&table, INO));
        for (unsigned i = 0; i < HANDLES; i++) {
            handles[i] = handle_take(&table, 0);
            handles[i]->ino = i % 2 ? INO : UINT64_MAX - i;
            if (i % 2) {
                handle_count_writer(&table, handles[i]);
                handle_count_writer(&table, handles[i]);
            }
            (void)handle_open(&table, handles[i]);
        }
        for (unsigned i = 0; i < HANDLES; i++) {
            assert_true(handle_has_writers(&table, INO));
            handle_put(&table, handles[i]);
        }
    }
    assert_false(handle_has_writers(&table, INO));
    for (uint64_t ino = 1; ino < 100000; ino++) {
        assert_false(handle_has_writers(&table, ino << 48 | ino));
    }
    handle_table_deinit(&table);
}

/* One user gets half, all but root 15 of 16, root what is left; who was refused is told of once a
 * minute. */
static void test_each_user_has_a_share(void **state) {
    struct handle_table table;
    struct handle *held[64];
    uint32_t count = 0;
    uint32_t uid = 0;

    (void)state;
    assert_int_equal(handle_table_init(&table, 64), 0);
    for (; count < 32; count++)
        assert_non_null(held[count] = handle_take(&table, 1000));
    assert_false(user_shares_to_tell(&table.shares, 1, &uid));
    assert_null(handle_take(&table, 1000));
    assert_true(user_shares_to_tell(&table.shares, 1, &uid));
    assert_int_equal(uid, 1000);
    assert_null(handle_take(&table, 1000 + SHARES_USERS)); /* counts as the same */
    assert_false(user_shares_to_tell(&table.shares, SHARES_TOLD_NS, &uid));
    assert_true(user_shares_to_tell(&table.shares, SHARES_TOLD_NS + 1, &uid));
    assert_int_equal(uid, 1000 + SHARES_USERS);

    for (; count < 60; count++)
        assert_non_null(held[count] = handle_take(&table, 2000 + count % 2));
    assert_null(handle_take(&table, 2000));
    assert_false(
        user_shares_to_tell(&table.shares, 3 * SHARES_TOLD_NS, &uid)); /* it has not met its own */
    for (; count < 64; count++)
        assert_non_null(held[count] = handle_take(&table, 0));
    assert_null(handle_take(&table, 0));
    while (count > 0)
        handle_put(&table, held[--count]);
    for (; count < 32; count++)
        assert_non_null(handle_take(&table, 1000));
    assert_null(handle_take(&table, 1000));
    handle_table_deinit(&table);
}

enum { THREADS = 4, NUMBERS = 7, ROUNDS = 100000 };

struct contest {
    struct index_pool pool;
    _Atomic int owners[NUMBERS];
    _Atomic int twice_count;
    _Atomic int none_count;
};

static void *contest_run(void *context) {
    struct contest *contest = context;

    for (int i = 0; i < ROUNDS; i++) {
        uint32_t index = index_pool_take(&contest->pool);

        if (index == INDEX_NONE) {
            atomic_fetch_add(&contest->none_count, 1);
            continue;
        }
        if (atomic_fetch_add(&contest->owners[index], 1) != 0)
            atomic_fetch_add(&contest->twice_count, 1);
        atomic_fetch_sub(&contest->owners[index], 1);
        index_pool_put(&contest->pool, index);
    }
    return NULL;
}

/* More numbers than threads, so nobody may go without. */
static void test_no_number_is_given_twice(void **state) {
    struct contest *contest = calloc(1, sizeof(*contest));
    pthread_t threads[THREADS];

    (void)state;
    assert_non_null(contest);
    assert_true(index_pool_init(&contest->pool, NUMBERS));
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, contest_run, contest), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(contest->twice_count, 0);
    assert_int_equal(contest->none_count, 0);
    for (int i = 0; i < NUMBERS; i++)
        assert_true(index_pool_take(&contest->pool) < NUMBERS);
    assert_int_equal(index_pool_take(&contest->pool), INDEX_NONE);
    index_pool_deinit(&contest->pool);
    free(contest);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_of_handles),
        cmocka_unit_test(test_evicting_finds_what_is_open),
        cmocka_unit_test(test_writers_are_counted),
        cmocka_unit_test(test_each_user_has_a_share),
        cmocka_unit_test(test_no_number_is_given_twice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
