/* stat and stripe: how a file lies. The inode number comes from the mount. */
#include "cmd/find.h"
#include "host/plain_file.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int ino_of(const struct verb *verb, const char *path, char ret_text[24]) {
    uint64_t ino;

    if (plain_file_ino(path, &ino) < 0) {
        return verb_fail(verb, "%s: there is no such file or directory", path);
    }
    snprintf(ret_text, 24, "%" PRIu64, ino);
    return EXIT_OK;
}

struct layout_words {
    const char *path;
    const char *count;
    const char *size;
    bool json;
};

static int path_take(const struct verb *verb, const char *word, void *context) {
    struct layout_words *words = context;

    if (words->path) {
        return verb_usage(verb, "one path, not %s as well", word);
    }
    words->path = word;
    return EXIT_OK;
}

static int words_parse(const struct verb *verb, char *const *argv, struct layout_words *words) {
    int status = verb_parse(verb, NULL, argv, path_take, words);

    if (status == EXIT_OK && !words->path) {
        status = verb_usage(verb, "a path in a mount is missing");
    }
    return status;
}

static int run_stat(const struct verb *verb, int argc, char **argv) {
    struct layout_words words = {.path = NULL};
    char ino[24];
    int status = words_parse(verb, argv + 1, &words);

    (void)argc;
    status = status != EXIT_OK ? status : ino_of(verb, words.path, ino);
    const char *const arguments[] = {"stat", ino, "--json"};
    return status != EXIT_OK ? status
                             : find_and_call(verb, words.path, words.json ? 3 : 2, arguments);
}

static int count_take(const struct verb *verb, const char *value, void *context) {
    struct layout_words *words = context;
    unsigned long long number;

    words->count = strcmp(value, "-1") == 0 ? "all" : value;
    if (strcmp(words->count, "all") != 0 &&
        (!verb_parse_count(value, &number) || number == 0 || number > 65534)) {
        return verb_usage(verb, "--count takes 1 to 65534, or -1 for all targets, not %s", value);
    }
    return EXIT_OK;
}

static int size_take(const struct verb *verb, const char *value, void *context) {
    struct layout_words *words = context;
    unsigned long long number;

    words->size = value;
    if (!verb_parse_bytes(value, &number) || number < 65536 || number > 64 << 20 ||
        number % 65536 != 0) {
        return verb_usage(verb, "--size takes a multiple of 64K up to 64M, not %s", value);
    }
    return EXIT_OK;
}

static int parse_stripe(const struct verb *verb, char **argv, struct layout_words *words) {
    int status = words_parse(verb, argv + 2, words);
    bool set = words->count || words->size;

    if (status == EXIT_OK && set != (strcmp(argv[1], "set") == 0)) {
        status = verb_usage(verb, set ? "get takes neither --count nor --size"
                                      : "set takes --count, --size or both");
    }
    return status;
}

static int run_stripe(const struct verb *verb, int argc, char **argv) {
    struct layout_words words = {.path = NULL};
    char ino[24];

    if (argc < 2 || (strcmp(argv[1], "get") != 0 && strcmp(argv[1], "set") != 0)) {
        return verb_usage(verb, "say get or set");
    }
    int status = parse_stripe(verb, argv, &words);
    if (status == EXIT_OK) {
        status = ino_of(verb, words.path, ino);
    }
    if (status != EXIT_OK) {
        return status;
    }
    const char *const arguments[] = {
        "stripe", argv[1], ino, words.count ? words.count : "-", words.size ? words.size : "-",
        "--json"};
    return find_and_call(verb, words.path, words.json ? 6 : 5, arguments);
}

#define JSON_ROW VERB_FLAG("--json", struct layout_words, json, "print JSON")

static const struct verb_option stat_options[] = {JSON_ROW, {.name = NULL}};
static const struct verb_option stripe_options[] = {
    {.name = "--count",
     .value = "N",
     .help = "storage targets that a file is spread over; -1: all",
     .of = "set",
     .take = count_take},
    {.name = "--size",
     .value = "BYTES",
     .help = "chunk size, a multiple of 64K up to 64M",
     .of = "set",
     .take = size_take},
    JSON_ROW,
    {.name = NULL},
};
static const struct verb_kind stripe_kinds[] = {
    {"get", "show the layout"},
    {"set", "set it"},
    {NULL, NULL},
};

const struct verb verb_stat = {.name = "stat",
                               .arguments = "PATH [--json]",
                               .summary =
                                   "Shows a file's inode number, slot, attributes and layout.",
                               .options = stat_options,
                               .example = "shoal stat /mnt/shoal/data.bin",
                               .run = run_stat};
const struct verb verb_stripe = {
    .name = "stripe",
    .arguments = "get|set PATH [--count N] [--size BYTES] [--json]",
    .summary = "Shows or sets the layout of new files in a directory, or of a new file.",
    .kinds = stripe_kinds,
    .options = stripe_options,
    .example = "shoal stripe set /mnt/shoal/checkpoints --count -1 --size 4M",
    .run = run_stripe};
