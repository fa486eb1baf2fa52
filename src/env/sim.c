/* The heap of events, the clock, the trace. */
#include "env/sim.h"
#include "env/sim_internal.h"
#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct scheduled {
    uint64_t at_ns;
    uint64_t tie;    /* drawn, so that events of one time come in any order */
    uint64_t number; /* and in a certain one should the draws be equal */
    uint64_t incarnation;
    struct sim_event event;
};

struct counter {
    const char *name;
    uint64_t value;
};

struct sim {
    uint64_t now_ns;
    struct prng prng;
    struct scheduled *heap;
    size_t heap_count;
    size_t heap_capacity;
    struct scheduled *held; /* of stopped processes, in order */
    size_t held_count;
    size_t held_capacity;
    struct sim_streams *streams;
    uint64_t scheduled_count;
    uint64_t trace_hash;
    FILE *trace_file;
    struct sim_watch *watch;     /* NULL: none */
    struct sim_process *running; /* whose event runs */
    struct sim_process *processes;
    struct counter counters[SIM_COUNTERS_MAX];
};

void *sim_allocate(size_t size_bytes) {
    void *memory = calloc(1, size_bytes ? size_bytes : 1);

    if (!memory) {
        abort();
    }
    return memory;
}

struct sim *sim_new(uint64_t seed) {
    struct sim *sim = sim_allocate(sizeof *sim);

    sim->now_ns = NS_PER_S;
    prng_init(&sim->prng, seed);
    sim->streams = sim_streams_new(sim);
    return sim;
}

static void event_drop(const struct scheduled *scheduled) {
    if (scheduled->event.drop) {
        scheduled->event.drop(scheduled->event.context);
    }
}

void sim_free(struct sim *sim) {
    if (!sim) {
        return;
    }
    for (size_t i = 0; i < sim->heap_count; i++) {
        event_drop(&sim->heap[i]);
    }
    for (size_t i = 0; i < sim->held_count; i++) {
        event_drop(&sim->held[i]);
    }
    while (sim->processes) {
        struct sim_process *process = sim->processes;

        sim->processes = process->next;
        sim_process_free(process);
    }
    sim_streams_free(sim->streams);
    free(sim->held);
    free(sim->heap);
    free(sim);
}

void sim_process_add(struct sim *sim, struct sim_process *process) {
    struct sim_process **link = &sim->processes;

    while (*link) {
        process->index = (*link)->index;
        link = &(*link)->next;
    }
    process->index++;
    *link = process;
}

bool sim_is_in_event(const struct sim *sim) {
    return sim->running != NULL;
}

struct sim_process *sim_crashed(struct sim *sim) {
    struct sim_process *process = sim->processes;

    while (process && !process->crashed) {
        process = process->next;
    }
    return process;
}

uint64_t sim_now_ns(const struct sim *sim) {
    return sim->now_ns;
}

struct prng *sim_prng(struct sim *sim) {
    return &sim->prng;
}

static bool comes_before(const struct scheduled *a, const struct scheduled *b) {
    if (a->at_ns != b->at_ns) {
        return a->at_ns < b->at_ns;
    }
    return a->tie != b->tie ? a->tie < b->tie : a->number < b->number;
}

/* Makes room for one more. */
static struct scheduled *room_make(struct scheduled *old, size_t count, size_t *capacity) {
    if (count < *capacity) {
        return old;
    }
    *capacity = *capacity ? 2 * *capacity : 256;
    struct scheduled *grown = sim_allocate(*capacity * sizeof *grown);
    if (old) {
        memcpy(grown, old, count * sizeof *grown);
        free(old);
    }
    return grown;
}

