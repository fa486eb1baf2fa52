/* fsck: the daemon checks its cluster and tells what it finds as it goes. */
#include "cmd/control.h"
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

int control_fsck(struct control *control, struct control_socket_connection *connection,
                 size_t argument_count, char **arguments) {
    struct checking checking = {control, connection};
    struct fsck_output output = {
        .with_data = true, .write = write_text, .stopped = is_stopped, .context = &checking};

    for (size_t i = 1; i < argument_count; i++) {
        output.json = output.json || strcmp(arguments[i], "--json") == 0;
        output.with_data = output.with_data && strcmp(arguments[i], "--no-data") != 0;
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
