/* status, df, stats, sync: verbs that ask the daemon and print its answer. */
#include "cmd/find.h"
#include <string.h>

/* VERB [DIR | PATH | --join ADDR --key FILE] [--json], of stats [--clients] too */
static int ask(const struct verb *verb, int argc, char **argv) {
    const char *arguments[3] = {verb->name};
    struct find_words words = {0};
    int status = EXIT_OK;
    bool as_json = false;
    bool clients = false;
    size_t count = 1;

    for (int i = 1; i < argc && status == EXIT_OK; i++) {
        if (strcmp(argv[i], "--json") == 0 && verb != &verb_sync) {
            as_json = true;
        } else if (strcmp(argv[i], "--clients") == 0 && verb == &verb_stats) {
            clients = true;
        } else {
            status = find_parse(verb, argv, &i, &words);
        }
    }
    if (as_json) {
        arguments[count++] = "--json";
    }
    if (clients) {
        arguments[count++] = "--clients";
    }
    return status != EXIT_OK ? status : find_and_ask(verb, &words, count, arguments);
}

#define JOIN_OPTIONS                                                                               \
    "  --join ADDR:PORT[,...]  ask the cluster that has nodes there\n"                             \
    "  --key FILE              with the members' key\n"
#define JSON_OPTION                                                                                \
    JOIN_OPTIONS                                                                                   \
    "  --json                  print JSON\n"
#define PLACE "[DIR|PATH|--join ADDR --key FILE]"

const struct verb verb_status = {
    "status",    PLACE " [--json]",     "Shows what runs: mounts, targets, their space.",
    JSON_OPTION, "shoal status --json", ask,
    NULL};
const struct verb verb_df = {
    "df",        PLACE " [--json]",     "Shows how much space the file system has.",
    JSON_OPTION, "shoal df /mnt/shoal", ask,
    NULL};
const struct verb verb_stats = {"stats",
                                PLACE " [--clients] [--json]",
                                "Shows counts and latencies of every kind of request.",
                                JSON_OPTION
                                "  --clients               of each client at each target instead\n",
                                "shoal stats /mnt/shoal",
                                ask,
                                NULL};
const struct verb verb_sync = {"sync",
                               PLACE,
                               "Makes everything durable that was acknowledged, on every target.",
                               JOIN_OPTIONS,
                               "shoal sync /mnt/shoal",
                               ask,
                               NULL};
