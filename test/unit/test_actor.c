/* Actors, workers and their run queues on one thread: who runs when, in what batches. */
#include "rpc/worker.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

enum { PROBES = 200, MESSAGES = 100, STEPS_MAX = 1000 };

/* An actor that writes down what its steps get and may post from inside one. */
struct probe {
    struct actor actor;
    uint32_t steps;
    uint32_t handled[STEPS_MAX]; /* messages of each step */
    uint32_t last_kind;
    uint64_t step_ns; /* how far a step moves the clock */
    void (*in_step)(struct probe *probe);
};

struct fixture {
    struct worker workers[3];
    struct worker *group_workers[3];
    struct worker_group group;
    struct probe probes[PROBES];
    struct message messages[PROBES + MESSAGES];
    struct actor *scheduled[PROBES];
    uint32_t scheduled_count;
    uint64_t now_ns;
    uint32_t depth; /* of steps in steps */
    char trace[STEPS_MAX];
    struct worker *woken[8];
    uint32_t woken_count;
};

static struct fixture it;

static uint64_t fake_now_ns(struct worker *worker) {
    (void)worker;
    return it.now_ns;
}

static void probe_step(struct actor *actor, struct message *first) {
    struct probe *probe = CONTAINER_OF(actor, struct probe, actor);
    size_t length = strlen(it.trace);

    assert_int_equal(it.depth++, 0);
    assert_true(probe->steps < STEPS_MAX);
    assert_non_null(first);
    for (struct message *message = first; message; message = message->next) {
        probe->handled[probe->steps]++;
        assert_true(message->kind > probe->last_kind); /* in the order of posting */
        probe->last_kind = message->kind;
    }
    probe->steps++;
    if (length + 1 < sizeof it.trace) {
        it.trace[length] = actor->name[0];
    }
    it.now_ns += probe->step_ns;
    if (probe->in_step) {
        probe->in_step(probe);
    }
    it.depth--;
}

static void record_wake(struct worker_group *group, struct worker *worker) {
    assert_ptr_equal(group, &it.group);
    assert_int_equal(it.depth, 0);
    it.woken[it.woken_count++ % ARRAY_SIZE(it.woken)] = worker;
}

static int set_up(void **state) {
    static const char *const names[] = {"a", "b", "c", "d"};

    (void)state;
    it = (struct fixture){.now_ns = 1};
    for (uint32_t i = 0; i < ARRAY_SIZE(it.workers); i++) {
        worker_init(&it.workers[i]);
        it.workers[i].now_ns = fake_now_ns;
        it.group_workers[i] = &it.workers[i];
    }
    worker_group_init(&it.group, it.group_workers, ARRAY_SIZE(it.workers), record_wake);
    for (uint32_t i = 0; i < PROBES; i++) {
        actor_init(&it.probes[i].actor, i < ARRAY_SIZE(names) ? names[i] : "x", probe_step);
    }
    for (uint32_t i = 0; i < ARRAY_SIZE(it.messages); i++) {
        it.messages[i].kind = (uint16_t)(i + 1);
    }
    worker_bind(&it.workers[0]);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    it.workers[0].in_step = false; /* A failed assertion leaves a step by a jump. */
    worker_bind(NULL);
    return 0;
}

static void post(uint32_t probe, uint32_t message) {
    actor_post(&it.probes[probe].actor, &it.messages[message]);
}

static void idle_actor_runs_at_once(void **state) {
    (void)state;
    post(0, 0);
    assert_int_equal(it.probes[0].steps, 1);
    assert_true(actor_is_idle(&it.probes[0].actor));
    assert_false(worker_run_one(&it.workers[0]));
}

static void post_to_b_and_itself(struct probe *probe) {
    if (probe->steps == 1) {
        post(1, 1);
        post(0, 2);
        post(2, 3);
        assert_int_equal(it.probes[1].steps, 0);
    }
}

/* What a step posts runs after that step, in the order of posting, never inside it; the actor
 * itself, which was owned all the time, comes behind those that its step made owned. */
static void nested_posts_run_right_after(void **state) {
    (void)state;
    it.probes[0].in_step = post_to_b_and_itself;
    post(0, 0);
    assert_string_equal(it.trace, "abca");
}

static void post_hundred_to_b(struct probe *probe) {
    (void)probe;
    for (uint32_t i = 0; i < MESSAGES; i++) {
        post(1, i);
    }
}

