/* What carries calls between the processes of a world, of one life of a node: packets, or what
 * daemons and mounts use, over simulated streams.
 *
 *     packets    rpc --> transport_sim --> sim_net ......... transport_sim_server --> actor
 *     streams    rpc --> lanes --> connection --> stream ~~~ gate --> log table ----> actor
 *
 * A process has one thread here, so a lane to each other process. What happens in it are events:
 * behind each the thread's turn is over, and what lanes and gate have gathered leaves, or it does
 * so a drawn time later together with more. Addresses are those of Unix sockets, without TLS.
 *
 * Thread: the world's. Memory: the heap. */
#pragma once
#include "rpc/transport.h"
#include "world.h"

struct carrier;

/* Before the rpc. -ERR_NO_MEMORY. */
MUST_CHECK int carrier_new(struct node *node, struct env *env, struct carrier **ret_carrier);
/* The context of the ops is the carrier. */
const struct transport_ops *carrier_ops(const struct world *world);

struct carrier_limits {
    uint32_t calls_max;
    uint32_t reserve_count[MESSAGE_CLASS_COUNT]; /* of packets; a gate has its own */
    uint64_t bulk_bytes_max;
};
/* The actor is called by the log from now on. The errors of transport_sim_serve, gate_new,
 * gate_listen. */
MUST_CHECK int carrier_serve(struct carrier *carrier, struct log_id log, struct actor *actor,
                             const struct carrier_limits *limits);
/* Around everything that happens in the process. Take NULL. */
void carrier_enter(struct carrier *carrier);
void carrier_leave(struct carrier *carrier);
/* At each tick of the role, of which lanes and gates need nothing: they have their own. */
void carrier_tick(struct carrier *carrier);
/* Adds what was counted to the world's sums. Takes NULL. */
void carrier_sum(const struct carrier *carrier);
/* The process is gone: nobody is answered any more. Before the rpc goes; takes NULL. */
void carrier_end(struct carrier *carrier);
/* After all that it has called. Takes NULL. */
void carrier_free(struct carrier *carrier);
