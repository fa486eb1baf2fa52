/* The size model. */
#include "planner/size.h"
#include <stdio.h>

static double least(double first, double second, double third) {
    return fmin(first, fmin(second, third));
}

static void plan_capacity(const struct size_inputs *in, struct size_outputs *out) {
    double stripe = in->data_shards + in->parity_shards;
    const double amplification[] = {1, in->copies, stripe / in->data_shards};
    const double losses[] = {0, in->copies - 1, in->parity_shards};
    const double nodes[] = {1, in->copies, stripe};
    double node_size = in->drives_per_node * in->drive_size;
    double state = in->params * in->bytes_per_parameter;

    out->checkpoint = figure_of(in->checkpoint_size > 0 ? in->checkpoint_size : state);
    out->targets = figure_of(in->storage_nodes * in->drives_per_node);
    out->raw = figure_of(out->targets.value * in->drive_size);
    out->amplification = figure_of(amplification[in->protection]);
    out->nodes_for_protection = figure_of(nodes[in->protection]);
    out->losses = in->storage_nodes < nodes[in->protection]
                      ? figure_cannot("there are fewer storage nodes than the protection takes")
                      : figure_of(losses[in->protection]);
    out->usable = figure_of(out->raw.value * (1 - in->reserve) / out->amplification.value);
    out->needed = figure_of((in->dataset + out->checkpoint.value * (in->checkpoints_kept + 1)) *
                            (1 + in->growth));
    out->filled = figure_of(out->needed.value / out->usable.value);
    out->nodes_for_capacity = figure_of(
        whole_up(out->needed.value * out->amplification.value / (1 - in->reserve) / node_size));
}

static void plan_bandwidth(const struct size_inputs *in, struct size_outputs *out) {
    double amplification = out->amplification.value;
    double links = in->storage_nodes * in->storage_link;
    double nodes = in->storage_nodes * in->node_limit;

    out->drives_write = figure_of(out->targets.value * in->drive_write / amplification);
    out->links_write = figure_of(links / amplification);
    out->nodes_write = figure_of(nodes / amplification);
    out->clients_limit = figure_of(in->nodes * in->link);
    double storage = least(out->drives_write.value, out->links_write.value, out->nodes_write.value);
    out->write_bandwidth = figure_of(fmin(storage, out->clients_limit.value) * in->efficiency);
    double reading = least(out->targets.value * in->drive_read, links, nodes);
    out->read_bandwidth = figure_of(fmin(reading, out->clients_limit.value) * in->efficiency);
    out->write_each = figure_of(out->write_bandwidth.value / in->nodes);
    out->checkpoint_time =
        figure_ratio(out->checkpoint.value, out->write_bandwidth.value, "the bandwidth is zero");
}

/* Storage nodes that pass on so much, where the drives of one take or give drives. */
static struct figure nodes_for(const struct size_inputs *in, double bandwidth, double drives) {
    double node = least(drives, in->storage_link, in->node_limit);
    struct figure count =
        figure_ratio(bandwidth, node * in->efficiency, "a storage node has no bandwidth");

    return FIGURE(whole_up(count.value), &count);
}

static void plan_nodes(const struct size_inputs *in, struct size_outputs *out) {
    double drives = in->drives_per_node;

    out->bandwidth_needed =
        figure_ratio(out->checkpoint.value, in->target, "the target time is zero");
    out->nodes_for_bandwidth = nodes_for(in, out->bandwidth_needed.value * out->amplification.value,
                                         drives * in->drive_write);
    if (out->bandwidth_needed.cannot) {
        out->nodes_for_bandwidth = out->bandwidth_needed;
    }
    out->nodes_for_reading = in->read_needed > 0
                                 ? nodes_for(in, in->read_needed, drives * in->drive_read)
                                 : figure_of(0);
    double held = fmax(out->nodes_for_capacity.value, out->nodes_for_protection.value);
    double moved = fmax(out->nodes_for_bandwidth.value, out->nodes_for_reading.value);
    out->nodes_needed = FIGURE(fmax(held, moved), &out->nodes_for_capacity,
                               &out->nodes_for_bandwidth, &out->nodes_for_reading);
}

