/* The real outside, on a temporary directory: what env.h promises, with io_uring and without. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env/env_linux.h"

#define SHORT_NS (50 * NS_PER_MS)
#define LONG_NS (60 * NS_PER_S) /* never reached but by a failure */

struct place {
    char root[64];
    struct env *env;
};

static int place_set_up(void **state, bool refuse_uring) {
    struct place *place = calloc(1, sizeof *place);
    const char *parent = getenv("TMPDIR");

    snprintf(place->root, sizeof place->root, "%.30s/test_env_XXXXXX", parent ? parent : "/tmp");
    assert_non_null(mkdtemp(place->root));
    struct env_linux_options options = {.root = place->root, .refuse_uring = refuse_uring};
    assert_int_equal(env_linux_new(&options, &place->env), 0);
    assert_int_equal(env_thread_enter(place->env), 0);
    *state = place;
    return 0;
}

static int set_up(void **state) {
    return place_set_up(state, false);
}

static int set_up_blocking(void **state) {
    return place_set_up(state, true);
}

static int tear_down(void **state) {
    struct place *place = *state;
    static const char *const names[] = {"file", "other", "directory/file"};
    char path[128];

    env_thread_leave(place->env);
    env_linux_free(place->env);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        snprintf(path, sizeof path, "%s/%s", place->root, names[i]);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/directory", place->root);
    rmdir(path);
    assert_int_equal(rmdir(place->root), 0);
    free(place);
    return 0;
}

static struct env_file *file_make(struct place *place, unsigned flags) {
    struct env_file *file;

    assert_int_equal(place->env->ops->file_open(place->env, "file", ENV_FILE_CREATE | flags, &file),
                     0);
    return file;
}

static uint8_t *pages(size_t size_bytes, uint8_t fill) {
    uint8_t *memory = aligned_alloc(BLOCK_BYTES, size_bytes);

    assert_non_null(memory);
    memset(memory, fill, size_bytes);
    return memory;
}

static void note_done(struct env_io *io, int result) {
    *(int *)io->context = result;
}

static void wait_until_idle(struct env *env) {
    while (env_loop_pending(env) > 0) {
        env_loop_wait(env, -1, LONG_NS);
    }
}

/* Submits, waits, answers what done() got. */
static int io_finish(struct place *place, struct env_io *io) {
    int result = 1;

    io->done = note_done;
    io->context = &result;
    env_io_submit(place->env, io);
    assert_int_equal(result, 1);
    wait_until_idle(place->env);
    return result;
}

static void test_write_read_sync(void **state) {
    struct place *place = *state;

    for (unsigned direct = 0; direct < 2; direct++) {
        struct env_file *file = file_make(place, direct ? ENV_FILE_DIRECT : 0);
        uint8_t *out = pages(2 * BLOCK_BYTES, (uint8_t)(0x5a + direct));
        uint8_t *in = pages(2 * BLOCK_BYTES, 0);
        struct env_io io = {.kind = ENV_IO_WRITE,
                            .file = file,
                            .buffer = out,
                            .offset = 8192,
                            .size = 2 * BLOCK_BYTES};

        assert_int_equal(io_finish(place, &io), 0);
        io = (struct env_io){.kind = ENV_IO_SYNC, .file = file};
        assert_int_equal(io_finish(place, &io), 0);
        io = (struct env_io){.kind = ENV_IO_READ,
                             .file = file,
                             .buffer = in,
                             .offset = 8192,
                             .size = 2 * BLOCK_BYTES};
        assert_int_equal(io_finish(place, &io), 0);
        assert_int_equal(io.ret_size, 2 * BLOCK_BYTES);
        assert_memory_equal(in, out, 2 * BLOCK_BYTES);
        free(out);
        free(in);
        place->env->ops->file_close(file);
    }
}

static void test_read_past_the_end_is_short(void **state) {
    struct place *place = *state;

    for (unsigned direct = 0; direct < 2; direct++) {
        struct env_file *plain = file_make(place, 0);
        struct env_file *file = file_make(place, direct ? ENV_FILE_DIRECT : 0);
        uint8_t *data = pages(3 * BLOCK_BYTES, 7);
        struct env_io io = {.kind = ENV_IO_WRITE, .file = plain, .buffer = data, .size = 5000};

        assert_int_equal(io_finish(place, &io), 0);
        io = (struct env_io){
            .kind = ENV_IO_READ, .file = file, .buffer = data, .size = 3 * BLOCK_BYTES};
        assert_int_equal(io_finish(place, &io), 0);
        assert_int_equal(io.ret_size, 5000);
        io.offset = 3 * BLOCK_BYTES;
        io.size = BLOCK_BYTES;
        assert_int_equal(io_finish(place, &io), 0);
        assert_int_equal(io.ret_size, 0);
        free(data);
        place->env->ops->file_close(file);
        place->env->ops->file_close(plain);
    }
}

