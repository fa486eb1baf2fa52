/* The model of Shoal itself. */
#include "planner/cluster.h"
#include "layout/cluster_map.h"
#include "layout/layout.h"
#include <stdio.h>
#include <stdlib.h>

static const char no_cost[] = "operations that cost nothing have no limit";
static const char no_rate[] = "no part of a core is planned for";

/* A file has the same number of chunks on each of its chains, so its chains stand for them. They
 * follow one another from its first on, so that a file is noted where it begins and behind its last
 * chain, and those between come by adding up. */
bool cluster_spread(uint32_t file_count, uint32_t stripe_count, uint32_t target_count,
                    double *ret_spread, double *ret_on_fullest) {
    struct pool_version *pool = calloc(1, sizeof *pool);
    int64_t *changes = calloc(CHAINS_MAX + 1, sizeof *changes);
    struct layout layout = {.stripe_count = (uint16_t)MIN(stripe_count, STRIPE_ALL + 0U)};
    int64_t pieces = 0;
    int64_t most = 0;

    if (!pool || !changes) {
        free(pool);
        free(changes);
        return false;
    }
    pool->chain_count = MIN(target_count, CHAINS_MAX + 0U);
    for (uint32_t i = 0; i < pool->chain_count; i++) {
        pool->chains[i] = i;
    }
    uint32_t width = layout_width(&layout, pool);
    for (layout.seed = 0; layout.seed < file_count; layout.seed++) {
        uint32_t first = layout_chain_at(&layout, pool, 0);
        uint32_t last = layout_chain_at(&layout, pool, width - 1);

        changes[first]++;
        changes[last + 1]--;
        changes[0] += last < first;
    }
    for (uint32_t i = 0; i < pool->chain_count; i++) {
        pieces += changes[i];
        most = MAX(most, pieces);
    }
    *ret_spread = (double)most / ((double)file_count * width / pool->chain_count);
    *ret_on_fullest = (double)most / (double)file_count;
    free(pool);
    free(changes);
    return true;
}

static void plan_operations(const struct cluster_inputs *in, struct cluster_outputs *out) {
    double targets = floor(in->metadata_targets);
    double cores = in->cores_per_metadata_target * in->utilisation;

    out->slots_each = figure_of(whole_up(SLOT_COUNT / targets));
    out->slot_spread = figure_of(out->slots_each.value * targets / SLOT_COUNT);
    out->operation_cost = figure_of(in->rpc_cost + in->changes * in->create_cost +
                                    (1 - in->changes) * in->lookup_cost);
    out->target_rate = figure_ratio(cores, out->operation_cost.value, no_cost);
    out->operation_rate =
        FIGURE(targets * out->target_rate.value / out->slot_spread.value, &out->target_rate);
    out->lookup_rate = figure_ratio(
        targets * cores, (in->rpc_cost + in->lookup_cost) * out->slot_spread.value, no_cost);
    out->create_rate = figure_ratio(
        targets * cores, (in->rpc_cost + in->create_cost) * out->slot_spread.value, no_cost);
    out->targets_for_20m = FIGURE(whole_up(20e6 / out->target_rate.value), &out->target_rate);
    out->targets_for_150m = FIGURE(whole_up(150e6 / out->target_rate.value), &out->target_rate);
    if (cores == 0) {
        out->targets_for_20m = figure_cannot(no_rate);
        out->targets_for_150m = figure_cannot(no_rate);
    }
}

struct limits {
    double drive, link, cpu;
};

static struct figure target_limit(const struct limits *limits, struct plan_words *words) {
    double least = fmin(limits->drive, fmin(limits->link, limits->cpu));

    snprintf(words->text, WORDS_BYTES, "%s",
             least == limits->drive  ? "the drive"
             : least == limits->link ? "the network"
                                     : "the processor");
    return figure_of(least);
}

static void plan_data(const struct cluster_inputs *in, struct cluster_outputs *out) {
    double cores = in->cores_per_node / in->targets_per_node;
    double link = in->link / in->targets_per_node;
    double targets = floor(in->targets);
    double spread;
    double on_fullest;

    bool placed = cluster_spread((uint32_t)in->files, (uint32_t)in->stripe_count, (uint32_t)targets,
                                 &spread, &on_fullest);
    out->spread = placed ? figure_of(spread) : figure_cannot("memory ran out");
    out->write_each = target_limit(
        &(struct limits){in->drive_write, link,
                         in->write_cost > 0 ? cores / in->write_cost : in->drive_write},
        &out->write_limit);
    out->read_each =
        target_limit(&(struct limits){in->drive_read, link,
                                      in->read_cost > 0 ? cores / in->read_cost : in->drive_read},
                     &out->read_limit);
    out->write_bandwidth =
        FIGURE(targets * out->write_each.value / in->copies / out->spread.value, &out->spread);
    out->read_bandwidth = FIGURE(targets * out->read_each.value / out->spread.value, &out->spread);
    out->files_on_failed = placed ? figure_of(on_fullest) : out->spread;
    out->files_lost =
        FIGURE(in->copies < 2 ? out->files_on_failed.value : 0, &out->files_on_failed);
    out->degraded_read =
        FIGURE(out->read_bandwidth.value * (1 - 1 / targets), &out->read_bandwidth);
}

void cluster_plan(const struct cluster_inputs *in, struct cluster_outputs *out) {
    double cores = in->clients * in->cores_per_client;

    plan_operations(in, out);
    plan_data(in, out);
    out->client_reads = figure_ratio(cores, in->client_read, no_cost);
    out->client_writes = figure_ratio(cores, in->client_write, no_cost);
    out->small_reads = figure_ratio(cores, in->read_file + in->file_size * in->read_byte, no_cost);
    out->small_writes =
        figure_ratio(cores, in->write_file + in->file_size * in->write_byte, no_cost);
}

PLAN_ONE_ROW(cluster_plan(inputs, ret_outputs))

#define PLAN_INPUTS cluster_inputs
#define PLAN_OUTPUTS cluster_outputs
static const struct plan_input inputs[] = {
#define INPUT PLAN_INPUT_ROW
#include "planner/cluster.def"
};
static const struct plan_output outputs[] = {
#define OUTPUT PLAN_OUTPUT_ROW
#define WORDS PLAN_WORDS_ROW
#include "planner/cluster.def"
};

const struct plan_model plan_cluster = {
    .name = "cluster",
    .summary = "What a Shoal cluster does, from measured costs and its own placement.",
    .example = "--metadata-targets 16 --targets 128 --files 1024 --stripe-count 8",
    PLAN_TABLES(inputs, outputs),
    .row = row,
};
