/* Patience: a call waits until its server has been away for that long, and while the server stays
 * away what comes later ends at once. Each waits for conditions; the limit is only for a test that
 * fails. */
#include "lane_bench.h"
#include "rpc/call_number.h"
#include "rpc/call_origin.h"
#include <pthread.h>
#include <semaphore.h>

#define PATIENCE_NS (400 * NS_PER_MS)
#define AT_ONCE_NS (150 * NS_PER_MS) /* of a turn or two, on a machine that is busy */

static struct call *ask_patiently(uint32_t number, uint16_t opcode) {
    it.calls[number].patience_ns = PATIENCE_NS;
    it.calls[number].deadline_ns = env_now_ns(it.env) + PATIENCE_NS;
    return ask(number, opcode, 0);
}

static void server_goes(void) {
    answer_held();
    while (!gate_is_idle(it.gate)) {
        gate_close(it.gate);
        gate_turn(it.gate);
    }
    gate_end();
}

static void welcomed(void) {
    gate_begin(9);
    lanes_begin(9);
    ask(0, OP_GETATTR, 0);
    wait_done(1);
    assert_int_equal(it.calls[0].result, 0);
}

static bool is_past(void *end_ns) {
    return env_now_ns(it.env) >= *(uint64_t *)end_ns;
}

static void pass(uint64_t ns) {
    uint64_t end_ns = env_now_ns(it.env) + ns;

    run_until(is_past, &end_ns);
}

static bool is_back(void *context) {
    (void)context;
    return strstr(it.said, "answers again") != NULL;
}

/* The first one waits, the next do not; and when the server is back nobody waits for the thread to
 * ask again. */
static void patience_counts_from_when_the_server_went(void **state) {
    uint64_t gone_ns;

    (void)state;
    welcomed();
    server_goes();
    gone_ns = env_now_ns(it.env);
    ask_patiently(1, OP_MKDIR);
    wait_done(2);
    assert_int_equal(it.calls[1].result, -ERR_AWAY);
    assert_true(env_now_ns(it.env) - gone_ns >= PATIENCE_NS - 50 * NS_PER_MS);
    for (uint32_t i = 2; i < 12; i++) {
        uint64_t begin_ns = env_now_ns(it.env);

        ask_patiently(i, i % 2 ? OP_GETATTR : OP_MKDIR);
        wait_done(i + 1);
        assert_int_equal(it.calls[i].result, -ERR_AWAY);
        assert_false(it.calls[i].was_sent);
        assert_true(env_now_ns(it.env) - begin_ns < AT_ONCE_NS);
    }
    it.ran_count = 0;
    gate_begin(9);
    run_until(is_back, NULL);
    ask_patiently(12, OP_MKDIR);
    wait_done(13);
    assert_int_equal(it.calls[12].result, 0);
    assert_int_equal(it.ran_count, 1); /* Nothing of what was given up was sent. */
}

/* Who finds all numbers of the window kept for later is not sent, and waits as long as others. */
static void patience_ends_without_a_number_too(void **state) {
    struct call_number numbers[RPC_WINDOW_LEAST];
    uint64_t begin_ns;

    (void)state;
    welcomed();
    assert_int_equal(rpc_session_set(it.rpc, (struct session_id){5}, 50), 0);
    server_goes();
    for (uint32_t i = 1; i <= RPC_WINDOW_LEAST; i++) {
        it.calls[i].keeps_number = true;
        ask_patiently(i, OP_MKDIR);
        wait_done(i + 1);
        assert_int_equal(it.calls[i].result, -ERR_AWAY);
        numbers[i - 1] = call_number_take(&it.calls[i]);
        assert_int_equal(numbers[i - 1].sequence, i);
    }
    begin_ns = env_now_ns(it.env);
    it.calls[20].patience_ns = PATIENCE_NS;
    it.calls[20].deadline_ns = begin_ns + 60 * NS_PER_S;
    ask(20, OP_MKDIR, 0);
    wait_done(RPC_WINDOW_LEAST + 2);
    assert_int_equal(it.calls[20].result, -ERR_AWAY);
    assert_true(env_now_ns(it.env) - begin_ns < 2 * AT_ONCE_NS); /* at a tick */
    for (uint32_t i = 0; i < RPC_WINDOW_LEAST; i++) {
        call_number_drop(&numbers[i]);
    }
    assert_int_equal(rpc_in_flight(it.rpc), 0);
}

