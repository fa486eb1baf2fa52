/* Storage targets that are full get no new files: pool versions without them.
 *
 *     node_join{spaces} --> noted --above FULL_PERCENT, below FREE_PERCENT--> crossed
 *     crossed, and POOL_NS since the last one --> a pool version, in the next version of the map
 *
 * A target is out when the newest pool version lacks its chain, so the map alone says who has to
 * fall below FREE_PERCENT: a manager that starts needs no row for it, and leaves all as it is until
 * nodes have told. A target that nobody tells of stays what it is.
 *
 * Versions stay in the map for ever. The fuller the map is of them, the longer is the pause between
 * two that are made here, and the last quarter is left to nodes that join and targets that are
 * lost. */
#include "manager/spaces.h"
#include "layout/map_pools.h"
#include <assert.h>
#include <stdlib.h>

enum {
    FULL_PERCENT = 95,
    FREE_PERCENT = 85,
    MAP_SHARES = 16, /* of the map's room for pool versions: each that is taken doubles the pause */
    MAP_SHARES_MAX = 12 /* from so many on none is made here */
};
#define SPACE_BYTES_MAX (UINT64_C(1) << 56)
#define POOL_NS (10 * NS_PER_S)

static_assert(MAP_POOL_VERSIONS_MAX % MAP_SHARES == 0 && MAP_POOL_CHAINS_MAX % MAP_SHARES == 0,
              "shares are alike");

struct space {
    uint64_t used_bytes;
    uint64_t available_bytes;
    bool is_known; /* it was told, since this start */
    bool is_out;   /* of the newest pool version */
};

struct manager_spaces {
    uint64_t map_version; /* that is_out is of; 0: none */
    bool crossed;         /* a mark, by what was told since it was looked at last */
    uint64_t next_ns;     /* when it may be looked at again */
    struct space targets[MAP_TARGETS_MAX]; /* by the map's */
};

int manager_spaces_new(struct manager *manager) {
    manager->spaces = calloc(1, sizeof *manager->spaces);
    return manager->spaces ? 0 : -ERR_NO_MEMORY;
}

void manager_spaces_free(struct manager *manager) {
    free(manager->spaces);
}

static struct wire_rows told_rows(const struct node_join_request *request) {
    return (struct wire_rows){.bytes = request->spaces,
                              .row_bytes = request->spaces_row_bytes,
                              .row_bytes_min = WIRE_SPACE_BYTES_MIN,
                              .count_max = WIRE_SPACES_MAX};
}

int manager_spaces_check(const struct node_join_request *request) {
    const struct wire_rows rows = told_rows(request);
    struct wire_space space;
    int r = wire_rows_check(&rows);

    if (r < 0) {
        return r;
    }
    for (uint32_t i = 0; i < wire_rows_count(&rows); i++) {
        wire_rows_get(&rows, i, &space, sizeof space);
        if (space.used_bytes > SPACE_BYTES_MAX || space.available_bytes > SPACE_BYTES_MAX) {
            return -ERR_INVALID;
        }
    }
    return 0;
}

/* Of what there is for use, as df(1) has it: a target whose file system below is smaller than its
 * limit has just that. */
static bool is_above(const struct space *space, uint32_t percent) {
    uint64_t all = space->used_bytes + space->available_bytes;

    return space->is_known && space->used_bytes * 100 > all * percent;
}

static bool is_below(const struct space *space, uint32_t percent) {
    uint64_t all = space->used_bytes + space->available_bytes;

    return space->is_known && space->used_bytes * 100 < all * percent;
}

static struct space *space_of(struct manager *manager, const struct map_target *target,
                              const struct cluster_map *map) {
    return &manager->spaces->targets[target - map->targets];
}

/* Who is in the map's newest pool version. */
static void outs_find(struct manager *manager, const struct cluster_map *map) {
    struct pool_version pool;

    for (uint32_t i = 0; i < map->target_count; i++) {
        manager->spaces->targets[i].is_out = map->targets[i].kind == TARGET_OST;
    }
    for (uint32_t i = 0; cluster_map_pool(map, 0, &pool) && i < pool.chain_count; i++) {
        const struct map_chain *chain = cluster_map_chain(map, pool.chains[i]);

        for (uint32_t m = 0; chain && m < chain->member_count; m++) {
            const struct map_target *target = cluster_map_target(map, chain->members[m]);

            if (target) {
                space_of(manager, target, map)->is_out = false;
            }
        }
    }
}

