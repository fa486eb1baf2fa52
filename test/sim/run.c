/* The life of a seed: all start, work and crash, until the work is done; then everything is up,
 * nothing crashes any more, and every call must be answered within RULE_ANSWERS_S of
 * simulated time. */
#include "run.h"
#include "absences.h"
#include "aways.h"
#include "copies.h"
#include "excuses.h"
#include "faults.h"
#include "floors.h"
#include "fulls.h"
#include "holds.h"
#include "laps.h"
#include "lists.h"
#include "liveness.h"
#include "losses.h"
#include "rot.h"
#include "shapes.h"
#include "shares.h"
#include "silence.h"
#include "stragglers.h"
#include "newcomers.h"
#include "pools.h"
#include "pushes.h"
#include "rebuilds.h"
#include "renewals.h"
#include "strays.h"
#include "usages.h"
#include "sums.h"
#include "whole.h"
#include "workload.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPERATIONS = 2200,
    DEPTH = 4,
    FILES_MAX_HERE = 40,
    FILE_BYTES_MAX_HERE = 300000,
    POOLS_NOTED_S = 2,
    LOSS_CUT_MS = 1500,
    CALM_MOVES = 200,
    FULL_IN_A_ROW = 32,    /* times that a disk is, with little in between */
    FULL_CRASHES_MAX = 40, /* by the end of the work, about */
    NAMES_EXCUSE_S = 7,    /* a checkpoint that met a full disk is tried again every 5 s */
    DEADLINE_S = 600,      /* of simulated time, for the work */
};

struct run {
    struct world *world;
    struct workload *load;
    struct excuses *excuses;
    struct prng prng;
    struct prng key_prng; /* of its own, so that keys change nothing else of a seed */
    uint64_t restart_ns[WORLD_NODES_MAX];
    struct fault_plan plan;
    uint64_t act_ns;    /* when the next fault is due */
    uint64_t heal_ns;   /* when the partition ends; 0: there is none */
    uint64_t empty_ns;  /* when there is room on disks again; 0: there is */
    uint64_t accept_ns; /* when all accept connections again; 0: they do */
    uint64_t go_on_ns;  /* when the process that is stopped goes on; 0: none is */
    struct node *stopped;
    struct node *absent;    /* for longer than usual; NULL: none */
    uint64_t full_again_ns; /* not before that */
    uint32_t full_count;
    uint64_t names_empty_ns;  /* likewise of the metadata target's */
    uint64_t names_excuse_ns; /* until when it may say that there was none */
    uint64_t answers_ns;
    uint64_t crashes;
    uint64_t full_crashes; /* of these, as several limits were full */
    bool names_die;        /* the metadata target crashes most */
    bool moves;            /* directories, also in a calm time at the end */
    bool removes;          /* all files at the end, right after a power failure */
    uint64_t strays;
    struct usages usages;
    uint64_t pushes; /* nodes that a last version came to at once */
    struct newcomers *newcomers;
    struct silence silence;
    struct losses *losses;
    struct rebuilds *rebuilds;
    struct copies *copies;
    struct aways aways;
    struct rot_counters rot;
    uint64_t lot; /* of the turn that the watch makes */
    struct sim_watch watch;
    char failure[600];
};

static enum run_carrier carried_by;

void run_carry_by(enum run_carrier carrier) {
    carried_by = carrier;
}

static bool is_over(const struct run *run) {
    bool done = workload_is_done(run->load) && silence_is_over(&run->silence) &&
                stragglers_are_over(run->world->stragglers) && rebuilds_are_over(run->rebuilds);

    return done || workload_failure(run->load) || newcomers_failure(run->newcomers) ||
           losses_failure(run->losses) || copies_failure(run->copies) ||
           pushes_failure(run->world) || renewals_failure(run->world) ||
           rebuilds_failure(run->rebuilds) || run->failure[0];
}

static uint64_t submitted_of(const struct run *run) {
    return workload_counters_get(run->load)->submitted;
}

static bool stop_now(void *context) {
    struct run *run = context;

    workload_look(run->load);
    return is_over(run) || stragglers_are_due(run->world->stragglers) ||
           rebuilds_are_due(run->rebuilds, submitted_of(run));
}

static bool idle_now(void *context) {
    struct run *run = context;

    return workload_is_idle(run->load) || workload_failure(run->load);
}

static bool settled_now(void *context) {
    struct run *run = context;

    workload_look(run->load);
    return workload_is_settled(run->load) || workload_failure(run->load);
}

static bool floored_now(void *context) {
    struct run *run = context;

    return floors_are_told(run->world);
}

static bool pooled_now(void *context) {
    struct run *run = context;

    return pools_are_settled(run->world);
}

static bool listed_now(void *context) {
    struct run *run = context;

    return lists_are_told(run->world) && lists_await_nobody(run->world);
}

static bool calm_is_over_now(void *context) {
    struct run *run = context;

    workload_look(run->load);
    return workload_is_done(run->load) && workload_is_idle(run->load);
}

