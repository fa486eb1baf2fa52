/* The contract and the picture are in sim_net.h. A packet's arrival is an event of the world, as
 * nobody's death stops it; its reception one of the process that is there then. */
#include "rpc/sim_net.h"
#include "base/list.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { PER_MILLION = 1000000, PACKET_ALIGNMENT = BLOCK_BYTES };

/* Addresses of nobody's choice start here, above all that are chosen. */
#define ADDRESS_FIRST_FREE (UINT64_C(1) << 32)

struct sim_port {
    struct list_node node;
    struct sim_net *net;
    struct sim_process *process;
    uint64_t address;
    sim_receive_fn *receive;
    void *context;
};

struct cut {
    struct list_node node;
    const struct sim_process *from;
    const struct sim_process *to;
};

/* What has arrived from one process at another. */
struct lane {
    struct list_node node;
    const struct sim_process *from;
    const struct sim_process *to;
    uint64_t newest; /* number of the packet that was sent last */
};

struct sim_net {
    struct sim *sim;
    struct sim_net_faults faults;
    struct list ports;
    struct list cuts;
    struct list lanes; /* used last, first */
    uint64_t packet_count;
    uint64_t address_next;
};

/* A packet under way. */
struct flight {
    struct sim_packet packet; /* first: it is what the receiver gets */
    struct sim_net *net;
    const struct sim_process *from;
    uint64_t to;
    uint64_t number; /* in order of sending */
};

static void *allocate(size_t size_bytes) {
    void *memory = calloc(1, size_bytes);

    if (!memory) {
        abort();
    }
    return memory;
}

struct sim_net *sim_net_new(struct sim *sim) {
    struct sim_net *net = allocate(sizeof *net);

    net->sim = sim;
    net->faults.delay_ns_min = 10 * NS_PER_US;
    net->faults.delay_ns_max = 50 * NS_PER_US;
    net->address_next = ADDRESS_FIRST_FREE;
    list_init(&net->ports);
    list_init(&net->cuts);
    list_init(&net->lanes);
    return net;
}

void sim_net_free(struct sim_net *net) {
    if (!net) {
        return;
    }
    assert(list_is_empty(&net->ports));
    sim_net_heal(net);
    struct list_node *node;
    while ((node = list_pop_front(&net->lanes))) {
        free(CONTAINER_OF(node, struct lane, node));
    }
    free(net);
}

struct sim_net_faults *sim_net_faults(struct sim_net *net) {
    return &net->faults;
}

static struct cut *cut_find(struct sim_net *net, const struct sim_process *from,
                            const struct sim_process *to) {
    for (struct list_node *node = list_first(&net->cuts); node;
         node = list_next(&net->cuts, node)) {
        struct cut *cut = CONTAINER_OF(node, struct cut, node);

        if (cut->from == from && cut->to == to) {
            return cut;
        }
    }
    return NULL;
}

void sim_net_cut(struct sim_net *net, const struct sim_process *from, const struct sim_process *to,
                 bool cut) {
    struct cut *known = cut_find(net, from, to);

    if (cut && !known) {
        known = allocate(sizeof *known);
        known->from = from;
        known->to = to;
        list_push_back(&net->cuts, &known->node);
    } else if (!cut && known) {
        list_remove(&known->node);
        free(known);
    }
}

void sim_net_heal(struct sim_net *net) {
    struct list_node *node;

    while ((node = list_pop_front(&net->cuts))) {
        free(CONTAINER_OF(node, struct cut, node));
    }
}

static struct sim_port *port_find(struct sim_net *net, uint64_t address) {
    for (struct list_node *node = list_first(&net->ports); node;
         node = list_next(&net->ports, node)) {
        struct sim_port *port = CONTAINER_OF(node, struct sim_port, node);

        if (port->address == address) {
            return port;
        }
    }
    return NULL;
}

struct sim_port *sim_net_bind(struct sim_net *net, struct sim_process *process, uint64_t address,
                              sim_receive_fn *receive, void *context) {
    struct sim_port *port = allocate(sizeof *port);

    *port = (struct sim_port){.net = net,
                              .process = process,
                              .address = address ? address : net->address_next++,
                              .receive = receive,
                              .context = context};
    /* In front: who binds last is found. */
    list_push_front(&net->ports, &port->node);
    return port;
}

void sim_net_unbind(struct sim_port *port) {
    if (port) {
        list_remove(&port->node);
        free(port);
    }
}

struct sim_net *sim_port_net(const struct sim_port *port) {
    return port->net;
}

struct sim *sim_port_world(const struct sim_port *port) {
    return port->net->sim;
}

