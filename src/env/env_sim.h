/* Processes of a simulated world: each has an env, a disk and shared regions of its own.
 *
 *                       shared regions   page cache   synced data   in-flight writes
 *     sim_kill          stay             stays        stays         each 4 KiB piece may be there
 *     sim_power         gone             (see below)  stays         likewise
 *
 * Of a killed process some writes stay with the medium, whole: each comes before an ALLOCATE on its
 * file ends, else at some time behind an operation of its successor on that file.
 *
 * A power failure keeps, loses or tears (in 512-byte sectors) each 4 KiB block that was written
 * since it was last synced. Data that a SYNC covers (it was submitted after the write completed,
 * and itself completed) is never touched. Creating, renaming and removing files is durable when
 * the call returned; so is the size that a SYNC saw; a size it did not see may come back smaller.
 *
 * A crash countdown cuts a process off at an exact operation, also in the middle of its start:
 * operations that change disk or shared regions, and jobs of the WRITE lane, are counted; after n
 * of them everything is refused with -ERR_CLOSED and without effect. The world stops with
 * SIM_CRASHED and expects sim_kill or sim_power.
 *
 * The env of a killed process stays until the world is freed, so that what used it can be taken
 * down: it gives no more answers, changes nothing and closes what it is asked to close. */
#pragma once
#include "env/env.h"
#include "env/sim.h"

/* May be changed at any time. Zeroed but for latencies at the start: no faults. */
struct sim_faults {
    uint64_t read_ns; /* an operation takes between half and one and a half of these */
    uint64_t write_ns;
    uint64_t sync_ns;
    uint64_t job_ns;
    uint32_t slow_per_million; /* so many take slow_ns in addition */
    uint64_t slow_ns;
    uint32_t error_per_million; /* so many reads, writes and syncs fail with -ERR_IO */
    uint64_t capacity_bytes;    /* of the disk; 0: no limit */
    uint32_t lost_percent;      /* of the unsynced blocks at a power failure; default 40 */
    uint32_t torn_percent;      /* likewise; the rest is kept; default 20 */
    int64_t clock_offset_ns;    /* of both clocks to the world's; change it only while down */
    int32_t clock_drift_ppm;
    uint64_t tick_jitter_ns; /* a tick comes so much late at most */
};

/* Called around everything that happens in the process but jobs' run(). Each may be NULL. An
 * incarnation starts without. */
struct sim_hooks {
    void (*enter)(void *context);
    void (*leave)(void *context);
    void *context;
};

/* A running process with an empty disk. The name is copied. */
struct sim_process *sim_process_new(struct sim *sim, const char *name);
struct env *sim_process_env(struct sim_process *process);
const char *sim_process_name(const struct sim_process *process);
struct sim *sim_process_world(struct sim_process *process);
struct sim_faults *sim_process_faults(struct sim_process *process);
void sim_process_set_hooks(struct sim_process *process, const struct sim_hooks *hooks);
bool sim_process_is_up(const struct sim_process *process);

/* Between events only, never from within the process. The memory of what it had submitted must
 * still be there: some of it reaches the disk. */
void sim_kill(struct sim_process *process);
void sim_power(struct sim_process *process);
/* Starts a process that is down, on its disk; answers its new env. Faults stay as they are. */
struct env *sim_restart(struct sim_process *process);

/* From now on nothing happens in the process, as after SIGSTOP; when it goes on, what was to happen
 * does, in its order and at once. What its disks and others do goes on. */
void sim_stop(struct sim_process *process);
void sim_continue(struct sim_process *process);

/* After operation_count more counted operations; UINT64_MAX takes the countdown back. */
void sim_crash_after(struct sim_process *process, uint64_t operation_count);
/* The first process whose countdown has ended and that was not killed yet, or NULL. */
struct sim_process *sim_crashed(struct sim *sim);
bool sim_process_is_crashed(const struct sim_process *process);
/* Counted operations of all its incarnations, for choosing countdowns. */
uint64_t sim_process_operations(const struct sim_process *process);

/* Flips one random bit of each of block_count random synced blocks that lie in
 * [offset, offset + size) of the file. Answers how many; *ret_offset (may be NULL) is where the
 * last one was. Blocks that hold only zeros are left alone. */
struct sim_flip {
    const char *path;
    uint64_t offset;
    uint64_t size;
    unsigned block_count;
};
unsigned sim_disk_flip(struct sim_process *process, const struct sim_flip *flip,
                       uint64_t *ret_offset);
/* Flips one bit, numbered from the file's beginning, if it lies in a synced block; a second time
 * takes it back. */
bool sim_disk_flip_bit(struct sim_process *process, const char *path, uint64_t bit);
/* Bytes that its files and allocations take of the capacity. */
uint64_t sim_disk_used_bytes(const struct sim_process *process);
