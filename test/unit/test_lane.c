/* Lanes and gates over real sockets, both ends on one thread: what is asked is answered once,
 * whatever becomes of the connection. Each waits for conditions; the limit is only for a test that
 * fails. */
#include "lane_bench.h"
#include <time.h>

static void what_is_asked_is_answered(void **state) {
    struct lane_stats stats;

    (void)state;
    gate_begin(9);
    lanes_begin(0); /* It does not know the cluster yet. */
    ask(0, OP_GETATTR, 0);
    wait_done(1);
    assert_int_equal(it.calls[0].result, 0);
    assert_int_equal(it.calls[0].reply.getattr.attributes.size, 1000);
    lanes_stats(it.lanes, &stats);
    assert_int_equal(stats.open_count, 1);
    assert_int_equal(stats.awaited_count, 0);
}

static void bulk_goes_and_comes(void **state) {
    static const size_t sizes[] = {1, 511, 4096, 65536, 65537, 1000003, BULK_BYTES};

    (void)state;
    gate_begin(9);
    lanes_begin(9);
    for (uint32_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        memset(it.bulk_in, 0, BULK_BYTES);
        ask(i, OP_READLINK, sizes[i]);
        wait_done(i + 1);
        assert_int_equal(it.calls[i].result, 0);
        assert_int_equal(it.calls[i].bulk_in.size, sizes[i]);
        for (size_t j = 0; j < sizes[i]; j++) {
            assert_int_equal(it.bulk_in[j], (uint8_t)~it.bulk_out[j]);
        }
    }
}

/* More than twins, bulk and both buffers can hold: what finds no room is asked again. */
static void many_at_once_all_end(void **state) {
    (void)state;
    gate_begin(9);
    lanes_begin(9);
    for (uint32_t i = 0; i < CALLS; i++) {
        ask(i, i % 3 ? OP_READLINK : OP_MKDIR, i % 7 == 0 ? 100000 : 0);
    }
    wait_done(CALLS);
    for (uint32_t i = 0; i < CALLS; i++) {
        assert_int_equal(it.calls[i].result, 0);
    }
    assert_int_equal(it.ran_count, CALLS);
}

/* Alone it stays until a tick; beside another one it leaves, and before that. */
static void what_may_wait_goes_with_the_next(void **state) {
    (void)state;
    gate_begin(9);
    lanes_begin(9);
    ask(0, OP_GETATTR, 0);
    wait_done(1);
    it.calls[1].may_wait = true;
    ask(1, OP_MKDIR, 0);
    for (int i = 0; i < 20; i++) {
        turn_between_ticks();
    }
    assert_int_equal(it.ran_count, 1);
    ask(2, OP_GETATTR, 0);
    for (int i = 0; i < 10000 && it.done_count < 3; i++) {
        turn_between_ticks();
    }
    assert_int_equal(it.done_count, 3);
    it.calls[3].may_wait = true;
    ask(3, OP_MKDIR, 0);
    wait_done(4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(it.calls[i].result, 0);
    }
}

static void nobody_there_is_waited_for(void **state) {
    (void)state;
    lanes_begin(9);
    ask(0, OP_MKDIR, 0)->deadline_ns = env_now_ns(it.env) + 50 * NS_PER_MS;
    ask(1, OP_MKDIR, 0)->deadline_ns = env_now_ns(it.env) + LIMIT_NS;
    wait_done(1);
    assert_int_equal(it.calls[0].result, -ERR_TIMED_OUT);
    assert_non_null(strstr(it.said, "does not answer"));
    gate_begin(9);
    wait_done(2);
    assert_int_equal(it.calls[1].result, 0);
    assert_int_equal(it.ran_count, 1);
    assert_non_null(strstr(it.said, "answers again"));
}

