/* stats: what the mount and each target have counted since they began. */
#include "cmd/control.h"
#include "cmd/control_nodes.h"
#include "cmd/verb.h"
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* One answer, as it grows. Text: the operations' table first, then the counters'. */
struct answer {
    struct control_socket_connection *connection;
    bool as_json;
    bool own; /* of this node alone */
    json_t *operations;
    json_t *counters;
};

struct operation_row {
    const char *target;
    const char *name;
    uint64_t count, error_count, mean_ns, p50_ns, p99_ns, p999_ns;
};

static void operation_add(struct answer *answer, const struct operation_row *row) {
    if (answer->as_json) {
        json_array_append_new(
            answer->operations,
            json_pack("{s:s, s:s, s:I, s:I, s:f, s:f, s:f, s:f}", "target", row->target,
                      "operation", row->name, "count", (json_int_t)row->count, "errors",
                      (json_int_t)row->error_count, "mean_us", (double)row->mean_ns / 1e3, "p50_us",
                      (double)row->p50_ns / 1e3, "p99_us", (double)row->p99_ns / 1e3, "p999_us",
                      (double)row->p999_ns / 1e3));
        return;
    }
    control_print(answer->connection,
                  "%-8s %-16s %12" PRIu64 " %8" PRIu64 " %9.1f %9.1f %9.1f %9.1f\n", row->target,
                  row->name, row->count, row->error_count, (double)row->mean_ns / 1e3,
                  (double)row->p50_ns / 1e3, (double)row->p99_ns / 1e3, (double)row->p999_ns / 1e3);
}

static void counter_add(struct answer *answer, const char *target, const char *name,
                        uint64_t value) {
    json_array_append_new(answer->counters, json_pack("{s:s, s:s, s:I}", "target", target, "name",
                                                      name, "value", (json_int_t)value));
}

static void add_mount(struct answer *answer, struct control *control) {
    struct fuse_operation_statistics *rows = calloc(FUSE_OPERATIONS_MAX, sizeof *rows);
    struct fuse_mount *mount = control_mount_get(control);
    unsigned count = rows && mount ? fuse_mount_statistics(mount, rows) : 0;

    if (mount) {
        struct fuse_counters counters;

        fuse_mount_counters(mount, &counters);
        counter_add(answer, "mount", "requests_waited", counters.waited);
        counter_add(answer, "mount", "requests_held_back", counters.held_back);
        counter_add(answer, "mount", "stood_aside", counters.stood_aside);
        counter_add(answer, "mount", "served_aside", counters.served_aside);
        counter_add(answer, "mount", "listed_ahead", counters.listed_ahead);
        counter_add(answer, "mount", "ahead_taken", counters.ahead_taken);
        control_mount_put(control);
    }

    for (unsigned i = 0; i < count; i++) {
        operation_add(answer,
                      &(struct operation_row){"mount", rows[i].name, rows[i].count,
                                              rows[i].error_count, rows[i].mean_ns, rows[i].p50_ns,
                                              rows[i].p99_ns, rows[i].p999_ns});
    }
    free(rows);
}

static void add_operations(struct answer *answer, const char *target,
                           const struct operation_counters *operations) {
    for (uint16_t opcode = 0; opcode < OPCODE_COUNT; opcode++) {
        const struct operation_counters *row = &operations[opcode];

        if (row->count > 0) {
            operation_add(
                answer, &(struct operation_row){target, wire_name(opcode), row->count,
                                                row->error_count, histogram_mean(&row->latency_ns),
                                                histogram_percentile(&row->latency_ns, 500),
                                                histogram_percentile(&row->latency_ns, 990),
                                                histogram_percentile(&row->latency_ns, 999)});
        }
    }
}

static void add_kv(struct answer *answer, const char *target, const struct kv_counters *kv) {
#define KV_COUNTER(name) counter_add(answer, target, #name, kv->name)
    KV_COUNTER(records);
    KV_COUNTER(record_bytes);
    KV_COUNTER(sync_points);
    KV_COUNTER(sync_points_unasked);
    KV_COUNTER(checkpoints);
    KV_COUNTER(checkpoint_rows);
    KV_COUNTER(pending_reads);
    KV_COUNTER(replayed_records);
    KV_COUNTER(replayed_ring_records);
    KV_COUNTER(duplicates_refused);
    KV_COUNTER(stalls);
    KV_COUNTER(outcomes_refused);
    KV_COUNTER(changes_bytes);
    KV_COUNTER(ring_used_bytes);
    KV_COUNTER(disk_log_used_bytes);
#undef KV_COUNTER
    counter_add(answer, target, "outcomes_permille", kv->levels.outcomes);
    counter_add(answer, target, "full_s", kv->levels.full_ns / NS_PER_S);
}