struct sim_packet *sim_packet_new(size_t size_bytes) {
    struct flight *flight = allocate(sizeof *flight);
    size_t room = (size_bytes + PACKET_ALIGNMENT - 1) / PACKET_ALIGNMENT * PACKET_ALIGNMENT;

    flight->packet.size = size_bytes;
    flight->packet.data = aligned_alloc(PACKET_ALIGNMENT, MAX(room, (size_t)PACKET_ALIGNMENT));
    if (!flight->packet.data) {
        abort();
    }
    return &flight->packet;
}

void sim_packet_free(struct sim_packet *packet) {
    if (packet) {
        free(packet->data);
        free(CONTAINER_OF(packet, struct flight, packet));
    }
}

static void flight_free(void *context) {
    struct flight *flight = context;

    sim_packet_free(&flight->packet);
}

static void swallow(struct flight *flight, const char *counter) {
    sim_count(flight->net->sim, counter, 1);
    flight_free(flight);
}

static void flight_receive(void *context) {
    struct flight *flight = context;
    struct sim_port *port = port_find(flight->net, flight->to);

    if (port) {
        port->receive(port->context, &flight->packet);
    } else {
        swallow(flight, "packets swallowed");
    }
}

static struct lane *lane_find(struct sim_net *net, const struct sim_process *from,
                              const struct sim_process *to) {
    for (struct list_node *node = list_first(&net->lanes); node;
         node = list_next(&net->lanes, node)) {
        struct lane *lane = CONTAINER_OF(node, struct lane, node);

        if (lane->from == from && lane->to == to) {
            list_remove(&lane->node);
            return lane;
        }
    }
    struct lane *lane = allocate(sizeof *lane);
    lane->from = from;
    lane->to = to;
    return lane;
}

static void order_look(const struct flight *flight, const struct sim_process *to) {
    struct lane *lane = lane_find(flight->net, flight->from, to);

    list_push_front(&flight->net->lanes, &lane->node);
    if (flight->number < lane->newest) {
        sim_count(flight->net->sim, "packets overtaken", 1);
    }
    lane->newest = MAX(lane->newest, flight->number);
}

static void flight_arrive(void *context) {
    struct flight *flight = context;
    struct sim_port *port = port_find(flight->net, flight->to);

    if (!port || !sim_process_is_up(port->process)) {
        swallow(flight, "packets swallowed");
    } else if (cut_find(flight->net, flight->from, port->process)) {
        swallow(flight, "packets cut off");
    } else {
        order_look(flight, port->process);
        sim_schedule_event(flight->net->sim, &(struct sim_event){.process = port->process,
                                                                 .kind = "receive",
                                                                 .run = flight_receive,
                                                                 .drop = flight_free,
                                                                 .context = flight});
    }
}

static bool chance(struct sim_net *net, uint32_t per_million) {
    return per_million > 0 && prng_chance(sim_prng(net->sim), per_million, PER_MILLION);
}

static void flight_launch(struct flight *flight) {
    struct sim_net *net = flight->net;
    const struct sim_net_faults *faults = &net->faults;
    uint64_t delay_ns =
        prng_between(sim_prng(net->sim), faults->delay_ns_min, faults->delay_ns_max);

    if (faults->slow_ns > 0 && chance(net, faults->slow_per_million)) {
        sim_count(net->sim, "packets slow", 1);
        delay_ns += prng_below(sim_prng(net->sim), faults->slow_ns);
    }
    sim_schedule_event(net->sim, &(struct sim_event){.delay_ns = delay_ns,
                                                     .kind = "arrive",
                                                     .run = flight_arrive,
                                                     .drop = flight_free,
                                                     .context = flight});
}

static struct flight *flight_copy(const struct flight *flight) {
    struct flight *copy = CONTAINER_OF(sim_packet_new(flight->packet.size), struct flight, packet);

    memcpy(copy->packet.data, flight->packet.data, flight->packet.size);
    copy->packet.from = flight->packet.from;
    copy->net = flight->net;
    copy->from = flight->from;
    copy->to = flight->to;
    copy->number = flight->number;
    return copy;
}

void sim_net_send(struct sim_port *port, uint64_t to, struct sim_packet *packet) {
    struct flight *flight = CONTAINER_OF(packet, struct flight, packet);
    struct sim_net *net = port->net;

    flight->packet.from = port->address;
    flight->net = net;
    flight->from = port->process;
    flight->to = to;
    flight->number = ++net->packet_count;
    sim_count(net->sim, "packets sent", 1);
    if (chance(net, net->faults.drop_per_million)) {
        swallow(flight, "packets dropped");
        return;
    }
    if (chance(net, net->faults.double_per_million)) {
        sim_count(net->sim, "packets doubled", 1);
        flight_launch(flight_copy(flight));
    }
    flight_launch(flight);
}
