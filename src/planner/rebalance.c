/* The model of data on the move. */
#include "planner/rebalance.h"
#include <stdio.h>

static const char nothing_moves[] = "nothing moves";

struct bound {
    double rate;
    const char *name;
};

/* The least of them; the first among equals. */
static double least(const struct bound *bounds, size_t count, struct plan_words *ret_words) {
    size_t found = 0;

    for (size_t i = 1; i < count; i++) {
        if (bounds[i].rate < bounds[found].rate) {
            found = i;
        }
    }
    snprintf(ret_words->text, WORDS_BYTES, "%s", bounds[found].name);
    return bounds[found].rate;
}

static double limit_of(const struct rebalance_inputs *in) {
    return in->limit > 0 ? in->limit : HUGE_VAL;
}

static void plan_rate(const struct rebalance_inputs *in, struct rebalance_outputs *out) {
    double sending = fmin(in->senders, in->servers);
    double receiving = fmin(in->receivers, in->servers);
    double paths = fmin(sending, receiving);
    bool by_clients = in->via == REBALANCE_CLIENTS;

    if (by_clients) {
        paths = fmin(paths, in->copiers);
    }
    out->sending = figure_of(sending);
    out->receiving = figure_of(receiving);
    out->network = figure_of(paths * in->link);
    out->reading = figure_of(sending * in->targets / in->servers * in->target_read);
    out->writing = figure_of(receiving * in->targets / in->servers * in->target_write);
    const struct bound bounds[] = {
        {out->network.value,
         by_clients ? "the network of the clients or servers" : "the network of the servers"},
        {out->reading.value, "reading from the targets"},
        {out->writing.value, "writing to the targets"},
        {limit_of(in), "the limit that is set"},
    };
    out->rate = figure_of(least(bounds, ARRAY_SIZE(bounds), &out->binding));
    out->duration = figure_ratio(in->moved, out->rate.value, nothing_moves);
}

/* What a server has left of its own bandwidth, when its share of the rate goes out or in. */
static struct figure pace_of(double rate, double count, double all, double servers) {
    if (count == 0 || all == 0) {
        return figure_cannot(count == 0 ? "no server takes part" : "the storage moves nothing");
    }
    return figure_of(fmax(0, 1 - rate / count / (all / servers)));
}

static void plan_left(const struct rebalance_inputs *in, struct rebalance_outputs *out) {
    double rate = out->rate.value;

    out->read_all = figure_of(fmin(in->targets * in->target_read, in->servers * in->link));
    out->write_all = figure_of(fmin(in->targets * in->target_write, in->servers * in->link));
    out->read_left = figure_of(fmax(0, out->read_all.value - rate));
    out->write_left = figure_of(fmax(0, out->write_all.value - rate));
    out->read_pace = pace_of(rate, out->sending.value, out->read_all.value, in->servers);
    out->write_pace = pace_of(rate, out->receiving.value, out->write_all.value, in->servers);
}

static void plan_resync(const struct rebalance_inputs *in, struct rebalance_outputs *out) {
    const struct bound bounds[] = {
        {in->sources * in->target_read, "reading the copies"},
        {in->destinations * in->target_write, "writing to the new place"},
        {fmin(in->sources, in->destinations) * in->link, "the network of the servers"},
        {limit_of(in), "the limit that is set"},
    };

    out->resync_rate = figure_of(least(bounds, ARRAY_SIZE(bounds), &out->resync_binding));
    out->resync = figure_ratio(in->target_used, out->resync_rate.value,
                               "there is no copy to read or no place to write");
    double rate = out->resync_rate.value;
    out->resync_read_left = figure_of(fmax(0, out->read_all.value - rate));
    out->resync_write_left = figure_of(fmax(0, out->write_all.value - rate));
}

static void plan_staging(const struct rebalance_inputs *in, struct rebalance_outputs *out) {
    const struct bound bounds[] = {
        {in->object_rate * in->connections, "the connections to the object store"},
        {in->nodes * in->link, "the network of the nodes"},
        {out->write_all.value, "writing to the storage"},
        {limit_of(in), "the limit that is set"},
    };

    out->ingress = figure_of(least(bounds, ARRAY_SIZE(bounds), &out->staging_binding));
    out->ingress_node = figure_of(out->ingress.value / in->nodes);
    out->staging_write_left = figure_of(fmax(0, out->write_all.value - out->ingress.value));
    out->staging = figure_ratio(in->dataset, out->ingress.value, "nothing comes in");
    out->staging_runs = FIGURE(in->runs * out->staging.value, &out->staging);
    out->ingress_needed = figure_ratio(in->dataset, in->staging_target, "the target time is zero");
    out->ingress_needed_node = FIGURE(out->ingress_needed.value / in->nodes, &out->ingress_needed);
}

void rebalance_plan(const struct rebalance_inputs *in, struct rebalance_outputs *out) {
    plan_rate(in, out);
    plan_left(in, out);
    plan_resync(in, out);
    plan_staging(in, out);
}

PLAN_ONE_ROW(rebalance_plan(inputs, ret_outputs))

#define PLAN_INPUTS rebalance_inputs
#define PLAN_OUTPUTS rebalance_outputs
static const struct plan_input inputs[] = {
#define INPUT PLAN_INPUT_ROW
#define CHOICE PLAN_CHOICE_ROW
#include "planner/rebalance.def"
};
static const struct plan_output outputs[] = {
#define OUTPUT PLAN_OUTPUT_ROW
#define WORDS PLAN_WORDS_ROW
#include "planner/rebalance.def"
};

const struct plan_model plan_rebalance = {
    .name = "rebalance",
    .summary = "Moving data: rebalance, resync of a target, staging; what training keeps.",
    .example = "--moved 10TB --via clients --copiers 4 --link 200Gb/s",
    PLAN_TABLES(inputs, outputs),
    .row = row,
};
