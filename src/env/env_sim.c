/* The env of a simulated process: each request becomes an event, or has its effect at once when
 * it is of those that block.
 *
 * An I/O has its effect when its event fires, which is its completion; a read sees the file as of
 * then. Jobs are two events, run() and done(), so that others happen in between. */
#include "env/env_sim.h"
#include "base/crc32c.h"
#include "env/sim_internal.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* 2026-01-01 00:00 UTC, when the clock of the world stands at 0. */
#define WALL_START_NS (UINT64_C(1767225600) * NS_PER_S)

struct env_file {
    struct list_node node; /* of the env's files */
    struct env_sim *env;
    struct sim_file *file; /* NULL once the process was killed */
    unsigned flags;
};

/* An I/O on its way. */
struct flight {
    struct list_node node; /* of the env's, until it has landed or the process was killed */
    struct env_sim *env;
    struct env_io *io;
    struct sim_file *file;
    struct sim_sync sync;
    bool syncing; /* sync has begun */
    int result;
};

struct job_flight {
    struct env_sim *env;
    struct env_job *job;
};

static uint64_t sim_env_now_ns(struct env *base) {
    const struct env_sim *env = env_sim_of(base);
    const struct sim_faults *faults = &env->process->faults;
    int64_t now_ns = (int64_t)sim_now_ns(env->process->sim);

    now_ns += now_ns / 1000000 * faults->clock_drift_ppm + faults->clock_offset_ns;
    return now_ns > 0 ? (uint64_t)now_ns : 1;
}

static uint64_t sim_env_wall_ns(struct env *base) {
    return WALL_START_NS + sim_env_now_ns(base);
}

static void sim_env_random(struct env *base, void *data, size_t size_bytes) {
    struct prng *prng = sim_prng(env_sim_of(base)->process->sim);
    uint8_t *to = data;

    for (size_t i = 0; i < size_bytes; i++) {
        to[i] = (uint8_t)(prng_next(prng) >> 32);
    }
}

static int sim_env_file_open(struct env *base, const char *path, unsigned flags,
                             struct env_file **ret_file) {
    struct env_sim *env = env_sim_of(base);
    struct sim_disk *disk = env->process->disk;
    bool creates = sim_disk_open_creates(disk, path, flags);
    struct sim_file *inner;

    if (creates ? !may_change(env) : !may_read(env)) {
        return -ERR_CLOSED;
    }
    int r = sim_disk_open(disk, path, flags, &inner);
    if (r) {
        return r;
    }
    struct env_file *file = sim_allocate(sizeof *file);
    file->env = env;
    file->file = inner;
    file->flags = flags;
    list_push_back(&env->files, &file->node);
    *ret_file = file;
    return 0;
}

static void sim_env_file_close(struct env_file *file) {
    if (!file) {
        return;
    }
    if (file->file) {
        sim_file_put(file->file);
    }
    list_remove(&file->node);
    free(file);
}

static int sim_env_file_size(struct env_file *file, uint64_t *ret_size_bytes) {
    if (!may_read(file->env)) {
        return -ERR_CLOSED;
    }
    *ret_size_bytes = sim_file_size(file->file);
    return 0;
}

static int sim_env_file_space(struct env_file *file, uint64_t *ret_free_bytes) {
    if (!may_read(file->env)) {
        return -ERR_CLOSED;
    }
    *ret_free_bytes = sim_disk_free_bytes(file->env->process->disk);
    return 0;
}

static int sim_env_directory_make(struct env *base, const char *path) {
    struct env_sim *env = env_sim_of(base);

    return may_change(env) ? sim_disk_directory_make(env->process->disk, path) : -ERR_CLOSED;
}

static int sim_env_file_remove(struct env *base, const char *path) {
    struct env_sim *env = env_sim_of(base);

    return may_change(env) ? sim_disk_remove(env->process->disk, path) : -ERR_CLOSED;
}

static int sim_env_file_rename(struct env *base, const char *from, const char *to) {
    struct env_sim *env = env_sim_of(base);

    return may_change(env) ? sim_disk_rename(env->process->disk, from, to) : -ERR_CLOSED;
}

