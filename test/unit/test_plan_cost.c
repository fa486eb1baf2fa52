/* The cost model: sums that close, break-even as a share, and what cannot be computed. */
#include "unit.h"
#include "planner/cost.h"
#include "plan_defaults.h"
#include <string.h>

static const double hour = 3600;
static const double month = 730 * 3600;

/* 32 GPUs at $1.924, two nodes at $1, 8 % won; nothing else costs. */
static struct cost_inputs plain_inputs(void) {
    return (struct cost_inputs){
        .nodes = 4,
        .gpus_per_node = 8,
        .gpu_price = 1.924 / hour,
        .rented = 1,
        .idle_before = 0.08,
        .storage = choice_of(&plan_cost, "storage", "own"),
        .capacity = 100e12,
        .extra_nodes = 2,
        .extra_price = 1 / hour,
        .fsx_125 = 0.145 / 1073741824.0 / month,
        .write_needed = 1e9,
        .managed_step = 2400 * 1073741824.0,
        .hours_per_month = month,
    };
}

static void close_to(const struct figure *figure, double value) {
    assert_null(figure->cannot);
    assert_true(fabs(figure->value / value - 1) < 1e-9);
}

static void break_even_is_a_share(void **state) {
    (void)state;
    struct cost_inputs in = plain_inputs();
    struct cost_outputs out = {0};

    cost_plan(NULL, &in, &out);
    close_to(&out.gpu_cost, 61.568 / hour);
    close_to(&out.recovered, 0.08 * 61.568 / hour);
    close_to(&out.net, (0.08 * 61.568 - 2) / hour);
    close_to(&out.break_even, 2 / 61.568);
    close_to(&out.overhead_all, out.overhead.value);
    /* Winning just that share leaves nothing. */
    in.idle_before = out.break_even.value;
    cost_plan(NULL, &in, &out);
    assert_true(fabs(out.net.value * hour) < 1e-9);
}

static void payback_earns_what_was_paid(void **state) {
    (void)state;
    struct cost_inputs in = plain_inputs();
    struct cost_outputs out = {0};

    in.raw_per_usable = 1;
    in.drive_price = 333e-12;
    cost_plan(NULL, &in, &out);
    close_to(&out.upfront, 33300);
    close_to(&out.own_month_all, 33300 / 36.0 + 730 * 2);
    close_to(&out.managed_more, out.managed_month.value - out.own_month_all.value);
    close_to(&out.payback, 33300 / (2.92544 * 730));
    close_to(&out.tco_3, 33300 + 36 * 730 * 2);
    close_to(&out.saved_3, 36 * 730 * 2.92544 - 33300);
    close_to(&out.unit_cost, (33300 + 36 * 730 * 2.0) / (36 * month) / 100e12);
    /* Rented storage is not bought. */
    in.storage = choice_of(&plan_cost, "storage", "managed");
    cost_plan(NULL, &in, &out);
    assert_true(out.upfront.value == 0);
}

/* What is bought holds what is stored, however much that is. */
static void flash_follows_capacity(void **state) {
    (void)state;
    struct cost_inputs in = plain_inputs();
    struct cost_outputs out = {0};

    in.raw_per_usable = 1.28;
    in.drive_price = 100e-12;
    cost_plan(NULL, &in, &out);
    close_to(&out.bought, 128e12);
    double unit_cost = out.unit_cost.value - out.own_month.value / (month * in.capacity);
    in.capacity = 300e12;
    cost_plan(NULL, &in, &out);
    close_to(&out.bought, 384e12);
    close_to(&out.bought_cost, 38400);
    double other = out.unit_cost.value - out.own_month.value / (month * in.capacity);
    assert_true(fabs(other / unit_cost - 1) < 1e-9);
}

