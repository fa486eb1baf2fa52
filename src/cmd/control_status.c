/* status and df: what runs, and how much room there is. */
#include "cmd/control.h"
#include "cmd/control_away.h"
#include "cmd/control_nodes.h"
#include "cmd/control_shares.h"
#include "cmd/control_targets.h"
#include "cmd/control_waits.h"
#include "cmd/control_ways.h"
#include "cmd/daemon_mount.h"
#include "cmd/json_text.h"
#include "cmd/verb.h"
#include "env/errno_map.h"
#include "host/process.h"
#include "layout/map_pools.h"
#include "node/local_directory.h"
#include "node/local_others.h"
#include "rpc/lane.h"
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const char *state_of(struct control *control, uint32_t index) {
    bool is_ost = index >= TARGET_OST_FIRST;
    bool is_mdt = !is_ost && index >= TARGET_GROUP_FIRST;

    if ((is_ost && local_cluster_ost_is_lost(control->cluster, index - TARGET_OST_FIRST)) ||
        (is_mdt && local_cluster_mdt_is_lost(control->cluster, index - TARGET_GROUP_FIRST))) {
        return "lost";
    }
    return local_cluster_failure(control->cluster, index) < 0 ? "failed" : "up";
}

struct target_row {
    uint32_t number; /* among all targets of the cluster */
    char name[16];
    const char *kind;
    const char *state;
    struct kv_levels levels;
    uint64_t inode_count; /* of an MDT, as the next three */
    uint64_t directory_count;
    uint32_t slot_count;
    uint32_t slots_opened;
    uint64_t waiting_count; /* requests that wait for a row, for room, or for another target */
    uint64_t bytes_limit;   /* it may grow so far, or has already */
    uint64_t bytes_total;   /* of its file, as it is now */
    uint64_t bytes_free;
    uint64_t bytes_promised; /* of these, by fallocate, to holes of files */
    uint32_t out_since;      /* pool version from which on it gets no new files; 0: it gets some */
    struct env_file_ways data;
};

static json_t *fill_json(const struct kv_levels *levels) {
    return json_pack("{s:f, s:f, s:f, s:f, s:f}", "ring", levels->ring / 10.0, "data",
                     levels->data / 10.0, "memory", levels->memory / 10.0, "log",
                     levels->log / 10.0, "outcomes", levels->outcomes / 10.0);
}

static json_t *target_json(const struct target_row *row, uint32_t node) {
    const struct kv_levels *levels = &row->levels;

    return json_pack("{s:s, s:I, s:s, s:s, s:i, s:I, s:I, s:I, s:I, s:o, s:I, s:I, s:I}", "id",
                     row->name, "number", (json_int_t)row->number, "kind", row->kind, "state",
                     row->state, "node", (int)node, "bytes_total", (json_int_t)row->bytes_total,
                     "bytes_free", (json_int_t)row->bytes_free, "bytes_promised",
                     (json_int_t)row->bytes_promised, "bytes_limit", (json_int_t)row->bytes_limit,
                     "fill_percent", fill_json(levels), "waiting", (json_int_t)row->waiting_count,
                     "full_seconds", (json_int_t)(levels->full_ns / NS_PER_S), "no_new_files_since",
                     (json_int_t)row->out_since);
}

/* By the newest map that this node has. */
static void outs_find(struct control *control, uint32_t ret_outs[CONFIG_OSTS_MAX]) {
    const struct config *config = local_cluster_config(control->cluster);
    struct cluster_map *map = malloc(sizeof *map);

    memset(ret_outs, 0, CONFIG_OSTS_MAX * sizeof *ret_outs);
    if (map) {
        local_cluster_member(control->cluster, map, NULL);
    }
    for (uint32_t i = 0; map && i < config->ost_count; i++) {
        uint32_t chain = local_target_id(config, TARGET_OST_FIRST + i);

        /* One that has not joined yet is in no version. */
        if (cluster_map_chain(map, chain)) {
            ret_outs[i] = cluster_map_pool_lacks(map, chain);
        }
    }
    free(map);
}