static void heap_push(struct sim *sim, const struct scheduled *scheduled) {
    sim->heap = room_make(sim->heap, sim->heap_count, &sim->heap_capacity);
    size_t at = sim->heap_count++;
    while (at > 0 && comes_before(scheduled, &sim->heap[(at - 1) / 2])) {
        sim->heap[at] = sim->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    sim->heap[at] = *scheduled;
}

static struct scheduled heap_pop(struct sim *sim) {
    struct scheduled first = sim->heap[0];
    struct scheduled last = sim->heap[--sim->heap_count];
    size_t at = 0;

    for (;;) {
        size_t child = 2 * at + 1;

        if (child >= sim->heap_count) {
            break;
        }
        if (child + 1 < sim->heap_count && comes_before(&sim->heap[child + 1], &sim->heap[child])) {
            child++;
        }
        if (!comes_before(&sim->heap[child], &last)) {
            break;
        }
        sim->heap[at] = sim->heap[child];
        at = child;
    }
    if (sim->heap_count > 0) {
        sim->heap[at] = last;
    }
    return first;
}

void sim_schedule_event(struct sim *sim, const struct sim_event *event) {
    struct scheduled scheduled = {
        .at_ns = sim->now_ns + event->delay_ns,
        .tie = prng_next(&sim->prng),
        .number = sim->scheduled_count++,
        .incarnation = event->process ? event->process->incarnation : 0,
        .event = *event,
    };

    assert(scheduled.at_ns >= sim->now_ns);
    heap_push(sim, &scheduled);
}

static bool is_alive(const struct scheduled *scheduled) {
    const struct sim_process *process = scheduled->event.process;

    return !process || (process->up && process->incarnation == scheduled->incarnation);
}

static void event_run(struct sim *sim, const struct sim_event *event) {
    const struct sim_hooks none = {0};
    const struct sim_hooks *hooks =
        event->process && !event->outside ? &event->process->hooks : &none;

    sim->running = event->process;
    if (hooks->enter) {
        hooks->enter(hooks->context);
    }
    event->run(event->context);
    if (hooks->leave) {
        hooks->leave(hooks->context);
    }
    sim->running = NULL;
}

static void event_hold(struct sim *sim, const struct scheduled *scheduled) {
    sim->held = room_make(sim->held, sim->held_count, &sim->held_capacity);
    sim->held[sim->held_count++] = *scheduled;
}

/* Equal times and ties, so that their numbers keep the order in which they were held. */
void sim_release(struct sim_process *process) {
    struct sim *sim = process->sim;
    size_t kept = 0;

    for (size_t i = 0; i < sim->held_count; i++) {
        struct scheduled scheduled = sim->held[i];

        if (scheduled.event.process == process) {
            scheduled.at_ns = sim->now_ns;
            scheduled.tie = 0;
            scheduled.number = sim->scheduled_count++;
            heap_push(sim, &scheduled);
        } else {
            sim->held[kept++] = scheduled;
        }
    }
    sim->held_count = kept;
}

struct sim_streams *sim_streams_of(const struct sim *sim) {
    return sim->streams;
}

void sim_watch(struct sim *sim, struct sim_watch *watch) {
    sim->watch = watch;
}

static void watch_step(struct sim *sim) {
    struct sim_watch *watch = sim->watch;

    if (watch->now_ns) {
        atomic_store_explicit(watch->now_ns, sim->now_ns, memory_order_relaxed);
    }
    if (watch->redraw && sim->now_ns >= watch->redraw_ns) {
        void (*redraw)(void *context) = watch->redraw;

        watch->redraw = NULL;
        redraw(watch->context);
    }
}

bool sim_step(struct sim *sim) {
    assert(!sim->running);
    if (sim->heap_count == 0) {
        return false;
    }
    struct scheduled scheduled = heap_pop(sim);
    sim->now_ns = scheduled.at_ns;
    if (sim->watch) {
        watch_step(sim);
    }
    if (!is_alive(&scheduled)) {
        sim_count(sim, "events dropped", 1);
        event_drop(&scheduled);
        return true;
    }
    if (scheduled.event.process && scheduled.event.process->stopped) {
        event_hold(sim, &scheduled);
        return true;
    }
    sim->running = scheduled.event.process;
    sim_trace(sim, scheduled.event.kind, scheduled.number, 0);
    event_run(sim, &scheduled.event);
    return true;
}

enum sim_stop sim_run_until(struct sim *sim, uint64_t deadline_ns, bool (*until)(void *context),
                            void *context) {
    for (;;) {
        if (sim_crashed(sim)) {
            return SIM_CRASHED;
        }
        if (until && until(context)) {
            return SIM_DONE;
        }
        if (sim->heap_count == 0) {
            return SIM_IDLE;
        }
        if (sim->heap[0].at_ns > deadline_ns) {
            sim->now_ns = MAX(sim->now_ns, deadline_ns);
            return SIM_DEADLINE;
        }
        sim_step(sim);
    }
}

/* The finalizer of splitmix64 over a running sum: every bit of what came before counts. */
static uint64_t hash_word(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) + 0x9e3779b97f4a7c15;
    hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9;
    hash = (hash ^ hash >> 27) * 0x94d049bb133111eb;
    return hash ^ hash >> 31;
}

void sim_trace(struct sim *sim, const char *kind, uint64_t what, uint64_t amount) {
    const struct sim_process *process = sim->running;

    for (const char *letter = kind; *letter; letter++) {
        sim->trace_hash = (sim->trace_hash ^ (uint8_t)*letter) * 0x100000001b3;
    }
    sim->trace_hash = hash_word(sim->trace_hash, process ? process->index : 0);
    sim->trace_hash = hash_word(sim->trace_hash, sim->now_ns);
    sim->trace_hash = hash_word(sim->trace_hash, what);
    sim->trace_hash = hash_word(sim->trace_hash, amount);
    if (sim->trace_file) {
        fprintf(sim->trace_file, "%12.6f ms %-10s %-16s %" PRIu64 " %" PRIu64 "\n",
                (double)sim->now_ns / (double)NS_PER_MS, process ? process->name : "world", kind,
                what, amount);
    }
}

uint64_t sim_trace_hash(const struct sim *sim) {
    return sim->trace_hash;
}

void sim_trace_to(struct sim *sim, FILE *file) {
    sim->trace_file = file;
}

static size_t counter_index(const struct sim *sim, const char *name) {
    size_t index = 0;

    while (index < SIM_COUNTERS_MAX && sim->counters[index].name &&
           strcmp(sim->counters[index].name, name) != 0) {
        index++;
    }
    return index;
}

void sim_count(struct sim *sim, const char *name, uint64_t amount) {
    size_t index = counter_index(sim, name);

    assert(index < SIM_COUNTERS_MAX);
    sim->counters[index].name = name;
    sim->counters[index].value += amount;
}

uint64_t sim_counter(const struct sim *sim, const char *name) {
    size_t index = counter_index(sim, name);

    return index < SIM_COUNTERS_MAX ? sim->counters[index].value : 0;
}

const char *sim_counter_at(const struct sim *sim, size_t index, uint64_t *ret_value) {
    if (index >= SIM_COUNTERS_MAX || !sim->counters[index].name) {
        return NULL;
    }
    *ret_value = sim->counters[index].value;
    return sim->counters[index].name;
}
