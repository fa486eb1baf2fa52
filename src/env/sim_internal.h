/* What the files of the simulator share. */
#pragma once
#include "env/env_sim.h"
#include "env/sim_disk.h"

/* Memory that is there, or the end of the program; zeroed. */
void *sim_allocate(size_t size_bytes);

/* A named region of shared memory; outlives the process, not its machine. */
struct sim_region {
    struct sim_region *next;
    char *name;
    uint8_t *data;
    size_t size_bytes;
    struct env_shared *open; /* by the incarnation that runs */
};

struct sim_process {
    struct sim_process *next;
    struct sim *sim;
    char *name;
    unsigned index; /* for the trace */
    uint64_t incarnation;
    bool up;
    bool crashed;
    uint64_t countdown;
    uint64_t operation_count;
    struct sim_faults faults;
    struct sim_hooks hooks;
    struct sim_disk *disk;
    struct sim_region *regions;
    uint8_t boot_id[16];
    struct env_sim *env; /* of the incarnation that runs, or of the last */
};

/* sim.c */
void sim_process_add(struct sim *sim, struct sim_process *process);

/* sim_process.c */
void sim_process_free(struct sim_process *process);
/* Whether an operation that changes disk or regions may have its effect. */
bool sim_process_may_change(struct sim_process *process);
/* Between half and one and a half of typical_ns, at least 1; now and then slow. */
uint64_t sim_process_latency(struct sim_process *process, uint64_t typical_ns);
void sim_region_free(struct sim_region *region);

/* env_sim.c */
struct env_sim *env_sim_new(struct sim_process *process, struct env_sim *older);
struct env *env_sim_base(struct env_sim *env);
/* Ends an incarnation: some of its writes in flight reach the disk, nothing else does. */
void env_sim_kill(struct env_sim *env);
/* Frees this and all older incarnations; what they had scheduled was dropped. */
void env_sim_free(struct env_sim *env);
