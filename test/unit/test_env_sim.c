/* The simulated outside: equal seeds repeat, and crashes leave what the contract says, for many
 * seeds. A failure prints its seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "env/env_sim.h"

enum { SEEDS = 200, BLOCKS = 24, WRITES = 120 };

/* cmocka says where an assertion failed; this says for which seed. */
static uint64_t seed_now;

static int say_seed(void **state) {
    (void)state;
    print_message("last seed %llu\n", (unsigned long long)seed_now);
    return 0;
}

static struct env_file *file_make(struct env *env, const char *path) {
    struct env_file *file;

    assert_int_equal(env->ops->file_open(env, path, ENV_FILE_CREATE | ENV_FILE_DIRECT, &file), 0);
    return file;
}

static int run(struct env *env, struct env_io io) {
    return env->ops->io_run(env, &io);
}

/* A load of writes and syncs on one file, each block filled with the number of its write: what a
 * crash leaves can then be told by looking. */
struct load {
    struct sim *sim;
    struct sim_process *process;
    struct env *env;
    struct env_file *file;
    struct {
        struct env_io io;
        struct load *load;
        uint32_t block;
        uint32_t number;
        bool busy;
    } writes[4];
    struct env_io sync;
    bool syncing;
    uint32_t next_number;
    uint32_t written[BLOCKS]; /* newest completed write */
    uint32_t covered[BLOCKS]; /* by the sync under way */
    uint32_t synced[BLOCKS];  /* by a completed sync */
    uint32_t submitted[BLOCKS];
    uint8_t buffers[4][BLOCK_BYTES] __attribute__((aligned(BLOCK_BYTES)));
};

static void load_go_on(struct load *load);

static void fill(uint8_t *block, uint32_t number) {
    for (size_t i = 0; i < BLOCK_BYTES; i += sizeof number) {
        memcpy(block + i, &number, sizeof number);
    }
}

static void load_written(struct env_io *io, int result) {
    struct load *load = io->context;

    assert_int_equal(result, 0);
    for (size_t i = 0; i < ARRAY_SIZE(load->writes); i++) {
        if (&load->writes[i].io == io) {
            load->writes[i].busy = false;
            load->written[load->writes[i].block] = load->writes[i].number;
        }
    }
    load_go_on(load);
}

static void load_synced(struct env_io *io, int result) {
    struct load *load = io->context;

    assert_int_equal(result, 0);
    load->syncing = false;
    memcpy(load->synced, load->covered, sizeof load->synced);
    load_go_on(load);
}

static bool block_is_busy(const struct load *load, uint32_t block) {
    for (size_t i = 0; i < ARRAY_SIZE(load->writes); i++) {
        if (load->writes[i].busy && load->writes[i].block == block) {
            return true;
        }
    }
    return false;
}

static void load_write(struct load *load, size_t i) {
    uint32_t block = (uint32_t)prng_below(sim_prng(load->sim), BLOCKS);

    if (load->writes[i].busy || block_is_busy(load, block) || load->next_number >= WRITES) {
        return;
    }
    load->writes[i].busy = true;
    load->writes[i].block = block;
    load->writes[i].number = ++load->next_number;
    load->submitted[block] = load->next_number;
    fill(load->buffers[i], load->next_number);
    load->writes[i].io = (struct env_io){.kind = ENV_IO_WRITE,
                                         .file = load->file,
                                         .offset = (uint64_t)block * BLOCK_BYTES,
                                         .buffer = load->buffers[i],
                                         .size = BLOCK_BYTES,
                                         .done = load_written,
                                         .context = load};
    env_io_submit(load->env, &load->writes[i].io);
}

static void load_go_on(struct load *load) {
    for (size_t i = 0; i < ARRAY_SIZE(load->writes); i++) {
        load_write(load, i);
    }
    if (!load->syncing && load->next_number < WRITES && prng_chance(sim_prng(load->sim), 1, 6)) {
        load->syncing = true;
        memcpy(load->covered, load->written, sizeof load->covered);
        load->sync = (struct env_io){
            .kind = ENV_IO_SYNC, .file = load->file, .done = load_synced, .context = load};
        env_io_submit(load->env, &load->sync);
    }
}

