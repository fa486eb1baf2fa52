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
    bool dark;    /* its machine has no power */
    bool stopped; /* sim_stop */
    uint32_t stream_limit;
    uint32_t uid;
    uint32_t gid;
    uint64_t countdown;
    uint64_t operation_count;
    struct sim_faults faults;
    struct sim_hooks hooks;
    struct sim_disk *disk;
    struct sim_region *regions;
    uint8_t boot_id[16];
    struct env_sim *env; /* of the incarnation that runs, or of the last */
};

/* An open region. */
struct env_shared {
    struct list_node node;     /* of the env's regions */
    struct sim_region *region; /* NULL once it was removed or the process killed */
    uint8_t *data;             /* the region's, or its own without one */
};

/* One incarnation. */
struct env_sim {
    struct env env;
    struct env_sim *older;
    struct sim_process *process;
    bool dead;
    struct list files;
    struct list regions;
    struct list flights;
    struct list tickings;
    struct list streams;   /* that were not closed */
    struct list listeners; /* likewise */
    bool streams_full_told;
    uint64_t write_lane_free_ns;
    uint64_t write_lane_done_ns;
};

/* sim.c */
void sim_process_add(struct sim *sim, struct sim_process *process);
/* Whether an event of a process is being run. */
bool sim_is_in_event(const struct sim *sim);

struct sim_streams *sim_streams_of(const struct sim *sim);
/* Lets go what a stopped process was to do: it happens now, in its order. */
void sim_release(struct sim_process *process);

/* sim_link.c */
struct sim_streams *sim_streams_new(struct sim *sim);
void sim_streams_free(struct sim_streams *streams);
/* What others have under way to it meets its new incarnation. */
void sim_streams_restarted(struct sim_process *process);

/* sim_stream.c */
extern const struct env_stream_ops sim_stream_ops;
void sim_streams_kill(struct env_sim *env, bool power);
/* Frees what was not closed. */
void sim_streams_close(struct env_sim *env);

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
void env_sim_kill(struct env_sim *env, bool power);
/* Frees this and all older incarnations; what they had scheduled was dropped. */
void env_sim_free(struct env_sim *env);

static inline struct env_sim *env_sim_of(struct env *env) {
    return (struct env_sim *)(void *)env;
}

/* Whether an operation that changes something may have its effect. */
static inline bool may_change(struct env_sim *env) {
    return !env->dead && sim_process_may_change(env->process);
}

static inline bool may_read(const struct env_sim *env) {
    return !env->dead && !env->process->crashed;
}

/* env_sim_regions.c */
int sim_env_shared_open(struct env *base, const char *name, size_t size_bytes,
                        struct env_shared **ret_shared, bool *ret_created);
int sim_env_shared_size(struct env *base, const char *name, uint64_t *ret_size_bytes);
void *sim_env_shared_data(struct env_shared *shared);
void sim_env_shared_close(struct env_shared *shared);
int sim_env_shared_remove(struct env *base, const char *name);
void sim_env_shared_path(struct env *base, const char *name, size_t size_bytes, char *ret_path);
void sim_regions_kill(struct env_sim *env);

/* env_sim_ticks.c */
void sim_env_tick_start(struct env *base, struct env_tick *tick);
void sim_env_tick_stop(struct env *base, struct env_tick *tick);
void sim_ticks_kill(struct env_sim *env);
