/* What targets count of each session: by the counters alone, at a metadata group and at an OST. */
#include "unit.h"
#include "meta_bench.h"
#include "ost_world.h"
#include <string.h>

enum { ROWS_MAX = 8, CHUNK = 128 * 1024 };

static struct session_counters rows[ROWS_MAX];

static const struct session_counters *row_of(const struct session_counters_list *list,
                                             uint64_t session) {
    for (uint32_t i = 0; i < MIN(list->count, list->max); i++) {
        if (list->rows[i].session.value == session) {
            return &list->rows[i];
        }
    }
    return NULL;
}

static void test_record(void **state) {
    struct session_counters counters = {.session = {5}};
    struct call call = {.header = {.session = {5}}, .session_counters = &counters};

    (void)state;
    session_counters_record(&call, 0, 30);
    session_counters_record(&call, -ERR_NOT_FOUND, 50);
    session_counters_record(&call, 0, 10);
    assert_int_equal(counters.request_count, 3);
    assert_int_equal(counters.error_count, 1);
    assert_int_equal(counters.total_ns, 90);
    assert_int_equal(counters.largest_ns, 50);
    /* The place is another's by now, or nobody's. */
    counters.session.value = 6;
    session_counters_record(&call, 0, 10);
    assert_null(session_counters_of(&call));
    call.session_counters = NULL;
    session_counters_record(&call, 0, 10);
    assert_int_equal(counters.request_count, 3);
}

static void test_list(void **state) {
    struct session_counters_list list = {.rows = rows, .max = 2};

    (void)state;
    for (uint64_t id = 1; id <= 3; id++) {
        session_counters_add(&list, &(struct session_counters){.session = {id}});
    }
    assert_int_equal(list.count, 3);
    assert_non_null(row_of(&list, 2));
    assert_null(row_of(&list, 3));
}

static struct session_counters_list group_rows(struct meta_bench *bench) {
    struct group_stats stats;

    bench_stats(bench, &stats);
    return stats.clients;
}

static int ask_attributes(struct meta_bench *bench, uint32_t session, uint64_t ino) {
    static struct call call;

    bench_prepare(bench, session, OP_GETATTR, &call);
    call.request.getattr.ino.value = ino;
    return bench_run(bench, &call);
}

static void test_group(void **state) {
    const struct bench_options options = {.seed = 1};
    struct meta_bench *bench = bench_new(&options);
    struct session_counters_list list = group_rows(bench);
    const struct session_counters *row = row_of(&list, bench->sessions[1].id);

    (void)state;
    assert_int_equal(list.count, BENCH_SESSIONS);
    assert_non_null(row);
    assert_int_equal(row->request_count, 0);
    assert_int_equal(ask_attributes(bench, 1, 1), 0);
    assert_int_equal(ask_attributes(bench, 1, 1), 0);
    assert_true(ask_attributes(bench, 1, 77) < 0);
    assert_int_equal(ask_attributes(bench, 2, 1), 0);
    list = group_rows(bench);
    row = row_of(&list, bench->sessions[1].id);
    assert_int_equal(row->request_count, 3);
    assert_int_equal(row->error_count, 1);
    assert_int_equal(row->incarnation, bench->sessions[1].incarnation);
    assert_true(row->largest_ns <= row->total_ns);
    row = row_of(&list, bench->sessions[2].id);
    assert_int_equal(row->request_count, 1);
    assert_int_equal(row->error_count, 0);
    /* A session that has ended is gone; what it still asks is nobody's. */
    bench_evict(bench, bench->sessions[1].id);
    assert_true(ask_attributes(bench, 1, 1) < 0);
    list = group_rows(bench);
    assert_int_equal(list.count, BENCH_SESSIONS - 1);
    assert_null(row_of(&list, bench->sessions[1].id));
    bench_free(bench);
}

static void ost_done(struct ost_stats *stats) {
    *(bool *)stats->context = true;
}

static struct session_counters_list ost_rows(struct ost_world *world) {
    bool done = false;
    struct ost_stats stats = {
        .done = ost_done, .context = &done, .clients = {.rows = rows, .max = ROWS_MAX}};

    ost_stats_start(world->ost, &stats);
    while (!done) {
        ost_world_turn(world);
    }
    return stats.clients;
}

static void ost_attach(struct ost_world *world, uint64_t session, uint32_t node) {
    struct ost_call *call = ost_call_get(world, OP_SESSION_ATTACH);

    call->call.request.session_attach = (struct session_attach_request){
        .session = session, .incarnation = OST_INCARNATION, .node = node};
    call->call.header.session.value = session;
    assert_int_equal(ost_call_run(call), 0);
}

static void test_ost(void **state) {
    static uint8_t data[CHUNK];
    struct ost_place large = {
        .ino = {17}, .generation = 1, .chunk = 2, .chunk_bytes = CHUNK, .size = CHUNK};
    struct ost_place small = large;
    struct ost_world *world = ost_world_new(2);
    struct session_counters_list list;
    const struct session_counters *row;
    char problem[256];

    (void)state;
    small.size = 1000;
    assert_int_equal(ost_world_open(world, problem), 0);
    ost_world_attach(world);
    ost_attach(world, OST_SESSION + 1, 44);
    assert_int_equal(ost_world_write(world, &large, data), 0);
    assert_int_equal(ost_world_write(world, &small, data), 0);
    assert_int_equal(ost_world_read(world, &small, data), 0);
    small.offset = CHUNK;
    assert_int_equal(ost_world_read(world, &small, NULL), -ERR_INVALID);
    list = ost_rows(world);
    assert_int_equal(list.count, 2);
    row = row_of(&list, OST_SESSION);
    assert_int_equal(row->request_count, 4);
    assert_int_equal(row->error_count, 1);
    assert_int_equal(row->written_bytes, CHUNK + 1000);
    assert_int_equal(row->read_bytes, 1000);
    assert_true(row->largest_ns <= row->total_ns);
    row = row_of(&list, OST_SESSION + 1);
    assert_int_equal(row->node, 44);
    assert_int_equal(row->request_count, 0);
    /* Known again after a kill, counted anew; gone when it has ended. */
    ost_world_crash(world, false);
    assert_int_equal(ost_world_open(world, problem), 0);
    small.offset = 0;
    assert_int_equal(ost_world_read(world, &small, data), 0);
    list = ost_rows(world);
    assert_int_equal(row_of(&list, OST_SESSION)->request_count, 1);
    assert_int_equal(row_of(&list, OST_SESSION)->written_bytes, 0);
    assert_int_equal(row_of(&list, OST_SESSION + 1)->node, 44);
    assert_int_equal(ost_world_ended(world, OST_SESSION + 1), 0);
    list = ost_rows(world);
    assert_int_equal(list.count, 1);
    assert_null(row_of(&list, OST_SESSION + 1));
    ost_world_free(world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_record),
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_group),
        cmocka_unit_test(test_ost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
