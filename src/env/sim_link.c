/* Connections of a simulated world: bytes under way, cuts, resets. What arrives is an event of the
 * world, as nobody's death stops it. */
#include "env/sim_stream_internal.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { PER_MILLION = 1000000 };

/* Bytes under way, or the end behind them. */
struct sim_segment {
    struct sim_link *link;
    unsigned side; /* that sent it */
    uint64_t end;  /* position behind its last byte */
    bool fin;
};

struct sim_reset {
    struct sim_link *link;
    unsigned side; /* that is told */
    int reason;
};

struct sim_link *sim_link_new(struct sim_streams *streams) {
    struct sim_link *link = sim_allocate(sizeof *link);

    link->streams = streams;
    link->number = ++streams->link_count;
    for (unsigned side = 0; side < 2; side++) {
        link->pipes[side].capacity = MAX(streams->faults.buffer_bytes, UINT32_C(1));
        link->pipes[side].data = sim_allocate(link->pipes[side].capacity);
    }
    list_push_back(&streams->links, &link->node);
    return link;
}

void sim_link_put(struct sim_link *link) {
    assert(link->hold_count > 0);
    if (--link->hold_count == 0) {
        list_remove(&link->node);
        free(link->pipes[0].data);
        free(link->pipes[1].data);
        free(link);
    }
}

bool sim_stream_chance(struct sim_streams *streams, uint32_t per_million) {
    return per_million > 0 && prng_chance(sim_prng(streams->sim), per_million, PER_MILLION);
}

uint64_t sim_stream_delay(struct sim_streams *streams) {
    const struct sim_stream_faults *faults = &streams->faults;
    struct prng *prng = sim_prng(streams->sim);
    uint64_t delay_ns = prng_between(prng, faults->delay_ns_min, faults->delay_ns_max);

    if (faults->slow_ns > 0 && sim_stream_chance(streams, faults->slow_per_million)) {
        sim_count(streams->sim, "segments slow", 1);
        delay_ns += prng_below(prng, faults->slow_ns);
    }
    return delay_ns;
}

static struct sim_stream_cut *cut_find(const struct sim_streams *streams,
                                       const struct sim_process *from,
                                       const struct sim_process *to) {
    for (struct list_node *node = list_first(&streams->cuts); node;
         node = list_next(&streams->cuts, node)) {
        struct sim_stream_cut *cut = CONTAINER_OF(node, struct sim_stream_cut, node);

        if (cut->from == from && cut->to == to) {
            return cut;
        }
    }
    return NULL;
}

bool sim_path_is_open(const struct sim_streams *streams, const struct sim_process *from,
                      const struct sim_process *to) {
    return !cut_find(streams, from, to);
}

/* From this side to the other. */
static bool path_is_open(const struct sim_link *link, unsigned side) {
    return sim_path_is_open(link->streams, link->processes[side], link->processes[1 - side]);
}

static void reset_arrive(void *context) {
    struct sim_reset *reset = context;
    struct sim_link *link = reset->link;
    struct sim_end *end = link->ends[reset->side];

    if (end && link->processes[1] && !path_is_open(link, 1 - reset->side)) {
        sim_count(link->streams->sim, "resets cut off", 1);
    } else if (end) {
        link->ends[reset->side] = NULL;
        link->pipes[reset->side].lost = true;
        sim_end_finish(end, reset->reason, 0);
    } else if (link->state == LINK_WAITING && reset->side == 1) {
        link->reset_waiting = true;
    }
    sim_link_put(link);
    free(reset);
}

static void reset_drop(void *context) {
    struct sim_reset *reset = context;

    sim_link_put(reset->link);
    free(reset);
}

void sim_link_refuse(struct sim_link *link, unsigned side, int reason) {
    struct sim_reset *reset = sim_allocate(sizeof *reset);

    *reset = (struct sim_reset){.link = link, .side = side, .reason = reason};
    link->pipes[1 - side].lost = true;
    link->hold_count++;
    sim_schedule_event(link->streams->sim,
                       &(struct sim_event){.delay_ns = sim_stream_delay(link->streams),
                                           .kind = "reset",
                                           .run = reset_arrive,
                                           .drop = reset_drop,
                                           .context = reset});
}

/* What stands at the door comes in, or meets nobody. */
static void pipe_enter(struct sim_link *link, unsigned side) {
    struct sim_pipe *pipe = &link->pipes[side];
    unsigned to = 1 - side;
    bool news = pipe->door > pipe->arrived;

    if (pipe->lost || !path_is_open(link, side)) {
        return;
    }
    if (link->ends[to] || link->state == LINK_WAITING) {
        pipe->arrived = pipe->door;
        pipe->fin_arrived = pipe->fin_at_door;
        if (link->ends[to]) {
            sim_end_wake(link->ends[to], 0);
        }
    } else if (news && !link->processes[to]->dark) {
        sim_count(link->streams->sim, "segments to nobody", 1);
        sim_link_refuse(link, side, -ERR_RESET);
    }
}

