/* The power fails while a disk log is made: whatever of it has reached the disk, the next start
 * makes it anew or takes it as it is. */
#include "env/env_sim.h"
#include "kv/disk_log.h"
#include "unit.h"

enum { SEEDS = 3000, OPERATIONS = 24 };

static int no_record(void *context, const struct log_record *record) {
    (void)context;
    (void)record;
    return -ERR_CORRUPT;
}

static int log_start(struct env *env, char problem[256]) {
    const struct disk_log_options options = {.env = env,
                                             .path = "log",
                                             .file_bytes = 4 * MIB,
                                             .record_bytes_max = 32 * KIB,
                                             .owner_id = "owner"};
    struct disk_log log;
    int r = disk_log_open(&log, &options, problem);

    if (r == 0) {
        r = disk_log_replay(&log, no_record, NULL, problem);
        disk_log_close(&log);
    }
    return r;
}

static void a_log_that_is_half_made_is_no_damage(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct sim *sim = sim_new(seed);
        struct sim_process *process = sim_process_new(sim, "target");
        char problem[256] = "";

        sim_crash_after(process, seed % OPERATIONS);
        int first = log_start(sim_process_env(process), problem);
        assert_true(first == 0 || first == -ERR_CLOSED);
        sim_power(process);
        int r = log_start(sim_restart(process), problem);
        if (r < 0) {
            fail_msg("seed %d: %s: %s", (int)seed, err_name(r), problem);
        }
        sim_free(sim);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_log_that_is_half_made_is_no_damage)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