static struct load *load_new(uint64_t seed) {
    struct load *load = aligned_alloc(BLOCK_BYTES, (sizeof *load + 4095) / 4096 * 4096);

    seed_now = seed;
    memset(load, 0, sizeof *load);
    load->sim = sim_new(seed);
    load->process = sim_process_new(load->sim, "disk");
    load->env = sim_process_env(load->process);
    load->file = file_make(load->env, "file");
    return load;
}

static void load_free(struct load *load) {
    sim_free(load->sim);
    free(load);
}

/* Runs until a moment drawn from the seed. */
static void load_run(struct load *load) {
    uint64_t until_ns = sim_now_ns(load->sim) + prng_below(sim_prng(load->sim), 2 * NS_PER_MS);

    load_go_on(load);
    sim_run_until(load->sim, until_ns, NULL, NULL);
}

static void check_block(const struct load *load, const uint8_t *data, uint32_t block, bool power) {
    uint32_t newest = load->submitted[block];
    uint32_t oldest = power ? load->synced[block] : load->written[block];
    uint32_t first;

    memcpy(&first, data, sizeof first);
    for (size_t i = 0; i < BLOCK_BYTES; i += 512) {
        uint32_t number;

        memcpy(&number, data + i, sizeof number);
        assert_true(number >= oldest && number <= newest);
        /* Only a power failure tears, and only between sectors. */
        assert_true(power || number == first);
        for (size_t j = 0; j < 512; j += sizeof number) {
            assert_memory_equal(data + i, data + i + j, sizeof number);
        }
    }
}

static void check_file(struct load *load, bool power) {
    static uint8_t data[BLOCKS * BLOCK_BYTES] __attribute__((aligned(BLOCK_BYTES)));
    struct env *env = sim_restart(load->process);
    struct env_file *file = file_make(env, "file");
    struct env_io io = {.kind = ENV_IO_READ, .file = file, .buffer = data, .size = sizeof data};

    memset(data, 0, sizeof data);
    assert_int_equal(env->ops->io_run(env, &io), 0);
    for (uint32_t block = 0; block < BLOCKS; block++) {
        check_block(load, data + (size_t)block * BLOCK_BYTES, block, power);
    }
}

static void test_kill_keeps_what_was_written(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct load *load = load_new(seed);

        load_run(load);
        sim_kill(load->process);
        check_file(load, false);
        load_free(load);
    }
}

static void test_power_keeps_what_was_synced(void **state) {
    uint64_t lost = 0;
    uint64_t torn = 0;
    uint64_t kept = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct load *load = load_new(seed);

        load_run(load);
        sim_power(load->process);
        check_file(load, true);
        lost += sim_counter(load->sim, "blocks lost");
        torn += sim_counter(load->sim, "blocks torn");
        kept += sim_counter(load->sim, "blocks kept");
        load_free(load);
    }
    assert_true(lost > SEEDS);
    assert_true(torn > SEEDS / 2);
    assert_true(kept > SEEDS);
}

/* Kill after kill, then power: versions of older incarnations are not durable by themselves. */
static void test_power_after_kill(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct load *load = load_new(seed);

        load_run(load);
        sim_kill(load->process);
        sim_power(load->process);
        check_file(load, true);
        load_free(load);
    }
}

static uint64_t hash_of(uint64_t seed) {
    struct load *load = load_new(seed);
    uint64_t hash;

    load_run(load);
    sim_power(load->process);
    check_file(load, true);
    hash = sim_trace_hash(load->sim);
    load_free(load);
    return hash;
}

static void test_equal_seeds_equal_traces(void **state) {
    uint64_t before = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS / 4; seed++) {
        uint64_t hash = hash_of(seed);

        assert_true(hash == hash_of(seed));
        assert_true(hash != before);
        before = hash;
    }
}