static int sim_io_check(const struct env_io *io) {
    bool moves_data = io->kind == ENV_IO_READ || io->kind == ENV_IO_WRITE;
    uint64_t together = io->offset | io->size | (uintptr_t)io->buffer;

    if (io->file->flags & ENV_FILE_READ_ONLY && io->kind != ENV_IO_READ) {
        return -ERR_BAD_HANDLE;
    }
    if (io->offset > INT64_MAX || io->size > INT64_MAX - io->offset) {
        return -ERR_FILE_TOO_BIG;
    }
    return moves_data && io->file->flags & ENV_FILE_DIRECT && together % BLOCK_BYTES ? -ERR_INVALID
                                                                                     : 0;
}

/* A medium that fails: a write that does may have reached it in part. */
static bool medium_fails(struct env_sim *env, const struct env_io *io, struct sim_file *file) {
    struct sim *sim = env->process->sim;
    uint32_t error_per_million = env->process->faults.error_per_million;

    if (error_per_million == 0 || io->kind == ENV_IO_ALLOCATE ||
        !prng_chance(sim_prng(sim), error_per_million, 1000000)) {
        return false;
    }
    if (io->kind == ENV_IO_WRITE) {
        sim_file_write_some(file, io->offset, io->buffer, io->size);
    }
    sim_count(sim, "errors of the medium", 1);
    return true;
}

/* What is written is in the trace too: bytes that differ between two runs of a seed show at once,
 * and not when they are read. */
static void io_trace(struct sim *sim, const struct env_io *io, int result) {
    static const char *const names[] = {
        [ENV_IO_READ] = "read",
        [ENV_IO_WRITE] = "write",
        [ENV_IO_SYNC] = "sync",
        [ENV_IO_ALLOCATE] = "allocate",
    };

    sim_trace(sim, names[io->kind], io->offset, io->size);
    if (result) {
        sim_trace(sim, err_name(result), io->offset, 0);
    } else if (io->kind == ENV_IO_WRITE) {
        sim_trace(sim, "content", io->offset, crc32c(0, io->buffer, io->size));
    }
}

/* An allocation of what is allocated already changes nothing. */
static bool changes_disk(const struct env_io *io, const struct sim_file *file) {
    return io->kind == ENV_IO_ALLOCATE ? !sim_file_is_allocated(file, io->offset, io->size)
                                       : io->kind != ENV_IO_READ;
}

/* What a killed process had with the medium comes at some time; an allocation waits for it. */
static void late_may_land(struct env_sim *env, struct sim_file *file) {
    struct sim *sim = env->process->sim;

    if (sim_file_is_late(file) && prng_chance(sim_prng(sim), 1, 8)) {
        sim_count(sim, "writes come late", 1);
        sim_file_land(file, 1, 1);
    }
}

/* The effect of io; sync has begun before for a SYNC, and is ended here. */
static int io_apply(struct env_sim *env, struct env_io *io, struct sim_file *file,
                    struct sim_sync *sync) {
    bool allowed = changes_disk(io, file) ? may_change(env) : may_read(env);
    int r = 0;

    if (!allowed) {
        r = -ERR_CLOSED;
    } else if (medium_fails(env, io, file)) {
        r = -ERR_IO;
    }
    switch (io->kind) {
    case ENV_IO_READ:
        io->ret_size = r ? 0 : sim_file_read(file, io->offset, io->buffer, io->size);
        break;
    case ENV_IO_WRITE:
        r = r ? r : sim_file_write(file, io->offset, io->buffer, io->size);
        io->ret_size = r ? 0 : io->size;
        break;
    case ENV_IO_SYNC:
        sim_file_sync_end(file, sync, r == 0);
        break;
    case ENV_IO_ALLOCATE:
        sim_file_land(file, 1, 1);
        r = r ? r : sim_file_allocate(file, io->offset, io->size, io->keep_free_bytes);
        break;
    }
    io_trace(env->process->sim, io, r);
    if (io->kind != ENV_IO_READ) {
        late_may_land(env, file);
    }
    return r;
}

