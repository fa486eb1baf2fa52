/* Ticks of a simulated process. */
#include "env/sim_internal.h"
#include <assert.h>
#include <stdlib.h>

/* A started tick; outlives it until the event that is scheduled has come. */
struct ticking {
    struct list_node node; /* of the env's, while started */
    struct env_sim *env;
    struct env_tick *tick; /* NULL once stopped */
};

static void ticking_free(void *context) {
    struct ticking *ticking = context;

    list_remove(&ticking->node);
    free(ticking);
}

static void ticking_schedule(struct ticking *ticking);

static void ticking_fire(void *context) {
    struct ticking *ticking = context;

    if (!ticking->tick) {
        ticking_free(ticking);
        return;
    }
    ticking_schedule(ticking);
    ticking->tick->fire(ticking->tick);
}

static void ticking_schedule(struct ticking *ticking) {
    struct sim_process *process = ticking->env->process;
    uint64_t jitter_ns = process->faults.tick_jitter_ns;
    struct sim_event event = {
        .process = process,
        .delay_ns = ticking->tick->period_ns + prng_below(sim_prng(process->sim), jitter_ns + 1),
        .kind = "tick",
        .run = ticking_fire,
        .drop = ticking_free,
        .context = ticking,
    };

    sim_schedule_event(process->sim, &event);
}

void sim_env_tick_start(struct env *base, struct env_tick *tick) {
    struct env_sim *env = env_sim_of(base);

    assert(tick->period_ns > 0);
    if (env->dead) {
        return;
    }
    struct ticking *ticking = sim_allocate(sizeof *ticking);
    ticking->env = env;
    ticking->tick = tick;
    list_push_back(&env->tickings, &ticking->node);
    ticking_schedule(ticking);
}

void sim_env_tick_stop(struct env *base, struct env_tick *tick) {
    struct env_sim *env = env_sim_of(base);
    struct list_node *node = list_first(&env->tickings);

    while (node && CONTAINER_OF(node, struct ticking, node)->tick != tick) {
        node = list_next(&env->tickings, node);
    }
    if (node) {
        list_remove(node);
        CONTAINER_OF(node, struct ticking, node)->tick = NULL;
    }
}

void sim_ticks_kill(struct env_sim *env) {
    struct list_node *node;

    while ((node = list_pop_front(&env->tickings)) != NULL) {
        CONTAINER_OF(node, struct ticking, node)->tick = NULL;
    }
}
