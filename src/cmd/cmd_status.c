/* status, df, stats, sync: verbs that ask the daemon and print its answer. */
#include "cmd/find.h"
#include <string.h>

/* VERB [DIR | PATH] [--json] */
static int ask(const struct verb *verb, int argc, char **argv) {
    const char *arguments[2] = {verb->name, NULL};
    const char *what = NULL;
    size_t count = 1;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0 && verb != &verb_sync) {
            arguments[1] = "--json";
            count = 2;
        } else if (argv[i][0] == '-') {
            return verb_usage(verb, "there is no option %s", argv[i]);
        } else if (what) {
            return verb_usage(verb, "one directory or path, not %s as well", argv[i]);
        } else {
            what = argv[i];
        }
    }
    return find_and_call(verb, what, count, arguments);
}

#define JSON_OPTION "  --json    print JSON\n"

const struct verb verb_status = {
    "status",    "[DIR|PATH] [--json]", "Shows what runs: mounts, targets, their space.",
    JSON_OPTION, "shoal status --json", ask};
const struct verb verb_df = {
    "df",        "[DIR|PATH] [--json]", "Shows how much space the file system has.",
    JSON_OPTION, "shoal df /mnt/shoal", ask};
const struct verb verb_stats = {
    "stats",     "[DIR|PATH] [--json]",    "Shows counts and latencies of every kind of request.",
    JSON_OPTION, "shoal stats /mnt/shoal", ask};
const struct verb verb_sync = {"sync",
                               "[DIR|PATH]",
                               "Makes everything durable that was acknowledged, on every target.",
                               "",
                               "shoal sync /mnt/shoal",
                               ask};