/* 100 waiting messages: 32 now, and the rest behind the polling of I/O, 32 at a time. */
static void batches_end_the_slice(void **state) {
    static const uint32_t expected[] = {32, 32, 32, 4};

    (void)state;
    it.probes[0].in_step = post_hundred_to_b;
    post(0, 0);
    assert_int_equal(it.probes[1].steps, 1);
    while (worker_run_one(&it.workers[0])) {
    }
    assert_int_equal(it.probes[1].steps, ARRAY_SIZE(expected));
    assert_memory_equal(it.probes[1].handled, expected, sizeof expected);
}

static void post_to_itself(struct probe *probe) {
    if (probe->steps < MESSAGES) {
        post(0, probe->steps);
    }
}

/* One message a step counts as well: the slice is 32 messages, not 32 batches. */
static void slices_end_for_who_feeds_itself(void **state) {
    (void)state;
    it.probes[0].in_step = post_to_itself;
    post(0, 0);
    assert_int_equal(it.probes[0].steps, 32);
    assert_true(worker_run_one(&it.workers[0]));
    assert_int_equal(it.probes[0].steps, 64);
    while (worker_run_one(&it.workers[0])) {
    }
    assert_int_equal(it.probes[0].steps, MESSAGES);
}

/* After 50 us of steps the rest of a chain waits in the run queue. */
static void slices_end_by_time(void **state) {
    (void)state;
    it.probes[0].in_step = post_to_itself;
    it.probes[0].step_ns = 10000;
    post(0, 0);
    assert_int_equal(it.probes[0].steps, 6);
    assert_true(worker_run_one(&it.workers[0]));
    assert_int_equal(it.probes[0].steps, 12);
    it.probes[0].in_step = NULL;
    while (worker_run_one(&it.workers[0])) {
    }
}

static void ping_pong(struct probe *probe) {
    uint32_t other = probe == &it.probes[0] ? 1 : 0;

    if (it.probes[0].steps + it.probes[1].steps < MESSAGES) {
        post(other, it.probes[0].steps + it.probes[1].steps);
    }
}

/* Actors that feed each other give way to I/O too, even without a clock. */
static void chains_end(void **state) {
    (void)state;
    it.workers[0].now_ns = NULL;
    it.probes[0].in_step = ping_pong;
    it.probes[1].in_step = ping_pong;
    post(0, 0);
    assert_int_equal(it.probes[0].steps + it.probes[1].steps, WORKER_CHAIN_MAX);
    while (worker_run_one(&it.workers[0])) {
    }
    assert_int_equal(it.probes[0].steps + it.probes[1].steps, MESSAGES);
}

static void post_to_all_others(struct probe *probe) {
    (void)probe;
    it.now_ns += ACTOR_SLICE_NS;
    for (uint32_t i = 1; i < PROBES; i++) {
        post(i, i);
    }
}

/* More owned actors than the run queue has slots: all run once, the oldest first. */
static void overflow_keeps_all(void **state) {
    (void)state;
    it.probes[0].in_step = post_to_all_others;
    it.probes[1].step_ns = ACTOR_SLICE_NS;
    post(0, 0);
    assert_int_equal(it.probes[1].steps, 1);
    assert_int_equal(it.probes[2].steps, 0);
    assert_false(worker_sleep_begin(&it.workers[0]));
    for (uint32_t i = 2; i < PROBES; i++) {
        assert_true(worker_run_one(&it.workers[0]));
        assert_int_equal(it.probes[i].steps, 1);
    }
    assert_false(worker_run_one(&it.workers[0]));
}

/* Another worker takes the oldest; what can't be seen by thieves stays for the owner. */
static void thieves_take_the_oldest(void **state) {
    uint32_t stolen = 0;

    (void)state;
    it.probes[0].in_step = post_to_all_others;
    it.probes[1].step_ns = ACTOR_SLICE_NS;
    post(0, 0);
    worker_bind(&it.workers[2]);
    while (worker_steal_one(&it.workers[2])) {
        assert_int_equal(it.probes[2 + stolen].steps, 1);
        stolen++;
    }
    assert_int_equal(stolen, RUN_QUEUE_SLOTS);
    worker_bind(&it.workers[0]);
    assert_false(worker_sleep_begin(&it.workers[0]));
    while (worker_run_one(&it.workers[0])) {
        stolen++;
    }
    assert_int_equal(stolen, PROBES - 2);
    assert_true(worker_sleep_begin(&it.workers[0]));
    worker_sleep_end(&it.workers[0]);
}

