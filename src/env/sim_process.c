/* Processes: starting, killing, countdowns, shared regions. */
#include "env/sim_internal.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const struct sim_faults faults_none = {
    .read_ns = 60 * NS_PER_US,
    .write_ns = 40 * NS_PER_US,
    .sync_ns = 80 * NS_PER_US,
    .job_ns = 100 * NS_PER_US,
    .slow_ns = 20 * NS_PER_MS,
    .lost_percent = 40,
    .torn_percent = 20,
    .tick_jitter_ns = 50 * NS_PER_US,
};

static void boot_id_draw(struct sim_process *process) {
    for (size_t i = 0; i < sizeof process->boot_id; i++) {
        process->boot_id[i] = (uint8_t)prng_next(sim_prng(process->sim));
    }
}

struct sim_process *sim_process_new(struct sim *sim, const char *name) {
    struct sim_process *process = sim_allocate(sizeof *process);
    size_t size = strlen(name) + 1;

    process->sim = sim;
    process->name = sim_allocate(size);
    memcpy(process->name, name, size);
    process->faults = faults_none;
    process->stream_limit = UINT32_MAX;
    process->disk = sim_disk_new(sim, &process->faults);
    boot_id_draw(process);
    sim_process_add(sim, process);
    (void)sim_restart(process);
    return process;
}

void sim_region_free(struct sim_region *region) {
    free(region->name);
    free(region->data);
    free(region);
}

static void regions_free(struct sim_process *process) {
    while (process->regions) {
        struct sim_region *region = process->regions;

        process->regions = region->next;
        sim_region_free(region);
    }
}

void sim_process_free(struct sim_process *process) {
    env_sim_free(process->env);
    regions_free(process);
    sim_disk_free(process->disk);
    free(process->name);
    free(process);
}

struct env *sim_process_env(struct sim_process *process) {
    return env_sim_base(process->env);
}

const char *sim_process_name(const struct sim_process *process) {
    return process->name;
}

struct sim *sim_process_world(struct sim_process *process) {
    return process->sim;
}

struct sim_faults *sim_process_faults(struct sim_process *process) {
    return &process->faults;
}

void sim_process_set_hooks(struct sim_process *process, const struct sim_hooks *hooks) {
    process->hooks = *hooks;
}

bool sim_process_is_up(const struct sim_process *process) {
    return process->up;
}

static void process_end(struct sim_process *process, bool power) {
    assert(process->up && !sim_is_in_event(process->sim));
    sim_continue(process);
    env_sim_kill(process->env, power);
    process->up = false;
    process->crashed = false;
    process->countdown = UINT64_MAX;
    process->hooks = (struct sim_hooks){0};
}

void sim_kill(struct sim_process *process) {
    sim_trace(process->sim, "kill", process->index, 0);
    sim_count(process->sim, "kills", 1);
    process_end(process, false);
}

void sim_power(struct sim_process *process) {
    sim_trace(process->sim, "power", process->index, 0);
    sim_count(process->sim, "power failures", 1);
    process->dark = true;
    if (process->up) {
        process_end(process, true);
    }
    regions_free(process);
    sim_disk_power(process->disk);
    boot_id_draw(process);
}

struct env *sim_restart(struct sim_process *process) {
    assert(!process->up);
    sim_trace(process->sim, "start", process->index, 0);
    process->incarnation++;
    process->up = true;
    process->dark = false;
    process->countdown = UINT64_MAX;
    process->env = env_sim_new(process, process->env);
    sim_streams_restarted(process);
    return env_sim_base(process->env);
}

void sim_stop(struct sim_process *process) {
    if (process->up && !process->stopped) {
        sim_trace(process->sim, "stop", process->index, 0);
        sim_count(process->sim, "stops", 1);
        process->stopped = true;
    }
}

void sim_continue(struct sim_process *process) {
    if (process->stopped) {
        sim_trace(process->sim, "continue", process->index, 0);
        process->stopped = false;
        sim_release(process);
    }
}

void sim_crash_after(struct sim_process *process, uint64_t operation_count) {
    process->countdown = operation_count;
}

bool sim_process_is_crashed(const struct sim_process *process) {
    return process->crashed;
}

uint64_t sim_process_operations(const struct sim_process *process) {
    return process->operation_count;
}

bool sim_process_may_change(struct sim_process *process) {
    if (process->crashed) {
        return false;
    }
    if (process->countdown == 0) {
        process->crashed = true;
        sim_trace(process->sim, "countdown", process->index, process->operation_count);
        sim_count(process->sim, "countdowns ended", 1);
        return false;
    }
    if (process->countdown != UINT64_MAX) {
        process->countdown--;
    }
    process->operation_count++;
    return true;
}

uint64_t sim_process_latency(struct sim_process *process, uint64_t typical_ns) {
    struct prng *prng = sim_prng(process->sim);
    uint64_t latency_ns = typical_ns / 2 + prng_below(prng, typical_ns + 1);

    if (process->faults.slow_per_million > 0 &&
        prng_chance(prng, process->faults.slow_per_million, 1000000)) {
        latency_ns += process->faults.slow_ns;
        sim_count(process->sim, "slow operations", 1);
    }
    return MAX(latency_ns, UINT64_C(1));
}

unsigned sim_disk_flip(struct sim_process *process, const struct sim_flip *flip,
                       uint64_t *ret_offset) {
    struct sim_file *file = sim_disk_find(process->disk, flip->path);
    uint64_t end = flip->size > UINT64_MAX - flip->offset ? UINT64_MAX : flip->offset + flip->size;
    uint64_t end_block = end / BLOCK_BYTES + (end % BLOCK_BYTES > 0);
    uint64_t offset = 0;
    unsigned flipped = 0;

    for (unsigned i = 0; file && i < flip->block_count; i++) {
        flipped += sim_file_flip(file, flip->offset / BLOCK_BYTES, end_block, &offset);
    }
    if (flipped > 0) {
        sim_trace(process->sim, "flip", offset, flipped);
        sim_count(process->sim, "bits flipped", flipped);
        if (ret_offset) {
            *ret_offset = offset;
        }
    }
    return flipped;
}

bool sim_disk_flip_bit(struct sim_process *process, const char *path, uint64_t bit) {
    struct sim_file *file = sim_disk_find(process->disk, path);
    bool flipped = file && sim_file_flip_bit(file, bit);

    sim_trace(process->sim, "flip bit", bit, flipped);
    return flipped;
}

uint64_t sim_disk_used_bytes(const struct sim_process *process) {
    return sim_disk_used_blocks(process->disk) * BLOCK_BYTES;
}