static void test_requests_that_cannot_be_right(void **state) {
    struct place *place = *state;
    struct env_file *direct = file_make(place, ENV_FILE_DIRECT);
    struct env_file *read_only = file_make(place, ENV_FILE_READ_ONLY);
    uint8_t *data = pages(2 * BLOCK_BYTES, 1);
    const struct {
        struct env_io io;
        int result;
    } rows[] = {
        {{.kind = ENV_IO_WRITE, .file = direct, .buffer = data, .size = 100}, -ERR_INVALID},
        {{.kind = ENV_IO_READ, .file = direct, .buffer = data, .offset = 512, .size = BLOCK_BYTES},
         -ERR_INVALID},
        {{.kind = ENV_IO_WRITE, .file = direct, .buffer = data + 8, .size = BLOCK_BYTES},
         -ERR_INVALID},
        {{.kind = ENV_IO_WRITE, .file = read_only, .buffer = data, .size = 8}, -ERR_BAD_HANDLE},
        {{.kind = ENV_IO_SYNC, .file = read_only}, -ERR_BAD_HANDLE},
        {{.kind = ENV_IO_READ,
          .file = direct,
          .buffer = data,
          .offset = UINT64_MAX - 4095,
          .size = BLOCK_BYTES},
         -ERR_FILE_TOO_BIG},
        {{.kind = ENV_IO_ALLOCATE, .file = direct, .size = (size_t)1 << 60}, -ERR_FILE_TOO_BIG},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct env_io io = rows[i].io;

        assert_int_equal(io_finish(place, &io), rows[i].result);
        assert_int_equal(place->env->ops->io_run(place->env, &io), rows[i].result);
    }
    uint64_t size_bytes = 1;
    assert_int_equal(place->env->ops->file_size(direct, &size_bytes), 0);
    assert_int_equal(size_bytes, 0);
    free(data);
    place->env->ops->file_close(direct);
    place->env->ops->file_close(read_only);
}

static void test_allocate_grows_and_keeps(void **state) {
    struct place *place = *state;
    struct env_file *file = file_make(place, ENV_FILE_DIRECT);
    uint8_t *data = pages(BLOCK_BYTES, 9);
    uint64_t size_bytes;
    struct env_io io = {.kind = ENV_IO_WRITE, .file = file, .buffer = data, .size = BLOCK_BYTES};

    assert_int_equal(io_finish(place, &io), 0);
    io = (struct env_io){.kind = ENV_IO_ALLOCATE, .file = file, .size = MIB};
    assert_int_equal(io_finish(place, &io), 0);
    assert_int_equal(place->env->ops->file_size(file, &size_bytes), 0);
    assert_int_equal(size_bytes, MIB);
    memset(data, 0, BLOCK_BYTES);
    io = (struct env_io){.kind = ENV_IO_READ, .file = file, .buffer = data, .size = BLOCK_BYTES};
    assert_int_equal(place->env->ops->io_run(place->env, &io), 0);
    assert_int_equal(data[0], 9);
    assert_int_equal(data[BLOCK_BYTES - 1], 9);
    free(data);
    place->env->ops->file_close(file);
}

enum { MANY = 3000 };

struct many {
    struct env_io ios[MANY];
    unsigned done_count;
    unsigned wrong_count;
};

static void many_done(struct env_io *io, int result) {
    struct many *many = io->context;

    many->done_count++;
    many->wrong_count += result != 0 || io->ret_size != BLOCK_BYTES;
}

