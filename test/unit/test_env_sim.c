/* The env of simulated processes: regions, countdowns, jobs, ticks, clocks, errors. */
#include "unit.h"
#include "env/env_sim.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static void fill(uint8_t *block, uint32_t number) {
    for (size_t i = 0; i < BLOCK_BYTES; i += sizeof number) {
        memcpy(block + i, &number, sizeof number);
    }
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
    uint64_t size_bytes = 0;
    assert_int_equal(env->ops->shared_size(env, "ring", &size_bytes), 0);
    assert_int_equal(size_bytes, 5000);
    assert_int_equal(env->ops->shared_size(env, "other", &size_bytes), -ERR_NOT_FOUND);
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
        cmocka_unit_test(test_regions_survive_kill_not_power),
        cmocka_unit_test(test_countdown_cuts_exactly),
        cmocka_unit_test_teardown(test_jobs_in_order, say_seed),
        cmocka_unit_test(test_ticks_within_hooks),
        cmocka_unit_test(test_clocks_differ_and_drift),
        cmocka_unit_test(test_errors_of_the_medium),
        cmocka_unit_test(test_env_of_the_killed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
