/* What makes a cluster's process one of its nodes: lanes to the others, the newest map, and who
 * tells the manager of it. Only where others can reach this node.
 *
 * Thread: the opener's, which waits. Memory: the cluster's. */
#pragma once
#include "base/err.h"

struct cluster_map;
struct local_cluster;

/* Before the rpcs: cluster->lanes and links are there, or NULL where nobody else is served. */
MUST_CHECK int local_member_links(struct local_cluster *cluster);
/* cluster->map is the newest that this directory has used, or the first one of a new cluster. */
MUST_CHECK int local_member_map(struct local_cluster *cluster, char problem[256]);
/* Once the rpcs are there. */
MUST_CHECK int local_member_open(struct local_cluster *cluster);
/* Targets that are open, and by the map with which it started lost, are called no more. */
void local_member_lose(struct local_cluster *cluster);
/* The targets can be called from other nodes. */
void local_member_serve(struct local_cluster *cluster);
/* Asks the manager nothing more. */
void local_member_stop(struct local_cluster *cluster);
/* When no thread is left. */
void local_member_close(struct local_cluster *cluster);
