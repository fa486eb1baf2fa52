/* A simulated world: one clock, one order of events, one generator, any number of processes.
 *
 *     sim_schedule -> heap by (time, tie drawn from the seed) -> sim_step runs the earliest
 *
 * Everything that happens follows from the seed: no address, no real time and no thread has a say.
 * The trace hash takes in each event that fires and whatever sim_trace is told; two runs of one
 * seed must end with the same.  Processes, their disks and crashes: env_sim.h.
 *
 * Thread: all of a world in one.  Memory: the heap; to be out of it ends the program. */
#pragma once
#include "base/prng.h"
#include "base/types.h"
#include <stdio.h>

struct sim;
struct sim_process;

struct sim *sim_new(uint64_t seed);
/* Drops what has not happened yet; frees all processes. Takes NULL. */
void sim_free(struct sim *sim);
/* Time of the world; each process reads a clock of its own. Starts at one second. */
uint64_t sim_now_ns(const struct sim *sim);
/* Everything random in the world is drawn from here, in the order of events. */
struct prng *sim_prng(struct sim *sim);

struct sim_event {
    struct sim_process
        *process; /* whose event it is: dropped when that is killed before; or NULL */
    uint64_t delay_ns;
    const char *kind; /* for the trace; static */
    void (*run)(void *context);
    void (*drop)(void *context); /* instead of run, no later than at its time; frees context */
    void *context;
    bool outside; /* run without the hooks of the process, as on a thread of no role */
};

void sim_schedule_event(struct sim *sim, const struct sim_event *event);
static inline void sim_schedule(struct sim *sim, struct sim_process *process, uint64_t delay_ns,
                                void (*run)(void *context), void *context) {
    struct sim_event event = {process, delay_ns, "timer", run, NULL, context, false};

    sim_schedule_event(sim, &event);
}

/* now_ns, if not NULL, follows the world's clock, also for another process when it lies in memory
 * shared with that. redraw runs once, before the first event at or behind redraw_ns, and may
 * begin generators anew: so a world goes another way from there on. */
struct sim_watch {
    _Atomic uint64_t *now_ns;
    uint64_t redraw_ns;
    void (*redraw)(void *context); /* NULL: nothing is drawn anew */
    void *context;
};

/* The watch stays the caller's, for as long as the world; NULL ends it. */
void sim_watch(struct sim *sim, struct sim_watch *watch);

/* Runs the next event; false when there is none. */
bool sim_step(struct sim *sim);

enum sim_stop {
    SIM_DONE,     /* until() has become true */
    SIM_DEADLINE, /* the clock stands at deadline_ns */
    SIM_IDLE,     /* nothing is left to happen */
    SIM_CRASHED,  /* a crash countdown has ended: sim_crashed names the process */
};

/* Asks until (may be NULL) before each event. */
enum sim_stop sim_run_until(struct sim *sim, uint64_t deadline_ns, bool (*until)(void *context),
                            void *context);

/* Puts something into the trace hash: what happened, to what, how much. kind is static. */
void sim_trace(struct sim *sim, const char *kind, uint64_t what, uint64_t amount);
uint64_t sim_trace_hash(const struct sim *sim);
/* Prints every event and trace line from now on; NULL ends it. */
void sim_trace_to(struct sim *sim, FILE *file);

/* Counters of faults and whatever else a test wants to see happen. name is static; two strings
 * of one spelling are one counter. */
enum { SIM_COUNTERS_MAX = 64 };
void sim_count(struct sim *sim, const char *name, uint64_t amount);
uint64_t sim_counter(const struct sim *sim, const char *name);
/* The index-th in order of first use; NULL past the last. */
const char *sim_counter_at(const struct sim *sim, size_t index, uint64_t *ret_value);
