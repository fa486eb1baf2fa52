/* The life of a seed: all start, work and crash, until the work is done; then everything is up,
 * nothing crashes any more, and every call must be answered within ANSWERS_S of simulated time. */
#include "run.h"
#include "workload.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPERATIONS = 2500,
    DEPTH = 4,
    FILE_BYTES_MAX_HERE = 300000,
    DEADLINE_S = 600, /* of simulated time, for the work */
    ANSWERS_S = 60,   /* for what is open when faults have ended */
    RESTART_MS_MAX = 100,
    FAULT_MS_MAX = 20,
};

struct run {
    struct world *world;
    struct workload *load;
    struct prng prng;
    uint64_t restart_ns[WORLD_NODES_MAX];
    bool power_on; /* power may fail in this seed, not only processes */
    uint64_t crashes;
    char failure[600];
};

static bool is_over(const struct run *run) {
    return workload_is_done(run->load) || workload_failure(run->load) || run->failure[0];
}

static bool stop_now(void *context) {
    struct run *run = context;

    workload_look(run->load);
    return is_over(run);
}

static bool idle_now(void *context) {
    struct run *run = context;

    return workload_is_idle(run->load) || workload_failure(run->load);
}

static void node_gone(struct run *run, struct node *node) {
    if (node->role == NODE_CLIENT) {
        workload_client_gone(run->load, node);
    }
}

static void down(struct run *run, struct node *node, bool power) {
    size_t index = (size_t)(node - run->world->nodes);

    run->crashes++;
    if (power) {
        node_power(node);
    } else {
        node_kill(node);
    }
    node_gone(run, node);
    if (power && node->role != NODE_CLIENT) {
        workload_power(run->load, false);
    }
    run->restart_ns[index] =
        sim_now_ns(run->world->sim) + prng_between(&run->prng, 1, RESTART_MS_MAX) * NS_PER_MS;
}

static void all_down(struct run *run) {
    for (uint32_t i = 0; i < run->world->node_count; i++) {
        if (node_is_up(&run->world->nodes[i])) {
            down(run, &run->world->nodes[i], true);
        }
    }
    workload_power(run->load, true);
}

/* One fault: a process dies, a machine loses power, all do, or one will die at a disk operation. */
static void act(struct run *run) {
    uint64_t pick = prng_below(&run->prng, 10);
    struct node *node = &run->world->nodes[prng_below(&run->prng, run->world->node_count)];

    if (pick == 6 && run->power_on) {
        all_down(run);
    } else if (node_is_up(node) && pick < 4) {
        down(run, node, false);
    } else if (node_is_up(node) && pick < 6 && run->power_on) {
        down(run, node, true);
    } else if (node_is_up(node)) {
        sim_crash_after(node->process, prng_below(&run->prng, 100));
    }
}

/* A client that lost its session, or never got one, ends as a program would. */
static void restart_one(struct run *run, uint32_t index, bool all) {
    struct node *node = &run->world->nodes[index];
    bool fenced = node_is_up(node) && node_client(node) && client_is_fenced(node_client(node));

    if (node_is_up(node) && (fenced || node_client_failed(node))) {
        node_kill(node);
        workload_client_gone(run->load, node);
    }
    if (node_is_up(node) || (!all && sim_now_ns(run->world->sim) < run->restart_ns[index])) {
        return;
    }
    uint64_t countdown =
        !all && prng_chance(&run->prng, 1, 6) ? prng_below(&run->prng, 60) : UINT64_MAX;
    if (!node_start(node, countdown)) {
        snprintf(run->failure, sizeof run->failure, "%s", run->world->failure);
    }
}

static void restart(struct run *run, bool all) {
    for (uint32_t i = 0; i < run->world->node_count && !run->failure[0]; i++) {
        restart_one(run, i, all);
    }
}

static void crashed(struct run *run) {
    struct sim_process *process = sim_crashed(run->world->sim);

    for (uint32_t i = 0; i < run->world->node_count; i++) {
        if (run->world->nodes[i].process == process) {
            down(run, &run->world->nodes[i], run->power_on && prng_chance(&run->prng, 1, 2));
        }
    }
}