/* The server starts anew: what was under way there is asked again. */
static void a_server_that_comes_back_is_asked_again(void **state) {
    uint32_t count = 20;

    (void)state;
    gate_begin(9);
    lanes_begin(9);
    it.holds = true;
    for (uint32_t i = 0; i < count; i++) {
        ask(i, OP_MKDIR, i % 5 ? 0 : 5000);
    }
    run_until(is_held, &count);
    answer_held(); /* Its answers are lost with it. */
    assert_int_equal(it.ran_count, count);
    while (!gate_is_idle(it.gate)) {
        gate_close(it.gate);
        gate_turn(it.gate);
    }
    gate_end();
    it.holds = false;
    gate_begin(9);
    wait_done(count);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(it.calls[i].result, 0);
    }
}

static void name_of(uint32_t number, char name[32]) {
    snprintf(name, 32, "a name with the number %u", number);
}

/* The server may look at a request long after others have come by the same connection. */
static void what_a_request_says_stays(void **state) {
    static char names[40][32];
    static uint8_t target[4000];
    uint32_t count = ARRAY_SIZE(names);
    char name[32];

    (void)state;
    gate_begin(9);
    lanes_begin(9);
    it.holds = true;
    memset(target, 't', sizeof target);
    for (uint32_t i = 0; i < count; i++) {
        struct call *call = &it.calls[i];

        name_of(i, names[i]);
        call->request.symlink.name = (struct bytes){(const uint8_t *)names[i], strlen(names[i])};
        if (i % 4 == 0) {
            call->request.symlink.target = (struct bytes){target, sizeof target};
        }
        ask(i, OP_SYMLINK, 0);
        uint32_t so_far = i + 1;
        run_until(is_held, &so_far); /* Each comes by itself. */
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct symlink_request *request = &it.held[i]->request.symlink;
        uint32_t number = (uint32_t)request->parent.value - 1000;

        name_of(number, name);
        assert_int_equal(request->name.size, strlen(name));
        assert_memory_equal(request->name.data, name, request->name.size);
        assert_int_equal(request->target.size, number % 4 == 0 ? sizeof target : 0);
        for (size_t k = 0; k < request->target.size; k++) {
            assert_int_equal(request->target.data[k], 't');
        }
    }
    answer_held();
    wait_done(count);
}

/* A mutation that is given up takes its connection with it; what else was asked by that one is
 * asked again by the next, and whichever copy is answered first, its answer comes by the newest. */
static void who_gives_up_a_mutation_replaces_the_connection(void **state) {
    struct lane_stats stats;
    uint32_t count = 2;

    (void)state;
    gate_begin(9);
    lanes_begin(9);
    it.holds = true;
    ask(0, OP_MKDIR, 0)->deadline_ns = env_now_ns(it.env) + 100 * NS_PER_MS;
    ask(1, OP_GETATTR, 0);
    run_until(is_held, &count);
    wait_done(1);
    assert_int_equal(it.calls[0].result, -ERR_TIMED_OUT);
    count = 3; /* The second copy of the other. */
    run_until(is_held, &count);
    lanes_stats(it.lanes, &stats);
    assert_int_equal(stats.connected_count, 2);
    serve(it.held[1]);
    it.held[1] = it.held[2];
    it.held_count = 2;
    wait_done(2);
    assert_int_equal(it.calls[1].result, 0);
    assert_int_equal(it.calls[1].reply.getattr.attributes.size, 1001);
    answer_held(); /* Answers that nobody awaits do no harm. */
    it.holds = false;
    ask(2, OP_GETATTR, 0);
    wait_done(3);
    assert_int_equal(it.calls[2].reply.getattr.attributes.size, 1002);
}

static bool is_past(void *end_ns) {
    return env_now_ns(it.env) >= *(uint64_t *)end_ns;
}

/* Silence counts only while something is awaited. */
static void a_lane_may_be_idle(void **state) {
    struct lane_stats stats;
    uint64_t end_ns;

    (void)state;
    gate_begin(9);
    lanes_begin(9);
    ask(0, OP_GETATTR, 0);
    wait_done(1);
    end_ns = env_now_ns(it.env) + 500 * NS_PER_MS; /* More than twice silent_ns. */
    run_until(is_past, &end_ns);
    ask(1, OP_GETATTR, 0);
    wait_done(2);
    lanes_stats(it.lanes, &stats);
    assert_int_equal(stats.connected_count, 1);
    assert_int_equal(it.said[0], 0);
}

