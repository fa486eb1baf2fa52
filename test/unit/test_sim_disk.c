/* Simulated disks: what kills and power failures leave, for many seeds; space, sizes, flipped bits.
 * A failure prints its seed. */
#include "unit.h"
#include "env/env_sim.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* ret_in_flight counts blocks with a write in flight at the crash, and those it reached. */
static void check_file(struct load *load, bool power, unsigned *ret_in_flight) {
    static uint8_t data[BLOCKS * BLOCK_BYTES] __attribute__((aligned(BLOCK_BYTES)));
    struct env *env = sim_restart(load->process);
    struct env_file *file = file_make(env, "file");
    struct env_io io = {.kind = ENV_IO_READ, .file = file, .buffer = data, .size = sizeof data};

    memset(data, 0, sizeof data);
    assert_int_equal(env->ops->io_run(env, &io), 0);
    for (uint32_t block = 0; block < BLOCKS; block++) {
        uint32_t number;

        check_block(load, data + (size_t)block * BLOCK_BYTES, block, power);
        memcpy(&number, data + (size_t)block * BLOCK_BYTES, sizeof number);
        ret_in_flight[0] += load->submitted[block] != load->written[block];
        ret_in_flight[1] += number > load->written[block];
    }
}

static void test_kill_keeps_what_was_written(void **state) {
    unsigned in_flight[2] = {0, 0}; /* in all, and those that arrived */

    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct load *load = load_new(seed);

        load_run(load);
        sim_kill(load->process);
        check_file(load, false, in_flight);
        load_free(load);
    }
    assert_true(in_flight[1] > in_flight[0] / 4 && in_flight[1] < in_flight[0] * 3 / 4);
}

static void test_power_keeps_what_was_synced(void **state) {
    uint64_t lost = 0;
    uint64_t torn = 0;
    uint64_t kept = 0;
    unsigned in_flight[2] = {0, 0};

    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct load *load = load_new(seed);

        load_run(load);
        sim_power(load->process);
        check_file(load, true, in_flight);
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
    unsigned in_flight[2] = {0, 0};

    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct load *load = load_new(seed);

        load_run(load);
        sim_kill(load->process);
        sim_power(load->process);
        check_file(load, true, in_flight);
        load_free(load);
    }
}

static void note_done(struct env_io *io, int result) {
    assert_int_equal(result, 0);
    *(bool *)io->context = true;
}

static bool is_true(void *context) {
    return *(bool *)context;
}

/* A SYNC covers what had completed when it was submitted: a block that is written again while it
 * is under way comes back in its first or its second state, and never older. */
static void test_sync_covers_what_came_before(void **state) {
    static uint8_t block[BLOCK_BYTES] __attribute__((aligned(BLOCK_BYTES)));
    unsigned seen[3] = {0, 0, 0};

    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct sim *sim = sim_new(seed);
        struct sim_process *process = sim_process_new(sim, "one");
        struct env *env = sim_process_env(process);
        struct env_file *file = file_make(env, "file");
        bool synced = false;
        struct env_io write = {
            .kind = ENV_IO_WRITE, .file = file, .buffer = block, .size = BLOCK_BYTES};
        struct env_io sync = {
            .kind = ENV_IO_SYNC, .file = file, .done = note_done, .context = &synced};
        uint32_t number;

        seed_now = seed;
        sim_process_faults(process)->torn_percent = 0;
        fill(block, 1);
        assert_int_equal(run(env, write), 0);
        env_io_submit(env, &sync);
        fill(block, 2);
        assert_int_equal(run(env, write), 0);
        assert_int_equal(sim_run_until(sim, UINT64_MAX, is_true, &synced), SIM_DONE);
        sim_power(process);
        env = sim_restart(process);
        write.kind = ENV_IO_READ;
        write.file = file_make(env, "file");
        assert_int_equal(run(env, write), 0);
        memcpy(&number, block, sizeof number);
        assert_true(number <= 2);
        seen[number]++;
        sim_free(sim);
    }
    assert_int_equal(seen[0], 0);
    assert_true(seen[1] > SEEDS / 8 && seen[2] > SEEDS / 8);
}

