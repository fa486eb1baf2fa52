/* Checking a cluster that runs: every row of every target against the others, and stored blocks
 * against their checksums. Finds; changes nothing.
 *
 * The cluster is in use meanwhile, so nothing that seems wrong is a problem yet: it is looked at
 * again, until either it is right, or wrong in a way that no change can explain. What changes all
 * the while is counted as unsettled. Nor is silence a problem: what can't be judged without a
 * target that is away is counted, and all else checked.
 *
 * Thread: the caller's, which waits in ask and rest, and calls the report's functions. Memory: 128
 * MiB and some lists while it runs, however big the cluster is. */
#pragma once
#include "env/env.h"
#include "layout/cluster_map.h"
#include "rpc/call.h"

/* What becomes of a target while it is checked. */
struct fsck_target {
    int silence;       /* 0, or why it is away, and not asked any more */
    bool answered;     /* before */
    uint64_t unjudged; /* places, mostly on others, that can't be judged without it */
};

/* What is checked, and how it is reached; all of it stays the caller's, and there until the end. */
struct fsck_cluster {
    struct env *env; /* its clock */
    const struct cluster_map *map;
    /* As map->targets, zeroed; NULL: whoever is away is waited for. */
    struct fsck_target *targets;
    uint64_t patience_ns; /* who can't be reached for so long is away */
    uint64_t answer_ns;   /* likewise who does not answer, though it can */
    bool unscrubbed;      /* the scrub is not done: chunks without a file are its to judge */
    /* Asks targets, all at once, and waits: opcode, target, request, bulk and deadlines are
     * filled. Each call has its result then. */
    void (*ask)(void *context, struct call *calls, uint32_t count);
    void (*rest)(void *context); /* lets the others go on for a tenth of a second at most */
    void *context;
};

struct fsck_report {
    /* kind is one word, where names the place, meaning says what is wrong with it. */
    void (*problem)(void *context, const char *kind, const char *where, const char *meaning);
    void (*progress)(void *context, const char *line);
    bool (*stopped)(void *context); /* the daemon shall end */
    void *context;
};

struct fsck_counts {
    uint64_t files; /* all that is no directory */
    uint64_t directories;
    uint64_t chunks;
    uint64_t blocks;
    uint64_t problems;
    uint64_t unsettled; /* changed at each look */
    uint64_t unjudged;  /* would need a target that is away */
    uint64_t beyond;    /* files (for each OST) with data behind their ends */
    uint64_t
        miscounted; /* files that count other blocks, as a power loss, or a problem, explains */
};

/* with_data: reads every stored block. 0 when all has been looked at but what needs targets that
 * are away (cluster->targets says which), whatever was found; -ERR_CLOSED when told to stop,
 * -ERR_NO_MEMORY, errors of ask. ret_counts is filled as far as it went. */
MUST_CHECK int fsck_run_all(const struct fsck_cluster *cluster, const struct fsck_report *report,
                            bool with_data, struct fsck_counts *ret_counts);