static bool ready_now(void *context) {
    struct run *run = context;

    workload_look(run->load);
    return workload_is_ready(run->load) || workload_failure(run->load);
}

static bool joined_now(void *context) {
    struct run *run = context;
    bool done = newcomers_are_done(run->newcomers) && losses_are_over(run->losses);

    return done || newcomers_failure(run->newcomers) || losses_failure(run->losses);
}

static bool one_serves_now(void *context) {
    struct run *run = context;

    return copies_are_done(run->copies) || copies_failure(run->copies);
}

static bool numbered_now(void *context) {
    struct run *run = context;

    return newcomers_are_numbered(run->newcomers) || newcomers_failure(run->newcomers);
}

static void node_gone(struct run *run, struct node *node) {
    if (node->role == NODE_CLIENT) {
        workload_client_gone(run->load, node);
    }
}

static void down(struct run *run, struct node *node, bool power) {
    size_t index = (size_t)(node - run->world->nodes);

    run->crashes++;
    fulls_killed(run->world, node);
    if (power) {
        node_power(node);
    } else {
        node_kill(node);
    }
    node_gone(run, node);
    if (power && node->role != NODE_CLIENT) {
        workload_power(run->load, node);
    }
    run->restart_ns[index] =
        sim_now_ns(run->world->sim) + prng_between(&run->prng, NS_PER_MS, run->plan.down_ns_max);
}

static void all_down(struct run *run) {
    for (uint32_t i = 0; i < run->world->node_count; i++) {
        if (node_is_up(&run->world->nodes[i])) {
            down(run, &run->world->nodes[i], true);
        }
    }
    workload_power(run->load, NULL);
}

/* Most end before anybody is evicted for it. */
static uint64_t partition_ns(struct run *run) {
    uint64_t most_ns = prng_chance(&run->prng, 1, 8) ? 2 * run->world->options.session_timeout_ns
                                                     : 300 * NS_PER_MS;

    return prng_between(&run->prng, NS_PER_MS, most_ns);
}

/* Crashes keep pace with the work. */
static bool may_crash(const struct run *run) {
    uint64_t submitted = workload_counters_get(run->load)->submitted;
    uint64_t others = run->crashes - run->full_crashes;

    return others <= run->plan.crashes_max * submitted / OPERATIONS;
}

/* Likewise those for which several limits must be full at once: of the others' they would get none,
 * as such moments are few. */
static bool may_crash_full(const struct run *run) {
    uint64_t submitted = workload_counters_get(run->load)->submitted;

    return run->full_crashes <= FULL_CRASHES_MAX * submitted / OPERATIONS;
}

static void crash(struct run *run, struct node *node, enum fault_kind kind) {
    if (kind == FAULT_COUNTDOWN) {
        sim_crash_after(node->process, prng_below(&run->prng, 100));
    } else {
        down(run, node, kind == FAULT_POWER);
    }
}

/* A checkpoint that met a full disk is tried again every 5 s only: a disk that is full nearly all
 * the time, as that of an only OST can be, has room for longer now and then. */
static void disk_full(struct run *run, uint64_t now_ns) {
    faults_disk_full(&run->prng, run->world);
    run->empty_ns = now_ns + prng_between(&run->prng, 10, 500) * NS_PER_MS;
    run->full_again_ns =
        ++run->full_count % FULL_IN_A_ROW == 0 ? run->empty_ns + NAMES_EXCUSE_S * NS_PER_S : 0;
}

/* Long enough for what is kept above checkpoints to become full in some seeds. */
static void names_full(struct run *run, uint64_t now_ns) {
    faults_names_full(&run->prng, run->world);
    excuses_names_full(run->excuses, true);
    run->names_empty_ns = now_ns + prng_between(&run->prng, 50, 4000) * NS_PER_MS;
    run->names_excuse_ns = run->names_empty_ns + NAMES_EXCUSE_S * NS_PER_S;
}

/* One fault. */
static void act(struct run *run) {
    uint64_t now_ns = sim_now_ns(run->world->sim);
    struct node *node = &run->world->nodes[prng_below(&run->prng, run->world->node_count)];
    enum fault_kind kind = faults_pick(&run->plan, &run->prng, may_crash(run));

    if (run->names_die && prng_chance(&run->prng, 3, 4)) {
        node = world_any_mdt(run->world, &run->prng);
    }
    if (stragglers_need(run->world->stragglers, node)) {
        return;
    }
    switch (kind) {
    case FAULT_KILL:
    case FAULT_POWER:
    case FAULT_COUNTDOWN:
        if (node_is_up(node)) {
            crash(run, node, kind);
        }
        break;
    case FAULT_POWER_ALL:
        if (prng_chance(&run->prng, 1, 4) && stragglers_are_over(run->world->stragglers)) {
            all_down(run);
        }
        break;
    case FAULT_PARTITION:
        if (run->heal_ns == 0) {
            faults_cut(&run->prng, run->world);
            run->heal_ns = now_ns + partition_ns(run);
        }
        break;
    case FAULT_DISK_FULL:
        if (run->empty_ns == 0 && now_ns >= run->full_again_ns) {
            disk_full(run, now_ns);
        }
        break;
    case FAULT_NAMES_FULL:
        /* Not before the target has seen that there is room. */
        if (run->names_excuse_ns == 0) {
            names_full(run, now_ns);
        }
        break;
    case FAULT_BIT_ROT:
        faults_rot(&run->prng, run->world, run->excuses);
        break;
    case FAULT_STOP:
        if (run->go_on_ns == 0 && node_is_up(node)) {
            node_stop(node);
            run->stopped = node;
            run->go_on_ns = now_ns + partition_ns(run);
        }
        break;
    case FAULT_ACCEPTS:
        if (run->accept_ns == 0) {
            faults_accept_late(&run->prng, run->world);
            run->accept_ns = now_ns + partition_ns(run);
        }
        break;
    case FAULT_LOG_ROT: /* when something starts */
    case FAULT_KINDS:
        break;
    }
}