void manager_spaces_note(struct manager *manager, struct node_id node,
                         const struct node_join_request *request) {
    const struct wire_rows rows = told_rows(request);
    struct manager_spaces *all = manager->spaces;
    const struct cluster_map *map = manager->map;
    struct wire_space told;

    if (all->map_version != map->version) {
        outs_find(manager, map);
        all->map_version = map->version;
    }
    for (uint32_t i = 0; i < wire_rows_count(&rows); i++) {
        wire_rows_get(&rows, i, &told, sizeof told);
        const struct map_target *target = cluster_map_target(map, (struct target_id){told.target});

        if (target && target->kind == TARGET_OST && target->node.value == node.value) {
            struct space *space = space_of(manager, target, map);

            space->used_bytes = told.used_bytes;
            space->available_bytes = told.available_bytes;
            space->is_known = true;
            all->crossed = all->crossed || (space->is_out ? is_below(space, FREE_PERCENT)
                                                          : is_above(space, FULL_PERCENT));
        }
    }
}

bool manager_spaces_used(const struct manager *manager, const struct map_target *target,
                         uint64_t *ret_bytes) {
    const struct space *space = &manager->spaces->targets[target - manager->map->targets];

    *ret_bytes = space->used_bytes;
    return space->is_known;
}

static uint32_t shares_taken(const struct cluster_map *map) {
    return MAX(map->pool_count / (MAP_POOL_VERSIONS_MAX / MAP_SHARES),
               map->pool_chain_count / (MAP_POOL_CHAINS_MAX / MAP_SHARES));
}

uint64_t manager_spaces_pause_ns(const struct cluster_map *map, uint64_t interval_ns) {
    uint32_t taken = shares_taken(map);

    return taken < MAP_SHARES_MAX ? interval_ns << taken : UINT64_MAX;
}

bool manager_spaces_are_due(const struct manager *manager) {
    const struct manager_spaces *spaces = manager->spaces;

    return spaces->crossed && env_now_ns(manager->env) >= spaces->next_ns &&
           shares_taken(manager->map) < MAP_SHARES_MAX;
}

/* Whether the chain is to be in the next version, by all of its members. A member that is out comes
 * back below `back` percent only. */
static bool is_wanted(struct manager *manager, const struct cluster_map *map,
                      const struct map_chain *chain, bool by_full) {
    for (uint32_t m = 0; m < chain->member_count; m++) {
        const struct map_target *target = cluster_map_target(map, chain->members[m]);
        const struct space *space = target ? space_of(manager, target, map) : NULL;

        if (!space || target->state == TARGET_LOST || is_above(space, FULL_PERCENT) ||
            (space->is_out && (by_full ? !space->is_known : !is_below(space, FREE_PERCENT)))) {
            return false;
        }
    }
    return true;
}

static uint32_t chains_choose(struct manager *manager, const struct cluster_map *map, bool by_full,
                              uint32_t *ret_chains) {
    uint32_t count = 0;

    for (uint32_t i = 0; i < map->chain_count; i++) {
        if (is_wanted(manager, map, &map->chains[i], by_full)) {
            ret_chains[count++] = map->chains[i].id;
        }
    }
    return count;
}

static bool is_newest(const struct cluster_map *map, const uint32_t *chains, uint32_t count) {
    struct pool_version pool;

    return cluster_map_pool(map, 0, &pool) && pool.chain_count == count &&
           memcmp(pool.chains, chains, count * sizeof *chains) == 0;
}

/* Where none would be left, those come back that are between the marks; and where all are above the
 * upper one, the newest version stays. */
bool manager_spaces_apply(struct manager *manager, struct cluster_map *map) {
    struct manager_spaces *spaces = manager->spaces;
    uint32_t chains[MAP_TARGETS_MAX];
    uint64_t interval_ns = manager->options.pool_interval_ns;

    if (!manager_spaces_are_due(manager)) {
        return false;
    }
    interval_ns = interval_ns ? interval_ns : POOL_NS;
    spaces->crossed = false;
    spaces->next_ns = env_now_ns(manager->env) + manager_spaces_pause_ns(manager->map, interval_ns);
    spaces->map_version = 0; /* is_out is of a map that is not the manager's yet. */
    outs_find(manager, map);
    uint32_t count = chains_choose(manager, map, false, chains);
    if (count == 0) {
        count = chains_choose(manager, map, true, chains);
    }
    return count > 0 && !is_newest(map, chains, count) &&
           cluster_map_put_pool(map, chains, count) == 0;
}
