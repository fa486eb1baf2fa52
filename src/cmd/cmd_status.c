/* status, df, stats, sync: verbs that ask the daemon and print its answer. */
#include "cmd/find.h"
#include <string.h>

/* VERB [DIR | PATH] [--json], of stats [--clients] too */
static int ask(const struct verb *verb, int argc, char **argv) {
    const char *arguments[3] = {verb->name};
    const char *what = NULL;
    bool as_json = false;
    bool clients = false;
    size_t count = 1;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0 && verb != &verb_sync) {
            as_json = true;
        } else if (strcmp(argv[i], "--clients") == 0 && verb == &verb_stats) {
            clients = true;
        } else if (argv[i][0] == '-') {
            return verb_usage(verb, "there is no option %s", argv[i]);
        } else if (what) {
            return verb_usage(verb, "one directory or path, not %s as well", argv[i]);
        } else {
            what = argv[i];
        }
    }
    if (as_json) {
        arguments[count++] = "--json";
    }
    if (clients) {
        arguments[count++] = "--clients";
    }
    return find_and_call(verb, what, count, arguments);
}

#define JSON_OPTION "  --json    print JSON\n"

const struct verb verb_status = {
    "status",    "[DIR|PATH] [--json]", "Shows what runs: mounts, targets, their space.",
    JSON_OPTION, "shoal status --json", ask,
    NULL};
const struct verb verb_df = {
    "df",        "[DIR|PATH] [--json]", "Shows how much space the file system has.",
    JSON_OPTION, "shoal df /mnt/shoal", ask,
    NULL};
const struct verb verb_stats = {"stats",
                                "[DIR|PATH] [--clients] [--json]",
                                "Shows counts and latencies of every kind of request.",
                                "  --clients  of each client at each target instead\n"
                                "  --json     print JSON\n",
                                "shoal stats /mnt/shoal",
                                ask,
                                NULL};
const struct verb verb_sync = {"sync",
                               "[DIR|PATH]",
                               "Makes everything durable that was acknowledged, on every target.",
                               "",
                               "shoal sync /mnt/shoal",
                               ask,
                               NULL};
