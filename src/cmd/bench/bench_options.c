/* The words of `shoal bench`: KIND PATH [--option value]... */
#include "cmd/bench/bench.h"
#include "cmd/bench/bench_internal.h"
#include "cmd/verb.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LISTING_BYTES = 32 * KIB, LISTING_BYTES_MIN = KIB };

const struct verb_kind bench_kinds_rows[BENCH_KINDS + 1] = {
    [BENCH_META] = {"meta", "create stat open rename list unlink mkdir rmdir of empty files"},
    [BENCH_SMALL] = {"small", "write read delete: whole files of 50K, read in scattered order"},
    [BENCH_BIG] = {"big", "write read randread randwrite erase: 1M blocks, 4K at random, a file a "
                          "thread"},
    [BENCH_CHECKPOINT] = {"checkpoint", "save restore commit drop: temporary file, fsync, rename"},
};

static const struct {
    struct bench_options defaults;
    const char *phases[BENCH_PHASES_MAX + 1];
} kinds[BENCH_KINDS] = {
    [BENCH_META] = {{.files = 20000, .dirs = 1},
                    {"create", "stat", "open", "rename", "list", "unlink", "mkdir", "rmdir"}},
    [BENCH_SMALL] = {{.files = 10000, .size_bytes = 50 * KIB, .dirs = 10},
                     {"write", "read", "delete"}},
    [BENCH_BIG] = {{.size_bytes = 2 * GIB, .dirs = 1},
                   {"write", "read", "randread", "randwrite", "erase"}},
    [BENCH_CHECKPOINT] = {{.files = 500, .size_bytes = GIB, .dirs = 1},
                          {"save", "restore", "commit", "drop"}},
};

const char *bench_phase_name(enum bench_kind kind, size_t index) {
    return kinds[kind].phases[index];
}

static bool take_phases(struct bench_options *options, const char *text) {
    uint32_t phases = 0;

    while (*text) {
        size_t size = strcspn(text, ",");
        uint32_t bit = 0;

        for (size_t i = 0; kinds[options->kind].phases[i]; i++) {
            const char *name = kinds[options->kind].phases[i];

            bit |= (uint32_t)(strlen(name) == size && memcmp(name, text, size) == 0) << i;
        }
        if (bit == 0) {
            return false;
        }
        phases |= bit;
        text += size + (text[size] == ',');
    }
    options->phases = phases;
    return phases != 0;
}

PRINTF_LIKE(2, 3) static bool complain(char problem[256], const char *format, ...) {
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(problem, 256, format, arguments);
    va_end(arguments);
    return false;
}

static bool refuse_phases(const struct bench_options *options, const char *text,
                          char problem[256]) {
    char names[128] = "";
    size_t used = 0;

    for (size_t i = 0; kinds[options->kind].phases[i] && used < sizeof names; i++) {
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? "," : "",
                                 kinds[options->kind].phases[i]);
    }
    return complain(problem, "--phases of %s takes some of %s, not %.80s",
                    bench_kinds_rows[options->kind].name, names, text);
}

/* As they were typed. */
struct bench_words {
    const char *size, *listing, *phases;
    const char *threads, *files, *dirs, *branch, *seconds;
    bool direct, native, json;
};

const struct verb_option bench_options_rows[] = {
    VERB_TEXT("--threads", "N", struct bench_words, threads, "at the same time (1)"),
    VERB_TEXT("--files", "N", struct bench_words, files,
              "of all threads together (meta 20000, small 10000, commit 500)"),
    VERB_TEXT("--size", "BYTES", struct bench_words, size,
              "of a small file (50K); of all threads' big files together (2G; save 1G)"),
    VERB_TEXT("--dirs", "N", struct bench_words, dirs, "that the files lie in (meta 1, small 10)"),
    VERB_TEXT("--branch", "N", struct bench_words, branch,
              "of these in a directory of their own each; otherwise all in one"),
    VERB_TEXT("--listing", "BYTES", struct bench_words, listing,
              "that list asks the kernel for at a time (32K, as ls does)"),
    VERB_TEXT("--seconds", "S", struct bench_words, seconds,
              "at most so long a phase (randread and randwrite: 5)"),
    VERB_TEXT("--phases", "LIST", struct bench_words, phases,
              "only these, with commas between; files stay for the next call"),
    {.name = "--direct",
     .help = "with O_DIRECT",
     .of = "big",
     .offset = offsetof(struct bench_words, direct)},
    VERB_FLAG("--native", struct bench_words, native,
              "through libshoal inside the daemon, without the kernel"),
    VERB_FLAG("--json", struct bench_words, json,
              "rows {name, threads, ops, ops_per_s, mb_per_s, p50_us, p99_us, p999_us}"),
    {.name = NULL},
};

