/* Maps and rows beside what targets say of their space. */
#include "pools.h"
#include "life.h"
#include "losses.h"
#include "meta/rows.h"
#include "store/store_format.h"
#include "walk.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* As the manager has them. */
static const double full_percent = 95;
static const double free_percent = 85;

/* A file, and the oldest pool version that it may have. */
struct made {
    uint64_t ino;
    uint32_t pool_floor;
};

struct pools {
    struct made *made;
    size_t count, room;
};

uint32_t pools_floor(const struct world *world) {
    uint32_t floor = UINT32_MAX;

    for (uint32_t i = 0; i < world->options.mdt_count; i++) {
        const struct node *mdt = &world->mdts[i];

        if (!node_is_absent(mdt) && !node_is_lost(mdt)) {
            floor = MIN(floor, mdt->map->pool_count);
        }
    }
    return floor;
}

void pools_note(struct world *world, uint64_t ino, uint32_t floor) {
    struct pools *pools = world->pools ? world->pools : calloc(1, sizeof *pools);

    if (pools && pools->count == pools->room) {
        pools->room = pools->room > 0 ? 2 * pools->room : 256;
        pools->made = realloc(pools->made, pools->room * sizeof *pools->made);
    }
    if (!pools || !pools->made) {
        abort();
    }
    world->pools = pools;
    pools->made[pools->count++] = (struct made){ino, floor};
}

void pools_free(struct pools *pools) {
    if (pools) {
        free(pools->made);
        free(pools);
    }
}

static bool has_chain(const struct cluster_map *map, uint32_t version, uint32_t chain) {
    struct pool_version pool;

    for (uint32_t i = 0; cluster_map_pool(map, version, &pool) && i < pool.chain_count; i++) {
        if (pool.chains[i] == chain) {
            return true;
        }
    }
    return false;
}

/* Only those of the first node tell what they have. */
static bool percent_of(const struct world *world, uint32_t index, double *ret_percent) {
    struct node *ost = &world->osts[index];
    struct ost_space space;

    if (index >= world_first_osts(&world->options) || !node_ost(ost) ||
        !ost_space_get(node_ost(ost), &space)) {
        return false;
    }
    double all = (double)(space.used_bytes + space.available_bytes);
    *ret_percent = all > 0 ? 100.0 * (double)space.used_bytes / all : 0;
    return true;
}

bool pools_are_settled(const struct world *world) {
    const struct cluster_map *map = &world->map;
    bool has_room = false;
    double percent;

    for (uint32_t i = 0; i < world->options.ost_count; i++) {
        has_room = has_room || (percent_of(world, i, &percent) && percent <= full_percent);
    }
    for (uint32_t i = 0; i < world->options.ost_count; i++) {
        if (!percent_of(world, i, &percent)) {
            continue;
        }
        bool is_in = has_chain(map, 0, world->osts[i].target_id);
        if (is_in ? has_room && percent > full_percent : percent < free_percent) {
            return false;
        }
    }
    return pools_floor(world) == map->pool_count;
}

/* NULL: it is not there, or its target is lost. */
static const struct inode_row *inode_get(struct world *world, uint64_t ino, struct walk *walk) {
    struct node *mdt = world_mdt_of(world, ino);
    struct kv_key key = key_inode((struct ino){ino});
    struct kv_key to = key;
    const struct inode_row *row;

    if (node_is_lost(mdt)) {
        return NULL;
    }
    to.bytes[KV_KEY_BYTES - 1]++;
    walk_begin(walk, mdt, key, to);
    return walk_next(walk) == 0 && kv_key_compare(&walk->cursor.key, &key) == 0 &&
                   inode_row_check((struct bytes){walk->value, walk->size}, &row) == 0
               ? row
               : NULL;
}

static bool made_check(struct world *world, char failure[600]) {
    for (size_t i = 0; world->pools && i < world->pools->count; i++) {
        const struct made *made = &world->pools->made[i];
        struct walk walk;
        const struct inode_row *row = inode_get(world, made->ino, &walk);

        if (row && row->pool_version < made->pool_floor) {
            snprintf(failure, 600,
                     "inode %" PRIx64 " has pool version %" PRIu32 ", and all had %" PRIu32
                     " when it was asked for",
                     made->ino, row->pool_version, made->pool_floor);
            return false;
        }
    }
    return true;
}

static bool chunks_check(struct world *world, struct node *ost, char failure[600]) {
    uint64_t last = 0;
    struct walk walk;

    walk_begin(&walk, ost, kv_key_make((struct kv_key_fields){.space = KV_SPACE_SLOT}),
               kv_key_make((struct kv_key_fields){.space = KV_SPACE_SLOT + 1}));
    while (walk_next(&walk) == 0) {
        struct kv_key_fields at = kv_key_split(&walk.cursor.key);
        struct walk inode;

        if (at.type != STORE_ROW_CHUNK || at.id == last) {
            continue;
        }
        last = at.id;
        const struct inode_row *row = inode_get(world, at.id, &inode);
        if (row && !has_chain(&world->map, row->pool_version, ost->target_id)) {
            snprintf(failure, 600,
                     "%s has chunks of inode %" PRIx64 ", whose pool version %" PRIu32 " lacks it",
                     sim_process_name(ost->process), at.id, row->pool_version);
            return false;
        }
    }
    return true;
}

bool pools_check(struct world *world, char failure[600]) {
    bool good = made_check(world, failure);

    for (uint32_t i = 0; good && i < world->options.ost_count; i++) {
        good = node_is_lost(&world->osts[i]) || chunks_check(world, &world->osts[i], failure);
    }
    return good;
}

/* Versions in which a target is, and was not in the one before, or the other way round. */
static uint32_t changes_count(const struct world *world, bool back) {
    const struct cluster_map *map = &world->map;
    uint32_t count = 0;

    for (uint32_t version = 2; version <= map->pool_count; version++) {
        bool any = false;

        for (uint32_t i = 0; i < world_first_osts(&world->options); i++) {
            uint32_t chain = world->osts[i].target_id;

            any = any || (has_chain(map, version, chain) == back &&
                          has_chain(map, version - 1, chain) != back);
        }
        count += any;
    }
    return count;
}

uint32_t pools_left(const struct world *world) {
    return changes_count(world, false);
}

uint32_t pools_back(const struct world *world) {
    return changes_count(world, true);
}
