/* The cost model. */
#include "planner/cost.h"
#include <stdio.h>

static void plan_gpus(const struct cost_inputs *in, struct cost_outputs *out) {
    double month = in->hours_per_month;

    out->gpus = figure_of(in->nodes * in->gpus_per_node);
    double used = out->gpus.value * in->rented;
    out->gpu_cost = figure_of(out->gpus.value * in->gpu_price * in->rented);
    out->lost_before = figure_of(out->gpu_cost.value * in->idle_before);
    out->lost_after = figure_of(out->gpu_cost.value * in->idle_after);
    out->gpu_hours_before = figure_of(used * in->idle_before * month / 3600);
    out->gpu_hours_after = figure_of(used * in->idle_after * month / 3600);
    out->gain = figure_of(in->idle_before - in->idle_after);
    out->recovered = figure_of(out->gpu_cost.value * out->gain.value);
}

static void plan_own(const struct cost_inputs *in, struct cost_outputs *out) {
    double month = in->hours_per_month;

    out->extra_month = figure_of(in->extra_nodes * in->extra_price * in->rented * month);
    out->licence_month = figure_of(in->licence * in->capacity * UNIT_MONTH_S);
    out->own_month =
        figure_of(out->extra_month.value + out->licence_month.value + in->running_costs * month);
}

static struct figure managed_capacity(const struct cost_inputs *in, double level) {
    struct figure brings = figure_ratio(in->write_needed, level,
                                        "capacity that brings no bandwidth never brings enough");
    double capacity = fmax(in->capacity, brings.value);

    if (in->managed_step > 0) {
        capacity = whole_up(capacity / in->managed_step) * in->managed_step;
    }
    return FIGURE(capacity, &brings);
}

static void plan_managed(const struct cost_inputs *in, struct cost_outputs *out) {
    const double tebibyte = 1099511627776.0;
    const double levels[] = {125e6, 250e6, 500e6, 1e9, in->other_level * tebibyte};
    const double prices[] = {in->fsx_125, in->fsx_250, in->fsx_500, in->fsx_1000, in->other_price};
    double least = INFINITY;

    out->level = figure_of(levels[in->managed_level] / tebibyte);
    out->level_price = figure_of(prices[in->managed_level]);
    out->managed_capacity = managed_capacity(in, out->level.value);
    out->managed_bandwidth =
        FIGURE(out->managed_capacity.value * out->level.value, &out->managed_capacity);
    out->managed_month = FIGURE(out->managed_capacity.value * out->level_price.value * UNIT_MONTH_S,
                                &out->managed_capacity);
    for (size_t i = 0; i < 4; i++) {
        double price = managed_capacity(in, levels[i] / tebibyte).value * prices[i] * UNIT_MONTH_S;

        if (price < least) {
            char text[UNIT_TEXT_BYTES];

            least = price;
            unit_format(UNIT_DOLLARS, price, text);
            snprintf(out->managed_cheapest.text, WORDS_BYTES, "%.0f, at %s a month",
                     levels[i] / 1e6, text);
        }
    }
}

static void plan_balance(const struct cost_inputs *in, struct cost_outputs *out) {
    double month = in->hours_per_month;
    const struct figure *storage = in->storage == COST_OWN ? &out->own_month : &out->managed_month;

    out->archive_month = figure_of(in->archive * in->archive_price * UNIT_MONTH_S +
                                   in->egress * in->egress_price * month);
    out->overhead = FIGURE((storage->value + out->archive_month.value) / month, storage);
    out->net = FIGURE(out->recovered.value - out->overhead.value, &out->overhead);
    out->break_even = figure_ratio(out->overhead.value, out->gpu_cost.value,
                                   "GPUs that cost nothing save nothing");
    out->break_even = FIGURE(out->break_even.value, &out->overhead, &out->break_even);
}