/* A seed whose lots gave no crash gets one. */
static void act_late(struct run *run) {
    uint64_t submitted = workload_counters_get(run->load)->submitted;

    if (run->crashes == 0 && submitted > OPERATIONS / 2 && node_is_up(run->world->mdts)) {
        down(run, run->world->mdts, !run->plan.has[FAULT_KILL]);
    }
}

static void ends(struct run *run) {
    uint64_t now_ns = sim_now_ns(run->world->sim);

    if (run->heal_ns && now_ns >= run->heal_ns) {
        world_heal(run->world);
        run->heal_ns = 0;
    }
    if (run->accept_ns && now_ns >= run->accept_ns) {
        faults_accept(run->world);
        run->accept_ns = 0;
    }
    if (run->go_on_ns && now_ns >= run->go_on_ns) {
        node_go_on(run->stopped);
        run->go_on_ns = 0;
    }
    if (run->empty_ns && now_ns >= run->empty_ns) {
        faults_disks_empty(run->world);
        run->empty_ns = 0;
    }
    if (run->names_empty_ns && now_ns >= run->names_empty_ns) {
        faults_names_empty(run->world);
        run->names_empty_ns = 0;
    }
    if (run->names_excuse_ns && now_ns >= run->names_excuse_ns) {
        excuses_names_full(run->excuses, false);
        run->names_excuse_ns = 0;
    }
}

/* The manager's own cut, and what comes of it. */
static void silence_go_on(struct run *run) {
    uint64_t submitted = workload_counters_get(run->load)->submitted;

    if (run->heal_ns == 0) {
        run->heal_ns = silence_begin(&run->silence, submitted);
    }
    (void)silence_look(&run->silence, run->failure);
}

/* Programs are interrupted whose answers are lost. */
static void interrupts_go_on(struct run *run) {
    uint64_t cut_ns = run->heal_ns == 0 ? workload_cut(run->load) : 0;

    if (cut_ns > 0) {
        run->heal_ns = sim_now_ns(run->world->sim) + cut_ns;
    }
}

/* The manager's log is gone for good. */
static void rebuilds_go_on(struct run *run) {
    if (rebuilds_look(run->rebuilds, submitted_of(run))) {
        down(run, run->world->manager, true);
        rebuilds_begin(run->rebuilds);
    }
}

/* A target that is gone for good; not while others are asked for what they know. */
static void losses_go_on(struct run *run) {
    bool may = rebuilds_are_over(run->rebuilds);
    struct node *gone = may ? losses_begin(run->losses, submitted_of(run)) : NULL;

    if (gone) {
        down(run, gone, true);
        newcomers_gone(run->newcomers, gone);
    }
    if (losses_cut(run->losses) && run->heal_ns == 0) {
        run->heal_ns = sim_now_ns(run->world->sim) + LOSS_CUT_MS * NS_PER_MS;
    }
}

/* A target that is away for longer than anybody waits. */
static void absences_go_on(struct run *run) {
    struct absences *absences = run->world->absences;
    struct node *gone = absences_begin(absences, workload_counters_get(run->load)->submitted);

    if (gone) {
        down(run, gone, prng_chance(&run->prng, 1, 2));
        run->absent = gone;
    }
    if (run->absent) {
        run->restart_ns[run->absent - run->world->nodes] = absences_end_ns(absences);
    }
    if (run->absent && sim_now_ns(run->world->sim) >= absences_end_ns(absences)) {
        run->absent = NULL;
    }
    (void)absences_look(absences, run->failure);
}

/* A client that writes on when its session has ended. */
static void stragglers_look(struct run *run) {
    uint64_t submitted = workload_counters_get(run->load)->submitted;
    struct stragglers_turn turn =
        stragglers_go_on(run->world->stragglers, submitted, run->heal_ns == 0, run->failure);

    run->heal_ns = turn.heal_ns ? turn.heal_ns : run->heal_ns;
    if (turn.powerless) {
        down(run, turn.powerless, true);
    }
    if (turn.killed) {
        down(run, turn.killed, false);
    }
}

