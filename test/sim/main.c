#include "workload.h"
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct run {
    struct world *world;
    struct workload *load;
    struct prng prng;
    uint64_t restart_ns[WORLD_NODES_MAX];
    bool power_on;
    char failure[600];
    uint64_t crashes;
};

static bool stop_now(void *context) {
    struct run *run = context;
    workload_look(run->load);
    return workload_is_done(run->load);
}
static void nothing(void *context) { (void)context; }
static bool idle_now(void *context) {
    struct run *run = context;
    return workload_is_idle(run->load) || workload_failure(run->load);
}

static void down(struct run *run, struct node *node, bool power) {
    run->crashes++;
    if (power) node_power(node); else node_kill(node);
    if (node->role == NODE_CLIENT) workload_client_gone(run->load, node);
    else if (power) workload_power(run->load, false);
    run->restart_ns[node - run->world->nodes] = sim_now_ns(run->world->sim) + prng_between(&run->prng, 1, 100) * NS_PER_MS;
}

static void act(struct run *run) {
    struct world *world = run->world;
    uint64_t pick = prng_below(&run->prng, 10);
    struct node *node = &world->nodes[prng_below(&run->prng, world->node_count)];
    if (pick < 4) { if (node_is_up(node)) down(run, node, false); }
    else if (pick < 6 && run->power_on) { if (node_is_up(node)) down(run, node, true); }
    else if (pick < 7 && run->power_on) {
        for (uint32_t i = 0; i < world->node_count; i++) if (node_is_up(&world->nodes[i])) down(run, &world->nodes[i], true);
        workload_power(run->load, true);
    } else if (node_is_up(node)) sim_crash_after(node->process, prng_below(&run->prng, 100));
}
static bool restarts(struct run *run, bool all) {
    struct world *world = run->world;
    for (uint32_t i = 0; i < world->node_count; i++) {
        struct node *node = &world->nodes[i];
        if (node_is_up(node) && node_client_failed(node)) { node_kill(node); workload_client_gone(run->load, node); }
        if (node_is_up(node) && node_client(node) && client_is_fenced(node_client(node))) { node_kill(node); workload_client_gone(run->load, node); }
        if (!node_is_up(node) && (all || sim_now_ns(world->sim) >= run->restart_ns[i])) {
            uint64_t n = !all && prng_chance(&run->prng, 1, 6) ? prng_below(&run->prng, 60) : UINT64_MAX;
            if (!node_start(node, n)) { snprintf(run->failure, sizeof run->failure, "%s", world->failure); return false; }
        }
    }
    return true;
}
static int64_t run_seed(uint64_t seed, FILE *trace, uint64_t *ret_hash) {
    struct run run = {0};
    struct world_options o;
    world_draw(seed, &o);
    prng_init(&run.prng, seed ^ 12345);
    run.power_on = prng_chance(&run.prng, 1, 2);
    o.tell = trace;
    run.world = world_new(&o);
    if (trace) sim_trace_to(run.world->sim, trace);
    struct workload_options wo = {.operations = 2500, .depth = 4, .think_ns = prng_between(&run.prng, 100, 5000) * NS_PER_US, .size_max = 300000, .tell = trace};
    run.load = workload_new(run.world, &wo);
    restarts(&run, true);
    uint64_t deadline = 600 * NS_PER_S, next = sim_now_ns(run.world->sim) + 20 * NS_PER_MS;
    while (!workload_is_done(run.load) && !run.failure[0]) {
        sim_schedule(run.world->sim, NULL, next - sim_now_ns(run.world->sim) + 1, nothing, NULL);
        enum sim_stop stop = sim_run_until(run.world->sim, next, stop_now, &run);
        if (stop == SIM_CRASHED) {
            struct sim_process *p = sim_crashed(run.world->sim);
            for (uint32_t i = 0; i < run.world->node_count; i++) if (run.world->nodes[i].process == p) down(&run, &run.world->nodes[i], run.power_on && prng_chance(&run.prng, 1, 2));
        } else if (stop == SIM_DEADLINE) {
            if (prng_chance(&run.prng, 1, 3)) act(&run);
            restarts(&run, false);
            next = sim_now_ns(run.world->sim) + prng_between(&run.prng, 1, 20) * NS_PER_MS;
        }
        if (sim_now_ns(run.world->sim) > deadline) { snprintf(run.failure, sizeof run.failure, "not done by the deadline"); }
    }
    for (uint32_t i = 0; i < run.world->node_count; i++) if (node_is_up(&run.world->nodes[i])) sim_crash_after(run.world->nodes[i].process, UINT64_MAX);
    if (!run.failure[0] && !workload_failure(run.load)) {
        restarts(&run, true);
        if (sim_run_until(run.world->sim, sim_now_ns(run.world->sim) + 60 * NS_PER_S, idle_now, &run) != SIM_DONE) snprintf(run.failure, sizeof run.failure, "some calls are never answered");
    }
    if (workload_failure(run.load)) snprintf(run.failure, sizeof run.failure, "%s", workload_failure(run.load));
    const struct workload_counters *c = workload_counters_get(run.load);
    if (run.failure[0]) printf("seed %" PRIu64 ": %s (last line: %s)\n", seed, run.failure, run.world->last_line);
    if (trace || getenv("V")) printf("seed %" PRIu64 " sub %" PRIu64 " ok %" PRIu64 " failed %" PRIu64 " lost %" PRIu64 " crashes %" PRIu64 " time %.1f ms\n", seed, c->submitted, c->succeeded, c->failed, c->lost, run.crashes, (double)sim_now_ns(run.world->sim) / 1e6);
    *ret_hash = sim_trace_hash(run.world->sim);
    world_free(run.world);
    workload_free(run.load);
    return run.failure[0] ? -1 : 0;
}
int main(int argc, char **argv) {
    uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
    int failed = 0;
    mallopt(M_MMAP_THRESHOLD, 1 << 30); mallopt(M_TRIM_THRESHOLD, 1 << 30); mallopt(M_TOP_PAD, 64 << 20);
    for (uint64_t s = first; s < first + count; s++) {
        uint64_t a, b;
        failed += run_seed(s, argc > 3 ? stdout : NULL, &a) < 0;
        if (argc > 3) continue;
        run_seed(s, NULL, &b);
        if (a != b) { printf("seed %" PRIu64 ": two runs differ\n", s); failed++; }
    }
    printf("%d failed\n", failed);
    return failed > 0;
}
