/* Floors that an idle session tells a group by themselves. */
#include "unit.h"
#include "meta_bench.h"

static void mkdir_prepare(struct meta_bench *bench, const char *name, struct call *call) {
    bench_prepare(bench, 0, OP_MKDIR, call);
    call->request.mkdir.parent = INO_ROOT;
    call->request.mkdir.name = (struct bytes){(const uint8_t *)name, 1};
    call->request.mkdir.mode = 0755;
}

static uint32_t kept(const struct meta_bench *bench) {
    return kv_outcomes_of(group_kv(bench->group), (struct session_id){bench->sessions[0].id});
}

/* What an idle session no longer awaits goes, by the floor in the head; a copy that comes behind it
 * is refused, also after a kill, and changes nothing. Who is not attached raises nothing. */
static void test_floor_of_an_idle_session(void **state) {
    const struct bench_options options = {.seed = 12};
    struct meta_bench *bench = bench_new(&options);
    struct call call, late, floor;

    (void)state;
    mkdir_prepare(bench, "a", &late);
    call = late;
    assert_int_equal(bench_run(bench, &call), 0);
    assert_int_equal(kept(bench), 1);
    bench_prepare(bench, 0, OP_SESSION_FLOOR, &floor);
    floor.header.floor = late.header.sequence + 1;
    call = floor;
    call.header.incarnation++;
    assert_int_equal(bench_run(bench, &call), -ERR_FENCED);
    assert_int_equal(kept(bench), 1);
    call = floor;
    assert_int_equal(bench_run(bench, &call), 0);
    assert_int_equal(kept(bench), 0);
    call = late;
    assert_int_equal(bench_run(bench, &call), -ERR_OUTDATED);
    bench_restart(bench, false);
    call = floor;
    call.header.floor += 1000;
    assert_int_equal(bench_run(bench, &call), -ERR_STALE_TERM);
    bench_attach(bench, 0);
    call = late;
    call.header.term = 0;
    assert_int_equal(bench_run(bench, &call), -ERR_OUTDATED);
    mkdir_prepare(bench, "b", &call); /* below the floor that was refused */
    assert_int_equal(bench_run(bench, &call), 0);
    bench_free(bench);
}

/* A request that is given up before it comes is not run behind the floor. */
static void test_floor_before_its_request(void **state) {
    const struct bench_options options = {.seed = 13};
    struct meta_bench *bench = bench_new(&options);
    struct call call, floor, look;

    (void)state;
    mkdir_prepare(bench, "a", &call);
    for (int power = 0; power < 2; power++) {
        bench_prepare(bench, 0, OP_SESSION_FLOOR, &floor);
        floor.header.floor = call.header.sequence + 1;
        assert_int_equal(bench_run(bench, &floor), 0);
        call.header.term = floor.header.term;
        assert_int_equal(bench_run(bench, &call), -ERR_OUTDATED);
        bench_prepare(bench, 0, OP_LOOKUP, &look);
        look.request.lookup.parent = INO_ROOT;
        look.request.lookup.name = (struct bytes){(const uint8_t *)"a", 1};
        assert_int_equal(bench_run(bench, &look), -ERR_NOT_FOUND);
        bench_restart(bench, power);
        bench_attach(bench, 0);
    }
    bench_free(bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_floor_of_an_idle_session),
        cmocka_unit_test(test_floor_before_its_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