static void go_to_sleep(uint32_t worker) {
    worker_bind(&it.workers[worker]);
    assert_true(worker_sleep_begin(&it.workers[worker]));
    worker_bind(&it.workers[0]);
}

/* The oldest that waits too long wakes one thread, once; the next one wakes another. */
static void long_waits_wake_one(void **state) {
    (void)state;
    it.probes[0].in_step = post_to_all_others;
    it.probes[1].step_ns = ACTOR_SLICE_NS;
    go_to_sleep(1);
    go_to_sleep(2);
    post(0, 0);
    it.probes[0].in_step = NULL;
    assert_int_equal(it.woken_count, 0);
    post(0, 1);
    assert_int_equal(it.woken_count, 0);
    it.now_ns += ACTOR_WAIT_NS_MAX;
    for (uint32_t i = 2; i < 5; i++) {
        post(0, i);
        assert_int_equal(it.woken_count, 1);
        assert_ptr_equal(it.woken[0], &it.workers[1]);
    }
    assert_true(worker_run_one(&it.workers[0]));
    assert_int_equal(it.woken_count, 2);
    assert_ptr_equal(it.woken[1], &it.workers[2]);
    assert_true(worker_run_one(&it.workers[0]));
    assert_int_equal(it.woken_count, 2); /* all are awake */
    worker_sleep_end(&it.workers[1]);
    worker_sleep_end(&it.workers[2]);
    assert_int_equal(it.group.sleeping_count, 0);
    while (worker_run_one(&it.workers[0])) {
    }
}

/* Nobody goes to sleep while an actor waits somewhere. */
static void sleep_looks_once_more(void **state) {
    (void)state;
    it.probes[0].in_step = post_to_all_others;
    it.probes[1].step_ns = ACTOR_SLICE_NS;
    post(0, 0);
    worker_bind(&it.workers[1]);
    assert_false(worker_sleep_begin(&it.workers[1]));
    assert_int_equal(it.group.sleeping_count, 0);
    worker_bind(&it.workers[0]);
    while (worker_run_one(&it.workers[0])) {
    }
    assert_true(worker_sleep_begin(&it.workers[0]));
    worker_sleep_end(&it.workers[0]);
    assert_int_equal(it.group.sleeping_count, 0);
}

static void record_schedule(struct worker *worker, struct actor *actor) {
    assert_ptr_equal(worker, &it.workers[0]);
    it.scheduled[it.scheduled_count++] = actor;
}

/* With schedule set nothing runs by itself, and every step is an event of its own. */
static void schedule_takes_over(void **state) {
    (void)state;
    it.workers[0].schedule = record_schedule;
    it.probes[0].in_step = post_hundred_to_b;
    post(0, 0);
    post(0, 1);
    assert_int_equal(it.scheduled_count, 1);
    assert_int_equal(it.probes[0].steps, 0);
    actor_run(&it.workers[0], it.scheduled[0]);
    assert_int_equal(it.probes[0].handled[0], 2);
    assert_int_equal(it.scheduled_count, 2);
    assert_ptr_equal(it.scheduled[1], &it.probes[1].actor);
    for (uint32_t i = 1; i < 5; i++) {
        assert_int_equal(it.scheduled_count, i + 1);
        actor_run(&it.workers[0], it.scheduled[i]);
    }
    assert_int_equal(it.scheduled_count, 5);
    assert_int_equal(it.probes[1].handled[3], 4);
    assert_true(actor_is_idle(&it.probes[1].actor));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(idle_actor_runs_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nested_posts_run_right_after, set_up, tear_down),
        cmocka_unit_test_setup_teardown(batches_end_the_slice, set_up, tear_down),
        cmocka_unit_test_setup_teardown(slices_end_for_who_feeds_itself, set_up, tear_down),
        cmocka_unit_test_setup_teardown(slices_end_by_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(chains_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(overflow_keeps_all, set_up, tear_down),
        cmocka_unit_test_setup_teardown(thieves_take_the_oldest, set_up, tear_down),
        cmocka_unit_test_setup_teardown(long_waits_wake_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(sleep_looks_once_more, set_up, tear_down),
        cmocka_unit_test_setup_teardown(schedule_takes_over, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
