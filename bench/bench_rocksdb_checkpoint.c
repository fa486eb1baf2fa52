/* What bench_lmdb_checkpoint measures, on RocksDB, to decide between the two: sorted changes over
 * many keys in synced batches. Prints a line of JSON for the filling and one for each checkpoint.
 *
 *     bench_rocksdb_checkpoint DIRECTORY [KEYS [CHANGES [CHECKPOINTS [VALUE_BYTES]]]]
 *
 * Keys and values are those of bench_lmdb_checkpoint: 24 bytes, spread by a hash of their number.
 * Tuned for gets: bloom filters of 10 bits a key, index and filters pinned in a block cache of
 * 2 GiB, levels sized by what they hold. A checkpoint ends with a flush of the memtable. Built
 * only where librocksdb is. */
#include "base/endian.h"
#include "base/prng.h"
#include "base/types.h"
#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { KEY_BYTES = 24, BATCH_ROWS = 16384, READS = 100000, CACHE_MIB = 2048, THREADS = 2 };

struct row {
    uint8_t key[KEY_BYTES];
    uint8_t *value;
};

struct bench {
    rocksdb_t *db;
    rocksdb_writeoptions_t *synced;
    rocksdb_readoptions_t *reads;
    rocksdb_flushoptions_t *flush;
    struct prng prng;
    uint64_t key_count, keys, changes, checkpoints, value_bytes;
    struct row *rows;
    uint8_t *values;
};

static uint64_t clock_ns(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static void check(char *problem) {
    if (problem) {
        fprintf(stderr, "bench_rocksdb_checkpoint: %s\n", problem);
        exit(1);
    }
}

static unsigned long long written_bytes(void) {
    char line[256];
    unsigned long long number = 0;
    FILE *file = fopen("/proc/self/io", "r");

    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, "write_bytes: ", 13) == 0) {
            number = strtoull(line + 13, NULL, 10);
        }
    }
    if (file) {
        (void)fclose(file);
    }
    return number;
}

