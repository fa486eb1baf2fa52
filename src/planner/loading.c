/* The model of data loading. */
#include "planner/loading.h"
#include <stdio.h>

static const char *const workloads[] = {"tokens", "unet3d", "resnet50", "cosmoflow", "retinanet"};
static const char *const accelerators[] = {"h100", "a100", "b200", "mi355"};
static const char unknown[] = "the presets say nothing of this workload on this accelerator";

/* A key of the workload's preset. */
static struct figure preset(const struct data *data, const struct loading_inputs *in,
                            const char *key, enum unit unit) {
    char path[DATA_NAME_BYTES];
    double number;

    snprintf(path, sizeof path, "preset.%s.%s", workloads[in->workload], key);
    if (data_number(data, path, unit, &number) < 0) {
        return figure_cannot(unknown);
    }
    return number > 0 ? figure_of(number)
                      : figure_cannot("a preset of this workload is not above 0");
}

static struct figure preset_rate(const struct data *data, const struct loading_inputs *in) {
    char key[24];

    snprintf(key, sizeof key, "batch_%s", accelerators[in->accelerator]);
    struct figure batch = preset(data, in, key, UNIT_COUNT);
    snprintf(key, sizeof key, "step_%s", accelerators[in->accelerator]);
    struct figure step = preset(data, in, key, UNIT_SECONDS);

    return FIGURE(batch.value / step.value, &batch, &step);
}

static void plan_demand(const struct data *data, const struct loading_inputs *in,
                        struct loading_outputs *out) {
    struct figure per_file = figure_of(in->samples_per_file);
    double count = in->nodes * in->gpus_per_node;

    out->accelerators = figure_of(count);
    if (in->workload == LOADING_TOKENS) {
        out->sample_size = figure_of(in->sequence * in->bytes_per_token * in->fields);
        out->sample_rate = figure_of(in->tokens / in->sequence / count);
    } else if (in->workload == LOADING_CUSTOM) {
        out->sample_size = figure_of(in->custom_size);
        out->sample_rate = figure_of(in->custom_rate);
    } else {
        out->sample_size = preset(data, in, "sample_size", UNIT_BYTES);
        out->sample_rate = preset_rate(data, in);
        per_file = preset(data, in, "samples_per_file", UNIT_COUNT);
    }
    out->demand = FIGURE(count * out->sample_rate.value, &out->sample_rate);
    out->bandwidth_needed =
        FIGURE(out->demand.value * out->sample_size.value, &out->demand, &out->sample_size);
    out->node_bandwidth_needed =
        FIGURE(out->bandwidth_needed.value / in->nodes, &out->bandwidth_needed);
    out->files_per_second = FIGURE(out->demand.value / per_file.value, &out->demand, &per_file);
}

static void plan_workers(const struct loading_inputs *in, struct loading_outputs *out) {
    out->outstanding = figure_of(in->workers * in->prefetch);
    out->read_time =
        FIGURE(in->latency + out->sample_size.value / in->stream_bandwidth, &out->sample_size);
    double read = out->read_time.value;

    out->outstanding_needed =
        FIGURE(out->sample_rate.value * read, &out->sample_rate, &out->read_time);
    out->worker_rate =
        FIGURE(1 / fmax((read + in->decode) / in->prefetch, in->decode), &out->read_time);
    out->workers_needed = FIGURE(fmax(1, whole_up(out->sample_rate.value / out->worker_rate.value)),
                                 &out->sample_rate, &out->worker_rate);
    out->loader_bandwidth = FIGURE(out->accelerators.value * in->workers * out->worker_rate.value *
                                       out->sample_size.value,
                                   &out->worker_rate, &out->sample_size);
}

/* Seconds that each takes for its share of one byte. */
enum { MEMORY, NVME, PARALLEL, OBJECT, NETWORK, TIERS };

static void plan_tiers(const struct loading_inputs *in, struct loading_outputs *out) {
    static const char *const names[TIERS] = {"memory", "NVMe of the nodes", "parallel file system",
                                             "object store", "NICs of the nodes"};
    double others = in->memory_share + in->nvme_share + in->object_share;
    double share = fmax(0, 1 - in->memory_share - in->nvme_share - in->object_share);
    double parallel = in->read_bandwidth * in->efficiency;
    double times[TIERS] = {in->memory_share / (in->nodes * in->memory_bandwidth),
                           in->nvme_share / (in->nodes * in->nvme_bandwidth), share / parallel,
                           in->object_share / in->object_bandwidth,
                           (share + in->object_share) / (in->nodes * in->link)};
    int most = 0;

    /* Shares of 70, 20 and 10 % add up to a little more than 1. */
    if (others > 1 + 1e-9) {
        out->parallel_share = figure_cannot("the shares add up to more than 100 %");
    } else {
        out->parallel_share = figure_of(share);
    }
    if (out->parallel_share.cannot || parallel == 0) {
        out->tiers_bandwidth = out->parallel_share.cannot
                                   ? out->parallel_share
                                   : figure_cannot("the parallel file system's bandwidth is zero");
        out->serial_bandwidth = out->tiers_bandwidth;
        snprintf(out->tier.text, WORDS_BYTES, "%s", out->tiers_bandwidth.cannot);
        return;
    }
    for (int i = 1; i < TIERS; i++) {
        most = times[i] > times[most] ? i : most;
    }
    out->tiers_bandwidth = figure_of(1 / times[most]);
    out->serial_bandwidth =
        figure_of(1 / (times[MEMORY] + times[NVME] + times[PARALLEL] + times[OBJECT]));
    snprintf(out->tier.text, WORDS_BYTES, "%s", names[most]);
}

