/* Limits of one engine that hold at the same time, at a kill, at a stop, and at a start that has
 * less: each keeps its own answer, nothing is lost, and all goes on when they have ended. */
#include "unit.h"
#include "kv_edge.h"

enum {
    POOL_BYTES = 512 * KIB,
    ROWS_OF_POOL = 100000,
    SESSIONS = 8,
    OUTCOMES_OF_ONE = 8,
    MORE_MAX = 200
};
/* What is full. */
enum { BASE = 1, LOG = 2, POOL = 4, OUTCOMES = 8, SUBSETS = 16 };
enum end { BY_STOP, BY_KILL, BY_KILL_WITH_LESS, END_COUNT };

struct pair {
    struct edge *edge;
    unsigned full;
    uint64_t rows; /* put under 0 .. rows - 1 */
};

static struct kv_levels levels_of(struct edge *edge) {
    struct kv_counters counters;

    kv_counters_get(edge->kv, &counters);
    return counters.levels;
}

/* Sooner or later it is told what holds: a checkpoint finds out first that there is no room. */
static int answer(struct edge *edge, enum kv_class message_class, uint64_t id) {
    int r = -ERR_PENDING;

    for (int turn = 0; turn < 100 && r == -ERR_PENDING; turn++) {
        r = edge_put(edge, message_class, id, 64);
        (void)kv_seal(edge->kv);
        edge_turn(edge, 100 * NS_PER_MS);
    }
    return r;
}

static void fill_pool(struct pair *pair) {
    struct edge *edge = pair->edge;

    for (int r = 0; r != -ERR_NO_SPACE;) {
        r = edge_put(edge, KV_CLASS_REQUEST, pair->rows, 200);
        pair->rows += r == 0;
        assert_true(pair->rows < ROWS_OF_POOL);
        if (r == -ERR_PENDING || pair->rows % 32 == 0) {
            (void)kv_seal(edge->kv);
            edge_turn(edge, 100 * NS_PER_MS);
        }
    }
    (void)kv_seal(edge->kv);
    edge_settle(edge, false);
    assert_in_range(levels_of(edge).memory, 650, 1000);
}

/* One row, again and again, until no class gets more: it takes log, and no memory. */
static void fill_log(struct pair *pair) {
    static const enum kv_class order[] = {KV_CLASS_REQUEST, KV_CLASS_FREEING, KV_CLASS_RELEASE,
                                          KV_CLASS_CONTROL};
    struct edge *edge = pair->edge;
    int turns = 0;

    for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
        while (answer(edge, order[i], 0) != -ERR_NO_SPACE) {
            edge_turn(edge, NS_PER_S);
            assert_true(++turns < EDGE_TURNS_MAX);
        }
    }
    assert_in_range(levels_of(edge).log, 700, 1000);
}

static void fill_outcomes(struct pair *pair) {
    for (uint64_t session = 1; session <= SESSIONS; session++) {
        for (uint64_t i = 1; i <= OUTCOMES_OF_ONE; i++) {
            assert_int_equal(edge_outcome(pair->edge, session, i, 1), 0);
        }
    }
    edge_settle(pair->edge, false);
    assert_int_equal(levels_of(pair->edge).outcomes, 1000);
}

/* The base has no room meanwhile, or nothing would stay full. */
static void pair_fill(struct pair *pair, uint64_t seed, unsigned full) {
    *pair = (struct pair){edge_with_log(seed, full & LOG ? MIB : 8 * MIB), full, 1};
    assert_int_equal(edge_put(pair->edge, KV_CLASS_REQUEST, 0, 64), 0);
    (void)kv_seal(pair->edge->kv);
    edge_settle(pair->edge, false);
    kv_mem_store_full(pair->edge->store, true);
    if (full & OUTCOMES) {
        fill_outcomes(pair);
    }
    if (full & POOL) {
        fill_pool(pair);
    }
    if (full & LOG) {
        fill_log(pair);
    }
}

static void pair_start_anew(struct pair *pair, enum end end) {
    struct edge *edge = pair->edge;

    if (end == BY_STOP) {
        assert_int_equal(edge_stop(edge), 0);
        kv_abandon(edge->kv);
        edge->kv = NULL;
    } else {
        edge_kill(edge);
    }
    kv_mem_store_full(edge->store, pair->full & BASE);
    if (end == BY_KILL_WITH_LESS) {
        edge->options.changes_bytes_max = POOL_BYTES / 2;
        edge->options.outcomes_max = 16;
    }
    if (edge_open(edge) < 0) {
        fail_msg("full %u, end %d: %s", pair->full, end, edge->problem);
    }
    edge_check(edge);
}