/* A client that lost its session, or never got one, ends as a program would. */
static void restart_one(struct run *run, uint32_t index, bool all) {
    struct node *node = &run->world->nodes[index];
    bool fenced = lists_is_fenced(run->world, node, run->failure);

    if (node_is_up(node) && (fenced || node_client_failed(node))) {
        node_kill(node);
        workload_client_gone(run->load, node);
    }
    if (node_is_absent(node) || node_is_up(node) || losses_has(run->losses, node) ||
        aways_has(&run->aways, node) || rebuilds_has(run->rebuilds, node) ||
        (!all && sim_now_ns(run->world->sim) < run->restart_ns[index])) {
        return;
    }
    uint64_t countdown = !all && run->plan.has[FAULT_COUNTDOWN] && prng_chance(&run->prng, 1, 3)
                             ? prng_below(&run->prng, 30)
                             : UINT64_MAX;
    faults_clock(&run->plan, &run->prng, node);
    if (!all && run->plan.has[FAULT_LOG_ROT] && node->role != NODE_CLIENT &&
        prng_chance(&run->prng, 1, 2) && !rot_play(node, &run->prng, &run->rot, run->failure)) {
        return;
    }
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
            down(run, &run->world->nodes[i],
                 (run->plan.has[FAULT_POWER] || !run->plan.has[FAULT_KILL]) &&
                     prng_chance(&run->prng, 1, 2));
        }
    }
}

/* NULL: all is well. */
static const char *failure_of(const struct run *run) {
    const char *failure = workload_failure(run->load);

    failure = failure ? failure : newcomers_failure(run->newcomers);
    failure = failure ? failure : losses_failure(run->losses);
    failure = failure ? failure : rebuilds_failure(run->rebuilds);
    failure = failure ? failure : copies_failure(run->copies);
    failure = failure ? failure : pushes_failure(run->world);
    failure = failure ? failure : renewals_failure(run->world);
    return failure ? failure : run->failure[0] ? run->failure : NULL;
}

static void nothing(void *context) {
    (void)context;
}

/* Targets that have several limits full die now and then. */
static void fulls_go_on(struct run *run) {
    struct node *full = fulls_look(run->world);

    if (full && may_crash_full(run) && !stragglers_need(run->world->stragglers, full)) {
        run->full_crashes++;
        down(run, full, run->crashes % 2 == 1 && run->plan.has[FAULT_POWER]);
    }
}

static void play(struct run *run) {
    struct sim *sim = run->world->sim;
    uint64_t next = sim_now_ns(sim) + 20 * NS_PER_MS;

    restart(run, true);
    faults_begin(&run->plan, run->world);
    while (!is_over(run)) {
        enum sim_stop stop = sim_run_until(sim, next, stop_now, run);

        if (stop == SIM_CRASHED) {
            crashed(run);
        } else if (stop == SIM_DONE) {
            stragglers_look(run);
            rebuilds_go_on(run);
        } else if (stop == SIM_DEADLINE) {
            fulls_go_on(run);
            ends(run);
            stragglers_look(run);
            silence_go_on(run);
            losses_go_on(run);
            rebuilds_go_on(run);
            interrupts_go_on(run);
            absences_go_on(run);
            act_late(run);
            if (sim_now_ns(sim) >= run->act_ns) {
                act(run);
                run->act_ns = sim_now_ns(sim) + prng_below(&run->prng, run->plan.gap_ns_max);
            }
            restart(run, false);
            renewals_turn(run->world->renewals, &run->key_prng);
            next = sim_now_ns(sim) + prng_between(&run->prng, NS_PER_MS, 10 * NS_PER_MS);
        } else if (stop == SIM_IDLE) {
            /* All nodes are down: time passes until one of them starts. */
            sim_schedule(sim, NULL, next - sim_now_ns(sim) + 1, nothing, NULL);
        }
        if (sim_now_ns(sim) > DEADLINE_S * NS_PER_S) {
            snprintf(run->failure, sizeof run->failure, "not done after %d s", DEADLINE_S);
        }
    }
}

/* What is left when all calls are answered: closes that stayed with clients, then the names, and
 * the sizes. */
static void review(struct run *run) {
    struct sim *sim = run->world->sim;
    const uint64_t now_ns = sim_now_ns(sim);

    if (!failure_of(run) &&
        sim_run_until(sim, now_ns + RULE_LATE_S * NS_PER_S, settled_now, run) != SIM_DONE) {
        snprintf(run->failure, sizeof run->failure, "a close is not taken after %d s", RULE_LATE_S);
    }
    if (!failure_of(run) && workload_review(run->load) &&
        sim_run_until(sim, sim_now_ns(sim) + RULE_ANSWERS_S * NS_PER_S, idle_now, run) !=
            SIM_DONE) {
        snprintf(run->failure, sizeof run->failure, "the names cannot be looked at");
    }
    if (!failure_of(run) && workload_measure(run->load) &&
        sim_run_until(sim, sim_now_ns(sim) + RULE_ANSWERS_S * NS_PER_S, idle_now, run) !=
            SIM_DONE) {
        snprintf(run->failure, sizeof run->failure, "the sizes cannot be looked at");
    }
}