/* A server that went while nobody asked has been away all the time, or is back. */
static void patience_counts_while_nobody_asks(void **state) {
    uint64_t begin_ns;

    (void)state;
    welcomed();
    server_goes();
    pass(PATIENCE_NS + AT_ONCE_NS);
    begin_ns = env_now_ns(it.env);
    ask_patiently(1, OP_MKDIR);
    wait_done(2);
    assert_int_equal(it.calls[1].result, -ERR_AWAY);
    assert_true(env_now_ns(it.env) - begin_ns < AT_ONCE_NS);
    assert_non_null(strstr(it.said, "does not answer"));
    gate_begin(9);
    run_until(is_back, NULL);
    server_goes();
    pass(AT_ONCE_NS);
    gate_begin(9);
    pass(PATIENCE_NS);
    ask_patiently(2, OP_MKDIR);
    wait_done(3);
    assert_int_equal(it.calls[2].result, 0);
}

/* What was at work when the server went waits as long as what comes right behind it: whether it has
 * taken effect there nobody knows. */
static void who_asked_before_waits_as_long(void **state) {
    uint32_t count = 1;
    uint64_t gone_ns;

    (void)state;
    welcomed();
    it.holds = true;
    ask_patiently(1, OP_MKDIR);
    run_until(is_held, &count);
    pass(PATIENCE_NS / 2);
    assert_int_equal(it.done_count, 1);
    it.held_answered = it.held_count;
    gate_abandon(TAKE_PTR(it.gate));
    gone_ns = env_now_ns(it.env);
    wait_done(2);
    assert_int_equal(it.calls[1].result, -ERR_AWAY);
    assert_true(it.calls[1].was_sent);
    assert_true(env_now_ns(it.env) - gone_ns >= PATIENCE_NS - 50 * NS_PER_MS);
}

/* By what it is asked, maybe: it comes back each time and takes it, and goes before it answers. */
static void one_that_goes_again_and_again_is_not_waited_for_without_end(void **state) {
    uint64_t begin_ns;
    uint32_t goes = 0;

    (void)state;
    welcomed();
    it.holds = true;
    begin_ns = env_now_ns(it.env);
    ask_patiently(1, OP_MKDIR);
    while (it.done_count == 1) {
        assert_true(env_now_ns(it.env) - begin_ns < 8 * PATIENCE_NS);
        pass(PATIENCE_NS / 8);
        it.held_answered = it.held_count;
        gate_abandon(TAKE_PTR(it.gate));
        goes++;
        gate_begin(9);
    }
    assert_true(goes > 2);
    assert_true(env_now_ns(it.env) - begin_ns >= PATIENCE_NS);
}

/* Whoever has no patience has a deadline, or waits for ever. */
static void who_has_none_waits_on(void **state) {
    (void)state;
    welcomed();
    server_goes();
    ask_patiently(1, OP_MKDIR);
    wait_done(2);
    assert_int_equal(it.calls[1].result, -ERR_AWAY);
    ask(2, OP_MKDIR, 0);
    ask(3, OP_MKDIR, 0)->deadline_ns = env_now_ns(it.env) + AT_ONCE_NS;
    wait_done(3);
    assert_int_equal(it.calls[3].result, -ERR_TIMED_OUT);
    gate_begin(9);
    wait_done(4);
    assert_int_equal(it.calls[2].result, 0);
}

/* The one that tried has left: whether anybody is there the next one finds out. */
static void a_thread_that_tried_may_leave(void **state) {
    (void)state;
    welcomed();
    server_goes();
    ask_patiently(1, OP_MKDIR);
    wait_done(2);
    assert_int_equal(it.calls[1].result, -ERR_AWAY);
    lane_thread_free(TAKE_PTR(it.thread));
    thread_begin();
    gate_begin(9);
    ask_patiently(2, OP_MKDIR);
    wait_done(3);
    assert_int_equal(it.calls[2].result, 0);
    server_goes();
    lane_thread_free(TAKE_PTR(it.thread));
    thread_begin();
    ask_patiently(3, OP_MKDIR);
    wait_done(4);
    assert_int_equal(it.calls[3].result, -ERR_AWAY);
}

/* A thread with a loop of its own, which sleeps between two calls: no event of its lane reaches it
 * then. */
struct sleeper {
    pthread_t thread;
    sem_t woken;
    struct actor origin;
    struct call calls[2];
    uint32_t done_count; /* by its own thread */
    uint64_t took_ns;
    _Atomic uint32_t stage; /* 1: it sleeps; 2: it is over */
};

static void sleeper_done(struct call *call) {
    ((struct sleeper *)call->context)->done_count++;
}

