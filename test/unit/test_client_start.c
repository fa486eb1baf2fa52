/* A start that takes long, and one behind a start that has failed. */
#include "client_bench.h"

/* A client of its own on the bench's servers; the bench's own is idle. */
struct starter {
    struct bench *bench;
    struct shoal_client *client;
    struct rpc *rpc;
    int started, stopped;
};

static uint32_t begun_again;

static void note_again(void *context) {
    (void)context;
    begun_again++;
}

static void run_all(struct starter *starter) {
    while (worker_run_one(&starter->bench->cluster.worker)) {
    }
}

static void starter_open(struct starter *starter, struct bench *bench) {
    const struct rpc_options rpc = {.transport = &transport_inproc_ops,
                                    .transport_context = bench->cluster.logs,
                                    .env = bench->cluster.env,
                                    .resend_ns = NS_PER_S,
                                    .logs_max = 16};

    *starter = (struct starter){.bench = bench, .started = 1, .stopped = 1};
    begun_again = 0;
    assert_int_equal(rpc_new(&rpc, &starter->rpc), 0);
    const struct client_options options = {.env = bench->cluster.env,
                                           .rpc = starter->rpc,
                                           .incarnation = 10,
                                           .origin = "/other",
                                           .began_again = note_again,
                                           .request_timeout_ns = 120 * NS_PER_S};
    assert_int_equal(client_new(&options, &starter->client), 0);
}

static void starter_close(struct starter *starter) {
    client_free(starter->client);
    rpc_free(starter->rpc);
}

static void starter_start(struct starter *starter) {
    starter->started = 1;
    client_start(starter->client, note_result, &starter->started);
    run_all(starter);
}

static void starter_stop(struct starter *starter) {
    client_stop(starter->client, note_result, &starter->stopped);
    run_all(starter);
}

/* So many seconds. */
static void starter_tick(struct starter *starter, uint32_t seconds) {
    for (uint32_t i = 0; i < 10 * seconds; i++) {
        toy_cluster_pass(&starter->bench->cluster, NS_PER_S / 10);
        client_tick(starter->client);
        run_all(starter);
    }
}

static void refuse_attachment(struct bench *bench, int result) {
    bench->cluster.mdt.fail_opcode = OP_SESSION_ATTACH;
    bench->cluster.mdt.fail_result = result;
    bench->cluster.mdt.fail_count = 1;
}

static uint32_t renewals(const struct starter *starter) {
    return starter->bench->cluster.manager.seen[OP_SESSION_RENEW];
}

static void test_one_that_was_evicted_starts_again(void **state) {
    struct starter starter;

    starter_open(&starter, *state);
    refuse_attachment(*state, -ERR_FENCED);
    starter_start(&starter);
    assert_int_equal(starter.started, -ERR_FENCED);
    starter_start(&starter);
    assert_int_equal(starter.started, 0);
    assert_false(client_is_fenced(starter.client));
    starter_tick(&starter, 5);
    assert_int_equal(begun_again, 0);
    assert_true(renewals(&starter) > 0);
    starter_stop(&starter);
    assert_int_equal(starter.stopped, 0);
    starter_close(&starter);
}

/* Longer than the manager waits for a word. */
static void test_one_that_waits_is_heard(void **state) {
    struct bench *bench = *state;
    struct starter starter;

    starter_open(&starter, bench);
    bench->cluster.mdt.hold = true;
    starter_start(&starter);
    starter_tick(&starter, 40);
    assert_int_equal(starter.started, 1);
    assert_in_range(renewals(&starter), 15, 20);
    bench->cluster.mdt.hold = false;
    toy_release(&bench->cluster.mdt, UINT32_MAX);
    run_all(&starter);
    assert_int_equal(starter.started, 0);
    starter_stop(&starter);
    assert_int_equal(starter.stopped, 0);
    starter_close(&starter);
}

/* Also while it waits for its first map. */
static void test_one_without_a_map_is_heard(void **state) {
    struct bench *bench = *state;
    struct toy_server *manager = &bench->cluster.manager;

    for (int stops = 0; stops < 2; stops++) {
        struct starter starter;
        uint32_t attached = bench->cluster.mdt.seen[OP_SESSION_ATTACH];

        starter_open(&starter, bench);
        manager->hold = true;
        starter_start(&starter);
        toy_release(manager, 1); /* It has begun. */
        run_all(&starter);
        starter_tick(&starter, 5);
        assert_int_equal(manager->held_count, 2);
        if (stops) {
            starter_stop(&starter);
            assert_int_equal(starter.stopped, 1);
        }
        manager->hold = false;
        toy_release(manager, UINT32_MAX);
        run_all(&starter);
        assert_int_equal(starter.started, stops ? 1 : 0);
        assert_int_equal(bench->cluster.mdt.seen[OP_SESSION_ATTACH], attached + !stops);
        if (!stops) {
            starter_stop(&starter);
        }
        assert_int_equal(starter.stopped, 0);
        starter_close(&starter);
    }
}

