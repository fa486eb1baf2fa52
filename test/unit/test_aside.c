/* Threads that stand aside: when they do, and how they come back. The scheduler is this machine's,
 * and the watcher may end it at any moment, so each test asks until it has seen what it waits
 * for. */
#include "unit.h"
#include "env_place.h"
#include "front/fuse/channel_aside.h"
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#define WITHOUT_RIGHT "without-right"

enum { NOBODY = 65534, OTHER = 1, WAIT_S = 20 };

/* A program that is on one CPU, and asks this thread. */
struct scene {
    struct env *env;
    struct aside *aside;
    struct aside_thread thread;
    cpu_set_t cpus; /* this thread's at first */
    pid_t program;
    int to_program; /* pipes */
    int from_program;
};

static int cpu_first(const cpu_set_t *cpus, int than) {
    for (int i = than + 1; i < CPU_SETSIZE; i++) {
        if (CPU_ISSET((size_t)i, cpus)) {
            return i;
        }
    }
    return -1;
}

static void program_put(const struct scene *scene, int cpu) {
    cpu_set_t one;
    char byte;

    CPU_ZERO(&one);
    CPU_SET((size_t)cpu, &one);
    assert_int_equal(sched_setaffinity(scene->program, sizeof one, &one), 0);
    assert_int_equal(write(scene->to_program, "", 1), 1);
    assert_int_equal(read(scene->from_program, &byte, 1), 1); /* It has run there. */
}

static void program_run(int from, int to) {
    char byte;

    while (read(from, &byte, 1) == 1 && write(to, &byte, 1) == 1) {
    }
    _exit(0);
}

static void program_start(struct scene *scene) {
    int to[2];
    int from[2];

    assert_int_equal(pipe(to), 0);
    assert_int_equal(pipe(from), 0);
    scene->program = fork();
    if (scene->program == 0) {
        close(to[1]);
        program_run(to[0], from[1]);
    }
    assert_true(scene->program > 0);
    close(to[0]);
    close(from[1]);
    scene->to_program = to[1];
    scene->from_program = from[0];
}

static void scene_open(struct scene *scene, struct place *place) {
    *scene = (struct scene){.env = place->env};
    assert_int_equal(sched_getaffinity(0, sizeof scene->cpus, &scene->cpus), 0);
    scene->aside = aside_open(place->env, 1, 0, 0);
    if (!aside_may(scene->aside)) {
        aside_close(scene->aside);
        print_message("the right to take back a scheduling policy (CAP_SYS_NICE) is missing\n");
        skip();
    }
    program_start(scene);
    program_put(scene, cpu_first(&scene->cpus, -1));
    aside_join(scene->aside, &scene->thread, true);
}

static bool has_policy(int policy) {
    return sched_getscheduler(0) == policy;
}

static bool is_on(int cpu) {
    cpu_set_t cpus;

    return sched_getaffinity(0, sizeof cpus, &cpus) == 0 && CPU_COUNT(&cpus) == 1 &&
           CPU_ISSET((size_t)cpu, &cpus);
}

static void is_itself(const struct scene *scene) {
    cpu_set_t cpus;

    assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
    assert_int_equal(sched_getaffinity(0, sizeof cpus, &cpus), 0);
    assert_true(CPU_EQUAL(&cpus, &scene->cpus));
}

static void scene_close(struct scene *scene) {
    aside_part(&scene->thread);
    is_itself(scene);
    aside_close(scene->aside);
    close(scene->to_program);
    close(scene->from_program);
    waitpid(scene->program, NULL, 0);
}

static void ask(struct scene *scene) {
    aside_took(&scene->thread, (uint32_t)scene->program, true, true);
}

/* Until it stands aside on that CPU. */
static void stand_aside(struct scene *scene, int cpu) {
    uint64_t until_ns = env_now_ns(scene->env) + WAIT_S * NS_PER_S;

    while (!has_policy(SCHED_IDLE) || !is_on(cpu)) {
        assert_true(env_now_ns(scene->env) < until_ns);
        ask(scene);
        for (unsigned i = 0; i < 2; i++) {
            aside_missed(&scene->thread); /* It looks where the program is. */
        }
    }
}

static void test_it_stands_aside_for_one_program(void **state) {
    struct scene scene;

    scene_open(&scene, *state);
    for (unsigned i = 0; i < 7; i++) {
        ask(&scene);
        assert_false(aside_is(&scene.thread));
    }
    stand_aside(&scene, cpu_first(&scene.cpus, -1));
    aside_took(&scene.thread, 0, true, false); /* the kernel's own count for nobody's */
    for (unsigned i = 0; i < 5; i++) {
        aside_took(&scene.thread, OTHER, true, true);
    }
    assert_false(aside_serves_one(&scene.thread));
    scene_close(&scene);
}

static void test_large_data_ends_it(void **state) {
    struct scene scene;

    scene_open(&scene, *state);
    stand_aside(&scene, cpu_first(&scene.cpus, -1));
    aside_took(&scene.thread, (uint32_t)scene.program, false, true);
    assert_false(aside_serves_one(&scene.thread));
    scene_close(&scene);
}

static void test_it_goes_where_its_program_goes(void **state) {
    struct scene scene;

    scene_open(&scene, *state);
    int first = cpu_first(&scene.cpus, -1);
    int second = cpu_first(&scene.cpus, first);
    if (second < 0) {
        scene_close(&scene);
        print_message("a second CPU is missing\n");
        skip();
    }
    stand_aside(&scene, first);
    program_put(&scene, second);
    stand_aside(&scene, second);
    scene_close(&scene);
}

