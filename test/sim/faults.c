/* Drawing and setting. */
#include "faults.h"
#include "env/sim_stream.h"
#include "kv/kv_mem.h"

enum { LABEL_BYTES = BLOCK_BYTES }; /* a bit of it that flips fails a start, not a read */

static bool half(struct prng *prng) {
    return prng_chance(prng, 1, 2);
}

void faults_draw(struct prng *prng, struct fault_plan *ret_plan) {
    bool slow_packets = half(prng);
    bool slow_disks = half(prng);

    *ret_plan = (struct fault_plan){
        .has = {[FAULT_KILL] = half(prng),
                [FAULT_POWER] = half(prng),
                [FAULT_POWER_ALL] = half(prng),
                [FAULT_COUNTDOWN] = half(prng),
                [FAULT_PARTITION] = half(prng),
                [FAULT_DISK_FULL] = prng_chance(prng, 1, 3),
                [FAULT_NAMES_FULL] = prng_chance(prng, 1, 4),
                [FAULT_LOG_ROT] = prng_chance(prng, 1, 4),
                [FAULT_BIT_ROT] = prng_chance(prng, 1, 3)},
        .drop_per_million = half(prng) ? (uint32_t)prng_between(prng, 100, 20000) : 0,
        .double_per_million = half(prng) ? (uint32_t)prng_between(prng, 100, 50000) : 0,
        .slow_per_million = slow_packets ? (uint32_t)prng_between(prng, 100, 50000) : 0,
        .packet_slow_ns = prng_between(prng, 1, 60) * NS_PER_MS,
        .disk_slow_per_million = slow_disks ? (uint32_t)prng_between(prng, 100, 20000) : 0,
        .disk_slow_ns = prng_between(prng, 1, 100) * NS_PER_MS,
        .clocks = half(prng),
        .down_ns_max = prng_between(prng, 5, 150) * NS_PER_MS,
        .gap_ns_max = prng_between(prng, 5, 120) * NS_PER_MS,
        .crashes_max = (uint32_t)prng_between(prng, 2, half(prng) ? 20 : 100),
    };
    if (!ret_plan->has[FAULT_KILL] && !ret_plan->has[FAULT_POWER] &&
        !ret_plan->has[FAULT_POWER_ALL] && !ret_plan->has[FAULT_COUNTDOWN]) {
        ret_plan->has[FAULT_KILL] = true;
    }
}

void faults_draw_streams(uint64_t seed, struct fault_plan *plan) {
    struct prng prng;

    prng_init(&prng, seed ^ UINT64_C(0x73747265616d73));
    plan->has[FAULT_STOP] = half(&prng);
    plan->has[FAULT_ACCEPTS] = prng_chance(&prng, 1, 3);
    plan->give_up_ns = half(&prng) ? prng_between(&prng, 100, 3000) * NS_PER_MS : 0;
    plan->buffer_bytes = UINT32_C(1024) << prng_below(&prng, 9);
    plan->segment_bytes_max = UINT32_C(1024) << prng_between(&prng, 0, 5);
    plan->reset_per_million =
        half(&prng) ? (uint32_t)(plan->segment_bytes_max / prng_between(&prng, 8, 100)) : 0;
}

static bool is_crash(enum fault_kind kind) {
    return kind <= FAULT_COUNTDOWN;
}

enum fault_kind faults_pick(const struct fault_plan *plan, struct prng *prng, bool crash) {
    enum fault_kind picked = FAULT_KINDS;
    uint64_t seen = 0;

    for (int kind = 0; kind < FAULT_KINDS; kind++) {
        bool may = plan->has[kind] && (crash || !is_crash(kind)) && kind != FAULT_LOG_ROT;

        /* Each of those seen is the picked one with the same probability. */
        if (may && prng_below(prng, ++seen) == 0) {
            picked = kind;
        }
    }
    return picked;
}

static void streams_begin(const struct fault_plan *plan, struct world *world) {
    struct sim_stream_faults *streams = sim_stream_faults(world->sim);

    streams->slow_per_million = plan->slow_per_million;
    streams->slow_ns = plan->packet_slow_ns;
    streams->reset_per_million = plan->reset_per_million;
    streams->give_up_ns = plan->give_up_ns;
    if (plan->buffer_bytes > 0) {
        streams->buffer_bytes = plan->buffer_bytes;
        streams->segment_bytes_max = plan->segment_bytes_max;
    }
}