static void nothing(void *context) {
    (void)context;
}

static void play(struct run *run) {
    struct sim *sim = run->world->sim;
    uint64_t next = sim_now_ns(sim) + FAULT_MS_MAX * NS_PER_MS;

    restart(run, true);
    while (!is_over(run)) {
        enum sim_stop stop = sim_run_until(sim, next, stop_now, run);

        if (stop == SIM_CRASHED) {
            crashed(run);
        } else if (stop == SIM_DEADLINE) {
            if (prng_chance(&run->prng, 1, 3)) {
                act(run);
            }
            restart(run, false);
            next = sim_now_ns(sim) + prng_between(&run->prng, 1, FAULT_MS_MAX) * NS_PER_MS;
        } else if (stop == SIM_IDLE) {
            /* All nodes are down: time passes until one of them starts. */
            sim_schedule(sim, NULL, next - sim_now_ns(sim) + 1, nothing, NULL);
        }
        if (sim_now_ns(sim) > DEADLINE_S * NS_PER_S) {
            snprintf(run->failure, sizeof run->failure, "not done after %d s", DEADLINE_S);
        }
    }
}

static void mend(struct run *run) {
    struct sim *sim = run->world->sim;

    for (uint32_t i = 0; i < run->world->node_count; i++) {
        if (node_is_up(&run->world->nodes[i])) {
            sim_crash_after(run->world->nodes[i].process, UINT64_MAX);
        }
    }
    if (run->failure[0] || workload_failure(run->load)) {
        return;
    }
    restart(run, true);
    uint64_t end = sim_now_ns(sim) + ANSWERS_S * NS_PER_S;
    if (sim_run_until(sim, end, idle_now, run) != SIM_DONE) {
        snprintf(run->failure, sizeof run->failure, "some calls are not answered %d s after faults",
                 ANSWERS_S);
    }
}

static void sum_up(struct run *run, struct run_totals *totals) {
    const struct workload_counters *counted = workload_counters_get(run->load);
    const struct kv_counters *kv = &run->world->kv_sum;

    world_sum(run->world);
    totals->submitted += counted->submitted;
    totals->succeeded += counted->succeeded;
    totals->failed += counted->failed;
    totals->lost += counted->lost;
    totals->crashes += run->crashes;
    totals->pending_reads += kv->pending_reads;
    totals->duplicates_refused += kv->duplicates_refused;
    totals->checkpoints += kv->checkpoints;
    totals->replayed_records += kv->replayed_records;
    totals->opens_cut += run->world->opens_cut;
}

bool run_seed(uint64_t seed, FILE *trace, struct run_totals *totals, uint64_t *ret_hash,
              char ret_failure[700]) {
    struct run run = {.crashes = 0};
    struct world_options options;

    world_draw(seed, &options);
    prng_init(&run.prng, seed ^ 12345);
    run.power_on = prng_chance(&run.prng, 1, 2);
    run.world = world_new(&options);
    if (trace) {
        sim_trace_to(run.world->sim, trace);
    }
    const struct workload_options load = {
        .operations = OPERATIONS,
        .depth = DEPTH,
        .think_ns = prng_between(&run.prng, 100, 5000) * NS_PER_US,
        .size_max = FILE_BYTES_MAX_HERE,
        .tell = trace,
    };
    run.load = workload_new(run.world, &load);
    play(&run);
    mend(&run);
    sum_up(&run, totals);
    const char *failure = workload_failure(run.load) ? workload_failure(run.load) : run.failure;
    bool clean = !failure[0];
    if (!clean) {
        snprintf(ret_failure, 700, "%.500s (last line of an OST: %.150s)", failure,
                 run.world->last_line);
    }
    *ret_hash = sim_trace_hash(run.world->sim);
    world_free(run.world);
    workload_free(run.load);
    return clean;
}