static int sim_env_io_run(struct env *base, struct env_io *io) {
    struct env_sim *env = env_sim_of(base);
    struct sim_sync sync;

    io->ret_size = 0;
    if (env->dead) {
        return -ERR_CLOSED;
    }
    int r = sim_io_check(io);
    if (r) {
        return r;
    }
    if (io->kind == ENV_IO_SYNC) {
        sim_file_sync_begin(io->file->file, &sync);
    }
    return io_apply(env, io, io->file->file, &sync);
}

static void flight_free(void *context) {
    struct flight *flight = context;

    if (list_contains(&flight->node)) {
        list_remove(&flight->node);
        if (flight->syncing) {
            sim_file_sync_end(flight->file, &flight->sync, false);
        }
        sim_file_put(flight->file);
    }
    free(flight);
}

static void flight_land(void *context) {
    struct flight *flight = context;
    struct env_io *io = flight->io;
    int r = flight->result;

    list_remove(&flight->node);
    if (!r) {
        r = io_apply(flight->env, io, flight->file, &flight->sync);
    }
    sim_file_put(flight->file);
    free(flight);
    io->done(io, r);
}

static uint64_t io_latency(struct env_sim *env, enum env_io_kind kind) {
    const struct sim_faults *faults = &env->process->faults;
    const uint64_t typical_ns[] = {
        [ENV_IO_READ] = faults->read_ns,
        [ENV_IO_WRITE] = faults->write_ns,
        [ENV_IO_SYNC] = faults->sync_ns,
        [ENV_IO_ALLOCATE] = faults->sync_ns,
    };

    return sim_process_latency(env->process, typical_ns[kind]);
}

static void sim_env_io_submit(struct env *base, struct env_io *io) {
    struct env_sim *env = env_sim_of(base);

    if (env->dead) {
        return;
    }
    struct flight *flight = sim_allocate(sizeof *flight);
    flight->env = env;
    flight->io = io;
    flight->file = io->file->file;
    flight->result = sim_io_check(io);
    sim_file_get(flight->file);
    list_push_back(&env->flights, &flight->node);
    io->ret_size = 0;
    if (io->kind == ENV_IO_SYNC && !flight->result) {
        flight->syncing = true;
        sim_file_sync_begin(flight->file, &flight->sync);
    }
    struct sim_event event = {
        .process = env->process,
        .delay_ns = io_latency(env, io->kind),
        .kind = "io",
        .run = flight_land,
        .drop = flight_free,
        .context = flight,
    };
    sim_schedule_event(env->process->sim, &event);
}

static void job_done(void *context) {
    struct job_flight *flight = context;
    struct env_job *job = flight->job;

    free(flight);
    job->done(job);
}

/* A job that the countdown refuses neither runs nor ends; its process is about to be killed. */
static void job_run(void *context) {
    struct job_flight *flight = context;
    struct env_sim *env = flight->env;
    struct env_job *job = flight->job;
    struct sim_process *process = env->process;

    if (job->lane == ENV_LANE_WRITE ? !may_change(env) : !may_read(env)) {
        free(flight);
        return;
    }
    job->run(job);
    uint64_t now_ns = sim_now_ns(process->sim);
    uint64_t done_ns = now_ns + sim_process_latency(process, 10 * NS_PER_US);
    if (job->lane == ENV_LANE_WRITE) {
        done_ns = MAX(done_ns, env->write_lane_done_ns + 1);
        env->write_lane_done_ns = done_ns;
    }
    struct sim_event event = {
        .process = process,
        .delay_ns = done_ns - now_ns,
        .kind = "job done",
        .run = job_done,
        .drop = free,
        .context = flight,
    };
    sim_schedule_event(process->sim, &event);
}

static void sim_env_job_submit(struct env *base, struct env_job *job) {
    struct env_sim *env = env_sim_of(base);

    if (env->dead) {
        return;
    }
    struct job_flight *flight = sim_allocate(sizeof *flight);
    flight->env = env;
    flight->job = job;
    uint64_t now_ns = sim_now_ns(env->process->sim);
    uint64_t start_ns = now_ns;
    if (job->lane == ENV_LANE_WRITE) {
        start_ns = MAX(start_ns, env->write_lane_free_ns);
    }
    uint64_t end_ns = start_ns + sim_process_latency(env->process, env->process->faults.job_ns);
    if (job->lane == ENV_LANE_WRITE) {
        env->write_lane_free_ns = end_ns;
    }
    struct sim_event event = {
        .process = env->process,
        .delay_ns = end_ns - now_ns,
        .kind = "job",
        .run = job_run,
        .drop = free,
        .context = flight,
        .outside = true,
    };
    sim_schedule_event(env->process->sim, &event);
}

