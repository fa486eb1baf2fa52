/* The laws give their closed values, fits find what made the points, queues are bounded. */

#include "unit.h"
#include "base/prng.h"
#include "near.h"
#include "plan_defaults.h"
#include "planner/least_squares.h"
#include "planner/scaling.h"

static struct scaling_inputs in;
static struct scaling_outputs out;

static int reset(void **state) {
    (void)state;
    plan_defaults(&plan_scaling, &(struct data){0}, &in);
    return 0;
}

static double usl(double n, double alone, double contention, double coherency) {
    return alone * n / (1 + contention * (n - 1) + coherency * n * (n - 1));
}

/* 1, 2, 4, 8, ... clients. */
static struct points points_of(double alone, double contention, double coherency) {
    struct points points = {.count = 8};

    for (uint32_t i = 0; i < points.count; i++) {
        points.x[i] = 1 << i;
        points.y[i] = usl(points.x[i], alone, contention, coherency);
    }
    return points;
}

static void test_fit_finds_what_made_the_points(void **state) {
    static const double shares[] = {0, 1e-4, 0.02, 0.3};

    (void)state;
    for (size_t a = 0; a < ARRAY_SIZE(shares); a++) {
        for (size_t b = 0; b < ARRAY_SIZE(shares); b++) {
            struct points points = points_of(12.5, shares[a], shares[b] / 10);
            struct fit fit = least_squares_fit_usl(&points);

            assert_null(fit.cannot);
            assert_near(fit.alone, 12.5, 1e-9);
            assert_near(fit.contention, shares[a], 1e-9);
            assert_near(fit.coherency, shares[b] / 10, 1e-9);
            assert_true(fit.error == 0);
        }
        struct points points = points_of(20, shares[a], 0);
        struct fit fit = least_squares_fit_amdahl(&points);

        assert_near(fit.alone, 20, 1e-9);
        assert_near(fit.contention, shares[a], 1e-9);
        assert_true(fit.coherency == 0 && fit.error == 0);
    }
}

/* Better than linear: a would be negative, so it is 0; so would b, so only B is left. */
static void test_fit_of_negative_coefficients(void **state) {
    struct points points = {.count = 4, .x = {1, 2, 4, 8}, .y = {1, 2.1, 4.4, 9.2}};

    (void)state;
    struct fit fit = least_squares_fit_usl(&points);
    assert_true(fit.contention == 0 && fit.coherency == 0);
    assert_true(fit.alone > 1 && fit.alone < 1.15 && fit.error > 0.01);

    /* Linear first, then a fall: b alone remains. */
    struct points fall = {.count = 5, .x = {1, 2, 4, 8, 16}, .y = {1, 2.1, 4.2, 8, 10}};
    fit = least_squares_fit_usl(&fall);
    assert_true(fit.contention == 0 && fit.coherency > 0);
}

/* No other coefficients are closer than those found. */
static void test_fit_is_least(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct points points = points_of(10, 0.02, 0.0005);
        struct prng prng;

        prng_init(&prng, seed);
        for (uint32_t i = 0; i < points.count; i++) {
            points.y[i] *= 0.9 + (double)prng_below(&prng, 1000) / 5000;
        }
        struct fit fit = least_squares_fit_usl(&points);
        double least = INFINITY;
        double found = 0;

        for (int step = 0; step <= 26; step++) {
            double alone = fit.alone * (1 + 0.01 * (step % 3 - 1));
            double contention = fmax(0, fit.contention + 0.001 * (step / 3 % 3 - 1));
            double coherency = fmax(0, fit.coherency + 1e-5 * (step / 9 - 1));
            double sum = 0;

            for (uint32_t i = 0; i < points.count; i++) {
                double off = points.y[i] / usl(points.x[i], alone, contention, coherency) - 1;

                sum += off * off;
            }
            least = fmin(least, sum);
            found = step == 13 ? sum : found; /* nothing changed */
        }
        if (found > least * (1 + 1e-12)) {
            fail_msg("seed %u: %.17g is not the least, %.17g is", (unsigned)seed, found, least);
        }
    }
}

static void test_too_few_points(void **state) {
    (void)state;
    in.points = (struct points){.count = 3, .x = {4, 8, 8}, .y = {4, 7, 7.5}};
    scaling_plan(NULL, &in, &out);
    assert_null(out.amdahl.cannot);
    assert_cannot(out.usl, "that takes points of three numbers of clients");
    assert_cannot(out.usl_peak, "that takes points of three numbers of clients");
    in.points.x[0] = 8;
    scaling_plan(NULL, &in, &out);
    assert_cannot(out.amdahl, "that takes points of two numbers of clients");
    assert_cannot(out.amdahl_limit, "that takes points of two numbers of clients");
    in.points.count = 0;
    scaling_plan(NULL, &in, &out);
    assert_cannot(out.usl_error, "no points are given");
    assert_figure(out.usl_alone, in.link, 0);
}

static void test_no_serial_share_is_more_than_all(void **state) {
    (void)state;
    in.points = (struct points){.count = 3, .x = {1, 2, 4}, .y = {100, 60, 30}};
    scaling_plan(NULL, &in, &out);
    assert_cannot(out.amdahl_serial, "it falls with more clients, which no serial share explains");
    assert_null(out.usl.cannot);
    in.points = (struct points){.count = 3, .x = {1, 2, 4}, .y = {100, 100, 100}};
    scaling_plan(NULL, &in, &out);
    assert_figure(out.amdahl_serial, 1, 1e-9);
}

