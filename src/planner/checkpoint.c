/* The checkpoint model. */
#include "planner/checkpoint.h"
#include <stdio.h>

static const char no_bandwidth[] = "the bandwidth is zero";

static struct figure size_of(const struct data *data, const struct checkpoint_inputs *in,
                             double bytes_each) {
    static const char *const benchmarks[] = {NULL, "preset.checkpoint.mlperf-70b",
                                             "preset.checkpoint.mlperf-405b"};
    double size = in->measured_size > 0 ? in->measured_size : in->params * bytes_each;

    if (in->measured_size == 0 && in->benchmark > 0 &&
        data_number(data, benchmarks[in->benchmark], UNIT_BYTES, &size) < 0) {
        return figure_cannot("the data files have no such benchmark");
    }
    return figure_of(size);
}

static void plan_state(const struct data *data, const struct checkpoint_inputs *in,
                       struct checkpoint_outputs *out) {
    const double bytes[] = {14, 2, 4, 12, 8, 10, in->bytes_per_parameter};
    double copies = in->deduplicated == 0 ? 1 : in->replicas;

    out->bytes_each = figure_of(bytes[in->state]);
    out->size = size_of(data, in, out->bytes_each.value);
    out->gpus = figure_of(in->nodes * in->gpus_per_node);
    out->shard_size =
        FIGURE(out->size.value / (in->shards > 0 ? in->shards : out->gpus.value), &out->size);
    out->written = FIGURE(out->size.value * copies, &out->size);
}

/* figure_ratio of a figure that may have no value. */
static struct figure ratio(struct figure top, double bottom, const char *why) {
    return top.cannot ? top : figure_ratio(top.value, bottom, why);
}

/* The drain begins with the copy: once as much has left as has no room, the nodes are done. */
static struct figure copy_of(const struct checkpoint_inputs *in,
                             const struct checkpoint_outputs *out) {
    struct figure copy =
        ratio(out->buffer_needed, in->buffer_bandwidth, "the bandwidth within a node is zero");
    double needed = out->buffer_needed.value;

    if (copy.cannot || needed <= in->buffer_capacity) {
        return copy;
    }
    return FIGURE(fmax(copy.value, out->drain.value * (1 - in->buffer_capacity / needed)),
                  &out->drain);
}

static void plan_stall(const struct checkpoint_inputs *in, struct checkpoint_outputs *out) {
    out->bandwidth_needed = ratio(out->written, in->target * in->efficiency,
                                  "the target time or the efficiency is zero");
    out->drain = ratio(out->written, in->write_bandwidth * in->efficiency, no_bandwidth);
    out->buffer_needed = FIGURE(out->written.value / in->nodes, &out->written);
    out->copy = copy_of(in, out);
    out->overrun =
        FIGURE(fmax(0, out->drain.value - out->copy.value - in->interval), &out->drain, &out->copy);
    out->stall = in->mode == CHECKPOINT_SYNC
                     ? out->drain
                     : FIGURE(out->copy.value + out->overrun.value, &out->copy, &out->overrun);
    out->idle = FIGURE(out->stall.value / (in->interval + out->stall.value), &out->stall);
    if (!out->stall.cannot && in->interval + out->stall.value == 0) {
        out->idle = figure_cannot("there is neither training nor a checkpoint");
    }
}

/* Daly 2006, Young's is its first term. */
static double best_daly(double stall, double mttf) {
    double part = stall / (2 * mttf);

    return stall < 2 * mttf ? sqrt(2 * stall * mttf) * (1 + sqrt(part) / 3 + part / 9) - stall
                            : mttf;
}

static void plan_failures(const struct checkpoint_inputs *in, struct checkpoint_outputs *out) {
    const char *never = "GPUs that fail at once finish nothing";

    out->job_mttf = figure_of(in->device_mttf / out->gpus.value);
    double mttf = out->job_mttf.value;

    out->best_young = FIGURE(sqrt(2 * out->stall.value * mttf), &out->stall);
    out->best_daly =
        mttf > 0 ? FIGURE(best_daly(out->stall.value, mttf), &out->stall) : figure_cannot(never);
    out->recovery = ratio(out->size, in->read_bandwidth * in->efficiency, no_bandwidth);
    out->recovery = FIGURE(in->restart + out->recovery.value, &out->recovery);
    out->unsafe = in->mode == CHECKPOINT_SYNC ? figure_of(0) : out->drain;
    out->completion = FIGURE(mttf * exp(out->recovery.value / mttf) *
                                 expm1((in->interval + out->stall.value) / mttf) * in->work /
                                 in->interval * (1 + out->unsafe.value / mttf),
                             &out->recovery, &out->stall, &out->unsafe);
    if (mttf == 0) {
        out->completion = figure_cannot(never);
    } else if (in->interval == 0) {
        out->completion = figure_cannot("without training between checkpoints nothing finishes");
    } else if (out->completion.cannot && !out->stall.cannot && !out->recovery.cannot) {
        out->completion = figure_cannot("failures come faster than work is saved");
    }
    out->failures = FIGURE(out->completion.value / mttf, &out->completion);
    out->checkpoint_time = FIGURE(in->work / in->interval * out->stall.value, &out->completion);
    out->lost_time = FIGURE(out->completion.value - in->work - out->checkpoint_time.value,
                            &out->completion, &out->checkpoint_time);
    out->useful = FIGURE(in->work / out->completion.value, &out->completion);
    if (in->work == 0) {
        out->useful = figure_cannot("there is no work");
    }
}

static void plan_verdict(const struct checkpoint_inputs *in, struct checkpoint_outputs *out) {
    char *text = out->verdict.text;

    if (out->drain.cannot || out->stall.cannot) {
        snprintf(text, WORDS_BYTES, "a checkpoint never ends");
    } else if (in->mode == CHECKPOINT_ASYNC && out->buffer_needed.value > in->buffer_capacity) {
        snprintf(text, WORDS_BYTES,
                 "a node's copy does not fit its buffer: training waits for the rest");
    } else if (in->mode == CHECKPOINT_ASYNC && out->overrun.value > 0) {
        snprintf(text, WORDS_BYTES, "the drain takes longer than the interval: training waits");
    } else if (in->mode == CHECKPOINT_ASYNC) {
        snprintf(text, WORDS_BYTES, "training goes on after the copy, the drain ends in time");
    } else {
        snprintf(text, WORDS_BYTES, "%s",
                 out->drain.value <= in->target ? "the target is met" : "the target is missed");
    }
}

void checkpoint_plan(const struct data *data, const struct checkpoint_inputs *in,
                     struct checkpoint_outputs *out) {
    plan_state(data, in, out);
    plan_stall(in, out);
    plan_failures(in, out);
    plan_verdict(in, out);
}

PLAN_ONE_ROW(checkpoint_plan(data, inputs, ret_outputs))

#define PLAN_INPUTS checkpoint_inputs
#define PLAN_OUTPUTS checkpoint_outputs
static const struct plan_input inputs[] = {
#define INPUT PLAN_INPUT_ROW
#define CHOICE PLAN_CHOICE_ROW
#include "planner/checkpoint.def"
};
static const struct plan_output outputs[] = {
#define OUTPUT PLAN_OUTPUT_ROW
#define WORDS PLAN_WORDS_ROW
#include "planner/checkpoint.def"
};

const struct plan_model plan_checkpoint = {
    .name = "checkpoint",
    .summary = "Size of a checkpoint, how long it stalls the GPUs, how often to take one.",
    .example = "--params 70B --nodes 32 --write-bandwidth 20GB/s --target 60s",
    PLAN_TABLES(inputs, outputs),
    .row = row,
};
