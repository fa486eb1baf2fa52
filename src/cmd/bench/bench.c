/* Runs the phases of a benchmark: shares indices out to threads, times them, adds them up. */
#include "cmd/bench/bench_internal.h"
#include "host/machine.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct engine {
    const struct bench_run *run;
    void *place; /* of the files */
    struct bench_worker *workers;
    const struct bench_phase *phase;
    uint64_t made[BENCH_THREADS_MAX]; /* per thread; UINT64_MAX: all */
};

void bench_worker_add(struct bench_worker *worker, uint64_t begun_ns, uint64_t bytes) {
    histogram_add(&worker->latency_ns, machine_clock_ns() - begun_ns);
    worker->operations++;
    worker->bytes += bytes;
}

uint64_t bench_thread_bytes(const struct bench_options *options) {
    return options->size_bytes / options->threads / BENCH_BLOCK_BYTES * BENCH_BLOCK_BYTES;
}

static int worker_operate(struct bench_worker *worker, const struct bench_phase *phase) {
    int r = phase->begin ? phase->begin(worker) : 0;

    while (r == 0 && worker->done < worker->count &&
           (worker->deadline_ns == UINT64_MAX || machine_clock_ns() < worker->deadline_ns)) {
        r = phase->operation(worker, worker->first + worker->done);
        worker->done += r == 0;
    }
    if (phase->end) {
        int end = phase->end(worker);

        r = r == 0 ? end : r;
    }
    return r;
}

static void worker_run(void *context, unsigned index) {
    struct engine *engine = context;
    const struct bench_run *run = engine->run;
    struct bench_worker *worker = &engine->workers[index];
    int r = run->files->thread_enter(engine->place);

    if (r == 0) {
        r = worker_operate(worker, engine->phase);
        run->files->thread_leave(engine->place);
    } else {
        worker->path[0] = '\0';
    }
    worker->error = r;
}

static void workers_share(struct engine *engine, uint64_t deadline_ns) {
    const struct bench_options *options = engine->run->options;
    uint64_t all = engine->phase->count(options);
    uint64_t part = all / options->threads;
    uint64_t more = all % options->threads;
    uint64_t first = 0;

    for (uint32_t i = 0; i < options->threads; i++) {
        struct bench_worker *worker = &engine->workers[i];
        uint8_t *buffer = worker->buffer;
        uint64_t count = all == UINT64_MAX ? UINT64_MAX : part + (i < more);

        memset(worker, 0, sizeof *worker);
        worker->run = engine->run;
        worker->place = engine->place;
        worker->index = i;
        worker->buffer = buffer;
        worker->first = first;
        worker->made = engine->made[i];
        worker->count = engine->phase->makes || count == 0 ? count : MIN(count, engine->made[i]);
        worker->deadline_ns = deadline_ns;
        prng_init(&worker->prng, 1 + i);
        first += all == UINT64_MAX ? 0 : count;
    }
}

static void worker_say(const struct bench_worker *worker, const char *phase, bool makes,
                       char problem[256]) {
    const char *directory = worker->run->options->path;

    if (!worker->path[0]) {
        snprintf(problem, 256, "%s: a thread: %s", phase, err_text(worker->error));
    } else if (worker->error == -ERR_NOT_FOUND && !makes) {
        snprintf(problem, 256,
                 "%s: %.120s/" BENCH_FOLDER "/%.40s is not there: another phase makes it, first",
                 phase, directory, worker->path);
    } else {
        snprintf(problem, 256, "%s: %.120s/" BENCH_FOLDER "/%.40s: %s", phase, directory,
                 worker->path, err_text(worker->error));
    }
}

static int phase_sum(struct engine *engine, struct bench_row *row, char problem[256]) {
    for (uint32_t i = 0; i < row->threads; i++) {
        const struct bench_worker *worker = &engine->workers[i];

        if (worker->error) {
            worker_say(worker, row->name, engine->phase->makes, problem);
            return worker->error;
        }
        row->operations += worker->operations;
        row->bytes += worker->bytes;
        histogram_merge(&row->latency_ns, &worker->latency_ns);
        if (engine->phase->makes) {
            engine->made[i] = worker->done;
        }
    }
    return 0;
}

static int phase_run(struct engine *engine, const char *name, char problem[256]) {
    const struct bench_options *options = engine->run->options;
    bool endless = engine->phase->count(options) == UINT64_MAX;
    uint64_t seconds = options->seconds ? options->seconds : endless ? BENCH_RANDOM_SECONDS : 0;
    struct bench_row *row = calloc(1, sizeof *row);

    if (!row) {
        snprintf(problem, 256, "%s: %s", name, err_text(-ERR_NO_MEMORY));
        return -ERR_NO_MEMORY;
    }
    row->name = name;
    row->threads = options->threads;
    uint64_t begun_ns = machine_clock_ns();
    workers_share(engine, seconds ? begun_ns + seconds * NS_PER_S : UINT64_MAX);
    int r = machine_threads(options->threads, worker_run, engine);
    row->elapsed_ns = machine_clock_ns() - begun_ns;
    if (r < 0) {
        snprintf(problem, 256, "%s: %" PRIu32 " threads cannot be had", name, options->threads);
    } else {
        r = phase_sum(engine, row, problem);
    }
    if (r == 0) {
        engine->run->row(engine->run->user, row);
    }
    free(row);
    return r;
}

