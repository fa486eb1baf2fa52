/* The contract and the picture are in carrier.h. */
#include "carrier.h"
#include "rpc/gate.h"
#include "rpc/lane.h"
#include "rpc/log_table.h"
#include "rpc/transport_sim.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TICK_MS = 50, GATHER_CHANCE = 4, SMALL_BULK_EXTRA = 4, BULK_COUNT = 4, SILENT_IDLES = 3 };

struct carrier {
    struct node *node;
    struct env *env;
    struct transport_sim *packets; /* these two, or those below */
    struct transport_sim_server *packet_server;
    struct log_table *logs;
    struct lanes *lanes;
    struct lane_thread *thread;
    struct gate *gate; /* NULL: it serves nothing, or not yet */
    struct env_tick tick;
    uint32_t routed[WORLD_NODES_MAX]; /* the target of each that there is a route to; 0: none */
    bool turn_is_due;                 /* by an event */
};

static struct address node_address(const struct node *node) {
    struct address address = {.kind = ADDRESS_UNIX};

    snprintf(address.name, sizeof address.name, "/sim/%s", sim_process_name(node->process));
    return address;
}

/* Turns of the thread. */

static void turn(struct carrier *carrier) {
    if (carrier->thread) {
        (void)lane_thread_turn(carrier->thread);
    }
    if (carrier->gate) {
        (void)gate_turn(carrier->gate);
    }
}

/* The turn itself is made when the event is over. */
static void turn_run(void *context) {
    ((struct carrier *)context)->turn_is_due = false;
}

static void turn_schedule(void *context) {
    struct carrier *carrier = context;
    struct world *world = carrier->node->world;

    if (!carrier->turn_is_due) {
        carrier->turn_is_due = true;
        sim_schedule_event(
            world->sim, &(struct sim_event){.process = carrier->node->process,
                                            .delay_ns = prng_below(sim_prng(world->sim),
                                                                   world->options.schedule_ns_max),
                                            .kind = "turn",
                                            .run = turn_run,
                                            .context = carrier});
    }
}

void carrier_enter(struct carrier *carrier) {
    if (carrier && carrier->thread) {
        lane_thread_bind(carrier->thread);
    }
}

void carrier_leave(struct carrier *carrier) {
    if (!carrier || !carrier->thread) {
        return;
    }
    if (sim_process_is_crashed(carrier->node->process)) {
        /* Nothing leaves it any more. */
    } else if (!carrier->turn_is_due &&
               prng_chance(sim_prng(carrier->node->world->sim), 1, GATHER_CHANCE)) {
        turn_schedule(carrier);
    } else if (!carrier->turn_is_due) {
        turn(carrier);
    }
    lane_thread_bind(NULL);
}

static void tick_fire(struct env_tick *tick) {
    struct carrier *carrier = CONTAINER_OF(tick, struct carrier, tick);

    lanes_tick(carrier->lanes);
    if (carrier->gate) {
        gate_tick(carrier->gate);
    }
}

void carrier_tick(struct carrier *carrier) {
    if (carrier->packets) {
        transport_sim_tick(carrier->packets);
    }
}

/* Calls. */

/* Whoever has come to serve a log by now, or another one than he did. */
static void routes_look(struct carrier *carrier) {
    const struct world *world = carrier->node->world;

    for (uint32_t i = 0; i < world->node_count; i++) {
        const struct node *node = &world->nodes[i];

        if (node->role != NODE_CLIENT && node->target_id > 0 &&
            node->target_id != carrier->routed[i]) {
            carrier->routed[i] = node->target_id;
            if (lanes_route(carrier->lanes, node_log(node), i) < 0) {
                abort();
            }
        }
    }
}

static void carrier_send(void *context, struct call *call) {
    struct carrier *carrier = context;

    if (carrier->packets) {
        transport_sim_ops.send(carrier->packets, call);
    } else {
        routes_look(carrier);
        lanes_ops.send(carrier->lanes, call);
    }
}

static void carrier_forget(void *context, struct call *call) {
    transport_sim_ops.forget(((struct carrier *)context)->packets, call);
}

static bool carrier_is_away(void *context, struct log_id log) {
    struct carrier *carrier = context;

    return carrier->packets ? transport_sim_ops.is_away(carrier->packets, log)
                            : lanes_ops.is_away(carrier->lanes, log);
}

static bool carrier_has_waited(void *context, const struct call *call) {
    struct carrier *carrier = context;

    return carrier->packets ? transport_sim_ops.has_waited(carrier->packets, call)
                            : lanes_ops.has_waited(carrier->lanes, call);
}

const struct transport_ops *carrier_ops(const struct world *world) {
    static const struct transport_ops packets = {.send = carrier_send,
                                                 .forget = carrier_forget,
                                                 .is_away = carrier_is_away,
                                                 .has_waited = carrier_has_waited};
    static const struct transport_ops streams = {.send = carrier_send,
                                                 .is_away = carrier_is_away,
                                                 .has_waited = carrier_has_waited,
                                                 .reliable = true};

    return world->options.streams ? &streams : &packets;
}

/* Putting together, taking apart. */

static void say(void *context, const char *line) {
    const struct carrier *carrier = context;
    const struct world *world = carrier->node->world;

    if (world->options.tell) {
        fprintf(world->options.tell, "%12.6f ms %-10s says: %s\n",
                (double)sim_now_ns(world->sim) / 1e6, sim_process_name(carrier->node->process),
                line);
    }
}

static int peers_add(struct carrier *carrier) {
    const struct world *world = carrier->node->world;
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < world->node_count; i++) {
        const struct node *node = &world->nodes[i];
        const struct address address = node_address(node);
        uint32_t peer;

        r = lanes_peer_add(carrier->lanes, &address, 1, sim_process_name(node->process), &peer);
        if (r == 0) {
            lanes_peer_is(carrier->lanes, peer, (struct node_id){i + 1});
        }
    }
    return r;
}