static void test_points_are_in_gigabytes(void **state) {
    (void)state;
    in.points = points_of(25, 0.01, 1e-4);
    in.clients = 64;
    scaling_plan(NULL, &in, &out);
    assert_figure(out.usl_alone, 25e9, 1e-9);
    assert_figure(out.usl, usl(64, 25e9, 0.01, 1e-4), 1e-9);
    assert_figure(out.usl_peak_clients, sqrt(0.99 / 1e-4), 1e-9);
}

static void test_laws_at_their_ends(void **state) {
    (void)state;
    /* One client disturbs nobody. */
    in.clients = 1;
    scaling_plan(NULL, &in, &out);
    assert_figure(out.amdahl, in.link, 0);
    assert_figure(out.usl, in.link, 0);

    /* Amdahl's ceiling is B / f; without a serial share there is none. */
    in.clients = 1e7;
    in.serial = 0.01;
    in.metadata_targets = 4;
    scaling_plan(NULL, &in, &out);
    assert_figure(out.amdahl_limit, in.link / 0.0025, 1e-12);
    assert_figure(out.amdahl, out.amdahl_limit.value, 1e-4);
    assert_figure(out.amdahl_gain, 4, 1e-12);
    in.serial = 0;
    in.contention = 0;
    in.usl_coherency = 0;
    scaling_plan(NULL, &in, &out);
    assert_cannot(out.amdahl_limit, "nothing is serial, so there is no limit");
    assert_cannot(out.quoted_limit, "without contention there is no limit");
    assert_cannot(out.usl_peak_clients, "without coherency there is no peak");
    assert_figure(out.amdahl, out.linear.value, 0);
    in.serial = 1;
    scaling_plan(NULL, &in, &out);
    assert_cannot(out.quoted_gain, "everything is serial");

    /* Nothing beats the USL's peak. */
    in.usl_contention = 0.05;
    in.usl_coherency = 0.001;
    for (in.clients = 1; in.clients < 200; in.clients++) {
        scaling_plan(NULL, &in, &out);
        assert_true(out.usl.value <= out.usl_peak.value);
    }
}

static void test_queue(void **state) {
    double before = 0;

    (void)state;
    in.request_time = 1e-3;
    in.rpc_size = 1e6;
    in.target_bandwidth = 5e9;
    for (in.queue_depth = 1; in.queue_depth < 1e4; in.queue_depth *= 2) {
        scaling_plan(NULL, &in, &out);
        assert_true(out.bound.value >= before && out.bound.value <= 5e9);
        /* Little: what is there is what passes, times how long it takes. */
        assert_figure(out.depth, out.bound.value / 1e6 * out.bound_time.value, 1e-12);
        before = out.bound.value;
    }
    assert_figure(out.knee, 5, 1e-12);
    in.queue_depth = 2;
    scaling_plan(NULL, &in, &out);
    assert_figure(out.bound, 2e9, 1e-12);
    assert_non_null(strstr(out.verdict.text,
                           "short: 2 requests at a target leave it idle at times, 5 keep it busy"));

    in.queue_depth = 0;
    in.clients = 128;
    in.stripe_count = 0;
    in.targets = 128;
    scaling_plan(NULL, &in, &out);
    assert_figure(out.streams, 16384, 0);
    assert_figure(out.depth, 1024, 0);
    in.stripe_count = 1000; /* there are 128 */
    scaling_plan(NULL, &in, &out);
    assert_figure(out.streams, 16384, 0);
}

static void test_rpcs(void **state) {
    (void)state;
    scaling_plan(NULL, &in, &out);
    assert_figure(out.osc_advised, 8, 0);
    assert_non_null(strstr(out.osc.text, "default of 8"));
    assert_figure(out.mdc_advised, 8, 0);
    /* A NIC of 25 GB/s over 1 target, with 4 ms and 1 MB a request: 100 in flight. */
    in.stripe_count = 1;
    in.request_time = 4e-3;
    in.rpc_size = 1e6;
    in.client_operations = 40e3;
    scaling_plan(NULL, &in, &out);
    assert_figure(out.osc_alone, 100, 0);
    assert_string_equal(out.osc.text, "lctl set_param osc.*.max_rpcs_in_flight=100");
    assert_figure(out.mdc_advised, 20, 0);
    assert_non_null(strstr(out.mdc.text, "mdc.*.max_rpcs_in_flight=20"));
    /* The limits hold. */
    in.request_time = 1;
    in.operation_time = 1;
    scaling_plan(NULL, &in, &out);
    assert_figure(out.osc_advised, 256, 0);
    assert_figure(out.mdc_advised, 512, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_fit_finds_what_made_the_points, reset),
        cmocka_unit_test_setup(test_fit_of_negative_coefficients, reset),
        cmocka_unit_test_setup(test_fit_is_least, reset),
        cmocka_unit_test_setup(test_no_serial_share_is_more_than_all, reset),
        cmocka_unit_test_setup(test_too_few_points, reset),
        cmocka_unit_test_setup(test_points_are_in_gigabytes, reset),
        cmocka_unit_test_setup(test_laws_at_their_ends, reset),
        cmocka_unit_test_setup(test_queue, reset),
        cmocka_unit_test_setup(test_rpcs, reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
