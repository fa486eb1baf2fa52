/* Loops of the real outside: completions, jobs, wake-ups, waiting, ticks, with io_uring and
 * without. */
#include "env_place.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { MANY = 3000, NOBODY = 65534 };

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

enum { CROWD = 4, CROWD_ROUNDS = 300 };

/* A thread of the crowd: does I/O and jobs, and wakes the next thread. */
struct member {
    struct place *place;
    struct env_file *file;
    struct member *next;
    struct env_loop *loop;
    pthread_barrier_t *barrier;
    pthread_t thread;
    struct env_io io;
    struct env_job job;
    uint8_t letter;
    unsigned io_count;
    unsigned job_count;
    unsigned foreign_count; /* calls of done() on another thread */
};

static void member_io_done(struct env_io *io, int result) {
    struct member *member = io->context;

    member->io_count += result == 0;
    member->foreign_count += !pthread_equal(pthread_self(), member->thread);
}

static void member_job_run(struct env_job *job) {
    struct member *member = CONTAINER_OF(job, struct member, job);

    member->letter ^= 1;
}

static void member_job_done(struct env_job *job) {
    struct member *member = CONTAINER_OF(job, struct member, job);

    member->job_count++;
    member->foreign_count += !pthread_equal(pthread_self(), member->thread);
}

static void *member_main(void *context) {
    struct member *member = context;
    struct env *env = member->place->env;

    member->thread = pthread_self();
    assert_int_equal(env_thread_enter(env), 0);
    member->loop = env_thread_loop(env);
    pthread_barrier_wait(member->barrier);
    for (unsigned i = 0; i < CROWD_ROUNDS; i++) {
        member->io = (struct env_io){.kind = i % 2 ? ENV_IO_READ : ENV_IO_WRITE,
                                     .file = member->file,
                                     .buffer = &member->letter,
                                     .size = 1,
                                     .done = member_io_done,
                                     .context = member};
        env_io_submit(env, &member->io);
        env_loop_wake(member->next->loop);
        wait_until_idle(env);
        member->job.lane = i % 3 ? ENV_LANE_READ : ENV_LANE_WRITE;
        env_job_submit(env, &member->job);
        wait_until_idle(env);
    }
    pthread_barrier_wait(member->barrier);
    env_thread_leave(env);
    return NULL;
}

/* Each thread gets what it submitted, and nobody sleeps for ever. */
static void test_many_threads(void **state) {
    struct place *place = *state;
    struct env_file *file = file_make(place, 0);
    struct member members[CROWD] = {0};
    pthread_t threads[CROWD];
    pthread_barrier_t barrier;

    pthread_barrier_init(&barrier, NULL, CROWD);
    for (unsigned i = 0; i < CROWD; i++) {
        members[i] = (struct member){.place = place,
                                     .file = file,
                                     .next = &members[(i + 1) % CROWD],
                                     .barrier = &barrier,
                                     .job = {.run = member_job_run, .done = member_job_done}};
    }
    for (unsigned i = 0; i < CROWD; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, member_main, &members[i]), 0);
    }
    for (unsigned i = 0; i < CROWD; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(members[i].io_count, CROWD_ROUNDS);
        assert_int_equal(members[i].job_count, CROWD_ROUNDS);
        assert_int_equal(members[i].foreign_count, 0);
    }
    pthread_barrier_destroy(&barrier);
    place->env->ops->file_close(file);
}

static void answer_note(struct env_io *io, int result) {
    *(int *)io->context = result == 0 ? 1 : result;
}

#define WITHOUT_THREADS "without-threads"

/* In a process of its own that may have no more threads: 0 when all was done. */
static int io_without_threads(const char *root) {
    const struct rlimit none = {1, 1};
    struct place place;
    int done = 0;
    char letter = 'x';

    snprintf(place.root, sizeof place.root, "%s", root);
    if (env_linux_new(&(struct env_linux_options){.root = root}, &place.env) < 0 ||
        env_thread_enter(place.env) < 0) {
        return 2;
    }
    struct env_file *file = file_make(&place, 0);
    struct env_io ios[2] = {{.kind = ENV_IO_WRITE, .buffer = &letter, .size = 1},
                            {.kind = ENV_IO_SYNC}};
    if (setrlimit(RLIMIT_NPROC, &none) < 0 || (geteuid() == 0 && setuid(NOBODY) < 0)) {
        return 2;
    }
    for (size_t i = 0; i < ARRAY_SIZE(ios); i++) {
        ios[i].file = file;
        ios[i].done = answer_note;
        ios[i].context = &done;
        done = 0;
        env_io_submit(place.env, &ios[i]);
        wait_until_idle(place.env);
        if (done != 1) {
            return 1;
        }
    }
    return 0;
}

/* A sync always asks the kernel for a thread, which gets none here, as where a signal comes each
 * time that it tries; it answers that the sync was cancelled. It is done all the same. */
static void test_the_kernel_gets_no_thread(void **state) {
    struct place *place = *state;

    run_self(WITHOUT_THREADS, place->root);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        BOTH(test_many_in_flight),
        BOTH(test_done_may_submit),
        BOTH(test_the_kernel_gets_no_thread),
        BOTH(test_jobs),
        BOTH(test_wake_from_another_thread),
        BOTH(test_many_threads),
        BOTH(test_wake_before_wait_is_kept),
        BOTH(test_wait_for_descriptor),
        BOTH(test_wait_ends_in_time),
        BOTH(test_ticks_and_service),
        BOTH(test_service_that_fails_to_start),
        BOTH(test_service_runs_the_level_above),
    };

    if (argc == 3 && strcmp(argv[1], WITHOUT_THREADS) == 0) {
        _exit(io_without_threads(argv[2]));
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