static void add_group(struct answer *answer, struct local_cluster *cluster, uint32_t index,
                      struct operation_counters *operations) {
    struct group_stats *stats = calloc(1, sizeof *stats);
    char target[16];

    if (!stats) {
        return;
    }
    snprintf(target, sizeof target, "mdt%" PRIu32, index);
    stats->operations = operations;
    local_cluster_group_stats(cluster, index, stats);
    add_operations(answer, target, operations);
#define GROUP_COUNTER(name, value) counter_add(answer, target, name, stats->value)
    GROUP_COUNTER("inodes", inode_count);
    GROUP_COUNTER("directories", directory_count);
    GROUP_COUNTER("slots", slot_count);
    GROUP_COUNTER("slots_opened", slots_opened);
    GROUP_COUNTER("position", position);
    GROUP_COUNTER("synced_position", synced_position);
    GROUP_COUNTER("term", term);
    GROUP_COUNTER("sessions", session_count);
    GROUP_COUNTER("sessions_away", away_count);
    GROUP_COUNTER("opens", open_count);
    GROUP_COUNTER("orders", order_count);
    GROUP_COUNTER("parked", parked_count);
    GROUP_COUNTER("restarts", totals.restarts);
    GROUP_COUNTER("duplicates", totals.duplicates);
    GROUP_COUNTER("refused", totals.refused);
    GROUP_COUNTER("old_maps", totals.old_maps);
    GROUP_COUNTER("waited", totals.waited);
    GROUP_COUNTER("pauses", totals.pauses);
    GROUP_COUNTER("orders_done", totals.orders_done);
    GROUP_COUNTER("orders_put_aside", totals.orders_put_aside);
    GROUP_COUNTER("settled", totals.settled);
    GROUP_COUNTER("settles_put_off", totals.settles_put_off);
    GROUP_COUNTER("counted", totals.counted);
    GROUP_COUNTER("orphans_freed", totals.orphans_freed);
    GROUP_COUNTER("writers_left", totals.writers_left);
    GROUP_COUNTER("chunks_given_back", totals.chunks_given_back);
    GROUP_COUNTER("chunks_kept", totals.chunks_kept);
    GROUP_COUNTER("evictions", totals.evictions);
    GROUP_COUNTER("fences", totals.fences);
    GROUP_COUNTER("fencing_settles", totals.fencing_settles);
    GROUP_COUNTER("losses_over", totals.losses_over);
    GROUP_COUNTER("ends_over", totals.ends_over);
    GROUP_COUNTER("crossings", totals.crossings);
    GROUP_COUNTER("crossings_again", totals.crossings_again);
    GROUP_COUNTER("crossings_busy", totals.crossings_busy);
    GROUP_COUNTER("crossings_full", totals.crossings_full);
    GROUP_COUNTER("promises_kept", totals.promises_kept);
    GROUP_COUNTER("promises_gone", totals.promises_gone);
    GROUP_COUNTER("promises_refused", totals.promises_refused);
    GROUP_COUNTER("promises_found", totals.promises_found);
    GROUP_COUNTER("decisions_found", totals.decisions_found);
    GROUP_COUNTER("promises_lost_kept", totals.promises_lost_kept);
    GROUP_COUNTER("promises_lost_gone", totals.promises_lost_gone);
    GROUP_COUNTER("shares_lost", totals.shares_lost);
    GROUP_COUNTER("turns_asked", totals.turns_asked);
    GROUP_COUNTER("turns_given", totals.turns_given);
    GROUP_COUNTER("turns_run_out", totals.turns_run_out);
#undef GROUP_COUNTER
    add_kv(answer, target, &stats->kv);
    free(stats);
}

static void add_ost(struct answer *answer, struct local_cluster *cluster, uint32_t index,
                    struct operation_counters *operations) {
    struct ost_stats *stats = calloc(1, sizeof *stats);
    char target[16];

    if (!stats) {
        return;
    }
    snprintf(target, sizeof target, "ost%" PRIu32, index);
    stats->operations = operations;
    local_cluster_ost_stats(cluster, index, stats);
    add_operations(answer, target, operations);
    counter_add(answer, target, "position", stats->position);
    counter_add(answer, target, "synced_position", stats->synced_position);
#define OST_COUNTER(name) counter_add(answer, target, #name, stats->ost.name)
    OST_COUNTER(reads);
    OST_COUNTER(read_bytes);
    OST_COUNTER(writes);
    OST_COUNTER(write_bytes);
    OST_COUNTER(small_writes);
    OST_COUNTER(cuts);
    OST_COUNTER(deletes);
    OST_COUNTER(corrupt_blocks);
    OST_COUNTER(cuts_through_damage);
    OST_COUNTER(cache_hits);
    OST_COUNTER(cache_misses);
    OST_COUNTER(disk_reads);
    OST_COUNTER(disk_writes);
    OST_COUNTER(merge_reads);
    OST_COUNTER(bounces);
    OST_COUNTER(waits);
    OST_COUNTER(copies);
    OST_COUNTER(block_count);
    OST_COUNTER(free_blocks);
    OST_COUNTER(quarantine_blocks);
    OST_COUNTER(promised_blocks);
    OST_COUNTER(punches);
    OST_COUNTER(promises);
    OST_COUNTER(sync_writes);
    OST_COUNTER(sync_blocks);
#undef OST_COUNTER
    add_kv(answer, target, &stats->kv);
    free(stats);
}

