/* What goes wrong in a seed, drawn at its beginning: which kinds of faults there are, and how
 * strong. Every kind is absent from many seeds, so that each also meets the others alone.
 *
 * Crashes keep pace with the work, so that a seed does not spend its time in restarts.
 *
 * Thread: the world's. */
#pragma once
#include "excuses.h"
#include "world.h"

enum fault_kind {
    FAULT_KILL,
    FAULT_POWER,     /* of one machine */
    FAULT_POWER_ALL, /* of all at once */
    FAULT_COUNTDOWN, /* a crash at an exact disk operation, also during starts */
    FAULT_PARTITION,
    FAULT_DISK_FULL,  /* of an OST, for a while */
    FAULT_NAMES_FULL, /* the metadata target's, likewise */
    FAULT_BIT_ROT,    /* of an OST's data */
    FAULT_LOG_ROT,    /* of a disk log, while its target is down */
    FAULT_STOP,       /* of a process, as by SIGSTOP, for a while; these two with streams only */
    FAULT_ACCEPTS,    /* a process accepts no connection, or few, for a while */
    FAULT_KINDS
};

struct fault_plan {
    bool has[FAULT_KINDS];
    bool clocks; /* offsets and drift, changed while a process is down */
    uint32_t drop_per_million;
    uint32_t double_per_million;
    uint32_t slow_per_million;
    uint64_t packet_slow_ns;    /* segments of streams likewise */
    uint32_t reset_per_million; /* of streams, from here on */
    uint64_t give_up_ns;
    uint32_t buffer_bytes, segment_bytes_max;
    uint32_t disk_slow_per_million;
    uint64_t disk_slow_ns;
    uint64_t down_ns_max; /* until a process is started anew */
    uint64_t gap_ns_max;  /* between two faults */
    uint32_t crashes_max; /* by the end of the work, about */
};

void faults_draw(struct prng *prng, struct fault_plan *ret_plan);
/* Of a seed whose calls go by streams, behind faults_draw. */
void faults_draw_streams(uint64_t seed, struct fault_plan *plan);
/* One of the kinds that the plan has; without crashes when crash is false. FAULT_KINDS: none. */
enum fault_kind faults_pick(const struct fault_plan *plan, struct prng *prng, bool crash);
/* Network and disks are as bad as the plan says; as good as new. */
void faults_begin(const struct fault_plan *plan, struct world *world);
void faults_end(struct world *world);
/* A partition begins between random nodes, one way or both. */
void faults_cut(struct prng *prng, struct world *world);
/* A random process has as many connections as it may have, or nearly; until faults_accept. */
void faults_accept_late(struct prng *prng, struct world *world);
void faults_accept(struct world *world);
/* Before a start. */
void faults_clock(const struct fault_plan *plan, struct prng *prng, struct node *node);
/* The metadata target's disk likewise, and no checkpoint finds room on it. */
void faults_names_full(struct prng *prng, struct world *world);
void faults_names_empty(struct world *world);
/* A random OST's disk takes next to nothing more, its base nothing, until faults_disks_empty. */
void faults_disk_full(struct prng *prng, struct world *world);
void faults_disks_empty(struct world *world);
/* One bit of what a random OST has on disk flips. */
void faults_rot(struct prng *prng, struct world *world, struct excuses *excuses);
