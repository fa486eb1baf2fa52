/* What checkpoints into the base on LMDB cost: sorted changes over many keys, in synced commits.
 * Prints one line of JSON for the filling and one for each checkpoint.
 *
 *     bench_lmdb_checkpoint --directory=DIR [--keys=10000000] [--changes=1000000]
 *         [--checkpoints=10] [--commit-rows=16384] [--value-bytes=200] [--new=0] [--hot=100]
 *         [--memory-mib=0] [--reads=100000] [--seed=1] [--reuse]
 *
 * Key number n lies at a place that is a hash of n, so that changes are spread over the whole
 * file. --new: percent of the changes that add a key. --hot: percent of the key space that the
 * changes fall into. --memory-mib: before each commit, pages of the file beyond so many are put
 * out of memory, at random places (0: as many as the system has room for). --reuse: goes on with
 * the file of a former run with the same --keys and --value-bytes. 100 million keys of 200 bytes
 * take some 35 GB; 10 million 3.5 GB.
 *
 * us_per_change is the time of the commits alone, sorting excluded; write_amplification is the
 * bytes that the process had written to storage (/proc/self/io) for each byte of key and value;
 * read_bytes came from storage. rss_anon is the process's own memory, rss_file the map. get_us is
 * a random get of a key that is there, after the checkpoint, each in a step of its own. */
#include "base/prng.h"
#include "kv/kv_lmdb.h"
#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct options {
    const char *directory;
    uint64_t keys, changes, checkpoints, commit_rows, value_bytes;
    uint64_t new_percent, hot_percent, memory_mib, reads, seed;
    bool reuse;
};

/* The outside: jobs run at once, on this thread. */
struct outside {
    struct env env;
    struct env_ops ops;
};

struct bench {
    struct options options;
    struct outside outside;
    struct kv_base *base;
    struct prng prng;
    uint64_t key_count; /* keys 0 .. key_count - 1 are there */
    struct kv_base_row *rows;
    uint8_t *values;
    uint64_t evicted_pages;
};

/* What the process has done and holds, from /proc/self. */
struct usage {
    uint64_t time_ns, read_bytes, write_bytes, anon_kib, file_kib;
};

static uint64_t clock_ns(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static void die(const char *what) {
    fprintf(stderr, "bench_lmdb_checkpoint: %s\n", what);
    exit(1);
}

static int outside_directory_make(struct env *env, const char *path) {
    (void)env;
    return mkdir(path, 0700) == 0 || errno == EEXIST ? 0 : -ERR_ACCESS;
}

static void outside_job_submit(struct env *env, struct env_job *job) {
    (void)env;
    job->run(job);
    job->done(job);
}

static uint64_t proc_number(const char *path, const char *name) {
    char line[256];
    unsigned long long number = 0;
    FILE *file = fopen(path, "r");

    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, name, strlen(name)) == 0) {
            number = strtoull(line + strlen(name), NULL, 10);
            break;
        }
    }
    if (file) {
        (void)fclose(file);
    }
    return number;
}

static struct usage usage_now(void) {
    return (struct usage){
        .time_ns = clock_ns(),
        .read_bytes = proc_number("/proc/self/io", "read_bytes: "),
        .write_bytes = proc_number("/proc/self/io", "write_bytes: "),
        .anon_kib = proc_number("/proc/self/status", "RssAnon:"),
        .file_kib = proc_number("/proc/self/status", "RssFile:"),
    };
}

/* A place in the key space for each number: a bijection of 64 bits (splitmix64's last steps). */
static struct kv_key key_of(uint64_t number) {
    uint64_t place = number * UINT64_C(0x9E3779B97F4A7C15);