/* Events. */

struct order {
    struct sim *sim;
    unsigned fired[8];
    unsigned count;
    unsigned dropped;
};

struct order_event {
    struct order *order;
    unsigned number;
};

static void order_fire(void *context) {
    struct order_event *event = context;

    event->order->fired[event->order->count++] = event->number;
}

static void order_drop(void *context) {
    ((struct order_event *)context)->order->dropped++;
}

static void test_events_come_in_time_and_ties_by_lot(void **state) {
    bool seen[2] = {false, false};

    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct order order = {.sim = sim_new(seed)};
        struct order_event events[4];
        const uint64_t delays_ns[4] = {300, 100, 100, 0};

        for (unsigned i = 0; i < 4; i++) {
            events[i] = (struct order_event){&order, i};
            sim_schedule(order.sim, NULL, delays_ns[i], order_fire, &events[i]);
        }
        assert_int_equal(sim_run_until(order.sim, UINT64_MAX, NULL, NULL), SIM_IDLE);
        assert_int_equal(order.count, 4);
        assert_int_equal(order.fired[0], 3);
        assert_int_equal(order.fired[3], 0);
        assert_int_equal(order.fired[1] + order.fired[2], 3);
        seen[order.fired[1] - 1] = true;
        sim_free(order.sim);
    }
    assert_true(seen[0] && seen[1]);
}

static void test_events_of_the_killed_are_dropped(void **state) {
    struct order order = {.sim = sim_new(1)};
    struct sim_process *process = sim_process_new(order.sim, "one");
    struct order_event events[3] = {{&order, 0}, {&order, 1}, {&order, 2}};
    struct sim_event event = {.process = process,
                              .delay_ns = 100,
                              .kind = "test",
                              .run = order_fire,
                              .drop = order_drop,
                              .context = &events[0]};

    (void)state;
    sim_schedule_event(order.sim, &event);
    sim_schedule(order.sim, NULL, 100, order_fire, &events[1]);
    sim_kill(process);
    (void)sim_restart(process);
    sim_schedule(order.sim, process, 200, order_fire, &events[2]);
    assert_int_equal(sim_run_until(order.sim, UINT64_MAX, NULL, NULL), SIM_IDLE);
    assert_int_equal(order.count, 2);
    assert_int_equal(order.fired[0], 1);
    assert_int_equal(order.fired[1], 2);
    assert_int_equal(order.dropped, 1);

    event.delay_ns = UINT64_MAX / 2;
    sim_schedule_event(order.sim, &event);
    sim_free(order.sim);
    assert_int_equal(order.dropped, 2);
}

static bool has_fired(void *context) {
    return ((struct order *)context)->count > 0;
}

static void test_run_until(void **state) {
    struct order order = {.sim = sim_new(1)};
    struct order_event event = {&order, 0};
    uint64_t start_ns = sim_now_ns(order.sim);

    (void)state;
    sim_schedule(order.sim, NULL, 1000, order_fire, &event);
    assert_int_equal(sim_run_until(order.sim, start_ns + 999, has_fired, &order), SIM_DEADLINE);
    assert_int_equal(sim_now_ns(order.sim), start_ns + 999);
    assert_int_equal(sim_run_until(order.sim, start_ns + 2000, has_fired, &order), SIM_DONE);
    assert_int_equal(sim_now_ns(order.sim), start_ns + 1000);
    assert_int_equal(sim_run_until(order.sim, start_ns + 2000, NULL, NULL), SIM_IDLE);
    sim_free(order.sim);
}

/* Shared regions and the identity of a boot. */