/* All hand-overs end. */
static void shares_wait(struct run *run, uint64_t end_ns) {
    struct sim *sim = run->world->sim;

    while (!failure_of(run) && !shares_are_dealt(run->world, run->failure) && !run->failure[0]) {
        (void)sim_run_until(sim, sim_now_ns(sim) + 100 * NS_PER_MS, NULL, NULL);
        if (sim_now_ns(sim) > end_ns) {
            snprintf(run->failure, sizeof run->failure,
                     "slots are not dealt evenly %d s after faults", RULE_ANSWERS_S);
        }
    }
}

/* An idle session awaits nothing, and has told so. */
static void floors(struct run *run) {
    struct sim *sim = run->world->sim;
    uint64_t end = sim_now_ns(sim) + RULE_FLOORS_S * NS_PER_S;

    if (!failure_of(run) && sim_run_until(sim, end, floored_now, run) != SIM_DONE) {
        floors_print(run->world, run->failure);
    }
}

/* Who is full is in no pool version that new files get, and who has room is. What targets say of
 * their space is as old as POOLS_NOTED_S. */
static void pools(struct run *run) {
    struct sim *sim = run->world->sim;
    uint64_t end = sim_now_ns(sim) + RULE_POOLS_S * NS_PER_S;

    if (!failure_of(run)) {
        (void)sim_run_until(sim, sim_now_ns(sim) + POOLS_NOTED_S * NS_PER_S, NULL, NULL);
    }
    if (!failure_of(run) && sim_run_until(sim, end, pooled_now, run) != SIM_DONE) {
        snprintf(run->failure, sizeof run->failure,
                 "the newest pool version is not as storage targets are %d s after faults",
                 RULE_POOLS_S);
    }
}

/* Who has ended is told to all, also to those that were away. */
static void lists(struct run *run) {
    struct sim *sim = run->world->sim;
    uint64_t end = sim_now_ns(sim) + RULE_LISTS_S * NS_PER_S;

    if (failure_of(run)) {
        return;
    }
    if (sim_run_until(sim, end, listed_now, run) != SIM_DONE) {
        snprintf(run->failure, sizeof run->failure,
                 "the end of a session is not told to all, or a client that is idle is not back "
                 "at a metadata target, %d s after faults",
                 RULE_LISTS_S);
        return;
    }
    while (!lists_are_settled(run->world) && sim_now_ns(sim) < end) {
        (void)sim_run_until(sim, sim_now_ns(sim) + 10 * NS_PER_MS, NULL, NULL);
    }
    (void)lists_check(run->world, run->failure);
}

/* Clients move directories against one another, and nothing else is in their way. */
static void moves_go_on(struct run *run) {
    struct sim *sim = run->world->sim;
    uint64_t end = sim_now_ns(sim) + 2 * RULE_ANSWERS_S * NS_PER_S;

    if (!run->moves || failure_of(run)) {
        return;
    }
    workload_go_on(run->load, CALM_MOVES);
    bool is_over = false;
    while (!is_over && !failure_of(run) && sim_now_ns(sim) < end) {
        uint64_t soon = sim_now_ns(sim) + 20 * NS_PER_MS;

        is_over = sim_run_until(sim, soon, calm_is_over_now, run) == SIM_DONE;
        restart(run, true); /* clients that are told only now that they were silent for too long */
    }
    if (!is_over && !failure_of(run)) {
        snprintf(run->failure, sizeof run->failure, "%d moves take more than %d s", CALM_MOVES,
                 2 * RULE_ANSWERS_S);
    }
}

/* All have the newest map and wait for a newer one, which then comes to them. */
static void pushes(struct run *run) {
    struct sim *sim = run->world->sim;
    uint64_t end = sim_now_ns(sim) + RULE_PUSHES_S * NS_PER_S;

    while (!failure_of(run) && !pushes_are_settled(run->world)) {
        (void)sim_run_until(sim, sim_now_ns(sim) + 20 * NS_PER_MS, NULL, NULL);
        restart(run, true); /* clients whose session did not begin */
        if (sim_now_ns(sim) > end) {
            snprintf(run->failure, sizeof run->failure,
                     "the newest map is not where it should be %d s after faults", RULE_PUSHES_S);
        }
    }
    end += RULE_PUSHES_S * NS_PER_S;
    uint32_t waiting = failure_of(run) ? 0 : pushes_waiting(run->world);
    while (!failure_of(run) && !pushes_make(run->world)) {
        (void)sim_run_until(sim, sim_now_ns(sim) + 5 * NS_PER_MS, NULL, NULL);
        if (sim_now_ns(sim) > end) {
            snprintf(run->failure, sizeof run->failure, "no version of the map is made");
        }
    }
    (void)sim_run_until(sim, sim_now_ns(sim) + PUSHES_MS * NS_PER_MS, NULL, NULL);
    run->pushes = failure_of(run) ? 0 : pushes_arrived(run->world);
    if (!failure_of(run) && run->pushes < waiting) {
        snprintf(run->failure, sizeof run->failure,
                 "%" PRIu32 " nodes wait for a newer map, and %" PRIu64 " have it after %d ms",
                 waiting, run->pushes, PUSHES_MS);
    }
}

