/* A start's question whether its node is served already: DIR is a copy then, or was cloned with its
 * machine, and two lives of one log would each acknowledge what the other lacks.
 *
 * Thread: the opener's, which has entered env and waits. Memory: freed before it returns. */
#pragma once
#include "layout/cluster_map.h"
#include "node/config.h"

struct env;

/* Asks at the address that the map has of this node, before anything is opened and anybody is
 * listened to here. -ERR_TWO_LIVES, with a line in problem: this very node answers there. 0: nobody
 * does within 1 s, or somebody else. */
MUST_CHECK int local_twin_check(struct env *env, const struct config *config,
                                const struct cluster_map *map, char problem[256]);

/* Of a node that has joined, and is told to join: whether config->join is its own cluster.
 * -ERR_OTHER_CLUSTER, with a line in problem: who answers there is of another. 0: nobody does
 * within 1 s, or one of its own. The caller has not entered env. */
MUST_CHECK int local_join_check(struct env *env, const struct config *config, char problem[512]);