/* Far more than ring and completion queue hold: none is lost, none fails. */
static void test_many_in_flight(void **state) {
    struct place *place = *state;
    struct env_file *file = file_make(place, ENV_FILE_DIRECT);
    struct many *many = calloc(1, sizeof *many);
    uint8_t *data = pages((size_t)MANY * BLOCK_BYTES, 0);

    for (unsigned pass = 0; pass < 2; pass++) {
        for (unsigned i = 0; i < MANY; i++) {
            if (pass == 0) {
                memset(data + (size_t)i * BLOCK_BYTES, (int)(i % 251), BLOCK_BYTES);
            }
            many->ios[i] = (struct env_io){.kind = pass ? ENV_IO_READ : ENV_IO_WRITE,
                                           .file = file,
                                           .offset = (uint64_t)i * BLOCK_BYTES,
                                           .buffer = data + (size_t)i * BLOCK_BYTES,
                                           .size = BLOCK_BYTES,
                                           .done = many_done,
                                           .context = many};
            env_io_submit(place->env, &many->ios[i]);
        }
        assert_int_equal(env_loop_pending(place->env), MANY);
        wait_until_idle(place->env);
        assert_int_equal(many->done_count, (pass + 1) * MANY);
        assert_int_equal(many->wrong_count, 0);
        if (pass == 0) {
            memset(data, 0xff, (size_t)MANY * BLOCK_BYTES);
        }
    }
    for (size_t i = 0; i < (size_t)MANY * BLOCK_BYTES; i += 1000) {
        assert_int_equal(data[i], i / BLOCK_BYTES % 251);
    }
    free(data);
    free(many);
    place->env->ops->file_close(file);
}

struct chain {
    struct place *place;
    struct env_io io;
    unsigned left;
};

/* done() submits the next: as a log does that writes batch after batch. */
static void chain_done(struct env_io *io, int result) {
    struct chain *chain = io->context;

    assert_int_equal(result, 0);
    if (--chain->left > 0) {
        env_io_submit(chain->place->env, io);
    }
}

static void test_done_may_submit(void **state) {
    struct place *place = *state;
    struct env_file *file = file_make(place, 0);
    char letter = 'x';
    struct chain chain = {.place = place, .left = 100};

    chain.io = (struct env_io){.kind = ENV_IO_WRITE,
                               .file = file,
                               .buffer = &letter,
                               .size = 1,
                               .done = chain_done,
                               .context = &chain};
    env_io_submit(place->env, &chain.io);
    wait_until_idle(place->env);
    assert_int_equal(chain.left, 0);
    place->env->ops->file_close(file);
}

struct counted_job {
    struct env_job job;
    unsigned number;
    atomic_uint *next;
    bool in_order;
    bool done;
    pthread_t ran_on;
};

static void counted_run(struct env_job *job) {
    struct counted_job *counted = CONTAINER_OF(job, struct counted_job, job);

    counted->in_order = atomic_fetch_add(counted->next, 1) == counted->number;
    counted->ran_on = pthread_self();
}

static void counted_done(struct env_job *job) {
    CONTAINER_OF(job, struct counted_job, job)->done = true;
}

static void test_jobs(void **state) {
    struct place *place = *state;
    static struct counted_job jobs[ENV_LANE_COUNT][200];
    atomic_uint next[ENV_LANE_COUNT] = {0, 0};

    for (unsigned lane = 0; lane < ENV_LANE_COUNT; lane++) {
        for (unsigned i = 0; i < 200; i++) {
            jobs[lane][i] = (struct counted_job){
                .job = {.lane = (enum env_lane)lane, .run = counted_run, .done = counted_done},
                .number = i,
                .next = &next[lane]};
            env_job_submit(place->env, &jobs[lane][i].job);
        }
    }
    wait_until_idle(place->env);
    for (unsigned i = 0; i < 200; i++) {
        assert_true(jobs[ENV_LANE_WRITE][i].done);
        assert_true(jobs[ENV_LANE_WRITE][i].in_order);
        assert_true(jobs[ENV_LANE_READ][i].done);
        assert_false(pthread_equal(jobs[ENV_LANE_WRITE][i].ran_on, pthread_self()));
    }
}

struct waker {
    struct env_loop *loop;
    unsigned rounds;
    atomic_uint seen;
};

static void *waker_main(void *context) {
    struct waker *waker = context;

    for (unsigned i = 0; i < waker->rounds; i++) {
        env_loop_wake(waker->loop);
        while (atomic_load(&waker->seen) <= i) {
            sched_yield();
        }
    }
    return NULL;
}

/* Each wake-up ends a wait that would otherwise last a minute, whenever it comes. */
static void test_wake_from_another_thread(void **state) {
    struct place *place = *state;
    struct waker waker = {.loop = env_thread_loop(place->env), .rounds = 2000};
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, waker_main, &waker), 0);
    for (unsigned i = 0; i < waker.rounds; i++) {
        uint64_t start_ns = env_now_ns(place->env);
        unsigned events;

        do {
            events = env_loop_wait(place->env, -1, LONG_NS);
        } while (!(events & ENV_LOOP_WOKEN));
        assert_true(env_now_ns(place->env) - start_ns < LONG_NS);
        atomic_fetch_add(&waker.seen, 1);
    }
    pthread_join(thread, NULL);
}

