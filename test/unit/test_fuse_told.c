/* What the kernel may have of attributes: an open must notice whatever others have changed, and
 * what a read through an older handle made the kernel believe. */
#include "unit.h"
#include "front/fuse/told.h"
#include <pthread.h>
#include <sched.h>

enum { INO = 7, OTHER = 8 };
enum { S = 1000000000 };

static int set_up(void **state) {
    static struct told_table table;

    *state = &table;
    return told_table_init(&table);
}

static int tear_down(void **state) {
    told_table_deinit(*state);
    return 0;
}

static void test_any_change_differs(void **state) {
    const struct shoal_attributes was = {.ino = INO, .size = 10, .mtime_ns = 20, .ctime_ns = 30};
    struct shoal_attributes changed[] = {was, was, was};

    changed[0].size++;
    changed[1].mtime_ns++;
    changed[2].ctime_ns++;
    for (uint64_t i = 0; i < ARRAY_SIZE(changed); i++) {
        told_note(*state, &was, (i + 1) * S, (i + 1) * S + 1);
        assert_false(told_differs(*state, &was));
        assert_true(told_differs(*state, &changed[i]));
        assert_false(told_differs(*state, &changed[i]));
    }
}

/* The kernel has nothing that could be old. */
static void test_what_was_never_told_is_new(void **state) {
    const struct shoal_attributes first = {.ino = INO, .size = 10};

    assert_false(told_differs(*state, &first));
    assert_false(told_differs(*state, &first));
}

static void test_an_end_that_was_not_told(void **state) {
    const struct shoal_attributes told = {.ino = INO, .size = 10};

    told_note(*state, &told, S, S + 1);
    told_end(*state, INO, 10);
    told_end(*state, OTHER, 3);
    assert_false(told_differs(*state, &told));
    told_end(*state, INO, 3);
    assert_true(told_differs(*state, &told));
    assert_false(told_differs(*state, &told));
}

/* The kernel takes the answer that comes first, and drops the other one where its request was sent
 * before: which of them that is nobody here knows, unless both say the same. */
static void test_two_answers_on_their_way(void **state) {
    const struct shoal_attributes was = {.ino = INO, .size = 10};
    const struct shoal_attributes grown = {.ino = INO, .size = 20};

    told_note(*state, &was, 11ULL * S, 12ULL * S);
    told_note(*state, &grown, 10ULL * S, 13ULL * S);
    assert_true(told_differs(*state, &grown));
    assert_false(told_differs(*state, &grown));
    told_note(*state, &grown, 20ULL * S, 21ULL * S);
    told_note(*state, &grown, 20ULL * S, 22ULL * S);
    assert_false(told_differs(*state, &grown));
    /* One after the other. */
    told_note(*state, &was, 30ULL * S, 31ULL * S);
    told_note(*state, &grown, 32ULL * S, 33ULL * S);
    assert_false(told_differs(*state, &grown));
}

enum { TELLERS = 2, ROUNDS = 300000 };

struct teller {
    const struct told_table *table;
    uint64_t size;
    atomic_uint *met_count;
    unsigned known_count; /* rounds behind which what this one told counts as known */
};

/* Until all have come to it; each is met once, in their order. */
static void meet(atomic_uint *met_count, unsigned number) {
    atomic_fetch_add(met_count, 1);
    while (atomic_load(met_count) < (number + 1) * TELLERS) {
        sched_yield();
    }
}

static void *teller_main(void *context) {
    struct teller *teller = context;
    const struct shoal_attributes told = {.ino = INO, .size = teller->size};
    const struct shoal_attributes before = {.ino = INO, .size = 1};

    for (unsigned i = 0; i < ROUNDS; i++) {
        uint64_t now_ns = (i + 1ULL) * S;

        meet(teller->met_count, 2 * i);
        told_note(teller->table, &told, now_ns, now_ns + 1);
        meet(teller->met_count, 2 * i + 1);
        if (i % TELLERS == teller->size % TELLERS) {
            teller->known_count += !told_differs(teller->table, &told);
            (void)told_differs(teller->table, &before);
        }
    }
    return NULL;
}

/* Which of two answers the kernel takes that are noted at once nobody here knows. */
static void test_two_threads_note_at_once(void **state) {
    atomic_uint met_count = 0;
    struct teller tellers[TELLERS];
    pthread_t threads[TELLERS];

    (void)told_differs(*state, &(struct shoal_attributes){.ino = INO, .size = 1});
    for (unsigned i = 0; i < TELLERS; i++) {
        tellers[i] = (struct teller){.table = *state, .size = 10 + i, .met_count = &met_count};
        assert_int_equal(pthread_create(&threads[i], NULL, teller_main, &tellers[i]), 0);
    }
    for (unsigned i = 0; i < TELLERS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(tellers[i].known_count, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_any_change_differs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_was_never_told_is_new, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_an_end_that_was_not_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_two_answers_on_their_way, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_two_threads_note_at_once, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