static void plan_years(const struct cost_inputs *in, struct cost_outputs *out) {
    double month = in->hours_per_month;
    bool own = in->storage == COST_OWN;
    const char *nothing = "there is no capacity";

    out->bought = figure_of(in->capacity * in->raw_per_usable);
    out->bought_cost = figure_of(out->bought.value * in->drive_price + in->setup);
    out->own_month_all = figure_of(out->own_month.value + out->bought_cost.value / 36);
    out->managed_more =
        FIGURE(out->managed_month.value - out->own_month_all.value, &out->managed_month);
    out->upfront = figure_of(own ? out->bought_cost.value : 0);
    out->payback = FIGURE(out->upfront.value / (out->net.value * month), &out->net);
    if (!out->net.cannot && out->net.value <= 0) {
        out->payback = figure_cannot("it never pays back: storage costs what it wins, or more");
    }
    out->tco_3 = FIGURE(out->upfront.value + 36 * month * out->overhead.value, &out->overhead);
    out->tco_5 = FIGURE(out->upfront.value + 60 * month * out->overhead.value, &out->overhead);
    out->saved_3 = FIGURE(36 * month * out->net.value - out->upfront.value, &out->net);
    out->saved_5 = FIGURE(60 * month * out->net.value - out->upfront.value, &out->net);
    out->unit_cost =
        own ? figure_ratio(out->own_month_all.value, UNIT_MONTH_S * in->capacity, nothing)
            : figure_ratio(out->managed_month.value, UNIT_MONTH_S * out->managed_capacity.value,
                           nothing);
    out->unit_cost = FIGURE(out->unit_cost.value, &out->overhead, &out->unit_cost);
}

static void plan_verdict(const struct cost_inputs *in, struct cost_outputs *out) {
    bool own = in->storage == COST_OWN;
    size_t used = 0;

    if (out->break_even.cannot) {
        snprintf(out->verdict.text, WORDS_BYTES, "no verdict: %s", out->break_even.cannot);
    } else if (out->net.value <= 0) {
        snprintf(out->verdict.text, WORDS_BYTES,
                 "it does not pay: %.3g %% of GPU time would have to be won, not %.3g %%",
                 100 * out->break_even.value, 100 * out->gain.value);
    } else if (out->upfront.value > 0) {
        snprintf(out->verdict.text, WORDS_BYTES,
                 "it pays: %.3g %% of GPU time would do for what recurs, %.3g %% is won, and what "
                 "is bought is earned back in %.3g months",
                 100 * out->break_even.value, 100 * out->gain.value, out->payback.value);
    } else {
        snprintf(out->verdict.text, WORDS_BYTES,
                 "it pays from the first hour on: %.3g %% of GPU time would do, %.3g %% is won",
                 100 * out->break_even.value, 100 * out->gain.value);
    }
    const struct {
        bool free;
        const char *text;
    } free_of_charge[] = {
        {own && in->licence == 0, "licence"},
        {own && in->running_costs == 0, "running costs"},
        {own && out->bought.value == 0, "flash"},
        {own && in->setup == 0, "servers and work to set up"},
        {in->archive == 0, "object store"},
        {in->egress == 0, "egress"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(free_of_charge); i++) {
        if (free_of_charge[i].free) {
            used += (size_t)snprintf(out->not_counted.text + used, WORDS_BYTES - used, "%s%s",
                                     used > 0 ? ", " : "", free_of_charge[i].text);
        }
    }
    if (used == 0) {
        snprintf(out->not_counted.text, WORDS_BYTES, "nothing");
    }
}

void cost_plan(const struct cost_inputs *in, struct cost_outputs *out) {
    plan_gpus(in, out);
    plan_own(in, out);
    plan_managed(in, out);
    plan_balance(in, out);
    plan_years(in, out);
    plan_verdict(in, out);
}

PLAN_ONE_ROW(cost_plan(inputs, ret_outputs))

#define PLAN_INPUTS cost_inputs
#define PLAN_OUTPUTS cost_outputs
static const struct plan_input inputs[] = {
#define INPUT PLAN_INPUT_ROW
#define CHOICE PLAN_CHOICE_ROW
#include "planner/cost.def"
};
static const struct plan_output outputs[] = {
#define OUTPUT PLAN_OUTPUT_ROW
#define WORDS PLAN_WORDS_ROW
#include "planner/cost.def"
};

const struct plan_model plan_cost = {
    .name = "cost",
    .summary = "What idle GPUs and storage cost, when storage pays, rented or of your own.",
    .example = "--nodes 32 --idle-before 35% --idle-after 2.7% --capacity 100TB",
    PLAN_TABLES(inputs, outputs),
    .row = row,
};