/* A renewal is under way: the start ends, or the stop, when it is answered. */
static void starter_renews(struct starter *starter, struct bench *bench) {
    starter_open(starter, bench);
    bench->cluster.mdt.hold = true;
    starter_start(starter);
    bench->cluster.manager.hold = true;
    starter_tick(starter, 5);
    assert_int_equal(bench->cluster.manager.held_count, 1);
    assert_int_equal(bench->cluster.mdt.held_count, 1);
}

static void server_goes_on(struct starter *starter, struct toy_server *server) {
    server->hold = false;
    toy_release(server, UINT32_MAX);
    run_all(starter);
}

static void test_a_start_that_fails_awaits_its_renewal(void **state) {
    struct bench *bench = *state;
    struct starter starter;

    starter_renews(&starter, bench);
    refuse_attachment(bench, -ERR_IO);
    server_goes_on(&starter, &bench->cluster.mdt);
    assert_int_equal(starter.started, 1);
    server_goes_on(&starter, &bench->cluster.manager);
    assert_int_equal(starter.started, -ERR_IO);
    starter_start(&starter);
    assert_int_equal(starter.started, 0);
    starter_stop(&starter);
    assert_int_equal(starter.stopped, 0);
    starter_close(&starter);
}

static void test_a_stop_awaits_a_renewal(void **state) {
    struct bench *bench = *state;
    uint32_t ends = bench->cluster.manager.seen[OP_SESSION_END];

    for (uint32_t first = 0; first < 2; first++) {
        struct toy_server *servers[] = {&bench->cluster.mdt, &bench->cluster.manager};
        struct starter starter;

        starter_renews(&starter, bench);
        starter_stop(&starter);
        server_goes_on(&starter, servers[first]);
        assert_int_equal(starter.stopped, 1);
        server_goes_on(&starter, servers[1 - first]);
        assert_int_equal(starter.stopped, 0);
        assert_int_equal(starter.started, 1);
        assert_int_equal(bench->cluster.manager.seen[OP_SESSION_END], ends + first + 1);
        starter_close(&starter);
    }
}

/* The begin's call lies in the client: nobody hears of the stop, and frees that, before it is
 * answered; and a session that began is ended. */
static void test_a_stop_awaits_a_begin(void **state) {
    struct bench *bench = *state;
    struct toy_server *manager = &bench->cluster.manager;

    for (int fails = 0; fails < 2; fails++) {
        uint32_t ends = manager->seen[OP_SESSION_END];
        struct starter starter;

        starter_open(&starter, bench);
        manager->hold = true;
        starter_start(&starter);
        assert_int_equal(manager->held_count, 1);
        assert_false(call_is_unwanted(manager->held[0]));
        starter_stop(&starter);
        assert_true(call_is_unwanted(manager->held[0])); /* It ends where the manager is away. */
        assert_int_equal(starter.stopped, 1);
        manager->fail_opcode = OP_SESSION_BEGIN;
        manager->fail_result = -ERR_TOO_MANY_SESSIONS;
        manager->fail_count = fails;
        server_goes_on(&starter, manager);
        assert_int_equal(starter.started, 1);
        assert_int_equal(starter.stopped, 0);
        assert_int_equal(manager->seen[OP_SESSION_END], ends + !fails);
        starter_close(&starter);
    }
}

/* The answer to the start's call lies there when the stop comes: each is told of its own. */
static void test_a_stop_behind_an_answer(void **state) {
    struct bench *bench = *state;
    struct toy_server *manager = &bench->cluster.manager;
    struct starter starter;

    starter_open(&starter, bench);
    manager->hold = true;
    starter_start(&starter);
    manager->fail_opcode = OP_SESSION_BEGIN;
    manager->fail_result = -ERR_TOO_MANY_SESSIONS;
    manager->fail_count = 1;
    manager->hold = false;
    toy_release(manager, UINT32_MAX);
    starter_stop(&starter);
    assert_int_equal(starter.started, -ERR_TOO_MANY_SESSIONS);
    assert_int_equal(starter.stopped, 0);
    starter_close(&starter);
}

/* Which a renewal says, and the target has not heard of: the next one begins at once. */
static void test_one_that_is_evicted_meanwhile_begins_again(void **state) {
    struct bench *bench = *state;
    struct starter starter;

    starter_open(&starter, bench);
    bench->cluster.mdt.hold = true;
    starter_start(&starter);
    bench->cluster.manager.fail_opcode = OP_SESSION_RENEW;
    bench->cluster.manager.fail_result = -ERR_FENCED;
    bench->cluster.manager.fail_count = 1;
    starter_tick(&starter, 3);
    server_goes_on(&starter, &bench->cluster.mdt);
    assert_int_equal(starter.started, 0);
    assert_int_equal(begun_again, 0);
    starter_tick(&starter, 3);
    assert_int_equal(begun_again, 1);
    assert_false(client_is_fenced(starter.client));
    starter_stop(&starter);
    assert_int_equal(starter.stopped, 0);
    starter_close(&starter);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(one_that_was_evicted_starts_again), TEST(one_that_waits_is_heard),
        TEST(one_without_a_map_is_heard),        TEST(a_start_that_fails_awaits_its_renewal),
        TEST(a_stop_awaits_a_renewal),           TEST(a_stop_awaits_a_begin),
        TEST(a_stop_behind_an_answer),           TEST(one_that_is_evicted_meanwhile_begins_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