/* path: below the folder; "": the folder itself. */
static int folder_say(const struct bench_run *run, const char *path, int error, char problem[256]) {
    const char *directory = run->options->path;

    if (error == -ERR_NOT_PERMITTED) {
        snprintf(problem, 256,
                 "%.80s/" BENCH_FOLDER
                 "%s%.40s is not a folder of yours alone (its owner, or who may "
                 "write to it): remove it, or bench elsewhere",
                 directory, path[0] ? "/" : "", path);
    } else if (error < 0) {
        snprintf(problem, 256, "%.80s/" BENCH_FOLDER "%s%.40s cannot be made: %s", directory,
                 path[0] ? "/" : "", path, err_text(error));
    }
    return error;
}

/* The time of a phase holds for this too. *ret_count are there then, also on failure. */
static int folders_make(const struct engine *engine, uint32_t *ret_count, char problem[256]) {
    const struct bench_run *run = engine->run;
    const struct bench_options *options = run->options;
    uint64_t begun_ns = machine_clock_ns();
    uint64_t limit_ns = options->seconds ? options->seconds * NS_PER_S : UINT64_MAX;
    char path[BENCH_FOLDER_BYTES];
    int r = 0;

    *ret_count = 0;
    while (r == 0 && *ret_count < options->dirs) {
        if (machine_clock_ns() - begun_ns >= limit_ns) {
            snprintf(problem, 256,
                     "in --seconds %" PRIu32 " only %" PRIu32
                     " directories could be made, not %" PRIu32
                     ": lower --dirs, or raise --seconds",
                     options->seconds, *ret_count, options->dirs);
            return -ERR_TIMED_OUT;
        }
        if (options->branch > 0 && *ret_count % options->branch == 0) {
            snprintf(path, sizeof path, BENCH_PARENT, (uint64_t)(*ret_count / options->branch));
            r = folder_say(run, path, run->files->own(engine->place, path), problem);
        }
        if (r == 0) {
            bench_folder_print(options, *ret_count, path, sizeof path);
            r = folder_say(run, path, run->files->own(engine->place, path), problem);
        }
        *ret_count += r == 0;
    }
    return r;
}

/* What is not empty stays: somebody wants to run more phases. */
static void folders_remove(const struct engine *engine, uint32_t count) {
    const struct bench_options *options = engine->run->options;
    char path[BENCH_FOLDER_BYTES];
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < count; i++) {
        bench_folder_print(options, i, path, sizeof path);
        r = engine->run->files->rmdir(engine->place, path);
    }
    /* The last one may have been made for a directory that was not. */
    for (uint32_t i = 0; r == 0 && options->branch > 0 && i <= count / options->branch; i++) {
        snprintf(path, sizeof path, BENCH_PARENT, (uint64_t)i);
        r = engine->run->files->rmdir(engine->place, path);
    }
    engine->run->files->end(engine->place);
}

static int phases_run(struct engine *engine, char problem[256]) {
    const struct bench_run *run = engine->run;
    enum bench_kind kind = run->options->kind;
    uint32_t folder_count;
    int r = run->files->begin(run->context, run->options->path, &engine->place);

    if (r < 0) {
        return folder_say(run, "", r, problem);
    }
    r = folders_make(engine, &folder_count, problem);
    for (size_t i = 0; r == 0 && bench_phase_name(kind, i); i++) {
        if (run->options->phases >> i & 1) {
            engine->phase = &bench_phases[kind][i];
            if (run->begun) {
                run->begun(run->user, bench_phase_name(kind, i));
            }
            r = phase_run(engine, bench_phase_name(kind, i), problem);
        }
    }
    folders_remove(engine, folder_count);
    return r;
}

static void engine_free(struct engine *engine) {
    for (uint32_t i = 0; engine && engine->workers && i < engine->run->options->threads; i++) {
        free(engine->workers[i].buffer);
    }
    if (engine) {
        free(engine->workers);
    }
    free(engine);
}

static struct engine *engine_new(const struct bench_run *run) {
    struct engine *engine = calloc(1, sizeof *engine);
    bool all = engine != NULL;

    if (engine) {
        engine->run = run;
        memset(engine->made, 0xFF, sizeof engine->made);
        engine->workers = calloc(run->options->threads, sizeof *engine->workers);
        all = engine->workers != NULL;
    }
    for (uint32_t i = 0; all && i < run->options->threads; i++) {
        uint8_t *buffer = aligned_alloc(BLOCK_BYTES, BENCH_BLOCK_BYTES);

        engine->workers[i].buffer = buffer;
        all = buffer != NULL;
        for (size_t at = 0; all && at < BENCH_BLOCK_BYTES; at++) {
            buffer[at] = (uint8_t)(at * 131 + i);
        }
    }
    if (!all) {
        engine_free(engine);
        return NULL;
    }
    return engine;
}

int bench_run(const struct bench_run *run, char problem[256]) {
    struct engine *engine = engine_new(run);
    int r;

    if (!engine) {
        snprintf(problem, 256, "%" PRIu32 " threads need more memory than there is",
                 run->options->threads);
        return -ERR_NO_MEMORY;
    }
    r = phases_run(engine, problem);
    engine_free(engine);
    return r;
}