static bool is_said(void *what) {
    return strstr(it.said, what) != NULL;
}

static void another_cluster_is_refused(void **state) {
    (void)state;
    gate_begin(9);
    lanes_begin(8);
    ask(0, OP_GETATTR, 0)->deadline_ns = env_now_ns(it.env) + 200 * NS_PER_MS;
    run_until(is_said, "another cluster");
    wait_done(1);
    assert_int_equal(it.calls[0].result, -ERR_TIMED_OUT);
    assert_int_equal(it.ran_count, 0);
}

static void a_process_that_is_silent_is_given_up(void **state) {
    const struct env_listen_options options = {.accepted = accept_silent};
    struct env_listener *listener;

    (void)state;
    silent_count = 0;
    assert_int_equal(it.env->streams->listen(it.env, &it.address, &options, &listener), 0);
    lanes_begin(9);
    ask(0, OP_GETATTR, 0)->deadline_ns = env_now_ns(it.env) + 300 * NS_PER_MS;
    wait_done(1);
    assert_int_equal(it.calls[0].result, -ERR_TIMED_OUT);
    assert_int_equal(silent_count, 1);
    lanes_end();
    it.env->streams->listener_close(listener);
    env_stream_close(silent[0]);
}

static bool is_let_go(void *context) {
    struct gate_stats stats;

    (void)context;
    gate_stats(it.gate, &stats);
    return stats.connection_count == 0;
}

/* A machine that dies tells nobody: its connections would stay, until there are as many as may be.
 * A lane that waits asks whether the other end lives, so it is none of these. */
static void a_lane_that_says_nothing_for_long_is_let_go(void **state) {
    struct gate_stats stats;
    uint32_t count = 1;

    (void)state;
    it.gate_silent_ns = NS_PER_S;
    gate_begin(9);
    lanes_begin(9);
    ask(0, OP_GETATTR, 0);
    wait_done(1);
    run_until(is_let_go, NULL);
    it.holds = true;
    ask(1, OP_MKDIR, 0);
    run_until(is_held, &count);
    uint64_t end_ns = env_now_ns(it.env) + 5 * it.gate_silent_ns / 2;
    run_until(is_past, &end_ns);
    gate_stats(it.gate, &stats);
    assert_int_equal(stats.silent_count, 1);
    answer_held();
    wait_done(2);
    assert_int_equal(it.calls[1].result, 0);
}

/* The thread was not there, and its tick is what it does first when it is back: what came meanwhile
 * has lain there all the time. */
static void what_lay_unread_is_not_run_late(void **state) {
    const struct timespec away = {.tv_sec = 1, .tv_nsec = 300 * NS_PER_MS};
    struct gate_stats stats;

    (void)state;
    gate_begin(9);
    lanes_begin(9);
    ask(0, OP_GETATTR, 0);
    wait_done(1);
    turn();
    it.ran_count = 0;
    it.calls[1].deadline_ns = env_now_ns(it.env) + 1200 * NS_PER_MS;
    ask(1, OP_MKDIR, 0);
    lane_thread_turn(it.thread);
    nanosleep(&away, NULL);
    gate_tick(it.gate);
    wait_done(2);
    assert_int_equal(it.calls[1].result, -ERR_TIMED_OUT);
    assert_int_equal(it.ran_count, 0);
    gate_stats(it.gate, &stats);
    assert_int_equal(stats.late_count, 1);
    it.calls[2].deadline_ns = env_now_ns(it.env) + NS_PER_S;
    ask(2, OP_MKDIR, 0);
    wait_done(3);
    assert_int_equal(it.calls[2].result, 0);
}

