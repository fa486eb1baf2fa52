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

static bool is_any_away(struct control *control) {
    static const char *const here[] = {"here"};
    struct node_answers answers;

    if (control_nodes_ask(control, here, 1, &answers) < 0) {
        return false;
    }
    bool away = control_nodes_away(&answers) > 0;
    control_nodes_free(&answers);
    return away;
}

/* The scrub after an unclean end is waited for: what it takes away is no problem any more. But not
 * while it waits itself for a node that is away. */
static void scrub_wait(struct checking *checking, struct fsck_output *output) {
    struct control *control = checking->control;

    while (atomic_load(&control->scrubbing) && !output->unscrubbed && !is_stopped(checking)) {
        local_cluster_rest(control->cluster);
        output->unscrubbed = atomic_load(&control->scrubbing) && is_any_away(control);
    }
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
    if (atomic_exchange(&control->checking, true)) {
        control_print(connection, "%cthe cluster is being checked already: wait for its end\n",
                      FSCK_ERROR);
        return EXIT_FAILED;
    }
    scrub_wait(&checking, &output);
    int status = fsck_report_run(control->cluster, &output);
    atomic_store(&control->checking, false);
    return status;
}
