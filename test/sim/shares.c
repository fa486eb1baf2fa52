/* Rows of ranges of slots, of all metadata targets, beside the newest map. */
#include "shares.h"
#include "layout/map_lost.h"
#include "layout/map_slots.h"
#include "losses.h"
#include "meta/rows.h"
#include "walk.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NOBODY = 0xff };

struct shares {
    struct world *world;
    uint8_t owners[SLOT_COUNT];
    char *failure;
};

static bool range_take(struct shares *shares, uint32_t mdt, uint32_t first,
                       const struct slots_row *row) {
    for (uint32_t slot = first; slot < first + row->count; slot++) {
        if (row->state != SLOTS_MINE) {
            continue;
        }
        if (shares->owners[slot] != NOBODY) {
            (void)snprintf(shares->failure, 600,
                           "slot %" PRIu32 " is of metadata targets %u and %" PRIu32 " at a time",
                           slot, shares->owners[slot], mdt);
            return false;
        }
        shares->owners[slot] = (uint8_t)mdt;
    }
    return true;
}

static bool rows_read(struct shares *shares, uint32_t mdt) {
    const struct slots_row *row;
    struct walk walk;
    int r;

    walk_begin(&walk, &shares->world->mdts[mdt], key_owner(ROW_SLOTS, 0, 0, 0),
               key_owner(ROW_SLOTS, UINT64_MAX, UINT32_MAX, UINT64_MAX));
    while ((r = walk_next(&walk)) == 0) {
        uint32_t first = (uint32_t)kv_key_split(&walk.cursor.key).id;

        r = slots_row_check((struct bytes){walk.value, walk.size}, &row);
        if (r < 0) {
            break;
        }
        if (!range_take(shares, mdt, first, row)) {
            return false;
        }
    }
    if (r != -ERR_NOT_FOUND) {
        (void)snprintf(shares->failure, 600, "slots of metadata target %" PRIu32 ": %s", mdt,
                       err_name(r));
    }
    return r == -ERR_NOT_FOUND;
}

bool shares_are_dealt(struct world *world, char failure[600]) {
    struct shares shares = {.world = world, .failure = failure};
    const struct cluster_map *map = &world->map;
    bool dealt = map->group_count == world->options.mdt_count;

    memset(shares.owners, NOBODY, sizeof shares.owners);
    for (uint32_t i = 0; i < world->options.mdt_count; i++) {
        if (!node_is_lost(&world->mdts[i]) && !rows_read(&shares, i)) {
            return false;
        }
    }
    /* What one that is lost has nobody else says that it has. */
    for (uint32_t slot = 0; dealt && slot < SLOT_COUNT; slot++) {
        bool lost = cluster_map_slot_is_lost(map, (struct slot){(uint16_t)slot});

        dealt = shares.owners[slot] == (lost ? NOBODY : map->slot_groups[slot]);
    }
    for (uint32_t i = 0; dealt && i < map->group_count; i++) {
        dealt = cluster_map_group_is_lost(map, &map->groups[i]) ||
                cluster_map_slot_count(map, (uint16_t)i) >= SLOT_COUNT / map->group_count;
    }
    return dealt;
}

uint32_t shares_handed_over(const struct world *world) {
    uint32_t count = 0;

    for (uint32_t slot = 0; slot < SLOT_COUNT; slot++) {
        count += world->map.slot_handovers[slot] != 0;
    }
    return count;
}
