/* The contract is in control_away.h. */
#include "cmd/control_away.h"
#include "cmd/json_text.h"
#include "node/local_others.h"
#include <inttypes.h>
#include <stdlib.h>

enum { TARGETS_TEXT_BYTES = 160 };

/* What there is to tell: who is away, and the map, for what they have. */
struct away {
    uint64_t now_ns;
    uint32_t count;
    struct cluster_map map;
    struct lane_away rows[MAP_NODES_MAX];
};

/* NULL: nobody is, or there is no memory. */
static struct away *away_new(struct control *control) {
    struct away *away = malloc(sizeof *away);

    if (!away) {
        return NULL;
    }
    away->count = local_cluster_away(control->cluster, away->rows, MAP_NODES_MAX);
    if (away->count == 0) {
        free(away);
        return NULL;
    }
    away->now_ns = env_now_ns(local_cluster_env(control->cluster));
    local_cluster_member(control->cluster, &away->map, NULL);
    return away;
}

static bool is_of(const struct map_target *target, const struct lane_away *row) {
    return target->node.value == row->node && target->state != TARGET_LOST;
}

static uint64_t silent_s(const struct away *away, const struct lane_away *row) {
    return away->now_ns > row->since_ns ? (away->now_ns - row->since_ns) / NS_PER_S : 0;
}

static void targets_text(const struct away *away, const struct lane_away *row,
                         char ret_text[TARGETS_TEXT_BYTES]) {
    size_t size = 0;

    ret_text[0] = '\0';
    for (uint32_t i = 0; i < away->map.target_count && size < TARGETS_TEXT_BYTES - 16; i++) {
        if (is_of(&away->map.targets[i], row)) {
            size += (size_t)snprintf(ret_text + size, TARGETS_TEXT_BYTES - size, "%s%" PRIu32,
                                     size == 0 ? ", with targets " : ", ",
                                     away->map.targets[i].id.value);
        }
    }
}

void control_away_print(struct control *control, struct control_socket_connection *connection) {
    struct away *away = away_new(control);
    char targets[TARGETS_TEXT_BYTES];

    for (uint32_t i = 0; away && i < away->count; i++) {
        const struct lane_away *row = &away->rows[i];

        targets_text(away, row, targets);
        control_print(connection,
                      "away       node %" PRIu32 ", at %s%s, for %" PRIu64 " s: %" PRIu32
                      " calls of this node wait\n",
                      row->node, row->address, targets, silent_s(away, row), row->wait_count);
    }
    free(away);
}

json_t *control_away_json(struct control *control) {
    struct away *away = away_new(control);
    json_t *rows = json_array();

    for (uint32_t i = 0; away && i < away->count; i++) {
        const struct lane_away *row = &away->rows[i];
        json_t *targets = json_array();

        for (uint32_t t = 0; t < away->map.target_count; t++) {
            if (is_of(&away->map.targets[t], row)) {
                json_array_append_new(targets,
                                      json_integer((json_int_t)away->map.targets[t].id.value));
            }
        }
        json_array_append_new(
            rows, json_pack("{s:I, s:o?, s:I, s:o, s:I}", "node", (json_int_t)row->node, "address",
                            json_text(row->address), "for_s", (json_int_t)silent_s(away, row),
                            "targets", targets, "calls", (json_int_t)row->wait_count));
    }
    free(away);
    return rows;
}