static void segment_drop(void *context) {
    struct sim_segment *segment = context;

    sim_link_put(segment->link);
    free(segment);
}

static void segment_arrive(void *context) {
    struct sim_segment *segment = context;
    struct sim_link *link = segment->link;
    struct sim_pipe *pipe = &link->pipes[segment->side];

    assert(segment->end >= pipe->door && segment->end <= pipe->sent);
    pipe->door = segment->end;
    pipe->fin_at_door = pipe->fin_at_door || segment->fin;
    if (!pipe->lost && !path_is_open(link, segment->side)) {
        sim_count(link->streams->sim, "segments cut off", 1);
    }
    pipe_enter(link, segment->side);
    segment_drop(segment);
}

static void segment_launch(struct sim_link *link, unsigned side, uint64_t end, bool fin) {
    struct sim_streams *streams = link->streams;
    struct sim_segment *segment = sim_allocate(sizeof *segment);
    struct sim_pipe *pipe = &link->pipes[side];
    uint64_t now_ns = sim_now_ns(streams->sim);

    pipe->newest_ns = MAX(pipe->newest_ns + 1, now_ns + sim_stream_delay(streams));
    *segment = (struct sim_segment){.link = link, .side = side, .end = end, .fin = fin};
    link->hold_count++;
    sim_schedule_event(streams->sim, &(struct sim_event){.delay_ns = pipe->newest_ns - now_ns,
                                                         .kind = "segment",
                                                         .run = segment_arrive,
                                                         .drop = segment_drop,
                                                         .context = segment});
}

/* Something on the way resets both sides. */
static void link_break(struct sim_link *link) {
    sim_count(link->streams->sim, "streams reset at random", 1);
    sim_link_refuse(link, 0, -ERR_RESET);
    sim_link_refuse(link, 1, -ERR_RESET);
}

static bool pipe_is_blocked(const struct sim_link *link, unsigned side) {
    unsigned to = 1 - side;

    return !path_is_open(link, side) || !path_is_open(link, to) || link->processes[to]->dark;
}

static void pipe_look(struct sim_link *link, unsigned side, uint64_t acked);

struct sim_patience {
    struct sim_link *link;
    unsigned side;
    uint64_t acked;
};

static void patience_drop(void *context) {
    struct sim_patience *patience = context;

    sim_link_put(patience->link);
    free(patience);
}

/* A time has passed since bytes were sent: nothing of them was acknowledged, and nothing can be. */
static void patience_end(void *context) {
    struct sim_patience *patience = context;
    struct sim_link *link = patience->link;
    unsigned side = patience->side;
    struct sim_pipe *pipe = &link->pipes[side];
    struct sim_end *end = link->ends[side];

    pipe->watched = false;
    if (end && pipe->sent > pipe->acked && pipe->acked == patience->acked &&
        pipe_is_blocked(link, side)) {
        sim_count(link->streams->sim, "streams given up", 1);
        link->ends[side] = NULL;
        pipe->lost = true;
        sim_end_finish(end, -ERR_TIMED_OUT, 0);
    } else if (end && pipe->sent > pipe->acked) {
        pipe_look(link, side, pipe->acked);
    }
    patience_drop(patience);
}

static void pipe_look(struct sim_link *link, unsigned side, uint64_t acked) {
    struct sim_streams *streams = link->streams;

    if (streams->faults.give_up_ns == 0 || link->pipes[side].watched) {
        return;
    }
    struct sim_patience *patience = sim_allocate(sizeof *patience);
    *patience = (struct sim_patience){.link = link, .side = side, .acked = acked};
    link->pipes[side].watched = true;
    link->hold_count++;
    sim_schedule_event(streams->sim, &(struct sim_event){.delay_ns = streams->faults.give_up_ns,
                                                         .kind = "patience",
                                                         .run = patience_end,
                                                         .drop = patience_drop,
                                                         .context = patience});
}

void sim_link_launch(struct sim_link *link, unsigned side, uint64_t from) {
    struct sim_streams *streams = link->streams;
    struct sim_pipe *pipe = &link->pipes[side];

    while (from < pipe->sent) {
        uint64_t most = MIN(pipe->sent - from, (uint64_t)streams->faults.segment_bytes_max);

        from += prng_between(sim_prng(streams->sim), 1, MAX(most, UINT64_C(1)));
        segment_launch(link, side, from, false);
        if (sim_stream_chance(streams, streams->faults.reset_per_million)) {
            link_break(link);
            return;
        }
    }
    pipe_look(link, side, pipe->acked);
}

void sim_link_acknowledge(struct sim_link *link, unsigned side) {
    struct sim_pipe *pipe = &link->pipes[side];

    if (pipe->acked < pipe->received && path_is_open(link, 1 - side)) {
        pipe->acked = pipe->received;
        if (link->ends[side] && link->ends[side]->writable_owed) {
            sim_end_wake(link->ends[side], sim_stream_delay(link->streams));
        }
    }
}

