/* Rebuilding the manager of a cluster whose first node has lost its log, and nothing else
 * (docs/internals/rebuilding.md):
 *
 *     local_rebuild_check: may it be?  (nothing is changed up to here, and by the two that ask)
 *     local_rebuild_ask:   the other nodes --maps--> the newest; each of their logs --rows-->
 *     local_rebuild_own:   likewise of the own targets; DIR/rebuilding, DIR/manager made anew
 *     local_rebuild_end:   all of it is on the manager's disk; DIR/rebuilding goes; it may serve
 *
 * Thread: that of the open. Memory: what it has gathered, until the end. */
#pragma once
#include "node/local_internal.h"

/* There while DIR/manager is no whole one: no start but another rebuilding takes it. */
#define LOCAL_REBUILDING_NAME "rebuilding"

/* Nodes to go on without, as --without names them: numbers, commas between. -ERR_INVALID: it is no
 * such list, or a longer one. */
enum { LOCAL_WITHOUT_MAX = 64 };
struct local_without {
    uint32_t nodes[LOCAL_WITHOUT_MAX];
    uint32_t count;
};
MUST_CHECK int local_without_parse(const char *text, struct local_without *ret_without);

/* Of a directory that has this configuration: -ERR_INVALID, -ERR_EXISTS, -ERR_NOT_FOUND, with a
 * line. Also where no rebuilding is asked for: one that did not end is refused. */
MUST_CHECK int local_rebuild_check(struct env *env, const struct local_cluster_options *options,
                                   const struct config *config, char problem[512]);
/* Before targets are open, and behind the map. From then on cluster->rebuilding is there, which
 * close frees. */
MUST_CHECK int local_rebuild_ask(struct local_cluster *cluster,
                                 const struct local_cluster_options *options, char problem[256]);
/* The own targets are open, the manager is not. */
MUST_CHECK int local_rebuild_own(struct local_cluster *cluster, char problem[256]);
/* What the manager is made of. */
const struct rebuilt *local_rebuild_result(const struct local_cluster *cluster);
/* It is open. */
MUST_CHECK int local_rebuild_end(struct local_cluster *cluster, char problem[256]);
void local_rebuild_free(struct local_cluster *cluster);