static json_t *mdt_json(const struct target_row *row, uint32_t node) {
    json_t *target = target_json(row, node);

    json_object_set_new(target, "inodes", json_integer((json_int_t)row->inode_count));
    json_object_set_new(target, "directories", json_integer((json_int_t)row->directory_count));
    json_object_set_new(target, "slots", json_integer(row->slot_count));
    json_object_set_new(target, "slots_opened", json_integer(row->slots_opened));
    return target;
}

static json_t *ost_json(const struct target_row *row, uint32_t node) {
    json_t *target = target_json(row, node);

    control_ways_add(target, &row->data);
    return target;
}

static struct target_row mdt_row(struct control *control, uint32_t index) {
    struct group_stats stats = {.operations = NULL};
    struct target_row row = {.kind = "mdt", .state = state_of(control, TARGET_GROUP_FIRST + index)};

    local_cluster_group_stats(control->cluster, index, &stats);
    row.number =
        local_target_id(local_cluster_config(control->cluster), TARGET_GROUP_FIRST + index);
    local_target_name(TARGET_GROUP_FIRST + index, row.name);
    row.levels = stats.kv.levels;
    row.inode_count = stats.inode_count;
    row.directory_count = stats.directory_count;
    row.slot_count = stats.slot_count;
    row.slots_opened = stats.slots_opened;
    row.waiting_count = stats.waiting_count;
    return row;
}

static struct target_row ost_row(struct control *control, uint32_t index) {
    struct target_row row = {.kind = "ost", .state = state_of(control, TARGET_OST_FIRST + index)};
    struct ost_stats stats = {.operations = NULL};

    local_cluster_ost_stats(control->cluster, index, &stats);
    row.number = local_target_id(local_cluster_config(control->cluster), TARGET_OST_FIRST + index);
    snprintf(row.name, sizeof row.name, "ost%" PRIu32, index);
    row.bytes_total = stats.ost.block_count * BLOCK_BYTES;
    row.bytes_limit = MAX(local_cluster_config(control->cluster)->data_bytes_max, row.bytes_total);
    row.bytes_free = stats.ost.free_blocks * BLOCK_BYTES;
    row.data = stats.data;
    row.bytes_promised = stats.ost.promised_blocks * BLOCK_BYTES;
    row.levels = stats.kv.levels;
    row.waiting_count = stats.ost.waiting_count;
    return row;
}

static json_t *targets_json(struct control *control) {
    const struct config *config = local_cluster_config(control->cluster);
    json_t *targets = json_array();
    uint32_t outs[CONFIG_OSTS_MAX];
    struct target_row row;

    outs_find(control, outs);
    for (uint32_t i = 0; i < local_cluster_mdts(control->cluster); i++) {
        row = mdt_row(control, i);
        json_array_append_new(targets, mdt_json(&row, config->node));
    }
    for (uint32_t i = 0; i < config->ost_count; i++) {
        row = ost_row(control, i);
        row.out_since = outs[i];
        json_array_append_new(targets, ost_json(&row, config->node));
    }
    return targets;
}

/* false: it is on another node. */
static bool manager_row(struct control *control, struct target_row *ret_row) {
    struct manager_room room;

    if (!local_cluster_manager_room(control->cluster, &room)) {
        return false;
    }
    *ret_row = (struct target_row){.name = "manager",
                                   .kind = "manager",
                                   .state = state_of(control, TARGET_MANAGER),
                                   .levels = room.levels,
                                   .waiting_count = room.waiting_count};
    return true;
}

static json_t *managers_json(struct control *control) {
    struct manager_hearing hearing;
    struct target_row row;

    if (!local_cluster_hearing(control->cluster, &hearing) || !manager_row(control, &row)) {
        return json_array();
    }
    return json_pack("[{s:s, s:s, s:I, s:I, s:b, s:o, s:I, s:I}]", "id", row.name, "state",
                     row.state, "nodes", (json_int_t)hearing.nodes, "nodes_heard",
                     (json_int_t)hearing.nodes_heard, "evicts", (int)!hearing.holds, "fill_percent",
                     fill_json(&row.levels), "waiting", (json_int_t)row.waiting_count,
                     "full_seconds", (json_int_t)(row.levels.full_ns / NS_PER_S));
}

