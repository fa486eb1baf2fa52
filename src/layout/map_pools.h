/* Pool versions of the map that lack chains which others have. */
#pragma once
#include "layout/cluster_map.h"

/* A pool version with just these chains, one at least. It takes no room for chains where an older
 * version begins with the same. -ERR_NO_SPACE. */
MUST_CHECK int cluster_map_put_pool(struct cluster_map *map, const uint32_t *chains,
                                    uint32_t chain_count);
/* The first version of those up to the newest that all lack the chain; 0: the newest has it. */
uint32_t cluster_map_pool_lacks(const struct cluster_map *map, uint32_t chain);