/* Its process is gone, with all that was at work or answered. */
static void a_gate_may_be_left_as_it_is(void **state) {
    uint32_t count = 6;

    (void)state;
    gate_begin(9);
    lanes_begin(9);
    it.holds = true;
    for (uint32_t i = 0; i < count; i++) {
        ask(i, i % 2 ? OP_READLINK : OP_MKDIR, i % 3 ? 0 : 70000);
    }
    run_until(is_held, &count);
    serve(it.held[0]);
    serve(it.held[1]);
    it.held_answered = count;
    gate_abandon(TAKE_PTR(it.gate));
    it.holds = false;
    gate_begin(9);
    wait_done(count);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(it.calls[i].result, 0);
    }
}

/* Who is told that his time is up asks anew, in the middle of telling the others. */
static void callers_may_ask_while_others_are_told(void **state) {
    uint64_t now_ns;

    (void)state;
    gate_begin(9);
    lanes_begin(9);
    it.holds = true;
    it.asks_again = 40;
    now_ns = env_now_ns(it.env);
    for (uint32_t i = 0; i < it.asks_again; i++) {
        it.calls[i].deadline_ns = now_ns + 50 * NS_PER_MS;
        ask(i, i % 2 ? OP_READLINK : OP_MKDIR, i % 4 ? 0 : 3000);
    }
    wait_done(it.asks_again);
    for (uint32_t i = 0; i < it.asks_again; i++) {
        assert_int_equal(it.calls[i].result, -ERR_TIMED_OUT);
    }
    it.holds = false;
    answer_held();
    wait_done(2 * it.asks_again);
    for (uint32_t i = 0; i < it.asks_again; i++) {
        assert_int_equal(it.calls[i + CALLS / 2].result, 0);
    }
}

/* Those that speak nonsense, by their number. */
/* One route for the log, which goes nowhere at first; and none for another. */
static void a_log_is_asked_for_where_it_is(void **state) {
    const struct log_id elsewhere = {12345};
    struct address nowhere = it.address;
    struct lanes *lanes;
    uint32_t peer;

    (void)state;
    gate_begin(9);
    lanes_begin(9);
    lanes = it.lanes;
    lanes_set_default(lanes, LANE_PEERS_MAX);
    ask(0, OP_GETATTR, 0);
    wait_done(1);
    assert_int_equal(it.calls[0].result, -ERR_STALE_MAP);
    assert_int_equal(lanes_peer_add(lanes, NULL, 0, "node 2", &peer), 0);
    assert_int_equal(lanes_route(lanes, log_served, peer), 0);
    assert_int_equal(lanes_route(lanes, elsewhere, peer), 0);
    ask(1, OP_GETATTR, 0)->deadline_ns = env_now_ns(it.env) + 20 * NS_PER_MS;
    ask(2, OP_GETATTR, 0);
    wait_done(2);
    assert_int_equal(it.calls[1].result, -ERR_TIMED_OUT);
    nowhere.port ^= 1;
    nowhere.name[0] = nowhere.name[0] ? '.' : '\0';
    assert_int_equal(lanes_peer_move(lanes, peer, &nowhere, 1), 0);
    assert_int_equal(lanes_peer_move(lanes, peer, &it.address, LANE_ADDRESSES_MAX + 1),
                     -ERR_INVALID);
    turn();
    assert_int_equal(lanes_peer_move(lanes, peer, &it.address, 1), 0);
    wait_done(3);
    assert_int_equal(it.calls[2].result, 0);
}

/* One of the peer's addresses has become another node's. */
static void only_who_is_meant_is_asked(void **state) {
    struct address addresses[2] = {it.address, it.address};
    struct lane_stats stats;

    (void)state;
    gate_begin(9);
    lanes_begin(9);
    lanes_peer_is(it.lanes, 0, (struct node_id){2});
    ask(0, OP_MKDIR, 0)->deadline_ns = env_now_ns(it.env) + 50 * NS_PER_MS;
    wait_done(1);
    assert_int_equal(it.calls[0].result, -ERR_TIMED_OUT);
    assert_int_equal(it.ran_count, 0);
    assert_int_equal(lanes_peer_refusal(it.lanes, 0), 0);
    lanes_peer_is(it.lanes, 0, (struct node_id){1});
    addresses[0].port ^= 1;
    addresses[0].name[0] = addresses[0].name[0] ? '.' : '\0';
    assert_int_equal(lanes_peer_move(it.lanes, 0, addresses, 2), 0);
    ask(1, OP_MKDIR, 0);
    wait_done(2);
    assert_int_equal(it.calls[1].result, 0);
    lanes_stats(it.lanes, &stats);
    assert_int_equal(stats.connected_count, 1);
}