static void sleeper_ask(struct sleeper *sleeper, struct lane_thread *thread, struct worker *worker,
                        uint64_t patience_ns) {
    struct call *call = &sleeper->calls[sleeper->done_count];
    uint32_t wanted = sleeper->done_count + 1;

    call->header.opcode = OP_GETATTR;
    call->header.log = log_served;
    call->request.getattr.ino.value = 1;
    call->origin = &sleeper->origin;
    call->done = sleeper_done;
    call->context = sleeper;
    call->patience_ns = patience_ns;
    call->deadline_ns = patience_ns > 0 ? env_now_ns(it.env) + patience_ns : 0;
    call_start(it.rpc, call);
    while (sleeper->done_count < wanted) {
        (void)lane_thread_turn(thread);
        (void)env_loop_wait(it.env, -1, NS_PER_MS);
        while (worker_run_one(worker)) {
        }
    }
}

static void sleeper_wake(void *context) {
    env_loop_wake(context);
}

static void *sleeper_run(void *context) {
    struct sleeper *sleeper = context;
    struct lane_thread *thread;
    struct worker worker;

    assert_int_equal(env_thread_enter(it.env), 0);
    const struct lane_waker waker = {.wake = sleeper_wake, .context = env_thread_loop(it.env)};
    worker_init(&worker);
    worker_bind(&worker);
    assert_int_equal(lane_thread_new(it.lanes, &waker, &thread), 0);
    lane_thread_bind(thread);
    sleeper_ask(sleeper, thread, &worker, 0);
    atomic_store(&sleeper->stage, 1);
    (void)sem_wait(&sleeper->woken);
    uint64_t begin_ns = env_now_ns(it.env);
    sleeper_ask(sleeper, thread, &worker, PATIENCE_NS);
    sleeper->took_ns = env_now_ns(it.env) - begin_ns;
    lane_thread_free(thread);
    while (env_loop_closing(it.env) > 0) {
        (void)env_loop_wait(it.env, -1, NS_PER_MS);
    }
    worker_bind(NULL);
    env_thread_leave(it.env);
    atomic_store(&sleeper->stage, 2);
    return NULL;
}

static bool is_at_stage(struct sleeper *sleeper, uint32_t stage) {
    return atomic_load(&sleeper->stage) >= stage;
}

static bool sleeper_sleeps(void *sleeper) {
    return is_at_stage(sleeper, 1);
}

static bool sleeper_is_over(void *sleeper) {
    return is_at_stage(sleeper, 2);
}

/* Its lane counts as open until it uses it, and the server has been away for longer than that. */
static void patience_does_not_begin_anew_for_who_slept(void **state) {
    static struct sleeper sleeper;

    (void)state;
    memset(&sleeper, 0, sizeof sleeper);
    actor_init(&sleeper.origin, "sleeper", call_origin_step);
    assert_int_equal(sem_init(&sleeper.woken, 0, 0), 0);
    welcomed();
    assert_int_equal(pthread_create(&sleeper.thread, NULL, sleeper_run, &sleeper), 0);
    run_until(sleeper_sleeps, &sleeper);
    assert_int_equal(sleeper.calls[0].result, 0);
    server_goes();
    ask_patiently(1, OP_MKDIR);
    wait_done(2);
    assert_int_equal(it.calls[1].result, -ERR_AWAY);
    uint64_t begin_ns = env_now_ns(it.env);
    ask_patiently(2, OP_MKDIR);
    wait_done(3);
    assert_int_equal(it.calls[2].result, -ERR_AWAY);
    assert_true(env_now_ns(it.env) - begin_ns < AT_ONCE_NS);
    assert_int_equal(sem_post(&sleeper.woken), 0);
    run_until(sleeper_is_over, &sleeper);
    assert_int_equal(pthread_join(sleeper.thread, NULL), 0);
    assert_int_equal(sleeper.calls[1].result, -ERR_AWAY);
    assert_true(sleeper.took_ns < AT_ONCE_NS);
    assert_int_equal(sem_destroy(&sleeper.woken), 0);
}

int main(void) {
    static struct way without_ring = {.without_ring = true};
    static struct way plain = {.by_tcp = true};
    static struct way encrypted = {.by_tcp = true, .encryption = LINK_ENCRYPTED_ALWAYS};
    const struct CMUnitTest tests[] = {
        LANE_WAYS(patience_counts_from_when_the_server_went),
        LANE_WAYS(patience_counts_while_nobody_asks),
        LANE_WAYS(patience_ends_without_a_number_too),
        LANE_WAYS(who_asked_before_waits_as_long),
        LANE_WAYS(one_that_goes_again_and_again_is_not_waited_for_without_end),
        LANE_WAYS(who_has_none_waits_on),
        LANE_WAYS(a_thread_that_tried_may_leave),
        LANE_WAYS(patience_does_not_begin_anew_for_who_slept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
