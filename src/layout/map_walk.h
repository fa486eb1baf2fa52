/* Inside of the map's bytes: one walk writes, reads, counts and sums, so that these can't disagree.
 *
 * Where it only writes, counts or sums, each field gets its own value back, so that a map that is
 * const may be walked. */
#pragma once
#include "base/crc32c.h"
#include "layout/map_slots.h"
#include <string.h>

struct walk {
    uint8_t *out;      /* NULL: counting, summing or reading */
    const uint8_t *in; /* NULL: counting, summing or writing */
    size_t size;       /* done so far */
    size_t limit;
    uint32_t crc; /* of what was walked, where it sums */
    bool sums;
    bool bad;
};

uint64_t walk_number(struct walk *walk, uint64_t value, size_t bytes);
/* Above the most the walk is bad, and the count 0. */
uint32_t walk_count(struct walk *walk, uint32_t count, uint32_t max);
/* Of a map, one each. */
void walk_node(struct walk *walk, struct map_node *node);
void walk_target(struct walk *walk, struct map_target *target);
void walk_group(struct walk *walk, struct map_group *group);
void walk_chain(struct walk *walk, struct map_chain *chain);
/* That it lies within the map's chains of pools. */
void walk_pool(struct walk *walk, const struct cluster_map *map, struct map_pool *pool);

#define WALK(field)                                                                                \
    ((field) = (__typeof__(field))walk_number(walk, (uint64_t)(field), sizeof(field)))