static uint64_t hash_of(uint64_t seed) {
    struct load *load = load_new(seed);
    unsigned in_flight[2] = {0, 0};
    uint64_t hash;

    load_run(load);
    sim_power(load->process);
    check_file(load, true, in_flight);
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

enum { SYNCED_BYTES = 10 * BLOCK_BYTES + 100, GROWN_BYTES = 30 * BLOCK_BYTES };

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
            run(env, (struct env_io){.kind = ENV_IO_ALLOCATE, .file = file, .size = SYNCED_BYTES}),
            0);
        assert_int_equal(run(env, (struct env_io){.kind = ENV_IO_SYNC, .file = file}), 0);
        assert_int_equal(
            run(env, (struct env_io){.kind = ENV_IO_ALLOCATE, .file = file, .size = GROWN_BYTES}),
            0);
        sim_power(process);
        env = sim_restart(process);
        file = file_make(env, "file");
        assert_int_equal(env->ops->file_size(file, &size_bytes), 0);
        assert_true(size_bytes >= SYNCED_BYTES && size_bytes <= GROWN_BYTES);
        seen_less |= size_bytes == SYNCED_BYTES;
        seen_all |= size_bytes == GROWN_BYTES;
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
    io.size = 9 * BLOCK_BYTES;
    io.keep_free_bytes = BLOCK_BYTES + 1;
    assert_int_equal(run(env, io), -ERR_NO_SPACE);
    io.keep_free_bytes = BLOCK_BYTES;
    assert_int_equal(run(env, io), 0);
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

static void io_never_done(struct env_io *io, int result) {
    (void)io;
    (void)result;
    fail_msg("a killed process was answered");
}

/* A write in flight at a kill may come whole behind the next start, but not behind an allocation on
 * its file; and one that allocates nothing is no change that a countdown counts. */
static void test_late_writes(void **state) {
    static uint8_t data[2 * BLOCK_BYTES] __attribute__((aligned(BLOCK_BYTES)));
    static uint8_t back[BLOCK_BYTES] __attribute__((aligned(BLOCK_BYTES)));
    unsigned late = 0, never = 0;

    (void)state;
    memset(data, 0x55, sizeof data);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct sim *sim = sim_new(seed);
        struct sim_process *process = sim_process_new(sim, "one");
        struct env *env = sim_process_env(process);
        struct env_io write = {.kind = ENV_IO_WRITE,
                               .file = file_make(env, "file"),
                               .buffer = data,
                               .size = sizeof data,
                               .done = io_never_done};
        struct env_io allocate = {.kind = ENV_IO_ALLOCATE, .file = write.file, .size = sizeof data};

        seed_now = seed;
        assert_int_equal(run(env, allocate), 0);
        env->ops->io_submit(env, &write);
        sim_kill(process);
        env = sim_restart(process);
        struct env_io read = {.kind = ENV_IO_READ,
                              .file = file_make(env, "file"),
                              .buffer = back,
                              .size = sizeof back};
        sim_crash_after(process, 0);
        if (seed % 2 == 0) {
            allocate.file = read.file;
            assert_int_equal(run(env, allocate), 0);
        }
        assert_int_equal(run(env, read), 0);
        bool before = back[0] == 0x55;
        sim_crash_after(process, UINT64_MAX);
        for (unsigned i = 0; i < 40; i++) {
            assert_int_equal(run(env, (struct env_io){.kind = ENV_IO_SYNC, .file = read.file}), 0);
        }
        assert_int_equal(run(env, read), 0);
        assert_true(seed % 2 || before == (back[0] == 0x55));
        late += before != (back[0] == 0x55);
        never += back[0] != 0x55;
        allocate.file = read.file;
        allocate.size += BLOCK_BYTES;
        sim_crash_after(process, 0);
        assert_int_equal(run(env, allocate), -ERR_CLOSED);
        sim_free(sim);
    }
    assert_true(late > 0 && never > 0);
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
    assert_false(sim_disk_flip_bit(process, "missing", 0));
    assert_false(sim_disk_flip_bit(process, "file", 8 * sizeof data));
    assert_true(sim_disk_flip_bit(process, "file", 13));
    assert_int_equal(run(env, io), 0);
    assert_int_equal(back[1], 0xaa ^ 1 << 5);
    assert_true(sim_disk_flip_bit(process, "file", 13));
    assert_int_equal(run(env, io), 0);
    assert_int_equal(back[1], 0xaa);
    flip.path = "missing";
    assert_int_equal(sim_disk_flip(process, &flip, &offset), 0);
    sim_free(sim);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_kill_keeps_what_was_written, say_seed),
        cmocka_unit_test_teardown(test_power_keeps_what_was_synced, say_seed),
        cmocka_unit_test_teardown(test_power_after_kill, say_seed),
        cmocka_unit_test_teardown(test_sync_covers_what_came_before, say_seed),
        cmocka_unit_test_teardown(test_equal_seeds_equal_traces, say_seed),
        cmocka_unit_test(test_names_are_durable),
        cmocka_unit_test_teardown(test_size_after_power, say_seed),
        cmocka_unit_test_teardown(test_late_writes, say_seed),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_gigabyte_files_are_sparse),
        cmocka_unit_test(test_flipped_bits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
