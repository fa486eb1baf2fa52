/* The metadata model. */
#include "planner/metadata.h"
#include <stdio.h>

static const char overloaded[] = "more arrives than the targets sustain";
static const char no_load[] = "there is no load";
static const char none_left[] = "no storage node is left for data";

/* By the recurrence of Erlang's B, which neither overflows nor cancels. */
double erlang_c(double servers, double load) {
    double blocked = 1;

    for (double k = 1; k <= servers; k++) {
        blocked = load * blocked / (k + load * blocked);
    }
    double waiting = blocked / (1 - load / servers * (1 - blocked));
    return waiting < 1e-290 ? 0 : waiting;
}

static void plan_targets(const struct metadata_inputs *in, struct metadata_outputs *out) {
    double allowed = in->target_rate * in->utilisation;
    double operations = in->file_rate * in->operations_per_file;

    out->operations = figure_of(operations);
    out->targets_needed = operations <= allowed ? figure_of(1)
                                                : figure_ratio(operations * in->skew, allowed,
                                                               "the utilisation is zero");
    out->targets_needed.value = whole_up(out->targets_needed.value);
    out->targets_used =
        in->metadata_targets > 0 ? figure_of(in->metadata_targets) : out->targets_needed;
    double used = out->targets_used.value;

    out->sustained = FIGURE(used * in->target_rate / fmin(in->skew, used), &out->targets_used);
    out->load = FIGURE(operations * fmin(1, in->skew / used) / in->target_rate, &out->targets_used);
    out->spread = FIGURE(fmin(in->directory_targets, used), &out->targets_used);
}

static void plan_waiting(const struct metadata_inputs *in, struct metadata_outputs *out) {
    double servers = floor(in->threads);
    double load = out->load.value;

    out->threads_used = figure_of(servers);
    out->service = figure_of(servers / in->target_rate);
    out->waiting_share = out->load.cannot ? out->load
                         : load >= 1      ? figure_cannot(overloaded)
                                          : figure_of(erlang_c(servers, load * servers));
    double share = out->waiting_share.value;

    out->wait = FIGURE(share / (in->target_rate * (1 - load)), &out->waiting_share);
    out->wait_99 = FIGURE(share > 0.01 ? log(share / 0.01) / (in->target_rate * (1 - load)) : 0,
                          &out->waiting_share);
    out->planned_wait = in->utilisation == 1
                            ? figure_cannot("the wait behind what is busy all the time has no end")
                            : figure_of(erlang_c(servers, in->utilisation * servers) /
                                        (in->target_rate * (1 - in->utilisation)));
    out->response = FIGURE(in->round_trip + out->service.value + out->wait.value, &out->wait);
    out->serial_stat = FIGURE(in->entries * out->response.value, &out->response);
    out->parallel_stat = FIGURE(fmax(out->serial_stat.value / in->outstanding,
                                     in->entries / (in->target_rate * out->spread.value)),
                                &out->serial_stat, &out->spread);
}

/* How long the directory's targets, or their NICs, are busy with requests that bring that many
 * entries. */
static struct figure busy_time(const struct metadata_inputs *in, const struct metadata_outputs *out,
                               const struct figure *requests, double entries) {
    double spread = out->spread.value;

    return FIGURE(fmax((requests->value / in->target_rate + entries * in->entry_time) / spread,
                       entries * in->entry_size / (in->link * spread)),
                  requests, &out->spread);
}

