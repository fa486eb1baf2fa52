/* Workloads that training runs put on a file system, timed call by call.
 *
 *     kind         phases, in this order
 *     meta         create stat open rename list unlink mkdir rmdir     empty files
 *     small        write read delete                                   whole files, read scattered
 *     big          write read randread randwrite erase                 a file a thread
 *     checkpoint   save restore commit drop                            temporary, fsync, rename
 *
 * All lies in PATH/shoal-bench, which is made by the first phase and removed when it is empty, so
 * phases can be run one by one, with a new mount between them. A row is one phase; an operation is
 * what its user waits for (open, read, close: one). rename counts there and back. randread and
 * randwrite take RANDOM_SECONDS when no other time is given. Errors end a run; what it made
 * stays. */
#pragma once
#include "base/err.h"
#include "base/histogram.h"
#include "base/types.h"
#include "cmd/bench/bench_files.h"
#include "cmd/verb.h"

enum { BENCH_PATH_BYTES = 4096, BENCH_THREADS_MAX = 1024, BENCH_PHASES_MAX = 8 };

enum bench_kind { BENCH_META, BENCH_SMALL, BENCH_BIG, BENCH_CHECKPOINT, BENCH_KINDS };

struct bench_options {
    enum bench_kind kind;
    char path[BENCH_PATH_BYTES / 2]; /* an existing directory */
    uint32_t threads;                /* 1 to BENCH_THREADS_MAX */
    uint64_t files;                  /* of all threads together */
    uint64_t size_bytes;             /* of a file; big and checkpoint: of all threads together */
    uint32_t dirs;                   /* that the files lie in */
    uint32_t branch;                 /* of these in one parent; 0: all */
    uint64_t listing_bytes;          /* that the kernel is asked for at a time */
    uint32_t seconds;                /* at most so long a phase; 0: until it is done */
    uint32_t phases;                 /* bits, in the order of the kind's phases */
    bool direct;                     /* big: past the page cache */
    bool native;                     /* through libshoal, in the daemon */
    bool json;
};

/* The rows of the kinds, in their order, and of the options, by which bench_parse reads. */
extern const struct verb_kind bench_kinds_rows[BENCH_KINDS + 1];
extern const struct verb_option bench_options_rows[];

/* Fills in the kind's defaults, then what the words say. False: problem says what is wrong, and
 * nothing else is to be read from options. */
bool bench_parse(size_t argument_count, const char *const *arguments, struct bench_options *options,
                 char problem[256]);

struct bench_row {
    const char *name; /* of the phase */
    uint32_t threads;
    uint64_t operations; /* of list: entries */
    uint64_t bytes;
    uint64_t elapsed_ns;
    struct histogram latency_ns;
};

struct bench_run {
    const struct bench_options *options;
    const struct bench_files *files;
    void *context;                                /* of files */
    void (*begun)(void *user, const char *phase); /* NULL: nobody wants to know */
    void (*row)(void *user, const struct bench_row *row);
    void *user;
};

/* 0, or the first error, with one line on what it was. Rows come as their phases end. */
MUST_CHECK int bench_run(const struct bench_run *run, char problem[256]);

/* The i-th phase of a kind; NULL behind the last. */
const char *bench_phase_name(enum bench_kind kind, size_t index);

/* Text of rows: `out` gets pieces of it. */
struct bench_print {
    bool json;
    uint32_t count;
    void (*out)(void *context, const char *text);
    void *context;
};
void bench_print_row(struct bench_print *print, const struct bench_row *row);
void bench_print_end(struct bench_print *print);