/* Seconds since the manager answered last; -1: it never has. */
static int64_t silent_s(struct control *control, const struct member_state *state) {
    uint64_t now_ns = env_now_ns(local_cluster_env(control->cluster));

    return state->heard_ns > 0 ? (int64_t)((now_ns - state->heard_ns) / NS_PER_S) : -1;
}

/* The newest first. */
static json_t *keys_json(const struct local_keys *keys) {
    json_t *names = json_array();

    for (uint32_t i = 0; i < keys->count; i++) {
        json_array_append_new(names, json_sprintf("%016" PRIx64, keys->names[i].value));
    }
    return names;
}

static json_t *connections_json(const struct control *control) {
    struct local_connections connections;

    local_cluster_connections(control->cluster, &connections);
    return json_pack("{s:I, s:I, s:I}", "open", (json_int_t)connections.open_count, "most",
                     (json_int_t)connections.connections_max, "of_a_process",
                     (json_int_t)connections.granted);
}

/* NULL: the newest map is used. */
static const char *map_problem(const struct member_state *state) {
    return state->map_problem == 0               ? NULL
           : state->map_problem == -ERR_NO_SPACE ? "full"
                                                 : err_text(state->map_problem);
}

/* NULL where nobody else is served: there is no such thing to tell. */
static json_t *node_json(struct control *control) {
    const struct config *config = local_cluster_config(control->cluster);
    struct member_state state;
    struct local_keys keys;

    if (!config->listen[0]) {
        return json_null();
    }
    local_cluster_member(control->cluster, NULL, &state);
    local_cluster_keys(control->cluster, &keys);
    return json_pack("{s:I, s:s, s:I, s:I, s:s?, s:b, s:I, s:I, s:o, s:o, s:I, s:o, s:o}", "id",
                     (json_int_t)config->node, "address", config_address(config), "map_version",
                     (json_int_t)state.map_version, "map_newer", (json_int_t)state.map_newer,
                     "map_problem", map_problem(&state), "told", (int)state.told,
                     "manager_silent_s", (json_int_t)silent_s(control, &state), "keys_revoked",
                     (json_int_t)local_cluster_revoked_count(control->cluster), "members_keys",
                     keys_json(&keys), "signs_by",
                     keys.count > 0 ? json_sprintf("%016" PRIx64, keys.signing.value) : json_null(),
                     "capability_number", (json_int_t)keys.number, "connections",
                     connections_json(control), "away", control_away_json(control));
}

static json_t *status_json(struct control *control) {
    json_t *mounts = json_array();
    struct own_mount mount;

    daemon_mounted_at(control, &mount);
    if (mount.state == OWN_MOUNT_LIVES) {
        json_array_append_new(mounts, own_mount_json(&mount));
    }
    return json_pack("{s:o?, s:i, s:o, s:o, s:n, s:o, s:o, s:o, s:o, s:o, s:o}", "directory",
                     json_text(control->directory), "process", process_own_id(), "node",
                     node_json(control), "managers", managers_json(control), "key_file", "mounts",
                     mounts, "mount_waits", control_waits_json(control), "mount_ended",
                     control_ended_json(control), "targets", targets_json(control),
                     "cluster_targets", control_targets_json(control), "shares_met",
                     control_shares_json(control));
}

#define CLOCK_SAID_NS NS_PER_S

static void print_clock(struct control *control, struct control_socket_connection *connection) {
    struct lane_clock clock;

    local_cluster_clock(control->cluster, &clock);
    if (llabs(clock.ahead_ns) > (int64_t)CLOCK_SAID_NS) {
        control_print(connection, "clock      %s is %.1f s %s this machine: set both right\n",
                      clock.name, (double)llabs(clock.ahead_ns) / (double)NS_PER_S,
                      clock.ahead_ns > 0 ? "ahead of" : "behind");
    }
}

