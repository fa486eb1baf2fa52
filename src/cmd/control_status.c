/* status and df: what runs, and how much room there is. */
#include "cmd/control.h"
#include "cmd/daemon.h"
#include "cmd/verb.h"
#include "env/errno_map.h"
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static bool has_word(size_t argument_count, char **arguments, const char *word) {
    for (size_t i = 1; i < argument_count; i++) {
        if (strcmp(arguments[i], word) == 0) {
            return true;
        }
    }
    return false;
}

static void print_json(struct env_control_connection *connection, json_t *json) {
    char *text = json_dumps(json, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(12));

    if (text) {
        env_control_write(connection, text, strlen(text));
        env_control_write(connection, "\n", 1);
    }
    free(text);
    json_decref(json);
}

static json_t *target_json(const char *name, const char *kind, uint64_t total,
                           uint64_t free_bytes) {
    return json_pack("{s:s, s:s, s:s, s:i, s:I, s:I}", "id", name, "kind", kind, "state", "up",
                     "node", 1, "bytes_total", (json_int_t)total, "bytes_free",
                     (json_int_t)free_bytes);
}

static void ost_space(struct control *control, uint32_t index, uint64_t *ret_total,
                      uint64_t *ret_free) {
    struct ost_counters counters;

    ost_counters_get(local_cluster_ost(control->cluster, index), &counters);
    *ret_total = counters.block_count * BLOCK_BYTES;
    *ret_free = counters.free_blocks * BLOCK_BYTES;
}

static json_t *targets_json(struct control *control) {
    const struct config *config = local_cluster_config(control->cluster);
    json_t *targets = json_array();
    char name[16];

    json_array_append_new(targets, target_json("mdt0", "mdt", 0, 0));
    for (uint32_t i = 0; i < config->ost_count; i++) {
        uint64_t total;
        uint64_t free_bytes;

        snprintf(name, sizeof name, "ost%" PRIu32, i);
        ost_space(control, i, &total, &free_bytes);
        json_array_append_new(targets, target_json(name, "ost", total, free_bytes));
    }
    return targets;
}

static json_t *status_json(struct control *control) {
    json_t *mounts = json_array();

    if (control_is_mounted(control)) {
        json_array_append_new(
            mounts, json_pack("{s:s, s:s}", "path", control->mount_point, "channel", "/dev/fuse"));
    }
    return json_pack("{s:s, s:i, s:[{s:s, s:s}], s:n, s:o, s:o}", "directory", control->directory,
                     "process", env_process_id(), "managers", "id", "manager", "state", "up",
                     "key_file", "mounts", mounts, "targets", targets_json(control));
}

static void print_table(struct control *control, struct env_control_connection *connection) {
    const struct config *config = local_cluster_config(control->cluster);

    control_print(connection, "directory  %s\nmounted    %s\n\n", control->directory,
                  control_is_mounted(control) ? control->mount_point : "-");
    control_print(connection, "%-10s %-8s %-6s %12s %12s\n", "target", "kind", "state", "total MiB",
                  "free MiB");
    control_print(connection, "%-10s %-8s %-6s %12s %12s\n", "manager", "manager", "up", "-", "-");
    control_print(connection, "%-10s %-8s %-6s %12s %12s\n", "mdt0", "mdt", "up", "-", "-");
    for (uint32_t i = 0; i < config->ost_count; i++) {
        uint64_t total;
        uint64_t free_bytes;
        char name[16];

        snprintf(name, sizeof name, "ost%" PRIu32, i);
        ost_space(control, i, &total, &free_bytes);
        control_print(connection, "%-10s %-8s %-6s %12" PRIu64 " %12" PRIu64 "\n", name, "ost",
                      "up", total / MIB, free_bytes / MIB);
    }
}

int control_status(struct control *control, struct env_control_connection *connection,
                   size_t argument_count, char **arguments) {
    if (has_word(argument_count, arguments, "--json")) {
        print_json(connection, status_json(control));
    } else {
        print_table(control, connection);
    }
    return EXIT_OK;
}

int control_df(struct control *control, struct env_control_connection *connection,
               size_t argument_count, char **arguments) {
    struct shoal_request request = {.operation = SHOAL_STATFS};
    int64_t r = shoal_run(local_cluster_client(control->cluster), &request);

    if (r < 0) {
        control_print(connection, "%s\n", err_text(err_from_errno((int)-r)));
        return EXIT_FAILED;
    }
    const struct shoal_statfs *space = &request.statfs;
    uint64_t used = space->bytes_total - space->bytes_free;
    if (has_word(argument_count, arguments, "--json")) {
        print_json(connection,
                   json_pack("{s:I, s:I, s:I, s:I, s:I}", "bytes_total",
                             (json_int_t)space->bytes_total, "bytes_used", (json_int_t)used,
                             "bytes_available", (json_int_t)space->bytes_available, "files_total",
                             (json_int_t)space->files_total, "files_free",
                             (json_int_t)space->files_free));
    } else {
        control_print(connection,
                      "%12s %12s %12s %5s\n%12" PRIu64 " %12" PRIu64 " %12" PRIu64 " %4" PRIu64
                      "%%\n",
                      "total MiB", "used MiB", "free MiB", "used", space->bytes_total / MIB,
                      used / MIB, space->bytes_available / MIB,
                      space->bytes_total > 0 ? used * 100 / space->bytes_total : 0);
    }
    return EXIT_OK;
}

int control_sync(struct control *control, struct env_control_connection *connection,
                 size_t argument_count, char **arguments) {
    struct shoal_request request = {.operation = SHOAL_SYNC};
    int64_t r = shoal_run(local_cluster_client(control->cluster), &request);

    (void)argument_count;
    (void)arguments;
    if (r < 0) {
        control_print(connection, "%s\n", err_text(err_from_errno((int)-r)));
    }
    return r < 0 ? EXIT_FAILED : EXIT_OK;
}