void sim_link_reset(struct sim_link *link, unsigned side) {
    sim_count(link->streams->sim, "streams reset", 1);
    link->ends[side] = NULL;
    if (link->state != LINK_CONNECTING) {
        sim_link_refuse(link, 1 - side, -ERR_RESET);
    }
}

void sim_link_close(struct sim_link *link, unsigned side) {
    const struct sim_pipe *in = &link->pipes[1 - side];

    if (in->arrived > in->received) {
        sim_link_reset(link, side);
        return;
    }
    link->ends[side] = NULL;
    if (link->state != LINK_CONNECTING) {
        segment_launch(link, side, link->pipes[side].sent, true);
    }
}

struct sim_link_event {
    struct sim_link *link;
    void (*run)(void *context);
};

static void link_event_drop(void *context) {
    struct sim_link_event *event = context;

    sim_link_put(event->link);
    free(event);
}

static void link_event_run(void *context) {
    struct sim_link_event *event = context;

    event->run(event->link);
    link_event_drop(event);
}

void sim_link_schedule(struct sim_link *link, uint64_t delay_ns, const char *kind,
                       void (*run)(void *context)) {
    struct sim_link_event *event = sim_allocate(sizeof *event);

    *event = (struct sim_link_event){.link = link, .run = run};
    link->hold_count++;
    sim_schedule_event(link->streams->sim, &(struct sim_event){.delay_ns = delay_ns,
                                                               .kind = kind,
                                                               .run = link_event_run,
                                                               .drop = link_event_drop,
                                                               .context = event});
}

/* What was held up is sent once more. */
static void link_again(void *context) {
    struct sim_link *link = context;

    if (link->state == LINK_CONNECTING) {
        if (link->syn_stuck) {
            sim_syn_arrive(link);
        }
        return;
    }
    for (unsigned side = 0; side < 2; side++) {
        pipe_enter(link, side);
        sim_link_acknowledge(link, side);
    }
}

/* Of all links that two processes have; `to` NULL: that the first one has with anybody. */
static void links_again(struct sim_streams *streams, const struct sim_process *one,
                        const struct sim_process *other) {
    for (struct list_node *node = list_first(&streams->links); node;
         node = list_next(&streams->links, node)) {
        struct sim_link *link = CONTAINER_OF(node, struct sim_link, node);
        bool first = link->processes[0] == one || link->processes[1] == one;
        bool second = !other || link->processes[0] == other || link->processes[1] == other;

        if (!one || (first && second)) {
            sim_link_schedule(link, sim_stream_delay(streams), "again", link_again);
        }
    }
}

void sim_streams_restarted(struct sim_process *process) {
    links_again(sim_streams_of(process->sim), process, NULL);
}

void sim_stream_cut(struct sim_process *from, struct sim_process *to, bool cut) {
    struct sim_streams *streams = sim_streams_of(from->sim);
    struct sim_stream_cut *known = cut_find(streams, from, to);

    if (cut && !known) {
        known = sim_allocate(sizeof *known);
        known->from = from;
        known->to = to;
        list_push_back(&streams->cuts, &known->node);
    } else if (!cut && known) {
        list_remove(&known->node);
        free(known);
        links_again(streams, from, to);
    }
}

void sim_stream_heal(struct sim *sim) {
    struct sim_streams *streams = sim_streams_of(sim);
    struct list_node *node = list_first(&streams->cuts);

    if (!node) {
        return;
    }
    while ((node = list_pop_front(&streams->cuts)) != NULL) {
        free(CONTAINER_OF(node, struct sim_stream_cut, node));
    }
    links_again(streams, NULL, NULL);
}

size_t sim_stream_count(const struct sim *sim) {
    return list_count(&sim_streams_of(sim)->links);
}

struct sim_streams *sim_streams_new(struct sim *sim) {
    struct sim_streams *streams = sim_allocate(sizeof *streams);

    streams->sim = sim;
    streams->faults = (struct sim_stream_faults){.delay_ns_min = 10 * NS_PER_US,
                                                 .delay_ns_max = 50 * NS_PER_US,
                                                 .buffer_bytes = 64 * KIB,
                                                 .segment_bytes_max = 16 * KIB};
    streams->port_next = 40000;
    list_init(&streams->cuts);
    list_init(&streams->hosts);
    list_init(&streams->listeners);
    list_init(&streams->links);
    return streams;
}

void sim_streams_free(struct sim_streams *streams) {
    struct list_node *node;

    while ((node = list_pop_front(&streams->cuts)) != NULL) {
        free(CONTAINER_OF(node, struct sim_stream_cut, node));
    }
    while ((node = list_pop_front(&streams->hosts)) != NULL) {
        free(CONTAINER_OF(node, struct sim_stream_host, node));
    }
    assert(list_is_empty(&streams->links) && list_is_empty(&streams->listeners));
    free(streams);
}

struct sim_stream_faults *sim_stream_faults(struct sim *sim) {
    return &sim_streams_of(sim)->faults;
}
