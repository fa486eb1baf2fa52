/* What a row costs in the tree of changed rows; prints one line of JSON, ns an operation.
 *
 *     bench_changes [ROWS] [VALUE_BYTES]      1,000,000 rows of 200 bytes by default
 *
 * ascending: one run of keys.  runs: 1000 runs that grow in turn, 16 rows at a time, as the files
 * of 1000 writers do.  random: keys that are hashes. For each: put into an empty tree, find in an
 * order that has nothing to do with that of the puts, put again in place, and walk by next. The
 * pool is used once before, so that the first touch of its pages is not measured. */
#include "base/prng.h"
#include "kv/changes.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROWS = 1000000, VALUE_BYTES = 200, RUNS = 1000, RUN_ROWS = 16, ROUNDS = 5 };

enum order { ORDER_ASCENDING, ORDER_RUNS, ORDER_RANDOM, ORDER_COUNT };
static const char *const order_names[] = {"ascending", "runs", "random"};

struct bench {
    struct changes_pool *pool;
    struct changes *changes;
    struct kv_key *keys;
    struct kv_key *shuffled; /* the same keys, so that reading them costs no miss */
    size_t rows;
    struct bytes value;
};

static uint64_t clock_ns(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static struct kv_key key_of(struct prng *prng, enum order order, size_t i) {
    struct kv_key_fields fields = {.space = 1, .slot = 5, .type = 2};
    size_t turn = i / RUN_ROWS;

    switch (order) {
    case ORDER_ASCENDING:
        fields.id = i / 64;
        fields.index = i;
        break;
    case ORDER_RUNS:
        fields.id = turn % RUNS;
        fields.index = turn / RUNS * RUN_ROWS + i % RUN_ROWS;
        break;
    default:
        fields.slot = (uint16_t)prng_next(prng);
        fields.id = prng_next(prng);
        fields.index = prng_next(prng);
        break;
    }
    return kv_key_make(fields);
}

static void put_all(const struct bench *bench) {
    for (size_t i = 0; i < bench->rows; i++) {
        int r = changes_put(bench->changes, &bench->keys[i], bench->value, NULL);

        assert(r == 0);
        (void)r;
    }
}

static void find_all(const struct bench *bench) {
    size_t found = 0;

    for (size_t i = 0; i < bench->rows; i++) {
        struct bytes value;

        found += changes_find(bench->changes, &bench->shuffled[i], &value) == CHANGES_PRESENT;
    }
    assert(found == bench->rows);
}

static void put_again(const struct bench *bench) {
    for (size_t i = 0; i < bench->rows; i++) {
        int r = changes_put(bench->changes, &bench->shuffled[i], bench->value, NULL);

        assert(r == 0);
        (void)r;
    }
}

static void walk_all(const struct bench *bench) {
    struct kv_key key = {{0}};
    struct bytes value;
    size_t count = 0;

    while (changes_next(bench->changes, &key, false, &key, &value) != CHANGES_ABSENT) {
        count++;
    }
    assert(count == bench->rows);
}

/* The best of several rounds, as the machine has other things to do too. */
static void measure(const struct bench *bench, enum order order, const char *what,
                    void (*run)(const struct bench *bench), unsigned rounds) {
    uint64_t best_ns = UINT64_MAX;

    for (unsigned i = 0; i < rounds; i++) {
        uint64_t start_ns = clock_ns();

        run(bench);
        best_ns = MIN(best_ns, clock_ns() - start_ns);
    }
    printf(", \"%s_%s_ns\": %.0f", order_names[order], what, (double)best_ns / (double)bench->rows);
}

/* Into a generation of its own in each round. */
static void put_new(const struct bench *bench) {
    struct bench fresh = *bench;
    int r = changes_new(bench->pool, &fresh.changes);

    assert(r == 0);
    (void)r;
    put_all(&fresh);
    changes_free(fresh.changes);
}

static void shuffle(struct prng *prng, const struct bench *bench) {
    memcpy(bench->shuffled, bench->keys, bench->rows * sizeof bench->keys[0]);
    for (size_t i = bench->rows; i > 1; i--) {
        size_t other = prng_below(prng, i);
        struct kv_key key = bench->shuffled[i - 1];

        bench->shuffled[i - 1] = bench->shuffled[other];
        bench->shuffled[other] = key;
    }
}

static void bench_order(struct bench *bench, struct changes_pool *pool, enum order order) {
    struct prng prng;
    int r = changes_new(pool, &bench->changes);

    assert(r == 0);
    (void)r;
    prng_init(&prng, 1);
    for (size_t i = 0; i < bench->rows; i++) {
        bench->keys[i] = key_of(&prng, order, i);
    }
    shuffle(&prng, bench);
    measure(bench, order, "put", put_new, ROUNDS);
    put_all(bench);
    measure(bench, order, "find", find_all, ROUNDS);
    measure(bench, order, "put_again", put_again, ROUNDS);
    measure(bench, order, "next", walk_all, ROUNDS);
    printf(", \"%s_bytes_a_row\": %zu", order_names[order],
           changes_pool_used_bytes(pool) / bench->rows);
    changes_free(bench->changes);
}

static void touch_pool(struct changes_pool *pool, struct bench *bench) {
    int r = changes_new(pool, &bench->changes);
    struct prng prng;

    assert(r == 0);
    (void)r;
    prng_init(&prng, 2);
    for (size_t i = 0; i < bench->rows; i++) {
        bench->keys[i] = key_of(&prng, ORDER_RANDOM, i);
    }
    put_all(bench);
    changes_free(bench->changes);
}

int main(int argc, char **argv) {
    size_t rows = argc > 1 ? strtoull(argv[1], NULL, 10) : ROWS;
    size_t value_bytes = argc > 2 ? strtoull(argv[2], NULL, 10) : VALUE_BYTES;
    struct changes_pool *pool;
    struct bench bench = {.rows = rows};

    if (rows == 0 || rows > UINT32_MAX || value_bytes > CHANGES_VALUE_BYTES_MAX ||
        changes_pool_new(2 * rows * (value_bytes + 128) + 32 * MIB, &pool) < 0) {
        fprintf(stderr, "usage: bench_changes [ROWS] [VALUE_BYTES]\n");
        return 1;
    }
    bench.keys = calloc(rows, sizeof *bench.keys);
    bench.shuffled = calloc(rows, sizeof *bench.shuffled);
    bench.value = (struct bytes){calloc(1, value_bytes + 1), value_bytes};
    assert(bench.keys && bench.shuffled && bench.value.data);
    bench.pool = pool;
    touch_pool(pool, &bench);
    printf("{\"bench\": \"changes\", \"rows\": %zu, \"value_bytes\": %zu", rows, value_bytes);
    for (unsigned order = 0; order < ORDER_COUNT; order++) {
        bench_order(&bench, pool, (enum order)order);
    }
    printf("}\n");
    changes_pool_free(pool);
    free(bench.keys);
    free(bench.shuffled);
    free((void *)(uintptr_t)bench.value.data);
    return 0;
}
