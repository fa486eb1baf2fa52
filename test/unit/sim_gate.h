/* A gate in a process of the simulated world, at the address "/server": each request that comes is
 * answered at once, its bulk filled with 'b'.
 *
 * Thread: the world's. Memory: the caller's, until sim_gate_end. */
#pragma once
#include "env/env_sim.h"
#include "rpc/call.h"
#include "rpc/gate.h"
#include "rpc/worker.h"

enum { SIM_GATE_TICK_MS = 20, SIM_GATE_HELD = 64 };

struct sim_gate {
    struct sim_process *process;
    struct env *env;
    struct worker worker;
    struct log_table *logs;
    struct gate *gate;
    struct actor actor;
    struct env_tick tick;
    uint32_t ran_count; /* requests */
    bool holds;         /* what comes waits for sim_gate_release */
    struct call *held[SIM_GATE_HELD];
    uint32_t held_count;
    uint32_t connections_most; /* at the same time, as far as it has looked */
};

/* One at a time. options: env, self, logs and waker are filled here. */
void sim_gate_begin(struct sim_gate *server, struct sim *sim, const struct gate_options *options);
/* Answers what it holds, and holds nothing more. */
void sim_gate_release(struct sim_gate *server);
/* Before the world is freed. */
void sim_gate_end(struct sim_gate *server);
/* The log that it serves, and where. */
struct log_id sim_gate_log(void);
struct address sim_gate_address(void);

/* An actor's step that gives calls that are done back to who asked. */
void sim_gate_origin_step(struct actor *actor, struct message *first);
/* Of those whose turn comes anyway. */
void sim_gate_no_wake(void *context);
