/* What a check finds, as text or JSON, wherever it runs: in the daemon or in the command itself.
 *
 * Lines that begin with FSCK_NOTE or FSCK_ERROR are not the answer but about it: progress, and why
 * a check could not be finished. */
#pragma once
#include "check/fsck.h"
#include "node/local_cluster.h"

enum {
    FSCK_NOTE = 1,
    FSCK_ERROR = 2,
};

struct fsck_output {
    bool json;
    bool with_data;
    bool unscrubbed; /* the scrub waits for a node that is away */
    void (*write)(void *context, const char *text, size_t size);
    bool (*stopped)(void *context); /* the check shall end */
    void *context;
};

/* The cluster of this process's node as a check sees it, which waits for whoever is away; map is
 * filled, and stays in use. */
struct fsck_cluster fsck_cluster_of(struct local_cluster *cluster, struct cluster_map *map);

/* Checks and tells; answers an exit status: EXIT_PARTLY where nothing wrong was found and a target
 * was not checked. */
int fsck_report_run(struct local_cluster *cluster, const struct fsck_output *output);