static void test_regions_survive_kill_not_power(void **state) {
    struct sim *sim = sim_new(7);
    struct sim_process *process = sim_process_new(sim, "one");
    struct env *env = sim_process_env(process);
    struct env_shared *shared;
    struct env_shared *second = NULL;
    uint8_t boot[3][16];
    bool created;

    (void)state;
    assert_int_equal(env->ops->shared_open(env, "ring", 5000, &shared, &created), 0);
    assert_true(created);
    assert_int_equal(env->ops->shared_open(env, "ring", 5000, &second, &created), -ERR_IN_USE);
    uint8_t *old_data = env->ops->shared_data(shared);
    memset(old_data, 0x33, 5000);
    env->ops->boot_id(env, boot[0]);
    sim_kill(process);
    /* What the dead still write is not what the living see. */
    memset(old_data, 0x44, 5000);
    struct env_shared *old_shared = shared;
    env = sim_restart(process);
    env->ops->boot_id(env, boot[1]);
    assert_memory_equal(boot[0], boot[1], 16);
    assert_int_equal(env->ops->shared_open(env, "ring", 5000, &shared, &created), 0);
    assert_false(created);
    const uint8_t *data = env->ops->shared_data(shared);
    assert_int_equal(data[0], 0x33);
    assert_int_equal(data[4999], 0x33);
    env->ops->shared_close(old_shared);
    sim_power(process);
    env = sim_restart(process);
    env->ops->boot_id(env, boot[2]);
    assert_memory_not_equal(boot[0], boot[2], 16);
    assert_int_equal(env->ops->shared_open(env, "ring", 5000, &shared, &created), 0);
    assert_true(created);
    assert_int_equal(*(uint8_t *)env->ops->shared_data(shared), 0);
    assert_int_equal(env->ops->shared_remove(env, "ring"), 0);
    *(uint8_t *)env->ops->shared_data(shared) = 1;
    env->ops->shared_close(shared);
    sim_free(sim);
}

/* Names and sizes. */

static void test_names_are_durable(void **state) {
    struct sim *sim = sim_new(3);
    struct sim_process *process = sim_process_new(sim, "one");
    struct env *env = sim_process_env(process);
    struct env_file *file;

    (void)state;
    assert_int_equal(env->ops->file_open(env, "no/file", ENV_FILE_CREATE, &file), -ERR_NOT_FOUND);
    assert_int_equal(env->ops->directory_make(env, "d"), 0);
    assert_int_equal(env->ops->directory_make(env, "d"), 0);
    file_make(env, "d/a");
    file_make(env, "d/b");
    assert_int_equal(env->ops->file_open(env, "d/a", ENV_FILE_CREATE | ENV_FILE_EXCLUSIVE, &file),
                     -ERR_EXISTS);
    assert_int_equal(env->ops->file_open(env, "d", 0, &file), -ERR_IS_DIRECTORY);
    assert_int_equal(env->ops->directory_make(env, "d/a"), -ERR_NOT_DIRECTORY);
    assert_int_equal(env->ops->file_rename(env, "d/a", "d/b"), 0);
    file_make(env, "c");
    assert_int_equal(env->ops->file_remove(env, "c"), 0);
    assert_int_equal(env->ops->file_remove(env, "c"), -ERR_NOT_FOUND);
    sim_power(process);
    env = sim_restart(process);
    assert_int_equal(env->ops->file_open(env, "d/b", 0, &file), 0);
    assert_int_equal(env->ops->file_open(env, "d/a", 0, &file), -ERR_NOT_FOUND);
    assert_int_equal(env->ops->file_open(env, "c", 0, &file), -ERR_NOT_FOUND);
    sim_free(sim);
}

/* A size that was synced never comes back smaller; one that was not, at most as it was. */
static void test_size_after_power(void **state) {
    bool seen_less = false;
    bool seen_all = false;

    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct sim *sim = sim_new(seed);
        struct sim_process *process = sim_process_new(sim, "one");
        struct env *env = sim_process_env(process);
        struct env_file *file = file_make(env, "file");
        uint64_t size_bytes;

        seed_now = seed;
        assert_int_equal(
            run(env,
                (struct env_io){.kind = ENV_IO_ALLOCATE, .file = file, .size = 10 * BLOCK_BYTES}),
            0);
        assert_int_equal(run(env, (struct env_io){.kind = ENV_IO_SYNC, .file = file}), 0);
        assert_int_equal(
            run(env,
                (struct env_io){.kind = ENV_IO_ALLOCATE, .file = file, .size = 30 * BLOCK_BYTES}),
            0);
        sim_power(process);
        env = sim_restart(process);
        file = file_make(env, "file");
        assert_int_equal(env->ops->file_size(file, &size_bytes), 0);
        assert_true(size_bytes >= 10 * BLOCK_BYTES && size_bytes <= 30 * BLOCK_BYTES);
        seen_less |= size_bytes == 10 * BLOCK_BYTES;
        seen_all |= size_bytes == 30 * BLOCK_BYTES;
        sim_free(sim);
    }
    assert_true(seen_less && seen_all);
}

