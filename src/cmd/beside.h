/* Something that waits for others' requests, on a thread beside the daemon's first one: some of
 * these requests may have I/O on that one's loop, as it began it for them, in a scrub. */
#pragma once
#include "node/local_cluster.h"

/* Runs it to its end, on a thread that has entered nothing, so it may not run what belongs to a
 * thread of the cluster; this one's loop goes on meanwhile. Where there are no threads any more
 * that goes on before, as long as there is anything, and it runs here. The first thread. */
void beside_run(struct local_cluster *cluster, void (*run)(void *context), void *context);