static void test_wake_before_wait_is_kept(void **state) {
    struct place *place = *state;

    env_loop_wake(env_thread_loop(place->env));
    assert_int_equal(env_loop_wait(place->env, -1, LONG_NS), ENV_LOOP_WOKEN);
    assert_int_equal(env_loop_wait(place->env, -1, 1000), 0);
}

static void test_wait_for_descriptor(void **state) {
    struct place *place = *state;
    struct env_file *file = file_make(place, 0);
    int ends[2][2];
    char letter = 'x';
    struct env_io io = {.kind = ENV_IO_WRITE, .file = file, .buffer = &letter, .size = 1};

    assert_int_equal(pipe2(ends[0], O_CLOEXEC), 0);
    assert_int_equal(pipe2(ends[1], O_CLOEXEC), 0);
    for (unsigned round = 0; round < 50; round++) {
        int *pair = ends[round / 5 % 2];

        /* I/O comes first now and then, so that the descriptor stays armed meanwhile. */
        assert_int_equal(env_loop_wait(place->env, pair[0], 1000), 0);
        if (round % 3 == 0) {
            assert_int_equal(io_finish(place, &io), 0);
        }
        assert_int_equal(write(pair[1], &letter, 1), 1);
        unsigned events = 0;
        while (events == 0) {
            events = env_loop_wait(place->env, pair[0], LONG_NS);
        }
        assert_int_equal(events, ENV_LOOP_READABLE);
        assert_int_equal(read(pair[0], &letter, 1), 1);
    }
    assert_int_equal(env_loop_wait(place->env, ends[0][0], 1000), 0);
    env_loop_disarm(place->env);
    for (unsigned i = 0; i < 2; i++) {
        close(ends[i][0]);
        close(ends[i][1]);
    }
    place->env->ops->file_close(file);
}

static void test_wait_ends_in_time(void **state) {
    struct place *place = *state;
    uint64_t start_ns = env_now_ns(place->env);

    while (env_now_ns(place->env) - start_ns < SHORT_NS) {
        assert_int_equal(env_loop_wait(place->env, -1, SHORT_NS), 0);
    }
    assert_true(env_now_ns(place->env) - start_ns < LONG_NS);
}

struct beat {
    struct env_tick tick;
    struct place *place;
    unsigned limit;
    atomic_uint count;
    atomic_uint after_stop;
    atomic_bool stopped;
};

static void beat_fire(struct env_tick *tick) {
    struct beat *beat = CONTAINER_OF(tick, struct beat, tick);

    atomic_fetch_add(&beat->after_stop, atomic_load(&beat->stopped));
    if (atomic_fetch_add(&beat->count, 1) + 1 == beat->limit) {
        beat->place->env->ops->tick_stop(beat->place->env, tick);
        atomic_store(&beat->stopped, true);
    }
}

static int service_init_hook(void *context) {
    atomic_store((atomic_int *)context, 1);
    return 0;
}

static void service_exit_hook(void *context) {
    atomic_store((atomic_int *)context, 2);
}

static void wait_for_count(atomic_uint *count, unsigned at_least) {
    while (atomic_load(count) < at_least) {
        sched_yield();
    }
}

static void test_ticks_and_service(void **state) {
    struct place *place = *state;
    atomic_int stage = 0;
    struct env_service_hooks hooks = {service_init_hook, service_exit_hook, NULL, &stage};
    struct beat self_stopping = {
        .tick = {.period_ns = NS_PER_MS, .fire = beat_fire}, .place = place, .limit = 5};
    struct beat stopped = {.tick = {.period_ns = NS_PER_MS / 2, .fire = beat_fire}, .place = place};

    place->env->ops->tick_start(place->env, &self_stopping.tick);
    assert_int_equal(env_service_start(place->env, &hooks), 0);
    assert_int_equal(atomic_load(&stage), 1);
    assert_non_null(env_service_loop(place->env));
    place->env->ops->tick_start(place->env, &stopped.tick);
    wait_for_count(&stopped.count, 20);
    wait_for_count(&self_stopping.count, 5);
    place->env->ops->tick_stop(place->env, &stopped.tick);
    atomic_store(&stopped.stopped, true);
    env_service_stop(place->env);
    assert_int_equal(atomic_load(&stage), 2);
    assert_int_equal(atomic_load(&stopped.after_stop), 0);
    assert_int_equal(atomic_load(&self_stopping.count), 5);
    assert_null(env_service_loop(place->env));
}