/* Each limit that is left has its own answer, and no other one. */
static void pair_check(struct pair *pair) {
    struct edge *edge = pair->edge;
    bool is_spent = pair->full & (LOG | POOL);
    uint64_t more = 0;
    int r;

    for (uint64_t id = 0; id < pair->rows; id++) {
        assert_true(edge_has(edge, id));
    }
    if (pair->full & OUTCOMES) {
        assert_int_equal(edge_outcome(edge, SESSIONS + 1, 1, 1), -ERR_BUSY);
        assert_int_equal(edge_outcome(edge, 2, OUTCOMES_OF_ONE + 1, 1), -ERR_BUSY);
    }
    /* What a start has packed closer leaves room for a few. */
    while ((r = answer(edge, KV_CLASS_REQUEST, pair->rows)) == 0 && more < MORE_MAX) {
        pair->rows++;
        more++;
    }
    if ((pair->full & BASE) && is_spent) {
        assert_int_equal(r, -ERR_NO_SPACE);
        assert_true(levels_of(edge).full_ns > 0);
    } else {
        assert_int_equal(r, 0);
    }
}

static void pair_end(struct pair *pair) {
    struct edge *edge = pair->edge;

    kv_mem_store_full(edge->store, false);
    for (int i = 0; i < KV_CLASS_COUNT; i++) {
        edge_goes_on(edge, (enum kv_class)i, 0);
    }
    assert_int_equal(levels_of(edge).full_ns, 0);
    if (pair->full & OUTCOMES) {
        for (uint64_t session = 1; session <= SESSIONS; session++) {
            assert_int_equal(edge_outcome(edge, session, OUTCOMES_OF_ONE + 1, OUTCOMES_OF_ONE + 1),
                             0);
        }
        assert_int_equal(edge_outcome(edge, SESSIONS + 1, 1, 1), 0);
    }
    assert_int_equal(edge_stop(edge), 0);
    kv_abandon(edge->kv);
    edge->kv = NULL;
    assert_int_equal(edge_open(edge), 0);
    for (uint64_t id = 0; id < pair->rows; id++) {
        assert_true(edge_has(edge, id));
    }
    edge_free(edge);
}

/* Base, log, memory and outcomes: each subset of them is full, at an end and at the next one. */
static void test_each_subset_at_an_end(void **state) {
    struct pair pair;

    (void)state;
    for (unsigned full = 0; full < SUBSETS; full++) {
        for (enum end end = 0; end < END_COUNT; end++) {
            pair_fill(&pair, 1 + full, full);
            for (int times = 0; times < 2; times++) {
                pair_start_anew(&pair, end);
                pair_check(&pair);
            }
            pair_end(&pair);
        }
    }
}

/* A ring that no sync point empties, over a log that has no room for more than what it holds. */
static void test_full_ring_and_log(void **state) {
    (void)state;
    for (enum end end = BY_KILL; end < END_COUNT; end++) {
        struct pair pair;
        int r = 0;

        pair = (struct pair){edge_with_log(40, MIB), BASE | LOG, 1};
        kv_mem_store_full(pair.edge->store, true);
        while (answer(pair.edge, KV_CLASS_REQUEST, 0) != -ERR_NO_SPACE) {
            edge_turn(pair.edge, NS_PER_S);
        }
        /* From here on no step is taken: what is sealed stays in the ring. */
        while ((r = edge_put(pair.edge, KV_CLASS_CONTROL, pair.rows, 64)) == 0) {
            pair.rows++;
            (void)kv_seal(pair.edge->kv);
        }
        assert_true(r == -ERR_PENDING || r == -ERR_NO_SPACE);
        assert_in_range(levels_of(pair.edge).ring, 800, 1000);
        for (int times = 0; times < 2; times++) {
            pair_start_anew(&pair, end);
            pair_check(&pair);
        }
        pair_end(&pair);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_subset_at_an_end),
        cmocka_unit_test(test_full_ring_and_log),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
