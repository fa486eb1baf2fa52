/* fsck: the daemon checks its cluster and tells what it finds as it goes. */
#include "cmd/control.h"
#include "cmd/control_nodes.h"
#include "cmd/fsck_report.h"
#include "cmd/verb.h"
#include <string.h>

struct checking {
    struct control *control;
    struct control_socket_connection *connection;
};

static void write_text(void *context, const char *text, size_t size) {
    const struct checking *checking = context;

    control_socket_write(checking->connection, text, size);
}

/* Nobody waits for the answer, or the daemon shall end. */
static bool is_stopped(void *context) {
    const struct checking *checking = context;

    return atomic_load(&checking->control->stop_wanted) ||
           control_socket_is_gone(checking->connection);
}

/* What others have points to what a node has that is away: all of that would seem to be lost. */
static bool all_are_there(struct control *control, struct control_socket_connection *connection) {
    static const char *const here[] = {"here"};
    static const char mark[] = {FSCK_ERROR, '\0'};
    struct node_answers answers;

    if (control_nodes_ask(control, here, 1, &answers) < 0) {
        control_print(connection, "%smemory could not be had\n", mark);
        return false;
    }
    uint32_t away = control_nodes_away(&answers);
    if (away > 0) {
        control_print(connection, "%snothing is checked while a node is away:\n", mark);
        control_nodes_name_away(connection, &answers, mark);
    }
    control_nodes_free(&answers);
    return away == 0;
}

int control_fsck(struct control *control, struct control_socket_connection *connection,
                 size_t argument_count, char **arguments) {
    struct checking checking = {control, connection};
    struct fsck_output output = {
        .with_data = true, .write = write_text, .stopped = is_stopped, .context = &checking};

    for (size_t i = 1; i < argument_count; i++) {
        output.json = output.json || strcmp(arguments[i], "--json") == 0;
        output.with_data = output.with_data && strcmp(arguments[i], "--no-data") != 0;
    }
    if (!all_are_there(control, connection)) {
        return EXIT_FAILED;
    }
    /* The scrub after an unclean end is waited for: what it takes away is no problem any more. */
    bool scrubbing = atomic_load(&control->scrubbing);
    while (atomic_exchange(&control->checking, true)) {
        if (!scrubbing || is_stopped(&checking)) {
            control_print(connection, "%cthe cluster is being checked already: wait for its end\n",
                          FSCK_ERROR);
            return EXIT_FAILED;
        }
        local_cluster_rest(control->cluster);
        scrubbing = atomic_load(&control->scrubbing);
    }
    int status = fsck_report_run(control->cluster, &output);
    atomic_store(&control->checking, false);
    return status;
}