static void mend(struct run *run) {
    struct sim *sim = run->world->sim;

    while (sim_crashed(sim)) {
        crashed(run); /* In a start that was the last thing before. */
    }
    for (uint32_t i = 0; i < run->world->node_count; i++) {
        if (node_is_up(&run->world->nodes[i])) {
            sim_crash_after(run->world->nodes[i].process, UINT64_MAX);
        }
    }
    if (run->failure[0] || workload_failure(run->load)) {
        return;
    }
    faults_end(run->world);
    restart(run, true);
    uint64_t begin = sim_now_ns(sim);
    uint64_t end = begin + RULE_ANSWERS_S * NS_PER_S;
    bool ready = false;
    while (!ready && !run->failure[0] && sim_now_ns(sim) < end) {
        ready = sim_run_until(sim, sim_now_ns(sim) + 20 * NS_PER_MS, ready_now, run) == SIM_DONE;
        restart(run, true); /* clients that were silent for too long before */
    }
    if (!ready || sim_run_until(sim, end, idle_now, run) != SIM_DONE) {
        snprintf(run->failure, sizeof run->failure, "%s %d s after faults",
                 ready ? "some calls are not answered" : "no client has a session", RULE_ANSWERS_S);
    }
    run->answers_ns = sim_now_ns(sim) - begin;
    moves_go_on(run);
    /* Whoever tries a machine that was silent notices that it is back when the attempt ends. */
    (void)sim_run_until(sim, sim_now_ns(sim) + 2 * run->world->options.lane_connect_ns, NULL, NULL);
    newcomers_end(run->newcomers);
    copies_end(run->copies);
    end = sim_now_ns(sim) + RULE_ANSWERS_S * NS_PER_S; /* They begin to come to an end only now. */
    if (!failure_of(run) && sim_run_until(sim, end, numbered_now, run) == SIM_DONE) {
        restart(run, true); /* One that has its numbers only now. */
    }
    if (!failure_of(run) && sim_run_until(sim, end, joined_now, run) != SIM_DONE) {
        snprintf(run->failure, sizeof run->failure, "a node cannot join within %d s",
                 RULE_ANSWERS_S);
    }
    if (!failure_of(run) && sim_run_until(sim, end, one_serves_now, run) != SIM_DONE) {
        snprintf(run->failure, sizeof run->failure,
                 "not exactly one of a node's copies is registered within %d s", RULE_ANSWERS_S);
    }
    shares_wait(run, end);
    workload_look(run->load);
    review(run);
    if (!failure_of(run)) {
        holds_check(run->world, RULE_LATE_S, run->failure);
    }
    floors(run);
    lists(run);
    pools(run);
    pushes(run);
}

/* The metadata target is killed, or loses power, once more; and clients come whose predecessors had
 * closed nothing. */
static void start_again(struct run *run) {
    struct world *world = run->world;

    if (prng_chance(&run->prng, 1, 2)) {
        down(run, world_any_mdt(world, &run->prng), prng_chance(&run->prng, 1, 2));
    }
    for (uint32_t i = 0; i < world->options.client_count; i++) {
        if (node_is_up(&world->clients[i])) {
            down(run, &world->clients[i], false);
        }
    }
    restart(run, true);
}

typedef bool away_look(struct world *world, const struct node *away, char failure[600]);

/* NULL: none is, in this seed. */
static const struct node *away_begin(struct run *run) {
    struct node *away = aways_begin(&run->aways);

    if (away) {
        down(run, away, false);
    }
    return away;
}

/* What does not need it ends soon. Then it starts again. */
static void away_end(struct run *run, const struct node *away, uint64_t soon_ns, away_look *look) {
    struct sim *sim = run->world->sim;
    uint64_t end_ns = sim_now_ns(sim) + soon_ns;
    char left[600] = "";

    while (away && !failure_of(run) && !look(run->world, away, left)) {
        (void)sim_run_until(sim, sim_now_ns(sim) + 100 * NS_PER_MS, NULL, NULL);
        restart(run, true); /* clients whose session did not begin */
        if (sim_now_ns(sim) > end_ns) {
            snprintf(run->failure, sizeof run->failure, "while only %s was away: %.500s",
                     sim_process_name(away->process), left);
        }
    }
    aways_end(&run->aways);
    restart(run, true);
}

static void remove_all(struct run *run, uint64_t end_ns) {
    const struct node *away = away_begin(run);

    if (workload_remove(run->load) &&
        sim_run_until(run->world->sim, end_ns, idle_now, run) != SIM_DONE) {
        snprintf(run->failure, sizeof run->failure, "the files cannot be removed");
    }
    away_end(run, away, RULE_AWAY_S * NS_PER_S, strays_are_elsewhere);
}

