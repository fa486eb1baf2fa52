/* The contract is in control_waits.h. */
#include "cmd/control_waits.h"
#include "cmd/daemon_mount.h"
#include "cmd/json_text.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The manager is asked each second. */
#define SILENT_NS (3 * NS_PER_S)

enum { FIRST_NODE = 1, ASKS_BYTES = 256 };

enum why { WHY_UNKNOWN, WHY_SILENT, WHY_FULL };

static const char *const why_words[] = {
    [WHY_UNKNOWN] = NULL, [WHY_SILENT] = "silent", [WHY_FULL] = "full"};
static const char *const why_texts[] = {
    [WHY_UNKNOWN] = "",
    [WHY_SILENT] = ", which does not answer: is the first node up?",
    [WHY_FULL] = (", which has as many sessions as it takes: unmount some, or raise sessions_max "
                  "in the first node's shoal.conf"),
};

struct wait {
    const char *place;
    uint64_t for_s;
    enum why why;
    char asks[ASKS_BYTES]; /* empty: not known */
};

/* The first node's address by the map; before there is one, those that were named. */
static void asks_find(struct control *control, char ret_asks[ASKS_BYTES]) {
    struct cluster_map *map = calloc(1, sizeof *map);

    snprintf(ret_asks, ASKS_BYTES, "%.*s", ASKS_BYTES - 1,
             local_cluster_config(control->cluster)->join);
    if (map) {
        local_cluster_member(control->cluster, map, NULL);
    }
    for (uint32_t i = 0; map && i < map->node_count; i++) {
        if (map->nodes[i].id.value == FIRST_NODE && map->nodes[i].address[0]) {
            snprintf(ret_asks, ASKS_BYTES, "%s", map->nodes[i].address);
        }
    }
    free(map);
}

/* Whether the manager answers is known from this node's own membership; whether it has room, from
 * who asks for the session: this process, or that of the mount. */
static enum why why_find(struct control *control) {
    const struct config *config = local_cluster_config(control->cluster);
    uint64_t now_ns = env_now_ns(local_cluster_env(control->cluster));
    struct member_state state;

    if (config_is_first(config)) {
        return WHY_UNKNOWN;
    }
    local_cluster_member(control->cluster, NULL, &state);
    if (state.result < 0 || state.heard_ns == 0 || now_ns - state.heard_ns > SILENT_NS) {
        return WHY_SILENT;
    }
    int result = config_mounts_apart(config) ? own_mount_wait_read(control->directory)
                                             : atomic_load(&control->mount_result);
    return result == -ERR_TOO_MANY_SESSIONS ? WHY_FULL : WHY_UNKNOWN;
}

const char *control_waits_place(struct control *control) {
    return daemon_mount_waits(control) ? atomic_load(&control->mount_place) : NULL;
}

static void wait_find(struct control *control, struct wait *ret_wait) {
    uint64_t now_ns = env_now_ns(local_cluster_env(control->cluster));
    uint64_t since_ns = atomic_load(&control->mount_since_ns);

    ret_wait->place = atomic_load(&control->mount_place);
    ret_wait->for_s = now_ns > since_ns ? (now_ns - since_ns) / NS_PER_S : 0;
    ret_wait->why = why_find(control);
    asks_find(control, ret_wait->asks);
}

void control_waits_text(struct control *control, char ret_text[512]) {
    struct wait wait;

    wait_find(control, &wait);
    snprintf(ret_text, 512, "the mount at %.150s waits for its cluster since %" PRIu64 " s%s%s%s",
             wait.place ? wait.place : "-", wait.for_s, wait.asks[0] ? ", asks " : "", wait.asks,
             wait.asks[0] ? why_texts[wait.why] : "");
}

bool control_ended_text(struct control *control, char ret_text[512]) {
    unsigned end = atomic_load(&control->mount_end);
    const char *place = atomic_load(&control->mount_point);
    struct fuse_mount *mount = end == MOUNT_END_NONE ? NULL : control_mount_get(control);
    const char *error = mount ? strerror(-fuse_mount_failure(mount)) : "";

    if (mount) {
        control_mount_put(control);
    }
    if (end == MOUNT_END_CUT) {
        snprintf(ret_text, 512,
                 "the mount at %.150s has died, as its connection with the kernel was cut: `shoal "
                 "up %.100s --mount %.150s` mounts again",
                 place, control->directory, place);
    } else if (end == MOUNT_END_REFUSED) {
        snprintf(ret_text, 512,
                 "the mount at %.100s has died, as the kernel refuses what serves it over "
                 "io_uring: %s: `shoal up %.100s --mount %.100s` mounts again, and channel = dev "
                 "in shoal.conf goes without",
                 place, error, control->directory, place);
    }
    return end != MOUNT_END_NONE;
}

json_t *control_ended_json(struct control *control) {
    unsigned end = atomic_load(&control->mount_end);

    return end == MOUNT_END_NONE
               ? json_null()
               : json_pack("{s:o?, s:s}", "path", json_text(atomic_load(&control->mount_point)),
                           "why", end == MOUNT_END_REFUSED ? "refused" : "cut");
}

bool control_waits_print(struct control *control, struct control_socket_connection *connection) {
    char text[512];

    if (control_waits_place(control)) {
        control_waits_text(control, text);
    } else if (!control_ended_text(control, text)) {
        return false;
    }
    control_print(connection, "           %s\n", text);
    return true;
}

json_t *control_waits_json(struct control *control) {
    struct wait wait;

    if (!control_waits_place(control)) {
        return json_null();
    }
    wait_find(control, &wait);
    return json_pack("{s:o?, s:I, s:s, s:s?}", "path", json_text(wait.place), "for_s",
                     (json_int_t)wait.for_s, "asks", wait.asks, "why", why_words[wait.why]);
}