static void key_of(uint64_t number, uint8_t *ret_key) {
    uint64_t place = number * UINT64_C(0x9E3779B97F4A7C15);

    place = (place ^ (place >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    place = (place ^ (place >> 27)) * UINT64_C(0x94D049BB133111EB);
    place ^= place >> 31;
    memset(ret_key, 0, KEY_BYTES);
    for (int i = 0; i < 8; i++) {
        ret_key[i] = (uint8_t)(place >> (56 - 8 * i));
        ret_key[16 + i] = (uint8_t)(number >> (56 - 8 * i));
    }
}

static void row_set(struct bench *bench, uint64_t i, uint64_t number) {
    struct row *row = &bench->rows[i];

    row->value = bench->values + i * bench->value_bytes;
    key_of(number, row->key);
    for (uint64_t at = 0; at + 8 <= bench->value_bytes; at += 8) {
        store_le64(row->value + at, prng_next(&bench->prng));
    }
}

static int row_order(const void *a, const void *b) {
    return memcmp(((const struct row *)a)->key, ((const struct row *)b)->key, KEY_BYTES);
}

static void rows_commit(struct bench *bench, uint64_t count) {
    char *problem = NULL;

    for (uint64_t at = 0; at < count; at += BATCH_ROWS) {
        rocksdb_writebatch_t *batch = rocksdb_writebatch_create();

        for (uint64_t i = at; i < MIN(at + BATCH_ROWS, count); i++) {
            rocksdb_writebatch_put(batch, (const char *)bench->rows[i].key, KEY_BYTES,
                                   (const char *)bench->rows[i].value, bench->value_bytes);
        }
        rocksdb_write(bench->db, bench->synced, batch, &problem);
        check(problem);
        rocksdb_writebatch_destroy(batch);
    }
    rocksdb_flush(bench->db, bench->flush, &problem);
    check(problem);
}

static double reads_measure(struct bench *bench) {
    uint64_t start_ns = clock_ns();

    for (int i = 0; i < READS; i++) {
        uint8_t key[KEY_BYTES];
        char *problem = NULL;
        size_t size;

        key_of(prng_below(&bench->prng, bench->key_count), key);
        char *value =
            rocksdb_get(bench->db, bench->reads, (const char *)key, KEY_BYTES, &size, &problem);
        check(problem);
        if (!value) {
            check((char[]){"a key that was written is not there"});
        }
        free(value);
    }
    return (double)(clock_ns() - start_ns) / 1e3 / READS;
}

/* Draws fresh numbers, or ones that are there; sorts; commits; prints. */
static void round_run(struct bench *bench, const char *what, uint64_t count, bool fresh) {
    for (uint64_t i = 0; i < count; i++) {
        row_set(bench, i, fresh ? bench->key_count + i : prng_below(&bench->prng, bench->keys));
    }
    qsort(bench->rows, count, sizeof bench->rows[0], row_order);
    unsigned long long before_bytes = written_bytes();
    uint64_t start_ns = clock_ns();
    rows_commit(bench, count);
    double us = (double)(clock_ns() - start_ns) / 1e3 / (double)count;
    double user_bytes = (double)count * (double)(KEY_BYTES + bench->value_bytes);
    double amplification = (double)(written_bytes() - before_bytes) / user_bytes;
    bench->key_count += fresh ? count : 0;
    if (!fresh || bench->key_count == bench->keys) {
        printf("{\"bench\": \"rocksdb_checkpoint\", \"what\": \"%s\", \"keys\": %llu, "
               "\"us_per_change\": %.2f, \"write_amplification\": %.2f, \"get_us\": %.2f}\n",
               what, (unsigned long long)bench->key_count, us, amplification, reads_measure(bench));
        (void)fflush(stdout);
    }
}

static rocksdb_options_t *options_new(void) {
    rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();
    rocksdb_options_t *options = rocksdb_options_create();

    rocksdb_block_based_options_set_filter_policy(table,
                                                  rocksdb_filterpolicy_create_bloom_full(10));
    rocksdb_block_based_options_set_block_cache(table, rocksdb_cache_create_lru(CACHE_MIB * MIB));
    rocksdb_block_based_options_set_cache_index_and_filter_blocks(table, 1);
    rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(table, 1);
    rocksdb_options_set_block_based_table_factory(options, table);
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_increase_parallelism(options, THREADS);
    rocksdb_options_set_level_compaction_dynamic_level_bytes(options, 1);
    rocksdb_options_set_compression(options, rocksdb_no_compression);
    return options;
}

static uint64_t number_at(int argc, char **argv, int at, uint64_t otherwise) {
    char *end = NULL;
    uint64_t number = argc > at ? strtoull(argv[at], &end, 10) : otherwise;

    if (number == 0 || (end && *end)) {
        fprintf(stderr, "usage: bench_rocksdb_checkpoint DIRECTORY [KEYS [CHANGES [CHECKPOINTS "
                        "[VALUE_BYTES]]]]\n");
        exit(2);
    }
    return number;
}

int main(int argc, char **argv) {
    struct bench bench = {.keys = number_at(argc, argv, 2, 10000000),
                          .changes = number_at(argc, argv, 3, 1000000),
                          .checkpoints = number_at(argc, argv, 4, 10),
                          .value_bytes = number_at(argc, argv, 5, 200)};
    char *problem = NULL;

    bench.rows = calloc(bench.changes, sizeof *bench.rows);
    bench.values = calloc(bench.changes, bench.value_bytes);
    if (argc < 2 || !bench.rows || !bench.values) {
        (void)number_at(2, (char *[]){"", ""}, 1, 0);
    }
    prng_init(&bench.prng, 1);
    bench.synced = rocksdb_writeoptions_create();
    bench.reads = rocksdb_readoptions_create();
    bench.flush = rocksdb_flushoptions_create();
    rocksdb_writeoptions_set_sync(bench.synced, 1);
    bench.db = rocksdb_open(options_new(), argv[1], &problem);
    check(problem);
    while (bench.key_count < bench.keys) {
        round_run(&bench, "fill", MIN(bench.changes, bench.keys - bench.key_count), true);
    }
    for (uint64_t i = 0; i < bench.checkpoints; i++) {
        round_run(&bench, "checkpoint", bench.changes, false);
    }
    rocksdb_close(bench.db);
    return 0;
}
