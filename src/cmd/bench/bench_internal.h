/* What the phases of a benchmark share with the engine that runs them (bench.c). */
#pragma once
#include "base/prng.h"
#include "cmd/bench/bench.h"

enum {
    BENCH_BLOCK_BYTES = 1 << 20,
    BENCH_RANDOM_BYTES = 4096,
    BENCH_COMMIT_BYTES = 4096,
    BENCH_SAVE_ROUNDS = 3,
    BENCH_RANDOM_SECONDS = 5,
    BENCH_SCATTER_PRIME = 1000003,
    BENCH_FOLDER_BYTES = 48,
};

/* A parent of --branch directories. */
#define BENCH_PARENT "p%" PRIu64

/* The directory of this index below the folder; answers its length. */
size_t bench_folder_print(const struct bench_options *options, uint64_t index, char *path,
                          size_t size);

/* One thread of one phase. */
struct bench_worker {
    const struct bench_run *run;
    void *place; /* of the files */
    uint32_t index;
    uint64_t first; /* its share of the phase's indices: [first, first + count) */
    uint64_t count;
    uint64_t done;
    uint64_t made; /* by the phase that makes; UINT64_MAX: by an earlier run */
    uint64_t operations;
    uint64_t bytes;
    uint64_t deadline_ns; /* UINT64_MAX: none */
    union bench_file file;
    bool has_file;
    uint8_t *buffer; /* BENCH_BLOCK_BYTES, aligned to 4 KiB */
    struct prng prng;
    struct histogram latency_ns;
    int error;
    char path[BENCH_PATH_BYTES];  /* of the call that is made */
    char other[BENCH_PATH_BYTES]; /* rename: the new name */
};

/* How many indices a phase has, all threads together; UINT64_MAX: until the time is over. */
typedef uint64_t bench_count_fn(const struct bench_options *options);

struct bench_phase {
    bench_count_fn *count;
    /* One operation; it counts itself with bench_worker_add. */
    int (*operation)(struct bench_worker *worker, uint64_t index);
    int (*begin)(struct bench_worker *worker); /* NULL: nothing; a thread's, within its time */
    int (*end)(struct bench_worker *worker);
    bool makes; /* what later phases of the run find: as much as it got to */
};

extern const struct bench_phase *const bench_phases[BENCH_KINDS];

void bench_worker_add(struct bench_worker *worker, uint64_t begun_ns, uint64_t bytes);
/* Bytes of a thread's file: big and checkpoint. */
uint64_t bench_thread_bytes(const struct bench_options *options);
