/* The first joining of a new directory: numbers and the cluster map, from a node of the cluster.
 *
 * Thread: the opener's, which has entered env and waits. Memory: freed before it returns. */
#pragma once
#include "layout/cluster_map.h"
#include "node/config.h"

struct env;

/* The map that a directory keeps: the newest that was used there. */
#define LOCAL_MAP_NAME "map"

/* Asks at config->join, for 10 s, with the key of config. Then config has the cluster's id and
 * keys, the node's key and its numbers; *ret_map is the caller's, to free. Nothing was written.
 * -ERR_TIMED_OUT, or why it was refused, with a line in problem. */
MUST_CHECK int local_join_first(struct env *env, struct config *config,
                                struct cluster_map **ret_map, char problem[512]);

/* Durable on return. */
MUST_CHECK int local_map_write(struct env *env, const struct cluster_map *map);
/* -ERR_NOT_FOUND; -ERR_CORRUPT, -ERR_MALFORMED, -ERR_NEWER_FORMAT, -ERR_OLDER_FORMAT. */
MUST_CHECK int local_map_read(struct env *env, struct cluster_map *ret_map);