static void managed_capacity_follows_bandwidth(void **state) {
    (void)state;
    struct cost_inputs in = plain_inputs();
    struct cost_outputs out = {0};

    /* 1.2 TiB of their making, 1,200 GiB, at $0.145: $174 a month. */
    in.capacity = 1;
    in.write_needed = 0;
    in.managed_step = 1200 * 1073741824.0;
    cost_plan(NULL, &in, &out);
    close_to(&out.managed_month, 174);
    /* A month of fewer hours changes what is paid by the hour only. */
    in.hours_per_month = 720 * hour;
    cost_plan(NULL, &in, &out);
    close_to(&out.managed_month, 174);
    close_to(&out.extra_month, 720 * 2);
    in.hours_per_month = month;
    /* 20 GB/s at 125 MB/s a TiB are 160 TiB, however little is stored. */
    in.write_needed = 20e9;
    in.managed_step = 0;
    cost_plan(NULL, &in, &out);
    close_to(&out.managed_capacity, 160 * 1099511627776.0);
    close_to(&out.managed_bandwidth, 20e9);
    in.managed_step = 2400 * 1073741824.0;
    cost_plan(NULL, &in, &out);
    close_to(&out.managed_capacity, 69 * in.managed_step);
    assert_true(out.managed_bandwidth.value >= 20e9);
}

static void the_cheapest_level(void **state) {
    (void)state;
    struct cost_inputs in = plain_inputs();
    struct cost_outputs out = {0};
    double gibibyte_month = 1073741824.0 * month;

    in.fsx_250 = 0.21 / gibibyte_month;
    in.fsx_500 = 0.34 / gibibyte_month;
    in.fsx_1000 = 0.6 / gibibyte_month;
    /* Capacity binds: the least price. Bandwidth binds: the most bandwidth for the money. */
    cost_plan(NULL, &in, &out);
    assert_string_equal(out.managed_cheapest.text, "125, at $13,572 a month");
    in.write_needed = 400e9;
    cost_plan(NULL, &in, &out);
    assert_string_equal(out.managed_cheapest.text, "1000, at $246,240 a month");
}

static void more_costs_never_help(void **state) {
    (void)state;
    struct cost_outputs less = {0}, more = {0};

    for (int i = 0; i < 6; i++) {
        struct cost_inputs in = plain_inputs();

        cost_plan(NULL, &in, &less);
        *(double *[]){&in.extra_nodes,   &in.extra_price,    &in.licence,
                      &in.running_costs, &in.raw_per_usable, &in.idle_after}[i] +=
            i == 2 ? 1e-17 : 0.01;
        in.drive_price = 1e-10;
        cost_plan(NULL, &in, &more);
        assert_true(more.saved_3.value < less.saved_3.value);
        assert_true(more.net.value <= less.net.value);
        assert_true(more.tco_5.value >= less.tco_5.value);
    }
}

static void what_cannot_be(void **state) {
    (void)state;
    struct cost_inputs in = plain_inputs();
    struct cost_outputs out = {0};

    in.idle_after = in.idle_before;
    cost_plan(NULL, &in, &out);
    assert_string_equal(out.payback.cannot,
                        "it never pays back: storage costs what it wins, or more");
    assert_non_null(strstr(out.verdict.text, "does not pay"));
    in.gpu_price = 0;
    in.capacity = 0;
    cost_plan(NULL, &in, &out);
    assert_string_equal(out.break_even.cannot, "GPUs that cost nothing save nothing");
    assert_string_equal(out.unit_cost.cannot, "there is no capacity");
    in.storage = choice_of(&plan_cost, "storage", "managed");
    in.managed_level = 4;
    cost_plan(NULL, &in, &out);
    assert_string_equal(out.managed_capacity.cannot,
                        "capacity that brings no bandwidth never brings enough");
    assert_ptr_equal(out.tco_5.cannot, out.managed_capacity.cannot);
}

static void free_things_are_named(void **state) {
    (void)state;
    struct cost_inputs in = plain_inputs();
    struct cost_outputs out = {0};

    cost_plan(NULL, &in, &out);
    assert_string_equal(
        out.not_counted.text,
        "licence, running costs, flash, servers and work to set up, object store, egress");
    in.archive = in.egress = in.licence = in.running_costs = in.raw_per_usable = in.setup = 1;
    cost_plan(NULL, &in, &out);
    assert_string_equal(out.not_counted.text, "nothing");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(break_even_is_a_share),
        cmocka_unit_test(payback_earns_what_was_paid),
        cmocka_unit_test(flash_follows_capacity),
        cmocka_unit_test(managed_capacity_follows_bandwidth),
        cmocka_unit_test(the_cheapest_level),
        cmocka_unit_test(more_costs_never_help),
        cmocka_unit_test(what_cannot_be),
        cmocka_unit_test(free_things_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