static void add_manager(struct answer *answer, const struct local_cluster *cluster) {
    struct manager_hearing hearing;
    struct manager_room room;

    if (!local_cluster_hearing(cluster, &hearing) || !local_cluster_manager_room(cluster, &room)) {
        return;
    }
#define MANAGER_COUNTER(name) counter_add(answer, "manager", #name, hearing.name)
    MANAGER_COUNTER(nodes);
    MANAGER_COUNTER(nodes_heard);
    MANAGER_COUNTER(silent_evicted);
    MANAGER_COUNTER(silent_held);
#undef MANAGER_COUNTER
#define MAP_COUNTER(name, value) counter_add(answer, "manager", #name, value)
    MAP_COUNTER(joins_gathered, local_cluster_joins_gathered(cluster));
    MAP_COUNTER(map_waits, local_cluster_map_waits(cluster));
    MAP_COUNTER(full_s, room.levels.full_ns / NS_PER_S);
#undef MAP_COUNTER
}

static void add_client(struct answer *answer, struct shoal_client *client) {
    struct client_counters counters;

    if (!client) {
        return;
    }
    client_counters_get(client, &counters);
#define CLIENT_COUNTER(name) counter_add(answer, "client", #name, counters.name)
    CLIENT_COUNTER(requests);
    CLIENT_COUNTER(failures);
    CLIENT_COUNTER(retries);
    CLIENT_COUNTER(reattachments);
    CLIENT_COUNTER(reopened);
    CLIENT_COUNTER(conversions);
    CLIENT_COUNTER(piece_waits);
    CLIENT_COUNTER(late_closes);
    CLIENT_COUNTER(late_away);
    CLIENT_COUNTER(late_opens);
    CLIENT_COUNTER(returns);
    CLIENT_COUNTER(window_waits);
#undef CLIENT_COUNTER
}

static void print_counters(struct answer *answer) {
    size_t index;
    json_t *row;

    control_print(answer->connection, "\n%-8s %-22s %20s\n", "target", "counter", "value");
    json_array_foreach(answer->counters, index, row) {
        control_print(answer->connection, "%-8s %-22s %20" JSON_INTEGER_FORMAT "\n",
                      json_string_value(json_object_get(row, "target")),
                      json_string_value(json_object_get(row, "name")),
                      json_integer_value(json_object_get(row, "value")));
    }
}

static int answer_end(struct answer *answer, struct control *control) {
    static const char *const words[] = {"stats", "--own", "--json"};
    json_t *json =
        json_pack("{s:O, s:O}", "operations", answer->operations, "counters", answer->counters);
    int status = EXIT_OK;

    if (!answer->as_json) {
        print_counters(answer);
        json_decref(json);
        status =
            answer->own ? EXIT_OK : control_nodes_print(control, answer->connection, "stats", NULL);
    } else if (answer->own) {
        control_print_json(answer->connection, json);
    } else {
        status =
            control_nodes_print_json(control, answer->connection, json, words, ARRAY_SIZE(words));
    }
    json_decref(answer->operations);
    json_decref(answer->counters);
    return status;
}

static int operations_and_counters(struct control *control,
                                   struct control_socket_connection *connection, bool as_json,
                                   bool own) {
    struct operation_counters *operations = calloc(OPCODE_COUNT, sizeof *operations);
    struct answer answer = {.connection = connection,
                            .as_json = as_json,
                            .own = own,
                            .operations = json_array(),
                            .counters = json_array()};

    if (!operations) {
        json_decref(answer.operations);
        json_decref(answer.counters);
        control_print(connection, "memory could not be had\n");
        return EXIT_FAILED;
    }
    if (!answer.as_json) {
        control_print(connection, "%-8s %-16s %12s %8s %9s %9s %9s %9s\n", "target", "operation",
                      "count", "errors", "mean us", "p50 us", "p99 us", "p99.9 us");
    }
    add_mount(&answer, control);
    add_manager(&answer, control->cluster);
    for (uint32_t i = 0; i < local_cluster_mdts(control->cluster); i++) {
        add_group(&answer, control->cluster, i, operations);
    }
    for (uint32_t i = 0; i < local_cluster_config(control->cluster)->ost_count; i++) {
        add_ost(&answer, control->cluster, i, operations);
    }
    add_client(&answer, local_cluster_client(control->cluster));
    free(operations);
    return answer_end(&answer, control);
}

int control_stats(struct control *control, struct control_socket_connection *connection,
                  size_t argument_count, char **arguments) {
    bool as_json = control_has_word(argument_count, arguments, "--json");

    bool own = control_has_word(argument_count, arguments, "--own");

    return control_has_word(argument_count, arguments, "--clients")
               ? control_clients(control, connection, as_json, own)
               : operations_and_counters(control, connection, as_json, own);
}