static void plan_losses(const struct loading_inputs *in, struct loading_outputs *out) {
    const double needed = out->bandwidth_needed.value;
    double cycle = in->interval + in->checkpoint_stall;

    if (in->measured_stall > 0) {
        out->stalled = figure_of(in->measured_stall);
    } else {
        double got = fmin(out->loader_bandwidth.value, out->tiers_bandwidth.value);

        out->stalled = FIGURE(needed > 0 ? fmax(0, 1 - got / needed) : 0, &out->bandwidth_needed,
                              &out->loader_bandwidth, &out->tiers_bandwidth);
    }
    double training = 1 - out->stalled.value;

    out->loaded = FIGURE(needed * training, &out->bandwidth_needed, &out->stalled);
    out->tokens_trained = in->workload == LOADING_TOKENS
                              ? FIGURE(in->tokens * training, &out->stalled)
                              : figure_cannot("samples of this workload are no tokens");
    out->epoch = out->loaded.cannot
                     ? out->loaded
                     : figure_ratio(in->dataset, out->loaded.value, "nothing is loaded");
    out->checkpoint_idle =
        figure_ratio(in->checkpoint_stall, cycle, "there is neither training nor a checkpoint");
    out->useful = FIGURE(training * in->interval / cycle, &out->stalled, &out->checkpoint_idle);
    out->useful_additive = FIGURE(fmax(0, 1 - out->stalled.value - out->checkpoint_idle.value),
                                  &out->stalled, &out->checkpoint_idle);
}

static void plan_verdict(const struct data *data, const struct loading_inputs *in,
                         struct loading_outputs *out) {
    char *text = out->verdict.text;
    int used = 0;

    if (out->stalled.cannot) {
        snprintf(text, WORDS_BYTES, "%s", out->stalled.cannot);
        return;
    }
    if (out->stalled.value == 0) {
        used = snprintf(text, WORDS_BYTES, "loading keeps up");
    } else if (in->measured_stall > 0) {
        used = snprintf(text, WORDS_BYTES, "training waits for data");
    } else if (out->loader_bandwidth.value < out->tiers_bandwidth.value) {
        used = snprintf(text, WORDS_BYTES,
                        "too few reads in flight: %.0f workers an accelerator would keep up",
                        out->workers_needed.value);
    } else {
        used = snprintf(text, WORDS_BYTES, "bound by the %s", out->tier.text);
    }
    if (in->workload != LOADING_TOKENS && in->workload != LOADING_CUSTOM) {
        struct figure accepted = preset(data, in, "accepted", UNIT_SHARE);

        if (!accepted.cannot) {
            snprintf(text + used, WORDS_BYTES - (size_t)used,
                     "; the benchmark wants accelerators busy %.0f %% and %s", accepted.value * 100,
                     1 - out->stalled.value >= accepted.value ? "gets it" : "does not get it");
        }
    }
}

void loading_plan(const struct data *data, const struct loading_inputs *in,
                  struct loading_outputs *out) {
    plan_demand(data, in, out);
    plan_workers(in, out);
    plan_tiers(in, out);
    plan_losses(in, out);
    plan_verdict(data, in, out);
}

PLAN_ONE_ROW(loading_plan(data, inputs, ret_outputs))

#define PLAN_INPUTS loading_inputs
#define PLAN_OUTPUTS loading_outputs
static const struct plan_input inputs[] = {
#define INPUT PLAN_INPUT_ROW
#define CHOICE PLAN_CHOICE_ROW
#include "planner/loading.def"
};
static const struct plan_output outputs[] = {
#define OUTPUT PLAN_OUTPUT_ROW
#define WORDS PLAN_WORDS_ROW
#include "planner/loading.def"
};

const struct plan_model plan_loading = {
    .name = "loading",
    .summary = "Bytes and files a second that training reads, prefetch, tiers, stalls.",
    .example = "--workload unet3d --nodes 4 --read-bandwidth 100GB/s --workers 8",
    PLAN_TABLES(inputs, outputs),
    .row = row,
};