static void plan_archive(const struct size_inputs *in, struct size_outputs *out) {
    const char *never = "without training between checkpoints their number has no end";

    if (in->archive_every == 0) {
        out->archived = figure_of(0);
        out->archive_rate = figure_of(0);
        return;
    }
    struct figure count = figure_ratio(in->work, in->interval, never);
    out->archived = FIGURE(floor(count.value / in->archive_every) * out->checkpoint.value, &count);
    out->archive_rate =
        figure_ratio(out->checkpoint.value, in->interval * in->archive_every, never);
}

static void plan_targets(const struct size_inputs *in, struct size_outputs *out) {
    out->operations = figure_of(in->nodes * in->node_operations);
    struct figure targets = figure_ratio(out->operations.value, in->target_rate * in->utilisation,
                                         "a metadata target that does nothing is never enough");
    out->metadata_targets = FIGURE(fmax(1, whole_up(targets.value)), &targets);
    out->metadata_size = figure_of(in->file_count * in->inode_bytes);
}

/* Which of the four binds, the first of equals. */
static const char *limit(double drives, double links, double nodes, double clients) {
    double bound = fmin(least(drives, links, nodes), clients);

    return drives == bound  ? "the drives"
           : links == bound ? "the storage nodes' NICs"
           : nodes == bound ? "the storage nodes"
                            : "the training nodes' NICs";
}

static void plan_limits(const struct size_inputs *in, struct size_outputs *out) {
    snprintf(out->write_limit.text, WORDS_BYTES, "%s",
             limit(out->drives_write.value, out->links_write.value, out->nodes_write.value,
                   out->clients_limit.value));
    snprintf(out->read_limit.text, WORDS_BYTES, "%s",
             limit(out->targets.value * in->drive_read, in->storage_nodes * in->storage_link,
                   in->storage_nodes * in->node_limit, out->clients_limit.value));
}

static void plan_verdict(const struct size_inputs *in, struct size_outputs *out) {
    double needed = out->nodes_needed.value;
    const char *why = out->nodes_for_protection.value >= needed  ? "protection"
                      : out->nodes_for_capacity.value >= needed  ? "capacity"
                      : out->nodes_for_bandwidth.value >= needed ? "write bandwidth"
                                                                 : "read bandwidth";
    double clients = out->clients_limit.value * in->efficiency;
    char *text = out->verdict.text;

    if (out->nodes_needed.cannot) {
        snprintf(text, WORDS_BYTES, "no number of storage nodes follows: %s",
                 out->nodes_needed.cannot);
    } else if (out->bandwidth_needed.value > clients) {
        snprintf(
            text, WORDS_BYTES,
            "no number of storage nodes meets the target: the training nodes' NICs are slower");
    } else if (in->read_needed > clients) {
        snprintf(
            text, WORDS_BYTES,
            "no number of storage nodes lets training read so much: its nodes' NICs are slower");
    } else if (needed > in->storage_nodes) {
        snprintf(text, WORDS_BYTES, "too small: the %s needs %.0f storage nodes", why, needed);
    } else {
        snprintf(text, WORDS_BYTES, "large enough: the %s needs %.0f of the storage nodes", why,
                 needed);
    }
}

void size_plan(const struct size_inputs *in, struct size_outputs *out) {
    plan_capacity(in, out);
    plan_bandwidth(in, out);
    plan_nodes(in, out);
    plan_archive(in, out);
    plan_targets(in, out);
    plan_limits(in, out);
    plan_verdict(in, out);
}

PLAN_ONE_ROW(size_plan(inputs, ret_outputs))

#define PLAN_INPUTS size_inputs
#define PLAN_OUTPUTS size_outputs
static const struct plan_input inputs[] = {
#define INPUT PLAN_INPUT_ROW
#define CHOICE PLAN_CHOICE_ROW
#include "planner/size.def"
};
static const struct plan_output outputs[] = {
#define OUTPUT PLAN_OUTPUT_ROW
#define WORDS PLAN_WORDS_ROW
#include "planner/size.def"
};

const struct plan_model plan_size = {
    .name = "size",
    .summary = "Capacity, bandwidth and targets of storage nodes, and how many a job needs.",
    .example = "--storage-nodes 32 --drive-size 4TB --protection erasure --dataset 10TB",
    PLAN_TABLES(inputs, outputs),
    .row = row,
};