static bool words_number(const char *name, const char *text, uint64_t most, uint64_t *number,
                         char problem[256]) {
    unsigned long long value;

    if (!text) {
        return true;
    }
    if (!verb_parse_count(text, &value) || value == 0 || value > most) {
        return complain(problem, "%s takes a number from 1, not %s", name, text);
    }
    *number = value;
    return true;
}

static bool words_listing(const char *text, uint64_t *size_bytes, char problem[256]) {
    unsigned long long value = LISTING_BYTES;

    if (text && (!verb_parse_bytes(text, &value) || value < LISTING_BYTES_MIN ||
                 value > BENCH_BLOCK_BYTES)) {
        return complain(problem, "--listing takes 1K to 1M bytes (K, M), not %s", text);
    }
    *size_bytes = value;
    return true;
}

static bool words_size(const char *text, uint64_t *size_bytes, char problem[256]) {
    unsigned long long value;

    if (!text) {
        return true;
    }
    if (!verb_parse_bytes(text, &value) || value == 0 || value > 1ULL << 46) {
        return complain(problem, "--size takes 1 to 64T bytes (K, M, G, T), not %s", text);
    }
    *size_bytes = value;
    return true;
}

/* Over the defaults of the kind, which stand there. */
static bool words_read(const struct bench_words *words, struct bench_options *options,
                       char problem[256]) {
    uint64_t threads = options->threads;
    uint64_t dirs = options->dirs;
    uint64_t branch = options->branch;
    uint64_t seconds = options->seconds;

    if (!words_size(words->size, &options->size_bytes, problem) ||
        !words_listing(words->listing, &options->listing_bytes, problem) ||
        !words_number("--threads", words->threads, UINT32_MAX, &threads, problem) ||
        !words_number("--files", words->files, UINT32_MAX, &options->files, problem) ||
        !words_number("--dirs", words->dirs, UINT32_MAX, &dirs, problem) ||
        !words_number("--branch", words->branch, UINT32_MAX, &branch, problem) ||
        !words_number("--seconds", words->seconds, UINT32_MAX, &seconds, problem)) {
        return false;
    }
    options->threads = (uint32_t)threads;
    options->dirs = (uint32_t)dirs;
    options->branch = (uint32_t)branch;
    options->seconds = (uint32_t)seconds;
    options->direct = words->direct;
    options->native = words->native;
    options->json = words->json;
    if (words->phases && !take_phases(options, words->phases)) {
        return refuse_phases(options, words->phases, problem);
    }
    return true;
}

static bool check(const struct bench_options *options, char problem[256]) {
    if (!options->path[0]) {
        return complain(problem, "a directory to work in is missing");
    }
    if (options->threads > BENCH_THREADS_MAX) {
        return complain(problem, "--threads takes 1 to %d", BENCH_THREADS_MAX);
    }
    if (options->direct && options->native) {
        return complain(problem, "--direct is about the kernel's page cache: not with --native");
    }
    if (options->kind == BENCH_BIG || options->kind == BENCH_CHECKPOINT) {
        if (options->size_bytes / options->threads < MIB) {
            return complain(problem, "--size is shared by all threads: 1M for each at least");
        }
    }
    return true;
}

bool bench_parse(size_t argument_count, const char *const *arguments, struct bench_options *options,
                 char problem[256]) {
    const struct verb bench_table = {.options = bench_options_rows};
    struct bench_words words = {.json = false};
    size_t kind = 0;

    while (kind < BENCH_KINDS && argument_count > 0 &&
           strcmp(bench_kinds_rows[kind].name, arguments[0]) != 0) {
        kind++;
    }
    if (kind == BENCH_KINDS || argument_count == 0) {
        return complain(problem, "say what: meta, small, big or checkpoint");
    }
    *options = kinds[kind].defaults;
    options->kind = (enum bench_kind)kind;
    options->threads = 1;
    options->phases = UINT32_MAX;
    for (size_t i = 1; i < argument_count; i++) {
        const char *word = arguments[i];
        const struct verb_option *row = verb_option_find(&bench_table, NULL, word, strlen(word));

        if (word[0] != '-') {
            if (options->path[0] || strlen(word) >= sizeof options->path) {
                return complain(problem, "one path, not too long, and not %s", word);
            }
            snprintf(options->path, sizeof options->path, "%s", word);
        } else if (!row || (row->value && i + 1 == argument_count)) {
            return complain(problem, "%s is no option, or its value is missing", word);
        } else {
            i += row->value != NULL;
            (void)verb_option_take(&bench_table, row, row->value ? arguments[i] : "", &words);
        }
    }
    return words_read(&words, options, problem) && check(options, problem);
}