/* When all is done and nobody has anything open, every chunk is a file's, or a scrub's. */
static void clear(struct run *run) {
    struct sim *sim = run->world->sim;
    uint64_t end = sim_now_ns(sim) + 2 * RULE_ANSWERS_S * NS_PER_S;
    char left[200];

    if (failure_of(run) || !pools_check(run->world, run->failure)) {
        return;
    }
    if (run->removes) {
        remove_all(run, end);
    }
    pools(run);
    const struct node *away = run->removes ? NULL : away_begin(run);
    start_again(run);
    away_end(run, away, RULE_AWAY_S * NS_PER_S + 2 * run->world->options.session_timeout_ns,
             strays_writers_need);
    while (!failure_of(run) && !strays_are_settled(run->world, left)) {
        (void)sim_run_until(sim, sim_now_ns(sim) + 100 * NS_PER_MS, NULL, NULL);
        restart(run, true); /* clients whose session did not begin */
        if (sim_now_ns(sim) > end) {
            snprintf(run->failure, sizeof run->failure, "orders or opens are left after %d s: %s",
                     2 * RULE_ANSWERS_S, left);
        }
    }
    if (!failure_of(run) && strays_check(run->world, &run->strays, run->failure) &&
        whole_check(run->world, run->failure)) {
        (void)usages_check(run->world, &run->usages, run->failure);
    }
    shares_wait(run, end);
}

/* One of each kind of operation, by every client; then nobody waits. */
static void alive(struct run *run, struct seed_report *report) {
    struct sim *sim = run->world->sim;
    struct liveness *liveness = liveness_new(run->world, excuses_has_no_space(run->excuses));

    while (!failure_of(run) && !liveness_look(liveness, run->failure)) {
        (void)sim_run_until(sim, sim_now_ns(sim) + 20 * NS_PER_MS, NULL, NULL);
        restart(run, true); /* clients whose session did not begin */
    }
    liveness_sum(liveness, report);
    liveness_free(liveness);
}

static void sum_up(struct run *run, struct seed_report *report) {
    struct world *world = run->world;
    uint64_t *counts = report->counts;

    world_sum(world);
    sums_of_world(world, counts);
    workload_sum(run->load, counts);
    counts[TOTAL_NO_SPACE] = excuses_no_space_count(run->excuses);
    counts[TOTAL_NAMES_NO_SPACE] = excuses_names_full_count(run->excuses);
    counts[TOTAL_BITS_FOUND] = excuses_damaged_count(run->excuses);
    counts[TOTAL_DAMAGE_CUT] = world->ost_sum.cuts_through_damage;
    counts[TOTAL_KEY_ROTATIONS] = world->rotations;
    counts[TOTAL_KEYS_GONE] = world->keys_gone;
    counts[TOTAL_KEY_NUMBERS] = renewals_made(world);
    counts[TOTAL_RENEWALS_REFUSED] = renewals_refused(world);
    counts[TOTAL_CAPABILITIES_CHECKED] = world->ost_sum.capabilities_checked;
    counts[TOTAL_CAPABILITIES_REFUSED] = world->ost_sum.capabilities_refused;
    counts[TOTAL_LOGS_ROT] = run->rot.flipped;
    counts[TOTAL_LOGS_REFUSED] = run->rot.refused;
    counts[TOTAL_LOGS_TORN] = run->rot.torn;
    counts[TOTAL_STRAYS] = run->strays;
    usages_sum(&run->usages, world, counts);
    counts[TOTAL_JOINS] = newcomers_joins(run->newcomers);
    counts[TOTAL_JOINS_GATHERED] = run->world->joins_gathered;
    counts[TOTAL_MAPS] = run->world->maps;
    counts[TOTAL_MAP_CHANGES] = pushes_by_changes(run->world);
    counts[TOTAL_MAP_PUSHES] = run->pushes;
    counts[TOTAL_MANAGER_CUTS] = run->silence.cuts[SILENCE_BOTH];
    counts[TOTAL_MANAGER_DEAF] = run->silence.cuts[SILENCE_INWARD];
    counts[TOTAL_MANAGER_MUTE] = run->silence.cuts[SILENCE_OUTWARD];
    counts[TOTAL_EVICTIONS] = run->world->hearing_sum.silent_evicted;
    counts[TOTAL_EVICTIONS_HELD] = run->world->hearing_sum.silent_held;
    counts[TOTAL_LATE_WRITES] = run->world->late_writes;
    counts[TOTAL_POOLS_LEFT] = pools_left(run->world);
    counts[TOTAL_POOLS_BACK] = pools_back(run->world);
    losses_sum(run->losses, counts);
    rebuilds_sum(run->rebuilds, counts);
    counts[TOTAL_COPIES] = copies_made(run->copies);
    counts[TOTAL_COPIES_REFUSED] = copies_refused(run->copies);
    counts[TOTAL_COPIES_RUN] = copies_run(run->copies);
    counts[TOTAL_COPIES_MOVED] = copies_moved(run->copies);
    counts[TOTAL_AWAYS] = run->aways.count;
    counts[TOTAL_PUT_ASIDE] = run->world->group_sum.orders_put_aside;
    counts[TOTAL_PAUSES] = run->world->group_sum.pauses;
    counts[TOTAL_AWAY_ANSWERS] = absences_given_up(world->absences);
    counts[TOTAL_AWAY_AT_ONCE] = absences_at_once(world->absences);
    counts[TOTAL_SLOTS] = shares_handed_over(run->world);
    counts[TOTAL_SESSIONS_ENDED] = run->world->group_sum.evictions;
    report->hash = sim_trace_hash(world->sim);
    report->answers_ns = run->answers_ns;
    report->clients = world->options.client_count;
    report->osts = world->options.ost_count;
    report->smallest = world->options.smallest;
    report->streams = world->options.streams;
    report->wraps = world->options.wraps;
    report->full_pairs = world->full_pairs;
    report->laps = laps_median(world);
}