static void test_full_disk(void **state) {
    static uint8_t block[BLOCK_BYTES] __attribute__((aligned(BLOCK_BYTES)));
    struct sim *sim = sim_new(3);
    struct sim_process *process = sim_process_new(sim, "one");
    struct env *env = sim_process_env(process);
    struct env_file *file = file_make(env, "file");
    struct env_io io = {.kind = ENV_IO_ALLOCATE, .file = file, .size = 8 * BLOCK_BYTES};
    uint64_t size_bytes;

    (void)state;
    sim_process_faults(process)->capacity_bytes = 10 * BLOCK_BYTES;
    assert_int_equal(run(env, io), 0);
    io.size = 11 * BLOCK_BYTES;
    assert_int_equal(run(env, io), -ERR_NO_SPACE);
    assert_int_equal(env->ops->file_size(file, &size_bytes), 0);
    assert_int_equal(size_bytes, 8 * BLOCK_BYTES);
    io = (struct env_io){.kind = ENV_IO_WRITE, .file = file, .buffer = block, .size = BLOCK_BYTES};
    for (unsigned i = 0; i < 12; i++) {
        io.offset = (uint64_t)i * BLOCK_BYTES;
        assert_int_equal(run(env, io), i < 10 ? 0 : -ERR_NO_SPACE);
    }
    /* What is allocated stays writable however full the disk is. */
    sim_process_faults(process)->capacity_bytes = BLOCK_BYTES;
    io.offset = 0;
    assert_int_equal(run(env, io), 0);
    env->ops->file_close(file);
    assert_int_equal(env->ops->file_remove(env, "file"), 0);
    assert_int_equal(sim_disk_used_bytes(process), 0);
    sim_free(sim);
}

static void test_gigabyte_files_are_sparse(void **state) {
    static uint8_t zeros[64 * BLOCK_BYTES] __attribute__((aligned(BLOCK_BYTES)));
    struct sim *sim = sim_new(3);
    struct env *env = sim_process_env(sim_process_new(sim, "one"));
    struct env_file *file = file_make(env, "file");
    struct env_io io = {.kind = ENV_IO_ALLOCATE, .file = file, .size = GIB};

    (void)state;
    assert_int_equal(run(env, io), 0);
    io = (struct env_io){.kind = ENV_IO_WRITE, .file = file, .buffer = zeros, .size = sizeof zeros};
    for (io.offset = 0; io.offset < GIB; io.offset += 256 * sizeof zeros) {
        assert_int_equal(run(env, io), 0);
    }
    memset(zeros, 1, sizeof zeros);
    io.kind = ENV_IO_READ;
    io.offset = GIB - sizeof zeros;
    assert_int_equal(env->ops->io_run(env, &io), 0);
    assert_int_equal(io.ret_size, sizeof zeros);
    assert_int_equal(zeros[0], 0);
    memset(zeros, 0, sizeof zeros);
    sim_free(sim);
}