static bool is_said_now(void *words) {
    return strstr(it.said, words);
}

/* An address that has come round to the node itself; another one of the peer's is its. */
static void a_node_does_not_call_itself(void **state) {
    char own_address[] = "does not answer, and is tried again: the address is this node's own";
    struct lane_stats stats;

    (void)state;
    it.node = 1;
    gate_begin(9);
    lanes_begin(9);
    /* Beside other work one may end before it has come there. */
    for (uint32_t count = 0; !is_said_now(own_address); count++) {
        assert_true(count < 20);
        ask(count, OP_MKDIR, 0)->deadline_ns = env_now_ns(it.env) + 50 * NS_PER_MS;
        wait_done(count + 1);
        assert_int_equal(it.calls[count].result, -ERR_TIMED_OUT);
    }
    /* These lanes have another life than the gate, so that says a line, too. */
    assert_non_null(strstr(it.said, "it says that it is node 1, which is this one"));
    assert_int_equal(it.ran_count, 0);
    assert_int_equal(lanes_peer_refusal(it.lanes, 0), 0); /* It may be elsewhere. */
    lanes_stats(it.lanes, &stats);
    assert_int_equal(stats.connected_count, 0);
}

static void a_log_that_is_here_needs_no_lane(void **state) {
    struct lane_stats stats;

    (void)state;
    it.serves_itself = true;
    lanes_begin(9);
    ask(0, OP_MKDIR, 0);
    wait_done(1);
    assert_int_equal(it.calls[0].result, 0);
    lanes_stats(it.lanes, &stats);
    assert_int_equal(stats.connected_count, 0);
}

/* What a thread without lanes calls, and what one leaves behind, goes on by those of the home. */
static void nobody_s_call_is_lost_with_its_thread(void **state) {
    uint32_t count = 20;
    struct lane_thread *left;

    (void)state;
    it.keeps = true;
    gate_begin(9);
    lanes_begin(9);
    it.holds = true;
    for (uint32_t i = 0; i < count; i++) {
        ask(i, OP_MKDIR, i % 5 ? 0 : 5000);
    }
    run_until(is_held, &count);
    ask(count++, OP_MKDIR, 0); /* It is on no connection yet. */
    left = TAKE_PTR(it.thread);
    lane_thread_free(left);
    ask(count++, OP_MKDIR, 0);
    it.holds = false;
    answer_held();
    assert_int_equal(it.done_count, 0);
    thread_begin();
    lanes_set_home(it.lanes, it.thread);
    wait_done(count);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(it.calls[i].result, 0);
    }
    lane_thread_free(TAKE_PTR(it.thread));
    ask(count++, OP_MKDIR, 0);
    while (worker_run_one(&it.worker)) {
    }
    assert_int_equal(it.done_count, count);
    assert_int_equal(it.calls[count - 1].result, -ERR_CLOSED);
}

/* Its number among threads is that of one that has left. */
static void a_thread_may_follow_another(void **state) {
    (void)state;
    gate_begin(9);
    lanes_begin(9);
    for (uint32_t i = 0; i < 4; i++) {
        ask(i, OP_MKDIR, 0);
        wait_done(i + 1);
        assert_int_equal(it.calls[i].result, 0);
        lane_thread_free(TAKE_PTR(it.thread));
        thread_begin();
    }
    assert_null(strstr(it.said, "does not answer"));
}

static bool is_unwanted(void *context) {
    return *(const bool *)context;
}