/* What was renewed; and while the members' key is being changed, how far that is. */
static void print_keys(struct control *control, struct control_socket_connection *connection) {
    struct local_keys keys;

    local_cluster_keys(control->cluster, &keys);
    if (keys.number > 1) {
        control_print(connection,
                      "renewed    to number %" PRIu32 ": what was granted by number %" PRIu32
                      " is good until the next renewal%s\n",
                      keys.number, keys.number - 1,
                      keys.number > 2 ? ", by lower ones no more" : "");
    }
    if (keys.count < 2) {
        return;
    }
    if (keys.signing.value == keys.names[0].value) {
        control_print(connection,
                      "signs by   the newer members' key, %016" PRIx64 ": the older, %016" PRIx64
                      ", may go from key files when all mounts have new ones\n",
                      keys.names[0].value, keys.names[1].value);
    } else {
        control_print(connection,
                      "signs by   the older members' key, %016" PRIx64
                      ", until the key files of all nodes have the newer, %016" PRIx64 "\n",
                      keys.names[1].value, keys.names[0].value);
    }
}

static void print_node(struct control *control, struct control_socket_connection *connection) {
    const struct config *config = local_cluster_config(control->cluster);
    struct member_state state;

    if (!config->listen[0]) {
        return;
    }
    local_cluster_member(control->cluster, NULL, &state);
    control_print(connection, "node       %" PRIu32 ", at %s, map %" PRIu64 "%s\n", config->node,
                  config_address(config), state.map_version,
                  state.told ? "" : ", not known to the manager yet");
    if (state.map_problem < 0) {
        control_print(connection,
                      "map        %" PRIu64 " cannot be kept here: %s: what it takes away is gone, "
                      "nothing else of it holds\n",
                      state.map_newer, map_problem(&state));
    }
    uint32_t revoked_count = local_cluster_revoked_count(control->cluster);
    if (revoked_count > 0) {
        control_print(connection, "keys       %" PRIu32 " of mounts revoked, of %d at most\n",
                      revoked_count, MAP_REVOKED_MAX);
    }
    print_keys(control, connection);
    print_clock(control, connection);
    control_away_print(control, connection);
    if (state.result < 0) {
        control_print(connection, "manager    %s (%" PRId64 " s)\n", err_text(state.result),
                      silent_s(control, &state));
    }
}

/* Where the half is used, threads of many clients share what they have. */
static void print_connections(struct control *control,
                              struct control_socket_connection *connection) {
    struct local_connections connections;

    local_cluster_connections(control->cluster, &connections);
    if (connections.open_count >= connections.connections_max / 2) {
        control_print(connection,
                      "calls      by %" PRIu32 " connections, of %" PRIu32 " at most, %" PRIu32
                      " of a process\n",
                      connections.open_count, connections.connections_max, connections.granted);
    }
}

static void print_hearing(struct control *control, struct control_socket_connection *connection) {
    struct manager_hearing hearing;

    if (local_cluster_hearing(control->cluster, &hearing) && hearing.holds) {
        control_print(connection,
                      "evictions  held back: the manager hears %" PRIu32 " of %" PRIu32
                      " nodes, or did a moment ago: see to this node's network, or start the "
                      "others\n",
                      hearing.nodes_heard, hearing.nodes);
    }
}

static void print_channel(const struct own_mount_channel *channel,
                          struct control_socket_connection *connection) {
    if (!channel->name) {
        return;
    }
    control_print(connection, "channel    %s%s%s\n", channel->name, channel->why[0] ? ": " : "",
                  channel->why);
    if (channel->may_stand_aside) {
        control_print(connection,
                      "           threads stood aside %" PRIu64 " times, and served %" PRIu64
                      " requests so\n",
                      channel->stood_aside, channel->served_aside);
    } else {
        control_print(connection, "           threads may not stand aside here\n");
    }
}

/* That it is the daemon's own, as it mostly is, need not be said. */
static void print_mount(struct control *control, struct control_socket_connection *connection) {
    struct own_mount mount;

    daemon_mounted_at(control, &mount);
    control_print(connection, "mounted    %s\n",
                  mount.state == OWN_MOUNT_LIVES ? mount.place : "-");
    if (mount.state != OWN_MOUNT_LIVES && control_waits_print(control, connection)) {
        return;
    }
    if (mount.state == OWN_MOUNT_LEFT) {
        control_print(connection,
                      "           the process of the mount at %s has died: `shoal up %s` mounts "
                      "again\n",
                      mount.place, control->directory);
    } else if (mount.state == OWN_MOUNT_LIVES && mount.process != process_own_id()) {
        control_print(connection, "           by process %d, which outlives the daemon\n",
                      mount.process);
    }
    if (mount.state == OWN_MOUNT_LIVES) {
        print_channel(&mount.channel, connection);
    }
    control_shares_print(control, connection);
}

