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

int main(void) {
    const struct CMUnitTest tests[] = {TEST(one_that_was_evicted_starts_again)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
