/* The words of `shoal bench`: KIND PATH [--option value]... */
#include "cmd/bench/bench.h"
#include "cmd/verb.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    struct bench_options defaults;
    const char *phases[BENCH_PHASES_MAX + 1];
} kinds[BENCH_KINDS] = {
    [BENCH_META] = {"meta",
                    {.files = 20000, .dirs = 1},
                    {"create", "stat", "open", "rename", "list", "unlink", "mkdir", "rmdir"}},
    [BENCH_SMALL] = {"small",
                     {.files = 10000, .size_bytes = 50 * KIB, .dirs = 10},
                     {"write", "read", "delete"}},
    [BENCH_BIG] = {"big",
                   {.size_bytes = 2 * GIB, .dirs = 1},
                   {"write", "read", "randread", "randwrite", "erase"}},
    [BENCH_CHECKPOINT] = {"checkpoint",
                          {.files = 500, .size_bytes = GIB, .dirs = 1},
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
                    kinds[options->kind].name, names, text);
}

static bool take_number(struct bench_options *options, const char *name, const char *text,
                        char problem[256]) {
    unsigned long long number;

    if (strcmp(name, "--size") == 0) {
        if (!verb_parse_bytes(text, &number) || number == 0 || number > 1ULL << 46) {
            return complain(problem, "--size takes 1 to 64T bytes (K, M, G, T), not %s", text);
        }
        options->size_bytes = number;
        return true;
    }
    if (!verb_parse_count(text, &number) || number > UINT32_MAX || number == 0) {
        return complain(problem, "%s takes a number from 1, not %s", name, text);
    }
    if (strcmp(name, "--threads") == 0) {
        options->threads = (uint32_t)number;
    } else if (strcmp(name, "--files") == 0) {
        options->files = number;
    } else if (strcmp(name, "--dirs") == 0) {
        options->dirs = (uint32_t)number;
    } else if (strcmp(name, "--seconds") == 0) {
        options->seconds = (uint32_t)number;
    } else {
        return complain(problem, "there is no option %s", name);
    }
    return true;
}

static bool take_option(struct bench_options *options, const char *const *words, size_t left,
                        size_t *ret_used) {
    *ret_used = 1;
    if (strcmp(words[0], "--json") == 0) {
        options->json = true;
    } else if (strcmp(words[0], "--native") == 0) {
        options->native = true;
    } else if (strcmp(words[0], "--direct") == 0) {
        options->direct = true;
    } else {
        *ret_used = 2;
        return left > 1;
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
    size_t kind = 0;
    size_t used;

    while (kind < BENCH_KINDS && argument_count > 0 &&
           strcmp(kinds[kind].name, arguments[0]) != 0) {
        kind++;
    }
    if (kind == BENCH_KINDS || argument_count == 0) {
        return complain(problem, "say what: meta, small, big or checkpoint");
    }
    *options = kinds[kind].defaults;
    options->kind = (enum bench_kind)kind;
    options->threads = 1;
    options->phases = UINT32_MAX;
    for (size_t i = 1; i < argument_count; i += used) {
        const char *word = arguments[i];

        used = 1;
        if (word[0] != '-') {
            if (options->path[0] || strlen(word) >= sizeof options->path) {
                return complain(problem, "one path, not too long, and not %s", word);
            }
            snprintf(options->path, sizeof options->path, "%s", word);
        } else if (!take_option(options, arguments + i, argument_count - i, &used)) {
            return complain(problem, "%s is no option, or its value is missing", word);
        } else if (used == 2 && strcmp(word, "--phases") == 0) {
            if (!take_phases(options, arguments[i + 1])) {
                return refuse_phases(options, arguments[i + 1], problem);
            }
        } else if (used == 2 && !take_number(options, word, arguments[i + 1], problem)) {
            return false;
        }
    }
    return check(options, problem);
}
