/* What comes beside a stop, and beside the answers of a sync point: reads from disk, one more sync
 * point, a failure. */
#include "unit.h"
#include "kv/kv_internal.h"
#include "kv_edge.h"

enum { SEEDS = 40 };

static struct kv_base_ops ops;
static bool cold, damaged;
static struct kv_base_commit *held;       /* the commit that the base has not answered yet */
static struct edge *flushed_by_line;      /* whose I/O ends while a line is logged */
static struct edge *told;                 /* whose waiter's owner goes on writing */
static uint32_t syncs_begun, syncs_ended; /* of the owner's data */

static bool is_cold(struct kv_base *base) {
    (void)base;
    return cold;
}

static int get(struct kv_base *base, const struct kv_key *key, struct bytes *ret_value) {
    return damaged ? -ERR_CORRUPT : kv_mem_ops.get(base, key, ret_value);
}

static void commit_hold(struct kv_base *base, struct kv_base_commit *commit) {
    (void)base;
    held = commit;
}

static void data_sync(void *context, uint64_t cut) {
    (void)context;
    (void)cut;
    syncs_begun++;
}

static void flush_at_line(void *context, const char *line) {
    (void)context;
    (void)line;
    while (flushed_by_line && memory_env_pending(flushed_by_line->world) > 0) {
        (void)memory_env_pump(flushed_by_line->world, 8);
    }
}

static void stopped(void *context, int result) {
    *(int *)context = result;
}

/* An engine whose base is `ops`, which the test may change. */
static struct edge *edge_of_ops(uint64_t seed) {
    struct edge *edge = edge_new(seed);

    cold = false;
    damaged = false;
    ops = kv_mem_ops;
    ops.is_cold = is_cold;
    ops.get = get;
    edge->options.base = &ops;
    edge_kill(edge);
    assert_int_equal(edge_open(edge), 0);
    return edge;
}

static void put_sealed(struct edge *edge, uint64_t id) {
    assert_int_equal(edge_put(edge, KV_CLASS_CONTROL, id, 8), 0);
    (void)kv_seal(edge->kv);
}

/* Who still reads while the engine stops: a row comes from disk beside the stop's own writes. */
static void stop_beside_read(uint64_t seed) {
    struct edge *edge = edge_of_ops(seed);
    struct kv_key key = edge_key(7);
    struct bytes value;
    int result = 1;

    put_sealed(edge, 1);
    kv_stop_start(edge->kv, stopped, &result);
    for (int i = 0; i < EDGE_TURNS_MAX && result == 1; i++) {
        if (edge->kv->stop_stage == STOP_FLUSH && !cold) {
            cold = true;
            assert_int_equal(kv_get(edge->kv, &key, &value), -ERR_PENDING);
        }
        (void)memory_env_pump(edge->world, 1);
        kv_step(edge->kv);
    }
    assert_int_equal(result, 0);
    assert_true(cold);
    assert_true(kv_is_idle(edge->kv));
    edge_free(edge);
}

static void test_read_beside_stop(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        stop_beside_read(seed);
    }
}

static void step_once(struct edge *edge) {
    (void)memory_env_pump(edge->world, 1);
    kv_step(edge->kv);
    if (syncs_ended < syncs_begun) {
        syncs_ended++;
        kv_data_synced(edge->kv, 0);
    }
}

/* Steps until a checkpoint waits for its commit, and nothing else goes on. */
static void step_to_commit(struct edge *edge) {
    for (int i = 0; i < EDGE_TURNS_MAX; i++) {
        step_once(edge);
        if (held && kv_sync_is_idle(edge->kv) && !edge->kv->sync.wanted) {
            return;
        }
    }
    fail_msg("it never commits");
}

/* Steps until the disk log is being flushed. */
static void step_to_flush(struct edge *edge) {
    for (int i = 0; i < EDGE_TURNS_MAX && edge->kv->sync.stage != SYNC_FLUSH; i++) {
        step_once(edge);
    }
    assert_int_equal(edge->kv->sync.stage, SYNC_FLUSH);
}

/* A stop asks for a sync point while one is flushed, and that one ends when the step has looked for
 * it already, in the moment in which the checkpoint hears that the disk is full. */
static void test_sync_point_beside_stop(void **state) {
    struct edge *edge = edge_of_ops(1);
    int result = 1;

    (void)state;
    ops.commit = commit_hold;
    edge->options.hooks.data_sync = data_sync;
    edge->options.log = flush_at_line;
    edge_kill(edge);
    assert_int_equal(edge_open(edge), 0);
    put_sealed(edge, 1);
    kv_checkpoint_want(edge->kv);
    step_to_commit(edge);
    put_sealed(edge, 2);
    kv_sync_want(edge->kv);
    step_to_flush(edge);
    kv_stop_start(edge->kv, stopped, &result);
    held->result = -ERR_NO_SPACE;
    held->done(held);
    flushed_by_line = edge;
    kv_step(edge->kv);
    flushed_by_line = NULL;
    for (int i = 0; i < EDGE_TURNS_MAX && result == 1; i++) {
        (void)memory_env_pump(edge->world, 1);
        kv_step(edge->kv);
        if (result == 1 && syncs_ended < syncs_begun && i % 10 == 9) {
            syncs_ended++;
            kv_data_synced(edge->kv, 0);
        }
    }
    assert_int_equal(result, 0);
    assert_int_equal(syncs_ended, syncs_begun);
    edge_free(edge);
}

static int results[2];
static struct kv_waiter waiters[2];

static void second_done(struct kv_waiter *waiter, int result) {
    (void)waiter;
    results[1] = result;
}

/* It is durable; its owner goes on with a row that the base has damaged. */
static void first_done(struct kv_waiter *waiter, int result) {
    const struct kv_need need = edge_need(8);
    struct kv_key key = edge_key(9);
    struct kv_grant grant;

    (void)waiter;
    results[0] = result;
    damaged = true;
    assert_int_equal(kv_admit(told->kv, KV_CLASS_CONTROL, &need, &grant), 0);
    kv_begin(told->kv, &grant);
    assert_int_equal(kv_patch(told->kv, &key, 0, (struct bytes){edge_content, 8}), 0);
    (void)kv_commit(told->kv);
}

/* Two wait, and what the first one does when it is told stops the log: the second one is told. */
static void test_failure_beside_answers(void **state) {
    struct edge *edge = edge_of_ops(2);

    (void)state;
    told = edge;
    results[0] = results[1] = 1;
    waiters[0].done = first_done;
    waiters[1].done = second_done;
    put_sealed(edge, 1);
    kv_sync(edge->kv, &waiters[0], kv_position(edge->kv));
    kv_step(edge->kv);
    put_sealed(edge, 2);
    kv_sync(edge->kv, &waiters[1], kv_position(edge->kv));
    for (int i = 0; i < 100; i++) {
        (void)memory_env_pump(edge->world, 1);
        kv_step(edge->kv);
    }
    assert_int_equal(results[0], 0);
    assert_int_equal(results[1], -ERR_CORRUPT);
    assert_int_equal(kv_failure(edge->kv), -ERR_CORRUPT);
    edge_free(edge);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read_beside_stop),
        cmocka_unit_test(test_sync_point_beside_stop),
        cmocka_unit_test(test_failure_beside_answers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
