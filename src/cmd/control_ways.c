/* By what the data file of each storage target is read and written, as the start has found it. */
#include "cmd/control_ways.h"
#include <inttypes.h>

static const char *const words[] = {[ENV_WAY_NONE] = NULL,
                                    [ENV_WAY_COPY] = "copies",
                                    [ENV_WAY_URING] = "io_uring",
                                    [ENV_WAY_THREADS] = "threads"};

void control_ways_add(json_t *target, const struct env_file_ways *ways) {
    json_t *by =
        json_pack("{s:s?, s:s?, s:b}", "data_read_by", words[ways->reads], "data_written_by",
                  words[ways->writes], "data_direct", (int)ways->direct);

    json_object_update_new(target, by);
}

static const char *word_or_dash(enum env_way way) {
    return words[way] ? words[way] : "-";
}

void control_ways_print(struct control *control, struct control_socket_connection *connection) {
    uint32_t count = local_cluster_config(control->cluster)->ost_count;

    if (count > 0) {
        control_print(connection, "\n%-10s %-10s %-10s %s\n", "target", "read by", "written by",
                      "O_DIRECT");
    }
    for (uint32_t i = 0; i < count; i++) {
        struct ost_stats stats = {.operations = NULL};

        local_cluster_ost_stats(control->cluster, i, &stats);
        control_print(connection, "ost%-7" PRIu32 " %-10s %-10s %s\n", i,
                      word_or_dash(stats.data.reads), word_or_dash(stats.data.writes),
                      stats.data.direct ? "yes" : "no");
    }
}
