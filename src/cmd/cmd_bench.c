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
    "bench",
    "meta|small|big|checkpoint PATH [--threads N] [--files N] [--size BYTES] [--dirs N]\n"
    "           [--seconds S] [--phases LIST] [--direct] [--native] [--json]",
    "Times what training does, in PATH/shoal-bench. PATH may lie on any file system.",
    "  meta         create stat open rename list unlink mkdir rmdir of empty files\n"
    "  small        write read delete: whole files of 50K, read in scattered order\n"
    "  big          write read randread randwrite erase: 1M blocks, 4K at random, a file a thread\n"
    "  checkpoint   save restore commit drop: temporary file, fsync, rename\n"
    "  --threads N    at the same time (1)\n"
    "  --files N      of all threads together (meta 20000, small 10000, commit 500)\n"
    "  --size BYTES   of a small file (50K); of all threads' big files together (2G; save 1G)\n"
    "  --dirs N       that the files lie in (meta 1, small 10)\n"
    "  --seconds S    at most so long a phase (randread and randwrite: 5)\n"
    "  --phases LIST  only these, with commas between; files stay for the next call\n"
    "  --direct       big: with O_DIRECT\n"
    "  --native       through libshoal inside the daemon, without the kernel\n"
    "  --json         rows {name, threads, ops, ops_per_s, mb_per_s, p50_us, p99_us, p999_us}\n",
    "shoal bench small /mnt/shoal --threads 8 --files 20000",
    run_bench,
    NULL};