static void print_table(struct control *control, struct control_socket_connection *connection) {
    const struct config *config = local_cluster_config(control->cluster);

    control_print(connection, "directory  %s\n", control->directory);
    print_mount(control, connection);
    print_node(control, connection);
    print_hearing(control, connection);
    print_connections(control, connection);
    control_print(connection, "\n");
    control_print(connection, "%-10s %-8s %-6s %12s %12s %14s\n", "target", "kind", "state",
                  "used MiB", "limit MiB", "allocated MiB");
    if (config_is_first(config)) {
        control_print(connection, "%-10s %-8s %-6s %12s %12s %14s\n", "manager", "manager",
                      state_of(control, TARGET_MANAGER), "-", "-", "-");
    }
    for (uint32_t i = 0; i < local_cluster_mdts(control->cluster); i++) {
        struct target_row row = mdt_row(control, i);

        control_print(connection, "%-10s %-8s %-6s %12s %12s %14s\n", row.name, row.kind, row.state,
                      "-", "-", "-");
    }
    for (uint32_t i = 0; i < config->ost_count; i++) {
        struct target_row row = ost_row(control, i);

        control_print(connection, "%-10s %-8s %-6s %12" PRIu64 " %12" PRIu64 " %14" PRIu64 "\n",
                      row.name, row.kind, row.state, (row.bytes_total - row.bytes_free) / MIB,
                      row.bytes_limit / MIB, row.bytes_total / MIB);
    }
}

/* How full the parts of each target's log are, and who waits. */
static void print_levels(struct control_socket_connection *connection,
                         const struct target_row *row) {
    const struct kv_levels *levels = &row->levels;
    uint64_t full_s = levels->full_ns / NS_PER_S;

    control_print(connection, "%-10s %5u%% %5u%% %5u%% %5u%% %8u%% %8" PRIu64 "  ", row->name,
                  levels->ring / 10U, levels->data / 10U, levels->memory / 10U, levels->log / 10U,
                  levels->outcomes / 10U, row->waiting_count);
    if (levels->full_ns > 0) {
        control_print(connection, "full: ENOSPC since %" PRIu64 " s\n", full_s);
    } else {
        control_print(connection, "-\n");
    }
}

static void print_fill(struct control *control, struct control_socket_connection *connection) {
    const struct config *config = local_cluster_config(control->cluster);
    struct target_row row;

    control_print(connection, "\n%-10s %6s %6s %6s %6s %9s %8s  %s\n", "target", "ring", "data",
                  "memory", "log", "outcomes", "waiting", "space below");
    if (manager_row(control, &row)) {
        print_levels(connection, &row);
    }
    for (uint32_t i = 0; i < local_cluster_mdts(control->cluster); i++) {
        row = mdt_row(control, i);
        print_levels(connection, &row);
    }
    for (uint32_t i = 0; i < config->ost_count; i++) {
        row = ost_row(control, i);
        print_levels(connection, &row);
    }
}

/* What of the namespace each metadata target has. */
static void print_namespace(struct control *control, struct control_socket_connection *connection) {
    uint32_t count = local_cluster_mdts(control->cluster);

    if (count > 0) {
        control_print(connection, "\n%-10s %12s %12s %6s %12s\n", "target", "inodes", "directories",
                      "slots", "slots opened");
    }
    for (uint32_t i = 0; i < count; i++) {
        struct target_row row = mdt_row(control, i);

        control_print(connection, "%-10s %12" PRIu64 " %12" PRIu64 " %6" PRIu32 " %12" PRIu32 "\n",
                      row.name, row.inode_count, row.directory_count, row.slot_count,
                      row.slots_opened);
    }
}