static void test_flipped_bits(void **state) {
    static uint8_t data[8 * BLOCK_BYTES] __attribute__((aligned(BLOCK_BYTES)));
    static uint8_t back[8 * BLOCK_BYTES] __attribute__((aligned(BLOCK_BYTES)));
    struct sim *sim = sim_new(11);
    struct sim_process *process = sim_process_new(sim, "one");
    struct env *env = sim_process_env(process);
    struct env_file *file = file_make(env, "file");
    struct sim_flip flip = {"file", 2 * BLOCK_BYTES, BLOCK_BYTES, 1};
    uint64_t offset = 0;

    (void)state;
    memset(data, 0xaa, sizeof data);
    struct env_io io = {.kind = ENV_IO_WRITE, .file = file, .buffer = data, .size = sizeof data};
    assert_int_equal(run(env, io), 0);
    assert_int_equal(sim_disk_flip(process, &flip, &offset), 0);
    assert_int_equal(run(env, (struct env_io){.kind = ENV_IO_SYNC, .file = file}), 0);
    assert_int_equal(sim_disk_flip(process, &flip, &offset), 1);
    assert_int_equal(offset / BLOCK_BYTES, 2);
    io.kind = ENV_IO_READ;
    io.buffer = back;
    assert_int_equal(run(env, io), 0);
    for (size_t i = 0; i < sizeof data; i++) {
        unsigned difference = (unsigned)(data[i] ^ back[i]);

        assert_int_equal(__builtin_popcount(difference), i == offset);
    }
    flip.path = "missing";
    assert_int_equal(sim_disk_flip(process, &flip, &offset), 0);
    sim_free(sim);
}

/* The countdown: exactly so many operations have their effect, whichever they are. */

static unsigned start_up(struct env *env, int *ret_result) {
    static uint8_t block[BLOCK_BYTES] __attribute__((aligned(BLOCK_BYTES)));
    unsigned effects = 0;
    struct env_file *file;
    struct env_shared *shared;
    bool created;

    fill(block, 1);
    *ret_result = env->ops->directory_make(env, "d");
    effects += *ret_result == 0;
    if (!*ret_result) {
        *ret_result = env->ops->file_open(env, "d/log", ENV_FILE_CREATE, &file);
        effects += *ret_result == 0;
    }
    for (unsigned i = 0; i < 3 && !*ret_result; i++) {
        struct env_io io = {.kind = ENV_IO_WRITE,
                            .file = file,
                            .offset = (uint64_t)i * BLOCK_BYTES,
                            .buffer = block,
                            .size = BLOCK_BYTES};

        *ret_result = env->ops->io_run(env, &io);
        effects += *ret_result == 0;
    }
    if (!*ret_result) {
        *ret_result = env->ops->shared_open(env, "ring", 100, &shared, &created);
        effects += *ret_result == 0;
    }
    if (!*ret_result) {
        *ret_result = env->ops->file_rename(env, "d/log", "d/other");
        effects += *ret_result == 0;
    }
    return effects;
}

static void test_countdown_cuts_exactly(void **state) {
    unsigned n = 0;
    int result = 1;

    (void)state;
    for (; result != 0; n++) {
        struct sim *sim = sim_new(5);
        struct sim_process *process = sim_process_new(sim, "one");
        struct env *env = sim_process_env(process);
        struct env_file *file = NULL;

        sim_crash_after(process, n);
        unsigned effects = start_up(env, &result);
        assert_int_equal(effects, n);
        if (result != 0) {
            assert_int_equal(result, -ERR_CLOSED);
            assert_ptr_equal(sim_crashed(sim), process);
            assert_int_equal(sim_run_until(sim, UINT64_MAX, NULL, NULL), SIM_CRASHED);
            assert_int_equal(env->ops->file_open(env, "d/log", 0, &file), -ERR_CLOSED);
            sim_kill(process);
            assert_null(sim_crashed(sim));
            env = sim_restart(process);
            if (n >= 2) {
                uint64_t size_bytes;
                assert_int_equal(env->ops->file_open(env, "d/log", 0, &file), 0);
                assert_int_equal(env->ops->file_size(file, &size_bytes), 0);
                assert_int_equal(size_bytes, MIN(n - 2, 3U) * BLOCK_BYTES);
            }
        }
        sim_free(sim);
        assert_true(n < 20);
    }
    assert_int_equal(n, 8);
}

/* Jobs. */