static void plan_storm(const struct metadata_inputs *in, struct metadata_outputs *out) {
    double pages = fmax(1, whole_up(in->entries / in->page_entries));
    double refills = fmin(in->directory_changes, in->listings - 1);
    double lists = in->listing_nodes * in->listings;

    out->pages = figure_of(pages);
    out->refills = figure_of(refills);
    out->stat_requests = figure_of(lists * (pages + in->entries));
    out->stat_time = busy_time(in, out, &out->stat_requests, lists * in->entries);
    out->plus_requests = figure_of(lists * pages);
    out->plus_time = busy_time(in, out, &out->plus_requests, lists * in->entries);
    out->lease_requests = figure_of(in->listing_nodes * (pages * (1 + refills) + refills));
    out->lease_time =
        busy_time(in, out, &out->lease_requests, in->listing_nodes * (1 + refills) * in->entries);
    out->sealed_requests = figure_of(in->listing_nodes * pages);
    out->sealed_time = busy_time(in, out, &out->sealed_requests, in->listing_nodes * in->entries);
}

static void plan_dedicated(const struct metadata_inputs *in, struct metadata_outputs *out) {
    double metadata = out->metadata_work.value;
    double data = out->data_work.value;
    double used = out->targets_used.value;
    double left = in->storage_nodes - used;

    out->dedicated_headroom = FIGURE(1 / fmax(metadata / used, data / left), &out->targets_used);
    out->dedicated_wait =
        FIGURE(metadata / used / in->target_rate / (1 - metadata / used), &out->targets_used);
    if (out->targets_used.cannot) {
        return;
    }
    if (left <= 0) {
        out->dedicated_headroom = figure_cannot(none_left);
        out->dedicated_wait = out->dedicated_headroom;
        return;
    }
    if (metadata + data == 0) {
        out->dedicated_headroom = figure_cannot(no_load);
    }
    if (metadata >= used) {
        out->dedicated_wait = figure_cannot(overloaded);
    }
}

/* The split that carries most: one of the two whole numbers beside metadata's share of the work. */
static void plan_best_split(const struct metadata_inputs *in, struct metadata_outputs *out) {
    double metadata = out->metadata_work.value;
    double data = out->data_work.value;
    double nodes = in->storage_nodes;

    out->dedicated_share = figure_ratio(nodes * metadata, metadata + data, no_load);
    double best = floor(out->dedicated_share.value);
    best += best * data < (nodes - best - 1) * metadata ? 1 : 0;
    best = fmax(1, fmin(nodes - 1, best));
    out->dedicated_best = FIGURE(best, &out->dedicated_share);
    if (nodes < 2) {
        out->dedicated_best = figure_cannot("one storage node has to do both");
    }
    out->dedicated_best_headroom =
        FIGURE(1 / fmax(metadata / best, data / (nodes - best)), &out->dedicated_best);
}

static void plan_colocated(const struct metadata_inputs *in, struct metadata_outputs *out) {
    double nodes = in->storage_nodes;
    double work = out->metadata_work.value + out->data_work.value;
    /* The mean work that an arrival finds being served. */
    double residual = (out->metadata_work.value / in->target_rate +
                       out->data_work.value * in->transfer / in->storage_node_bandwidth) /
                      nodes;

    out->colocated_headroom = figure_ratio(nodes, work, no_load);
    out->colocated_wait = figure_ratio(residual, 1 - work / nodes, overloaded);
    out->colocated_first_wait =
        figure_ratio(residual, 1 - out->metadata_work.value / nodes, overloaded);
    if (work >= nodes) {
        out->colocated_wait = figure_cannot("more is to be done than the storage nodes can");
        out->colocated_first_wait = out->colocated_wait;
    }
}

static void plan_verdict(const struct metadata_inputs *in, const struct metadata_outputs *out,
                         struct plan_words *verdict) {
    if (out->load.cannot) {
        snprintf(verdict->text, WORDS_BYTES, "no number of targets is never busy");
    } else if (out->load.value >= 1) {
        snprintf(verdict->text, WORDS_BYTES,
                 "too few targets: %.0f are needed, or clients wait without end",
                 out->targets_needed.value);
    } else if (out->targets_needed.cannot || out->targets_used.value < out->targets_needed.value) {
        snprintf(verdict->text, WORDS_BYTES,
                 "the targets keep up, but are busier than they may be");
    } else if (out->targets_used.value > in->storage_nodes) {
        snprintf(verdict->text, WORDS_BYTES,
                 "the targets suffice, but are more than the storage nodes");
    } else {
        snprintf(verdict->text, WORDS_BYTES, "the targets suffice");
    }
}