static int refuse_init(void *context) {
    (void)context;
    return -ERR_NO_MEMORY;
}

static void test_service_that_fails_to_start(void **state) {
    struct place *place = *state;
    struct env_service_hooks failing = {.init = refuse_init};
    struct env_service_hooks none = {0};

    assert_int_equal(env_service_start(place->env, &failing), -ERR_NO_MEMORY);
    env_service_stop(place->env);
    assert_int_equal(env_service_start(place->env, &none), 0);
    env_service_stop(place->env);
}

struct runner {
    struct place *place;
    struct env_file *file;
    struct env_io io;
    char letter;
    atomic_uint rounds;
    unsigned idle_count;
};

static void runner_done(struct env_io *io, int result) {
    struct runner *runner = io->context;

    assert_int_equal(result, 0);
    if (atomic_fetch_add(&runner->rounds, 1) < 49) {
        env_io_submit(runner->place->env, io);
    }
}

static bool runner_idle(void *context) {
    struct runner *runner = context;

    if (runner->idle_count++ == 0) {
        env_io_submit(runner->place->env, &runner->io);
    }
    return runner->idle_count < 10;
}

/* The level above submits from its hook, and is asked again as long as it says so. */
static void test_service_runs_the_level_above(void **state) {
    struct place *place = *state;
    struct runner runner = {.place = place, .file = file_make(place, 0), .letter = 'y'};
    struct env_service_hooks hooks = {.idle = runner_idle, .context = &runner};

    runner.io = (struct env_io){.kind = ENV_IO_WRITE,
                                .file = runner.file,
                                .size = 1,
                                .buffer = &runner.letter,
                                .done = runner_done,
                                .context = &runner};
    assert_int_equal(env_service_start(place->env, &hooks), 0);
    wait_for_count(&runner.rounds, 50);
    env_service_stop(place->env);
    assert_true(runner.idle_count >= 10);
    place->env->ops->file_close(runner.file);
}

static void test_names(void **state) {
    struct place *place = *state;
    const struct env_ops *ops = place->env->ops;
    struct env_file *file = NULL;
    unsigned exclusive = ENV_FILE_CREATE | ENV_FILE_EXCLUSIVE;

    assert_int_equal(ops->file_open(place->env, "file", 0, &file), -ERR_NOT_FOUND);
    assert_null(file);
    assert_int_equal(ops->file_open(place->env, "nowhere/file", ENV_FILE_CREATE, &file),
                     -ERR_NOT_FOUND);
    assert_int_equal(ops->directory_make(place->env, "directory"), 0);
    assert_int_equal(ops->directory_make(place->env, "directory"), 0);
    assert_int_equal(ops->file_open(place->env, "directory/file", exclusive, &file), 0);
    ops->file_close(file);
    assert_int_equal(ops->file_open(place->env, "directory/file", exclusive, &file), -ERR_EXISTS);
    assert_int_equal(ops->directory_make(place->env, "directory/file"), -ERR_NOT_DIRECTORY);
    assert_int_equal(ops->file_open(place->env, "other", exclusive, &file), 0);
    ops->file_close(file);
    assert_int_equal(ops->file_rename(place->env, "directory/file", "other"), 0);
    assert_int_equal(ops->file_open(place->env, "directory/file", 0, &file), -ERR_NOT_FOUND);
    assert_int_equal(ops->file_remove(place->env, "other"), 0);
    assert_int_equal(ops->file_remove(place->env, "other"), -ERR_NOT_FOUND);
    assert_int_equal(ops->file_rename(place->env, "other", "file"), -ERR_NOT_FOUND);
    assert_int_equal(ops->file_open(place->env, "directory", 0, &file), -ERR_IS_DIRECTORY);
}