struct sim_job {
    struct env_job job;
    struct env *env;
    struct sim_job *before;
    unsigned *ran;
    unsigned number;
    bool has_run;
    bool done;
};

static void sim_job_run(struct env_job *job) {
    struct sim_job *ours = CONTAINER_OF(job, struct sim_job, job);

    ours->has_run = true;
    if (job->lane == ENV_LANE_WRITE) {
        assert_int_equal((*ours->ran)++, ours->number);
    }
}

static void sim_job_done(struct env_job *job) {
    struct sim_job *ours = CONTAINER_OF(job, struct sim_job, job);

    assert_true(ours->has_run);
    assert_true(job->lane != ENV_LANE_WRITE || !ours->before || ours->before->done);
    ours->done = true;
}

static void test_jobs_in_order(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct sim *sim = sim_new(seed);
        struct env *env = sim_process_env(sim_process_new(sim, "one"));
        struct sim_job jobs[ENV_LANE_COUNT][10];
        unsigned ran = 0;

        seed_now = seed;
        for (unsigned lane = 0; lane < ENV_LANE_COUNT; lane++) {
            for (unsigned i = 0; i < 10; i++) {
                jobs[lane][i] = (struct sim_job){
                    .job = {.lane = (enum env_lane)lane, .run = sim_job_run, .done = sim_job_done},
                    .before = i ? &jobs[lane][i - 1] : NULL,
                    .ran = &ran,
                    .number = i};
                env_job_submit(env, &jobs[lane][i].job);
            }
        }
        assert_int_equal(sim_run_until(sim, UINT64_MAX, NULL, NULL), SIM_IDLE);
        for (unsigned i = 0; i < 10; i++) {
            assert_true(jobs[ENV_LANE_WRITE][i].done);
            assert_true(jobs[ENV_LANE_READ][i].done);
        }
        sim_free(sim);
    }
}

/* Ticks, clocks and hooks. */

struct beat {
    struct env_tick tick;
    struct env *env;
    unsigned count;
    unsigned limit;
    int depth;
};

static void beat_fire(struct env_tick *tick) {
    struct beat *beat = CONTAINER_OF(tick, struct beat, tick);

    assert_int_equal(beat->depth, 1);
    if (++beat->count == beat->limit) {
        beat->env->ops->tick_stop(beat->env, tick);
    }
}

static void beat_enter(void *context) {
    ((struct beat *)context)->depth++;
}

static void beat_leave(void *context) {
    ((struct beat *)context)->depth--;
}

static void test_ticks_within_hooks(void **state) {
    struct sim *sim = sim_new(2);
    struct sim_process *process = sim_process_new(sim, "one");
    struct beat beat = {.tick = {.period_ns = NS_PER_MS, .fire = beat_fire},
                        .env = sim_process_env(process),
                        .limit = 10};
    struct sim_hooks hooks = {beat_enter, beat_leave, &beat};

    (void)state;
    sim_process_set_hooks(process, &hooks);
    beat.env->ops->tick_start(beat.env, &beat.tick);
    sim_run_until(sim, sim_now_ns(sim) + 5 * NS_PER_MS + NS_PER_MS / 2, NULL, NULL);
    assert_true(beat.count >= 4 && beat.count <= 5);
    sim_run_until(sim, sim_now_ns(sim) + NS_PER_S, NULL, NULL);
    assert_int_equal(beat.count, 10);
    assert_int_equal(beat.depth, 0);
    sim_free(sim);
}

