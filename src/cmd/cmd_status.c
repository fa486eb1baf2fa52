/* status, df, stats, sync: verbs that ask the daemon and print its answer. */
#include "cmd/find.h"
#include <string.h>

struct ask_words {
    struct find_words where; /* the first, for find_options */
    bool json;
    bool clients;
};

/* VERB [DIR | PATH | --join ADDR --key FILE] [--json], of stats [--clients] too */
static int ask(const struct verb *verb, int argc, char **argv) {
    const char *arguments[3] = {verb->name};
    struct ask_words words = {.json = false};
    size_t count = 1;
    int status = verb_parse(verb, NULL, argv + 1, find_noun, &words);

    (void)argc;
    if (words.json) {
        arguments[count++] = "--json";
    }
    if (words.clients) {
        arguments[count++] = "--clients";
    }
    return status != EXIT_OK ? status : find_and_ask(verb, &words.where, count, arguments);
}

#define PLACE "[DIR|PATH|--join ADDR --key FILE]"
#define JSON_ROW VERB_FLAG("--json", struct ask_words, json, "print JSON")

static const struct verb_option json_options[] = {JSON_ROW, {.name = NULL}};
static const struct verb_option stats_options[] = {
    VERB_FLAG("--clients", struct ask_words, clients, "of each client at each target instead"),
    JSON_ROW,
    {.name = NULL},
};

const struct verb verb_status = {.name = "status",
                                 .arguments = PLACE " [--json]",
                                 .summary = "Shows what runs: mounts, targets, their space.",
                                 .options = json_options,
                                 .shared = find_options,
                                 .example = "shoal status --json",
                                 .run = ask};
const struct verb verb_df = {.name = "df",
                             .arguments = PLACE " [--json]",
                             .summary = "Shows how much space the file system has.",
                             .options = json_options,
                             .shared = find_options,
                             .example = "shoal df /mnt/shoal",
                             .run = ask};
const struct verb verb_stats = {.name = "stats",
                                .arguments = PLACE " [--clients] [--json]",
                                .summary = "Shows counts and latencies of every kind of request.",
                                .options = stats_options,
                                .shared = find_options,
                                .example = "shoal stats /mnt/shoal",
                                .run = ask};
const struct verb verb_sync = {
    .name = "sync",
    .arguments = PLACE,
    .summary = "Makes everything durable that was acknowledged, on every target.",
    .shared = find_options,
    .example = "shoal sync /mnt/shoal",
    .run = ask};
