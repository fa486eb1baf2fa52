/* The network of a simulated world: packets between addresses, with the faults of real ones.
 *
 *     send -> dropped? doubled? -> delay (reorders) -> cut off? nobody there? -> receive
 *
 * An address is bound by one process at a time. A packet finds whoever is bound when it arrives,
 * be it a later incarnation; one that finds nobody, or a process that is down, is swallowed. All
 * lots are drawn from the world's generator.
 *
 * It counts in the world (sim_count): packets sent, dropped, doubled, slow, overtaken, cut off,
 * swallowed.
 *
 * Thread: the world's. Memory: a packet from the heap until it is received. */
#pragma once
#include "env/env_sim.h"

struct sim_net;
struct sim_port; /* a bound address */

/* May be changed at any time. At the start: 10 to 50 us, no faults. */
struct sim_net_faults {
    uint64_t delay_ns_min;
    uint64_t delay_ns_max;
    uint32_t drop_per_million;
    uint32_t double_per_million; /* the copy has a delay of its own */
    uint32_t slow_per_million;   /* so many take up to slow_ns longer */
    uint64_t slow_ns;
};

/* Bytes on their way; data is aligned to a block. */
struct sim_packet {
    uint64_t from; /* address */
    size_t size;
    uint8_t *data;
};

/* The packet is the receiver's, who frees it. Runs within the hooks of the process. */
typedef void sim_receive_fn(void *context, struct sim_packet *packet);

struct sim_net *sim_net_new(struct sim *sim);
/* Before the world goes. Takes NULL. */
void sim_net_free(struct sim_net *net);
struct sim_net_faults *sim_net_faults(struct sim_net *net);
/* Packets that would arrive at `to` from `from` are lost from now on; or no longer. */
void sim_net_cut(struct sim_net *net, const struct sim_process *from, const struct sim_process *to,
                 bool cut);
void sim_net_heal(struct sim_net *net);

/* Address 0: one that nobody had before. An address that is bound is taken over. */
struct sim_port *sim_net_bind(struct sim_net *net, struct sim_process *process, uint64_t address,
                              sim_receive_fn *receive, void *context);
/* Takes NULL. */
void sim_net_unbind(struct sim_port *port);
struct sim_net *sim_port_net(const struct sim_port *port);
struct sim *sim_port_world(const struct sim_port *port);

/* Space for a packet, to be sent or freed. */
struct sim_packet *sim_packet_new(size_t size_bytes);
void sim_packet_free(struct sim_packet *packet);
/* Takes the packet over. */
void sim_net_send(struct sim_port *port, uint64_t to, struct sim_packet *packet);
