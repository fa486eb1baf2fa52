/* What goes wrong in a seed, drawn at its beginning: which kinds of faults there are, and how
 * strong. Every kind is absent from about half of the seeds, so that each also meets the others
 * alone.
 *
 * Thread: the world's. */
#pragma once
#include "world.h"

struct fault_plan {
    bool kills;
    bool powers;     /* of one machine */
    bool power_all;  /* of all at once */
    bool countdowns; /* a crash at an exact disk operation, also during starts */
    bool partitions;
    uint32_t drop_per_million;
    uint32_t double_per_million;
    uint32_t slow_per_million;
    uint64_t packet_slow_ns;
    uint32_t disk_slow_per_million;
    uint64_t disk_slow_ns;
    bool clocks;          /* offsets and drift, changed while a process is down */
    uint64_t down_ns_max; /* until a process is started anew */
    uint64_t gap_ns_max;  /* between two faults */
};

void faults_draw(struct prng *prng, struct fault_plan *ret_plan);
/* Network and disks are as bad as the plan says; as good as new. */
void faults_begin(const struct fault_plan *plan, struct world *world);
void faults_end(struct world *world);
/* A partition begins between random nodes, one way or both. */
void faults_cut(struct prng *prng, struct world *world);
/* Before a start. */
void faults_clock(const struct fault_plan *plan, struct prng *prng, struct node *node);