static struct lane_identity identity_of(const struct carrier *carrier, const uint64_t life[2]) {
    const struct world *world = carrier->node->world;

    return (struct lane_identity){.node = {(uint32_t)(carrier->node - world->nodes) + 1},
                                  .life = {life[0], life[1]}};
}

static int open_packets(struct carrier *carrier) {
    struct world *world = carrier->node->world;
    int r = transport_sim_new(world->net, carrier->node->process, &carrier->packets);

    if (r == 0) {
        transport_sim_watch(carrier->packets, carrier->env, world->options.lane_silent_ns);
    }
    return r;
}

static int open_lanes(struct carrier *carrier) {
    const struct world_options *world = &carrier->node->world->options;
    const struct lane_waker waker = {.wake = turn_schedule, .context = carrier};
    struct prng *prng = sim_prng(carrier->node->world->sim);
    const uint64_t life[2] = {prng_next(prng), prng_next(prng)};
    struct lanes_options options = {.env = carrier->env,
                                    .self = identity_of(carrier, life),
                                    .connect_ns = world->lane_connect_ns,
                                    .silent_ns = world->lane_silent_ns,
                                    .idle_ns = world->lane_idle_ns,
                                    .log = say,
                                    .context = carrier};
    int r = log_table_new(1, &carrier->logs);

    options.logs = carrier->logs;
    r = r < 0 ? r : lanes_new(&options, &carrier->lanes);
    r = r < 0 ? r : peers_add(carrier);
    r = r < 0 ? r : lane_thread_new(carrier->lanes, &waker, &carrier->thread);
    if (r == 0) {
        carrier->tick = (struct env_tick){.period_ns = TICK_MS * NS_PER_MS, .fire = tick_fire};
        carrier->env->ops->tick_start(carrier->env, &carrier->tick);
        lane_thread_bind(carrier->thread);
    }
    return r;
}

int carrier_new(struct node *node, struct env *env, struct carrier **ret_carrier) {
    struct carrier *carrier = calloc(1, sizeof *carrier);

    if (!carrier) {
        return -ERR_NO_MEMORY;
    }
    carrier->node = node;
    carrier->env = env;
    *ret_carrier = carrier; /* Taken apart by carrier_free, whatever it has come to. */
    return node->world->options.streams ? open_lanes(carrier) : open_packets(carrier);
}

static int serve_streams(struct carrier *carrier, const struct carrier_limits *limits) {
    const struct world_options *world = &carrier->node->world->options;
    struct prng *prng = sim_prng(carrier->node->world->sim);
    const uint64_t life[2] = {prng_next(prng), prng_next(prng)};
    const struct address address = node_address(carrier->node);
    const struct gate_options options = {
        .env = carrier->env,
        .self = identity_of(carrier, life),
        .logs = carrier->logs,
        .silent_ns = SILENT_IDLES * MAX(world->lane_idle_ns, 2 * world->lane_silent_ns),
        .requests_max = limits->calls_max,
        .bulk_count = BULK_COUNT,
        .small_bulk_count = limits->calls_max + SMALL_BULK_EXTRA,
        .bulk_bytes_max = limits->bulk_bytes_max,
        .waker = {.wake = turn_schedule, .context = carrier},
        .log = say,
        .context = carrier};
    int r = gate_new(&options, &carrier->gate);

    return r < 0 ? r : gate_listen(carrier->gate, &address);
}

int carrier_serve(struct carrier *carrier, struct log_id log, struct actor *actor,
                  const struct carrier_limits *limits) {
    struct transport_sim_server_options options = {.net = carrier->node->world->net,
                                                   .process = carrier->node->process,
                                                   .env = carrier->env,
                                                   .log = log,
                                                   .actor = actor,
                                                   .calls_max = limits->calls_max,
                                                   .bulk_bytes_max = limits->bulk_bytes_max};

    if (carrier->packets) {
        memcpy(options.reserve_count, limits->reserve_count, sizeof options.reserve_count);
        return transport_sim_serve(&options, &carrier->packet_server);
    }
    int r = log_table_add(carrier->logs, log, actor);
    return r < 0 ? r : serve_streams(carrier, limits);
}

void carrier_sum(const struct carrier *carrier) {
    struct world_links *sum = carrier ? &carrier->node->world->link_sum : NULL;
    struct lane_stats lanes;
    struct gate_stats gate;

    if (carrier && carrier->thread) {
        lanes_stats(carrier->lanes, &lanes);
        sum->connected += lanes.connected_count;
        sum->broken += lanes.broken_count;
        sum->silent += lanes.silent_count;
        sum->given_up += lanes.replaced_count;
        sum->again += lanes.again_count;
    }
    if (carrier && carrier->gate) {
        gate_stats(carrier->gate, &gate);
        sum->busy += gate.busy_count;
        sum->late += gate.late_count;
        sum->replaced += gate.replaced_count;
        sum->old_lanes += gate.old_lane_count;
        sum->answers_dropped += gate.dropped_count;
        sum->let_go += gate.silent_count;
    }
}

/* What is awaited is answered to actors that run no more. */
void carrier_end(struct carrier *carrier) {
    if (carrier) {
        lane_thread_free(TAKE_PTR(carrier->thread));
    }
}

void carrier_free(struct carrier *carrier) {
    if (carrier) {
        transport_sim_free(carrier->packets);
        transport_sim_server_free(carrier->packet_server);
        gate_abandon(carrier->gate);
        lanes_free(carrier->lanes);
        log_table_free(carrier->logs);
        free(carrier);
    }
}