static void sim_env_boot_id(struct env *base, uint8_t ret_id[16]) {
    memcpy(ret_id, env_sim_of(base)->process->boot_id, 16);
}

static const struct env_ops sim_ops = {
    .now_ns = sim_env_now_ns,
    .wall_ns = sim_env_wall_ns,
    .random = sim_env_random,
    .file_open = sim_env_file_open,
    .file_close = sim_env_file_close,
    .file_size = sim_env_file_size,
    .file_space = sim_env_file_space,
    .io_run = sim_env_io_run,
    .directory_make = sim_env_directory_make,
    .file_remove = sim_env_file_remove,
    .file_rename = sim_env_file_rename,
    .io_submit = sim_env_io_submit,
    .job_submit = sim_env_job_submit,
    .shared_open = sim_env_shared_open,
    .shared_size = sim_env_shared_size,
    .shared_data = sim_env_shared_data,
    .shared_close = sim_env_shared_close,
    .shared_remove = sim_env_shared_remove,
    .shared_path = sim_env_shared_path,
    .boot_id = sim_env_boot_id,
    .tick_start = sim_env_tick_start,
    .tick_stop = sim_env_tick_stop,
};

struct env_sim *env_sim_new(struct sim_process *process, struct env_sim *older) {
    struct env_sim *env = sim_allocate(sizeof *env);

    env->env.ops = &sim_ops;
    env->env.streams = &sim_stream_ops;
    env->older = older;
    env->process = process;
    list_init(&env->files);
    list_init(&env->regions);
    list_init(&env->flights);
    list_init(&env->tickings);
    list_init(&env->streams);
    list_init(&env->listeners);
    return env;
}

struct env *env_sim_base(struct env_sim *env) {
    return &env->env;
}

/* Of a write in flight some has come, or the medium has all of it and is late. */
static void flight_cut(struct flight *flight, bool power) {
    struct env_io *io = flight->io;
    struct sim *sim = flight->env->process->sim;

    if (flight->syncing) {
        sim_file_sync_end(flight->file, &flight->sync, false);
    }
    bool writes = io->kind == ENV_IO_WRITE && !flight->result;
    if (writes && !power && prng_chance(sim_prng(sim), 1, 2)) {
        sim_file_write_late(flight->file, io->offset, io->buffer, io->size);
        sim_count(sim, "writes left with the medium", 1);
    } else if (writes) {
        sim_file_write_some(flight->file, io->offset, io->buffer, io->size);
        sim_count(sim, "writes cut", 1);
    }
    sim_file_put(flight->file);
}

void env_sim_kill(struct env_sim *env, bool power) {
    struct list_node *node;

    /* The events of these free them when their time comes. */
    while ((node = list_pop_front(&env->flights)) != NULL) {
        flight_cut(CONTAINER_OF(node, struct flight, node), power);
    }
    sim_ticks_kill(env);
    for (node = list_first(&env->files); node; node = list_next(&env->files, node)) {
        struct env_file *file = CONTAINER_OF(node, struct env_file, node);

        sim_file_put(file->file);
        file->file = NULL;
    }
    sim_regions_kill(env);
    sim_streams_kill(env, power);
    env->dead = true;
}

void env_sim_free(struct env_sim *env) {
    struct list_node *node;

    while (env) {
        struct env_sim *older = env->older;

        while ((node = list_first(&env->files)) != NULL) {
            sim_env_file_close(CONTAINER_OF(node, struct env_file, node));
        }
        while ((node = list_first(&env->regions)) != NULL) {
            sim_env_shared_close(CONTAINER_OF(node, struct env_shared, node));
        }
        sim_streams_close(env);
        free(env);
        env = older;
    }
}