static void test_clocks_differ_and_drift(void **state) {
    struct sim *sim = sim_new(2);
    struct sim_process *process = sim_process_new(sim, "one");
    struct env *env = sim_process_env(process);
    uint64_t start_ns = env_now_ns(env);
    uint64_t wall_ns = env_wall_ns(env);

    (void)state;
    sim_process_faults(process)->clock_offset_ns = -(int64_t)NS_PER_MS;
    assert_int_equal(env_now_ns(env), start_ns - NS_PER_MS);
    sim_process_faults(process)->clock_offset_ns = 0;
    sim_process_faults(process)->clock_drift_ppm = 1000;
    start_ns = env_now_ns(env);
    sim_run_until(sim, sim_now_ns(sim) + NS_PER_S, NULL, NULL);
    sim_schedule(sim, NULL, NS_PER_S, beat_leave, &(struct beat){.depth = 1});
    sim_run_until(sim, UINT64_MAX, NULL, NULL);
    assert_int_equal(env_now_ns(env) - start_ns, NS_PER_S + NS_PER_MS);
    assert_true(env_wall_ns(env) > wall_ns);
    sim_free(sim);
}

static void test_errors_of_the_medium(void **state) {
    static uint8_t block[BLOCK_BYTES] __attribute__((aligned(BLOCK_BYTES)));
    struct sim *sim = sim_new(2);
    struct sim_process *process = sim_process_new(sim, "one");
    struct env *env = sim_process_env(process);
    struct env_file *file = file_make(env, "file");
    unsigned failed = 0;

    (void)state;
    sim_process_faults(process)->error_per_million = 100000;
    for (unsigned i = 0; i < 1000; i++) {
        int r = run(
            env, (struct env_io){.kind = ENV_IO_READ, .file = file, .buffer = block, .size = 4096});

        assert_true(r == 0 || r == -ERR_IO);
        failed += r != 0;
    }
    assert_true(failed > 50 && failed < 200);
    assert_int_equal(sim_counter(sim, "errors of the medium"), failed);
    sim_free(sim);
}

/* The dead answer nothing, change nothing, and can be taken down. */
static void test_env_of_the_killed(void **state) {
    static uint8_t block[BLOCK_BYTES] __attribute__((aligned(BLOCK_BYTES)));
    struct sim *sim = sim_new(2);
    struct sim_process *process = sim_process_new(sim, "one");
    struct env *env = sim_process_env(process);
    struct env_file *file = file_make(env, "file");
    struct env_io io = {.kind = ENV_IO_WRITE, .file = file, .buffer = block, .size = BLOCK_BYTES};
    uint64_t size_bytes;

    (void)state;
    sim_kill(process);
    assert_int_equal(run(env, io), -ERR_CLOSED);
    env_io_submit(env, &io);
    assert_int_equal(env->ops->file_size(file, &size_bytes), -ERR_CLOSED);
    assert_int_equal(env->ops->file_remove(env, "file"), -ERR_CLOSED);
    env->ops->file_close(file);
    assert_int_equal(sim_run_until(sim, UINT64_MAX, NULL, NULL), SIM_IDLE);
    env = sim_restart(process);
    file = file_make(env, "file");
    assert_int_equal(env->ops->file_size(file, &size_bytes), 0);
    assert_int_equal(size_bytes, 0);
    sim_free(sim);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_kill_keeps_what_was_written, say_seed),
        cmocka_unit_test_teardown(test_power_keeps_what_was_synced, say_seed),
        cmocka_unit_test_teardown(test_power_after_kill, say_seed),
        cmocka_unit_test_teardown(test_equal_seeds_equal_traces, say_seed),
        cmocka_unit_test(test_events_come_in_time_and_ties_by_lot),
        cmocka_unit_test(test_events_of_the_killed_are_dropped),
        cmocka_unit_test(test_run_until),
        cmocka_unit_test(test_regions_survive_kill_not_power),
        cmocka_unit_test(test_names_are_durable),
        cmocka_unit_test_teardown(test_size_after_power, say_seed),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_gigabyte_files_are_sparse),
        cmocka_unit_test(test_flipped_bits),
        cmocka_unit_test(test_countdown_cuts_exactly),
        cmocka_unit_test_teardown(test_jobs_in_order, say_seed),
        cmocka_unit_test(test_ticks_within_hooks),
        cmocka_unit_test(test_clocks_differ_and_drift),
        cmocka_unit_test(test_errors_of_the_medium),
        cmocka_unit_test(test_env_of_the_killed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
