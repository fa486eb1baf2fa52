/* Sums of maps by their versions, and a last version that is pushed. */
#include "pushes.h"
#include "renewals.h"
#include "client/client_internal.h"
#include "layout/map_change.h"
#include "life.h"
#include "losses.h"
#include "rpc/call_origin.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { SERIAL = 4711, PATIENCE_S = 2, CALM_MS = 1200, ALL = 64 };

struct map_sum {
    uint64_t version;
    uint32_t crc;
    bool is_managers; /* the manager has it so */
};

struct pushes {
    struct map_sum *sums; /* by index, as they were seen first */
    size_t count, room;
    uint64_t by_changes;
    uint64_t version; /* the newest that the manager was seen with, */
    uint64_t settled; /* and that all had before the last one */
    uint64_t made;    /* the version behind it, which comes to who waits; others may follow */
    uint64_t since_ns;
    struct actor origin;
    struct call call;
    bool is_asking;
    char failure[200];
};

static struct pushes *pushes_of(struct world *world) {
    if (!world->pushes) {
        world->pushes = calloc(1, sizeof *world->pushes);
        if (!world->pushes) {
            abort();
        }
    }
    return world->pushes;
}

uint32_t pushes_waits_max(const struct world *world) {
    return world->options.smallest ? PUSHES_FEW : ALL;
}

static struct map_sum *sum_find(const struct pushes *pushes, uint64_t version) {
    for (size_t i = pushes->count; i-- > 0;) {
        if (pushes->sums[i].version == version) {
            return &pushes->sums[i];
        }
    }
    return NULL;
}

static struct map_sum *sum_add(struct pushes *pushes, struct map_sum sum) {
    if (pushes->count == pushes->room) {
        pushes->room = pushes->room > 0 ? 2 * pushes->room : 64;
        pushes->sums = realloc(pushes->sums, pushes->room * sizeof *pushes->sums);
        if (!pushes->sums) {
            abort();
        }
    }
    pushes->sums[pushes->count] = sum;
    return &pushes->sums[pushes->count++];
}

/* That of its version, which it must be like. */
static struct map_sum *map_compare(struct pushes *pushes, const struct cluster_map *map,
                                   const char *who) {
    struct map_sum *seen = sum_find(pushes, map->version);
    uint32_t crc = cluster_map_crc(map);

    if (!seen) {
        return sum_add(pushes, (struct map_sum){map->version, crc, false});
    }
    if (seen->crc != crc) {
        snprintf(pushes->failure, sizeof pushes->failure,
                 "map %" PRIu64 " of %s is not the one that %s", map->version, who,
                 seen->is_managers ? "the manager has" : "another node has");
    }
    return seen;
}

/* Before it has read its store it has what a metadata target has used; or what it is rebuilt of,
 * which nobody has until it is loaded. */
static void pushes_look(struct world *world) {
    struct pushes *pushes = pushes_of(world);
    const struct manager *manager = world->rebuilt ? NULL : node_manager(world->manager);
    const struct cluster_map *map = manager ? manager_map(manager) : NULL;

    if (map && map->version != pushes->version) {
        pushes->version = map->version;
        pushes->since_ns = sim_now_ns(world->sim);
        map_compare(pushes, map, "the manager")->is_managers = true;
    }
}

void pushes_came(struct node *node, const struct cluster_map *map) {
    struct pushes *pushes = pushes_of(node->world);

    pushes_look(node->world);
    const struct map_sum *seen = map_compare(pushes, map, sim_process_name(node->process));
    pushes->by_changes += node->map_opcode == OP_MAP_CHANGES && seen->is_managers;
}

const char *pushes_failure(const struct world *world) {
    return world->pushes && world->pushes->failure[0] ? world->pushes->failure : NULL;
}

/* The newest map of a node that follows maps; NULL: it does not. */
static const struct cluster_map *map_of(const struct node *node) {
    struct shoal_client *client =
        node->role == NODE_CLIENT ? node_client((struct node *)(uintptr_t)node) : NULL;

    if (client) {
        return router_map(&client->router);
    }
    bool follows = node->role == NODE_MDT && !node_is_absent(node) && !node_is_lost(node);
    return follows ? node->map : NULL;
}

static uint32_t nodes_count(const struct world *world, uint64_t version) {
    uint32_t count = 0;

    for (uint32_t i = 0; i < world->node_count; i++) {
        const struct cluster_map *map = map_of(&world->nodes[i]);

        count += map && map->version >= version;
    }
    return count;
}

uint32_t pushes_waiting(struct world *world) {
    return manager_map_waits(node_manager(world->manager));
}

uint32_t pushes_arrived(const struct world *world) {
    return nodes_count(world, world->pushes->made);
}

/* Those that were not answered in time, as their processes are gone, wait no more by then. */
bool pushes_are_settled(struct world *world) {
    struct pushes *pushes = pushes_of(world);
    uint32_t all = nodes_count(world, 0);

    pushes_look(world);
    pushes->settled = pushes->version;
    return nodes_count(world, pushes->version) == all &&
           sim_now_ns(world->sim) - pushes->since_ns >= CALM_MS * NS_PER_MS &&
           renewals_are_over(world) && pushes_waiting(world) == MIN(all, pushes_waits_max(world));
}

static void answered(struct call *call) {
    struct pushes *pushes = call->context;

    pushes->is_asking = false;
}

bool pushes_make(struct world *world) {
    struct pushes *pushes = pushes_of(world);
    struct node *asker = world->mdts;

    pushes_look(world);
    if (pushes->version != pushes->settled) {
        pushes->made = pushes->version;
        return true;
    }
    if (pushes->is_asking) {
        return false;
    }
    actor_init(&pushes->origin, "pushes", call_origin_step);
    pushes->call =
        (struct call){.header = {.opcode = OP_KEY_REVOKE, .log = LOG_MANAGER},
                      .request.key_revoke = {.serial = SERIAL},
                      .origin = &pushes->origin,
                      .done = answered,
                      .context = pushes,
                      .deadline_ns = env_now_ns(asker->life->env) + PATIENCE_S * NS_PER_S};
    pushes->is_asking = true;
    node_enter(asker);
    call_start(node_rpc(asker), &pushes->call);
    node_leave(asker);
    return false;
}

uint64_t pushes_by_changes(const struct world *world) {
    return world->pushes ? world->pushes->by_changes : 0;
}

void pushes_free(struct pushes *pushes) {
    if (pushes) {
        free(pushes->sums);
        free(pushes);
    }
}