/* Who gets no new files. */
static void print_outs(struct control *control, struct control_socket_connection *connection) {
    const struct config *config = local_cluster_config(control->cluster);
    uint32_t outs[CONFIG_OSTS_MAX];

    outs_find(control, outs);
    for (uint32_t i = 0; i < config->ost_count; i++) {
        if (outs[i] > 0) {
            control_print(connection,
                          "ost%" PRIu32 " is full: no new files since pool version %" PRIu32
                          ", some again when it is less than 85 %% full\n",
                          i, outs[i]);
        }
    }
}

int control_status(struct control *control, struct control_socket_connection *connection,
                   size_t argument_count, char **arguments) {
    static const char *const words[] = {"status", "--own", "--json"};
    bool own = control_has_word(argument_count, arguments, "--own");

    if (!control_has_word(argument_count, arguments, "--json")) {
        print_table(control, connection);
        print_fill(control, connection);
        print_outs(control, connection);
        print_namespace(control, connection);
        control_ways_print(control, connection);
        if (!own) {
            control_targets_print(control, connection);
        }
        return own ? EXIT_OK : control_nodes_print(control, connection, "status", NULL);
    }
    if (own) {
        control_print_json(connection, status_json(control));
        return EXIT_OK;
    }
    return control_nodes_print_json(control, connection, status_json(control), words,
                                    ARRAY_SIZE(words));
}

/* As df(1) has it: of what there is for use, rounded up. */
static uint64_t percent(uint64_t used, const struct shoal_statfs *space) {
    uint64_t all = used + space->bytes_available;

    return all > 0 ? (used * 100 + all - 1) / all : 0;
}

static json_t *space_json(const struct shoal_statfs *space, const struct node_answers *answers) {
    uint64_t used = space->bytes_total - space->bytes_free;

    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:o}", "bytes_total",
                     (json_int_t)space->bytes_total, "bytes_used", (json_int_t)used,
                     "bytes_available", (json_int_t)space->bytes_available, "files_total",
                     (json_int_t)space->files_total, "files_free", (json_int_t)space->files_free,
                     "away", control_nodes_away_json(answers));
}

static void print_space(struct control_socket_connection *connection,
                        const struct shoal_statfs *space) {
    uint64_t used = space->bytes_total - space->bytes_free;

    control_print(connection,
                  "%12s %12s %12s %5s\n%12" PRIu64 " %12" PRIu64 " %12" PRIu64 " %4" PRIu64 "%%\n",
                  "total MiB", "used MiB", "free MiB", "used", space->bytes_total / MIB, used / MIB,
                  space->bytes_available / MIB, percent(used, space));
}

static const char *const here[] = {"here"};

int control_df(struct control *control, struct control_socket_connection *connection,
               size_t argument_count, char **arguments) {
    struct shoal_request request = {.operation = SHOAL_STATFS};
    struct node_answers answers = {0};
    int64_t r = shoal_run(local_cluster_client(control->cluster), &request);

    if (r < 0) {
        control_print(connection, "%s\n", err_text(err_from_errno((int)-r)));
        return EXIT_FAILED;
    }
    if (control_nodes_ask(control, here, 1, &answers) < 0) {
        control_print(connection, "memory could not be had\n");
        return EXIT_FAILED;
    }
    if (control_has_word(argument_count, arguments, "--json")) {
        control_print_json(connection, space_json(&request.statfs, &answers));
    } else {
        print_space(connection, &request.statfs);
        control_nodes_name_away(connection, &answers, "counted as it was last known: ");
    }
    int status = control_nodes_away(&answers) > 0 ? EXIT_PARTLY : EXIT_OK;
    control_nodes_free(&answers);
    return status;
}

int control_sync(struct control *control, struct control_socket_connection *connection,
                 size_t argument_count, char **arguments) {
    struct shoal_request request = {.operation = SHOAL_SYNC};
    int64_t r = shoal_run(local_cluster_client(control->cluster), &request);

    (void)argument_count;
    (void)arguments;
    if (r < 0) {
        struct node_answers answers = {0};

        control_print(connection, "%s\n", err_text(err_from_errno((int)-r)));
        if (control_nodes_ask(control, here, 1, &answers) == 0) {
            control_nodes_name_away(connection, &answers, "");
            control_nodes_free(&answers);
        }
    }
    return r < 0 ? EXIT_FAILED : EXIT_OK;
}
