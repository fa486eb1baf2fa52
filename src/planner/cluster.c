/* How Shoal places files: the same function that places them. */
#include "planner/cluster.h"
#include "layout/cluster_map.h"
#include "layout/layout.h"
#include "planner/formula.h"
#include <stdlib.h>

/* A file has the same number of chunks on each of its chains, so its chains stand for them. They
 * follow one another from its first on, so that a file is noted where it begins and behind its last
 * chain, and those between come by adding up. */
bool cluster_spread(uint32_t file_count, uint32_t stripe_count, uint32_t target_count,
                    double *ret_spread, double *ret_on_fullest) {
    uint32_t *chains = calloc(CHAINS_MAX, sizeof *chains);
    struct pool_version pool = {.chain_count = MIN(target_count, CHAINS_MAX + 0U)};
    int64_t *changes = calloc(CHAINS_MAX + 1, sizeof *changes);
    struct layout layout = {.stripe_count = (uint16_t)MIN(stripe_count, STRIPE_ALL + 0U)};
    int64_t pieces = 0;
    int64_t most = 0;

    if (!chains || !changes) {
        free(chains);
        free(changes);
        return false;
    }
    for (uint32_t i = 0; i < pool.chain_count; i++) {
        chains[i] = i;
    }
    pool.chains = chains;
    uint32_t width = layout_width(&layout, &pool);
    for (layout.seed = 0; layout.seed < file_count; layout.seed++) {
        uint32_t first = layout_chain_at(&layout, &pool, 0);
        uint32_t last = layout_chain_at(&layout, &pool, width - 1);

        changes[first]++;
        changes[last + 1]--;
        changes[0] += last < first;
    }
    for (uint32_t i = 0; i < pool.chain_count; i++) {
        pieces += changes[i];
        most = MAX(most, pieces);
    }
    *ret_spread = (double)most / ((double)file_count * width / pool.chain_count);
    *ret_on_fullest = (double)most / (double)file_count;
    free(chains);
    free(changes);
    return true;
}

static double spread_of(struct why *why, int place, const double counts[3], bool on_fullest) {
    double spread;
    double share;

    if (!cluster_spread((uint32_t)counts[0], (uint32_t)counts[1], (uint32_t)counts[2], &spread,
                        &share)) {
        return cannot(why, place, "memory ran out");
    }
    return on_fullest ? share : spread;
}

double layout_spread(struct why *why, int place, double file_count, double stripe_count,
                     double target_count) {
    return spread_of(why, place, (double[]){file_count, stripe_count, target_count}, false);
}

double layout_share_on_fullest(struct why *why, int place, double file_count, double stripe_count,
                               double target_count) {
    return spread_of(why, place, (double[]){file_count, stripe_count, target_count}, true);
}
