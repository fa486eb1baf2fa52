/* What a node knows of the others that it calls; where nobody else is served, nothing. Thread:
 * any. */
#pragma once
#include "node/local_cluster.h"
#include "rpc/lane_away.h"

/* Whose clock differs most. */
void local_cluster_clock(const struct local_cluster *cluster, struct lane_clock *ret_clock);
/* Those that do not answer, capacity of them at most: how many rows. */
uint32_t local_cluster_away(const struct local_cluster *cluster, struct lane_away *ret_rows,
                            uint32_t capacity);
