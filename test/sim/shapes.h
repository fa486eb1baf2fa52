/* What a seed is about, where it is about something: of SHAPE_EVERY seeds five have sizes, a
 * workload and faults that bring about one thing all the time. The others are drawn only.
 *
 * Thread: the world's. */
#pragma once
#include "faults.h"
#include "workload.h"

/* All borrowed; and what comes of it for the run. */
struct shape {
    struct prng *prng;
    struct fault_plan *plan;
    struct excuses *excuses;
    bool removes;   /* all files at the end, right after a power failure */
    bool names_die; /* the metadata target crashes most */
    bool moves;     /* directories, also in a calm time at the end */
};

void shapes_draw(struct shape *shape, struct world_options *options, struct workload_options *load);
