/* bench: workloads of training runs on any directory, through the kernel or through libshoal. */
#include "cmd/bench/bench.h"
#include "cmd/find.h"
#include "host/plain_file.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void print_out(void *context, const char *text) {
    (void)context;
    fputs(text, stdout);
    fflush(stdout);
}

static void row(void *user, const struct bench_row *row) {
    bench_print_row(user, row);
}

/* Only for somebody who watches. */
static void begun(void *user, const char *phase) {
    const struct bench_print *print = user;

    if (print->json || !isatty(STDOUT_FILENO)) {
        fprintf(stderr, "shoal bench: %s ...\n", phase);
    }
}

static int run_here(const struct verb *verb, const struct bench_options *options) {
    struct bench_print print = {.json = options->json, .out = print_out};
    const struct bench_run run = {.options = options,
                                  .files = &bench_host_files,
                                  .begun = isatty(STDERR_FILENO) ? begun : NULL,
                                  .row = row,
                                  .user = &print};
    char problem[256] = "";
    int r = bench_run(&run, problem);

    bench_print_end(&print);
    return r == 0 ? EXIT_OK : verb_fail(verb, "%s", problem);
}

/* The daemon knows the path from its root on. */
static int run_native(const struct verb *verb, int argc, char **argv, const char *path) {
    const char **words = calloc((size_t)argc + 2, sizeof *words);
    char *absolute = NULL;
    int status = EXIT_FAILED;

    if (!words || plain_file_resolve(path, &absolute) < 0) {
        free(words);
        return verb_fail(verb, "%s: there is no such directory", path);
    }
    words[0] = "bench";
    words[1] = absolute;
    for (int i = 1; i < argc; i++) {
        words[i + 1] = argv[i];
    }
    status = find_and_call(verb, path, (size_t)argc + 1, words);
    free(absolute);
    free(words);
    return status;
}

static int run_bench(const struct verb *verb, int argc, char **argv) {
    struct bench_options *options = calloc(1, sizeof *options);
    char problem[256] = "";
    int status;

    if (!options) {
        return verb_fail(verb, "memory could not be had");
    }
    if (!bench_parse((size_t)argc - 1, (const char *const *)argv + 1, options, problem)) {
        status = verb_usage(verb, "%s", problem);
    } else if (options->native) {
        status = run_native(verb, argc, argv, options->path);
    } else {
        status = run_here(verb, options);
    }
    free(options);
    return status;
}

const struct verb verb_bench = {
    .name = "bench",
    .arguments =
        "meta|small|big|checkpoint PATH [--threads N] [--files N] [--size BYTES] [--dirs N]\n"
        "           [--branch N] [--listing BYTES] [--seconds S] [--phases LIST] [--direct]\n"
        "           [--native] [--json]",
    .summary = "Times what training does, in PATH/shoal-bench. PATH may lie on any file system.",
    .kinds = bench_kinds_rows,
    .options = bench_options_rows,
    .example = "shoal bench small /mnt/shoal --threads 8 --files 20000",
    .run = run_bench};
