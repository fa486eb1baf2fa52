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

static int run_stat(const struct verb *verb, int argc, char **argv) {
    const char *path = NULL;
    bool json = false;
    char ino[24];

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            json = true;
        } else if (argv[i][0] == '-') {
            return verb_usage(verb, "there is no option %s", argv[i]);
        } else if (path) {
            return verb_usage(verb, "one path, not %s as well", argv[i]);
        } else {
            path = argv[i];
        }
    }
    if (!path) {
        return verb_usage(verb, "a path in a mount is missing");
    }
    int status = ino_of(verb, path, ino);
    const char *const arguments[] = {"stat", ino, "--json"};
    return status != EXIT_OK ? status : find_and_call(verb, path, json ? 3 : 2, arguments);
}

struct stripe_words {
    const char *path;
    const char *count;
    const char *size;
    bool json;
};

static int parse_stripe(const struct verb *verb, int argc, char **argv,
                        struct stripe_words *words) {
    unsigned long long number;

    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            words->json = true;
        } else if (strcmp(argv[i], "--count") == 0 && i + 1 < argc) {
            words->count = strcmp(argv[++i], "-1") == 0 ? "all" : argv[i];
        } else if (strcmp(argv[i], "--size") == 0 && i + 1 < argc) {
            words->size = argv[++i];
        } else if (strcmp(argv[i], "--count") == 0 || strcmp(argv[i], "--size") == 0) {
            return verb_usage(verb, "the value of %s is missing", argv[i]);
        } else if (argv[i][0] == '-' || words->path) {
            return verb_usage(verb, "%s is not understood", argv[i]);
        } else {
            words->path = argv[i];
        }
    }
    if (!words->path) {
        return verb_usage(verb, "a path in a mount is missing");
    }
    bool set = strcmp(words->count, "-") != 0 || strcmp(words->size, "-") != 0;
    if (set != (strcmp(argv[1], "set") == 0)) {
        return verb_usage(verb, set ? "get takes neither --count nor --size"
                                    : "set takes --count, --size or both");
    }
    if (strcmp(words->count, "-") != 0 && strcmp(words->count, "all") != 0 &&
        (!verb_parse_count(words->count, &number) || number == 0 || number > 65534)) {
        return verb_usage(verb, "--count takes 1 to 65534, or -1 for all targets, not %s",
                          words->count);
    }
    if (strcmp(words->size, "-") != 0 &&
        (!verb_parse_bytes(words->size, &number) || number < 65536 || number > 64 << 20 ||
         number % 65536 != 0)) {
        return verb_usage(verb, "--size takes a multiple of 64K up to 64M, not %s", words->size);
    }
    return EXIT_OK;
}

static int run_stripe(const struct verb *verb, int argc, char **argv) {
    struct stripe_words words = {NULL, "-", "-", false};
    char ino[24];

    if (argc < 2 || (strcmp(argv[1], "get") != 0 && strcmp(argv[1], "set") != 0)) {
        return verb_usage(verb, "say get or set");
    }
    int status = parse_stripe(verb, argc, argv, &words);
    if (status == EXIT_OK) {
        status = ino_of(verb, words.path, ino);
    }
    if (status != EXIT_OK) {
        return status;
    }
    const char *const arguments[] = {"stripe", argv[1], ino, words.count, words.size, "--json"};
    return find_and_call(verb, words.path, words.json ? 6 : 5, arguments);
}

const struct verb verb_stat = {"stat",
                               "PATH [--json]",
                               "Shows a file's inode number, slot, attributes and layout.",
                               "  --json    print JSON\n",
                               "shoal stat /mnt/shoal/data.bin",
                               run_stat,
                               NULL};
const struct verb verb_stripe = {
    "stripe",
    "get|set PATH [--count N] [--size BYTES] [--json]",
    "Shows or sets the layout of new files in a directory, or of a new file.",
    "  --count N     storage targets that a file is spread over; -1: all\n"
    "  --size BYTES  chunk size, a multiple of 64K up to 64M\n"
    "  --json        print JSON\n",
    "shoal stripe set /mnt/shoal/checkpoints --count -1 --size 4M",
    run_stripe,
    NULL};
