/* The targets of the whole cluster, as the map of this node has them: their numbers, whose they
 * are, and which are lost. */
#include "cmd/control_targets.h"
#include <inttypes.h>
#include <stdlib.h>

enum { NAME_BYTES = 16 };

static const char *kind_of(const struct map_target *target) {
    return target->kind == TARGET_MDT ? "mdt" : "ost";
}

/* As its own node calls it: those of a kind are counted from 0, in the order of their numbers. */
static void name_of(const struct cluster_map *map, const struct map_target *target,
                    char ret_name[NAME_BYTES]) {
    uint32_t index = 0;

    for (uint32_t i = 0; i < map->target_count; i++) {
        const struct map_target *other = &map->targets[i];

        index += other->node.value == target->node.value && other->kind == target->kind &&
                 other->id.value < target->id.value;
    }
    snprintf(ret_name, NAME_BYTES, "%s%" PRIu32, kind_of(target), index);
}

static const char *state_of(const struct map_target *target) {
    return target->state == TARGET_LOST ? "lost" : "there";
}

static struct cluster_map *map_get(struct control *control) {
    struct cluster_map *map = malloc(sizeof *map);

    if (map) {
        local_cluster_member(control->cluster, map, NULL);
    }
    return map;
}

json_t *control_targets_json(struct control *control) {
    struct cluster_map *map = map_get(control);
    json_t *targets = json_array();
    char name[NAME_BYTES];

    for (uint32_t i = 0; map && i < map->target_count; i++) {
        const struct map_target *target = &map->targets[i];

        name_of(map, target, name);
        json_array_append_new(
            targets, json_pack("{s:I, s:s, s:s, s:I, s:s}", "id", (json_int_t)target->id.value,
                               "name", name, "kind", kind_of(target), "node",
                               (json_int_t)target->node.value, "state", state_of(target)));
    }
    free(map);
    return targets;
}

void control_targets_print(struct control *control, struct control_socket_connection *connection) {
    struct cluster_map *map = map_get(control);
    char name[NAME_BYTES];

    control_print(connection, "\n%-10s %6s %-10s %s\n", "number", "node", "target", "by the map");
    for (uint32_t i = 0; map && i < map->target_count; i++) {
        const struct map_target *target = &map->targets[i];

        name_of(map, target, name);
        control_print(connection, "%-10" PRIu32 " %6" PRIu32 " %-10s %s\n", target->id.value,
                      target->node.value, name, state_of(target));
    }
    free(map);
}