void faults_begin(const struct fault_plan *plan, struct world *world) {
    struct sim_net_faults *net = sim_net_faults(world->net);

    net->drop_per_million = plan->drop_per_million;
    net->double_per_million = plan->double_per_million;
    net->slow_per_million = plan->slow_per_million;
    net->slow_ns = plan->packet_slow_ns;
    streams_begin(plan, world);
    for (uint32_t i = 0; i < world->node_count; i++) {
        struct sim_faults *disk = sim_process_faults(world->nodes[i].process);

        disk->slow_per_million = plan->disk_slow_per_million;
        disk->slow_ns = plan->disk_slow_ns;
    }
}

void faults_end(struct world *world) {
    const struct fault_plan none = {.clocks = false};

    faults_begin(&none, world);
    faults_disks_empty(world);
    faults_names_empty(world);
    world_heal(world);
    faults_accept(world);
    for (uint32_t i = 0; i < world->node_count; i++) {
        node_go_on(&world->nodes[i]);
    }
}

void faults_cut(struct prng *prng, struct world *world) {
    const struct node *one = &world->nodes[prng_below(prng, world->node_count)];
    uint64_t kind = prng_below(prng, 3);

    for (uint32_t i = 0; i < world->node_count; i++) {
        const struct node *other = &world->nodes[i];

        if (other == one || (kind == 0 && half(prng))) {
            continue;
        }
        world_cut(world, one, other);
        if (kind != 1) {
            world_cut(world, other, one);
        }
    }
}

void faults_clock(const struct fault_plan *plan, struct prng *prng, struct node *node) {
    struct sim_faults *faults = sim_process_faults(node->process);

    if (plan->clocks) {
        faults->clock_offset_ns = (int64_t)prng_below(prng, 10 * NS_PER_S);
        faults->clock_drift_ppm = (int32_t)prng_below(prng, 2000) - 1000;
        sim_count(node->world->sim, "clocks skewed", 1);
    }
}

void faults_accept_late(struct prng *prng, struct world *world) {
    const struct node *node = &world->nodes[prng_below(prng, world->node_count)];

    sim_stream_limit(node->process, (uint32_t)prng_below(prng, 4));
}

void faults_accept(struct world *world) {
    for (uint32_t i = 0; i < world->node_count; i++) {
        sim_stream_limit(world->nodes[i].process, UINT32_MAX);
    }
}

static struct node *any_ost(struct prng *prng, struct world *world) {
    return &world->osts[prng_below(prng, world->options.ost_count)];
}

void faults_disk_full(struct prng *prng, struct world *world) {
    const struct node *ost = any_ost(prng, world);
    uint64_t used = sim_disk_used_bytes(ost->process);

    /* Without a whole log yet, its first start would be refused, and rightly. */
    if (used > 0 && node_is_up(ost)) {
        sim_process_faults(ost->process)->capacity_bytes = used + prng_below(prng, 256 * KIB);
        kv_mem_store_full(ost->store, true);
        sim_count(world->sim, "disks full", 1);
    }
}

void faults_disks_empty(struct world *world) {
    for (uint32_t i = 0; i < world->options.ost_count; i++) {
        sim_process_faults(world->osts[i].process)->capacity_bytes = 0;
        kv_mem_store_full(world->osts[i].store, false);
    }
}

void faults_names_full(struct prng *prng, struct world *world) {
    struct node *mdt = world_any_mdt(world, prng);
    uint64_t used = sim_disk_used_bytes(mdt->process);

    if (used > 0) {
        sim_process_faults(mdt->process)->capacity_bytes = used;
        kv_mem_store_full(mdt->store, true);
        sim_count(world->sim, "metadata disks full", 1);
    }
}

void faults_names_empty(struct world *world) {
    for (uint32_t i = 0; i < world->options.mdt_count; i++) {
        sim_process_faults(world->mdts[i].process)->capacity_bytes = 0;
        kv_mem_store_full(world->mdts[i].store, false);
    }
}

void faults_rot(struct prng *prng, struct world *world, struct excuses *excuses) {
    const struct node *ost = any_ost(prng, world);
    const struct sim_flip flip = {
        .path = "data", .offset = LABEL_BYTES, .size = UINT64_MAX, .block_count = 1};

    excuses_flipped(excuses, sim_disk_flip(ost->process, &flip, NULL));
}
