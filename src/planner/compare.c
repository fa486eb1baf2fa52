/* The comparison with an object store. */
#include "planner/compare.h"
#include <stdio.h>

static const char no_nodes_rate[] = "the nodes move nothing";
static const char no_object_rate[] = "the object store or the network gives nothing";

static void plan_files(const struct compare_inputs *in, struct compare_outputs *out) {
    double rate = in->node_bandwidth > 0 ? in->node_bandwidth : in->node_iops * in->io_size;

    out->node_rate = figure_of(fmin(in->link, rate));
    out->rate_iops = figure_of(out->node_rate.value / in->io_size);
    out->throughput = figure_of(in->nodes * out->node_rate.value);
    out->iops = figure_of(in->nodes * out->rate_iops.value);
    out->duration = figure_ratio(in->dataset, out->throughput.value, no_nodes_rate);
}

static void plan_objects(const struct compare_inputs *in, struct compare_outputs *out) {
    double single = fmin(in->object_rate, in->link);
    double all = fmin(in->object_rate * in->connections, in->nodes * in->link);

    out->single_throughput = figure_of(single);
    out->single_duration = figure_ratio(in->dataset, single, no_object_rate);
    out->single_speedup = figure_ratio(out->throughput.value, single, no_object_rate);
    out->object_throughput = figure_of(all);
    out->object_duration = figure_ratio(in->dataset, all, no_object_rate);
    out->speedup = figure_ratio(out->throughput.value, all, no_object_rate);
    out->even_connections =
        figure_ratio(out->throughput.value, in->object_rate, "the object store gives nothing");
    out->even_connections = FIGURE(whole_up(out->even_connections.value), &out->even_connections);
}

static void plan_verdict(const struct compare_inputs *in, struct compare_outputs *out) {
    char *text = out->verdict.text;

    if (out->duration.cannot || out->speedup.cannot) {
        snprintf(text, WORDS_BYTES, "one of the two moves nothing: nothing to compare");
    } else if (out->node_rate.value == in->link) {
        snprintf(text, WORDS_BYTES, "the network of the nodes is the limit of the file system");
    } else if (out->speedup.value < 1) {
        snprintf(text, WORDS_BYTES,
                 "the object store is faster: larger I/Os or more of them at once, or fetch whole "
                 "files from the object store");
    } else {
        snprintf(text, WORDS_BYTES,
                 "the file system is faster; %.0f connections to the object store would be as fast",
                 out->even_connections.value);
    }
}

void compare_plan(const struct compare_inputs *in, struct compare_outputs *out) {
    plan_files(in, out);
    plan_objects(in, out);
    plan_verdict(in, out);
}

PLAN_ONE_ROW(compare_plan(inputs, ret_outputs))

#define PLAN_INPUTS compare_inputs
#define PLAN_OUTPUTS compare_outputs
static const struct plan_input inputs[] = {
#define INPUT PLAN_INPUT_ROW
#include "planner/compare.def"
};
static const struct plan_output outputs[] = {
#define OUTPUT PLAN_OUTPUT_ROW
#define WORDS PLAN_WORDS_ROW
#include "planner/compare.def"
};

const struct plan_model plan_compare = {
    .name = "compare",
    .summary = "The same data on a parallel file system and on an object store.",
    .example = "--dataset 10GiB --nodes 32 --node-iops 15625/s --io-size 4KiB --connections 64",
    PLAN_TABLES(inputs, outputs),
    .row = row,
};
