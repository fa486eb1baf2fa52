/* The simulated world: order of events, deadlines, dropping. */

#include "unit.h"
#include "env/env_sim.h"

struct order {
    struct sim *sim;
    unsigned fired[8];
    unsigned count;
    unsigned dropped;
};

struct order_event {
    struct order *order;
    unsigned number;
};

static void order_fire(void *context) {
    struct order_event *event = context;

    event->order->fired[event->order->count++] = event->number;
}

static void order_drop(void *context) {
    ((struct order_event *)context)->order->dropped++;
}

static void test_events_come_in_time_and_ties_by_lot(void **state) {
    bool seen[2] = {false, false};

    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct order order = {.sim = sim_new(seed)};
        struct order_event events[4];
        const uint64_t delays_ns[4] = {300, 100, 100, 0};

        for (unsigned i = 0; i < 4; i++) {
            events[i] = (struct order_event){&order, i};
            sim_schedule(order.sim, NULL, delays_ns[i], order_fire, &events[i]);
        }
        assert_int_equal(sim_run_until(order.sim, UINT64_MAX, NULL, NULL), SIM_IDLE);
        assert_int_equal(order.count, 4);
        assert_int_equal(order.fired[0], 3);
        assert_int_equal(order.fired[3], 0);
        assert_int_equal(order.fired[1] + order.fired[2], 3);
        seen[order.fired[1] - 1] = true;
        sim_free(order.sim);
    }
    assert_true(seen[0] && seen[1]);
}

static void test_events_of_the_killed_are_dropped(void **state) {
    struct order order = {.sim = sim_new(1)};
    struct sim_process *process = sim_process_new(order.sim, "one");
    struct order_event events[3] = {{&order, 0}, {&order, 1}, {&order, 2}};
    struct sim_event event = {.process = process,
                              .delay_ns = 100,
                              .kind = "test",
                              .run = order_fire,
                              .drop = order_drop,
                              .context = &events[0]};

    (void)state;
    sim_schedule_event(order.sim, &event);
    sim_schedule(order.sim, NULL, 100, order_fire, &events[1]);
    sim_kill(process);
    (void)sim_restart(process);
    sim_schedule(order.sim, process, 200, order_fire, &events[2]);
    assert_int_equal(sim_run_until(order.sim, UINT64_MAX, NULL, NULL), SIM_IDLE);
    assert_int_equal(order.count, 2);
    assert_int_equal(order.fired[0], 1);
    assert_int_equal(order.fired[1], 2);
    assert_int_equal(order.dropped, 1);

    event.delay_ns = UINT64_MAX / 2;
    sim_schedule_event(order.sim, &event);
    sim_free(order.sim);
    assert_int_equal(order.dropped, 2);
}

static bool has_fired(void *context) {
    return ((struct order *)context)->count > 0;
}

static void test_run_until(void **state) {
    struct order order = {.sim = sim_new(1)};
    struct order_event event = {&order, 0};
    uint64_t start_ns = sim_now_ns(order.sim);

    (void)state;
    sim_schedule(order.sim, NULL, 1000, order_fire, &event);
    assert_int_equal(sim_run_until(order.sim, start_ns + 999, has_fired, &order), SIM_DEADLINE);
    assert_int_equal(sim_now_ns(order.sim), start_ns + 999);
    assert_int_equal(sim_run_until(order.sim, start_ns + 2000, has_fired, &order), SIM_DONE);
    assert_int_equal(sim_now_ns(order.sim), start_ns + 1000);
    assert_int_equal(sim_run_until(order.sim, start_ns + 2000, NULL, NULL), SIM_IDLE);
    sim_free(order.sim);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events_come_in_time_and_ties_by_lot),
        cmocka_unit_test(test_events_of_the_killed_are_dropped),
        cmocka_unit_test(test_run_until),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
