/* fsck: asks the daemon to check its cluster, and shows what it says as it comes. A cluster that
 * is not running is opened here, as a start does, but for the mount. */
#include "cmd/daemon.h"
#include "cmd/find.h"
#include "cmd/fsck_lines.h"
#include "cmd/fsck_report.h"
#include "host/control_socket.h"
#include "host/machine.h"
#include "host/process.h"
#include "node/local_directory.h"
#include <stdio.h>
#include <string.h>

struct words {
    struct find_words where; /* the first, for find_options */
    bool json;
    bool no_data;
    bool progress;
};

static bool never(void *context) {
    (void)context;
    return false;
}

static int check_stopped(const struct verb *verb, const struct words *words, const char *directory,
                         struct fsck_lines *lines) {
    const struct local_cluster_options options = {.directory = directory, .origin = directory};
    const struct fsck_output output = {.json = words->json,
                                       .with_data = !words->no_data,
                                       .write = fsck_lines_show,
                                       .stopped = never,
                                       .context = lines};
    struct local_cluster *cluster;
    char problem[512];

    process_signals_block();
    if (local_cluster_open(&options, &cluster, problem) < 0) {
        return verb_fail(verb, "%s", problem);
    }
    int status = fsck_report_run(cluster, &output);
    int r = local_cluster_stop(cluster);
    local_cluster_close(cluster);
    return r < 0 ? verb_fail(verb, "%s stopped with an error: %s", directory, err_text(r)) : status;
}

static int check(const struct verb *verb, const struct words *words,
                 const struct find_place *place) {
    const char *arguments[3] = {"fsck"};
    size_t count = 1;
    struct fsck_lines lines = {.answer = stdout,
                               .notes = stderr,
                               .progress = words->progress || machine_is_terminal(stderr)};

    if (words->json) {
        arguments[count++] = "--json";
    }
    if (words->no_data) {
        arguments[count++] = "--no-data";
    }
    const struct find_request afar = {.argument_count = count,
                                      .arguments = arguments,
                                      .output = fsck_lines_show,
                                      .context = &lines};
    if (!place->directory[0]) {
        return find_ask_afar(verb, place, &afar);
    }
    const struct control_socket_request request = {
        .directory = place->directory,
        .name = LOCAL_CONTROL_NAME,
        .argument_count = count,
        .arguments = arguments,
        .output = fsck_lines_show,
        .context = &lines,
    };
    int status = EXIT_FAILED;
    int r = control_socket_call(&request, &status);

    if (r == -ERR_NOT_FOUND) {
        return check_stopped(verb, words, place->directory, &lines);
    }
    return r < 0 ? call_failed(verb, place->directory, r) : status;
}

static int run_fsck(const struct verb *verb, int argc, char **argv) {
    struct find_place place;
    struct words words = {.json = false};
    int status = verb_parse(verb, NULL, argv + 1, find_noun, &words);

    (void)argc;
    if (status == EXIT_OK) {
        status = find_place(verb, &words.where, &place);
    }
    return status != EXIT_OK ? status : check(verb, &words, &place);
}

static const struct verb_option fsck_options[] = {
    {.name = "--no-data",
     .help = "metadata and indexes only; by default every stored block is read as well",
     .offset = offsetof(struct words, no_data)},
    {.name = "--json", .help = "print JSON", .offset = offsetof(struct words, json)},
    {.name = "--progress",
     .help = "tell on standard error how far it is; by default when that is a terminal",
     .offset = offsetof(struct words, progress)},
    {.name = NULL},
};

const struct verb verb_fsck = {
    .name = "fsck",
    .arguments = "[DIR|PATH|--join ADDR --key FILE] [--no-data] [--json] [--progress]",
    .summary = "Checks all metadata against each other and all data against its checksums.",
    .options = fsck_options,
    .shared = find_options,
    .notes =
        "Finds, changes nothing. The cluster may be in use meanwhile; one that is stopped is "
        "opened for the check, without a mount. One line a problem: its kind, where it is, what "
        "it means and what to do. Takes up to 200 MB of memory, however much is stored.\n\n"
        "Exit status: 0 all is well, 1 problems were found or the check failed, 2 usage, 3 nothing "
        "wrong was found, and not all was checked: a target is away, which is named.",
    .example = "shoal fsck /mnt/shoal",
    .run = run_fsck};