/* A process that wrote to a region and is killed leaves it as it was; only one may have it. */
static void test_shared_region_survives_kill(void **state) {
    struct place *place = *state;
    const struct env_ops *ops = place->env->ops;
    struct env_shared *shared = NULL;
    bool created = false;
    int ends[2];
    char letter;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int r = ops->shared_open(place->env, "ring/0", 3 * BLOCK_BYTES, &shared, &created);

        if (r == 0 && created) {
            memset(ops->shared_data(shared), 0x77, 3 * BLOCK_BYTES);
        }
        r = write(ends[1], r || !created ? "n" : "y", 1) == 1;
        pause();
        _exit(r);
    }
    assert_int_equal(read(ends[0], &letter, 1), 1);
    assert_int_equal(letter, 'y');
    assert_int_equal(ops->shared_open(place->env, "ring/0", 3 * BLOCK_BYTES, &shared, &created),
                     -ERR_IN_USE);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(ops->shared_open(place->env, "ring/0", 3 * BLOCK_BYTES, &shared, &created), 0);
    assert_false(created);
    const uint8_t *data = ops->shared_data(shared);
    for (size_t i = 0; i < 3 * BLOCK_BYTES; i++) {
        assert_int_equal(data[i], 0x77);
    }
    ops->shared_close(shared);
    close(ends[0]);
    close(ends[1]);

    /* Of another size it is made anew, zeroed. */
    assert_int_equal(ops->shared_open(place->env, "ring/0", BLOCK_BYTES, &shared, &created), 0);
    assert_true(created);
    assert_int_equal(*(const uint8_t *)ops->shared_data(shared), 0);
    ops->shared_close(shared);
    assert_int_equal(ops->shared_remove(place->env, "ring/0"), 0);
    assert_int_equal(ops->shared_remove(place->env, "ring/0"), -ERR_NOT_FOUND);
}

static void test_shared_region_bad_input(void **state) {
    struct place *place = *state;
    const struct env_ops *ops = place->env->ops;
    struct env_shared *shared = NULL;
    char name[300];
    bool created;

    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    assert_int_equal(ops->shared_open(place->env, name, BLOCK_BYTES, &shared, &created),
                     -ERR_NAME_TOO_LONG);
    assert_int_equal(ops->shared_open(place->env, "empty", 0, &shared, &created), -ERR_INVALID);
    /* More than any machine has: refused now, and no signal at the first touch. */
    assert_true(ops->shared_open(place->env, "huge", (size_t)1 << 50, &shared, &created) < 0);
    assert_null(shared);
    assert_int_equal(ops->shared_remove(place->env, "huge"), -ERR_NOT_FOUND);
}

static void test_clocks_and_chance(void **state) {
    struct place *place = *state;
    uint8_t first[300];
    uint8_t second[300];
    uint8_t boot[2][16];
    uint64_t before_ns = env_now_ns(place->env);

    assert_true(before_ns > 0);
    assert_true(env_now_ns(place->env) >= before_ns);
    assert_true(env_wall_ns(place->env) > UINT64_C(1600000000) * NS_PER_S);
    place->env->ops->random(place->env, first, sizeof first);
    place->env->ops->random(place->env, second, sizeof second);
    assert_memory_not_equal(first, second, sizeof first);
    place->env->ops->boot_id(place->env, boot[0]);
    place->env->ops->boot_id(place->env, boot[1]);
    assert_memory_equal(boot[0], boot[1], 16);
    static const uint8_t zeros[16];
    assert_memory_not_equal(boot[0], zeros, 16);
}

static void test_root_must_be_a_directory(void **state) {
    struct env_linux_options missing = {.root = "/nowhere/at/all"};
    struct env_linux_options file = {.root = "/proc/self/status"};
    struct env *env = NULL;

    (void)state;
    assert_int_equal(env_linux_new(&missing, &env), -ERR_NOT_FOUND);
    assert_int_equal(env_linux_new(&file, &env), -ERR_NOT_DIRECTORY);
    assert_null(env);
}

#define BOTH(test)                                                                                 \
    cmocka_unit_test_setup_teardown(test, set_up, tear_down), {                                    \
        #test " (without io_uring)", test, set_up_blocking, tear_down, NULL                        \
    }

int main(void) {
    const struct CMUnitTest tests[] = {
        BOTH(test_write_read_sync),
        BOTH(test_read_past_the_end_is_short),
        BOTH(test_requests_that_cannot_be_right),
        BOTH(test_allocate_grows_and_keeps),
        BOTH(test_many_in_flight),
        BOTH(test_done_may_submit),
        BOTH(test_jobs),
        BOTH(test_wake_from_another_thread),
        BOTH(test_wake_before_wait_is_kept),
        BOTH(test_wait_for_descriptor),
        BOTH(test_wait_ends_in_time),
        BOTH(test_ticks_and_service),
        BOTH(test_service_that_fails_to_start),
        BOTH(test_service_runs_the_level_above),
        cmocka_unit_test_setup_teardown(test_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_shared_region_survives_kill, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_shared_region_bad_input, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_clocks_and_chance, set_up, tear_down),
        cmocka_unit_test(test_root_must_be_a_directory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