/* The watcher gives back what a thread can't take that gets no CPU. */
static void test_one_that_begins_nothing_is_itself_again(void **state) {
    struct scene scene;

    scene_open(&scene, *state);
    stand_aside(&scene, cpu_first(&scene.cpus, -1));
    uint64_t until_ns = env_now_ns(scene.env) + WAIT_S * NS_PER_S;
    while (aside_is(&scene.thread)) {
        assert_true(env_now_ns(scene.env) < until_ns);
    }
    is_itself(&scene);
    for (unsigned i = 0; i < 7; i++) {
        ask(&scene); /* A program that paused is one that has begun to ask. */
        assert_false(aside_is(&scene.thread));
    }
    assert_true(atomic_load(&scene.thread.not_before_ns) > scene.thread.since_ns);
    scene_close(&scene);
}

static void *heir_run(void *context) {
    int *ends = context; /* of a pipe that tells its number, and one that ends it */
    int thread_id = gettid();
    char byte;

    (void)!write(ends[1], &thread_id, sizeof thread_id);
    (void)!read(ends[0], &byte, 1);
    return NULL;
}

/* As the kernel makes some for its I/O: they would have its policy for good. */
static void test_threads_that_it_makes_are_no_heirs(void **state) {
    struct scene scene;
    int to[2];
    int from[2];
    int thread_id;
    pthread_t heir;

    scene_open(&scene, *state);
    assert_int_equal(pipe(to), 0);
    assert_int_equal(pipe(from), 0);
    stand_aside(&scene, cpu_first(&scene.cpus, -1));
    assert_int_equal(pthread_create(&heir, NULL, heir_run, (int[]){to[0], from[1]}), 0);
    assert_int_equal(read(from[0], &thread_id, sizeof thread_id), sizeof thread_id);
    uint64_t until_ns = env_now_ns(scene.env) + WAIT_S * NS_PER_S;
    while (sched_getscheduler(thread_id) != SCHED_OTHER) {
        assert_true(env_now_ns(scene.env) < until_ns);
        ask(&scene);
    }
    close(to[1]);
    pthread_join(heir, NULL);
    close(to[0]);
    close(from[0]);
    close(from[1]);
    scene_close(&scene);
}

/* As over io_uring where waking a CPU is not dear enough for many programs. */
static void test_where_each_cpu_has_a_thread_it_is_for_one_program_of_all(void **state) {
    const struct place *place = *state;
    struct aside *aside = aside_open(place->env, 2, 0, UINT64_MAX);
    struct aside_thread thread = {0};
    struct aside_thread other = {0};

    if (!aside_may(aside)) {
        aside_close(aside);
        print_message("the right to take back a scheduling policy (CAP_SYS_NICE) is missing\n");
        skip();
    }
    aside_join(aside, &thread, false);
    aside_join(aside, &other, false);
    uint64_t until_ns = env_now_ns(place->env) + WAIT_S * NS_PER_S;
    while (!has_policy(SCHED_IDLE)) {
        assert_true(env_now_ns(place->env) < until_ns);
        aside_took(&thread, OTHER, true, true);
    }
    aside_took(&other, OTHER + 1, true, true);
    for (unsigned i = 0; i < 32; i++) {
        aside_took(&thread, OTHER, true, true);
    }
    assert_int_equal(has_policy(SCHED_IDLE), false);
    until_ns = env_now_ns(place->env) + 50 * NS_PER_MS;
    while (env_now_ns(place->env) < until_ns) { /* It tries each 10 ms. */
        aside_took(&thread, OTHER, true, true);
        aside_took(&other, OTHER + 1, true, true);
        assert_false(aside_is(&thread) || aside_is(&other));
    }
    until_ns = env_now_ns(place->env) + WAIT_S * NS_PER_S;
    while (!aside_is(&thread)) { /* The program has been on the other CPU. */
        assert_true(env_now_ns(place->env) < until_ns);
        aside_took(&other, OTHER, false, true);
        aside_took(&thread, OTHER, true, true);
    }
    aside_part(&thread);
    aside_part(&other);
    aside_close(aside);
}

static int open_without_the_right(void) {
    struct aside_thread thread = {0};
    void *state = NULL;

    if (set_up(&state) != 0 || setresuid(NOBODY, NOBODY, 0) != 0) {
        return 1;
    }
    const struct place *place = state;
    struct aside *aside = aside_open(place->env, 1, 0, 0);
    bool is_itself = aside && !aside_may(aside);
    aside_join(aside, &thread, true);
    for (unsigned i = 0; i < 64; i++) {
        aside_took(&thread, OTHER, true, true);
        is_itself = is_itself && !aside_is(&thread) && has_policy(SCHED_OTHER);
    }
    aside_part(&thread);
    aside_close(aside);
    return setresuid(0, 0, 0) == 0 && tear_down(&state) == 0 && is_itself ? 0 : 1;
}

/* Its policy could not be taken back. */
static void test_not_without_the_right(void **state) {
    (void)state;
    if (geteuid() != 0) {
        print_message("root is missing, who could give the right away\n");
        skip();
    }
    run_self(WITHOUT_RIGHT, NULL);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_it_stands_aside_for_one_program, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_large_data_ends_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_it_goes_where_its_program_goes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_one_that_begins_nothing_is_itself_again, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_threads_that_it_makes_are_no_heirs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            test_where_each_cpu_has_a_thread_it_is_for_one_program_of_all, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_not_without_the_right, set_up, tear_down),
    };

    if (argc == 2 && strcmp(argv[1], WITHOUT_RIGHT) == 0) {
        return open_without_the_right();
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
