/* Drawing and setting. */
#include "faults.h"

static bool half(struct prng *prng) {
    return prng_chance(prng, 1, 2);
}

void faults_draw(struct prng *prng, struct fault_plan *ret_plan) {
    bool slow_packets = half(prng);
    bool slow_disks = half(prng);

    *ret_plan = (struct fault_plan){
        .kills = half(prng),
        .powers = half(prng),
        .power_all = half(prng),
        .countdowns = half(prng),
        .partitions = half(prng),
        .drop_per_million = half(prng) ? (uint32_t)prng_between(prng, 100, 20000) : 0,
        .double_per_million = half(prng) ? (uint32_t)prng_between(prng, 100, 50000) : 0,
        .slow_per_million = slow_packets ? (uint32_t)prng_between(prng, 100, 50000) : 0,
        .packet_slow_ns = prng_between(prng, 1, 60) * NS_PER_MS,
        .disk_slow_per_million = slow_disks ? (uint32_t)prng_between(prng, 100, 20000) : 0,
        .disk_slow_ns = prng_between(prng, 1, 100) * NS_PER_MS,
        .clocks = half(prng),
        .down_ns_max = prng_between(prng, 5, 150) * NS_PER_MS,
        .gap_ns_max = prng_between(prng, 5, 120) * NS_PER_MS,
    };
    if (!ret_plan->kills && !ret_plan->powers && !ret_plan->power_all && !ret_plan->countdowns) {
        ret_plan->kills = true;
    }
}

void faults_begin(const struct fault_plan *plan, struct world *world) {
    struct sim_net_faults *net = sim_net_faults(world->net);

    net->drop_per_million = plan->drop_per_million;
    net->double_per_million = plan->double_per_million;
    net->slow_per_million = plan->slow_per_million;
    net->slow_ns = plan->packet_slow_ns;
    for (uint32_t i = 0; i < world->node_count; i++) {
        struct sim_faults *disk = sim_process_faults(world->nodes[i].process);

        disk->slow_per_million = plan->disk_slow_per_million;
        disk->slow_ns = plan->disk_slow_ns;
    }
}

void faults_end(struct world *world) {
    const struct fault_plan none = {.kills = false};

    faults_begin(&none, world);
    sim_net_heal(world->net);
}

void faults_cut(struct prng *prng, struct world *world) {
    const struct node *one = &world->nodes[prng_below(prng, world->node_count)];
    uint64_t kind = prng_below(prng, 3);

    for (uint32_t i = 0; i < world->node_count; i++) {
        const struct node *other = &world->nodes[i];

        if (other == one || (kind == 0 && half(prng))) {
            continue;
        }
        sim_net_cut(world->net, one->process, other->process, true);
        if (kind != 1) {
            sim_net_cut(world->net, other->process, one->process, true);
        }
    }
}

void faults_clock(const struct fault_plan *plan, struct prng *prng, struct node *node) {
    struct sim_faults *faults = sim_process_faults(node->process);

    if (plan->clocks) {
        faults->clock_offset_ns = (int64_t)prng_below(prng, 200 * NS_PER_MS);
        faults->clock_drift_ppm = (int32_t)prng_below(prng, 2000) - 1000;
    }
}
