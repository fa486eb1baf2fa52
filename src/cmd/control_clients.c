/* stats --clients: what each target has counted of each session that it knows now. */
#include "cmd/control.h"
#include "cmd/control_nodes.h"
#include "cmd/verb.h"
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* Of one target; more are counted and left out. */
enum { CLIENTS_SHOWN_MAX = SESSIONS_DEFAULT };

/* One answer, as it grows. */
struct clients_answer {
    struct control_socket_connection *connection;
    json_t *clients; /* NULL: as text */
    uint64_t left_out_count;
};

static void client_add(struct clients_answer *answer, const char *target,
                       const struct session_counters *counters) {
    double mean_us = counters->request_count
                         ? (double)counters->total_ns / (double)counters->request_count / 1e3
                         : 0;
    double largest_us = (double)counters->largest_ns / 1e3;

    if (answer->clients) {
        json_array_append_new(answer->clients,
                              json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f}", "target",
                                        target, "node", (json_int_t)counters->node, "session",
                                        (json_int_t)counters->session.value, "requests",
                                        (json_int_t)counters->request_count, "errors",
                                        (json_int_t)counters->error_count, "read_bytes",
                                        (json_int_t)counters->read_bytes, "written_bytes",
                                        (json_int_t)counters->written_bytes, "mean_us", mean_us,
                                        "max_us", largest_us));
        return;
    }
    control_print(answer->connection,
                  "%-8s %6" PRIu32 " %10" PRIu64 " %12" PRIu64 " %8" PRIu64 " %16" PRIu64
                  " %16" PRIu64 " %9.1f %11.1f\n",
                  target, counters->node, counters->session.value, counters->request_count,
                  counters->error_count, counters->read_bytes, counters->written_bytes, mean_us,
                  largest_us);
}

static void target_add(struct clients_answer *answer, const char *target,
                       const struct session_counters_list *list) {
    uint32_t shown_count = MIN(list->count, list->max);

    for (uint32_t i = 0; i < shown_count; i++) {
        client_add(answer, target, &list->rows[i]);
    }
    answer->left_out_count += list->count - shown_count;
}

static void targets_add(struct clients_answer *answer, struct local_cluster *cluster,
                        struct session_counters *rows) {
    const struct session_counters_list empty = {.rows = rows, .max = CLIENTS_SHOWN_MAX};
    for (uint32_t i = 0; i < local_cluster_mdts(cluster); i++) {
        struct group_stats group = {.clients = empty};
        char target[16];

        snprintf(target, sizeof target, "mdt%" PRIu32, i);
        local_cluster_group_stats(cluster, i, &group);
        target_add(answer, target, &group.clients);
    }
    for (uint32_t i = 0; i < local_cluster_config(cluster)->ost_count; i++) {
        struct ost_stats ost = {.clients = empty};
        char target[16];

        snprintf(target, sizeof target, "ost%" PRIu32, i);
        local_cluster_ost_stats(cluster, i, &ost);
        target_add(answer, target, &ost.clients);
    }
}

static int clients_end(struct clients_answer *answer, struct control *control, bool own) {
    static const char *const words[] = {"stats", "--own", "--clients", "--json"};

    if (!answer->clients) {
        if (answer->left_out_count > 0) {
            control_print(answer->connection, "and %" PRIu64 " more, left out\n",
                          answer->left_out_count);
        }
        return own ? EXIT_OK
                   : control_nodes_print(control, answer->connection, "stats", "--clients");
    }
    json_t *json = json_pack("{s:o, s:I}", "clients", answer->clients, "left_out",
                             (json_int_t)answer->left_out_count);
    if (own) {
        control_print_json(answer->connection, json);
        return EXIT_OK;
    }
    return control_nodes_print_json(control, answer->connection, json, words, ARRAY_SIZE(words));
}

int control_clients(struct control *control, struct control_socket_connection *connection,
                    bool as_json, bool own) {
    struct session_counters *rows = calloc(CLIENTS_SHOWN_MAX, sizeof *rows);
    struct clients_answer answer = {.connection = connection,
                                    .clients = as_json ? json_array() : NULL};

    if (!rows || (as_json && !answer.clients)) {
        free(rows);
        json_decref(answer.clients);
        control_print(connection, "memory could not be had\n");
        return EXIT_FAILED;
    }
    if (!as_json) {
        control_print(connection, "%-8s %6s %10s %12s %8s %16s %16s %9s %11s\n", "target", "node",
                      "session", "requests", "errors", "read bytes", "written bytes", "mean us",
                      "max us");
    }
    targets_add(&answer, control->cluster, rows);
    free(rows);
    return clients_end(&answer, control, own);
}