static void run_end(struct run *run, struct seed_report *report) {
    const char *failure = failure_of(run);

    sum_up(run, report);
    report->clean = !failure;
    if (!report->clean) {
        snprintf(report->failure, sizeof report->failure, "%.500s%s%.150s", failure,
                 run->world->last_line[0] ? "; an OST has logged: " : "", run->world->last_line);
    }
    seed_report_check(report);
    struct stragglers *stragglers = run->world->stragglers;
    world_free(run->world);
    workload_free(run->load);
    rebuilds_free(run->rebuilds);
    newcomers_free(run->newcomers);
    losses_free(run->losses);
    copies_free(run->copies);
    stragglers_free(stragglers);
    excuses_free(run->excuses);
}

static void redraw(void *context) {
    struct run *run = context;

    prng_init(sim_prng(run->world->sim), run->lot);
    prng_init(&run->prng, run->lot ^ 12345);
    prng_init(&run->key_prng, run->lot ^ 54321);
}

static void turn_at(struct run *run, const struct run_turn *turn) {
    run->lot = turn->lot;
    run->watch = (struct sim_watch){turn->now_ns, turn->at_ns, turn->lot ? redraw : NULL, run};
    sim_watch(run->world->sim, &run->watch);
}

void run_seed(uint64_t seed, FILE *trace, const struct run_turn *turn,
              struct seed_report *ret_report) {
    struct run run = {.excuses = excuses_new()};
    struct world_options options;

    world_draw(seed, &options);
    options.tell = trace;
    prng_init(&run.prng, seed ^ 12345);
    prng_init(&run.key_prng, seed ^ 54321);
    faults_draw(&run.prng, &run.plan);
    options.streams = carried_by == CARRIER_DRAWN ? options.streams : carried_by == CARRIER_STREAMS;
    if (options.streams) {
        faults_draw_streams(seed, &run.plan);
    }
    if (run.plan.has[FAULT_DISK_FULL]) {
        excuses_no_space(run.excuses);
        if (prng_chance(&run.prng, 1, 2)) {
            options.data_bytes_max = prng_between(&run.prng, 2, 5) * MIB;
        }
    }
    struct workload_options load = {
        .operations = OPERATIONS,
        .depth = DEPTH,
        .think_ns = prng_between(&run.prng, 100, 5000) * NS_PER_US,
        .files_max = FILES_MAX_HERE,
        .size_max = FILE_BYTES_MAX_HERE,
        .excuses = run.excuses,
        .tell = trace,
    };
    struct shape shape = {&run.prng, &run.plan, run.excuses, false, false, false};
    shapes_draw(&shape, &options, &load);
    run.removes = shape.removes;
    run.names_die = shape.names_die;
    run.moves = shape.moves;
    run.world = world_new(&options);
    if (trace) {
        sim_trace_to(run.world->sim, trace);
    }
    if (turn) {
        turn_at(&run, turn);
    }
    run.losses = losses_new(run.world, OPERATIONS);
    run.world->absences = absences_new(run.world, OPERATIONS);
    run.world->stragglers = stragglers_new(run.world, OPERATIONS, !run.removes);
    run.world->renewals = renewals_new(run.world);
    load.losses = run.losses;
    run.copies = copies_new(run.world);
    aways_init(&run.aways, run.world, run.losses);
    run.load = workload_new(run.world, &load);
    run.newcomers = newcomers_new(run.world, seed);
    const struct rebuilds_told told = {run.losses, run.newcomers, run.copies};
    run.rebuilds = rebuilds_new(run.world, &told, OPERATIONS);
    silence_init(&run.silence, run.world, run.newcomers, OPERATIONS);
    play(&run);
    if (run.removes && !failure_of(&run)) {
        all_down(&run);
    }
    mend(&run);
    clear(&run);
    alive(&run, ret_report);
    run_end(&run, ret_report);
}