static struct call *ask_until(uint32_t number, uint16_t opcode, bool *unwanted) {
    it.calls[number].unwanted = is_unwanted;
    it.calls[number].unwanted_context = unwanted;
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

static bool is_away(void *context) {
    (void)context;
    return rpc_is_away(it.rpc, log_served);
}

/* Who is not wanted any more ends once its server is known to be away, and nobody else does. */
static void what_nobody_wants_ends_when_the_server_is_away(void **state) {
    bool wanted = false;
    bool unwanted = true;
    uint32_t count = 2;

    (void)state;
    gate_begin(9);
    lanes_begin(9);
    it.holds = true;
    ask_until(0, OP_MKDIR, &unwanted);
    ask_until(1, OP_GETATTR, &unwanted);
    run_until(is_held, &count);
    for (int i = 0; i < 50; i++) {
        turn(); /* It lives, if slowly. */
    }
    assert_int_equal(it.done_count, 0);
    assert_false(rpc_is_away(it.rpc, log_served));
    it.holds = false;
    server_goes();
    wait_done(2);
    assert_int_equal(it.calls[0].result, 0);
    assert_int_equal(it.calls[1].result, 0);

    ask_until(2, OP_MKDIR, &wanted);
    ask_until(3, OP_MKDIR, &unwanted);
    ask_until(4, OP_GETATTR, &unwanted);
    wait_done(4);
    assert_int_equal(it.calls[3].result, -ERR_INTERRUPTED);
    assert_int_equal(it.calls[4].result, -ERR_INTERRUPTED);
    assert_true(rpc_is_away(it.rpc, log_served));
    assert_true(rpc_is_away(it.rpc, (struct log_id){0}));
    ask_until(6, OP_MKDIR, &unwanted); /* At once, while 2 is what the lane tries for. */
    assert_int_equal(it.done_count, 5);
    assert_int_equal(it.calls[6].result, -ERR_INTERRUPTED);
    it.ran_count = 0;
    gate_begin(9);
    wait_done(6);
    assert_int_equal(it.calls[2].result, 0);
    assert_int_equal(it.ran_count, 1);
    assert_false(rpc_is_away(it.rpc, log_served));

    server_goes();
    ask_until(5, OP_MKDIR, &wanted);
    run_until(is_away, NULL);
    wanted = true;
    wait_done(7);
    assert_int_equal(it.calls[5].result, -ERR_INTERRUPTED);
}

int main(void) {
    static struct way without_ring = {.without_ring = true};
    static struct way plain = {.by_tcp = true};
    static struct way encrypted = {.by_tcp = true, .encryption = LINK_ENCRYPTED_ALWAYS};
    const struct CMUnitTest tests[] = {
        LANE_WAYS(what_is_asked_is_answered),
        LANE_WAYS(bulk_goes_and_comes),
        LANE_WAYS(many_at_once_all_end),
        LANE_WAYS(what_may_wait_goes_with_the_next),
        LANE_WAYS(nobody_there_is_waited_for),
        LANE_WAYS(a_server_that_comes_back_is_asked_again),
        LANE_WAYS(what_a_request_says_stays),
        LANE_WAYS(who_gives_up_a_mutation_replaces_the_connection),
        LANE_WAYS(a_lane_may_be_idle),
        LANE_WAYS(another_cluster_is_refused),
        LANE_WAYS(a_process_that_is_silent_is_given_up),
        LANE_WAYS(a_lane_that_says_nothing_for_long_is_let_go),
        LANE_WAYS(what_lay_unread_is_not_run_late),
        LANE_WAYS(a_gate_may_be_left_as_it_is),
        LANE_WAYS(callers_may_ask_while_others_are_told),
        LANE_WAYS(a_log_is_asked_for_where_it_is),
        LANE_WAYS(only_who_is_meant_is_asked),
        LANE_WAYS(a_node_does_not_call_itself),
        LANE_WAYS(nobody_s_call_is_lost_with_its_thread),
        LANE_WAYS(a_thread_may_follow_another),
        LANE_WAYS(what_nobody_wants_ends_when_the_server_is_away),
        LANE_WAY(a_log_that_is_here_needs_no_lane, "", plain),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