    place = (place ^ (place >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    place = (place ^ (place >> 27)) * UINT64_C(0x94D049BB133111EB);
    place ^= place >> 31;
    return kv_key_make((struct kv_key_fields){
        .space = 1, .slot = (uint16_t)(place >> 48), .type = 1, .id = place, .index = number});
}

static int row_order(const void *a, const void *b) {
    const struct kv_base_row *x = a, *y = b;

    return kv_key_compare(&x->key, &y->key);
}

/* The map's address, as the system tells it. */
static bool map_find(uint8_t **ret_start, size_t *ret_size) {
    char line[512];
    unsigned long start, end;
    bool found = false;
    FILE *file = fopen("/proc/self/maps", "r");

    while (file && !found && fgets(line, sizeof line, file)) {
        found = strstr(line, "/base.mdb\n") && sscanf(line, "%lx-%lx", &start, &end) == 2;
    }
    if (file) {
        (void)fclose(file);
    }
    if (found) {
        *ret_start = (uint8_t *)start; // NOLINT: an address from a text
        *ret_size = end - start;
    }
    return found;
}

/* Puts stretches of the file at random places out of memory until it fits. */
static void evict(struct bench *bench) {
    const size_t stretch_bytes = 4 * MIB;
    size_t map_bytes, resident = 0;
    size_t used_bytes = kv_lmdb_ops.file_bytes(bench->base) / BLOCK_BYTES * BLOCK_BYTES;
    uint8_t *map, *pages;

    if (bench->options.memory_mib == 0 || !map_find(&map, &map_bytes)) {
        return;
    }
    pages = malloc(used_bytes / BLOCK_BYTES + 1);
    assert(pages && used_bytes <= map_bytes);
    if (mincore(map, used_bytes, pages) < 0) {
        die("mincore failed");
    }
    for (size_t i = 0; i < used_bytes / BLOCK_BYTES; i++) {
        resident += pages[i] & 1;
    }
    while (resident * BLOCK_BYTES > bench->options.memory_mib * MIB) {
        size_t at = prng_below(&bench->prng, used_bytes / stretch_bytes + 1) * stretch_bytes;
        size_t size = MIN(stretch_bytes, used_bytes - at);

        if (size > 0 && madvise(map + at, size, MADV_PAGEOUT) < 0) {
            die("this system cannot put pages out of memory (MADV_PAGEOUT)");
        }
        for (size_t page = at / BLOCK_BYTES; page < (at + size) / BLOCK_BYTES; page++) {
            resident -= pages[page] & 1;
            bench->evicted_pages += pages[page] & 1;
            pages[page] = 0;
        }
    }
    free(pages);
}

static void commit_done(struct kv_base_commit *commit) {
    if (commit->result < 0) {
        die(err_text(commit->result));
    }
}

/* Commits the first count rows, sorted here, in pieces. Answers the ns that the commits took. */
static uint64_t rows_commit(struct bench *bench, size_t count) {
    uint64_t spent_ns = 0;

    qsort(bench->rows, count, sizeof bench->rows[0], row_order);
    for (size_t at = 0; at < count; at += bench->options.commit_rows) {
        struct kv_base_commit commit = {
            .rows = bench->rows + at,
            .row_count = MIN(bench->options.commit_rows, count - at),
            .done = commit_done,
        };
        uint64_t start_ns;

        evict(bench);
        start_ns = clock_ns();
        kv_lmdb_ops.commit(bench->base, &commit);
        spent_ns += clock_ns() - start_ns;
    }
    return spent_ns;
}

static void row_set(struct bench *bench, size_t i, uint64_t number) {
    uint8_t *value = bench->values + i * bench->options.value_bytes;

    for (size_t at = 0; at + 8 <= bench->options.value_bytes; at += 8) {
        store_le64(value + at, prng_next(&bench->prng));
    }
    bench->rows[i] =
        (struct kv_base_row){.key = key_of(number), .value = {value, bench->options.value_bytes}};
}

static void report(const struct bench *bench, const char *what, const struct usage *before,
                   uint64_t commits_ns, uint64_t rows) {
    struct usage after = usage_now();
    double user_bytes = (double)rows * (double)(KV_KEY_BYTES + bench->options.value_bytes);

    printf("{\"bench\": \"lmdb_checkpoint\", \"what\": \"%s\", \"keys\": %lu, \"rows\": %lu, "
           "\"us_per_change\": %.2f, \"write_amplification\": %.2f, \"read_bytes\": %lu, "
           "\"file_bytes\": %lu, \"rss_anon_kib\": %lu, \"rss_file_kib\": %lu, "
           "\"evicted_pages\": %lu",
           what, (unsigned long)bench->key_count, (unsigned long)rows,
           (double)commits_ns / 1e3 / (double)rows,
           (double)(after.write_bytes - before->write_bytes) / user_bytes,
           (unsigned long)(after.read_bytes - before->read_bytes),
           (unsigned long)kv_lmdb_ops.file_bytes(bench->base), (unsigned long)after.anon_kib,
           (unsigned long)after.file_kib, (unsigned long)bench->evicted_pages);
}

/* By checkpoints too, so that the file is laid out as one that grew. */
static void fill(struct bench *bench) {
    struct usage before = usage_now();
    uint64_t spent_ns = 0;

    while (bench->key_count < bench->options.keys) {
        size_t count = MIN(bench->options.changes, bench->options.keys - bench->key_count);

        for (size_t i = 0; i < count; i++) {
            row_set(bench, i, bench->key_count + i);
        }
        spent_ns += rows_commit(bench, count);
        bench->key_count += count;
    }
    report(bench, "fill", &before, spent_ns, bench->key_count);
    printf("}\n");
    (void)fflush(stdout);
}

/* Draws a key that is there, within the hot part of the key space. */
static uint64_t key_draw(struct bench *bench) {
    uint64_t hot_end = bench->options.hot_percent * 65536 / 100;
    struct kv_key key;
    uint64_t number;

    do {
        number = prng_below(&bench->prng, bench->key_count);
        key = key_of(number);
    } while (kv_key_split(&key).slot >= hot_end);
    return number;
}

static double reads_measure(struct bench *bench) {
    uint64_t start_ns = clock_ns();

    for (uint64_t i = 0; i < bench->options.reads; i++) {
        struct kv_key key = key_of(prng_below(&bench->prng, bench->key_count));
        struct bytes value;
        int r = kv_lmdb_ops.get(bench->base, &key, &value);

        if (r < 0) {
            die(err_text(r));
        }
        kv_lmdb_ops.read_end(bench->base);
    }
    return (double)(clock_ns() - start_ns) / 1e3 / (double)bench->options.reads;
}

static void checkpoint(struct bench *bench) {
    uint64_t added = bench->options.changes * bench->options.new_percent / 100;
    struct usage before;
    uint64_t spent_ns;
    size_t count = 0;

    for (uint64_t i = 0; i < bench->options.changes; i++) {
        bool is_new = i < added;

        row_set(bench, count++, is_new ? bench->key_count + i : key_draw(bench));
    }
    /* Two changes of one key are one row of a checkpoint. */
    qsort(bench->rows, count, sizeof bench->rows[0], row_order);
    size_t kept = 1;
    for (size_t i = 1; i < count; i++) {
        if (kv_key_compare(&bench->rows[kept - 1].key, &bench->rows[i].key) != 0) {
            bench->rows[kept++] = bench->rows[i];
        }
    }
    before = usage_now();
    bench->evicted_pages = 0;
    spent_ns = rows_commit(bench, kept);
    bench->key_count += added;
    report(bench, "checkpoint", &before, spent_ns, kept);
    if (bench->options.reads > 0) {
        printf(", \"get_us\": %.2f", reads_measure(bench));
    }
    printf("}\n");
    (void)fflush(stdout);
}

static void options_read(int argc, char **argv, struct options *options) {
    const struct {
        const char *name;
        uint64_t *value;
    } numbers[] = {
        {"keys", &options->keys},
        {"changes", &options->changes},
        {"checkpoints", &options->checkpoints},
        {"commit-rows", &options->commit_rows},
        {"value-bytes", &options->value_bytes},
        {"new", &options->new_percent},
        {"hot", &options->hot_percent},
        {"memory-mib", &options->memory_mib},
        {"reads", &options->reads},
        {"seed", &options->seed},
    };
    struct option table[ARRAY_SIZE(numbers) + 3] = {{0}};
    int which;

    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
        table[i] = (struct option){numbers[i].name, required_argument, NULL, (int)i};
    }
    table[ARRAY_SIZE(numbers)] = (struct option){"directory", required_argument, NULL, 'd'};
    table[ARRAY_SIZE(numbers) + 1] = (struct option){"reuse", no_argument, NULL, 'r'};
    while ((which = getopt_long(argc, argv, "", table, NULL)) != -1) {
        if (which == 'd') {
            options->directory = optarg;
        } else if (which == 'r') {
            options->reuse = true;
        } else if (which >= 0 && (size_t)which < ARRAY_SIZE(numbers)) {
            *numbers[which].value = strtoull(optarg, NULL, 10);
        } else {
            die("unknown option; the file's head lists them");
        }
    }
    if (!options->directory || options->keys == 0 || options->changes == 0 ||
        options->commit_rows == 0 || options->commit_rows > KV_BASE_COMMIT_ROWS_MAX ||
        options->hot_percent == 0 || options->hot_percent > 100 || options->new_percent > 100 ||
        options->value_bytes > 4096) {
        die("an option is missing or out of range");
    }
}

static void bench_open(struct bench *bench) {
    struct kv_base_options options = {.env = &bench->outside.env,
                                      .root = ".",
                                      .directory = bench->options.directory,
                                      .memory_bytes = UINT64_MAX};
    char problem[256] = "";

    bench->outside.ops = (struct env_ops){.directory_make = outside_directory_make,
                                          .job_submit = outside_job_submit};
    bench->outside.env.ops = &bench->outside.ops;
    if (options.directory[0] == '/') {
        options.root = "";
        options.directory++;
        if (chdir("/") < 0) {
            die("cannot go to /");
        }
    }
    if (kv_lmdb_ops.open(&options, &bench->base, problem) < 0) {
        die(problem);
    }
}

int main(int argc, char **argv) {
    struct bench bench = {.options = {.keys = 10000000,
                                      .changes = 1000000,
                                      .checkpoints = 10,
                                      .commit_rows = 16384,
                                      .value_bytes = 200,
                                      .hot_percent = 100,
                                      .reads = 100000,
                                      .seed = 1}};

    options_read(argc, argv, &bench.options);
    prng_init(&bench.prng, bench.options.seed);
    bench.rows = calloc(bench.options.changes, sizeof *bench.rows);
    bench.values = calloc(bench.options.changes, bench.options.value_bytes + 1);
    if (!bench.rows || !bench.values) {
        die("no memory");
    }
    bench_open(&bench);
    if (bench.options.reuse) {
        bench.key_count = bench.options.keys;
    } else {
        fill(&bench);
    }
    for (uint64_t i = 0; i < bench.options.checkpoints; i++) {
        checkpoint(&bench);
    }
    kv_lmdb_ops.close(bench.base);
    free(bench.rows);
    free(bench.values);
    return 0;
}
