/* The checkpoint model: known values, what must never happen, and the ends of its ranges. */

#include "unit.h"
#include "plan_defaults.h"
#include "base/prng.h"
#include "near.h"
#include "planner/checkpoint.h"
#include <math.h>
#include <string.h>

enum { SEED = 5 };

static struct checkpoint_inputs usual(void) {
    return (struct checkpoint_inputs){.params = 70e9,
                                      .bytes_per_parameter = 14,
                                      .nodes = 32,
                                      .gpus_per_node = 8,
                                      .replicas = 1,
                                      .write_bandwidth = 20e9,
                                      .read_bandwidth = 20e9,
                                      .efficiency = 1,
                                      .changed = 1,
                                      .target = 60,
                                      .interval = 1800,
                                      .buffer_bandwidth = 50e9,
                                      .buffer_capacity = 500e9,
                                      .device_mttf = 180e6,
                                      .restart = 300,
                                      .work = 2592000};
}

static struct checkpoint_outputs plan(const struct checkpoint_inputs *in) {
    static const struct data data = {0};
    struct checkpoint_outputs out = {0};

    checkpoint_plan(&data, in, &out);
    return out;
}

static void test_known_values(void **state) {
    (void)state;
    struct checkpoint_inputs in = usual();
    struct checkpoint_outputs out = plan(&in);

    assert_true(out.size.value == 980e9);
    assert_true(out.stall.value == 49);
    assert_near(out.idle.value, 49.0 / 1849, 1e-12);
    /* Young: sqrt(2 * 49 s * 703125 s) */
    assert_near(out.best_young.value, 8301, 1e-4);
    in.deduplicated = 1;
    in.replicas = 8;
    assert_true(plan(&in).written.value == 8 * 980e9);
}

/* Without failures the job takes its work and its checkpoints, and nothing else. */
static void test_no_failures(void **state) {
    (void)state;
    struct checkpoint_inputs in = usual();

    in.device_mttf = 1e12;
    in.gpus_per_node = 1;
    in.nodes = 1;
    struct checkpoint_outputs out = plan(&in);
    assert_near(out.completion.value / (in.work + out.checkpoint_time.value), 1, 1e-6);
}

static void test_async_stalls_for_the_copy(void **state) {
    (void)state;
    struct checkpoint_inputs in = usual();

    in.mode = choice_of(&plan_checkpoint, "mode", "async");
    struct checkpoint_outputs out = plan(&in);
    assert_near(out.stall.value, 980e9 / 32 / 50e9, 1e-12);
    /* A drain that outlasts the interval holds the next checkpoint up. */
    in.write_bandwidth = 0.1e9;
    out = plan(&in);
    assert_near(out.stall.value, out.copy.value + out.drain.value - out.copy.value - 1800, 1e-6);
    assert_non_null(strstr(out.verdict.text, "longer than the interval"));
    in = usual();
    in.mode = choice_of(&plan_checkpoint, "mode", "async");
    /* A buffer for a quarter of it: the other three drain at 20 GB/s before training goes on. */
    in.buffer_capacity = 980e9 / 32 / 4;
    out = plan(&in);
    assert_non_null(strstr(out.verdict.text, "does not fit"));
    assert_near(out.stall.value, 0.75 * 49, 1e-12);
    assert_true(out.overrun.value == 0);
    /* No buffer at all is a checkpoint that waits for the storage. */
    in.buffer_capacity = 0;
    assert_near(plan(&in).stall.value, 49, 1e-12);
    in.write_bandwidth = 0;
    assert_non_null(plan(&in).stall.cannot);
}

static void test_more_is_never_worse(void **state) {
    (void)state;
    struct prng prng;

    prng_init(&prng, SEED);
    for (int i = 0; i < 2000; i++) {
        struct checkpoint_inputs in = usual();

        in.params = pow(10, 6 + (double)(prng_next(&prng) % 7000) / 1000);
        in.nodes = 1 + (double)(prng_next(&prng) % 5000);
        in.write_bandwidth = pow(10, 7 + (double)(prng_next(&prng) % 6000) / 1000);
        in.interval = 1 + (double)(prng_next(&prng) % 100000);
        in.mode = (int)(prng_next(&prng) % 2);
        in.buffer_capacity = pow(10, 6 + (double)(prng_next(&prng) % 9000) / 1000);
        struct checkpoint_inputs better = in;
        better.write_bandwidth *= 1 + (double)(prng_next(&prng) % 1000) / 100;
        struct checkpoint_outputs a = plan(&in);
        struct checkpoint_outputs b = plan(&better);

        assert_true(b.stall.value <= a.stall.value);
        assert_true(b.idle.value <= a.idle.value);
        assert_true(a.idle.value >= 0 && a.idle.value <= 1);
        if (!a.completion.cannot && !b.completion.cannot) {
            assert_true(b.completion.value <= a.completion.value * (1 + 1e-12));
            assert_true(a.completion.value >= in.work);
            assert_true(a.lost_time.value >= -1e-6 * a.completion.value);
        }
    }
}

/* Daly's interval is the best of his own completion time, to within its accuracy. */
static void test_the_best_interval_is_the_best(void **state) {
    (void)state;
    struct checkpoint_inputs in = usual();

    in.nodes = 2000;
    in.interval = plan(&in).best_daly.value;
    double best = plan(&in).completion.value;
    for (double factor = 0.5; factor < 2; factor *= 1.1) {
        struct checkpoint_inputs other = in;

        other.interval *= factor;
        assert_true(plan(&other).completion.value >= best * (1 - 1e-4));
    }
}

static void test_ends(void **state) {
    (void)state;
    struct checkpoint_inputs in = usual();

    in.write_bandwidth = 0;
    assert_string_equal(plan(&in).stall.cannot, "the bandwidth is zero");
    assert_string_equal(plan(&in).idle.cannot, "the bandwidth is zero");
    in = usual();
    in.target = 0;
    assert_non_null(plan(&in).bandwidth_needed.cannot);
    in = usual();
    in.interval = 0;
    assert_non_null(plan(&in).completion.cannot);
    in = usual();
    in.device_mttf = 0;
    assert_non_null(plan(&in).completion.cannot);
    assert_non_null(plan(&in).best_daly.cannot);
    in.device_mttf = 1;
    assert_non_null(plan(&in).completion.cannot);
    in = usual();
    in.benchmark = 1;
    assert_string_equal(plan(&in).stall.cannot, "the data files have no such benchmark");
    in = usual();
    in.work = 0;
    assert_non_null(plan(&in).useful.cannot);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_values),
        cmocka_unit_test(test_no_failures),
        cmocka_unit_test(test_async_stalls_for_the_copy),
        cmocka_unit_test(test_more_is_never_worse),
        cmocka_unit_test(test_the_best_interval_is_the_best),
        cmocka_unit_test(test_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