/* Why the nodes that are dedicated do not carry the load, and how many would. */
static void explain_dedicated(const struct metadata_outputs *out, char *text, size_t size) {
    double used = out->targets_used.value;
    double best = out->dedicated_best.value;
    size_t length;

    if (out->targets_used.cannot) {
        length = (size_t)snprintf(text, size, "no number of dedicated ones follows: %s",
                                  out->targets_used.cannot);
    } else if (out->dedicated_headroom.cannot) {
        length = (size_t)snprintf(text, size, "with %.6g dedicated ones %s", used,
                                  out->dedicated_headroom.cannot);
    } else {
        length = (size_t)snprintf(text, size, "%.6g dedicated ones do not carry this load", used);
    }
    if (!out->dedicated_best_headroom.cannot && out->dedicated_best_headroom.value >= 1) {
        snprintf(text + length, size - length, "; %.6g carry at most %.3g times it", best,
                 out->dedicated_best_headroom.value);
    }
}

static void plan_placement(const struct metadata_outputs *out, struct plan_words *placement) {
    char dedicated[UNIT_TEXT_BYTES];
    char colocated[UNIT_TEXT_BYTES];

    if (out->colocated_wait.cannot) {
        snprintf(placement->text, WORDS_BYTES, "%s", out->colocated_wait.cannot);
        return;
    }
    unit_format(UNIT_SECONDS, out->colocated_wait.value, colocated);
    if (out->dedicated_wait.cannot || out->dedicated_headroom.cannot ||
        out->dedicated_headroom.value < 1) {
        char why[WORDS_BYTES / 2];

        explain_dedicated(out, why, sizeof why);
        snprintf(placement->text, WORDS_BYTES,
                 "co-located on all nodes: metadata waits %s, at most %.3g times this load; %s",
                 colocated, out->colocated_headroom.value, why);
        return;
    }
    unit_format(UNIT_SECONDS, out->dedicated_wait.value, dedicated);
    snprintf(placement->text, WORDS_BYTES,
             "dedicated: metadata waits %s, at most %.3g times this load; "
             "co-located: %s, at most %.3g times",
             dedicated, out->dedicated_headroom.value, colocated, out->colocated_headroom.value);
}

void metadata_plan(const struct metadata_inputs *in, struct metadata_outputs *out) {
    plan_targets(in, out);
    plan_waiting(in, out);
    plan_storm(in, out);
    out->data_per_operation =
        figure_ratio(in->data_rate, out->operations.value, "there are no metadata operations");
    out->metadata_work = figure_of(out->operations.value / in->target_rate);
    out->data_work = figure_of(in->data_rate / in->storage_node_bandwidth);
    plan_dedicated(in, out);
    plan_best_split(in, out);
    plan_colocated(in, out);
    plan_verdict(in, out, &out->verdict);
    plan_placement(out, &out->placement);
}

PLAN_ONE_ROW(metadata_plan(inputs, ret_outputs))

#define PLAN_INPUTS metadata_inputs
#define PLAN_OUTPUTS metadata_outputs
static const struct plan_input inputs[] = {
#define INPUT PLAN_INPUT_ROW
#include "planner/metadata.def"
};
static const struct plan_output outputs[] = {
#define OUTPUT PLAN_OUTPUT_ROW
#define WORDS PLAN_WORDS_ROW
#include "planner/metadata.def"
};

const struct plan_model plan_metadata = {
    .name = "metadata",
    .summary = "Metadata targets, how long operations wait, and what a listing storm costs.",
    .example = "--file-rate 20000/s --metadata-targets 2 --utilisation 60%",
    PLAN_TABLES(inputs, outputs),
    .row = row,
};
